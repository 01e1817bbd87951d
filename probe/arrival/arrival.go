// Package arrival says when bytes arrived. Its connections carry the kernel's receive time of every read, so that
// a busy prober does not blame its own lateness on the endpoint; an Exchange ties those stamps, the first write
// and the phases of connecting to one HTTP request.
//
// The kernel's time (SO_TIMESTAMPNS) is wall-clock time. It is brought to the monotonic clock at the return of
// the read, so only a step of the wall clock between the two could spoil it; a stamp that cannot be is dropped
// for the return of the read.
package arrival

import (
	"sync/atomic"
	"time"
)

// Stamp is the instant at which bytes arrived.
type Stamp struct {
	At     time.Time     // on the monotonic clock
	Lag    time.Duration // read return - At; 0 where the kernel gave no time
	Kernel bool          // At is the kernel's receive time, not the return of the read
}

// origin is where instants are counted from to fit into an atomic integer.
var origin = time.Now()

// instant is a time on the monotonic clock that one goroutine may set while another reads it. Zero is unset.
type instant struct{ ns atomic.Int64 }

func (i *instant) set(t time.Time) { i.ns.Store(int64(t.Sub(origin)) + 1) }

func (i *instant) get() (time.Time, bool) {
	ns := i.ns.Load()
	if ns == 0 {
		return time.Time{}, false
	}
	return origin.Add(time.Duration(ns - 1)), true
}

// setOnce sets the instant unless it is set, and reports whether it did.
func (i *instant) setOnce(t time.Time) bool {
	return i.ns.CompareAndSwap(0, int64(t.Sub(origin))+1)
}
