package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long Watch waits after the first sign of a change: editors and Kubernetes replace a file in several
// steps.
const settle = time.Second

// recheck is how often Watch looks without a sign: some file systems (NFS) send none.
const recheck = time.Minute

// Watch calls changed when what the configuration's target files hold is different from what was loaded: written,
// replaced, new, or gone. It watches directories, so that renames and the symlink swaps of Kubernetes are seen, and
// returns nil when ctx ends.
func (c *Config) Watch(ctx context.Context, changed func()) error {
	w, err := newWatcher(c.TargetGlobs)
	if err != nil {
		return fmt.Errorf("watch target files: %w", err)
	}
	if c.loaded != nil {
		w.before = c.loaded
	}
	w.run(ctx, settle, changed)
	return nil
}

type watcher struct {
	notify *fsnotify.Watcher
	globs  []string
	before []byte // digest of what the files held when the caller last heard of a change
}

// newWatcher returns a watcher that from now on misses nothing. run must follow.
func newWatcher(globs []string) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{notify: notify, globs: globs}
	w.follow()
	w.before = contents(globs)
	return w, nil
}

func (w *watcher) run(ctx context.Context, settle time.Duration, changed func()) {
	defer w.notify.Close()
	ticker := time.NewTicker(recheck)
	defer ticker.Stop()
	settled := time.After(settle) // something may have changed since before; nil while nothing happened
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.notify.Events:
		case <-w.notify.Errors: //nolint:errcheck // events were lost: that is a reason to look
		case <-ticker.C:
		case <-settled:
			settled = nil
			w.follow() // first, so that nothing changes unseen after the look
			if now := contents(w.globs); !bytes.Equal(now, w.before) {
				w.before = now
				changed()
			}
			continue
		}
		if settled == nil {
			settled = time.After(settle)
		}
	}
}

// follow watches the directories that matter now, and no others. A directory that cannot be watched is left to the
// regular look.
func (w *watcher) follow() {
	var dirs []string
	for _, glob := range w.globs {
		dirs = append(dirs, directories(glob)...)
	}
	for _, dir := range w.notify.WatchList() {
		if !slices.Contains(dirs, dir) {
			_ = w.notify.Remove(dir)
		}
	}
	for _, dir := range dirs {
		_ = w.notify.Add(dir)
	}
}

// directories returns those where a change can change what a pattern matches: from the pattern's own up to the first
// that exists and whose name is no pattern, and those that matching symlinks lead to.
func directories(glob string) []string {
	var dirs []string
	for dir := filepath.Dir(glob); ; dir = filepath.Dir(dir) {
		found, _ := filepath.Glob(dir)
		dirs = append(dirs, found...)
		if (len(found) > 0 && !strings.ContainsAny(dir, `*?[\`)) || dir == filepath.Dir(dir) {
			break
		}
	}
	files, _ := filepath.Glob(glob)
	for _, file := range files {
		if end, err := filepath.EvalSymlinks(file); err == nil && end != file {
			dirs = append(dirs, filepath.Dir(end))
		}
	}
	return dirs
}

// contents is a digest of the names and contents of all files that match.
func contents(globs []string) []byte {
	sum := sha256.New()
	for _, glob := range globs {
		files, _ := filepath.Glob(glob)
		for _, file := range files {
			fmt.Fprintf(sum, "%q\n", file)
			if f, err := os.Open(file); err == nil {
				_, _ = io.Copy(sum, f)
				f.Close()
			}
		}
	}
	return sum.Sum(nil)
}
