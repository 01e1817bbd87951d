package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	page "goodput_exporter/dashboards/live"
	"goodput_exporter/probe"
)

const statusInterval = 15 * time.Second

// daemon is a live page whose series are named by their states, as far as results can bring them there.
type daemon struct {
	*httptest.Server
	live *live.Live
}

// newDaemon serves series of these states, probed until a time before now.
func newDaemon(t *testing.T, idle time.Duration, states ...live.State) *daemon {
	t.Helper()
	l := live.New(live.Options{Paused: func(target, _ string, _ time.Time) (live.Pause, bool) {
		return live.Pause{Reason: "new GPUs \x1b[2J", By: "ada"}, target == string(live.Paused)
	}})
	cfg := &config.Config{}
	for _, state := range states {
		cfg.Series = append(cfg.Series, &config.Series{
			Target: &config.Target{Name: string(state), Protocol: "openai-chat", URL: "https://llm.example.net/v1", Model: "llama"},
			Scenario: &config.Scenario{
				Name: "chat", Interval: statusInterval, Timeout: time.Minute, Stream: true,
				SLO: config.SLO{Objective: 0.99, Criteria: []config.Criterion{
					{Name: config.CriterionTTFT, Limit: 800 * time.Millisecond}, {Name: config.CriterionE2E, Limit: 8 * time.Second},
				}},
			},
		})
	}
	l.Update(cfg)
	const probes = 240
	for i := range probes {
		at := time.Now().Add(-idle - time.Duration(probes-i)*statusInterval)
		for _, state := range states {
			switch bad := i > probes-20; {
			case state == live.NoData:
			case state == live.Down && bad:
				l.Series("down/chat").Restore(resultAt(at, probe.ConnectionError))
			case state == live.Burning && bad:
				l.Series("burning/chat").Restore(resultAt(at, probe.SLOViolation))
			default:
				l.Series(string(state) + "/chat").Restore(resultAt(at, probe.Good))
			}
		}
	}
	p, err := page.New(page.Options{Live: l})
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{httptest.NewServer(p), l}
	t.Cleanup(d.Close)
	return d
}

// resultAt is a result that was there at a time.
func resultAt(at time.Time, outcome probe.Outcome) *probe.Result {
	const took = 2 * time.Second
	r := &probe.Result{Time: at.Add(-took), Outcome: outcome, E2E: new(took)}
	switch outcome {
	case probe.Good:
		r.TTFT = new(200 * time.Millisecond)
	case probe.SLOViolation:
		r.TTFT = new(1840 * time.Millisecond)
		r.Judgments = []probe.Judgment{{SLO: config.CriterionTTFT, Verdict: probe.Missed}}
	default:
		r.Reason = probe.ReasonRefused
	}
	return r
}

func TestStatusExitCode(t *testing.T) {
	for _, tc := range []struct {
		states []live.State
		args   []string
		code   int
	}{
		{[]live.State{live.OK}, nil, 0},
		{[]live.State{live.OK, live.Paused}, nil, 0},
		{[]live.State{live.OK, live.Burning}, nil, 1},
		{[]live.State{live.OK, live.Down}, nil, 1},
		{[]live.State{live.OK, live.NoData}, nil, 2},
		{[]live.State{live.NoData, live.Down}, nil, 1},
		{[]live.State{live.OK, live.Down}, []string{"--target=ok"}, 0},
		{[]live.State{live.OK, live.Down}, []string{"--target=down", "--scenario=chat"}, 1},
		{nil, nil, 2},
	} {
		t.Run(fmt.Sprint(tc.states, tc.args), func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t, 0, tc.states...)
			for _, output := range []string{"text", "json"} {
				r := goodputctl(t, nil, append([]string{"status", "--url=" + d.URL, "--output=" + output}, tc.args...)...)
				if r.code != tc.code || r.stderr != "" {
					t.Errorf("%s: exit code %d, want %d: %s%s", output, r.code, tc.code, r.stdout, r.stderr)
				}
			}
		})
	}
}

func TestStatusTable(t *testing.T) {
	d := newDaemon(t, 0, live.OK, live.NoData, live.Burning, live.Paused, live.Down)
	r := goodputctl(t, nil, "status", "--url="+d.URL+"/")
	if r.code != 1 {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	text := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`).ReplaceAllString(r.stdout, "TIME")
	text = regexp.MustCompile(`SINCE +BURN`).ReplaceAllString(text, "SINCE BURN") // as wide as the times are
	text = regexp.MustCompile(` (\d+h)?(\d+m)?\d+s( critical)? +(\S+x|-) `).ReplaceAllString(text, " SINCE$3 $4 ")
	golden(t, "status.golden", text)
}

func TestStatusJSONIsThatOfTheAPI(t *testing.T) {
	d := newDaemon(t, 0, live.OK, live.Burning)
	for _, brief := range []bool{false, true} {
		args := []string{"status", "--output=json", "--url=" + d.URL}
		if brief {
			args = append(args, "--brief")
		}
		r := goodputctl(t, nil, args...)
		var got live.Status
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || strings.Count(r.stdout, "\n") != 1 {
			t.Fatalf("%v: %s", err, r.stdout)
		}
		want := d.live.Status(got.Now, live.StatusOptions{Brief: brief})
		if diff := cmp.Diff(want, &got); diff != "" {
			t.Errorf("brief %v: -want +got:\n%s", brief, diff)
		}
	}
}

// What is not known is never ok, and is told in one line.
func TestStatusUnknown(t *testing.T) {
	answering := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
	}
	status := func(now, lastProbe string) string {
		return fmt.Sprintf(`{"version":"v1","now":%q,"series":[{"key":"a/b","state":"ok","interval_seconds":15,"timeout_seconds":60%s}]}`, now, lastProbe)
	}
	for name, tc := range map[string]struct {
		handler http.Handler
		args    []string
		want    string
	}{
		"an error of its own": {answering(503, `{"error":"starting\u001b[2J\nup"}`), nil, "answers 503 Service Unavailable: starting\uFFFD[2J\uFFFDup"},
		"another page":        {answering(502, "<html>\n<h1>Bad gateway"), nil, `answers 502 Bad Gateway: "<html>\n<h1>Bad gateway"`},
		"no credentials":      {answering(401, "Unauthorized\n"), nil, "give credentials by --http.config.file"},
		"no JSON":             {answering(200, "<html>"), nil, `is no status v1 of goodput_exporter but "<html>"`},
		"other JSON":          {answering(200, `{"status":"success","data":[]}`), nil, "is no status v1"},
		"another version":     {answering(200, strings.Replace(status("2026-11-29T18:00:00Z", ""), "v1", "v2", 1)), nil, "is no status v1"},
		"half an answer":      {answering(200, status("2026-11-29T18:00:00Z", "")[:60]), nil, "is no status v1"},
		"a break in the body": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "{")
		}), nil, "unexpected EOF"},
		"no answer": {http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), []string{"--timeout=200ms"}, "within 200ms"},
		"an answer without end": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}), []string{"--timeout=200ms"}, "within 200ms"},
		"never probed":       {answering(200, status("2026-11-29T18:00:00Z", "")), nil, "stale: the daemon never probed"},
		"probed long ago":    {answering(200, status("2026-11-29T18:00:00Z", `,"last_probe":"2026-11-29T17:00:00Z"`)), nil, "stale: the daemon sent its last probe 1h0m0s before"},
		"no series of these": {newDaemon(t, 0, live.OK).Config.Handler, []string{"--target=x"}, "answers 404 Not Found: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			r := goodputctl(t, nil, append([]string{"status", "--url=" + server.URL}, tc.args...)...)
			if r.code != 2 || !strings.Contains(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("exit code %d, stderr %q, want 2 and %q", r.code, r.stderr, tc.want)
			}
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if r := goodputctl(t, nil, "status", "--url="+gone.URL); r.code != 2 || !strings.Contains(r.stderr, "connection refused") || r.stdout != "" {
		t.Errorf("nobody there: exit code %d, %q", r.code, r.stderr)
	}
}

// A daemon that stopped probing says so itself.
func TestStatusOfADaemonThatStoppedProbing(t *testing.T) {
	d := newDaemon(t, 10*time.Minute, live.OK)
	if r := goodputctl(t, nil, "status", "--url="+d.URL); r.code != 2 || !strings.Contains(r.stdout, "no probe was judged for 10m") {
		t.Errorf("exit code %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestStatusWithCredentialsAndTLS(t *testing.T) {
	d := newDaemon(t, 0, live.OK)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "ada" || password != "s3cret" {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		d.Config.Handler.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // one client below breaks off its handshake
	defer server.Close()
	password := writeFile(t, "password", []byte("s3cret"))
	file := writeFile(t, "http.yml", []byte("basic_auth: {username: ada, password_file: "+password+"}\ntls_config: {insecure_skip_verify: true}\n"))
	if r := goodputctl(t, nil, "status", "--url="+server.URL, "--http.config.file="+file); r.code != 0 {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	if r := goodputctl(t, nil, "status", "--url="+server.URL); r.code != 2 || !strings.Contains(r.stderr, "certificate") {
		t.Errorf("without trust in the certificate: exit code %d: %s", r.code, r.stderr)
	}
}

func TestStatusBadUsage(t *testing.T) {
	bad := writeFile(t, "http.yml", []byte("basic: {}\n"))
	for name, tc := range map[string]struct{ arg, want string }{
		"URL":              {"--url=localhost:10042", "--url: not a URL of a daemon"},
		"password in it":   {"--url=http://ada:hidden@localhost", "--url: must not hold a user name or password"},
		"timeout":          {"--timeout=0s", "--timeout=0s: it must be positive"},
		"no such file":     {"--http.config.file=none", "--http.config.file: none: open none"},
		"file":             {"--http.config.file=" + bad, "field basic not found"},
		"output":           {"--output=xml", "must be one of text,json"},
		"an argument":      {"x", "unexpected x"},
		"unknown flag":     {"--outcome=good", "unknown long flag"},
		"duration unknown": {"--timeout=soon", `invalid duration "soon"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := goodputctl(t, nil, "status", tc.arg)
			if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("exit code %d, %q, want one line with %q", r.code, r.stderr, tc.want)
			}
			if strings.Contains(r.stderr, "hidden") {
				t.Errorf("it tells the password: %q", r.stderr)
			}
		})
	}
}

// Beside a terminal, a watch writes each change once.
func TestStatusWatchTellsChanges(t *testing.T) {
	t.Parallel() // it waits for looks
	d := newDaemon(t, 0, live.OK)
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		d.Config.Handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), binary, "status", "--watch", "--url="+server.URL)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout // in one order
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("%q, want %q", lines.Text(), want)
		}
	}
	expect("1 ok at ")
	expect("ok/chat ok: ")
	broken.Store(true)
	expect(`unknown: ` + server.URL + `/api/v1/status answers 503 Service Unavailable: "out of order\n"`)
	broken.Store(false)
	expect("1 ok at ")
	expect("ok/chat ok: ")
	for range 20 {
		d.live.Series("ok/chat").Observe(resultAt(time.Now(), probe.ConnectionError))
	}
	expect("ok/chat burning")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() {
		t.Errorf("told twice: %q", lines.Text())
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d, want that of the last look", cmd.ProcessState.ExitCode())
	}
}

// A cache in between would show one status for ever.
func TestStatusWatchNoticesAClockThatStandsStill(t *testing.T) {
	t.Parallel()
	const doc = `{"version":"v1","now":"2026-11-29T18:00:00Z","series":[{"key":"a/b","state":"ok","interval_seconds":15,"last_probe":"2026-11-29T17:59:50Z"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, doc) }))
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), binary, "status", "--watch", "--output=json", "--url="+server.URL)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	if !lines.Scan() || !strings.Contains(lines.Text(), "stale: the status is still that of 2026-11-29T18:00:00Z") {
		t.Errorf("%q", lines.Text())
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("exit code %d, want 2", cmd.ProcessState.ExitCode())
	}
}
