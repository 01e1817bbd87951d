package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"goodput_exporter/collector"
	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/probetest"
)

// service is one side of the comparison: a model that is sent so many requests at a steady pace.
type service struct {
	probetest.Model
	requests int
	pace     time.Duration // between requests
}

// figures are what came of a service, over the time in which its requests came.
type figures struct {
	completed, good     float64
	attainment          float64
	throughput, goodput float64 // per second, as measured
	intended            float64 // seconds that the requests should have taken
}

// TestGoodputIsNotThroughput is the example of the README, at a tenth of its counts and 2.5 times its pace. A takes
// 1,000 requests in 100 s and 950 are good; B takes 1,000 in 80 s and 600 are. By throughput B wins, 12.5 to 10; by
// goodput A does, 9.5 to 7.5.
//
// What is not good here was cut by the token limit, which no busy machine can change.
func TestGoodputIsNotThroughput(t *testing.T) {
	t.Parallel()
	model := func(name string, faults ...probetest.Fault) probetest.Model {
		return probetest.Model{Name: name, TTFT: probetest.Fixed(0.01), Gap: probetest.Fixed(0.002), OutputTokens: probetest.Fixed(4), Faults: faults}
	}
	services := map[string]service{
		"A": {model("A", probetest.Fault{Kind: probetest.FaultLengthLimited, Every: 20}), 100, 40 * time.Millisecond},
		// Each fifth, and each fifth from the second on: 40 of 100.
		"B": {model("B",
			probetest.Fault{Kind: probetest.FaultLengthLimited, Every: 5},
			probetest.Fault{Kind: probetest.FaultLengthLimited, First: 2, Every: 5}), 100, 32 * time.Millisecond},
	}
	url := simulate(t, probetest.Config{Models: []probetest.Model{services["A"].Model, services["B"].Model}})
	var a, b figures
	var both sync.WaitGroup
	both.Go(func() { a = drive(t, url, services["A"]) })
	both.Go(func() { b = drive(t, url, services["B"]) })
	both.Wait()
	t.Log("\n" + comparison(a, b))

	if a.completed != 100 || a.good != 95 || a.attainment != 0.95 {
		t.Errorf("A: %v of %v good, attainment %v; want 95 of 100", a.good, a.completed, a.attainment)
	}
	if b.completed != 100 || b.good != 60 || b.attainment != 0.60 {
		t.Errorf("B: %v of %v good, attainment %v; want 60 of 100", b.good, b.completed, b.attainment)
	}
	for _, relation := range []struct {
		name                     string
		intended, measured, want float64
	}{
		{"throughput of B to A", (b.completed / b.intended) / (a.completed / a.intended), b.throughput / a.throughput, 12.5 / 10},
		{"goodput of A to B", (a.good / a.intended) / (b.good / b.intended), a.goodput / b.goodput, 9.5 / 7.5},
	} {
		if math.Abs(relation.intended-relation.want) > 1e-9 {
			t.Errorf("%s: %.4f by counts and pace, want %.4f", relation.name, relation.intended, relation.want)
		}
		if relation.measured <= 1 || relation.measured > 1.25*relation.want {
			t.Errorf("%s: measured %.3f, want about %.3f", relation.name, relation.measured, relation.want)
		}
	}
}

// drive sends a service its requests at its pace, however long each takes, and reads the counts from the metrics.
func drive(t *testing.T, url string, s service) figures {
	t.Helper()
	series := &config.Series{
		Target: &config.Target{Name: s.Name, URL: url, Model: s.Name},
		Scenario: &config.Scenario{
			Name: "chat", Stream: true, Prompts: []config.Prompt{{Text: "Why is the sky blue?", Weight: 1}}, MaxTokens: 64,
			SLO: config.SLO{Objective: 0.95, Criteria: []config.Criterion{{Name: config.CriterionTTFT, Limit: patience}, {Name: config.CriterionComplete}}},
		},
	}
	cfg, err := config.New(series)
	if err != nil {
		t.Error(err)
		return figures{}
	}
	clients := probe.NewClients()
	defer clients.Close()
	client, err := clients.Get(series.Target)
	if err != nil {
		t.Error(err)
		return figures{}
	}
	defer client.Release()
	prober, err := probe.New(series, client, "goodput_exporter/test")
	if err != nil {
		t.Error(err)
		return figures{}
	}
	c := collector.New(collector.Options{})
	c.Update(cfg)
	observer := c.Series(series.Key())

	var probes sync.WaitGroup
	began := time.Now()
	for i := range s.requests {
		probes.Go(func() { observer.Observe(prober.Probe(context.Background())) })
		time.Sleep(time.Until(began.Add(time.Duration(i+1) * s.pace))) // the pace, on a schedule that does not drift
	}
	lasted := time.Since(began).Seconds()
	probes.Wait()
	return read(t, c, lasted, s)
}

// read reads the figures from the metrics.
func read(t *testing.T, c *collector.Collector, lasted float64, s service) figures {
	t.Helper()
	families, err := c.Gather()
	if err != nil {
		t.Error(err)
	}
	m := metrics{}
	for _, family := range families {
		m[family.GetName()] = family
	}
	good, _ := m.sum("goodput_slo_events_total", "slo", "goodput", "result", "good")
	attempts, _ := m.sum("goodput_slo_events_total", "slo", "goodput")
	violations, _ := m.sum("goodput_probes_total", "outcome", "slo_violation")
	f := figures{completed: good + violations, good: good, attainment: good / attempts, intended: s.pace.Seconds() * float64(s.requests)}
	f.throughput, f.goodput = f.completed/lasted, f.good/lasted
	return f
}

// comparison is the table of the two services.
func comparison(a, b figures) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tcompleted\tgood\tattainment\tthroughput\tgoodput\t")
	for _, row := range []struct {
		name string
		figures
	}{{"A", a}, {"B", b}} {
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f %%\t%.1f/s\t%.1f/s\t\n", row.name, row.completed, row.good, 100*row.attainment, row.throughput, row.goodput)
	}
	_ = w.Flush() // to memory
	return text.String()
}
