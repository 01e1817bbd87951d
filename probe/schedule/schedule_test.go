package schedule

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"goodput_exporter/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder makes tasks and remembers what became of their slots.
type recorder struct {
	mu      sync.Mutex
	started map[string][]time.Time // Slot.Scheduled, by key
	delays  []time.Duration
	skipped map[string]map[Reason]int
	causes  []error // of canceled probes
}

func newRecorder() *recorder {
	return &recorder{started: map[string][]time.Time{}, skipped: map[string]map[Reason]int{}}
}

// task returns a task whose probes last for the given time, unless they are canceled.
func (r *recorder) task(key string, interval, length time.Duration) *Task {
	return &Task{
		Key:      key,
		Interval: interval,
		Run: func(ctx context.Context, slot Slot) int {
			r.mu.Lock()
			r.started[key] = append(r.started[key], slot.Scheduled)
			r.delays = append(r.delays, slot.Delay)
			r.mu.Unlock()
			if length == 0 {
				return 0
			}
			select {
			case <-time.After(length):
			case <-ctx.Done():
				r.mu.Lock()
				r.causes = append(r.causes, context.Cause(ctx))
				r.mu.Unlock()
			}
			return 0
		},
		Skipped: func(reason Reason, slots int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.skipped[key] == nil {
				r.skipped[key] = map[Reason]int{}
			}
			r.skipped[key][reason] += slots
		},
	}
}

// starts returns how many probes of a series have started.
func (r *recorder) starts(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.started[key])
}

// run runs the scheduler with the tasks, and returns a function that stops it and waits for its end.
func run(t *testing.T, s *Scheduler, tasks ...*Task) (stop func()) {
	t.Helper()
	update(t, s, tasks...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		s.Run(ctx)
		close(done)
	}()
	return func() {
		cancel()
		<-done
	}
}

func update(t *testing.T, s *Scheduler, tasks ...*Task) {
	t.Helper()
	if err := s.Update(t.Context(), tasks); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func TestSlotsDoNotDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 15 * time.Second
		r := newRecorder()
		s := New(Options{})
		stop := run(t, s, r.task("a", interval, 0), r.task("b", interval, 7*time.Second), r.task("c", interval, 14*time.Second))
		time.Sleep(24 * time.Hour)
		stop()

		for key, slots := range r.started {
			if want := int(24 * time.Hour / interval); len(slots) != want {
				t.Errorf("series %s: %d probes in 24 h, want %d", key, len(slots), want)
			}
			for i, at := range slots {
				if want := slots[0].Add(time.Duration(i) * interval); !at.Equal(want) {
					t.Fatalf("series %s: slot %d at %s, want %s", key, i, at, want)
				}
			}
		}
		for _, d := range r.delays {
			if d != 0 {
				t.Fatalf("a probe was started %s late by a clock that stands still", d)
			}
		}
		if len(r.started) != 3 || len(r.skipped) != 0 {
			t.Errorf("%d series started, skipped: %v", len(r.started), r.skipped)
		}
	})
}

func TestPhaseIsTheSameAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 7 * time.Second // no divisor of a day
		phases := func() map[string]time.Duration {
			r := newRecorder()
			var tasks []*Task
			for i := range 10 {
				tasks = append(tasks, r.task(fmt.Sprint(i), interval, 0))
			}
			stop := run(t, New(Options{Vantage: "eu"}), tasks...)
			time.Sleep(interval)
			stop()
			ps := map[string]time.Duration{}
			for key, slots := range r.started {
				ps[key] = time.Duration(slots[0].UnixNano() % int64(interval))
			}
			return ps
		}
		before := phases()
		time.Sleep(12345678 * time.Millisecond)
		if diff := cmp.Diff(before, phases()); diff != "" || len(before) != 10 {
			t.Errorf("phases before and after the restart (-, +):\n%s", diff)
		}
	})
}

func TestSlotsBeforeRunAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		s := New(Options{})
		task := r.task("a", time.Second, 0)
		update(t, s, task)
		time.Sleep(time.Minute)
		stop := run(t, s, task)
		time.Sleep(10 * time.Second)
		stop()
		if got := r.starts("a"); got != 10 || len(r.skipped) != 0 {
			t.Errorf("started %d, skipped %v; want 10 and none", got, r.skipped)
		}
	})
}

func TestSkippedSlotsAreCountedByReason(t *testing.T) {
	const interval = 10 * time.Second
	tests := []struct {
		name    string
		opts    Options
		tasks   func(r *recorder) []*Task
		started map[string]int
		skipped map[string]map[Reason]int
	}{
		{
			name:    "overlap: a probe of 25 s leaves one slot in three",
			tasks:   func(r *recorder) []*Task { return []*Task{r.task("a", interval, 25*time.Second)} },
			started: map[string]int{"a": 4},
			skipped: map[string]map[Reason]int{"a": {ReasonOverlap: 8}},
		},
		{
			name: "in_flight: one probe at a time, and b comes first",
			opts: Options{MaxInFlight: 1},
			tasks: func(r *recorder) []*Task {
				return []*Task{r.task("a", interval, 9*time.Second), r.task("b", interval, 9*time.Second)}
			},
			started: map[string]int{"b": 12},
			skipped: map[string]map[Reason]int{"a": {ReasonInFlight: 12}},
		},
		{
			name: "budget: two requests at once, then none for a quarter of an hour",
			tasks: func(r *recorder) []*Task {
				task := r.task("a", interval, 0)
				task.Budget = NewBudget(config.Budget{RequestsPerDay: 96})
				return []*Task{task}
			},
			started: map[string]int{"a": 2},
			skipped: map[string]map[Reason]int{"a": {ReasonBudget: 10}},
		},
		{
			name: "paused: named before overlap and budget",
			tasks: func(r *recorder) []*Task {
				task := r.task("a", interval, 25*time.Second)
				task.Budget = NewBudget(config.Budget{RequestsPerDay: 96})
				task.Paused = func(time.Time) bool { return r.starts("a") > 0 }
				return []*Task{task}
			},
			started: map[string]int{"a": 1},
			skipped: map[string]map[Reason]int{"a": {ReasonPaused: 11}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				stop := run(t, New(tt.opts), tt.tasks(r)...)
				time.Sleep(2 * time.Minute)
				stop()
				started := map[string]int{}
				for key := range r.started {
					started[key] = r.starts(key)
				}
				if diff := cmp.Diff(tt.started, started); diff != "" {
					t.Errorf("started (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.skipped, r.skipped); diff != "" {
					t.Errorf("skipped (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestPauseSkipsItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 10 * time.Second
		r := newRecorder()
		s := New(Options{})
		budget := NewBudget(config.Budget{RequestsPerDay: 8640})
		task := r.task("a", interval, 25*time.Second) // from the pause's beginning to beyond two of its slots
		task.Budget = budget
		begin, end := time.Now().Add(time.Minute), time.Now().Add(3*time.Minute)
		task.Paused = func(now time.Time) bool { return !now.Before(begin) && now.Before(end) }
		other := r.task("b", interval, 0)
		stop := run(t, s, task, other)
		time.Sleep(6 * time.Minute)
		stop()

		for _, at := range r.started["a"] {
			if task.Paused(at) {
				t.Errorf("a probe was started at %s, from %s to %s there is a pause", at, begin, end)
			}
		}
		first := r.started["a"][0]
		for i, at := range r.started["a"] {
			if at.Sub(first)%interval != 0 {
				t.Errorf("the pause has moved the slots: probe %d at %s, the first at %s", i, at, first)
			}
		}
		// 2 of 6 slots before the pause, and 6 of 18 after it. No probe was canceled for it.
		if got := r.starts("a"); got != 8 || len(r.causes) != 1 || !errors.Is(r.causes[0], ErrShutdown) {
			t.Errorf("%d probes, canceled %v; want 8, and only the last, by the shutdown", got, r.causes)
		}
		if got := r.skipped["a"][ReasonPaused]; got != 12 {
			t.Errorf("%d slots skipped as paused, want the 12 of 2 minutes", got)
		}
		if left, _ := budget.Remaining(UnitRequests); left != 8640-8 {
			t.Errorf("%d requests are left of the budget, want what the 8 probes left", left)
		}
		if got := r.starts("b"); got != 36 || r.skipped["b"] != nil {
			t.Errorf("the other series had %d probes and skipped %v, want 36 and none", got, r.skipped["b"])
		}
	})
}

func TestReadyWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		s := New(Options{})
		task := r.task("a", time.Minute, 0)
		task.Paused = func(time.Time) bool { return true }
		stop := run(t, s, task)
		defer stop()
		select {
		case <-s.Ready():
		case <-time.After(time.Minute + time.Second):
			t.Error("not ready though every slot of the interval has passed")
		}
		if r.starts("a") != 0 {
			t.Error("a probe was started in a pause")
		}
	})
}

// A wake that comes too late is played to dispatch directly: nothing in a bubble of synctest can be late.
func TestLateWake(t *testing.T) {
	const interval = 15 * time.Second
	tests := []struct {
		name            string
		late            time.Duration // behind the first slot
		started, missed int
	}{
		{name: "within the limit", late: 300 * time.Millisecond, started: 1},
		{name: "beyond the limit", late: 301 * time.Millisecond, missed: 1},
		{name: "a whole interval, to the next slot", late: interval, started: 1, missed: 1},
		{name: "a day, just before a slot", late: 24*time.Hour - time.Second, missed: 5760},
		{name: "a day, just after a slot", late: 24*time.Hour + time.Millisecond, started: 1, missed: 5760},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				s := New(Options{})
				update(t, s, r.task("a", interval, 0))
				first, _ := s.Next("a")
				time.Sleep(time.Until(first.Add(tt.late)))
				next, ok := s.dispatch(t.Context(), time.Now())
				s.wg.Wait()

				if got := r.starts("a"); got != tt.started {
					t.Errorf("started %d, want %d", got, tt.started)
				}
				if got := r.skipped["a"][ReasonLate]; got != tt.missed {
					t.Errorf("%d slots late, want %d", got, tt.missed)
				}
				if want := first.Add(time.Duration(tt.started+tt.missed) * interval); !ok || !next.Equal(want) {
					t.Errorf("next slot at %s, %t; want %s", next, ok, want)
				}
			})
		})
	}
}

func TestLateLimit(t *testing.T) {
	s := New(Options{LateLimit: 0.1})
	for interval, want := range map[time.Duration]time.Duration{
		time.Minute:           6 * time.Second,
		time.Second:           250 * time.Millisecond, // a busy machine is late by some tens of milliseconds
		50 * time.Millisecond: 50 * time.Millisecond,  // two slots of a series never start in one wake
	} {
		if got := s.lateLimit(interval); got != want {
			t.Errorf("limit of an interval of %s is %s, want %s", interval, got, want)
		}
	}
}

func TestJitterDelaysEachSlotByChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, jitter = 10 * time.Second, 4 * time.Second
		rng := rand.New(rand.NewPCG(1, 2))
		s := New(Options{Jitter: rng.Float64})
		var delays []time.Duration
		var first time.Time
		task := &Task{Key: "a", Interval: interval, Jitter: jitter, Run: func(_ context.Context, slot Slot) int {
			if first.IsZero() {
				first = slot.Scheduled
			}
			delays = append(delays, time.Since(slot.Scheduled))
			if slot.Delay != 0 {
				t.Errorf("jitter is shown as a delay of %s", slot.Delay)
			}
			if off := slot.Scheduled.Sub(first) % interval; off != 0 {
				t.Errorf("jitter has moved the slots by %s", off)
			}
			return 0
		}}
		stop := run(t, s, task)
		time.Sleep(1000*interval + jitter)
		stop()

		if len(delays) < 1000 {
			t.Fatalf("%d probes, want at least 1000", len(delays))
		}
		var sum time.Duration
		for _, d := range delays {
			if d < 0 || d >= jitter {
				t.Errorf("started %s after its slot, want [0, %s)", d, jitter)
			}
			sum += d
		}
		if mean := sum / time.Duration(len(delays)); mean < jitter*4/10 || mean > jitter*6/10 {
			t.Errorf("mean jitter %s, want about %s", mean, jitter/2)
		}
	})
}

func TestShutdown(t *testing.T) {
	tests := []struct {
		name   string
		grace  time.Duration
		causes []error
		took   time.Duration
	}{
		{name: "a probe that ends within the grace is left alone", grace: time.Minute, took: 30 * time.Second},
		{name: "a longer one is canceled", grace: 10 * time.Second, causes: []error{ErrShutdown}, took: 10 * time.Second},
		{name: "without grace it is canceled at once", causes: []error{ErrShutdown}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				s := New(Options{Grace: tt.grace})
				task := r.task("a", time.Hour, 30*time.Second)
				stop := run(t, s, task)
				first, _ := s.Next("a")
				time.Sleep(time.Until(first))
				synctest.Wait()

				stopped := time.Now()
				stop()
				if took := time.Since(stopped); took != tt.took {
					t.Errorf("Run returned after %s, want %s", took, tt.took)
				}
				if diff := cmp.Diff(tt.causes, r.causes, cmp.Comparer(errors.Is)); diff != "" {
					t.Errorf("causes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestPanicIsReportedAndFreesTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var values []any
		s := New(Options{MaxInFlight: 1, Panic: func(key string, value any, stack []byte) {
			if key != "a" || len(stack) == 0 {
				t.Errorf("panic of %q with a stack of %d bytes", key, len(stack))
			}
			values = append(values, value)
		}})
		budget := NewBudget(config.Budget{OutputTokensPerDay: 48000})
		skipped := 0
		stop := run(t, s, &Task{
			Key: "a", Interval: time.Second, Budget: budget, OutputTokens: 100,
			Run:     func(context.Context, Slot) int { panic("broken probe") },
			Skipped: func(Reason, int) { skipped++ },
		})
		time.Sleep(3 * time.Second)
		stop()

		if diff := cmp.Diff([]any{"broken probe", "broken probe", "broken probe"}, values); diff != "" || skipped != 0 {
			t.Errorf("skipped %d, panics (-want +got):\n%s", skipped, diff)
		}
		if got, _ := budget.Remaining(UnitOutputTokens); got != 48000-300 {
			t.Errorf("%d output tokens remain, want what 3 probes may have cost less: %d", got, 48000-300)
		}
	})
}

func TestReadyAfterTheFirstSlotOfEverySeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := func(s *Scheduler) bool {
			synctest.Wait()
			select {
			case <-s.Ready():
				return true
			default:
				return false
			}
		}
		r := newRecorder()
		s := New(Options{})
		tasks := []*Task{r.task("a", time.Minute, 0), r.task("b", time.Minute, 0), r.task("c", time.Hour, 0)}
		stop := run(t, s, tasks...)
		defer stop()
		var last time.Time
		for _, task := range tasks {
			if at, _ := s.Next(task.Key); at.After(last) {
				last = at
			}
		}
		time.Sleep(time.Until(last) - 1)
		if ready(s) {
			t.Error("ready before the first slot of one series")
		}
		time.Sleep(time.Nanosecond)
		if !ready(s) {
			t.Error("not ready after the first slot of every series")
		}
		update(t, s, append(tasks, r.task("d", time.Hour, 0))...)
		if !ready(s) {
			t.Error("a new series has made the process unready")
		}
	})
}

func TestNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		s := New(Options{})
		stop := run(t, s, r.task("a", time.Minute, 0))
		defer stop()
		if at, ok := s.Next("b"); ok {
			t.Errorf("an unknown series has a slot at %s", at)
		}
		at, ok := s.Next("a")
		if wait := time.Until(at); !ok || wait < 0 || wait > time.Minute {
			t.Fatalf("next slot in %s, %t", wait, ok)
		}
		time.Sleep(time.Until(at))
		synctest.Wait()
		if after, _ := s.Next("a"); !after.Equal(at.Add(time.Minute)) || r.starts("a") != 1 {
			t.Errorf("after a slot at %s the next is at %s", at, after)
		}
	})
}
