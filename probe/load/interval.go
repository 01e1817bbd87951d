package load

import "math"

// z95 is the quantile of the normal distribution for two-sided intervals of 95 %.
const z95 = 1.959963984540054

// newShare makes the share of those that met a condition. It has no ratio where there were none.
func newShare(met, of int) Share {
	s := Share{Met: met, Of: of}
	if of > 0 {
		s.Ratio = new(float64(met) / float64(of))
		s.Interval = wilson(met, of)
	}
	return s
}

// wilson is Wilson's score interval of a share: unlike the textbook's it is right near 0 and 1 and for few requests.
func wilson(met, of int) *Interval {
	const z2 = z95 * z95
	n, p := float64(of), float64(met)/float64(of)
	middle := (p + z2/(2*n)) / (1 + z2/n)
	half := z95 / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	i := Interval{Value(max(0, middle-half)), Value(min(1, middle+half))}
	// The ends that are exact are so in floating point too.
	if met == 0 {
		i.Low = 0
	}
	if met == of {
		i.High = 1
	}
	return &i
}

// batches is how many equal parts of the window the intervals of rates come from, and batchRequests how many requests
// each must hold on average: with fewer, what they vary by is mostly the luck of single requests at their borders.
const (
	batches       = 20
	batchRequests = 5
	student19     = 2.093024054408263 // quantile of Student's t with batches − 1 degrees of freedom, two-sided 95 %
)

// batchMeans is the interval of a rate by the method of batch means: the window of the starts is cut into equal parts,
// and what they varied by says how far their mean may be off. Requests of one part may depend on each other through
// the endpoint's queue; that is in it. amounts has what each part's requests came to. The drain is the luck of the last
// few answers, which may well be off by its half: drain is its share of the duration. Nil: the rate did not exist.
func batchMeans(amounts *[batches]float64, rate *float64, drain float64) *Interval {
	mean := 0.0
	for _, a := range amounts {
		mean += a / batches
	}
	if rate == nil || mean == 0 {
		return nil
	}
	squares := 0.0
	for _, a := range amounts {
		squares += (a - mean) * (a - mean)
	}
	half := *rate * math.Hypot(student19*math.Sqrt(squares/(batches-1)/batches)/mean, drain/2)
	return &Interval{Value(max(0, *rate-half)), Value(*rate + half)}
}
