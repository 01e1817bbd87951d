package probetest

import "time"

// precision is how exactly a wait ends, and what it costs.
type precision int

const (
	coarse precision = iota // a timer alone: up to 1 ms late in an idle process
	fine                    // a timer, then a nap of the thread: about 60 µs late
	exact                   // a timer, a nap, and a spin of at most maxSpin
)

const (
	timerLead = 1500 * time.Microsecond // a timer aims this much early: more than it can overshoot
	maxSpin   = 64 * time.Microsecond   // more than the kernel's timer slack, by which a nap overshoots
	fewWaits  = 4                       // as many waits at a time may nap and spin; more would starve the client
)

// precisionFor is the best precision that as many waits at a time can have.
func precisionFor(open int) precision {
	if open <= fewWaits {
		return exact
	}
	return coarse
}

// waitUntil returns true at t, or false as soon as done is closed.
func waitUntil(done <-chan struct{}, t time.Time, p precision) bool {
	lead := timerLead
	if p == coarse {
		lead = 0
	}
	if d := time.Until(t) - lead; d > 0 {
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-done:
			timer.Stop()
			return false
		}
	}
	if p == fine {
		napUntil(t)
	}
	if p == exact {
		napUntil(t.Add(-maxSpin))
		for time.Until(t) > 0 {
		}
	}
	select {
	case <-done:
		return false
	default:
		return true
	}
}
