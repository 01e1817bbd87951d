package load

import (
	"math"
	"strings"
	"testing"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// The examples of Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10.
func TestNewcombesIntervalOfADifference(t *testing.T) {
	for _, tc := range []struct {
		a, n, b, m int
		low, high  float64
	}{
		{56, 70, 48, 80, 0.0524, 0.3339}, {9, 10, 3, 10, 0.1705, 0.8090}, {10, 10, 0, 20, 0.6791, 1}, {10, 10, 0, 10, 0.6075, 1},
	} {
		first, second := newShare(tc.a, tc.n), newShare(tc.b, tc.m)
		c := newChange("share", unitRatio, second.Ratio, first.Ratio, second.Interval, first.Interval)
		within(t, "low", float64(c.Interval.Low), tc.low, 1e-4)
		within(t, "high", float64(c.Interval.High), tc.high, 1e-4)
	}
}

// Fisher's tea tasting, and his twins of convicts, as R's fisher.test computes them.
func TestFishersExactTest(t *testing.T) {
	within(t, "tea", fisher(3, 4, 1, 4), 0.4857142857, 1e-9)
	within(t, "twins", fisher(2, 17, 10, 13), 0.0005367, 5e-8)
	within(t, "equal", fisher(950, 1000, 950, 1000), 1, 1e-9)
}

func TestHolm(t *testing.T) {
	changes := []Change{{P: new(0.04)}, {}, {P: new(0.01)}, {P: new(0.03)}}
	holm(changes)
	for i, want := range map[int]float64{0: 0.06, 2: 0.03, 3: 0.06} {
		within(t, "p", *changes[i].P, want, 1e-12)
	}
	if changes[1].P != nil {
		t.Error("a figure that was not tested has a p")
	}
}

// slower returns the run with every latency stretched.
func slower(run *Run, by float64) *Run {
	for i := range run.Records {
		rec := &run.Records[i]
		for _, d := range []*time.Duration{rec.TTFT, rec.TPOT, rec.E2E} {
			if d != nil {
				*d = time.Duration(float64(*d) * by)
			}
		}
		rec.Ended = rec.Sent + *rec.E2E
		if rec.Outcome == probe.SLOViolation {
			rec.Outcome = probe.Good
		}
		judgeDrawn(rec)
	}
	return run
}

func verdicts(c *Comparison) map[string]Direction {
	m := map[string]Direction{}
	for _, change := range c.Changes {
		m[change.Figure] = change.Verdict
	}
	return m
}

func compare(t *testing.T, old, recent *Run) *Comparison {
	t.Helper()
	c, err := Compare(Summarize(old), Summarize(recent))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEqualServicesDoNotDiffer(t *testing.T) {
	worse := 0
	for seed := range uint64(20) {
		c := compare(t, drawnRun(100+seed, 1000), drawnRun(200+seed, 1000))
		if c.Worse() {
			worse++
		}
	}
	if worse > 2 { // 5 % at most for all figures together, and half of it for the worse
		t.Errorf("%d of 20 comparisons of equal services found one worse", worse)
	}
}

func TestSlowerServiceIsWorseAndFasterOneBetter(t *testing.T) {
	fast, slow := drawnRun(1, 3000), slower(drawnRun(2, 3000), 1.3)
	for name, tc := range map[string]struct {
		c    *Comparison
		want Direction
	}{
		"slower": {compare(t, fast, slow), Worse},
		"faster": {compare(t, slow, fast), Better},
	} {
		got := verdicts(tc.c)
		for _, figure := range []string{"attainment", "attainment_ttft", "attainment_tpot", "goodput", "ttft_p50", "ttft_p95", "tpot_p50", "e2e_p50", "e2e_p99"} {
			if got[figure] != tc.want {
				t.Errorf("%s: %s is %q, want %q", name, figure, got[figure], tc.want)
			}
		}
		for _, figure := range []string{"availability", "attainment_complete", "throughput"} {
			if got[figure] != NoChange {
				t.Errorf("%s: %s is %q, want no change", name, figure, got[figure])
			}
		}
		if tc.c.Worse() != (tc.want == Worse) {
			t.Errorf("%s: worse is %v", name, tc.c.Worse())
		}
	}
}

func TestChangeThatMattersToNobodyIsNone(t *testing.T) {
	old, recent := &Report{Throughput: new(100.0)}, &Report{Throughput: new(99.0)}
	old.RateIntervals.Throughput, recent.RateIntervals.Throughput = &Interval{99.9, 100.1}, &Interval{98.9, 99.1}
	c := CompareAnyway(old, recent)
	if got := verdicts(c)["throughput"]; got != NoChange {
		t.Errorf("1 %% less throughput is %q, want %q", got, NoChange)
	}
}

func TestSmallRunsCannotBeCompared(t *testing.T) {
	c := compare(t, drawnRun(1, 50), slower(drawnRun(2, 50), 1.3))
	if got := verdicts(c)["e2e_p99"]; got != NotComparable {
		t.Errorf("p99 of fewer than 50 requests is %q, want %q", got, NotComparable)
	}
}

func TestRatesAtOtherLoadsAreNotCompared(t *testing.T) {
	old, recent := drawnRun(1, 1000), drawnRun(2, 1000)
	recent.Level.Rate = 20
	c := compare(t, old, recent)
	if got := verdicts(c)["goodput"]; got != NotComparable {
		t.Errorf("goodput is %q, want %q", got, NotComparable)
	}
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, "the loads differ (rate 10/s and rate 20/s)") {
		t.Errorf("notes %q do not say that the loads differ", c.Notes)
	}
}

func TestReportsOfDifferentThingsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*About)
		want   string
	}{
		"model":    {func(a *About) { a.Model = "other" }, `model ("llama" and "other")`},
		"scenario": {func(a *About) { a.Scenario = "summarize" }, `scenario ("chat" and "summarize")`},
		"workload": {func(a *About) { a.Workload = "3 prompts" }, "workload"},
		"objective": {
			func(a *About) { a.SLO.Objective = 0.9 },
			"SLO (99 % ttft=0.8s@95 % tpot=0.05s complete and 90 % ttft",
		},
		"limit": {func(a *About) {
			a.SLO.Criteria = append([]config.Criterion{{Name: config.CriterionTTFT, Limit: time.Second}}, a.SLO.Criteria[1:]...)
		}, "and 99 % ttft=1s tpot"},
	} {
		other := drawnRun(2, 100)
		tc.change(&other.About)
		_, err := Compare(Summarize(drawnRun(1, 100)), Summarize(other))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, tc.want)
		}
	}
}

func TestInfiniteAndMissingFiguresAreNotComparable(t *testing.T) {
	for name, c := range map[string]Change{
		"missing":  newChange("x", unitSeconds, nil, new(1.0), nil, &Interval{1, 1}),
		"infinite": newChange("x", unitSeconds, new(1.0), new(1.0), &Interval{1, 1}, &Interval{1, Value(math.Inf(1))}),
	} {
		c.judge()
		if c.Verdict == Better || c.Verdict == Worse {
			t.Errorf("%s: verdict %q", name, c.Verdict)
		}
	}
}
