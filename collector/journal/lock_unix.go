//go:build unix && !aix && !solaris

package journal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// acquire takes a lock that ends with the process. Whoever closes what it returns lets go of it.
func acquire(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("another process writes to it (it holds %s): each needs a journal of its own", path)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
