package main

import (
	"io"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe/probetest"
)

// demoInterval is that of every demo series: quick, so that there is something to see at once.
const demoInterval = 3 * time.Second

// startDemo starts a simulated endpoint on a free loopback port, and returns a configuration that probes its
// models in three scenarios.
func startDemo() (func() (*config.Config, error), io.Closer, error) {
	endpoint, err := probetest.Start("127.0.0.1:0", probetest.Config{Models: probetest.Demo(), Seed: 1})
	if err != nil {
		return nil, nil, err
	}
	var all []*config.Series
	for _, model := range probetest.Demo() {
		target := config.NewSeries(endpoint.URL(), model.Name).Target
		target.Name = model.Name
		target.Provider = "simulated"
		target.Labels = map[string]string{"env": "demo"}
		for _, scenario := range demoScenarios() {
			all = append(all, &config.Series{Target: target, Scenario: scenario})
		}
	}
	cfg, err := config.New(all...)
	if err != nil {
		_ = endpoint.Close()
		return nil, nil, err
	}
	return func() (*config.Config, error) { return cfg, nil }, endpoint, nil
}

// demoScenarios are three kinds of use, each with what its users expect.
func demoScenarios() []*config.Scenario {
	scenario := func(name, prompt string, slo config.SLO) *config.Scenario {
		return &config.Scenario{
			Name: name, Interval: demoInterval, Timeout: 2800 * time.Millisecond, FirstTokenTimeout: 2500 * time.Millisecond,
			IdleTimeout: 1500 * time.Millisecond, Stream: true, Prompts: []config.Prompt{{Text: prompt, Weight: 1}}, SLO: slo,
		}
	}
	limit := func(name string, d time.Duration) config.Criterion { return config.Criterion{Name: name, Limit: d} }
	complete := config.Criterion{Name: config.CriterionComplete}

	chat := scenario("chat", "What is the difference between a city and a town?", config.SLO{Objective: 0.95, Criteria: []config.Criterion{
		limit(config.CriterionTTFT, 500*time.Millisecond), limit(config.CriterionTPOT, 50*time.Millisecond), limit(config.CriterionE2E, 2*time.Second), complete,
	}})
	chat.MaxTokens = 256

	summarize := scenario("summarize", "", config.SLO{Objective: 0.9, Criteria: []config.Criterion{limit(config.CriterionE2E, 2500*time.Millisecond)}})
	summarize.Prompts, summarize.Stream, summarize.OutputTokens = nil, false, 40
	summarize.Synthetic = &config.Synthetic{InputTokens: config.Quantiles{P50: 3000, P95: 6000}}

	code := scenario("complete", "func fibonacci(n int) int {", config.SLO{Objective: 0.95, Criteria: []config.Criterion{
		limit(config.CriterionTTFT, 400*time.Millisecond), limit(config.CriterionStall, 250*time.Millisecond), complete,
	}})
	code.MaxTokens = 64
	return []*config.Scenario{chat, summarize, code}
}
