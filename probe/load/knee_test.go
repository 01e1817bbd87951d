package load

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// rate is a level of an open loop as a table has it: figures a second over a window of 100 s.
type rate struct{ load, throughput, goodput float64 }

// reportOf makes the report of a level with the objective of 0.99, and batches too few for intervals of its rates.
func reportOf(l rate) *Report {
	const seconds = 100
	attempts, good := int(l.throughput*seconds), int(l.goodput*seconds)
	share := newShare(good, attempts)
	return &Report{
		Version: ReportVersion, Valid: true, Load: Load{Rate: &l.load},
		Duration: new(float64(seconds)), Throughput: &l.throughput, Goodput: &l.goodput, Attainment: share.Ratio,
		SLO:    SLOReport{Objective: new(0.99), Attainment: share},
		Counts: Counts{Attempts: attempts, Successes: attempts, Good: good},
	}
}

func pointsOf(levels []rate) []point {
	s := sweep{report: &SweepReport{}}
	for _, l := range levels {
		s.report.Levels = append(s.report.Levels, reportOf(l))
	}
	return s.points()
}

func TestAnswers(t *testing.T) {
	type wanted struct{ peak, capacity, saturation, recommended float64 } // 0: none
	for _, tt := range []struct {
		name    string
		levels  []rate
		want    wanted
		similar []float64
		reasons []string // parts of the reasons of the four answers, in their order
	}{{
		name:    "throughput rises on while goodput falls",
		levels:  []rate{{10, 10, 10}, {20, 20, 20}, {40, 40, 39}, {80, 60, 30}, {160, 100, 10}},
		want:    wanted{peak: 40, capacity: 20, recommended: 15},
		reasons: []string{"39 good requests a second at rate 40/s", "proven", "still growing", "25 % below the SLO capacity at rate 20/s; at rate 10/s"},
	}, {
		name:    "all three knees apart",
		levels:  []rate{{10, 10, 10}, {20, 20, 20}, {40, 39, 37}, {80, 60, 30}, {160, 61, 10}},
		want:    wanted{peak: 40, capacity: 20, saturation: 80, recommended: 15},
		reasons: []string{"", "rate 40/s misses it: 94.87 %", "up to rate 160/s no level gains 5 %", ""},
	}, {
		name:    "no knee in the range",
		levels:  []rate{{10, 10, 10}, {20, 20, 20}, {40, 40, 40}},
		want:    wanted{capacity: 40, recommended: 30},
		reasons: []string{"none in this range: goodput was still growing at the highest level", "the capacity may be higher", "no knee in this range", ""},
	}, {
		name:    "a level above the first miss holds again",
		levels:  []rate{{10, 10, 10}, {20, 20, 15}, {40, 40, 40}, {80, 40, 5}},
		want:    wanted{peak: 40, capacity: 10, saturation: 40, recommended: 7.5},
		reasons: []string{"", "40 above hold it again and do not count, as rate 20/s does not", "", "no level as low was tested"},
	}, {
		name:    "one wiggle of throughput is no saturation",
		levels:  []rate{{10, 10, 10}, {20, 9.9, 9.9}, {40, 40, 40}},
		want:    wanted{capacity: 40, recommended: 30},
		reasons: []string{"still growing", "", "no knee", ""},
	}, {
		name:    "levels close together cannot show saturation",
		levels:  []rate{{10, 10, 10}, {11, 11, 11}, {12, 11, 11}, {13, 11, 11}},
		want:    wanted{peak: 11, capacity: 13, recommended: 9.75},
		similar: []float64{12, 13},
		reasons: []string{"statistically no different at 12, 13", "", "seems to stop growing at rate 11/s (11/s), but levels of at least 1.25 times it are needed", ""},
	}, {
		name:    "saturation below the capacity limits the recommendation",
		levels:  []rate{{10, 10, 10}, {20, 20, 20}, {40, 20, 20}, {80, 20, 20}},
		want:    wanted{peak: 20, capacity: 80, saturation: 20, recommended: 15},
		similar: []float64{40, 80},
		reasons: []string{"", "", "", "25 % below saturation"},
	}, {
		name:    "peaks that statistics cannot tell apart",
		levels:  []rate{{10, 10, 10}, {20, 20, 18}, {40, 40, 18.2}, {80, 80, 2}},
		want:    wanted{peak: 40, capacity: 10, recommended: 7.5},
		similar: []float64{20},
		reasons: []string{"statistically no different at 20", "", "", ""},
	}, {
		name:    "the lowest level misses already",
		levels:  []rate{{10, 10, 5}, {20, 20, 2}},
		want:    wanted{peak: 10},
		reasons: []string{"a lower one may do better", "none in this range: the lowest level, rate 10/s, misses the objective", "", "no SLO capacity"},
	}, {
		name:    "a miss that may be chance says so",
		levels:  []rate{{1, 1, 1}, {2, 2, 1.97}},
		want:    wanted{capacity: 1, recommended: 0.75},
		reasons: []string{"", "likely): 100 % [96.3 %, 100 %] against 99 %; more requests would be needed to prove it; rate 2/s misses it: 98.5 % [95.68 %, 99.49 %] against 99 %, which may be chance", "", ""},
	}, {
		name:    "nothing was good",
		levels:  []rate{{10, 10, 0}, {20, 20, 0}},
		reasons: []string{"no request was good at any level", "misses", "", "no SLO capacity"},
	}, {
		name:    "a single level",
		levels:  []rate{{10, 10, 10}},
		want:    wanted{capacity: 10, recommended: 7.5},
		reasons: []string{"one level has no peak", "highest level tested", "at least two", ""},
	}, {
		name:    "no level",
		reasons: []string{"no valid level", "no valid level", "at least two", "no SLO capacity"},
	}} {
		t.Run(tt.name, func(t *testing.T) {
			a := answer(pointsOf(tt.levels), unitRate, DefaultHeadroom)
			value := func(a Answer) float64 {
				if a.Level == nil {
					return 0
				}
				return *a.Level
			}
			got := wanted{value(a.GoodputPeak), value(a.SLOCapacity), value(a.Saturation), value(a.Recommended)}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(wanted{})); diff != "" {
				t.Errorf("levels (-want +got):\n%s\n%+v", diff, a)
			}
			if diff := cmp.Diff(tt.similar, a.GoodputPeak.Similar, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("similar to the peak (-want +got):\n%s", diff)
			}
			for i, answer := range []Answer{a.GoodputPeak, a.SLOCapacity, a.Saturation, a.Recommended} {
				if !strings.Contains(answer.Reason, tt.reasons[i]) {
					t.Errorf("reason %q does not say %q", answer.Reason, tt.reasons[i])
				}
			}
		})
	}
}

func TestACriterionsOwnObjectiveCounts(t *testing.T) {
	r := reportOf(rate{10, 10, 10})
	r.SLO.Criteria = []CriterionReport{{Name: "ttft", Objective: new(0.999), Attainment: newShare(990, 1000)}}
	if got := r.Confidence(); got != Refuted {
		t.Errorf("confidence %q with a criterion that misses its objective, want %q", got, Refuted)
	}
	worst, _ := pointOf(r).hardest()
	if got := worst.String(); !strings.HasPrefix(got, "ttft 99 %") {
		t.Errorf("the objective that is missed: %q", got)
	}
}

func TestRecommendedConcurrencyIsWhole(t *testing.T) {
	for _, tt := range []struct{ capacity, headroom, want float64 }{{10, 0.2, 8}, {10, 0.25, 7}, {1, 0.25, 1}, {2, 0.5, 1}} {
		capacity := Answers{SLOCapacity: found(tt.capacity, 1, "")}
		if got := recommended(nil, unitConcurrency, capacity, tt.headroom); *got.Level != tt.want {
			t.Errorf("%v below concurrency %v: %v, want %v", tt.headroom, tt.capacity, *got.Level, tt.want)
		}
	}
}

func TestGoodputsDifferByWhatTheRunsVaried(t *testing.T) {
	a, b := reportOf(rate{10, 10, 10}), reportOf(rate{20, 20, 10.5})
	if different(pointOf(a), pointOf(b)) {
		t.Error("10.0 and 10.5 good requests a second over 100 s are different, taken as independent")
	}
	a.RateIntervals.Goodput, b.RateIntervals.Goodput = &Interval{9.9, 10.1}, &Interval{10.4, 10.6}
	if !different(pointOf(a), pointOf(b)) {
		t.Error("10.0 ± 0.1 and 10.5 ± 0.1 good requests a second are not different")
	}
}
