package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goodput_exporter/config"
	prober "goodput_exporter/probe" // other tests have a function of its name
	"goodput_exporter/probe/load"
)

// rawFile writes what one client of two measured, with every latency stretched by a factor, and returns the file's name.
func rawFile(t *testing.T, part int, model string, stretch float64) string {
	t.Helper()
	run := &load.Run{
		About: load.About{
			Target: "chat-eu", Scenario: "chat", Model: model, Protocol: "openai-chat", URL: "https://llm.example.net/v1",
			SLO: config.SLO{Objective: 0.9, Criteria: []config.Criterion{
				{Name: config.CriterionTTFT, Limit: 800 * time.Millisecond, Objective: 0.95}, {Name: config.CriterionE2E, Limit: 4 * time.Second},
			}},
			Workload: "2 prompts; answers of at most 256 tokens", Arrivals: "constant", Share: fmt.Sprintf("%d/2", part),
		},
		Level: load.Level{Rate: 5}, Started: time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC), CPU: 3 * time.Second, Cores: 2,
	}
	for i := range 300 {
		due := time.Duration(200*i+100*part) * time.Millisecond
		rec := record(i, due, stretch)
		rec.Warmup = i < 10
		if i == 10 {
			run.Window.From = due
		}
		if !rec.Warmup {
			run.Window.LastSend, run.Window.To = rec.Sent, max(run.Window.To, rec.Ended)
			run.Gaps.Add(time.Duration(10+i%20) * time.Millisecond)
		}
		run.Records = append(run.Records, rec)
	}
	return writeText(t, fmt.Sprintf("part%d.raw", part), func(f *os.File) error { return load.WriteRaw(f, run) })
}

// record is the i-th request: its figures go through a range, and some requests fail.
func record(i int, due time.Duration, stretch float64) load.Record {
	stretched := func(d time.Duration) *time.Duration { return new(time.Duration(float64(d) * stretch)) }
	rec := load.Record{
		N: i, Intended: due, Sent: due + time.Duration(i%7)*100*time.Microsecond, Outcome: prober.Good,
		TTFT: stretched(time.Duration(200+i*37%500) * time.Millisecond), E2E: stretched(time.Duration(1000+i*91%3000) * time.Millisecond),
		OwnLag: new(50 * time.Microsecond), InputTokens: new(40 + i%9), OutputTokens: new(100 + i%90), OutputTokensSource: prober.TokensUsage,
	}
	ttft, e2e := prober.Met, prober.Met
	switch {
	case i%29 == 0:
		rec.Outcome, rec.Reason, rec.TTFT, rec.OutputTokens = prober.RateLimited, prober.ReasonLimit, nil, nil
		ttft, e2e = prober.Missed, prober.Missed
	case i%41 == 0:
		rec.Outcome, rec.Reason, rec.OutputTokens = prober.Timeout, prober.ReasonIdle, nil
		e2e = prober.Missed
	case i%97 == 0:
		rec.Outcome, rec.GivenUp = prober.Canceled, true
	case *rec.E2E > 4*time.Second || *rec.TTFT > 800*time.Millisecond:
		rec.Outcome = prober.SLOViolation
		if *rec.E2E > 4*time.Second {
			e2e = prober.Missed
		}
		if *rec.TTFT > 800*time.Millisecond {
			ttft = prober.Missed
		}
	}
	rec.Ended = rec.Sent + *rec.E2E
	rec.Judgments = []prober.Judgment{{SLO: config.CriterionTTFT, Verdict: ttft}, {SLO: config.CriterionE2E, Verdict: e2e}}
	return rec
}

func writeText(t *testing.T, name string, write func(*os.File) error) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// reportFile joins two clients' raw files and returns the name of the file with the report as JSON.
func reportFile(t *testing.T, model string, stretch float64) string {
	t.Helper()
	r := goodputctl(t, nil, "merge", "--output=json", rawFile(t, 0, model, stretch), rawFile(t, 1, model, stretch))
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("merge: exit code %d: %s", r.code, r.stderr)
	}
	return writeText(t, "report.json", func(f *os.File) error {
		_, err := f.WriteString(r.stdout)
		return err
	})
}

// What a person reads of a run.
func TestMergedReport(t *testing.T) {
	t.Parallel()
	r := goodputctl(t, nil, "merge", rawFile(t, 0, "llama", 1), rawFile(t, 1, "llama", 1))
	if r.code != 0 || r.stderr != "" {
		t.Errorf("exit code %d, want 0: %s", r.code, r.stderr)
	}
	golden(t, "report.golden", r.stdout)
}

func TestMergedRawIsMergedAgain(t *testing.T) {
	t.Parallel()
	a, b := rawFile(t, 0, "llama", 1), rawFile(t, 1, "llama", 1)
	joined := goodputctl(t, nil, "merge", "--output=raw", a, b)
	file := writeText(t, "joined.raw", func(f *os.File) error {
		_, err := f.WriteString(joined.stdout)
		return err
	})
	keys := func(text string) string { return text[strings.Index(text, "\nduration_seconds"):] }
	want, got := goodputctl(t, nil, "merge", a, b), goodputctl(t, nil, "merge", file)
	if got.code != 0 || keys(got.stdout) != keys(want.stdout) {
		t.Errorf("exit code %d: %s%s\nwant%s", got.code, got.stderr, keys(got.stdout), keys(want.stdout))
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	base, slow, same, other := reportFile(t, "llama", 1), reportFile(t, "llama", 1.2), reportFile(t, "llama", 1), reportFile(t, "other", 1)
	broken := writeText(t, "broken.json", func(f *os.File) error {
		_, err := f.WriteString("throughput: 10\n")
		return err
	})
	for name, tc := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"slower":           {[]string{base, slow}, 1, "e2e_p95  ", ""},
		"faster":           {[]string{slow, base}, 0, "better", ""},
		"the same":         {[]string{base, same}, 0, "no significant change", ""},
		"JSON":             {[]string{base, slow, "--output=json"}, 1, `"verdict": "worse"`, ""},
		"other model":      {[]string{base, other}, 2, "", `they differ in model ("llama" and "other"); --force compares them all the same`},
		"forced":           {[]string{base, other, "--force"}, 0, "no significant change", ""},
		"not a report":     {[]string{base, broken}, 2, "", broken + ": not the JSON of a report"},
		"missing":          {[]string{base, broken + "x"}, 2, "", "no such file"},
		"only one":         {[]string{base}, 2, "", "required argument 'new' not provided"},
		"raw not a report": {[]string{base, rawFile(t, 0, "llama", 1)}, 2, "", "a report of version 0"},
	} {
		r := goodputctl(t, nil, append([]string{"compare"}, tc.args...)...)
		if r.code != tc.code || !strings.Contains(r.stdout, tc.stdout) || !strings.Contains(r.stderr, tc.stderr) {
			t.Errorf("%s: exit code %d, want %d with %q and %q:\n%s%s", name, r.code, tc.code, tc.stdout, tc.stderr, r.stdout, r.stderr)
		}
		if strings.Count(r.stderr, "\n") > 1 {
			t.Errorf("%s: want one line on stderr, got %q", name, r.stderr)
		}
	}
	golden(t, "compare.golden", goodputctl(t, nil, "compare", base, slow).stdout)
}

func TestMergeRefusesWhatDoesNotBelong(t *testing.T) {
	t.Parallel()
	a, b := rawFile(t, 0, "llama", 1), rawFile(t, 1, "other", 1)
	whole, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	cut := writeText(t, "cut.raw", func(f *os.File) error {
		_, err := f.Write(whole[:len(whole)/2])
		return err
	})
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"other model": {[]string{a, b}, `run 2 does not belong to run 1: its model is "other", not "llama"`},
		"twice":       {[]string{a, a}, "run 2 is the same part of the load as run 1 (0/2)"},
		"cut":         {[]string{a, cut}, cut + ": line 15"},
		"missing":     {[]string{a, a + "x"}, "no such file"},
		"no file":     {nil, "required argument 'results' not provided"},
	} {
		r := goodputctl(t, nil, append([]string{"merge"}, tc.args...)...)
		if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, tc.want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want 2 and %q", name, r.code, r.stdout, r.stderr, tc.want)
		}
	}
}
