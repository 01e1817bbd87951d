package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
)

const rulesDir = "../../../rules"

// A sample of streams goes through the shipped rule files in Prometheus' own rule manager, engine and storage, at the
// very instants at which the simulation evaluates its model. Each alert must fire and resolve at the same evaluations:
// the model extrapolates as increase() does, so there is nothing to be lenient about.
func TestModelFiresWhenPrometheusDoes(t *testing.T) {
	second := time.Second
	usual := func(interval time.Duration) Clock {
		return Clock{Interval: interval, Scrape: 15 * second, Record: 30 * second}
	}
	// What looks back for hours or days gets a coarser clock, which keeps its streams short.
	slow := Clock{Interval: 60 * second, Scrape: 60 * second, Record: 120 * second}
	coarse := Clock{Interval: 120 * second, Scrape: 120 * second, Record: 240 * second}
	tests := []struct {
		name      string
		clock     Clock
		objective float64
		healthy   float64 // times budget, before the drop
		before    time.Duration
		drop      float64 // share of bad probes
		during    time.Duration
		after     time.Duration
	}{
		{"outage", usual(15 * second), 0.99, 0.5, 25 * time.Minute, 1, 18 * time.Minute, 5 * time.Minute},
		{"outage of fast probes", usual(5 * second), 0.995, 0.5, 20 * time.Minute, 1, 8 * time.Minute, 5 * time.Minute},
		{"outage of slow probes", usual(60 * second), 0.99, 0.5, 25 * time.Minute, 1, 20 * time.Minute, 10 * time.Minute},
		{"outage at a low objective", usual(15 * second), 0.95, 0.5, 15 * time.Minute, 1, 45 * time.Minute, 5 * time.Minute},
		{"half", usual(15 * second), 0.99, 0.5, 20 * time.Minute, 0.5, 40 * time.Minute, 5 * time.Minute},
		{"half at a high objective", usual(5 * second), 0.995, 0.5, 20 * time.Minute, 0.5, 20 * time.Minute, 5 * time.Minute},
		{"half of slow probes", usual(60 * second), 0.995, 0.5, 30 * time.Minute, 0.5, 40 * time.Minute, 10 * time.Minute},
		{"a third", usual(15 * second), 0.99, 0.5, 20 * time.Minute, 0.3, 65 * time.Minute, 0},
		{"a fifth", usual(15 * second), 0.99, 0.5, 20 * time.Minute, 0.2, 80 * time.Minute, 0},
		{"a tenth", usual(15 * second), 0.995, 0.5, 20 * time.Minute, 0.1, 90 * time.Minute, 0},
		{"a tenth of slow probes", slow, 0.995, 0.5, 60 * time.Minute, 0.1, 300 * time.Minute, 0},
		{"a fifth of slow probes, then none", slow, 0.99, 0.5, 60 * time.Minute, 0.2, 240 * time.Minute, 90 * time.Minute},
		{"outage from birth", usual(15 * second), 0.99, 0, 0, 1, 18 * time.Minute, 5 * time.Minute},
		{"half from birth", usual(15 * second), 0.99, 0, 0, 0.5, 30 * time.Minute, 5 * time.Minute},
		{"blip", usual(15 * second), 0.99, 0.5, 20 * time.Minute, 1, time.Minute, 10 * time.Minute},
		{"four minutes", usual(15 * second), 0.99, 0.5, 20 * time.Minute, 1, 4 * time.Minute, 10 * time.Minute},
		{"first failures after a clean half-hour", usual(15 * second), 0.99, 0, 30 * time.Minute, 0.3, 60 * time.Minute, 0},
		{"edge of the fast burn", usual(5 * second), 0.99, 1, 20 * time.Minute, 0.19, 75 * time.Minute, 0},
		{"tickets", coarse, 0.99, 1, 12 * time.Hour, 0.05, 24 * time.Hour, 6 * time.Hour},
		{"ticket at the budget", coarse, 0.95, 1, 10 * time.Hour, 0.08, 30 * time.Hour, 10 * time.Hour},
	}
	if testing.Short() {
		tests = tests[:4]
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(3, uint64(i)))
			stream := NewStream(rng, tt.clock, nil)
			healthy := NewIndependent(rng, tt.healthy*(1-tt.objective))
			stream.Run(healthy, tt.before)
			stream.Run(NewIndependent(rng, tt.drop), tt.during)
			stream.Run(healthy, tt.after)

			want := prometheusFirings(t, stream, tt.objective)
			got := modelFirings(stream, tt.objective)
			fired := 0
			for name := range got {
				if !slices.Equal(got[name], want[name]) {
					t.Errorf("%s: the model fires and resolves at scrapes %v, Prometheus at %v", name, got[name], want[name])
				}
				fired += len(want[name])
			}
			if fired == 0 && tt.name != "blip" {
				t.Errorf("no alert fired: the stream shows nothing; the model says %v", got)
			}
		})
	}
}

// modelFirings returns, by alert, the scrapes at whose evaluation it began or ceased to fire.
func modelFirings(stream *Stream, objective float64) map[string][]int {
	e := NewEvaluator(Windows(), stream, objective)
	changes := map[string][]int{}
	was := make([]bool, len(e.Alerts))
	for at := range stream.Scrapes() {
		e.Step(at)
		for i := range e.Alerts {
			a := &e.Alerts[i]
			if a.Firing() == was[i] {
				continue
			}
			was[i] = a.Firing()
			seen := int((e.When(i, at) - stream.AlertLag) / stream.Clock.Scrape)
			if seen < stream.Scrapes() { // else nobody is there to see it
				changes[a.Name] = append(changes[a.Name], seen)
			}
		}
	}
	for i := range e.Alerts {
		changes[e.Alerts[i].Name] = append([]int{}, changes[e.Alerts[i].Name]...)
	}
	return changes
}

// prometheusFirings does the same with the shipped rule files.
func prometheusFirings(t *testing.T, stream *Stream, objective float64) map[string][]int {
	t.Helper()
	storage := teststorage.New(t)
	scrape := scraper(t, storage, stream, objective)
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: promslog.NewNopLogger(), MaxSamples: 50e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
	})
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:    rules.EngineQueryFunc(engine, storage),
		AppendableV2: storage,
		Queryable:    storage,
		Context:      t.Context(),
		NotifyFunc:   func(context.Context, string, ...*rules.Alert) {},
		Logger:       promslog.NewNopLogger(),
		Parser:       parser.NewParser(parser.Options{}),
	})
	files := []string{filepath.Join(rulesDir, "goodput.rules.yml"), filepath.Join(rulesDir, "goodput.alerts.yml")}
	groups, errs := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, files...)
	if errs != nil {
		t.Fatal(errs)
	}
	records := groups[rules.GroupKey(files[0], "goodput.slo")]
	alerts := groups[rules.GroupKey(files[1], "goodput.slo.alerts")]
	if records == nil || alerts == nil {
		t.Fatal("deploy/rules has no groups goodput.slo and goodput.slo.alerts")
	}

	changes := map[string][]int{}
	was := map[string]bool{}
	every := int(stream.Clock.Record / stream.Clock.Scrape)
	for at := range stream.Scrapes() {
		now := time.UnixMilli(0).Add(time.Duration(at) * stream.Clock.Scrape)
		scrape(at)
		record := func() {
			if at%every == 0 {
				records.Eval(t.Context(), now.Add(stream.RecordLag))
			}
		}
		if stream.RecordLag <= stream.AlertLag {
			record()
		}
		alerts.Eval(t.Context(), now.Add(stream.AlertLag))
		if stream.RecordLag > stream.AlertLag {
			record()
		}
		for _, rule := range alerts.AlertingRules() {
			name, ok := modelName(rule)
			if !ok {
				continue
			}
			if firing := rule.State() == rules.StateFiring; firing != was[name] {
				was[name] = firing
				changes[name] = append(changes[name], at)
			}
		}
	}
	return changes
}

// modelName is the name under which the model knows an alert.
func modelName(rule *rules.AlertingRule) (string, bool) {
	switch rule.Name() {
	case "GoodputTargetDown":
		return "down", true
	case "GoodputErrorBudgetBurn":
		long := rule.Labels().Get("long_window")
		for _, b := range Shipped().Burns {
			if b.Name == fmt.Sprintf("%gx %s/%s", b.Factor, long, rule.Labels().Get("short_window")) {
				return b.Name, true
			}
		}
	}
	return "", false
}

// scraper returns a function that stores a scrape of the stream, as Prometheus would have. One SLO is enough: it is
// availability, of which both kinds of alerts take notice.
func scraper(t *testing.T, storage *teststorage.TestStorage, stream *Stream, objective float64) func(at int) {
	series := func(name string, more ...string) labels.Labels {
		return labels.FromStrings(append([]string{
			"__name__", name, "job", "goodput_exporter", "instance", "i", "target", "t", "model", "m", "scenario", "s",
		}, more...)...)
	}
	good := series("goodput_slo_events_total", "slo", "availability", "result", "good")
	bad := series("goodput_slo_events_total", "slo", "availability", "result", "bad")
	goal := series("goodput_slo_objective_ratio", "slo", "availability")
	interval := series("goodput_probe_interval_seconds")

	return func(at int) {
		t.Helper()
		ts := (time.Duration(at) * stream.Clock.Scrape).Milliseconds()
		app := storage.Appender(t.Context())
		for _, sample := range []struct {
			series labels.Labels
			value  float64
		}{
			{good, float64(stream.Good[at])},
			{bad, float64(stream.Bad[at])},
			{goal, objective},
			{interval, stream.Clock.Interval.Seconds()},
		} {
			if _, err := app.Append(0, sample.series, ts, sample.value); err != nil {
				t.Fatal(err)
			}
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}
