package browser

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"goodput_exporter/collector/journal"
	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// The past that a daemon is given: the shipped rules ask for a quarter of a day before they speak of an objective of 90 %,
// and no test has that.
const (
	pastSpan     = 6*time.Hour + 30*time.Minute
	pastInterval = 3 * time.Second // the demo's
)

// writePast writes a journal in which the demo's two models did for hours about what they do, and returns its path.
func writePast(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.jsonl")
	j, err := journal.Open(journal.Options{Path: path, SyncInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	written := uint64(0)
	for at := time.Now().Add(-pastSpan); time.Since(at) > pastInterval; at = at.Add(pastInterval) {
		for _, model := range []string{"healthy", "degraded"} {
			for _, scenario := range []string{"chat", "summarize", "complete"} {
				j.Append(model+"/"+scenario, pastResult(random, at, model, scenario))
				written++
			}
		}
		for written-j.Stats().Written > 1000 { // else it would lose some
			time.Sleep(time.Millisecond)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// criteria are those of the demo's scenarios.
var criteria = map[string][]string{
	"chat":      {config.CriterionTTFT, config.CriterionTPOT, config.CriterionE2E, config.CriterionComplete},
	"summarize": {config.CriterionE2E},
	"complete":  {config.CriterionTTFT, config.CriterionStall, config.CriterionComplete},
}

// pastResult is one probe: of the healthy model 1 of 100 fails, of the degraded one 2 of 5.
func pastResult(random *rand.Rand, at time.Time, model, scenario string) *probe.Result {
	share, scale := 0.01, 1.0
	if model == "degraded" {
		share, scale = 0.4, 1.7
	}
	seconds := func(s float64) *time.Duration {
		d := time.Duration(scale * s * (0.8 + 0.4*random.Float64()) * float64(time.Second))
		return &d
	}
	r := &probe.Result{
		Target: model, Model: model, Scenario: scenario, Protocol: "openai-chat", Time: at, Outcome: probe.Good, StatusCode: 200, E2E: seconds(0.7),
	}
	verdict := probe.Met
	if random.Float64() < share {
		verdict = probe.Missed
		fail(random, r)
	} else if scenario != "summarize" {
		r.TTFT, r.TPOT = seconds(0.14), seconds(0.012)
	}
	for _, name := range append([]string{probe.SLOGoodput, probe.SLOAvailability}, criteria[scenario]...) {
		r.Judgments = append(r.Judgments, probe.Judgment{SLO: name, Verdict: verdict})
	}
	return r
}

// fail makes a result one of the failures that the demo has.
func fail(random *rand.Rand, r *probe.Result) {
	r.E2E = nil
	switch random.IntN(4) {
	case 0:
		r.Outcome, r.Reason, r.StatusCode, r.Error = probe.RateLimited, probe.ReasonLimit, 429, "simulated fault: rate_limited"
	case 1:
		r.Outcome, r.Reason, r.Error = probe.Timeout, probe.ReasonTotal, "no end of the answer within 2.8 s"
	default:
		r.Outcome, r.Reason, r.StatusCode, r.Error = probe.ServerError, probe.ReasonOverloaded, 503, "simulated fault: unavailable"
	}
}
