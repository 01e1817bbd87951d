package collector

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// TestExposition is all that one series says after a fixed day.
func TestExposition(t *testing.T) {
	c := New(Options{
		SkipReasons:     skipReasons,
		BudgetRemaining: func(_, unit string) (int, bool) { return 5990, unit == UnitRequests },
	})
	sc := testSeries("chat-eu", "chat")
	sc.Target.Labels = map[string]string{"env": "prod"}
	sc.Target.Price = &config.Price{Input: 0.6, Output: 2.4}
	c.Update(testConfig(sc))
	s := c.Series(sc.Key())

	s.SlotStarted(300 * time.Microsecond)
	s.Observe(goodResult())

	slow := goodResult()
	slow.Time = sentAt.Add(15 * time.Second)
	slow.Outcome, slow.TTFT = probe.SLOViolation, new(1200*time.Millisecond)
	slow.Judgments[0].Verdict, slow.Judgments[2].Verdict = probe.Missed, probe.Missed
	slow.Flags = []probe.Flag{probe.FlagStaleRetry, probe.FlagUsageMissing}
	s.SlotStarted(time.Millisecond)
	s.Observe(slow)

	failed := failedResult(probe.ServerError, probe.ReasonBadGateway)
	failed.Time = sentAt.Add(30 * time.Second)
	s.SlotStarted(time.Millisecond)
	s.Observe(failed)

	s.Observe(&probe.Result{Time: sentAt.Add(45 * time.Second), Outcome: probe.Canceled})
	s.SlotsSkipped("overlap", 2)
	s.ProbeStarted()
	checkGolden(t, "exposition.golden", text(t, c))
}

func TestVerdicts(t *testing.T) {
	type events struct{ Good, Bad, Unmeasurable float64 }
	for _, tc := range []struct {
		verdict probe.Verdict
		want    events
	}{
		{probe.Met, events{Good: 1}},
		{probe.Missed, events{Bad: 1}},
		{probe.Unmeasurable, events{Bad: 1, Unmeasurable: 1}},
		{probe.NotApplicable, events{}},
	} {
		t.Run(string(tc.verdict), func(t *testing.T) {
			c := New(Options{})
			sc := testSeries("a", "chat")
			c.Update(testConfig(sc))
			r := goodResult()
			r.Judgments = []probe.Judgment{
				{SLO: config.CriterionTPOT, Verdict: tc.verdict},
				{SLO: config.CriterionStall, Verdict: tc.verdict}, // not configured
			}
			c.Series(sc.Key()).Observe(r)
			got := samples(t, c)
			name := func(result string) string {
				return `goodput_slo_events_total{model="llama-3.3-70b",result="` + result + `",scenario="chat",slo="tpot",target="a"}`
			}
			number := map[string]float64{"0": 0, "1": 1}
			have := events{
				Good: number[got[name("good")]], Bad: number[got[name("bad")]],
				Unmeasurable: number[got[`goodput_slo_unmeasurable_total{model="llama-3.3-70b",scenario="chat",slo="tpot",target="a"}`]],
			}
			if diff := cmp.Diff(tc.want, have); diff != "" {
				t.Error(diff)
			}
			if _, ok := got[`goodput_slo_events_total{model="llama-3.3-70b",result="good",scenario="chat",slo="stall",target="a"}`]; ok {
				t.Error("events of a criterion that is not configured")
			}
		})
	}
}

// TestConservation sends random results and holds that nothing is lost and nothing counted twice.
func TestConservation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(n int) int { return random.IntN(n) }
	verdicts := []probe.Verdict{probe.Met, probe.Missed, probe.Unmeasurable, probe.NotApplicable}
	outcomes := slices.Concat(probe.Outcomes, probe.AbortedOutcomes)

	c := New(Options{})
	sc := testSeries("a", "chat")
	c.Update(testConfig(sc))
	want := map[string]float64{}
	for range 5000 {
		r := goodResult()
		r.Outcome = outcomes[pick(len(outcomes))]
		if reasons := probe.Reasons[r.Outcome]; reasons != nil {
			r.Reason = reasons[pick(len(reasons))]
			want["failures"]++
		}
		r.Judgments = r.Judgments[:pick(len(r.Judgments)+1)]
		for i := range r.Judgments {
			r.Judgments[i].Verdict = verdicts[pick(len(verdicts))]
		}
		switch {
		case !r.Outcome.Attempt():
			want["aborted"]++
		case r.Outcome == probe.Good:
			want["good"]++
			fallthrough
		default:
			want["attempts"]++
			for _, j := range r.Judgments {
				if j.SLO == config.CriterionTTFT && j.Verdict != probe.NotApplicable {
					want["ttft"]++
				}
			}
		}
		c.Series(sc.Key()).Observe(r)
	}

	families := gather(t, c)
	total := func(name, label string) (n float64) {
		for _, v := range sum(families, name, label) {
			n += v
		}
		return n
	}
	events := sum(families, "goodput_slo_events_total", "slo")
	for name, got := range map[string]float64{
		"attempts": total("goodput_probes_total", "outcome"),
		"good":     sum(families, "goodput_probes_total", "outcome")["good"],
		"failures": total("goodput_probe_failures_total", "reason"),
		"aborted":  total("goodput_aborted_probes_total", "reason"),
		"ttft":     events["ttft"],
	} {
		if got != want[name] {
			t.Errorf("%s: %g, want %g", name, got, want[name])
		}
	}
	for _, slo := range []string{probe.SLOGoodput, probe.SLOAvailability} {
		if events[slo] != want["attempts"] {
			t.Errorf("%g events of %s, want as many as attempts, %g", events[slo], slo, want["attempts"])
		}
	}
}

// TestAbortedProbesTouchNothingElse compares everything but their own counter.
func TestAbortedProbesTouchNothingElse(t *testing.T) {
	for _, outcome := range probe.AbortedOutcomes {
		t.Run(string(outcome), func(t *testing.T) {
			c := New(Options{})
			sc := testSeries("a", "chat")
			c.Update(testConfig(sc))
			want := samples(t, c)
			want[`goodput_aborted_probes_total{model="llama-3.3-70b",reason="`+string(outcome)+`",scenario="chat",target="a"}`] = "1"
			r := goodResult()
			r.Outcome = outcome
			c.Series(sc.Key()).Observe(r)
			if diff := cmp.Diff(want, samples(t, c)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGapsOfALateReaderAreNotTheEndpoints(t *testing.T) {
	c := New(Options{})
	sc := testSeries("a", "chat")
	c.Update(testConfig(sc))
	r := goodResult()
	r.Flags = []probe.Flag{probe.FlagOwnLag}
	c.Series(sc.Key()).Observe(r)
	got := samples(t, c)
	for name, want := range map[string]string{
		"goodput_chunk_gap_seconds_count":           "0",
		"goodput_stall_seconds_count":               "0",
		"goodput_time_to_first_token_seconds_count": "1",
	} {
		if got := got[name+`{model="llama-3.3-70b",scenario="chat",target="a"}`]; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
