package live

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// aDay returns what a series with some trouble sees in a day that ends at end.
func aDay(end time.Time, rng *rand.Rand) []*probe.Result {
	const interval = 15 * time.Second
	results := make([]*probe.Result, 0, 24*time.Hour/interval)
	for at := end.Add(-24 * time.Hour); !at.After(end); at = at.Add(interval) {
		r := good(at)
		switch {
		case rng.Float64() < 0.005:
			r = failed(at)
		case rng.Float64() < 0.005:
			r = slow(at)
		}
		if r.TTFT != nil {
			r.TTFT = new(time.Duration(float64(200*time.Millisecond) * (0.5 + rng.ExpFloat64())))
			r.TPOT = new(time.Duration(float64(25*time.Millisecond) * (0.8 + rng.ExpFloat64()/4)))
			r.E2E = new(time.Duration(float64(3*time.Second) * (0.7 + rng.ExpFloat64()/3)))
		}
		results = append(results, r)
	}
	return results
}

// fleet is a Live whose series have a day behind them.
func fleet(b *testing.B, series int) *Live {
	b.Helper()
	l := New(Options{})
	var all []*config.Series
	for i := range series {
		all = append(all, testSeries(fmt.Sprintf("target-%d", i), "chat"))
	}
	l.Update(testConfig(all...))
	results := aDay(l.start, rand.New(rand.NewPCG(1, 2)))
	for _, sc := range all {
		s := l.Series(sc.Key())
		for i, r := range results {
			if i < len(results)-250 && i%20 != 0 {
				continue // time is dear; the last hour is whole, and so are the tiers
			}
			s.Restore(r)
		}
	}
	return l
}

func BenchmarkObserve(b *testing.B) {
	for _, subscribers := range []int{0, 1, 200} {
		b.Run(fmt.Sprintf("subscribers=%d", subscribers), func(b *testing.B) {
			l, s := newLive(b, Options{})
			for _, r := range aDay(l.start, rand.New(rand.NewPCG(1, 2))) {
				s.Restore(r)
			}
			for range subscribers {
				events := l.Subscribe(b.Context())
				go func() {
					for e := range events {
						_, _ = e.JSON()
					}
				}()
			}
			results := aDay(l.start.Add(25*time.Hour), rand.New(rand.NewPCG(3, 4)))
			var shift time.Duration
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				r := *results[i]
				r.Time = r.Time.Add(shift)
				s.Observe(&r)
				if i++; i == len(results) {
					i, shift = 0, shift+25*time.Hour
				}
			}
		})
	}
}

func BenchmarkStatus(b *testing.B) {
	const series = 3000
	l := fleet(b, series)
	for _, o := range []StatusOptions{{Brief: true}, {}, {Probes: Strip}} {
		name := fmt.Sprintf("brief=%v,probes=%d", o.Brief, o.Probes)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = l.Status(l.start, o)
			}
		})
		b.Run("json,"+name, func(b *testing.B) {
			var bytes int
			b.ReportAllocs()
			for b.Loop() {
				doc, err := json.Marshal(l.Status(l.start, o))
				if err != nil {
					b.Fatal(err)
				}
				bytes = len(doc)
			}
			b.ReportMetric(float64(bytes), "bytes/status")
		})
	}
}

// BenchmarkMemory reports the memory of a series with a day of probes behind it, without its stories.
func BenchmarkMemory(b *testing.B) {
	const series = 20
	for b.Loop() {
		rng := rand.New(rand.NewPCG(1, 2))
		var before, after runtime.MemStats
		results := aDay(time.Now(), rng)
		l := New(Options{MaxGood: 1, MaxNotGood: 1})
		var all []*config.Series
		for i := range series {
			all = append(all, testSeries(fmt.Sprintf("target-%d", i), "chat"))
		}
		runtime.GC()
		runtime.ReadMemStats(&before)
		l.Update(testConfig(all...))
		for _, sc := range all {
			s := l.Series(sc.Key())
			for _, r := range results {
				s.Restore(r)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/series, "bytes/series")
		runtime.KeepAlive(l)
		runtime.KeepAlive(results)
	}
}
