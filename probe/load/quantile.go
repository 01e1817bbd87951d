package load

import (
	"math"
	"slices"
)

// sample is a sorted sample. +Inf is a value like others.
type sample []float64

func newSample(values []float64) sample {
	slices.Sort(values)
	return values
}

// quantile is the value of the nearest rank, ⌈q·n⌉: no value is made up between two, which has no meaning beside +Inf.
func (s sample) quantile(q float64) float64 { return s[nearestRank(q, len(s))-1] }

// nearestRank is ⌈q·n⌉, at least 1. The product is rounded first, lest 0.95 × 20 be more than 19.
func nearestRank(q float64, n int) int {
	return max(1, int(math.Ceil(math.Round(q*float64(n)*1e9)/1e9)))
}

// interval is the distribution-free interval of a quantile: the values of two ranks between which it lies with 95 %
// confidence. How many values are below the quantile is binomial; each end is missed with at most 2.5 %. Nil: the
// sample is too small to have both ranks.
//
// It holds for independent requests. Under load they depend on each other through the queue that they share, and the
// true interval is wider.
func (s sample) interval(q float64) *Interval {
	low, high, ok := quantileRanks(q, len(s))
	if !ok {
		return nil
	}
	return &Interval{Value(s[low-1]), Value(s[high-1])}
}

// quantileRanks returns the greatest rank below which a q-quantile lies with at most 2.5 %, and the least above which it
// does: with B binomial(n, q), P(B < low) ≤ 0.025 and P(B ≥ high) ≤ 0.025.
func quantileRanks(q float64, n int) (low, high int, ok bool) {
	const tail = 0.025
	mean, deviation := q*float64(n), math.Sqrt(q*(1-q)*float64(n))
	first := max(0, int(mean-8*deviation)-1) // what lies further below has no weight
	below := 0.0                             // P(B ≤ k)
	for k := first; k < n; k++ {
		below += binomial(n, k, q)
		if below <= tail {
			low = k + 1
		}
		if 1-below <= tail {
			return low, k + 1, low > 0
		}
	}
	return 0, 0, false
}

// binomial is the chance of k successes in n tries that succeed with p each.
func binomial(n, k int, p float64) float64 {
	return math.Exp(logChoose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

func logChoose(n, k int) float64 { return logFactorial(n) - logFactorial(k) - logFactorial(n-k) }

func logFactorial(n int) float64 {
	v, _ := math.Lgamma(float64(n) + 1)
	return v
}

// distribution describes values, which it sorts. Nil: there are none.
func distribution(values []float64) *Distribution {
	if len(values) == 0 {
		return nil
	}
	s := newSample(values)
	sum := 0.0
	for _, v := range s {
		sum += v
	}
	return &Distribution{
		Count: len(s), Mean: Value(sum / float64(len(s))), Min: Value(s[0]), Max: Value(s[len(s)-1]),
		P50: Value(s.quantile(0.50)), P95: Value(s.quantile(0.95)), P99: Value(s.quantile(0.99)),
		P50Interval: s.interval(0.50), P95Interval: s.interval(0.95), P99Interval: s.interval(0.99),
	}
}
