package live

import (
	"math"
	"time"
)

// maxSLOs is how many SLOs a series can have: goodput, availability and every criterion. A verdict on each is a bit of a
// byte.
const maxSLOs = 8

// The first SLOs of every series; its criteria follow.
const (
	goodput = iota
	availability
	firstCriterion
)

// count is that of good and bad attempts.
type count struct{ good, bad uint32 }

func (c count) all() uint32 { return c.good + c.bad }

// tally counts by SLO.
type tally [maxSLOs]count

func (t *tally) add(rec *record) {
	for slo := range t {
		t[slo].good += uint32(rec.good >> slo & 1)
		t[slo].bad += uint32(rec.bad >> slo & 1)
	}
}

func (t *tally) remove(rec *record) {
	for slo := range t {
		t[slo].good -= uint32(rec.good >> slo & 1)
		t[slo].bad -= uint32(rec.bad >> slo & 1)
	}
}

// The windows, by what remembers them: each record, the 5-minute buckets, the hour buckets.
const (
	m2 = iota
	m4
	m5
	m8
	m30
	m40
	h1
	h2
	h6
	d1
	d3
	windowCount
)

var spans = [windowCount]time.Duration{
	2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 8 * time.Minute, 30 * time.Minute, 40 * time.Minute, time.Hour,
	2 * time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour,
}

var windowNames = [windowCount]string{"2m", "4m", "5m", "8m", "30m", "40m", "1h", "2h", "6h", "1d", "3d"}

// shown are the windows of a Status.
var shown = [...]int{m5, h1, h6, d1}

// memory is what a series remembers of its attempts. Its windows slide: to be right, they must be slid to now before they
// are read.
type memory struct {
	records records
	minutes buckets // of 5 minutes, for windows up to a day
	hours   buckets // for longer ones
	day     day
}

const bucketWidth = 5 * time.Minute

func newMemory(slos int) memory {
	return memory{
		minutes: newBuckets(bucketWidth, spans[h2:d3], slos),
		hours:   newBuckets(time.Hour, spans[d3:], slos),
	}
}

func (m *memory) add(rec record) {
	m.slide(rec.at)
	m.records.add(rec)
	if !rec.attempt() {
		return
	}
	m.minutes.add(&rec)
	m.hours.add(&rec)
	m.day.add(&rec)
}

// slide makes all windows end now. None ever goes back.
func (m *memory) slide(now instant) {
	m.records.slide(now)
	m.minutes.slide(now)
	m.hours.slide(now)
}

// count returns that of a window and an SLO.
func (m *memory) count(window, slo int) count {
	switch {
	case window < h2:
		return m.records.windows[window].tally[slo]
	case window < d3:
		return m.minutes.windows[window-h2].tally[slo]
	}
	return m.hours.windows[window-d3].tally[slo]
}

// cell counts within one bucket. The shortest interval leaves an hour far from overflow.
type cell struct{ good, bad uint16 }

// buckets count attempts by time, in a ring. Their edges are multiples of the width by Unix time, so that they are the
// same after a restart.
type buckets struct {
	width   instant
	slos    int
	last    int64  // number of the newest bucket: instant / width
	cells   []cell // slos of them a bucket
	windows []bucketWindow
}

// bucketWindow sums the buckets from the first one to the last.
type bucketWindow struct {
	span  instant
	first int64 // number of a bucket
	tally tally
}

// newBuckets returns buckets for windows of these spans, the longest last.
func newBuckets(width time.Duration, spans []time.Duration, slos int) buckets {
	n := int(spans[len(spans)-1]/width) + 2 // at both ends is one that is not whole
	b := buckets{width: instant(width), slos: slos, cells: make([]cell, n*slos)}
	for _, span := range spans {
		b.windows = append(b.windows, bucketWindow{span: instant(span)})
	}
	return b
}

// add counts a record. The windows must have slid to its time.
func (b *buckets) add(rec *record) {
	number := int64(rec.at / b.width)
	b.last = max(b.last, number-int64(len(b.cells)/b.slos))
	for b.last < number {
		b.last++
		clear(b.bucket(b.last))
	}
	bucket := b.bucket(number)
	for slo := range bucket {
		bucket[slo].good += uint16(rec.good >> slo & 1)
		bucket[slo].bad += uint16(rec.bad >> slo & 1)
	}
	for i := range b.windows {
		if w := &b.windows[i]; number >= w.first {
			w.tally.add(rec)
		}
	}
}

func (b *buckets) bucket(number int64) []cell {
	n := int64(len(b.cells) / b.slos)
	i := int(number%n) * b.slos
	return b.cells[i : i+b.slos]
}

// slide lets go of the buckets before the windows that end now. Each begins at the nearest edge of a bucket.
func (b *buckets) slide(now instant) {
	for i := range b.windows {
		w := &b.windows[i]
		first := int64((now - w.span + b.width/2) / b.width)
		for ; w.first < min(first, b.last+1); w.first++ {
			for slo, c := range b.bucket(w.first) {
				w.tally[slo].good -= uint32(c.good)
				w.tally[slo].bad -= uint32(c.bad)
			}
		}
		w.first = max(w.first, first)
	}
}

// z of the Wilson score intervals: two-sided 95 %, and one-sided 99 %, as in the recording rules.
const (
	z95 = 1.959964
	z99 = 2.326348
)

// wilson returns the bounds of the share of k among n, which is not 0.
func wilson(k, n, z float64) (lower, upper float64) {
	middle := k + z*z/2
	half := z * math.Sqrt(k*(n-k)/n+z*z/4)
	return (middle - half) / (n + z*z), (middle + half) / (n + z*z)
}
