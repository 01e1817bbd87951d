package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var everyProbe = Clock{Interval: 15 * time.Second, Scrape: 15 * time.Second, Record: 30 * time.Second}

func TestFailuresHaveTheRateAskedFor(t *testing.T) {
	const probes = 2_000_000
	rng := rand.New(rand.NewPCG(1, 1))
	for name, failures := range map[string]Failures{
		"independent":       NewIndependent(rng, 0.05),
		"all bad":           NewIndependent(rng, 1),
		"none bad":          NewIndependent(rng, 0),
		"bursts of 4":       NewBursty(rng, 0.05, Burst{Length: 4, Severity: 0.9}),
		"bursts of a probe": NewBursty(rng, 0.05, Burst{Length: 1, Severity: 1}),
		"half-bad bursts":   NewBursty(rng, 0.05, Burst{Length: 8, Severity: 0.5}),
	} {
		want := map[string]float64{"all bad": 1, "none bad": 0}
		rate, ok := want[name]
		if !ok {
			rate = 0.05
		}
		bad := 0
		for range probes {
			if failures.Bad() {
				bad++
			}
		}
		if got := float64(bad) / probes; math.Abs(got-rate) > 0.03*rate {
			t.Errorf("%s: %.4f of the probes are bad, want %.4f", name, got, rate)
		}
	}
}

func TestBurstsHaveTheLengthAskedFor(t *testing.T) {
	failures := NewBursty(rand.New(rand.NewPCG(1, 2)), 0.02, Burst{Length: 8, Severity: 1})
	bursts, bad, was := 0, 0, false
	for range 1_000_000 {
		is := failures.Bad()
		if is {
			bad++
			if !was {
				bursts++
			}
		}
		was = is
	}
	if got := float64(bad) / float64(bursts); math.Abs(got-8) > 0.5 {
		t.Errorf("a burst is %.2f probes long in the mean, want 8", got)
	}
}

func TestStreamHoldsEachProbeOnce(t *testing.T) {
	for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second, 60 * time.Second} {
		rng := rand.New(rand.NewPCG(1, 3))
		s := NewStream(rng, Clock{Interval: interval, Scrape: 15 * time.Second, Record: 30 * time.Second}, nil)
		s.Run(NewIndependent(rng, 0.3), 30*time.Minute)
		s.Run(NewIndependent(rng, 1), 30*time.Minute)
		last := s.Scrapes() - 1
		if got, want := int(s.Good[last]+s.Bad[last]), int(time.Hour/interval); got != want {
			t.Errorf("%v: %d probes in an hour, want %d", interval, got, want)
		}
	}
}

func TestWilsonLowerBound(t *testing.T) {
	for _, tt := range []struct{ bad, n, want float64 }{
		{1, 1, 0.156}, {2, 2, 0.27}, {5, 5, 0.48}, {20, 20, 0.787}, {0, 20, 0},
	} {
		if got := wilsonLower(tt.bad, tt.n, 2.326348); math.Abs(got-tt.want) > 0.002 {
			t.Errorf("%v of %v: the lower bound is %.3f, want %.3f", tt.bad, tt.n, got, tt.want)
		}
	}
}

func TestKeepFiringForOutlastsTheCondition(t *testing.T) {
	holds := map[int]bool{2: true, 3: true, 4: true, 6: true}
	a := Alert{hold: 15 * time.Second, keepFiringFor: 45 * time.Second}
	var firing []int
	for at := range 12 {
		a.held = holds[at]
		if a.state = a.next(at, 15*time.Second); a.Firing() {
			firing = append(firing, at)
		}
	}
	if diff := cmp.Diff([]int{3, 4, 5, 6, 7, 8, 9}, firing); diff != "" {
		t.Errorf("firing (-want +got):\n%s", diff)
	}
}

func TestSameSeedSameResult(t *testing.T) {
	setup := Setup{Clock: everyProbe, Objective: 0.99, Rules: []Rules{Windows(), Plain()}, Seed: 7}
	drop := func(rng *rand.Rand) Failures { return NewIndependent(rng, 0.5) }
	first := setup.Drop(drop, 8, 2*time.Hour)
	if diff := cmp.Diff(first, setup.Drop(drop, 8, 2*time.Hour)); diff != "" {
		t.Errorf("the same seed gives another result (-first +second):\n%s", diff)
	}
	setup.Seed++
	if cmp.Equal(first, setup.Drop(drop, 8, 2*time.Hour)) {
		t.Error("another seed gives the same result")
	}
}

func TestTotalOutagePagesWithinFourMinutes(t *testing.T) {
	setup := Setup{Clock: everyProbe, Objective: 0.95, Rules: []Rules{Windows()}, Seed: 1}
	page := setup.Drop(func(rng *rand.Rand) Failures { return NewIndependent(rng, 1) }, 100, time.Hour)[0].Page
	if worst := page[len(page)-1]; worst > 4*time.Minute {
		t.Errorf("the slowest of %d pages came after %v", len(page), worst)
	}
}

func TestQuantileOfDelaysThatNeverCame(t *testing.T) {
	delays := []time.Duration{1, 2, 3, Never, Never}
	if got, _, ok := Quantile(delays, 0.5); !ok || got != 3 {
		t.Errorf("median is %v, %v, want 3, true", got, ok)
	}
	if _, _, ok := Quantile(delays, 0.9); ok {
		t.Error("the 90th percentile of delays of which 40 % never came exists")
	}
	if got := Share(delays); got != 0.6 {
		t.Errorf("share is %v, want 0.6", got)
	}
}

// The variants that the drop score is held against are of the test that ships: with its parameters they give its scores.
func TestMarkovCUSUMIsTheTestThatShips(t *testing.T) {
	for _, objective := range []float64{0.9, 0.95, 0.99, 0.999} {
		for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute} {
			budget, length := 1-objective, max(8, float64(2*time.Minute)/float64(interval))
			variant := NewMarkovCUSUM(budget,
				[]Burst{{Length: 1, Severity: 1}, {Length: length, Severity: 0.9}, {Length: length, Severity: 0.5}},
				[]float64{min(max(0.3, 8*budget), 0.6), 0.6, 0.95}, 18)
			ships := NewDropScore(objective, interval)
			rng := rand.New(rand.NewPCG(1, 4))
			highest := 0.0
			for _, bad := range []float64{budget, 0.5, 0, 1, budget, 0.2, 0.9} {
				for range 300 {
					is := rng.Float64() < bad
					variant.Observe(is)
					ships.Observe(is)
					if got, want := variant.Score(), ships.Score(); math.Abs(got-want) > 1e-9 {
						t.Fatalf("%v every %v: %v, the exporter says %v", objective, interval, got, want)
					}
					highest = max(highest, ships.Score())
				}
			}
			if highest <= 1 {
				t.Errorf("%v every %v: the stream shows no drop", objective, interval)
			}
		}
	}
}

func TestDropScoreTellsADropFromABurst(t *testing.T) {
	score := func(objective float64, interval time.Duration, outcomes string, times int) float64 {
		d := NewDropScore(objective, interval)
		for range 500 {
			d.Observe(false)
		}
		for range times {
			for _, c := range outcomes {
				d.Observe(c == 'x')
			}
		}
		return d.Score()
	}
	for _, tt := range []struct {
		name     string
		outcomes string
		times    int
		above    bool
	}{
		{"one bad probe", "x", 1, false},
		{"a burst of 16", "x", 16, false},
		{"a bad probe in ten", "x.........", 1, false},
		{"20 minutes without an answer", "x", 80, true},
		{"40 minutes of every third probe bad", "x..", 53, true},
	} {
		if got := score(0.99, 15*time.Second, tt.outcomes, tt.times); (got > 1) != tt.above {
			t.Errorf("%s: the score is %.2f, above 1 should be %v", tt.name, got, tt.above)
		}
	}
}

func TestDropScoreFallsAfterTheDrop(t *testing.T) {
	d := NewDropScore(0.99, 15*time.Second)
	for range 1000 {
		d.Observe(true)
	}
	for probes := 1; probes <= 240; probes++ {
		if d.Observe(false); d.Score() <= 1 {
			t.Logf("below 1 after %d good probes", probes)
			return
		}
	}
	t.Errorf("an hour of good probes after a drop, and the score is still %.2f", d.Score())
}
