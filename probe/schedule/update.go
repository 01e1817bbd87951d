package schedule

import (
	"container/heap"
	"context"
	"fmt"
	"time"
)

// Update puts tasks in the place of the present ones, by difference:
//   - a task that is there already (the same pointer) goes on untouched;
//   - a task with the key and the interval of another takes over its slots; if only the key is the same, it has
//     slots of its own;
//   - running probes of tasks that are no longer there, removed or replaced, are canceled with ErrRemoved.
//
// New tasks get their phases in the order given, so a restart with the same list has the same slots.
//
// The change is made at once. Then Update waits for the canceled probes to return; when it returns nil, no
// function of a task that is gone runs or will be called. If ctx ends before that, it returns an error. It also
// returns one if a task is not valid, and has then changed nothing.
func (s *Scheduler) Update(ctx context.Context, tasks []*Task) error {
	if err := validate(tasks); err != nil {
		return err
	}
	canceled := s.replace(tasks)
	select {
	case s.wake <- struct{}{}:
	default: // it is about to wake
	}
	for i, p := range canceled {
		select {
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of %d probes of removed series: %w", len(canceled)-i, context.Cause(ctx))
		}
	}
	return nil
}

func validate(tasks []*Task) error {
	seen := make(map[string]bool, len(tasks))
	for _, t := range tasks {
		switch {
		case seen[t.Key]:
			return fmt.Errorf("task %q is there twice", t.Key)
		case t.Interval <= 0:
			return fmt.Errorf("task %q: interval %s is not positive", t.Key, t.Interval)
		case t.Jitter < 0 || t.Jitter > t.Interval:
			return fmt.Errorf("task %q: jitter %s is not between 0 and the interval, %s", t.Key, t.Jitter, t.Interval)
		case t.Run == nil:
			return fmt.Errorf("task %q has no Run", t.Key)
		}
		seen[t.Key] = true
	}
	return nil
}

// replace makes tasks the present ones and returns the probes that it canceled.
func (s *Scheduler) replace(tasks []*Task) (canceled []*running) {
	s.mu.Lock()
	defer s.mu.Unlock()

	before := s.series
	s.series = make(map[string]*series, len(tasks))
	s.queue = make(queue, 0, len(tasks))
	s.updated = true
	var unplaced []*series // without a phase
	for _, t := range tasks {
		sr := before[t.Key]
		switch {
		case sr == nil:
			sr = &series{task: t}
			unplaced = append(unplaced, sr)
		case sr.task != t:
			canceled = sr.cancel(canceled)
			if sr.task.Interval != t.Interval {
				unplaced = append(unplaced, sr)
			}
			sr.task = t
		}
		t.Budget.fit(t.OutputTokens)
		s.series[t.Key] = sr
		s.queue = append(s.queue, sr)
	}
	for key, sr := range before {
		if s.series[key] == nil {
			canceled = sr.cancel(canceled)
		}
	}
	s.assign(unplaced)
	heap.Init(&s.queue)
	return canceled
}

// assign gives each of the series the lowest index that no other series of its interval has, and with it its
// phase.
func (s *Scheduler) assign(unplaced []*series) {
	type place struct {
		interval time.Duration
		index    int
	}
	for _, sr := range unplaced {
		sr.index = -1
	}
	taken := make(map[place]bool, len(s.queue))
	for _, sr := range s.queue {
		taken[place{sr.task.Interval, sr.index}] = true
	}
	lowest := make(map[time.Duration]int)
	now := time.Now()
	for _, sr := range unplaced {
		interval := sr.task.Interval
		index := lowest[interval]
		for taken[place{interval, index}] {
			index++
		}
		lowest[interval] = index + 1
		sr.index = index
		s.place(sr, now)
	}
}

// cancel cancels the running probe of a series, if there is one, and appends it to probes.
func (sr *series) cancel(probes []*running) []*running {
	if sr.running == nil {
		return probes
	}
	sr.running.cancel(ErrRemoved)
	return append(probes, sr.running)
}
