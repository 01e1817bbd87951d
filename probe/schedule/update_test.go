package schedule

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUpdateKeepsTheSlotsOfWhatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 15 * time.Second
		r := newRecorder()
		s := New(Options{})
		a, b, c := r.task("a", interval, 0), r.task("b", interval, 0), r.task("c", interval, 0)
		update(t, s, a, b, c)
		slot := func(key string) time.Time {
			t.Helper()
			at, ok := s.Next(key)
			if !ok {
				t.Fatalf("series %s has no next slot", key)
			}
			return at
		}
		atA, atB, atC := slot("a"), slot("b"), slot("c")

		update(t, s, c, r.task("b", interval, 0)) // a is removed, b changed, c moved up
		if !slot("b").Equal(atB) || !slot("c").Equal(atC) {
			t.Error("a changed and an unchanged series have lost their slots")
		}
		if _, ok := s.Next("a"); ok {
			t.Error("a removed series has a next slot")
		}
		update(t, s, r.task("d", interval, 0), c, r.task("b", time.Minute, 0))
		if !slot("d").Equal(atA) {
			t.Errorf("a new series has its slot at %s, want the free one at %s", slot("d"), atA)
		}
		update(t, s, r.task("d", interval, 0), c, r.task("e", interval, 0))
		if !slot("e").Equal(atB) {
			t.Errorf("a series that changed its interval has not freed its slot")
		}
	})
}

func TestUpdateCancelsAndWaitsForProbesThatAreGone(t *testing.T) {
	for _, name := range []string{"removed", "replaced"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const interval = time.Minute
				s := New(Options{})
				var cause error
				var ended atomic.Bool
				stays := newRecorder()
				other := stays.task("other", interval, 59*time.Second)
				stop := run(t, s, other, &Task{
					Key: "a", Interval: interval,
					Run: func(ctx context.Context, _ Slot) int {
						<-ctx.Done()
						cause = context.Cause(ctx)
						time.Sleep(time.Second) // to say goodbye
						ended.Store(true)
						return 0
					},
					Skipped: func(reason Reason, _ int) {
						if ended.Load() {
							t.Errorf("a task that is gone was told of a slot: %s", reason)
						}
					},
				})
				time.Sleep(2 * interval)

				tasks := []*Task{other}
				r := newRecorder()
				if name == "replaced" {
					tasks = append(tasks, r.task("a", interval, 0))
				}
				update(t, s, tasks...)
				if !ended.Load() || !errors.Is(cause, ErrRemoved) {
					t.Errorf("Update has returned; ended: %t, cause: %v", ended.Load(), cause)
				}
				time.Sleep(3 * interval)
				stop()
				if name == "replaced" && r.starts("a") != 3 {
					t.Errorf("the new task has started %d times, want 3", r.starts("a"))
				}
				// The last probe of the other task was canceled by the shutdown, and none before it.
				if len(stays.causes) > 1 || stays.starts("other") != 5 {
					t.Errorf("the other task: %d probes, causes %v", stays.starts("other"), stays.causes)
				}
			})
		})
	}
}

func TestUpdateGivesUpWaitingWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		release := make(chan struct{})
		stop := run(t, s, &Task{Key: "deaf", Interval: time.Second, Run: func(context.Context, Slot) int {
			<-release
			return 0
		}})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.Update(ctx, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 probes") {
			t.Errorf("Update returned %v", err)
		}
		if _, ok := s.Next("deaf"); ok {
			t.Error("the change was not made")
		}
		close(release)
		stop()
	})
}

func TestFiftyUpdatesLoseNoSlotAndStartNoneTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 3 * time.Second
		r := newRecorder()
		s := New(Options{})
		var kept, passing []*Task
		for i := range 20 {
			// Half of the probes are still running at the next update.
			kept = append(kept, r.task(fmt.Sprint("kept ", i), interval, time.Duration(i%2)*2*time.Second))
		}
		began := time.Now()
		stop := run(t, s, kept...)
		rng := rand.New(rand.NewPCG(5, 6))
		for n := range 50 {
			time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
			passing = nil
			for i := range rng.IntN(20) {
				passing = append(passing, r.task(fmt.Sprint("passing ", i), interval, time.Duration(n%3)*time.Second))
			}
			tasks := append(passing, kept...)
			rng.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
			update(t, s, tasks...)
		}
		time.Sleep(time.Until(began.Add(100 * interval)))
		stop()

		for _, task := range kept {
			slots := r.started[task.Key]
			if len(slots) != 100 || len(r.skipped[task.Key]) != 0 {
				t.Errorf("series %s: %d probes in 100 slots, skipped %v", task.Key, len(slots), r.skipped[task.Key])
			}
		}
		for key, slots := range r.started {
			for i := 1; i < len(slots); i++ {
				if gap := slots[i].Sub(slots[i-1]); gap <= 0 {
					t.Errorf("series %s: slot at %s started twice", key, slots[i])
				}
			}
		}
	})
}

func TestUpdateRefusesTasksThatAreNotValid(t *testing.T) {
	r := newRecorder()
	valid := r.task("a", time.Second, 0)
	edit := func(change func(*Task)) *Task {
		task := r.task("b", time.Second, 0)
		change(task)
		return task
	}
	tests := []struct {
		task *Task
		want string
	}{
		{r.task("a", time.Minute, 0), `task "a" is there twice`},
		{edit(func(t *Task) { t.Interval = 0 }), `task "b": interval 0s is not positive`},
		{edit(func(t *Task) { t.Jitter = time.Minute }), `task "b": jitter 1m0s is not between 0 and the interval, 1s`},
		{edit(func(t *Task) { t.Run = nil }), `task "b" has no Run`},
	}
	for _, tt := range tests {
		s := New(Options{})
		err := s.Update(t.Context(), []*Task{valid, tt.task})
		if err == nil {
			t.Errorf("no error, want %q", tt.want)
			continue
		}
		if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		if _, ok := s.Next("a"); ok {
			t.Errorf("%s: a refused update has changed something", err)
		}
	}
}
