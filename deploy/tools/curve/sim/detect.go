package sim

import (
	"math"
	"time"

	"goodput_exporter/collector"
)

// Detector is a sequential test on the good and bad probes of one series, as a daemon could run it: an alternative to
// windows in PromQL.
type Detector interface {
	// Observe takes the next probe in.
	Observe(bad bool)
	// Score is the evidence for a lasting drop. The alert fires above 1.
	Score() float64
}

// cusumCap bounds a CUSUM, in multiples of its threshold, so that it falls again soon after a drop ends.
const cusumCap = 2

// BernoulliCUSUM is Page's test of independent probes: share p0 is bad, against share p1. Its blind spot is bursts.
type BernoulliCUSUM struct {
	good, bad, threshold float64
	sum                  float64
}

// NewBernoulliCUSUM returns Page's test with its threshold in nats of the log-likelihood ratio.
func NewBernoulliCUSUM(p0, p1, threshold float64) *BernoulliCUSUM {
	return &BernoulliCUSUM{good: math.Log((1 - p1) / (1 - p0)), bad: math.Log(p1 / p0), threshold: threshold}
}

// Observe implements Detector.
func (c *BernoulliCUSUM) Observe(bad bool) {
	step := c.good
	if bad {
		step = c.bad
	}
	c.sum = min(max(c.sum+step, 0), cusumCap*c.threshold)
}

// Score implements Detector.
func (c *BernoulliCUSUM) Score() float64 { return c.sum / c.threshold }

// MarkovCUSUM is the test of the exporter's [DropScore] with any null models, alternatives and threshold: what ships was
// chosen among its variants.
type MarkovCUSUM struct {
	nulls     []burstFilter
	drops     [][2]float64 // log-likelihood of a good and of a bad probe under each alternative
	sums      [][]float64  // by alternative and null
	threshold float64
}

// burstFilter holds the probability that the chain is in a burst, given all probes so far.
type burstFilter struct {
	enter, leave float64
	fail         [2]float64 // probability of a bad probe outside and inside of a burst
	inBurst      float64
}

// NewMarkovCUSUM returns the test for null models with the given bursts, each with the share p0 of probes bad in all,
// against shares of bad probes. A fifth of the null's bad probes stand alone.
func NewMarkovCUSUM(p0 float64, bursts []Burst, drops []float64, threshold float64) *MarkovCUSUM {
	const alone = 0.2
	c := &MarkovCUSUM{threshold: threshold}
	for _, b := range bursts {
		share := (1 - alone) * p0 / b.Severity
		leave := 1 / b.Length
		c.nulls = append(c.nulls, burstFilter{
			enter: leave * share / (1 - share), leave: leave, fail: [2]float64{alone * p0, b.Severity}, inBurst: share,
		})
	}
	for _, p := range drops {
		c.drops = append(c.drops, [2]float64{math.Log(1 - p), math.Log(p)})
		c.sums = append(c.sums, make([]float64, len(bursts)))
	}
	return c
}

// Observe implements Detector.
func (c *MarkovCUSUM) Observe(bad bool) {
	result := 0
	if bad {
		result = 1
	}
	for n := range c.nulls {
		null := c.nulls[n].observe(bad)
		for d := range c.drops {
			sum := c.sums[d][n] + c.drops[d][result] - null
			c.sums[d][n] = min(max(sum, 0), cusumCap*c.threshold)
		}
	}
}

// observe takes a probe in and returns the log of the probability that it had.
func (f *burstFilter) observe(bad bool) float64 {
	in := f.inBurst*(1-f.leave) + (1-f.inBurst)*f.enter
	outside, inside := f.fail[0], f.fail[1]
	if !bad {
		outside, inside = 1-outside, 1-inside
	}
	p := (1-in)*outside + in*inside
	f.inBurst = in * inside / p
	return math.Log(p)
}

// Score implements Detector.
func (c *MarkovCUSUM) Score() float64 {
	best := 0.0
	for _, sums := range c.sums {
		least := sums[0]
		for _, s := range sums[1:] {
			least = min(least, s)
		}
		best = max(best, least)
	}
	return best / c.threshold
}

// DropScore is the exporter's own score, as it ships.
type DropScore struct {
	score *collector.DropScore
}

// NewDropScore returns the score for an objective given as a share and a probe interval.
func NewDropScore(objective float64, interval time.Duration) DropScore {
	return DropScore{collector.NewDropScore(objective, interval)}
}

// Observe implements Detector.
func (d DropScore) Observe(bad bool) { d.score.Observe(!bad) }

// Score implements Detector.
func (d DropScore) Score() float64 { return d.score.Score() }
