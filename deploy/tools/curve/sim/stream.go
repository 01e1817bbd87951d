// Package sim simulates streams of probes and the alerts that Prometheus would raise on them.
//
// Time is a grid of scrapes. A stream is kept as the two counters that goodput_slo_events_total holds at each scrape,
// so every increase over a window is a difference of two numbers and a month of evaluations costs milliseconds.
package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Failures says of one probe after the other whether it is bad.
type Failures interface {
	Bad() bool
}

// Independent fails each probe with the same probability, whatever happened before.
type Independent struct {
	rng  *rand.Rand
	rate float64
	left int64 // good probes before the next bad one
}

// NewIndependent returns failures with the given probability, 0 to 1.
func NewIndependent(rng *rand.Rand, rate float64) *Independent {
	f := &Independent{rng: rng, rate: rate}
	f.left = geometric(rng, rate)
	return f
}

// Bad implements Failures.
func (f *Independent) Bad() bool {
	if f.left > 0 {
		f.left--
		return false
	}
	f.left = geometric(f.rng, f.rate)
	return true
}

// Burst describes failures that come in bursts: a Markov chain with a good state, in which no probe fails, and a bad
// state, which lasts Length probes in the mean and in which each probe fails with probability Severity.
type Burst struct {
	Length   float64 // probes, at least 1
	Severity float64 // 0 to 1
}

// Bursty fails probes in bursts.
type Bursty struct {
	rng          *rand.Rand
	burst        Burst
	enter, leave float64 // probability per probe of changing the state
	bad          bool
	left         int64 // probes until the state changes
}

// NewBursty returns failures that are bursty and make up the given share of all probes in the long run. The rate must
// be below the burst's severity.
func NewBursty(rng *rand.Rand, rate float64, burst Burst) *Bursty {
	share := rate / burst.Severity // of probes in the bad state
	f := &Bursty{rng: rng, burst: burst, leave: 1 / burst.Length}
	f.enter = f.leave * share / (1 - share)
	f.left = geometric(rng, f.enter) // the stream begins in the good state
	return f
}

// Bad implements Failures.
func (f *Bursty) Bad() bool {
	if f.left == 0 {
		f.bad = !f.bad
		if f.bad {
			f.left = 1 + geometric(f.rng, f.leave)
		} else {
			f.left = 1 + geometric(f.rng, f.enter)
		}
	}
	f.left--
	return f.bad && f.rng.Float64() < f.burst.Severity
}

// geometric draws the number of trials without success before the first one with it.
func geometric(rng *rand.Rand, p float64) int64 {
	switch {
	case p >= 1:
		return 0
	case p <= 0:
		return math.MaxInt64
	}
	return int64(math.Log(1-rng.Float64()) / math.Log1p(-p))
}

// Clock says when things happen.
type Clock struct {
	Interval time.Duration // between two probes of the series
	Scrape   time.Duration // between two scrapes, and between two evaluations of the alerts
	Record   time.Duration // between two evaluations of the recording rules; a multiple of Scrape
}

// Stream is one series of probes as Prometheus stores it.
type Stream struct {
	Clock Clock
	// RecordLag and AlertLag are the ages of the last scrape when the recording rules and when the alerts, which
	// are another group, are evaluated: 0 to less than Clock.Scrape.
	RecordLag, AlertLag time.Duration
	// Good and Bad are the values of the counters at each scrape. Both are 0 at the birth of the series, which
	// is scrape 0.
	Good, Bad []int32
	// Score is the value at each scrape of the detector's gauge. It is empty where no detector was asked for.
	Score []float32

	due      time.Duration // from the last scrape to the next probe
	good     int32
	bad      int32
	detector Detector
}

// NewStream returns an empty stream: its scrapes, its probes and the evaluations stand in random phases to
// each other. The detector may be nil.
func NewStream(rng *rand.Rand, clock Clock, detector Detector) *Stream {
	s := &Stream{
		Clock:     clock,
		RecordLag: time.Duration(rng.Int64N(int64(clock.Scrape))),
		AlertLag:  time.Duration(rng.Int64N(int64(clock.Scrape))),
		due:       time.Duration(rng.Int64N(int64(clock.Interval))),
		detector:  detector,
	}
	s.scrape()
	return s
}

// Run appends what happens in a time, which is rounded down to whole scrapes.
func (s *Stream) Run(failures Failures, d time.Duration) {
	for range int(d / s.Clock.Scrape) {
		for ; s.due < s.Clock.Scrape; s.due += s.Clock.Interval {
			bad := failures.Bad()
			if bad {
				s.bad++
			} else {
				s.good++
			}
			if s.detector != nil {
				s.detector.Observe(bad)
			}
		}
		s.due -= s.Clock.Scrape
		s.scrape()
	}
}

// Scrapes is how many scrapes the stream holds.
func (s *Stream) Scrapes() int { return len(s.Good) }

func (s *Stream) scrape() {
	s.Good = append(s.Good, s.good)
	s.Bad = append(s.Bad, s.bad)
	if s.detector != nil {
		s.Score = append(s.Score, float32(s.detector.Score()))
	}
}

// grow makes room for more scrapes.
func (s *Stream) grow(scrapes int) {
	s.Good = slices.Grow(s.Good, scrapes)
	s.Bad = slices.Grow(s.Bad, scrapes)
	if s.detector != nil {
		s.Score = slices.Grow(s.Score, scrapes)
	}
}
