package collector

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

func TestCountersAreBornAtZero(t *testing.T) {
	c := New(Options{SkipReasons: skipReasons})
	c.Update(testConfig(testSeries("a", "chat")))
	got := samples(t, c)

	const series = `model="llama-3.3-70b"`
	var want []string
	for _, slo := range []string{"goodput", "availability", "ttft", "tpot", "e2e", "complete"} {
		for _, result := range []string{"good", "bad"} {
			want = append(want, `goodput_slo_events_total{`+series+`,result="`+result+`",scenario="chat",slo="`+slo+`",target="a"}`)
		}
	}
	for _, slo := range []string{"ttft", "tpot", "e2e", "complete"} {
		want = append(want, `goodput_slo_unmeasurable_total{`+series+`,scenario="chat",slo="`+slo+`",target="a"}`)
	}
	for _, o := range probe.Outcomes {
		want = append(want, `goodput_probes_total{`+series+`,outcome="`+string(o)+`",scenario="chat",target="a"}`)
	}
	for _, o := range probe.AbortedOutcomes {
		want = append(want, `goodput_aborted_probes_total{`+series+`,reason="`+string(o)+`",scenario="chat",target="a"}`)
	}
	for _, reason := range skipReasons {
		want = append(want, `goodput_slots_skipped_total{`+series+`,reason="`+reason+`",scenario="chat",target="a"}`)
	}
	for _, name := range probe.PhaseNames {
		want = append(want, `goodput_phase_duration_seconds_count{`+series+`,phase="`+string(name)+`",scenario="chat",target="a"}`)
	}
	for _, result := range []string{"ok", "failed"} {
		want = append(want, `goodput_request_duration_seconds_count{`+series+`,result="`+result+`",scenario="chat",target="a"}`)
	}
	for _, name := range want {
		if value, ok := got[name]; value != "0" {
			t.Errorf("%s is %q (exists: %v), want 0", name, value, ok)
		}
	}
	for name := range got {
		for _, absent := range []string{"goodput_last_", "goodput_cost_", "goodput_budget_"} {
			if strings.HasPrefix(name, absent) {
				t.Errorf("%s exists, but there is no such figure", name)
			}
		}
	}
}

func TestFullBearsEveryReason(t *testing.T) {
	c := New(Options{Full: true})
	c.Update(testConfig(testSeries("a", "chat")))
	got := samples(t, c)
	for outcome, reasons := range probe.Reasons {
		for _, reason := range reasons {
			name := `goodput_probe_failures_total{model="llama-3.3-70b",outcome="` + string(outcome) + `",reason="` + string(reason) + `",scenario="chat",target="a"}`
			if got[name] != "0" {
				t.Errorf("%s is %q, want 0", name, got[name])
			}
		}
	}
}

func TestSeriesOfWholeAnswersHasNoStreamFigures(t *testing.T) {
	c := New(Options{})
	s := testSeries("a", "summarize")
	s.Scenario.Stream = false
	c.Update(testConfig(s))
	c.Series(s.Key()).Observe(goodResult())
	if out := text(t, c); strings.Contains(out, "goodput_time_to_first_token_seconds") || strings.Contains(out, "goodput_stall_seconds") {
		t.Errorf("figures of a stream in:\n%s", out)
	}
}

// TestLinesPerTarget holds the promise of buckets.go.
func TestLinesPerTarget(t *testing.T) {
	const most = 130
	s := testSeries("a", "chat")
	for _, tc := range []struct {
		name   string
		opts   Options
		price  *config.Price
		budget bool
	}{
		{name: "default"},
		{name: "with price and budget", price: &config.Price{Input: 1, Output: 2}, budget: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opts := Options{SkipReasons: skipReasons}
			if tc.budget {
				opts.BudgetRemaining = func(string, string) (int, bool) { return 1, true }
			}
			s.Target.Price = tc.price
			c := New(opts)
			c.Update(testConfig(s))
			fresh := len(samples(t, c))
			for _, cause := range bornCauses {
				c.Series(s.Key()).Observe(failedResult(cause.outcome, cause.reason))
			}
			c.Series(s.Key()).Observe(goodResult())
			busy := len(samples(t, c))
			t.Logf("%d lines fresh, %d after traffic", fresh, busy)
			if fresh > most || busy > most {
				t.Errorf("%d lines fresh, %d after traffic, want at most %d", fresh, busy, most)
			}
		})
	}
}

func TestDeathLeavesNothing(t *testing.T) {
	stays, goes := testSeries("stays", "chat"), testSeries("goes", "chat")
	c := New(Options{SkipReasons: skipReasons})
	c.Update(testConfig(stays))
	c.Series(stays.Key()).Observe(goodResult())
	before := text(t, c)

	c.Update(testConfig(stays, goes))
	gone := c.Series(goes.Key())
	gone.SlotStarted(time.Millisecond)
	gone.ProbeStarted()
	gone.Observe(failedResult(probe.Interrupted, probe.ReasonH2GoAway)) // born late
	c.Update(testConfig(stays))
	if diff := cmp.Diff(before, text(t, c)); diff != "" {
		t.Errorf("the dead series left something:\n%s", diff)
	}

	gone.Observe(goodResult()) // the probe that was in flight
	gone.Observe(failedResult(probe.Timeout, probe.ReasonTLS))
	gone.SlotsSkipped("overlap", 1)
	gone.ProbeEnded()
	if diff := cmp.Diff(before, text(t, c)); diff != "" {
		t.Errorf("the dead series came back:\n%s", diff)
	}
	if s := c.Series(goes.Key()); s != nil {
		t.Errorf("the dead series has a handle: %v", s)
	}
}

func TestUpdateKeepsWhatIsUnchanged(t *testing.T) {
	base := func() *config.Series {
		s := testSeries("a", "chat")
		s.Target.Labels = map[string]string{"env": "prod"}
		s.Target.Price = &config.Price{Input: 1}
		return s
	}
	for _, tc := range []struct {
		name   string
		change func(*config.Series)
		kept   bool
	}{
		{"nothing", func(*config.Series) {}, true},
		{"what no metric depends on", func(s *config.Series) { s.Scenario.Timeout = time.Second; s.Target.URL = "http://other" }, true},
		{"model", func(s *config.Series) { s.Target.Model = "other" }, false},
		{"value of a label", func(s *config.Series) { s.Target.Labels["env"] = "test" }, false},
		{"limit", func(s *config.Series) { s.Scenario.SLO.Criteria[0].Limit++ }, false},
		{"objective", func(s *config.Series) { s.Scenario.SLO.Objective = 0.5 }, false},
		{"interval", func(s *config.Series) { s.Scenario.Interval++ }, false},
		{"price", func(s *config.Series) { s.Target.Price.Input++ }, false},
		{"no price", func(s *config.Series) { s.Target.Price = nil }, false},
		{"stream", func(s *config.Series) { s.Scenario.Stream = false }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := New(Options{})
			s := base()
			c.Update(testConfig(s))
			old := c.Series(s.Key())
			old.Observe(goodResult())

			s = base()
			tc.change(s)
			c.Update(testConfig(s))
			if kept := c.Series(s.Key()) == old; kept != tc.kept {
				t.Errorf("the handle is the same: %v, want %v", kept, tc.kept)
			}
			old.Observe(goodResult()) // counts, unless the series is another now
			want := map[bool]float64{true: 2, false: 0}[tc.kept]
			if got := sum(gather(t, c), "goodput_probes_total", "outcome")["good"]; got != want {
				t.Errorf("%g good probes, want %g", got, want)
			}
		})
	}
}

// TestNewLabelNames covers an unchanged series whose neighbour brings a label name: a probe that is in flight
// reports through the handle from before.
func TestNewLabelNames(t *testing.T) {
	c := New(Options{})
	a := testSeries("a", "chat")
	c.Update(testConfig(a))
	handle := c.Series(a.Key())
	handle.Observe(goodResult())
	handle.ProbeStarted()

	b := testSeries("b", "chat")
	b.Target.Labels = map[string]string{"region": "eu"}
	c.Update(testConfig(a, b))
	handle.Observe(goodResult())

	got := samples(t, c)
	for name, want := range map[string]string{
		`goodput_probes_total{model="llama-3.3-70b",outcome="good",region="",scenario="chat",target="a"}`:   "1",
		`goodput_probes_total{model="llama-3.3-70b",outcome="good",region="eu",scenario="chat",target="b"}`: "0",
		`goodput_probes_in_flight{model="llama-3.3-70b",region="",scenario="chat",target="a"}`:              "1",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	handle.ProbeEnded()
	if got := samples(t, c)[`goodput_probes_in_flight{model="llama-3.3-70b",region="",scenario="chat",target="a"}`]; got != "0" {
		t.Errorf("%s probes in flight after the end of the only one", got)
	}
}

func TestTargets(t *testing.T) {
	c := New(Options{BudgetRemaining: func(target, unit string) (int, bool) { return 42, target == "a" && unit == UnitRequests }})
	a, b := testSeries("a", "chat"), testSeries("b", "chat")
	b.Target.Model = "not\xffutf8"
	c.Update(testConfig(a, testSeries("a", "summarize"), b))
	got := samples(t, c)
	maps.DeleteFunc(got, func(name, _ string) bool {
		return !strings.HasPrefix(name, "goodput_target_info") && !strings.HasPrefix(name, "goodput_budget")
	})
	want := map[string]string{
		`goodput_target_info{model="llama-3.3-70b",protocol="openai-chat",provider="vllm",target="a",url_host="llm.example.net:8443"}`:           "1",
		"goodput_target_info{model=\"not\uFFFDutf8\",protocol=\"openai-chat\",provider=\"vllm\",target=\"b\",url_host=\"llm.example.net:8443\"}": "1",
		`goodput_budget_remaining{model="llama-3.3-70b",target="a",unit="requests"}`:                                                             "42",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPausedIsAskedAtTheScrape(t *testing.T) {
	paused := map[string]bool{}
	c := New(Options{SkipReasons: skipReasons, Paused: func(target, scenario string) bool { return paused[target+"/"+scenario] }})
	c.Update(testConfig(testSeries("a", "chat"), testSeries("b", "chat")))
	check := func(a, b string) {
		t.Helper()
		got := samples(t, c)
		for target, want := range map[string]string{"a": a, "b": b} {
			if value := got[`goodput_paused{model="llama-3.3-70b",scenario="chat",target="`+target+`"}`]; value != want {
				t.Errorf("goodput_paused of %s is %q, want %s", target, value, want)
			}
		}
	}
	check("0", "0")
	paused["a/chat"] = true
	check("1", "0")
	paused["a/chat"] = false
	check("0", "0")
}

func TestPauseBeginsTheDropScoreAnew(t *testing.T) {
	c := New(Options{SkipReasons: skipReasons})
	c.Update(testConfig(testSeries("a", "chat")))
	s := c.Series("a/chat")
	scoreOf := func(c *Collector) string {
		return samples(t, c)[`goodput_drop_score{model="llama-3.3-70b",scenario="chat",target="a"}`]
	}
	for range 100 {
		s.Observe(failedResult(probe.Timeout, probe.ReasonFirstToken))
	}
	s.SlotsSkipped("overlap", 1)
	if got := scoreOf(c); !strings.HasPrefix(got, "1.") {
		t.Fatalf("the score of an outage is %s, want more than 1", got)
	}
	s.SlotsSkipped(SkipPaused, 1)
	if got := scoreOf(c); got != "0" {
		t.Errorf("the score in a pause is %s, want 0", got)
	}
	s.Observe(failedResult(probe.Timeout, probe.ReasonFirstToken))
	fresh := New(Options{})
	fresh.Update(testConfig(testSeries("a", "chat")))
	fresh.Series("a/chat").Observe(failedResult(probe.Timeout, probe.ReasonFirstToken))
	if got, want := scoreOf(c), scoreOf(fresh); got != want {
		t.Errorf("the score of the first attempt after the pause is %s, that of a new series %s", got, want)
	}
}

func TestReload(t *testing.T) {
	c := New(Options{})
	c.ReloadFailed()
	if out := text(t, c); !strings.Contains(out, "goodput_config_last_reload_successful 0\n") || strings.Contains(out, "timestamp") {
		t.Errorf("after a failure only:\n%s", out)
	}
	c.ReloadSucceeded(sentAt)
	c.ReloadFailed()
	s := testSeries("a", "chat")
	s.Target.Labels = map[string]string{"region": "eu"} // another registry
	c.Update(testConfig(s))
	out := text(t, c)
	if !strings.Contains(out, "goodput_config_last_reload_successful 0\n") ||
		!strings.Contains(out, "goodput_config_last_reload_success_timestamp_seconds 1.7959536e+09\n") {
		t.Errorf("after success and failure:\n%s", out)
	}
}

func TestHandler(t *testing.T) {
	c := newCatalogueCollector()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	request.Header.Set("Accept-Encoding", "gzip")
	recorder := httptest.NewRecorder()
	c.Handler().ServeHTTP(recorder, request)
	z, err := gzip.NewReader(recorder.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range []string{
		"time_to_first_token", "time_to_first_answer", "time_per_output_token", "stall", "request_duration",
	} {
		var found bool
		for line := range bytes.Lines(body) {
			found = found || bytes.HasPrefix(line, []byte("goodput_"+family+"_seconds_bucket{")) &&
				bytes.Contains(line, []byte(`# {trace_id="0af7651916cd43dd8448eb211c80319c"}`))
		}
		if !found {
			t.Errorf("%s has no exemplar", family)
		}
	}
	if !bytes.HasSuffix(body, []byte("# EOF\n")) {
		t.Error("not OpenMetrics")
	}
}

// TestConcurrentUse also holds that each scrape sees each series at one instant.
func TestConcurrentUse(t *testing.T) {
	const rounds = 200
	c := New(Options{SkipReasons: skipReasons})
	stays, comes := testSeries("stays", "chat"), testSeries("comes", "chat")
	comes.Target.Labels = map[string]string{"region": "eu"}
	with, without := testConfig(stays, comes), testConfig(stays)
	c.Update(with)

	var wg sync.WaitGroup
	wg.Go(func() {
		for range rounds {
			c.Update(without)
			c.Update(with)
		}
	})
	for _, key := range []string{stays.Key(), comes.Key()} {
		wg.Go(func() {
			for i := range 10 * rounds {
				s := c.Series(key)
				if s == nil {
					continue
				}
				s.ProbeStarted()
				s.SlotStarted(time.Millisecond)
				if i%3 == 0 {
					s.Observe(failedResult(probe.Timeout, probe.ReasonTLS))
				} else {
					s.Observe(goodResult())
				}
				s.ProbeEnded()
			}
		})
	}
	wg.Go(func() {
		for range rounds {
			families, err := c.Gather()
			if err != nil {
				t.Error(err)
				return
			}
			var attempts float64
			for _, n := range sum(families, "goodput_probes_total", "outcome") {
				attempts += n
			}
			if got := sum(families, "goodput_slo_events_total", "slo")["goodput"]; got != attempts {
				t.Errorf("a scrape saw %g events of goodput and %g attempts", got, attempts)
			}
		}
	})
	wg.Wait()
}
