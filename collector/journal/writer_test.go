package journal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// disk is a rotated file in memory that fails as it is told.
type disk struct {
	text    bytes.Buffer
	gate    chan struct{} // a write waits for it
	room    int           // of the next write, in bytes, while failing
	failing error
	calls   []string
}

func (d *disk) Write(p []byte) (int, error) {
	if d.gate != nil {
		<-d.gate
	}
	if d.failing != nil {
		d.text.Write(p[:d.room])
		return d.room, d.failing
	}
	d.calls = append(d.calls, "write")
	return d.text.Write(p)
}

func (d *disk) Sync() error { return d.call("sync") }

func (d *disk) Close() error { return d.call("close") }

func (d *disk) RotateWithReason(reason string) error { return d.call("rotate by " + reason) }

func (d *disk) call(what string) error {
	d.calls = append(d.calls, what)
	return d.failing
}

func (d *disk) restored(t *testing.T) (list []int, damaged int) {
	t.Helper()
	b := decode(d.text.Bytes(), time.Time{})
	return numbers(t, b.results()), b.damaged
}

// on starts a journal on a file.
func on(t *testing.T, file rotated, onError func(error)) *Journal {
	t.Helper()
	return start(&writer{
		file: file, lock: io.NopCloser(nil), born: time.Now(),
		opts: Options{Path: t.TempDir() + "/results.jsonl", MaxFileBytes: MinFileBytes, SyncInterval: time.Second, OnError: onError},
	})
}

func TestSyncPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		j := on(t, d, nil)
		for n := 1; n <= 4; n++ { // at 0, 0.4, 0.8 and 1.2 s
			j.Append("chat-eu/chat", numbered(n))
			time.Sleep(400 * time.Millisecond)
		}
		time.Sleep(time.Minute) // nothing to sync
		j.Append("chat-eu/chat", numbered(5))
		synctest.Wait()
		mustClose(t, j)
		want := []string{"write", "write", "write", "sync", "write", "sync", "write", "sync", "close"}
		if diff := cmp.Diff(want, d.calls); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestSyncedBeforeRotation checks that no file is left behind unsynced.
func TestSyncedBeforeRotation(t *testing.T) {
	d := &disk{}
	j := on(t, d, nil)
	appendNumbered(t, j, 1, 500)
	mustClose(t, j)
	at := slices.Index(d.calls, "rotate by size")
	if at < 1 || d.calls[at-1] != "sync" {
		t.Errorf("rotated at call %d of %d", at, len(d.calls))
	}
}

// TestDiskFull has a disk run full within a line, and then have room again.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		var told []string
		j := on(t, d, func(err error) { told = append(told, err.Error()) })
		add := func(n int) {
			j.Append("chat-eu/chat", numbered(n))
			synctest.Wait()
		}
		add(1)
		d.failing, d.room = errors.New("no space left on device"), 100
		add(2)
		d.room = 0
		add(3)
		time.Sleep(10 * time.Second) // syncs fail too
		add(4)
		d.failing = nil
		add(5)
		add(6)
		mustClose(t, j)

		list, damaged := d.restored(t)
		if diff := cmp.Diff([]int{1, 5, 6}, list); diff != "" || damaged != 1 {
			t.Errorf("%d damaged, -want +got:\n%s", damaged, diff)
		}
		if len(told) != 1 || !strings.Contains(told[0], "no space left on device (1 results lost so far)") {
			t.Errorf("told %q: want it once a minute", told)
		}
		stats := j.Stats()
		if stats.Written != 3 || stats.Lost != 3 || stats.Errors < 4 || int(stats.Bytes) != d.text.Len() {
			t.Errorf("%+v of %d bytes", stats, d.text.Len())
		}
	})
}

// TestSlowDisk checks that Append does not wait for the disk, and that what is lost is counted and told.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		var told []string
		j := on(t, d, func(err error) { told = append(told, err.Error()) })
		j.Append("chat-eu/chat", numbered(1))
		synctest.Wait() // it is being written
		for n := 2; n <= queueLength+11; n++ {
			j.Append("chat-eu/chat", numbered(n))
		}
		if stats := j.Stats(); stats.Lost != 10 || stats.Written != 0 {
			t.Errorf("%+v", stats)
		}
		close(d.gate)
		mustClose(t, j)
		if stats := j.Stats(); stats.Lost != 10 || stats.Written != queueLength+1 || stats.Errors != 0 {
			t.Errorf("%+v", stats)
		}
		if len(told) != 1 || !strings.Contains(told[0], "the disk is too slow (10 results lost so far)") {
			t.Errorf("told %q", told)
		}
	})
}

// full is a file of a device that is always full.
type full struct{ *os.File }

func (full) RotateWithReason(string) error { return nil }

func TestFullDevice(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no such device")
	}
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	j := on(t, full{f}, func(err error) { told <- err })
	j.Append("chat-eu/chat", numbered(1))
	if err := <-told; !strings.Contains(err.Error(), "no space left on device") {
		t.Error(err)
	}
	_ = j.Close() // a device cannot be synced
	if stats := j.Stats(); stats.Lost != 1 || stats.Written != 0 {
		t.Errorf("%+v", stats)
	}
}

// TestFolderGone takes the folder of an open journal away. With its next file the journal is back.
func TestFolderGone(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, Options{Path: path, MaxFileBytes: MinFileBytes})
	appendNumbered(t, j, 1, 1)
	if err := os.Rename(filepath.Dir(path), filepath.Dir(path)+"2"); err != nil {
		t.Fatal(err)
	}
	for n := 2; n <= 600; n++ {
		j.Append("chat-eu/chat", numbered(n))
	}
	mustClose(t, j)
	got, _ := replayAll(t, path)
	if list := numbers(t, got); len(list) == 0 || !slices.Equal(list, count(list[0], 600)) {
		t.Errorf("not the last results, but %d; %+v", len(list), j.Stats())
	}
}
