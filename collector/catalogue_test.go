package collector

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// TestCatalogue holds names, types, labels and help of all metrics: what rules, dashboards and users rely on.
func TestCatalogue(t *testing.T) {
	c := newCatalogueCollector()
	families, err := c.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "goodput_") {
			continue
		}
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		fmt.Fprintf(&b, "%s{%s} %s\n\t%s\n", f.GetName(), strings.Join(slices.Sorted(maps.Keys(labels)), ","),
			strings.ToLower(f.GetType().String()), f.GetHelp())
	}
	checkGolden(t, "catalogue.golden", b.String())
}

func TestCatalogueIsLinted(t *testing.T) {
	families, err := newCatalogueCollector().Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestProcessMetricsAreThere(t *testing.T) {
	families, err := New(Options{}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	for _, want := range []string{"go_goroutines", "process_start_time_seconds", "goodput_exporter_build_info"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
}

// newCatalogueCollector has a series with everything that a series can have, after one good probe.
func newCatalogueCollector() *Collector {
	c := New(Options{
		SkipReasons:     skipReasons,
		BudgetRemaining: func(string, string) (int, bool) { return 100, true },
		Paused:          func(string, string) bool { return false },
	})
	s := testSeries("chat-eu", "chat")
	s.Target.Labels = map[string]string{"env": "prod"}
	s.Target.Price = &config.Price{Input: 0.6, Output: 2.4}
	c.Update(testConfig(s))
	c.ReloadSucceeded(sentAt)
	r := goodResult()
	r.ServerTimes = []probe.ServerTime{{Kind: "queue", Took: time.Millisecond}}
	c.Series(s.Key()).Observe(r)
	return c
}

// TestBornCausesCoverOutcomes keeps the failures that exist from birth in step with those that can be.
func TestBornCausesCoverOutcomes(t *testing.T) {
	for outcome, reasons := range probe.Reasons {
		if outcome == probe.Truncated || outcome == probe.ContentFiltered { // see buckets.go
			continue
		}
		if !slices.ContainsFunc(bornCauses, func(c cause) bool {
			return c.outcome == outcome && slices.Contains(reasons, c.reason)
		}) {
			t.Errorf("no reason of %s is born", outcome)
		}
	}
}

// TestLeanBoundariesAreFullOnes makes sums over exporters of both kinds sound.
func TestLeanBoundariesAreFullOnes(t *testing.T) {
	for name, b := range map[string]boundaries{"ttft": ttftBuckets, "tpot": tpotBuckets, "duration": durationBuckets} {
		for _, bound := range b.lean {
			if !slices.Contains(b.full, bound) {
				t.Errorf("%s: %g is no boundary of the full list", name, bound)
			}
		}
	}
}
