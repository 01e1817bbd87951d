package load

import (
	"time"

	"goodput_exporter/probe/workload"
)

// Schedule returns when the next request of an open loop is due, since the start of the run; false ends the run.
type Schedule func() (at time.Duration, ok bool)

// Endless returns the schedule of an arrival process.
func Endless(arrivals *workload.Arrivals) Schedule {
	return func() (time.Duration, bool) { return arrivals.Next(), true }
}

// Part is the part that one of several clients takes in a load that they make together. The zero value is all of it.
type Part struct{ Index, Count int }

// Of returns the part of a schedule: every Count-th arrival. So all parts together are the schedule itself.
func (p Part) Of(next Schedule) Schedule {
	if p.Count <= 1 {
		return next
	}
	n := -1
	return func() (time.Duration, bool) {
		for {
			n++
			if at, ok := next(); !ok || n%p.Count == p.Index {
				return at, ok
			}
		}
	}
}

// Entries returns the part of recorded requests.
func (p Part) Entries(all []workload.TraceEntry) []workload.TraceEntry {
	if p.Count <= 1 {
		return all
	}
	var part []workload.TraceEntry
	for i := p.Index; i < len(all); i += p.Count {
		part = append(part, all[i])
	}
	return part
}

// Number returns the part of a number of requests, or of a concurrency: parts differ by one at most, and add up to it.
func (p Part) Number(all int) int {
	if p.Count <= 1 {
		return all
	}
	n := all / p.Count
	if p.Index < all%p.Count {
		n++
	}
	return n
}
