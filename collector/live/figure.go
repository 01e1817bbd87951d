package live

import (
	"math"
	"slices"
	"time"
)

// day holds the distributions of the figures, by hour.
type day struct {
	last  int64 // number of the newest hour: instant / hour
	hours [hoursKept][figureCount]sketch
}

const hoursKept = 25 // at both ends of a day is one that is not whole

func (d *day) add(rec *record) {
	number := int64(rec.at / instant(time.Hour))
	d.last = max(d.last, number-hoursKept)
	for d.last < number {
		d.last++
		hour := &d.hours[d.last%hoursKept]
		for f := range hour {
			hour[f] = hour[f][:0]
		}
	}
	hour := &d.hours[number%hoursKept]
	for f := range hour {
		if v, ok := rec.figure(f); ok {
			hour[f].add(v)
		}
	}
}

// distribution is that of a figure in the last 24 hours, which begin at the nearest full hour.
func (d *day) distribution(f int, now instant) Distribution {
	var merged [sketchBins]uint32
	n := 0
	first := int64((now - instant(24*time.Hour) + instant(time.Hour/2)) / instant(time.Hour))
	for number := max(first, d.last-hoursKept+1); number <= d.last; number++ {
		for _, b := range d.hours[number%hoursKept][f] {
			merged[b.index] += uint32(b.n)
			n += int(b.n)
		}
	}
	return distribution(n, func(rank int) float64 {
		for index, c := range &merged {
			if rank -= int(c); rank <= 0 {
				return middle(index)
			}
		}
		return middle(sketchBins - 1)
	})
}

// sketch is a histogram with logarithmic bins: those that hold something, in order. Sketches add up, and every value
// between leastValue and more than 10,000 s is known to within sketchError.
type sketch []bin

type bin struct{ index, n uint16 }

const (
	sketchError = 0.05 // relative
	sketchBins  = 200
	leastValue  = 20e-6 // seconds; shorter ones count as this
)

// A bin's upper edge is its lower edge times growth.
var logGrowth = math.Log((1 + sketchError) / (1 - sketchError))

func (s *sketch) add(v float64) {
	index := uint16(min(max(math.Ceil(math.Log(v/leastValue)/logGrowth), 0), sketchBins-1))
	at, found := slices.BinarySearchFunc(*s, index, func(b bin, index uint16) int { return int(b.index) - int(index) })
	if !found {
		*s = slices.Insert(*s, at, bin{index: index})
	}
	(*s)[at].n++
}

// middle is the value that is within sketchError of all that a bin holds.
func middle(index int) float64 {
	return leastValue * math.Exp(float64(index)*logGrowth) * (1 - sketchError)
}

// recent is how far the figures of now look back, and fewest how many values they want at least.
const (
	recent = 15 * time.Minute
	fewest = 20
)

// distribution is that of a figure now: of the recent records, or of the fewest last that have it.
func (r *records) distribution(f int, now instant) Distribution {
	values := make([]float64, 0, 2*minRecords)
	for i := range r.len() {
		rec := r.back(i)
		if rec.at <= now-instant(recent) && len(values) >= fewest {
			break
		}
		if v, ok := rec.figure(f); ok {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return distribution(len(values), func(rank int) float64 { return values[rank-1] })
}

// distribution is that of n values, of which ranked returns the one of a rank, from 1. Quantiles are by nearest rank.
func distribution(n int, ranked func(rank int) float64) Distribution {
	if n == 0 {
		return Distribution{}
	}
	quantile := func(q float64) *float64 {
		v := round(ranked(int(math.Ceil(q * float64(n)))))
		return &v
	}
	return Distribution{Count: n, P50: quantile(0.5), P95: quantile(0.95)}
}
