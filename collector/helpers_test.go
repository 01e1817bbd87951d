package collector

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

var update = flag.Bool("update", false, "write the golden files anew")

// skipReasons are those of the scheduler.
var skipReasons = []string{"late", "paused", "overlap", "in_flight", "budget"}

var sentAt = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// testSeries is a streamed scenario with the four criteria of the built-in one.
func testSeries(target, scenario string) *config.Series {
	return &config.Series{
		Target: &config.Target{
			Name: target, Protocol: "openai-chat", URL: "https://llm.example.net:8443/v1?key=x", Model: "llama-3.3-70b", Provider: "vllm",
		},
		Scenario: &config.Scenario{
			Name: scenario, Interval: 15 * time.Second, Stream: true,
			SLO: config.SLO{Objective: 0.99, Criteria: []config.Criterion{
				{Name: config.CriterionTTFT, Limit: 800 * time.Millisecond},
				{Name: config.CriterionTPOT, Limit: 50 * time.Millisecond},
				{Name: config.CriterionE2E, Limit: 8 * time.Second, Objective: 0.95},
				{Name: config.CriterionComplete},
			}},
		},
	}
}

// testConfig is the configuration of some series.
func testConfig(series ...*config.Series) *config.Config {
	cfg := &config.Config{Series: series}
	names := map[string]bool{}
	for _, s := range series {
		if !slices.ContainsFunc(cfg.Targets, func(t *config.Target) bool { return t.Name == s.Target.Name }) {
			cfg.Targets = append(cfg.Targets, s.Target)
		}
		for name := range s.Target.Labels {
			names[name] = true
		}
	}
	cfg.LabelNames = slices.Sorted(maps.Keys(names))
	return cfg
}

// goodResult has every figure that a result can have.
func goodResult() *probe.Result {
	return &probe.Result{
		Time: sentAt, Outcome: probe.Good,
		Judgments: []probe.Judgment{
			{SLO: probe.SLOGoodput, Verdict: probe.Met},
			{SLO: probe.SLOAvailability, Verdict: probe.Met},
			{SLO: config.CriterionTTFT, Verdict: probe.Met},
			{SLO: config.CriterionTPOT, Verdict: probe.Met},
			{SLO: config.CriterionE2E, Verdict: probe.Met},
			{SLO: config.CriterionComplete, Verdict: probe.Met},
		},
		TTFT: new(200 * time.Millisecond), FirstAnswer: new(300 * time.Millisecond), E2E: new(2 * time.Second),
		TPOT: new(25 * time.Millisecond), Stall: new(50 * time.Millisecond),
		ChunkGaps: []time.Duration{20 * time.Millisecond, 50 * time.Millisecond},
		Phases: []probe.Phase{
			{Name: probe.PhaseDNS, Duration: 2 * time.Millisecond},
			{Name: probe.PhaseConnect, Duration: 10 * time.Millisecond},
			{Name: probe.PhaseTLS, Duration: 20 * time.Millisecond},
			{Name: probe.PhaseRequest, Duration: time.Millisecond},
			{Name: probe.PhaseHeaders, Duration: 150 * time.Millisecond},
		},
		InputTokens: new(1000), OutputTokens: new(64), CachedInputTokens: new(16), ReasoningTokens: new(8),
		OutputTokensSource: probe.TokensUsage,
		TraceID:            "0af7651916cd43dd8448eb211c80319c",
		OwnLag:             new(20 * time.Microsecond),
	}
}

// failedResult has no figure but how long it took.
func failedResult(outcome probe.Outcome, reason probe.Reason) *probe.Result {
	return &probe.Result{
		Time: sentAt, Outcome: outcome, Reason: reason, E2E: new(500 * time.Millisecond),
		Judgments: []probe.Judgment{
			{SLO: probe.SLOGoodput, Verdict: probe.Missed},
			{SLO: probe.SLOAvailability, Verdict: probe.Missed},
			{SLO: config.CriterionTTFT, Verdict: probe.Missed},
			{SLO: config.CriterionTPOT, Verdict: probe.Missed},
			{SLO: config.CriterionE2E, Verdict: probe.Missed},
			{SLO: config.CriterionComplete, Verdict: probe.Missed},
		},
	}
}

// gather returns the metrics of series and targets, without those of the process.
func gather(t *testing.T, c *Collector) []*dto.MetricFamily {
	t.Helper()
	families, err := c.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool {
		return !strings.HasPrefix(f.GetName(), "goodput_") || f.GetName() == "goodput_exporter_build_info"
	})
}

// text returns what gather does in the text format.
func text(t *testing.T, c *Collector) string {
	t.Helper()
	var b bytes.Buffer
	for _, f := range gather(t, c) {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// samples returns the lines of the text format that are series, by all before the value.
func samples(t *testing.T, c *Collector) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(text(t, c)) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "} "); ok && !strings.HasPrefix(line, "#") {
			out[name+"}"] = value
		}
	}
	return out
}

// sum adds up the counters of a family, by the values of one label.
func sum(families []*dto.MetricFamily, name, label string) map[string]float64 {
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label {
					out[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return out
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if that is meant, run go test ./collector -update\n%s", path, diff)
	}
}
