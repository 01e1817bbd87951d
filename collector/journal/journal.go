// Package journal keeps results on disk, so that the live windows come back after a restart. A journal is a file of
// JSON lines, one result a line as goodputctl probe prints it, and the rotated files beside it.
//
// What can be lost: a result waits in a queue until the one writer has written it by one write(2). kill -9 loses what is
// in the queue. A power cut loses what was written in the last SyncInterval as well: the file is synced that often, before
// it is rotated, and by Close. Each line has a checksum, so that a line which was torn or damaged is noticed and
// left out, and never taken for something else.
package journal

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/DeRuina/timberjack"

	"goodput_exporter/probe"
)

// Options of a Journal. Path is required.
type Options struct {
	Path string // of the file that is written; rotated ones and the lock lie beside it. Its folder is made if need be

	MaxFileBytes int64         // a file is rotated before it is larger; 0 is DefaultMaxFileBytes, MinFileBytes the least
	MaxFiles     int           // the one that is written included; 0 is DefaultMaxFiles, 2 the least
	MaxAge       time.Duration // rotated files are removed when they are older, in whole days; 0 is DefaultMaxAge
	SyncInterval time.Duration // 0 is DefaultSyncInterval

	// OnError is told of what went wrong while writing, at most once a minute. The journal goes on and tries again with
	// the next result. It is called from the writer and must not call the Journal. It may be nil.
	OnError func(error)
}

// Defaults and bounds of Options.
const (
	DefaultMaxFileBytes = 64 << 20
	MinFileBytes        = maxLine
	DefaultMaxFiles     = 16
	DefaultMaxAge       = 4 * 24 * time.Hour // more than the longest live window
	DefaultSyncInterval = time.Second
)

// fileAge is after how long a file is rotated even though it is small, so that MaxAge means something.
const fileAge = 24 * time.Hour

// queueLength is how many results wait at most for a slow disk: 20 s of 3,000 series that are probed every 15 s.
const queueLength = 4096

// Journal writes results to disk. It is safe for concurrent use.
type Journal struct {
	mu     sync.RWMutex // Append sends under it, so that Close can close the queue
	closed bool
	queue  chan entry

	writer *writer
	done   chan error // what Close returns

	lost atomic.Uint64 // because the queue was full
}

// entry is a result and the key of its series.
type entry struct {
	key    string
	result *probe.Result
}

// Stats count what a Journal did since it was opened.
type Stats struct {
	Written uint64 // results
	Bytes   uint64
	Lost    uint64 // results that the queue had no room for, or that could not be written
	Errors  uint64 // of writing, rotating and syncing

	TornBytes int64 // how much Open cut off, since it was no whole line
}

// Open opens a journal to append to it. It fails if another process has it open, or if it cannot be written. A torn
// last line, which a kill or a power cut left, is cut off.
func Open(opts Options) (*Journal, error) {
	opts.MaxFileBytes = cmp.Or(opts.MaxFileBytes, DefaultMaxFileBytes)
	opts.MaxFiles = cmp.Or(opts.MaxFiles, DefaultMaxFiles)
	opts.MaxAge = cmp.Or(opts.MaxAge, DefaultMaxAge)
	opts.SyncInterval = cmp.Or(opts.SyncInterval, DefaultSyncInterval)
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j, err := open(opts)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", opts.Path, err)
	}
	return j, nil
}

func (o *Options) validate() error {
	switch {
	case o.Path == "":
		return fmt.Errorf("no path")
	case o.MaxFileBytes < MinFileBytes:
		return fmt.Errorf("%d bytes a file are too few: at least %d", o.MaxFileBytes, MinFileBytes)
	case o.MaxFiles < 2:
		return fmt.Errorf("%d files are too few: at least 2, the one that is written and a rotated one", o.MaxFiles)
	case o.MaxAge < 0 || o.SyncInterval < 0:
		return fmt.Errorf("a negative age (%s) or sync interval (%s)", o.MaxAge, o.SyncInterval)
	}
	return nil
}

func open(opts Options) (*Journal, error) {
	dir := filepath.Dir(opts.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := acquire(opts.Path + ".lock")
	if err != nil {
		return nil, err
	}
	tail, err := repair(opts.Path)
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	const megabyte, day = 1 << 20, 24 * time.Hour
	return start(&writer{
		opts: opts, lock: lock, size: tail.size, born: tail.born, torn: tail.torn,
		file: &timberjack.Logger{
			Filename:   opts.Path,
			FileMode:   0o600,
			MaxSize:    int(opts.MaxFileBytes/megabyte) + 1, // never reached: the writer rotates, since it syncs before
			MaxBackups: opts.MaxFiles - 1,
			MaxAge:     int((opts.MaxAge + day - 1) / day),
		},
	}), nil
}

func start(w *writer) *Journal {
	j := &Journal{queue: make(chan entry, queueLength), writer: w, done: make(chan error, 1)}
	go func() { j.done <- w.run(j.queue, &j.lost) }()
	return j
}

// Append journals a result of the series of that key. It never waits for the disk: where that is too slow, the result is
// lost and counted. So is one that comes after Close.
func (j *Journal) Append(key string, r *probe.Result) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if !j.closed {
		select {
		case j.queue <- entry{key, r}:
			return
		default:
		}
	}
	j.lost.Add(1)
}

// Close writes what is in the queue, syncs the file, and lets go of it. It waits for the disk.
func (j *Journal) Close() error {
	j.mu.Lock()
	closed := j.closed
	j.closed = true
	j.mu.Unlock()
	if closed {
		return nil
	}
	close(j.queue)
	if err := <-j.done; err != nil {
		return fmt.Errorf("journal %s: %w", j.writer.opts.Path, err)
	}
	return nil
}

// Stats returns what the journal did so far.
func (j *Journal) Stats() Stats {
	w := j.writer
	return Stats{
		Written: w.written.Load(), Bytes: w.bytes.Load(), Errors: w.errors.Load(),
		Lost: j.lost.Load() + w.failed.Load(), TornBytes: w.torn,
	}
}
