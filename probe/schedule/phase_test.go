package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// mostIn returns the most slots that lie in any window of a length that is open at its end.
func mostIn(window, interval time.Duration, phases []time.Duration) int {
	slices.Sort(phases)
	around := slices.Clone(phases)
	for _, p := range phases {
		around = append(around, p+interval)
	}
	most, first := 0, 0
	for i, p := range around {
		for p-around[first] >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// phases returns where the series of a scheduler have their slots.
func phases(s *Scheduler, interval time.Duration) []time.Duration {
	var ps []time.Duration
	for key := range s.series {
		at, _ := s.Next(key)
		ps = append(ps, time.Duration(at.UnixNano()%int64(interval)))
	}
	return ps
}

func TestAThousandSeriesDoNotClump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 15 * time.Second
		r := newRecorder()
		check := func(s *Scheduler, when string) {
			t.Helper()
			ps := phases(s, interval)
			if got := mostIn(100*time.Millisecond, interval, ps); got > 10 {
				t.Errorf("%s: %d of %d series start in one 100 ms, want at most 10", when, got, len(ps))
			}
			if got := mostIn(time.Second, interval, ps); got > 75 {
				t.Errorf("%s: %d of %d series start in one second, want at most 75", when, got, len(ps))
			}
		}
		for _, vantage := range []string{"", "eu", "us"} {
			s := New(Options{Vantage: vantage})
			var tasks []*Task
			for i := range 1000 {
				tasks = append(tasks, r.task(fmt.Sprint(i), interval, 0))
			}
			update(t, s, tasks...)
			check(s, "at first")

			rng := rand.New(rand.NewPCG(3, 4))
			for reload := range 5 {
				rng.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
				tasks = tasks[:700:700]
				update(t, s, tasks...)
				check(s, "after removing 300")
				for i := range 300 {
					tasks = append(tasks, r.task(fmt.Sprint("new ", reload, i), interval, 0))
				}
				update(t, s, tasks...)
				check(s, "after adding 300")
			}
		}
	})
}

func TestVantagesDoNotCoincide(t *testing.T) {
	const interval = 15 * time.Second
	names := []string{"", "eu-1", "eu-2", "eu-3", "us-1", "us-2", "ap-1"}
	for i, a := range names {
		for _, b := range names[:i] {
			apart := (phase(offset(a), 0, interval) - phase(offset(b), 0, interval)).Abs()
			if apart = min(apart, interval-apart); apart < interval/200 {
				t.Errorf("vantages %q and %q probe only %s apart", a, b, apart)
			}
		}
	}
}
