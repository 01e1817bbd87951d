package journal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"
)

// rotated is a file that rotates: *timberjack.Logger.
type rotated interface {
	io.WriteCloser
	Sync() error
	RotateWithReason(reason string) error
}

// writer is the one goroutine that writes.
type writer struct {
	opts Options
	file rotated
	lock io.Closer
	torn int64 // what Open cut off

	size   int64     // of the file
	born   time.Time // when the file was begun
	broken bool      // a write ended within a line
	line   []byte    // reused

	told     time.Time // when OnError was called last
	lostTold uint64    // results that were lost then

	written, bytes, failed, errors atomic.Uint64
}

// run writes the entries of the queue until it is closed.
func (w *writer) run(queue <-chan entry, lost *atomic.Uint64) error {
	defer w.lock.Close()
	var due <-chan time.Time
	for {
		select {
		case e, ok := <-queue:
			if !ok {
				return errors.Join(w.file.Sync(), w.file.Close())
			}
			if err := w.write(e); err != nil {
				w.failed.Add(1)
				w.fail(err, lost)
			} else if n := lost.Load(); n > w.lostTold {
				w.tell(errors.New("the disk is too slow"), n)
			}
			if due == nil {
				due = time.After(w.opts.SyncInterval)
			}
		case <-due:
			due = nil
			if err := w.file.Sync(); err != nil {
				w.fail(err, lost)
				due = time.After(w.opts.SyncInterval)
			}
		}
	}
}

// write writes a result as one line by one write(2).
func (w *writer) write(e entry) error {
	w.line = w.line[:0]
	if w.broken {
		w.line = append(w.line, '\n') // what is there is no line, and shall not spoil this one
	}
	var err error
	if w.line, err = appendLine(w.line, e); err != nil {
		return err
	}
	if err := w.rotate(); err != nil {
		return err
	}
	n, err := w.file.Write(w.line)
	w.size += int64(n)
	w.bytes.Add(uint64(n))
	if err != nil {
		w.broken = w.broken || n > 0
		return err
	}
	w.broken = false
	w.written.Add(1)
	return nil
}

// rotate begins a new file where the line has no room in this one, or where this one is old. What is in it is synced
// before: nobody syncs it later.
func (w *writer) rotate() error {
	reason := "size"
	switch {
	case w.size == 0:
		return nil
	case w.size+int64(len(w.line)) > w.opts.MaxFileBytes:
	case time.Since(w.born) >= fileAge:
		reason = "time"
	default:
		return nil
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	if err := w.file.RotateWithReason(reason); err != nil {
		return err
	}
	w.size, w.born = 0, time.Now()
	return syncDir(filepath.Dir(w.opts.Path))
}

// fail counts an error and tells of it.
func (w *writer) fail(err error, lost *atomic.Uint64) {
	w.errors.Add(1)
	w.tell(err, lost.Load())
}

// tell tells of an error, unless it told of one less than a minute ago. lost is how many results the queue had no room for.
func (w *writer) tell(err error, lost uint64) {
	if w.opts.OnError == nil || (!w.told.IsZero() && time.Since(w.told) < time.Minute) {
		return
	}
	w.told, w.lostTold = time.Now(), lost
	w.opts.OnError(fmt.Errorf("journal %s: %w (%d results lost so far)", w.opts.Path, err, lost+w.failed.Load()))
}
