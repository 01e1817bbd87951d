package chart

import (
	"math"
	"strconv"
	"time"
)

// scale maps values from 0 on to pixels.
type scale struct {
	top   float64 // the value at the end of the axis
	from  float64 // pixel of 0
	to    float64 // pixel of top
	ticks []float64
}

// newScale returns a scale that holds most, with about n round ticks.
func newScale(most, from, to float64, n int) scale {
	if most <= 0 || math.IsNaN(most) || math.IsInf(most, 0) {
		most = 1
	}
	step := roundUp(most / float64(n))
	s := scale{from: from, to: to}
	for i := 0; s.top < most; i++ {
		s.top = float64(i+1) * step
		s.ticks = append(s.ticks, float64(i)*step)
	}
	s.ticks = append(s.ticks, s.top)
	return s
}

func (s scale) at(v float64) float64 { return s.from + (s.to-s.from)*min(max(v/s.top, 0), 1) }

// roundUp returns the next of 1, 2, 2.5 and 5 times a power of ten.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if v <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// Seconds writes a duration in seconds with three digits and a unit that suits: "812 ms", "1.84 s".
func Seconds(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.9995e-3:
		return digits(v*1e6) + " µs"
	case v < 0.9995:
		return digits(v*1e3) + " ms"
	case v < 120:
		return digits(v) + " s"
	}
	return time.Duration(v * float64(time.Second)).Round(time.Second).String()
}

// digits writes three of them.
func digits(v float64) string {
	precision := 0
	switch {
	case v < 9.995:
		precision = 2
	case v < 99.95:
		precision = 1
	}
	text := strconv.FormatFloat(v, 'f', precision, 64)
	if rounded, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.FormatFloat(rounded, 'f', -1, 64) // without zeros at the end
	}
	return text
}
