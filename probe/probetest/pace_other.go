//go:build !linux

package probetest

import "time"

func napUntil(t time.Time) { time.Sleep(time.Until(t)) }
