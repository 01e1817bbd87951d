package report

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/load"
)

// markup is what a hostile server may call its model.
const markup = `llama<script src="https://evil.example/x.js">alert(1)</script>&"'` + "\x00"

var slo = config.SLO{Objective: 0.95, Criteria: []config.Criterion{
	{Name: config.CriterionTTFT, Limit: 800 * time.Millisecond},
	{Name: config.CriterionE2E, Limit: 8 * time.Second},
}}

// simulated is a run of a service that decodes slower the more requests it holds, and fails one in 200.
func simulated(level load.Level, n int, model string) *load.Run {
	random := rand.New(rand.NewPCG(1, uint64(level.Concurrency)))
	run := &load.Run{
		Level: level, Cores: 2, Started: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), Window: load.Window{From: time.Hour},
		About: load.About{Target: "chat-eu", Scenario: "chat", Model: model, Protocol: "openai-chat", URL: "http://127.0.0.1:8000/v1", SLO: slo, Workload: "synthetic"},
	}
	busy := float64(level.Concurrency)
	free := make([]time.Duration, level.Concurrency)
	for i := range n + n/10 {
		user := i % len(free)
		ttft := time.Duration((0.15 + busy/100) * (0.7 + 0.4*random.ExpFloat64()) * float64(time.Second))
		e2e := ttft + time.Duration((2+busy/12)*(0.8+0.3*random.Float64())*float64(time.Second))
		r := load.Record{
			N: i, Warmup: i < n/10, Intended: free[user], Sent: free[user], Ended: free[user] + e2e,
			TTFT: &ttft, E2E: &e2e, TPOT: new(e2e / 100), OutputTokens: new(100), InputTokens: new(400),
		}
		r.Outcome, r.Judgments = judge(ttft, e2e)
		if random.IntN(200) == 0 {
			r.Outcome, r.Reason, r.TTFT, r.Error = probe.ServerError, probe.ReasonOverloaded, nil, markup
		}
		free[user] = r.Ended
		run.Records = append(run.Records, r)
		if !r.Warmup {
			run.Window.From = min(run.Window.From, r.Sent)
			run.Window.LastSend, run.Window.To = max(run.Window.LastSend, r.Sent), max(run.Window.To, r.Ended)
		}
	}
	return run
}

func judge(ttft, e2e time.Duration) (probe.Outcome, []probe.Judgment) {
	outcome, judgments := probe.Good, []probe.Judgment{}
	for i, figure := range []time.Duration{ttft, e2e} {
		v := probe.Met
		if figure > slo.Criteria[i].Limit {
			v, outcome = probe.Missed, probe.SLOViolation
		}
		judgments = append(judgments, probe.Judgment{SLO: slo.Criteria[i].Name, Verdict: v})
	}
	return outcome, judgments
}

func swept(t *testing.T, model string, concurrencies ...int) *load.SweepReport {
	t.Helper()
	var levels []load.Level
	for _, c := range concurrencies {
		levels = append(levels, load.Level{Concurrency: c})
	}
	s, err := load.Sweep(t.Context(), load.SweepOptions{Levels: levels, Headroom: load.DefaultHeadroom, Measure: func(_ context.Context, l load.Level) (*load.Report, error) {
		return load.Summarize(simulated(l, 600, model)), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
