package probetest

import (
	"time"

	"golang.org/x/sys/unix"
)

// napUntil puts the thread to sleep. Unlike a timer of the runtime it does not round up to milliseconds.
func napUntil(t time.Time) {
	for d := time.Until(t); d > 0; d = time.Until(t) { // the runtime's own signals end a nap early
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&ts, nil)
	}
}
