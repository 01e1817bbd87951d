//go:build !unix

package load

import "time"

// cpuTime is not known here: 0.
func cpuTime() time.Duration { return 0 }
