package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// rotatedLayout is how timberjack writes the time of the rotation, in UTC: results-2026-11-29T18-00-00.000-size.jsonl.
const rotatedLayout = "2006-01-02T15-04-05.000"

// list lists the files of a journal in order of time, the one that is written last. Those that were rotated before since
// hold nothing later, and are left out.
func list(path string, since time.Time) ([]string, error) {
	dir, base := filepath.Split(path)
	ext := filepath.Ext(base)
	dirEntries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	var names []string // ReadDir sorts by name, which begins with the time
	for _, e := range dirEntries {
		stamp, ok := strings.CutPrefix(e.Name(), strings.TrimSuffix(base, ext)+"-")
		if !ok || !strings.HasSuffix(stamp, ext) || len(stamp) < len(rotatedLayout) {
			continue
		}
		if at, err := time.Parse(rotatedLayout, stamp[:len(rotatedLayout)]); err == nil && !at.Before(since.Truncate(time.Millisecond)) {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	if slices.ContainsFunc(dirEntries, func(e os.DirEntry) bool { return e.Name() == base }) {
		names = append(names, path)
	}
	return names, nil
}

// tail is what repair found out of a file.
type tail struct {
	size int64     // once it was repaired
	torn int64     // bytes that were cut off
	born time.Time // of the first result, as far as it can be read
}

// repair makes the file end with a whole line, or be empty, and exist.
func repair(path string) (tail, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return tail{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return tail{}, err
	}
	if !info.Mode().IsRegular() {
		return tail{}, fmt.Errorf("not a regular file but %s", info.Mode().Type())
	}
	t := tail{born: time.Now()}
	if t.size, err = lastLineEnd(f, info.Size()); err != nil {
		return tail{}, err
	}
	if t.torn = info.Size() - t.size; t.torn > 0 {
		if err := errors.Join(f.Truncate(t.size), f.Sync()); err != nil {
			return tail{}, err
		}
	}
	first := make([]byte, maxLine)
	n, err := f.ReadAt(first, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return tail{}, err
	}
	line, _, _ := bytes.Cut(first[:n], []byte{'\n'})
	if p, err := parse(line, nil); err == nil {
		t.born = p.time
	}
	return t, nil
}

// lastLineEnd returns the offset behind the last end of a line, or 0.
func lastLineEnd(f io.ReaderAt, size int64) (int64, error) {
	block := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(end-int64(len(block)), 0)
		part := block[:end-start]
		if _, err := f.ReadAt(part, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// syncDir makes the names in a folder survive a power cut, where the system and its file system can do that.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
