package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"
)

// series is a task and its place in time.
type series struct {
	task    *Task
	index   int       // in the sequence of phases of its interval
	base    time.Time // slot 0, on the monotonic clock
	slot    int64     // the next one is base + slot × interval
	due     time.Time // of the next slot, with its jitter
	had     bool      // a slot of it has passed
	running *running  // its probe; nil when there is none
}

// running is a probe that has not returned.
type running struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when Run has returned and its cost is charged
}

// scheduled returns the time of the next slot, without jitter.
func (sr *series) scheduled() time.Time {
	return sr.base.Add(time.Duration(sr.slot) * sr.task.Interval)
}

// slotBefore returns the latest slot that is not after t.
func (sr *series) slotBefore(t time.Time) int64 {
	return int64(t.Sub(sr.base) / sr.task.Interval)
}

// place puts a series on the first slot of its phase that is not before now.
func (s *Scheduler) place(sr *series, now time.Time) {
	interval := sr.task.Interval
	toPhase := phase(s.offset, sr.index, interval) - time.Duration(s.anchor.UnixNano()%int64(interval))
	if toPhase < 0 {
		toPhase += interval
	}
	sr.base = s.anchor.Add(toPhase)
	next := int64(0)
	if wait := now.Sub(sr.base); wait > 0 {
		next = int64((wait + interval - 1) / interval)
	}
	s.move(sr, next)
}

// move makes slot the next one of a series. The caller restores the order of the queue.
func (s *Scheduler) move(sr *series, slot int64) {
	sr.slot = slot
	sr.due = sr.scheduled()
	if sr.task.Jitter > 0 {
		sr.due = sr.due.Add(time.Duration(s.opts.Jitter() * float64(sr.task.Jitter)))
	}
}

// golden is 2^64 divided by the golden ratio.
const golden = 0x9E3779B97F4A7C15

// phase returns where in its interval the i-th series of a vantage has its slots: the fractional part of
// i/φ + offset. That is the Kronecker sequence of the golden ratio, which leaves the smallest gaps and
// clumps of all, however many series there are; hashing a series' name would clump like chance.
// The fraction is counted in units of 2^-64, whose overflow is its integral part.
func phase(offset uint64, i int, interval time.Duration) time.Duration {
	p, _ := bits.Mul64(offset+uint64(i)*golden, uint64(interval))
	return time.Duration(p)
}

// offset turns the name of a vantage into an offset of all its phases, so that the same series do not probe a
// target from everywhere at once. It needs a hash that mixes well: those of package fnv put "eu-1" and "eu-2"
// within a millionth of an interval.
func offset(vantage string) uint64 {
	sum := sha256.Sum256([]byte(vantage))
	return binary.BigEndian.Uint64(sum[:])
}

// queue is a heap of series by the time of their next slot.
type queue []*series

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*series)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	sr := (*q)[last]
	*q = (*q)[:last]
	return sr
}
