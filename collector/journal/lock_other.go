//go:build !unix || aix || solaris

package journal

import "os"

// acquire cannot keep other processes off on this system.
func acquire(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
