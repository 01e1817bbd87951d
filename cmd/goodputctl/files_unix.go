//go:build unix

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// otherFiles is how many files a process has open beside one a connection, with room to spare.
const otherFiles = 64

// enoughFiles refuses a load that the limit of open files does not allow. Go has raised the soft limit to the hard one.
func enoughFiles(connections int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil //nolint:nilerr // not known: nothing to refuse
	}
	if need := uint64(connections) + otherFiles; need > limit.Cur {
		return fmt.Errorf("%d connections need a limit of %d open files; it is %d here: raise it with ulimit -n %d", connections, need, limit.Cur, need)
	}
	return nil
}
