package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// The kinds of arrival processes.
const (
	Constant = "constant" // one request every 1/rate seconds
	Poisson  = "poisson"  // independent users: exponential gaps
	Gamma    = "gamma"    // gamma gaps: burstier than Poisson, or steadier
)

// ArrivalKinds lists the kinds of arrival processes in the order of the documentation.
var ArrivalKinds = []string{Constant, Poisson, Gamma}

// Arrivals says when the requests of an open loop are due, as offsets from the start of the run. The schedule is
// absolute: how late a request really starts moves none of the later ones. It is for one goroutine.
type Arrivals struct {
	kind  string
	rate  float64 // per second
	shape float64 // of the gamma distribution
	n     float64 // how many were returned
	at    float64 // the last offset in seconds, of kinds with random gaps
	rng   *rand.Rand
}

// NewArrivals returns an arrival process of so many requests a second; the seed decides its random gaps.
//
// Burstiness is the shape of the gamma distribution, at a mean gap of 1/rate whatever the shape: 1 is Poisson, less
// is burstier, more is steadier; the gaps' coefficient of variation is 1/√burstiness. It means the same as in the
// benchmark of vLLM. The other kinds have none: they take 1, or 0 for not given.
func NewArrivals(kind string, rate, burstiness float64, seed uint64) (*Arrivals, error) {
	switch {
	case !slices.Contains(ArrivalKinds, kind):
		return nil, fmt.Errorf("unknown kind of arrivals %q: it must be one of %s", kind, strings.Join(ArrivalKinds, ", "))
	case !positive(rate):
		return nil, fmt.Errorf("a rate of %v requests a second: it must be a number more than 0", rate)
	case kind == Gamma && !positive(burstiness):
		return nil, fmt.Errorf("a burstiness of %v: it must be a number more than 0, such as 0.5 (bursty), 1 (Poisson) or 4 (steady)", burstiness)
	case kind != Gamma && burstiness != 0 && burstiness != 1:
		return nil, fmt.Errorf("a burstiness of %v with %s arrivals: only %s ones have a burstiness", burstiness, kind, Gamma)
	}
	// A stream of its own: the prompts of a run may be drawn by the same seed.
	return &Arrivals{kind: kind, rate: rate, shape: burstiness, rng: rand.New(rand.NewPCG(seed, arrivalStream))}, nil
}

const arrivalStream = 1

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

// Next returns the next offset. The n-th constant one, counted from 0, is exactly n/rate; a random one is the sum of
// all gaps so far, the first one included. So in any d seconds from the start rate × d requests are due: exactly, or
// on average.
func (a *Arrivals) Next() time.Duration {
	switch a.kind {
	case Constant:
		a.at = a.n / a.rate
	case Poisson:
		a.at += a.rng.ExpFloat64() / a.rate
	case Gamma:
		a.at += gamma(a.rng, a.shape) / a.shape / a.rate
	}
	a.n++
	return seconds(a.at)
}

// seconds converts seconds to the nearest nanosecond. What is farther away than 146 years never comes anyway.
func seconds(s float64) time.Duration {
	return time.Duration(math.Round(min(s*float64(time.Second), 1<<62)))
}

// gamma draws from the gamma distribution of a shape and of scale 1, by the method of Marsaglia and Tsang (ACM
// Transactions on Mathematical Software 26:3, 2000).
func gamma(rng *rand.Rand, shape float64) float64 {
	if shape < 1 {
		// 1 − U is in (0, 1]: a logarithm that exists.
		return gamma(rng, shape+1) * math.Pow(1-rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		u := 1 - rng.Float64()
		if math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
