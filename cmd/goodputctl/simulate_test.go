package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// simulation is a running `goodputctl simulate`.
type simulation struct {
	root  string
	bases [][2]string // protocol, with a place in brackets behind it, and URL
	stop  func() (code int, stderr string)
}

var baseLine = regexp.MustCompile(`^  (\S+(?: \(.*\))?)\s+(http://\S+)$`)

// startSimulation runs `goodputctl simulate` on a free port until the test ends, or stop interrupts it.
func startSimulation(t *testing.T, args ...string) *simulation {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(binary, append([]string{"simulate", "--listen=127.0.0.1:0"}, args...)...)
	cmd.Env, cmd.Stderr = []string{}, &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &simulation{}
	stopped := false
	s.stop = func() (int, string) {
		if !stopped {
			stopped = true
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
			late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
			defer late.Stop()
			_ = cmd.Wait() // its exit code says it
		}
		return cmd.ProcessState.ExitCode(), stderr.String()
	}
	t.Cleanup(func() { s.stop() })
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if _, truth, ok := strings.Cut(lines.Text(), "is at "); ok {
			s.root, _, _ = strings.Cut(truth, "/truth")
		}
		if m := baseLine.FindStringSubmatch(lines.Text()); m != nil {
			s.bases = append(s.bases, [2]string{m[1], m[2]})
		}
		if strings.Contains(lines.Text(), "(TEI)") { // the last line
			return s
		}
	}
	_, text := s.stop()
	t.Fatalf("it did not start: %s", text)
	return nil
}

// Every base URL that simulate prints is one that probe gets a good answer from, and Ctrl-C ends it in order.
func TestSimulateIsProbed(t *testing.T) {
	t.Parallel()
	s := startSimulation(t, "--model=m", "--ttft=fixed:20ms", "--gap=uniform:1ms,2ms", "--output-tokens=fixed:6")
	if len(s.bases) < 18 {
		t.Fatalf("base URLs: %v", s.bases)
	}
	key := writeFile(t, "key", []byte("any"))
	for _, base := range s.bases {
		protocol, _, _ := strings.Cut(base[0], " ")
		r := goodputctl(t, nil, "probe", "--url="+base[1], "--protocol="+protocol, "--model=m", "--api-key-file="+key, "--output=json")
		results := parse(t, r)
		if r.code != 0 || len(results) != 1 {
			t.Errorf("%s at %s: exit code %d: %s%s", base[0], base[1], r.code, r.stdout, r.stderr)
			continue
		}
		if text := results[0]["text"]; text != " moss fern kelp oak reef dune" && protocol != "openai-embeddings" && protocol != "rerank" {
			t.Errorf("%s: text %q", base[0], text)
		}
	}
	if code, stderr := s.stop(); code != 0 || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

// An answer that is under way is no reason to stay.
func TestSimulateEndsInTheMidst(t *testing.T) {
	t.Parallel()
	s := startSimulation(t, "--ttft=1h")
	begun := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.root+"/v1/completions",
			strings.NewReader(`{"model":"simulated","prompt":"x","stream":true}`))
		if err != nil {
			t.Error(err)
			return
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		close(begun)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	<-begun
	if code, stderr := s.stop(); code != 0 || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	<-ended
}

func TestSimulateFile(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "models.yml", []byte(`
models:
  - {name: fast, ttft: recorded:ttft, gap: fixed:1ms, output_tokens: 3, prefill: 1us, concurrency: 2, max_queue: 4}
  - {name: full, ttft: 1ms, faults: ["rate_limited:100%:7s"]}
`))
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "ttft"), []byte("5ms\n6ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startSimulation(t, "--file="+file)
	for _, tc := range []struct {
		model, outcome string
		retryAfter     any
	}{{"fast", "good", nil}, {"full", "rate_limited", 7.0}} {
		results := parse(t, goodputctl(t, nil, "probe", "--url="+s.root, "--model="+tc.model, "--output=json"))
		if len(results) != 1 || results[0]["outcome"] != tc.outcome || results[0]["retry_after_seconds"] != tc.retryAfter {
			t.Errorf("%s: %v", tc.model, results)
		}
	}
}

// The same seed makes the same faults, and another one others.
func TestSimulateSeeds(t *testing.T) {
	t.Parallel()
	outcomes := func(seed string) string {
		s := startSimulation(t, "--seed="+seed, "--ttft=1ms", "--gap=0s", "--output-tokens=2", "--fault=internal:0.4", "--fault=empty:0.2")
		var all []string
		for _, r := range parse(t, goodputctl(t, nil, "probe", "--url="+s.root, "--model=simulated", "--output=json", "--count=12")) {
			all = append(all, r["outcome"].(string))
		}
		return strings.Join(all, " ")
	}
	first := outcomes("1")
	if again := outcomes("1"); again != first {
		t.Errorf("%s, and then %s", first, again)
	}
	if other := outcomes("2"); other == first {
		t.Errorf("another seed: %s as well", other)
	}
}

func TestSimulateBadUsage(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--file=" + path
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"address in use":        {[]string{"--listen=" + l.Addr().String()}, "address already in use"},
		"no address":            {[]string{"--listen=nowhere"}, "nowhere"},
		"no distribution":       {[]string{"--ttft=slow:1s"}, `--ttft: "slow" is no distribution`},
		"no time":               {[]string{"--gap=20"}, `--gap: "20" is no duration such as 200ms`},
		"no number":             {[]string{"--output-tokens=many"}, `--output-tokens: "many" is no number`},
		"no record":             {[]string{"--ttft=recorded:" + dir + "/no"}, "--ttft: recorded values: open"},
		"unknown fault":         {[]string{"--fault=flood:1%"}, `--fault: "flood" is no fault; known are rate_limited, `},
		"fault without a share": {[]string{"--fault=internal"}, `--fault: "internal" is no fault: write one such as rate_limited:5%`},
		"share in words":        {[]string{"--fault=internal:half"}, `--fault: "half" is no share`},
		"share of 0":            {[]string{"--fault=internal:0"}, "the share of internal is 0: it must be more than 0"},
		"share over 100 %":      {[]string{"--fault=internal:5"}, "the share of internal is 5: it must be more than 0, and at most 1 or 100 %"},
		"shares over 100 %":     {[]string{"--fault=internal:60%", "--fault=empty:60%"}, "--fault: the shares add up to 120 %"},
		"no delay":              {[]string{"--fault=internal:1%:soon"}, `"soon" is no time such as 2s`},
		"model twice":           {[]string{"--model=a", "--model=a"}, `--model: "a" is there twice`},
		"model without a name":  {[]string{"--model="}, "--model: the name is missing"},
		"negative concurrency":  {[]string{"--concurrency=-1"}, "--concurrency: must not be negative"},
		"queue for nothing":     {[]string{"--max-queue=2"}, "--max-queue: nothing waits without --concurrency"},
		"file missing":          {[]string{"--file=" + dir + "/no"}, "no such file"},
		"file empty":            {[]string{file("empty", "")}, "empty: no models: list at least one"},
		"file with a typo":      {[]string{file("typo", "models: [{nam: a}]")}, "typo: yaml: unmarshal errors: line 1: field nam not found"},
		"file with an error":    {[]string{file("error", "models: [{name: a}, {name: b, gap: 1}]")}, `error: models[1].gap: "1" is no duration`},
		"flag and file":         {[]string{"--ttft=1s", "--file=x"}, "--ttft has no say beside --file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := goodputctl(t, nil, append([]string{"simulate"}, tc.args...)...)
			if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q, stderr %q; want 2 and one line with %q", r.code, r.stdout, r.stderr, tc.want)
			}
		})
	}
}

// What the text must be, by flags.
func TestProbeChecks(t *testing.T) {
	t.Parallel()
	s := startSimulation(t, "--ttft=1ms", "--gap=0s", "--output-tokens=30")
	schema := writeFile(t, "schema.json", []byte(`{"type": "object"}`))
	stuck := startSimulation(t, "--ttft=1ms", "--gap=0s", "--fault=stuck:1")
	for name, tc := range map[string]struct {
		root  string
		args  []string
		error string // "" is good
	}{
		"nothing":         {s.root, nil, ""},
		"expect":          {s.root, []string{"--expect=moss.*elm"}, ""},
		"expect missed":   {s.root, []string{"--expect=^Paris"}, `the text does not match "^Paris"`},
		"length":          {s.root, []string{"--check.min-length=100"}, ""},
		"length missed":   {s.root, []string{"--check.min-length=1000"}, "not at least 1000"},
		"JSON missed":     {s.root, []string{"--check.json"}, "the text is not JSON"},
		"schema missed":   {s.root, []string{"--check.schema=" + schema}, "the text is not JSON"},
		"no repetition":   {s.root, []string{"--check.max-repetition=5"}, ""},
		"repetition":      {stuck.root, []string{"--check.max-repetition=5"}, `the text ends with " moss" 256 times in a row, more than 5`},
		"stuck unchecked": {stuck.root, nil, ""},
	} {
		args := append([]string{"probe", "--url=" + tc.root, "--model=simulated", "--output=json"}, tc.args...)
		r := goodputctl(t, nil, args...)
		results := parse(t, r)
		if len(results) != 1 {
			t.Errorf("%s: %s%s", name, r.stdout, r.stderr)
			continue
		}
		got := results[0]
		if tc.error == "" {
			if got["outcome"] != "good" || r.code != 0 {
				t.Errorf("%s: exit code %d: %s", name, r.code, r.stdout)
			}
			continue
		}
		if text, _ := got["error"].(string); got["outcome"] != "invalid_response" || got["reason"] != "content_check" || !strings.Contains(text, tc.error) || r.code != 1 {
			b, _ := json.Marshal(got)
			t.Errorf("%s: exit code %d, want %q: %s", name, r.code, tc.error, b)
		}
	}
}
