package collector

import (
	"math"
	"time"
)

// DropScore says from the good and bad attempts of one series, in their order, whether its goodput has dropped: above
// 1 it has. It is Page's test (CUSUM) against null models that know bursts: hidden Markov chains with a state in which
// an attempt fails rarely, at the rate of the error budget, and a state of bursts. A drop must be less likely under
// each of the nulls than under one of the alternatives, in which attempts fail independently. That makes it quicker
// than burn rates at a partial drop, and quiet at the bursts of failures that real endpoints show; the operating
// curve beside the alerting rules has the figures.
type DropScore struct {
	nulls []burstFilter
	drops [][2]float64 // log-likelihood of a good and of a bad attempt under each alternative
	sums  [][]float64  // by alternative and null
}

const (
	dropThreshold = 18 // of a sum: the score is 1
	dropCap       = 2 * dropThreshold
	aloneShare    = 0.2 // of a null's bad attempts, those that stand alone
)

// NewDropScore returns the score of a series with this objective, a ratio above 0.5 and below 1, probed at this
// interval. Bursts of 2 minutes or 8 attempts, whichever is more, in which nearly all or half of the attempts fail,
// are no drop; nor are single bad attempts at the rate of the error budget.
func NewDropScore(objective float64, interval time.Duration) *DropScore {
	budget := 1 - objective
	length := max(8, float64(2*time.Minute)/float64(interval))
	s := &DropScore{nulls: []burstFilter{
		newBurstFilter(budget, 1, 1), newBurstFilter(budget, length, 0.9), newBurstFilter(budget, length, 0.5),
	}}
	for _, bad := range []float64{min(max(0.3, 8*budget), 0.6), 0.6, 0.95} {
		s.drops = append(s.drops, [2]float64{math.Log(1 - bad), math.Log(bad)})
		s.sums = append(s.sums, make([]float64, len(s.nulls)))
	}
	return s
}

// Observe takes the next attempt in.
func (s *DropScore) Observe(good bool) {
	result := 1
	if good {
		result = 0
	}
	for n := range s.nulls {
		null := s.nulls[n].observe(good)
		for d := range s.drops {
			s.sums[d][n] = min(max(s.sums[d][n]+s.drops[d][result]-null, 0), dropCap)
		}
	}
}

// Reset forgets all attempts.
func (s *DropScore) Reset() {
	for n := range s.nulls {
		s.nulls[n].reset()
	}
	for _, sums := range s.sums {
		clear(sums)
	}
}

// Score returns the score: 0 while all is well, above 1 when goodput has dropped, 2 at most.
func (s *DropScore) Score() float64 {
	best := 0.0
	for _, sums := range s.sums {
		least := sums[0]
		for _, sum := range sums[1:] {
			least = min(least, sum)
		}
		best = max(best, least)
	}
	return best / dropThreshold
}

// burstFilter follows one null model: it holds the probability that the chain is in a burst, given all attempts so
// far.
type burstFilter struct {
	enter, leave float64
	fail         [2]float64 // probability of a bad attempt outside and inside of a burst
	inBurst      float64
}

// newBurstFilter returns the null model with this share of bad attempts in all, in bursts of this mean length in which
// attempts are bad with this probability.
func newBurstFilter(bad, length, severity float64) burstFilter {
	share := (1 - aloneShare) * bad / severity
	leave := 1 / length
	f := burstFilter{enter: leave * share / (1 - share), leave: leave, fail: [2]float64{aloneShare * bad, severity}}
	f.reset()
	return f
}

// reset forgets all attempts: what is left is the share of the time that the chain is in a burst.
func (f *burstFilter) reset() { f.inBurst = f.enter / (f.enter + f.leave) }

// observe takes an attempt in and returns the log of the probability that it had.
func (f *burstFilter) observe(good bool) float64 {
	in := f.inBurst*(1-f.leave) + (1-f.inBurst)*f.enter
	outside, inside := f.fail[0], f.fail[1]
	if good {
		outside, inside = 1-outside, 1-inside
	}
	p := (1-in)*outside + in*inside
	f.inBurst = in * inside / p
	return math.Log(p)
}
