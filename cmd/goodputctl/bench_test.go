package main_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"goodput_exporter/probe/load"
)

// chat serves chat completions, each told by its number from 1 what to do.
func chat(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(int(n.Add(1)), w, r)
	}))
	t.Cleanup(server.Close)
	return "--url=" + server.URL + "/v1"
}

// good is a whole answer that took a while.
func good(w http.ResponseWriter, r *http.Request, takes time.Duration) {
	pause(r.Context(), takes)
	_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"moss"},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":5,"completion_tokens":1}}`)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// bench runs goodputctl bench against answers that are not streamed, and returns its report. On a machine that is busy
// with other tests a run may count as spoilt by the client, which exits with 2; its counts are right all the same.
func bench(t *testing.T, code int, args ...string) (load.Report, ran) {
	t.Helper()
	args = append([]string{"bench", "--model=m", "--no-stream", "--no-progress", "--output=json"}, args...)
	r := goodputctl(t, nil, args...)
	var report load.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("exit code %d, %v: %s%s", r.code, err, r.stderr, r.stdout)
	}
	if r.code != code && (report.Valid || r.code != 2) {
		t.Fatalf("exit code %d, want %d: %s", r.code, code, r.stderr)
	}
	return report, r
}

// Two services, told as a story in the README: B completes a quarter more requests a second, and pleases fewer users.
func TestBenchTellsThroughputFromGoodput(t *testing.T) {
	t.Parallel()
	const (
		concurrency = 100
		timeScale   = 1. / 20 // of 100 s and 80 s for 1,000 requests
	)
	measure := func(seconds float64, bad func(n int) bool) load.Report {
		takes := time.Duration(seconds * timeScale * concurrency / 1000 * float64(time.Second))
		url := chat(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if bad(n) {
				pause(r.Context(), takes)
				http.Error(w, "overloaded", http.StatusServiceUnavailable)
				return
			}
			good(w, r, takes)
		})
		report, _ := bench(t, 0, url, "--requests=1000", fmt.Sprint("--concurrency=", concurrency), "--warmup-requests=0", "--slo.e2e=5s")
		return report
	}
	var a, b load.Report
	var both sync.WaitGroup // at once, so that a busy machine slows both
	both.Go(func() { a = measure(100, func(n int) bool { return n%20 == 0 }) })
	both.Go(func() { b = measure(80, func(n int) bool { return n%5 < 2 }) })
	both.Wait()
	if a.Counts.Attempts != 1000 || a.Counts.Good != 950 || b.Counts.Attempts != 1000 || b.Counts.Good != 600 {
		t.Errorf("good: A %d of %d, B %d of %d; want 950 and 600 of 1000", a.Counts.Good, a.Counts.Attempts, b.Counts.Good, b.Counts.Attempts)
	}
	// In proportion to the table of the README: throughput 10 and 12.5, goodput 9.5 and 7.5. A busy machine blurs the
	// times, which are the same in both rates of a service.
	if got := *b.Throughput / *a.Throughput; got < 1.05 || got > 1.5 {
		t.Errorf("B has %.3f times the throughput of A, want about 1.25", got)
	}
	if got := *b.Goodput / *a.Goodput; got < 0.6 || got > 0.95 {
		t.Errorf("B has %.3f times the goodput of A, want about 0.79", got)
	}
	for name, r := range map[string]struct {
		report load.Report
		want   float64
	}{"A": {a, 0.95}, "B": {b, 0.6}} {
		if got := *r.report.Goodput / *r.report.Throughput; math.Abs(got-r.want) > 1e-9 {
			t.Errorf("%s: goodput is %.3f of throughput, want %.3f", name, got, r.want)
		}
	}
}

// What the report counts, its CSV, the metrics and the server itself say is the same.
func TestBenchCountsAgree(t *testing.T) {
	t.Parallel()
	const requests = 200
	var served [5]atomic.Int64
	last := make(chan struct{})
	url := chat(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == requests {
			<-last // until the metrics were read
		}
		served[n%5].Add(1)
		switch n % 5 {
		case 0:
			w.WriteHeader(http.StatusTooManyRequests)
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
		case 2:
			_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"moss"},"fin`)
		default:
			good(w, r, time.Millisecond)
		}
	})
	dir, metrics := t.TempDir(), freeAddress(t)
	scraped := make(chan map[string]int, 1)
	go func() {
		defer close(last)
		scraped <- awaitProbes(t.Context(), "http://"+metrics+"/metrics", requests-1)
	}()
	report, _ := bench(t, 0, url, fmt.Sprint("--requests=", requests), "--warmup-requests=0", "--slo.e2e=10s",
		"--csv="+filepath.Join(dir, "requests.csv"), "--json="+filepath.Join(dir, "report.json"), "--metrics-listen="+metrics)

	of := func(i int) int { return int(served[i].Load()) }
	want := map[string]int{"rate_limited": of(0), "server_error": of(1), "truncated": of(2), "good": of(3) + of(4)}
	got := map[string]int{}
	for outcome, n := range report.Counts.Outcomes {
		if n > 0 {
			got[string(outcome)] = n
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes of the report (-served +reported):\n%s", diff)
	}
	if diff := cmp.Diff(want, outcomesOfCSV(t, filepath.Join(dir, "requests.csv"))); diff != "" {
		t.Errorf("outcomes of the CSV (-served +written):\n%s", diff)
	}
	want["rate_limited"]-- // the last request, 200 % 5
	if diff := cmp.Diff(want, <-scraped); diff != "" {
		t.Errorf("outcomes of the metrics before the last request (-served +exposed):\n%s", diff)
	}
	if fromFile := readReport(t, filepath.Join(dir, "report.json")); !cmp.Equal(report, fromFile) {
		t.Errorf("--json differs from --output=json:\n%s", cmp.Diff(report, fromFile))
	}
}

// awaitProbes reads metrics until they count so many probes, and returns the probes by outcome.
func awaitProbes(ctx context.Context, url string, want int) map[string]int {
	for ctx.Err() == nil {
		counts, sum := map[string]int{}, 0
		if resp, err := http.Get(url); err == nil {
			parser := expfmt.NewTextParser(model.UTF8Validation)
			families, err := parser.TextToMetricFamilies(resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				return nil
			}
			for _, m := range families["goodput_probes_total"].GetMetric() {
				for _, l := range m.GetLabel() {
					if n := int(m.GetCounter().GetValue()); l.GetName() == "outcome" && n > 0 {
						counts[l.GetValue()] = n
						sum += n
					}
				}
			}
		}
		if sum == want {
			return counts
		}
		pause(ctx, 10*time.Millisecond)
	}
	return nil
}

func outcomesOfCSV(t *testing.T, name string) map[string]int {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for i, field := range lines[0] {
		if field != "outcome" {
			continue
		}
		for _, line := range lines[1:] {
			counts[line[i]]++
		}
	}
	return counts
}

func readReport(t *testing.T, name string) load.Report {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var r load.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A server that freezes for 2 s: who only counts from the send sees a few slow requests, who counts from when the
// request was due sees all that its users saw.
func TestBenchSeesAFreezeFromTheIntendedStart(t *testing.T) {
	t.Parallel()
	var begin atomic.Pointer[time.Time]
	url := chat(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		begin.CompareAndSwap(nil, &now)
		if at := now.Sub(*begin.Load()); at > time.Second && at < 3*time.Second {
			pause(r.Context(), 3*time.Second-at)
		}
		good(w, r, time.Millisecond)
	})
	report, _ := bench(t, 0, url, "--rate=50", "--arrivals=constant", "--duration=5s", "--max-in-flight=4", "--slo.e2e=1s")
	sent, due := report.Latencies.E2E.Successes, report.Latencies.E2EFromIntended.Successes
	if sent.Count != 250 || sent.P95 > 0.5 {
		t.Errorf("from the send, p95 of %d requests is %v s: at most 4 of 250 saw the freeze", sent.Count, sent.P95)
	}
	if due.P95 < 1 || due.Max < 1.8 {
		t.Errorf("from the intended start, p95 is %v s and the most %v s: 100 of 250 requests were due in the freeze of 2 s", due.P95, due.Max)
	}
}

func TestBenchAchievesTheLoadItOffers(t *testing.T) {
	t.Parallel()
	url := chat(t, func(_ int, w http.ResponseWriter, r *http.Request) { good(w, r, 50*time.Millisecond) })
	within := func(name string, got *float64, want float64) {
		t.Helper()
		if got == nil || math.Abs(*got/want-1) > 0.01 {
			t.Errorf("%s: %v, want %v within 1 %%", name, deref(got), want)
		}
	}
	closed, _ := bench(t, 0, url, "--concurrency=16", "--duration=2s")
	within("requests in flight", closed.Load.AchievedConcurrency, 16)
	constant, _ := bench(t, 0, url, "--rate=100", "--arrivals=constant", "--duration=3s")
	within("offered rate", constant.Load.OfferedRate, 100)
	within("achieved rate", constant.Load.AchievedRate, 100)
	for _, arrivals := range []string{"--arrivals=poisson", "--arrivals=gamma"} {
		random, _ := bench(t, 0, url, "--rate=100", arrivals, "--burstiness=1", "--duration=3s")
		within(arrivals+", achieved rate", random.Load.AchievedRate, *random.Load.OfferedRate)
	}
}

func deref(v *float64) any {
	if v == nil {
		return "absent"
	}
	return *v
}

func TestBenchGates(t *testing.T) {
	t.Parallel()
	url := chat(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n%10 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		good(w, r, time.Millisecond)
	})
	for _, tc := range []struct {
		gate string
		code int
		says string
	}{
		{"attainment<80%", 0, ""},
		{"attainment<99%", 1, "attainment"},
		{"e2e_p95>5s", 0, ""},
		{"goodput<1000000", 1, "goodput"},
	} {
		report, r := bench(t, tc.code, url, "--requests=100", "--fail-if="+tc.gate)
		if !report.Valid {
			continue // says no more than that
		}
		if !strings.Contains(r.stderr, tc.says) || (tc.says == "") != (r.stderr == "") {
			t.Errorf("%s: stderr %q", tc.gate, r.stderr)
		}
	}
}

func TestBenchAgainstABaseline(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	url := chat(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if broken.Load() && n%3 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		good(w, r, time.Millisecond)
	})
	before, after := filepath.Join(t.TempDir(), "before.json"), filepath.Join(t.TempDir(), "after.json")
	bench(t, 0, url, "--requests=300", "--slo.e2e=10s", "--json="+before)
	broken.Store(true)
	_, r := bench(t, 1, url, "--requests=300", "--slo.e2e=10s", "--json="+after, "--baseline="+before)
	if !strings.Contains(r.stderr, "attainment") {
		t.Errorf("stderr does not say what is worse: %q", r.stderr)
	}
	if r := goodputctl(t, nil, "compare", before, after); r.code != 1 {
		t.Errorf("compare: exit code %d, want 1: %s", r.code, r.stderr)
	}
	if r := goodputctl(t, nil, "compare", after, after); r.code != 0 {
		t.Errorf("compare of a report with itself: exit code %d, want 0: %s", r.code, r.stderr)
	}
}

func TestPartsOfABenchMerge(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	url := chat(t, func(n int, w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if n%4 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		good(w, r, time.Millisecond)
	})
	dir, start := t.TempDir(), time.Now().Add(3*time.Second).UTC().Format(time.RFC3339)
	var raw []string
	done := make(chan error, 2)
	for i := range 2 {
		name := filepath.Join(dir, fmt.Sprint(i))
		raw = append(raw, name)
		go func() {
			r := goodputctl(t, nil, "bench", "--model=m", "--no-stream", "--no-progress", url, "--rate=50", "--requests=100", "--slo.e2e=10s",
				fmt.Sprintf("--part=%d/2", i), "--start-at="+start, "--raw="+name)
			if _, err := os.Stat(name); err != nil {
				done <- fmt.Errorf("%w: %s", err, r.stderr)
				return
			}
			done <- nil
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	r := goodputctl(t, nil, "merge", "--output=json", raw[0], raw[1])
	var report load.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("exit code %d, %v: %s", r.code, err, r.stderr)
	}
	if report.Counts.Attempts != 100 || served.Load() != 100 || report.Counts.Good != 75 || report.Latencies.E2E.Successes.Count != 75 {
		t.Errorf("%d attempts, %d good, %d figures of 100 requests, a quarter bad", report.Counts.Attempts, report.Counts.Good, report.Latencies.E2E.Successes.Count)
	}
	if rate := report.Load.Rate; rate == nil || *rate != 50 {
		t.Errorf("rate %v, want 50", deref(rate))
	}
}

func TestBenchReplaysATrace(t *testing.T) {
	t.Parallel()
	lengths := make(chan int, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var a struct {
			MaxTokens int `json:"max_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Error(err)
		}
		lengths <- a.MaxTokens
		good(w, r, 0)
	}))
	t.Cleanup(server.Close)
	trace := writeFile(t, "trace.csv", []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n"+
		"2023-11-16 18:15:46.0000000,100,10\n2023-11-16 18:15:48.0000000,200,20\n2023-11-16 18:15:50.0000000,300,30\n"))
	report, _ := bench(t, 0, "--url="+server.URL+"/v1", "--replay="+trace, "--replay-speed=4", "--slo.e2e=10s")
	var asked []int
	for range len(lengths) {
		asked = append(asked, <-lengths)
	}
	if diff := cmp.Diff([]int{10, 20, 30}, asked); diff != "" {
		t.Errorf("lengths of the answers (-recorded +asked):\n%s", diff)
	}
	if report.Load.Arrivals != "replay" || report.Counts.Good != 3 || *report.Duration < 0.9 {
		t.Errorf("arrivals %q, %d good, %v s; want a replay of 3 in 1 s", report.Load.Arrivals, report.Counts.Good, *report.Duration)
	}
}

// Made-up conversations: each turn has the real answers before it, and prompts begin with a text that others share.
func TestBenchHoldsConversations(t *testing.T) {
	t.Parallel()
	type message struct{ Role, Content string }
	conversations := make(chan []message, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []message }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		conversations <- body.Messages
		good(w, r, time.Millisecond)
	}))
	t.Cleanup(server.Close)
	bench(t, 0, "--url="+server.URL+"/v1", "--requests=12", "--warmup-requests=0", "--input-tokens=60,90", "--output-tokens=5,9",
		"--shared-prefix-tokens=20", "--turns=3", "--slo.e2e=10s")
	turns, firsts := map[int]int{}, map[string]bool{}
	for range len(conversations) {
		messages := <-conversations
		turns[len(messages)]++
		firsts[messages[0].Content[:60]] = true
		for i, m := range messages {
			if want := []string{"user", "assistant"}[i%2]; m.Role != want || want == "assistant" && m.Content != "moss" {
				t.Errorf("message %d of %d: %s says %q", i+1, len(messages), m.Role, m.Content)
			}
		}
	}
	if diff := cmp.Diff(map[int]int{1: 4, 3: 4, 5: 4}, turns); diff != "" {
		t.Errorf("requests by number of messages (-want +got):\n%s", diff)
	}
	if len(firsts) != 1 {
		t.Errorf("%d beginnings of prompts, want one that all share", len(firsts))
	}
}

func TestBenchInterruptedReportsWhatItHas(t *testing.T) {
	t.Parallel()
	url := chat(t, func(_ int, w http.ResponseWriter, r *http.Request) { good(w, r, 5*time.Millisecond) })
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, "bench", url, "--model=m", "--no-stream", "--no-progress", "--output=json", "--duration=1h")
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Second, func() { _ = cmd.Process.Signal(os.Interrupt) })
	_ = cmd.Wait() // its exit code says it
	var report load.Report
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("%v: %s %s", err, &stdout, &stderr)
	}
	if code := cmd.ProcessState.ExitCode(); code != 130 || !report.Interrupted || report.Counts.Good < 10 {
		t.Errorf("exit code %d, interrupted %t, %d good; want 130 and what was measured", code, report.Interrupted, report.Counts.Good)
	}
}

func TestBenchWritesAPage(t *testing.T) {
	t.Parallel()
	url := chat(t, func(_ int, w http.ResponseWriter, r *http.Request) { good(w, r, time.Millisecond) })
	name := filepath.Join(t.TempDir(), "report.html")
	r := goodputctl(t, nil, "bench", url, "--model=m", "--no-stream", "--no-progress", "--requests=20", "--slo.e2e=10s", "--html="+name)
	page, err := os.ReadFile(name)
	if r.code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s", r.code, err, r.stderr)
	}
	if !bytes.Contains(page, []byte("<svg")) || bytes.Contains(page, []byte("src=\"http")) {
		t.Error("no page with plots of its own")
	}
	for _, key := range []string{
		"duration_seconds", "throughput_req_s", "successful_req_s", "goodput_req_s", "slo_attainment", "output_token_s",
		"latency_mean_s", "latency_p50_s", "latency_p95_s", "latency_p99_s",
	} {
		if !strings.Contains(r.stdout, "\n"+key+": ") {
			t.Errorf("the text report lacks %s:\n%s", key, r.stdout)
		}
	}
}

// Bad usage is told at once, in one line that names what is wrong; so is an endpoint that is not there.
func TestBenchBadUsage(t *testing.T) {
	empty := writeFile(t, "empty.jsonl", nil)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"rate of 0":                  {[]string{"--rate=0"}, "--rate=0: it must be positive"},
		"negative rate":              {[]string{"--rate=-1"}, "--rate=-1: it must be positive"},
		"concurrency of 0":           {[]string{"--concurrency=0"}, "--concurrency=0: it must be at least 1"},
		"both loops":                 {[]string{"--rate=1", "--concurrency=1"}, "give one of them"},
		"negative requests":          {[]string{"--requests=-1"}, "--requests=-1: it must be positive"},
		"negative duration":          {[]string{"--duration=-1s"}, "--duration=-1s: it must be positive"},
		"negative warm-up":           {[]string{"--warmup=-1s"}, "--warmup=-1s: it must not be negative"},
		"unknown arrivals":           {[]string{"--rate=1", "--arrivals=x"}, "must be one of constant,poisson,gamma"},
		"burstiness of 0":            {[]string{"--rate=1", "--arrivals=gamma", "--burstiness=0"}, "burstiness"},
		"empty prompts file":         {[]string{"--prompts-file=" + empty}, "is empty: write lines such as"},
		"prompts file missing":       {[]string{"--prompts-file=" + empty + "x"}, "cannot read the prompts file"},
		"prompts twice":              {[]string{"--prompts-file=" + empty, "--prompt=x"}, "give one of them"},
		"lengths in words":           {[]string{"--input-tokens=many"}, `"many" is no length in tokens`},
		"lengths upside down":        {[]string{"--input-tokens=200,100"}, "the p95 at least the p50"},
		"distribution of one prompt": {[]string{"--prompt=x", "--output-tokens=1,2"}, "needs made-up prompts"},
		"turns of one prompt":        {[]string{"--prompt=x", "--turns=2"}, "it needs --input-tokens"},
		"prefix of one prompt":       {[]string{"--prompt=x", "--shared-prefix-tokens=10"}, "it needs --input-tokens"},
		"share above 1":              {[]string{"--cancel-share=2", "--cancel-after=1s"}, "is not between 0 and 1"},
		"share without a time":       {[]string{"--cancel-share=0.1"}, "need a time after which"},
		"gate of nothing":            {[]string{"--fail-if=beauty<1"}, "beauty"},
		"gate that is none":          {[]string{"--fail-if=attainment"}, "attainment"},
		"baseline missing":           {[]string{"--baseline=" + empty + "x"}, "no such file"},
		"baseline that is none":      {[]string{"--baseline=" + empty}, "not the JSON of a report"},
		"trace missing":              {[]string{"--replay=" + empty + "x"}, "no such file"},
		"trace that is none":         {[]string{"--replay=" + empty}, "the trace is empty"},
		"trace and rate":             {[]string{"--replay=" + empty, "--rate=1"}, "its own arrivals"},
		"two limits of E2E":          {[]string{"--slo.e2e=1s", "--slo-seconds=1"}, "are the same"},
		"limit of 0":                 {[]string{"--slo-seconds=0"}, "--slo-seconds=0: it must be positive"},
		"objective of 100 %":         {[]string{"--slo.objective=100%"}, "leaves no error budget"},
		"part that is none":          {[]string{"--part=3/3"}, "it must be i/n"},
		"start in the past":          {[]string{"--start-at=2020-01-01T00:00:00Z"}, "the parts would not run together"},
		"too few open files":         {[]string{"--concurrency=2000000"}, "open files"},
		"nobody there":               {nil, "cannot reach http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := somewhere
			if name == "too few open files" || name == "start in the past" || strings.HasPrefix(name, "share") || name == "burstiness of 0" {
				url = chat(t, func(int, http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
			}
			begin := time.Now()
			r := goodputctl(t, nil, append([]string{"bench", url, "--model=m", "--no-stream"}, tc.args...)...)
			if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q, stderr %q; want 2 and one line with %q", r.code, r.stdout, r.stderr, tc.want)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %s to say so", took)
			}
		})
	}
}

// Requests that are all refused are no measurement: the reason is told after a few of them.
func TestBenchWithoutAnyAnswerEndsEarly(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	url := chat(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error": {"message": "no such key"}}`)
	})
	r := goodputctl(t, nil, "bench", url, "--model=m", "--no-stream", "--no-progress", "--requests=1000")
	if r.code != 2 || !strings.Contains(r.stderr, "no such key") || served.Load() > 50 {
		t.Errorf("exit code %d after %d requests: %q", r.code, served.Load(), r.stderr)
	}
}
