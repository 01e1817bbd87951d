package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

func BenchmarkMonth(b *testing.B) {
	for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second} {
		b.Run(interval.String(), func(b *testing.B) {
			s := Setup{Clock: everyProbe, Objective: 0.95, Rules: []Rules{Windows(), Plain()}, Seed: 1}
			s.Clock.Interval = interval
			for b.Loop() {
				s.FalseAlarms(func(r *rand.Rand) Failures { return NewIndependent(r, 0.05) }, 1)
			}
		})
	}
}
