package load

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The examples of Newcombe, Statistics in Medicine 17 (1998) 857-872, method 3.
func TestWilsonInterval(t *testing.T) {
	for _, tc := range []struct {
		met, of   int
		low, high float64
	}{
		{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}, {20, 20, 1 - 0.1611, 1},
	} {
		i := wilson(tc.met, tc.of)
		within(t, "low", float64(i.Low), tc.low, 5e-5)
		within(t, "high", float64(i.High), tc.high, 5e-5)
	}
}

// The median of 100 lies between the 40th and the 61st: the ranks of the textbooks (Conover, Practical Nonparametric
// Statistics). The others are by hand: 0.99ⁿ ≤ 2.5 % from n = 368 on, 0.5ⁿ from n = 6 on.
func TestQuantileRanks(t *testing.T) {
	for _, tc := range []struct {
		q         float64
		n         int
		low, high int // 0: none
	}{
		{0.5, 100, 40, 61}, {0.5, 6, 1, 6}, {0.5, 5, 0, 0}, {0.99, 368, 360, 368}, {0.99, 367, 0, 0}, {0.95, 10, 0, 0},
	} {
		low, high, ok := quantileRanks(tc.q, tc.n)
		if !ok {
			low, high = 0, 0
		}
		if low != tc.low || high != tc.high {
			t.Errorf("q %v of %d: ranks %d and %d, want %d and %d", tc.q, tc.n, low, high, tc.low, tc.high)
		}
	}
}

// An interval of 95 % must have the true quantile in it 95 times of 100, whatever the distribution.
func TestIntervalsOfQuantilesCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const runs, n = 1000, 600
	for _, q := range []float64{0.5, 0.95, 0.99} {
		truth, hits := -math.Log(1-q), 0
		for range runs {
			values := make([]float64, n)
			for i := range values {
				values[i] = rng.ExpFloat64()
			}
			if i := newSample(values).interval(q); float64(i.Low) <= truth && truth <= float64(i.High) {
				hits++
			}
		}
		if share := float64(hits) / runs; share < 0.94 {
			t.Errorf("the interval of q %v has the true value in %.1f %% of the runs, want 95 %%", q, 100*share)
		}
	}
}

func TestIntervalsOfRatesCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	const runs, mean = 2000, 12
	hits := 0
	for range runs {
		var amounts [batches]float64
		total := 0.0
		for at := rng.ExpFloat64() / mean; at < batches; at += rng.ExpFloat64() / mean {
			amounts[int(at)]++
			total++
		}
		rate := total / batches
		if i := batchMeans(&amounts, &rate, 0); i.Low <= mean && mean <= i.High {
			hits++
		}
	}
	if share := float64(hits) / runs; share < 0.93 || share > 0.97 {
		t.Errorf("the interval has the true rate in %.1f %% of the runs, want 95 %%", 100*share)
	}
}

func TestNearestRank(t *testing.T) {
	for _, tc := range []struct {
		q    float64
		n    int
		want int
	}{
		{0.5, 1, 1}, {0.5, 2, 1}, {0.5, 3, 2}, {0.95, 20, 19}, {0.95, 21, 20}, {0.99, 100, 99}, {0.99, 101, 100}, {0.99, 1_000_000, 990_000},
	} {
		if got := nearestRank(tc.q, tc.n); got != tc.want {
			t.Errorf("rank of q %v of %d is %d, want %d", tc.q, tc.n, got, tc.want)
		}
	}
}

func TestGapQuantilesAreRightTo3In1000(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	var all, one, other Gaps
	var values []float64
	for i := range 50_000 {
		gap := time.Duration(1 + 20e6*rng.ExpFloat64())
		values = append(values, gap.Seconds())
		all.Add(gap)
		if i%3 == 0 {
			one.Add(gap)
		} else {
			other.Add(gap)
		}
	}
	one.Merge(other)
	want := reference(values)
	for name, gaps := range map[string]*Gaps{"counted": &all, "merged": &one} {
		got := gaps.distribution()
		for what, pair := range map[string][2]Value{
			"p50": {got.P50, want.P50}, "p95": {got.P95, want.P95}, "p99": {got.P99, want.P99}, "max": {got.Max, want.Max},
		} {
			within(t, name+" "+what, float64(pair[0]/pair[1]), 1, 0.003)
		}
		within(t, name+" mean", float64(got.Mean), float64(want.Mean), 1e-9)
	}
}
