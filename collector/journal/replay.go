package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"goodput_exporter/probe"
)

// Replayed counts what Replay found.
type Replayed struct {
	Files     int
	Restored  int   // results
	Damaged   int   // lines that were left out since they are not what was written
	TornBytes int64 // at the ends of files, which are no whole line
}

// Replay reads the journal that is written at path, and calls restore for every result that is not older than since, in
// the order in which they were journaled. It reads in bounded memory. While the journal is open, it must be done before the first
// Append. There need be no journal. A damaged line is no error; what was read before an error was restored.
func Replay(path string, since time.Time, restore func(key string, r *probe.Result)) (Replayed, error) {
	files, err := list(path, since)
	if errors.Is(err, os.ErrNotExist) {
		return Replayed{}, nil
	}
	if err != nil {
		return Replayed{}, fmt.Errorf("journal %s: %w", path, err)
	}
	// Batches of lines are decoded by all processors at once. Their turn is kept by the order of the channels in which
	// what they hold arrives.
	decoded := make(chan (<-chan batch), runtime.GOMAXPROCS(0))
	var sum Replayed
	read := newReader(func(lines []byte) {
		out := make(chan batch, 1)
		decoded <- out
		go func() { out <- decode(lines, since) }()
	})
	go func() {
		defer close(decoded)
		err = read.all(files)
	}()
	for out := range decoded {
		b := <-out
		for _, e := range b.entries {
			restore(e.key, e.result)
		}
		sum.Restored += len(b.entries)
		sum.Damaged += b.damaged
	}
	sum.Files, sum.TornBytes = read.files, read.torn
	sum.Damaged += read.tooLong
	if err != nil {
		return sum, fmt.Errorf("journal: %w", err)
	}
	return sum, nil
}

// reader cuts files into batches of whole lines.
type reader struct {
	decode func(lines []byte) // which it may keep
	lines  *bufio.Reader

	files, tooLong int
	torn           int64
}

func newReader(decode func(lines []byte)) *reader {
	return &reader{decode: decode, lines: bufio.NewReaderSize(nil, maxLine)}
}

// batchSize is about how many bytes of lines are decoded at once.
const batchSize = 256 << 10

func (r *reader) all(names []string) error {
	for _, name := range names {
		if err := r.file(name); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) file(name string) error {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was removed since: it was too old
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r.files++
	if err := r.read(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (r *reader) read(from io.Reader) error {
	r.lines.Reset(from)
	var batch []byte
	for {
		line, err := r.lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			err = r.skip(len(line))
		case errors.Is(err, io.EOF):
			r.torn += int64(len(line))
		case err == nil:
			batch = append(batch, line...)
		}
		if len(batch) >= batchSize || (err != nil && len(batch) > 0) {
			r.decode(batch)
			batch = nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if batch == nil {
			batch = make([]byte, 0, batchSize+4<<10) // with a line beyond
		}
	}
}

// skip leaves out the rest of a line that is too long.
func (r *reader) skip(seen int) error {
	for {
		part, err := r.lines.ReadSlice('\n')
		seen += len(part)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			r.torn += int64(seen)
		case err == nil:
			r.tooLong++
		}
		return err
	}
}

// batch is what some lines hold.
type batch struct {
	entries []entry
	damaged int
}

func decode(lines []byte, since time.Time) batch {
	var b batch
	shared := names{}
	for line := range bytes.Lines(lines) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		if len(line) == 0 {
			continue // the end of what a failed write left
		}
		p, err := parse(line, shared)
		if err == nil && p.time.Before(since) {
			continue
		}
		var e entry
		if err == nil {
			e, err = p.entry()
		}
		if err != nil {
			b.damaged++
			continue
		}
		b.entries = append(b.entries, e)
	}
	return b
}
