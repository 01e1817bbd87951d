//go:build unix

package journal

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The test of kill -9 runs this binary again, with these variables.
const (
	killedPath = "JOURNAL_KILLED_PATH" // of the journal
	killedFrom = "JOURNAL_KILLED_FROM" // the first number to append
)

// TestKillLoop kills a process that journals 50 times, at any moment, rotations included. Every start finds an unbroken
// sequence of results that holds each one that was written for certain.
func TestKillLoop(t *testing.T) {
	t.Parallel() // it waits for processes
	path := newPath(t)
	last, files := 0, 0
	for range 50 {
		written := killed(t, path, last+1)
		results, sum := replayAll(t, path)
		list := numbers(t, results)
		if !slices.Equal(list, count(1, len(list))) {
			t.Fatalf("not unbroken: %d results", len(list))
		}
		if len(list) < written || sum.Damaged > 0 {
			t.Fatalf("%d results, %+v: %d were written", len(list), sum, written)
		}
		for _, r := range results[last:] {
			n, _ := strconv.Atoi(r.RequestID)
			want := numbered(n)
			want.Time = r.Time // of the other process
			if !reflect.DeepEqual(want, r) {
				t.Fatalf("result %d, -want +got:\n%s", n, cmp.Diff(want, r))
			}
		}
		last, files = len(list), sum.Files
	}
	if last < 50 || files < 2 {
		t.Errorf("%d results in %d files: nothing was tested", last, files)
	}
}

// killed has a process journal results from a number on, kills it, and returns the last number that it said to be written.
func killed(t *testing.T, path string, from int) (written int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestKilledProcess$")
	cmd.Env = append(os.Environ(), killedPath+"="+path, killedFrom+"="+strconv.Itoa(from))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	written = from - 1
	for said := bufio.NewScanner(out); said.Scan(); {
		n, err := strconv.Atoi(said.Text())
		if err != nil {
			t.Fatalf("the process says %q", said.Text())
		}
		if written < from {
			time.AfterFunc(rand.N(5*time.Millisecond), func() { _ = cmd.Process.Kill() })
		}
		written = n
	}
	_ = cmd.Wait() // killed
	if written < from {
		t.Fatal("the process wrote nothing")
	}
	return written
}

// TestKilledProcess is the process that is killed. It appends results in bursts, and says the last number of each once it
// is written.
func TestKilledProcess(t *testing.T) {
	path := os.Getenv(killedPath)
	if path == "" {
		t.Skip("only for TestKillLoop")
	}
	from, err := strconv.Atoi(os.Getenv(killedFrom))
	if err != nil {
		t.Fatal(err)
	}
	j := mustOpen(t, Options{Path: path, MaxFileBytes: MinFileBytes, MaxFiles: 10_000, SyncInterval: 5 * time.Millisecond})
	for n := from; ; n++ {
		j.Append("chat-eu/chat", numbered(n))
		if n%8 == 0 || n == from {
			waitWritten(t, j, n-from+1)
			fmt.Fprintln(os.Stdout, n)
		}
	}
}
