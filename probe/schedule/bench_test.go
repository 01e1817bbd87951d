package schedule

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkDispatch is the cost of one slot: its turn in the queue, and the start and end of a probe that does
// nothing.
func BenchmarkDispatch(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n, " series"), func(b *testing.B) {
			s := New(Options{})
			tasks := make([]*Task, n)
			for i := range tasks {
				tasks[i] = &Task{Key: fmt.Sprint(i), Interval: 15 * time.Second, Run: func(context.Context, Slot) int { return 0 }}
			}
			if err := s.Update(b.Context(), tasks); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			now := s.queue[0].due
			for b.Loop() {
				now, _ = s.dispatch(b.Context(), now)
				s.wg.Wait()
			}
		})
	}
}

// BenchmarkUpdate is the cost of a reload that changes one series of many.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n, " series"), func(b *testing.B) {
			s := New(Options{})
			tasks := make([]*Task, n)
			for i := range tasks {
				tasks[i] = &Task{Key: fmt.Sprint(i), Interval: 15 * time.Second, Run: func(context.Context, Slot) int { return 0 }}
			}
			b.ReportAllocs()
			for b.Loop() {
				changed := *tasks[n/2]
				tasks[n/2] = &changed
				if err := s.Update(b.Context(), tasks); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
