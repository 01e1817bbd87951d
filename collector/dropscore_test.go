package collector

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestDropScore(t *testing.T) {
	const interval = 15 * time.Second
	attempts := func(s *DropScore, n int, bad float64, rng *rand.Rand) (highest float64) {
		for range n {
			s.Observe(rng.Float64() >= bad)
			highest = max(highest, s.Score())
		}
		return highest
	}
	for _, objective := range []float64{0.95, 0.99, 0.995} {
		rng := rand.New(rand.NewPCG(1, 2))
		s := NewDropScore(objective, interval)
		if s.Score() != 0 {
			t.Errorf("%v: born at %v", objective, s.Score())
		}
		if score := attempts(s, 50_000, 1-objective, rng); score > 1 {
			t.Errorf("%v: a score of %v at the rate of the budget", objective, score)
		}
		if score := attempts(s, 8, 0.9, rng); score > 1 {
			t.Errorf("%v: a score of %v after a burst of 8", objective, score)
		}
		attempts(s, 500, 1-objective, rng)
		if score := attempts(s, 240, 0.5, rng); score <= 1 {
			t.Errorf("%v: a score of %v after an hour at 50 %% bad", objective, score)
		}
		if attempts(s, 2000, 0, rng); s.Score() != 0 {
			t.Errorf("%v: still %v long after", objective, s.Score())
		}
	}
}

func BenchmarkDropScore(b *testing.B) {
	s := NewDropScore(0.99, 15*time.Second)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Observe(i%50 != 0)
	}
}
