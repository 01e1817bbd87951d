package probetest

import (
	"sync"
	"time"
)

// machineClock reads the monotonic clock that the processes of a machine have in common, in nanoseconds. The
// monotonic readings of time.Time count from the start of a process.
var machineClock = sync.OnceValue(func() (base struct {
	at    time.Time
	nanos int64
},
) {
	best := time.Hour
	for range 20 { // one of them is not interrupted between the readings
		before := time.Now()
		nanos := monotonicNanos(before)
		if took := time.Since(before); took < best {
			best = took
			base.at, base.nanos = before.Add(took/2), nanos
		}
	}
	return base
})

// toMachine brings an instant of this process to the machine's clock.
func toMachine(t time.Time) int64 {
	base := machineClock()
	return base.nanos + int64(t.Sub(base.at))
}

// fromMachine is the reverse of toMachine; the instant has a monotonic reading.
func fromMachine(nanos int64) time.Time {
	base := machineClock()
	return base.at.Add(time.Duration(nanos - base.nanos))
}
