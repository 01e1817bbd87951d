package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// testSeries is a streamed scenario, probed every 15 s, with the four criteria of the built-in one.
func testSeries(target, scenario string) *config.Series {
	return &config.Series{
		Target: &config.Target{
			Name: target, Protocol: "openai-chat", URL: "https://llm.example.net:8443/v1?key=x", Model: "llama-3.3-70b",
			Labels: map[string]string{"env": "prod"},
		},
		Scenario: &config.Scenario{
			Name: scenario, Interval: 15 * time.Second, Timeout: time.Minute, Stream: true,
			SLO: config.SLO{Objective: 0.99, Criteria: []config.Criterion{
				{Name: config.CriterionTTFT, Limit: 800 * time.Millisecond, Objective: 0.95},
				{Name: config.CriterionTPOT, Limit: 50 * time.Millisecond},
				{Name: config.CriterionE2E, Limit: 8 * time.Second},
				{Name: config.CriterionComplete},
			}},
		},
	}
}

func testConfig(series ...*config.Series) *config.Config { return &config.Config{Series: series} }

// newLive returns a Live with one series.
func newLive(t testing.TB, opts Options) (*Live, *Series) {
	t.Helper()
	l := New(opts)
	sc := testSeries("chat-eu", "chat")
	l.Update(testConfig(sc))
	return l, l.Series(sc.Key())
}

// result is one that came to its end at a time.
func result(at time.Time, outcome probe.Outcome, reason probe.Reason, missed ...string) *probe.Result {
	const took = 2 * time.Second
	r := &probe.Result{
		Target: "chat-eu", Scenario: "chat", Time: at.Add(-took), Outcome: outcome, Reason: reason, E2E: new(took),
		TraceID: fmt.Sprintf("%032x", rand.Uint64()),
	}
	if !outcome.Attempt() {
		return r
	}
	verdict := func(met bool) probe.Verdict {
		if met {
			return probe.Met
		}
		return probe.Missed
	}
	r.Judgments = []probe.Judgment{
		{SLO: probe.SLOGoodput, Verdict: verdict(outcome == probe.Good)},
		{SLO: probe.SLOAvailability, Verdict: verdict(outcome.Success())},
	}
	for _, c := range []string{config.CriterionTTFT, config.CriterionTPOT, config.CriterionE2E, config.CriterionComplete} {
		r.Judgments = append(r.Judgments, probe.Judgment{SLO: c, Verdict: verdict(outcome.Success() && !slices.Contains(missed, c))})
	}
	if outcome.Success() {
		r.TTFT, r.TPOT = new(200*time.Millisecond), new(25*time.Millisecond)
	}
	return r
}

func good(at time.Time) *probe.Result { return result(at, probe.Good, "") }

func slow(at time.Time) *probe.Result {
	return result(at, probe.SLOViolation, "", config.CriterionTTFT)
}

func failed(at time.Time) *probe.Result { return result(at, probe.Timeout, probe.ReasonFirstToken) }
