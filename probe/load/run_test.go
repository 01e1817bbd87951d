package load

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"goodput_exporter/probe"
)

// service is an endpoint of which only the time is real: it takes a while for each request, and so many at once.
type service struct {
	takes   time.Duration
	frozen  func(since time.Duration) time.Duration // what a request that comes then waits first
	outcome probe.Outcome

	start    time.Time
	once     sync.Once
	inFlight atomic.Int64
	most     atomic.Int64
	asked    atomic.Int64
}

func (s *service) Ask(ctx context.Context, _ int) *probe.Result {
	s.once.Do(func() { s.start = time.Now() })
	s.asked.Add(1)
	s.most.Store(max(s.most.Load(), s.inFlight.Add(1)))
	defer s.inFlight.Add(-1)
	sent, takes := time.Now(), s.takes
	if s.frozen != nil {
		takes += s.frozen(sent.Sub(s.start))
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return &probe.Result{Time: sent, Outcome: probe.Canceled}
	}
	e2e := time.Since(sent)
	r := &probe.Result{Time: sent, Outcome: probe.Good, E2E: &e2e}
	if s.outcome != "" {
		r.Outcome = s.outcome
	}
	return r
}

// every returns the schedule of a constant rate.
func every(gap time.Duration) func() (time.Duration, bool) {
	n := 0
	return func() (time.Duration, bool) { n++; return time.Duration(n-1) * gap, true }
}

func do(t *testing.T, a Asker, o Options) *Run {
	t.Helper()
	run, err := Do(t.Context(), a, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestClosedLoopKeepsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{takes: 100 * time.Millisecond}
		run := do(t, s, Options{Level: Level{Concurrency: 8}, Requests: 800, WarmupRequests: 16, Ramp: 50 * time.Millisecond})
		if got := s.most.Load(); got != 8 {
			t.Errorf("%d requests in flight at most, want 8", got)
		}
		if got := len(run.Records); got != 816 {
			t.Errorf("%d records, want 800 and 16 of the warm-up", got)
		}
		busy := time.Duration(0)
		for _, r := range run.Records {
			busy += max(0, min(r.Ended, run.Window.LastSend)-max(r.Sent, run.Window.From))
		}
		if got := busy.Seconds() / (run.Window.LastSend - run.Window.From).Seconds(); math.Abs(got-8) > 0.08 {
			t.Errorf("%.3f requests in flight on average, want 8 within 1 %%", got)
		}
	})
}

func TestOpenLoopKeepsItsScheduleWhateverTheEndpointDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The endpoint freezes from second 3 to second 5: whoever comes in that time waits for its end.
		s := &service{takes: 10 * time.Millisecond, frozen: func(at time.Duration) time.Duration {
			if at < 3*time.Second || at >= 5*time.Second {
				return 0
			}
			return 5*time.Second - at
		}}
		run := do(t, s, Options{Level: Level{Rate: 100}, Next: every(10 * time.Millisecond), Duration: 10 * time.Second})
		if got := len(run.Records); got != 1000 {
			t.Errorf("%d requests in 10 s, want 1000", got)
		}
		slow := 0
		for _, r := range run.Records {
			if r.Ended-r.Intended > time.Second {
				slow++
			}
		}
		// Half of the 2 s have more than 1 s left.
		if slow < 99 || slow > 101 {
			t.Errorf("%d requests saw more than 1 s of the freeze, want 100", slow)
		}
	})
}

func TestWaitForMaxInFlightCountsFromTheIntendedStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{takes: time.Second}
		run := do(t, s, Options{Level: Level{Rate: 10}, Next: every(100 * time.Millisecond), Requests: 20, MaxInFlight: 2})
		if got := s.most.Load(); got != 2 {
			t.Errorf("%d requests in flight, want at most 2", got)
		}
		if run.Queued() != 18 {
			t.Errorf("%d requests waited, want 18", run.Queued())
		}
		last := run.Records[len(run.Records)-1]
		if got, want := last.Lag(), 9*time.Second-last.Intended; last.N < 18 || got < want {
			t.Errorf("request %d was sent %s after it was due, want at least %s", last.N, got, want)
		}
	})
}

func TestWarmUpIsMarkedAndLeavesTheWindow(t *testing.T) {
	for name, o := range map[string]Options{
		"by requests": {WarmupRequests: 5},
		"by time":     {WarmupDuration: 500 * time.Millisecond},
		"by both":     {WarmupRequests: 2, WarmupDuration: 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o.Level, o.Next, o.Requests = Level{Rate: 10}, every(100*time.Millisecond), 10
				run := do(t, &service{takes: time.Millisecond}, o)
				warmup := 0
				for _, r := range run.Records {
					if r.Warmup != (r.N < 5) {
						t.Errorf("request %d: warm-up %t", r.N, r.Warmup)
					}
					if r.Warmup {
						warmup++
					}
				}
				want := Window{500 * time.Millisecond, 1400 * time.Millisecond, 1401 * time.Millisecond}
				if warmup != 5 || run.Window != want {
					t.Errorf("%d of the warm-up and window %v, want 5 and %v", warmup, run.Window, want)
				}
			})
		})
	}
}

func TestShareOfRequestsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Level: Level{Concurrency: 4}, Requests: 1000, CancelShare: 0.2, CancelAfter: 10 * time.Millisecond, Seed: 3}
		givenUp := 0
		for _, r := range do(t, &service{takes: 20 * time.Millisecond}, o).Records {
			if r.GivenUp != (r.Outcome == probe.Canceled) {
				t.Errorf("request %d: given up %t, outcome %s", r.N, r.GivenUp, r.Outcome)
			}
			if r.GivenUp {
				givenUp++
			}
		}
		if givenUp < 160 || givenUp > 240 {
			t.Errorf("%d of 1000 requests were given up, want about 200", givenUp)
		}
		for _, r := range do(t, &service{takes: 5 * time.Millisecond}, o).Records {
			if r.GivenUp {
				t.Errorf("request %d ended before its user lost patience, and counts as given up", r.N)
			}
		}
	})
}

func TestLevelOfASweepLastsForItsTimeAndItsRequests(t *testing.T) {
	for name, test := range map[string]struct {
		takes    time.Duration
		requests int
		want     int
	}{
		"until the time is up":         {100 * time.Millisecond, 10, 40},
		"until the requests are there": {100 * time.Millisecond, 100, 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Options{Level: Level{Concurrency: 2}, Duration: 2 * time.Second, Requests: test.requests}
				if got := len(do(t, &service{takes: test.takes}, o).Records); got != test.want {
					t.Errorf("%d requests, want %d", got, test.want)
				}
			})
		})
	}
}

func TestInterruptedRunKeepsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1050*time.Millisecond)
		defer cancel()
		run, err := Do(ctx, &service{takes: 100 * time.Millisecond}, Options{Level: Level{Concurrency: 2}, Requests: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if !run.Interrupted || len(run.Records) != 22 {
			t.Errorf("interrupted %t with %d records, want 20 and 2 canceled", run.Interrupted, len(run.Records))
		}
		for _, r := range run.Records[20:] {
			if r.Outcome != probe.Canceled || r.GivenUp || r.Attempt() {
				t.Errorf("in flight at the end: %s, given up %t, attempt %t", r.Outcome, r.GivenUp, r.Attempt())
			}
		}
	})
}

func TestUnsentRequestsOfAnInterruptedRunAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1050*time.Millisecond)
		defer cancel()
		run, err := Do(ctx, &service{takes: time.Hour}, Options{
			Level: Level{Rate: 10}, Next: every(100 * time.Millisecond), Requests: 1000, MaxInFlight: 3,
		})
		if err != nil {
			t.Fatal(err)
		}
		if run.Unsent != 8 {
			t.Errorf("%d of the 11 requests due were not sent, want 8", run.Unsent)
		}
	})
}

func TestRunWithoutAnyAnswerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := do(t, &service{takes: time.Millisecond, outcome: probe.ConnectionError}, Options{Level: Level{Concurrency: 4}, Requests: 1000})
		if run.Hopeless == "" || run.Interrupted || len(run.Records) > hopelessAfter+4 {
			t.Errorf("%d records, hopeless %q, interrupted %t", len(run.Records), run.Hopeless, run.Interrupted)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no level":             {Requests: 1},
		"both":                 {Level: Level{Concurrency: 1, Rate: 1}, Requests: 1},
		"negative concurrency": {Level: Level{Concurrency: -1}, Requests: 1},
		"negative rate":        {Level: Level{Rate: -1}, Requests: 1},
		"no schedule":          {Level: Level{Rate: 1}, Requests: 1},
		"no end":               {Level: Level{Concurrency: 1}},
		"share above 1":        {Level: Level{Concurrency: 1}, Requests: 1, CancelShare: 1.5, CancelAfter: 1},
		"share without a time": {Level: Level{Concurrency: 1}, Requests: 1, CancelShare: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Do(t.Context(), &service{}, o); err == nil {
				t.Error("no error")
			}
		})
	}
}
