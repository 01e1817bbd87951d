package report

import "math"

// scale maps values of an axis to coordinates.
type scale struct {
	min, max float64
	log      bool
	from, to float64 // coordinates of min and max
}

// at returns the coordinate of a value; one beyond the ends lies at the end.
func (s scale) at(v float64) float64 {
	v = min(max(v, s.min), s.max)
	low, high := s.min, s.max
	if s.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	if high == low {
		return (s.from + s.to) / 2
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// linear returns a range around values that begins and ends at round numbers, and about n ticks in it.
func linear(low, high float64, n int) (from, to float64, ticks []float64) {
	if high <= low {
		high = low + 1
	}
	step := roundStep((high - low) / float64(n))
	first, last := math.Floor(low/step+1e-9), math.Ceil(high/step-1e-9)
	for i := first; i <= last; i++ {
		ticks = append(ticks, i*step)
	}
	return first * step, last * step, ticks
}

// roundStep returns the least of 1, 2, 2.5 and 5 times a power of ten that is not below a step.
func roundStep(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= step*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logarithmic returns a range around positive values that begins and ends at 1, 2 or 5 times a power of ten, and the
// ticks in it: all of those, or powers of ten alone where there would be more than n.
func logarithmic(low, high float64, n int) (from, to float64, ticks []float64) {
	var all, powers []float64
	for e := math.Floor(math.Log10(low)) - 1; e <= math.Ceil(math.Log10(high))+1; e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v <= low*(1+1e-9) {
				from, all, powers = v, nil, nil // begin anew: the last one below is the first tick
			}
			all = append(all, v)
			if m == 1 {
				powers = append(powers, v)
			}
			if v >= high*(1-1e-9) && v > from {
				if len(all) > n {
					return from, v, powers
				}
				return from, v, all
			}
		}
	}
	return low, high, nil
}
