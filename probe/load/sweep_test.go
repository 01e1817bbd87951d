package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

var seeds = []uint64{1, 2, 3}

// queue is M/M/8 after a prefill of 50 ms, with a mean decode of 0.95 s: a slot is held for 1 s on average, so that it
// saturates at 8 requests a second. Good is a first token within 1.05 s: a wait of at most 1 s.
func queue(seed uint64) slotted {
	return slotted{
		slots: 8, seed: seed, prefill: 0.05,
		decode: func(random *rand.Rand, _ int) float64 { return max(0, random.ExpFloat64()-0.05) },
		slo:    config.SLO{Objective: 0.95, Criteria: []config.Criterion{{Name: config.CriterionTTFT, Limit: 1050 * time.Millisecond}}},
	}
}

// attainmentOf is P(wait ≤ 1 s) of that queue by arithmetic.
func attainmentOf(lambda float64) float64 {
	const c = 8
	if lambda >= c {
		return 0
	}
	return 1 - erlangC(c, lambda)*math.Exp(-(c-lambda)*1)
}

func measureBy(s slotted, n int) func(context.Context, Level) (*Report, error) {
	return func(_ context.Context, l Level) (*Report, error) { return Summarize(s.run(l, n)), nil }
}

func rates(loads ...float64) []Level {
	var levels []Level
	for _, l := range loads {
		levels = append(levels, Level{Rate: l})
	}
	return levels
}

func TestAQueueHasItsPeakAndItsCapacityWhereArithmeticPutsThem(t *testing.T) {
	capacity, peak := 0.0, 0.0
	for lambda := 0.01; lambda < 8; lambda += 0.01 {
		if attainmentOf(lambda) >= 0.95 {
			capacity = lambda
		}
		if lambda*attainmentOf(lambda) > peak*attainmentOf(peak) {
			peak = lambda
		}
	}
	t.Logf("by arithmetic: capacity %.2f/s, peak of goodput at %.2f/s (%.2f/s)", capacity, peak, peak*attainmentOf(peak))
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			measure := measureBy(queue(seed), 4000)
			found, err := Sweep(t.Context(), SweepOptions{
				Search: &Search{Start: Level{Rate: 1}, Precision: 0.04}, Measure: measure, Headroom: DefaultHeadroom,
			})
			if err != nil {
				t.Fatal(err)
			}
			if c := found.Answers.SLOCapacity; c.Level == nil || math.Abs(*c.Level/capacity-1) > 0.06 {
				t.Errorf("searched capacity: %+v, want %.2f", c, capacity)
			}

			const step = 0.5
			swept, err := Sweep(t.Context(), SweepOptions{Levels: rates(5, 5.5, 6, 6.5, 7, 8.5, 17), Measure: measure})
			if err != nil {
				t.Fatal(err)
			}
			a := swept.Answers
			if p := a.GoodputPeak; p.Level == nil || math.Abs(*p.Level-peak) > step && !slices.ContainsFunc(p.Similar, near(peak, step)) {
				t.Errorf("peak: %+v, want %.2f", p, peak)
			}
			if c := a.SLOCapacity; c.Level == nil || math.Abs(*c.Level-capacity) > step {
				t.Errorf("capacity: %+v, want %.2f", c, capacity)
			}
			if s := a.Saturation; s.Level == nil || *s.Level != 8.5 || math.Abs(*s.Value-8) > 0.3 {
				t.Errorf("saturation: %+v, want 8.5, the first rate above what 8 slots can do", s)
			}
		})
	}
}

func near(want, within float64) func(float64) bool {
	return func(got float64) bool { return math.Abs(got-want) <= within }
}

// Slots that are held for a fixed time: 16 of them for 0.1 + 0.9 s. Of n users each waits n/16 s in all once n > 16, so
// answers within 2 s hold up to 32 users and throughput stops growing at 16.
func TestFixedSlotsInAClosedLoop(t *testing.T) {
	for _, seed := range seeds {
		s := slotted{
			slots: 16, seed: seed, prefill: 0.1,
			decode: func(random *rand.Rand, _ int) float64 { return 0.9 + 0.01*(random.Float64()-0.5) },
			slo:    config.SLO{Objective: 0.99, Criteria: []config.Criterion{{Name: config.CriterionE2E, Limit: 2020 * time.Millisecond}}},
		}
		search := &Search{Start: Level{Concurrency: 1}, Precision: 0.01}
		r, err := Sweep(t.Context(), SweepOptions{Search: search, Measure: measureBy(s, 2000), Headroom: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		a := r.Answers
		if a.SLOCapacity.Level == nil || *a.SLOCapacity.Level != 32 || a.SLOCapacity.Confidence != Proven {
			t.Errorf("seed %d: capacity: %+v, want 32", seed, a.SLOCapacity)
		}
		if a.Saturation.Level == nil || *a.Saturation.Level != 16 || math.Abs(*a.Saturation.Value-16) > 0.2 {
			t.Errorf("seed %d: saturation: %+v, want 16", seed, a.Saturation)
		}
		if a.Recommended.Level == nil || *a.Recommended.Level != 12 {
			t.Errorf("seed %d: recommended: %+v, want 12, 20 %% below saturation", seed, a.Recommended)
		}
	}
}

// A batch that decodes slower the more it holds: throughput n/(0.1 + 1 + n/32) rises for ever towards 32/s, but beyond
// 28 users an answer takes more than 2 s.
func TestThroughputRisesOnWhileGoodputFalls(t *testing.T) {
	for _, seed := range seeds {
		s := slotted{
			slots: 1024, seed: seed, prefill: 0.1,
			decode: func(random *rand.Rand, n int) float64 { return (1 + float64(n)/32) * (0.9 + 0.2*random.Float64()) },
			slo:    config.SLO{Objective: 0.99, Criteria: []config.Criterion{{Name: config.CriterionE2E, Limit: 2 * time.Second}}},
		}
		var levels []Level
		for n := 1; n <= 64; n *= 2 {
			levels = append(levels, Level{Concurrency: n})
		}
		r, err := Sweep(t.Context(), SweepOptions{Levels: levels, Measure: measureBy(s, 4000), Headroom: DefaultHeadroom})
		if err != nil {
			t.Fatal(err)
		}
		last := len(r.Levels) - 1
		if *r.Levels[last].Throughput <= *r.Levels[last-1].Throughput || *r.Levels[last].Goodput >= *r.Levels[last-1].Goodput {
			t.Errorf("seed %d: the highest level has throughput %.2f after %.2f and goodput %.2f after %.2f", seed,
				*r.Levels[last].Throughput, *r.Levels[last-1].Throughput, *r.Levels[last].Goodput, *r.Levels[last-1].Goodput)
		}
		a := r.Answers
		if a.GoodputPeak.Level == nil || *a.GoodputPeak.Level != 16 && *a.GoodputPeak.Level != 32 {
			t.Errorf("seed %d: peak: %+v, want 16 or 32", seed, a.GoodputPeak)
		}
		if a.SLOCapacity.Level == nil || *a.SLOCapacity.Level != 16 {
			t.Errorf("seed %d: capacity: %+v, want 16", seed, a.SLOCapacity)
		}
		if a.Saturation.Level != nil {
			t.Errorf("seed %d: saturation: %+v, want none in this range", seed, a.Saturation)
		}
	}
}

// scripted measures levels from a table and writes down their order.
type scripted struct {
	at    map[float64]rate
	after func(*Report)
	order []float64
}

func (s *scripted) measure(_ context.Context, l Level) (*Report, error) {
	s.order = append(s.order, l.Value())
	figures, ok := s.at[l.Value()]
	if !ok {
		figures = rate{l.Value(), l.Value(), l.Value()}
	}
	r := reportOf(figures)
	if s.after != nil {
		s.after(r)
	}
	return r, nil
}

func TestSweepStopsByItself(t *testing.T) {
	for _, tt := range []struct {
		name   string
		at     map[float64]rate
		after  func(*Report)
		levels int
		want   string
	}{
		{name: "all levels told", levels: 4},
		{
			name: "client-bound", levels: 3,
			after: func(r *Report) {
				if *r.Load.Rate == 4 {
					r.Valid, r.Invalid = false, []string{"the client used 99 % of its CPU"}
				}
			},
			want: "rate 4/s: not valid: the client used 99 % of its CPU; higher levels were left out",
		},
		{
			name: "hopeless", at: map[float64]rate{2: {2, 2, 0}, 4: {4, 2, 0}}, levels: 3,
			want: "rate 4/s: attainment is 0 % and throughput no longer grows; higher levels were left out",
		},
		{name: "bad, but throughput grows", at: map[float64]rate{1: {1, 1, 0}, 2: {2, 2, 0}, 4: {4, 4, 0}}, levels: 4},
		{
			name: "nothing is answered", levels: 1,
			after: func(r *Report) {
				r.Counts.Successes = 0
				r.Counts.Reasons = []ReasonCount{{probe.ConnectionError, probe.ReasonRefused, 100}}
			},
			want: "rate 1/s: no request was answered (most frequent: connection_error, refused); higher levels were left out",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &scripted{at: tt.at, after: tt.after}
			told := 0
			r, err := Sweep(t.Context(), SweepOptions{Levels: rates(4, 2, 1, 8), Measure: s.measure, OnLevel: func(*Report) { told++ }})
			if err != nil {
				t.Fatal(err)
			}
			if r.Stopped != tt.want || len(r.Levels) != tt.levels || told != tt.levels {
				t.Errorf("%d levels, %d told, stopped %q; want %d and %q", len(r.Levels), told, r.Stopped, tt.levels, tt.want)
			}
			if !slices.IsSorted(s.order) {
				t.Errorf("levels were measured in the order %v", s.order)
			}
		})
	}
}

func TestSearchOrder(t *testing.T) {
	missesFrom := func(limit float64) func(*Report) {
		return func(r *Report) {
			if *r.Load.Rate >= limit {
				*r = *reportOf(rate{*r.Load.Rate, *r.Load.Rate, *r.Load.Rate / 2})
			}
		}
	}
	for _, tt := range []struct {
		name    string
		search  Search
		after   func(*Report)
		want    []float64
		stopped string
	}{
		{name: "doubles, then bisects", search: Search{Start: Level{Rate: 1}, Precision: 0.1}, after: missesFrom(5), want: []float64{1, 2, 4, 8, 6, 5, 4.5, 4.75}},
		{
			name: "ends at its greatest level", search: Search{Start: Level{Rate: 1}, Precision: 0.1, Max: 3}, want: []float64{1, 2, 3},
			stopped: "rate 3/s, the greatest level of the search, still holds the objective",
		},
		{name: "goes down from a first level that misses", search: Search{Start: Level{Rate: 8}, Precision: 0.3}, after: missesFrom(3), want: []float64{8, 4, 2, 3, 2.5}},
		{name: "gives up going down", search: Search{Start: Level{Rate: 64}, Precision: 0.3}, after: missesFrom(0), want: []float64{64, 32, 16, 8, 4, 2, 1}},
		{
			name: "ends where the client is the bottleneck twice", search: Search{Start: Level{Rate: 1}, Precision: 0.1},
			after: func(r *Report) { r.Valid, r.Invalid = *r.Load.Rate < 4, []string{"late"} }, want: []float64{1, 2, 4, 4},
			stopped: "rate 4/s: not valid: late",
		},
		{
			name: "a level at which all fail is one that misses", search: Search{Start: Level{Rate: 1}, Precision: 1}, want: []float64{1, 2, 4},
			after: func(r *Report) {
				if *r.Load.Rate == 4 {
					*r = *reportOf(rate{4, 4, 0})
					r.Counts.Successes = 0
				}
			},
		},
		{
			name: "but at the first level it is the end", search: Search{Start: Level{Rate: 1}, Precision: 1}, want: []float64{1},
			after:   func(r *Report) { r.Counts.Successes = 0 },
			stopped: "rate 1/s: no request was answered",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &scripted{after: tt.after}
			r, err := Sweep(t.Context(), SweepOptions{Search: &tt.search, Measure: s.measure})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.order); diff != "" {
				t.Errorf("order of the levels (-want +got):\n%s", diff)
			}
			if r.Stopped != tt.stopped {
				t.Errorf("stopped %q, want %q", r.Stopped, tt.stopped)
			}
		})
	}
}

func TestSearchOfConcurrencyEndsAtNeighbours(t *testing.T) {
	s := &scripted{}
	measure := func(ctx context.Context, l Level) (*Report, error) {
		r, err := s.measure(ctx, l)
		if l.Concurrency > 5 {
			r = reportOf(rate{1, 8, 4})
		}
		r.Load = Load{Concurrency: &l.Concurrency}
		return r, err
	}
	r, err := Sweep(t.Context(), SweepOptions{Search: &Search{Start: Level{Concurrency: 1}, Precision: 0.01}, Measure: measure})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{1, 2, 4, 8, 6, 5}, s.order); diff != "" {
		t.Errorf("order of the levels (-want +got):\n%s", diff)
	}
	if c := r.Answers.SLOCapacity; *c.Level != 5 {
		t.Errorf("capacity %v, want 5", *c.Level)
	}
}

func TestInterruptedSweepKeepsTheLevelsSoFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		s := &scripted{}
		r, err := Sweep(ctx, SweepOptions{Levels: rates(1, 2, 3, 4), Pause: time.Second, Measure: func(ctx context.Context, l Level) (*Report, error) {
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
			}
			return s.measure(ctx, l)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Levels) != 2 || r.Stopped != "interrupted in rate 3/s, which is left out" {
			t.Errorf("%d levels, stopped %q", len(r.Levels), r.Stopped)
		}
		if r.Answers.SLOCapacity.Level == nil || *r.Answers.SLOCapacity.Level != 2 {
			t.Errorf("capacity of the levels so far: %+v", r.Answers.SLOCapacity)
		}
	})
}

func TestFailureToMeasureComesWithTheLevelsSoFar(t *testing.T) {
	s := &scripted{}
	broken := errors.New("no file descriptors")
	r, err := Sweep(t.Context(), SweepOptions{Levels: rates(1, 2), Measure: func(ctx context.Context, l Level) (*Report, error) {
		if l.Rate == 2 {
			return nil, broken
		}
		return s.measure(ctx, l)
	}})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "rate 2/s") || r == nil || len(r.Levels) != 1 {
		t.Errorf("error %v, report %+v", err, r)
	}
}

func TestSweepRefusesBadOptions(t *testing.T) {
	measure := (&scripted{}).measure
	for _, tt := range []struct {
		name string
		o    SweepOptions
		want string
	}{
		{"nothing to measure", SweepOptions{Measure: measure}, "either a list of levels or a search"},
		{"both", SweepOptions{Measure: measure, Levels: rates(1), Search: &Search{Start: Level{Rate: 1}, Precision: 0.1}}, "either a list"},
		{"a rate of 0", SweepOptions{Measure: measure, Levels: rates(1, 0)}, "must be positive"},
		{"mixed", SweepOptions{Measure: measure, Levels: []Level{{Rate: 1}, {Concurrency: 1}}}, "all concurrencies or all rates"},
		{"twice", SweepOptions{Measure: measure, Levels: rates(1, 2, 1)}, "rate 1/s is listed twice"},
		{"no precision", SweepOptions{Measure: measure, Search: &Search{Start: Level{Rate: 1}}}, "precision 0"},
		{"a start above the end", SweepOptions{Measure: measure, Search: &Search{Start: Level{Rate: 2}, Max: 1, Precision: 0.1}}, "above its greatest level 1"},
		{"no headroom at all", SweepOptions{Measure: measure, Levels: rates(1), Headroom: 1}, "headroom 1"},
		{"no way to measure", SweepOptions{Levels: rates(1)}, "a way to measure"},
	} {
		if _, err := Sweep(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v does not say %q", tt.name, err, tt.want)
		}
	}
	noObjective := func(ctx context.Context, l Level) (*Report, error) {
		r, err := (&scripted{}).measure(ctx, l)
		r.SLO.Objective = nil
		return r, err
	}
	_, err := Sweep(t.Context(), SweepOptions{Measure: noObjective, Search: &Search{Start: Level{Rate: 1}, Precision: 0.1}})
	if err == nil || !strings.Contains(err.Error(), "needs an objective") {
		t.Errorf("a search without an objective: error %v", err)
	}
}

func TestSweepReportSurvivesItsJSON(t *testing.T) {
	want, err := Sweep(t.Context(), SweepOptions{Levels: rates(1, 2, 4), Measure: (&scripted{}).measure, Headroom: DefaultHeadroom})
	if err != nil {
		t.Fatal(err)
	}
	want.Started, want.Ended = want.Started.Round(0).UTC(), want.Ended.Round(0).UTC()
	var text bytes.Buffer
	if err := want.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSweep(&text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
