package probetest

import (
	"time"

	"golang.org/x/sys/unix"
)

func monotonicNanos(now time.Time) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return now.UnixNano()
	}
	return ts.Nano()
}
