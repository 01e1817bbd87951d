package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/probe"
)

func TestResultsComeBackEqual(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, Options{Path: path})
	appendNumbered(t, j, 1, 100)
	mustClose(t, j)
	j = mustOpen(t, Options{Path: path})
	appendNumbered(t, j, 101, 200)
	mustClose(t, j)

	var want []*probe.Result
	for n := 1; n <= 200; n++ {
		want = append(want, numbered(n))
	}
	got, sum := replayAll(t, path)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if want := (Replayed{Files: 1, Restored: 200}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	stats, size := j.Stats(), fileSize(t, path)
	if stats.Written != 100 || stats.Lost+stats.Errors > 0 || stats.Bytes == 0 || int64(stats.Bytes) >= size {
		t.Errorf("%+v of the second half of %d bytes", stats, size)
	}
}

func TestLongTextIsCut(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, Options{Path: path})
	r := numbered(1)
	r.Text = strings.Repeat("x", maxText-1) + "ß and what else a server sends"
	r.Error = strings.Repeat("<", 1<<20) // six bytes each in JSON
	j.Append("chat-eu/chat", r)
	r = numbered(2)
	r.RequestID = strings.Repeat("x", maxLine)
	j.Append("chat-eu/chat", r)
	appendNumbered(t, j, 3, 3)
	mustClose(t, j)

	got, sum := replayAll(t, path)
	want := []*probe.Result{numbered(1), numbered(3)}
	want[0].Text, want[0].Error = strings.Repeat("x", maxText-1), strings.Repeat("<", maxText)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if stats := j.Stats(); sum.Damaged != 0 || stats.Errors != 1 || stats.Lost != 1 {
		t.Errorf("%+v, %+v: want one result lost that is too long", sum, stats)
	}
}

func TestReplaySince(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, Options{Path: path})
	appendNumbered(t, j, 1, 100)
	mustClose(t, j)
	var got []*probe.Result
	if _, err := Replay(path, numbered(60).Time, func(_ string, r *probe.Result) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(count(60, 100), numbers(t, got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRotatedBeforeSinceIsNotRead checks that a start does not read what is too old to matter.
func TestRotatedBeforeSinceIsNotRead(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, Options{Path: path, MaxFileBytes: MinFileBytes})
	appendNumbered(t, j, 1, 1000)
	mustClose(t, j)
	if files := len(mustList(t, path)); files < 3 {
		t.Fatalf("%d files", files)
	}
	sum, err := Replay(path, time.Now().Add(time.Second), func(string, *probe.Result) { t.Error("restored") })
	if err != nil || sum.Files != 1 {
		t.Errorf("%+v, %v: want the file alone that is written", sum, err)
	}
}

func TestReplayOfNothing(t *testing.T) {
	for name, path := range map[string]string{
		"no folder": filepath.Join(t.TempDir(), "none", "results.jsonl"),
		"no file":   filepath.Join(t.TempDir(), "results.jsonl"),
	} {
		if got, sum := replayAll(t, path); len(got) > 0 || sum != (Replayed{}) {
			t.Errorf("%s: %+v", name, sum)
		}
	}
}

func TestRotationBySizeKeepsOrderAndBounds(t *testing.T) {
	path := newPath(t)
	opts := Options{Path: path, MaxFileBytes: MinFileBytes, MaxFiles: 4}
	const results = 4000
	for n := 0; n < results; n += results / 4 { // restarts in between
		j := mustOpen(t, opts)
		appendNumbered(t, j, n+1, n+results/4)
		mustClose(t, j)
	}
	got, sum := replayAll(t, path)
	list := numbers(t, got)
	if len(list) == 0 || len(list) == results || !slices.Equal(list, count(list[0], results)) {
		t.Errorf("not the last results in order: %d from %v on", len(list), list[:min(len(list), 1)])
	}
	files := mustList(t, path)
	for _, name := range files {
		if size := fileSize(t, name); size > opts.MaxFileBytes {
			t.Errorf("%s has %d bytes", name, size)
		}
	}
	if len(files) != 4 || sum.Files != 4 || sum.Damaged > 0 {
		t.Errorf("%d files, %+v", len(files), sum)
	}
}

func TestRotationByAge(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, Options{Path: path})
	appendNumbered(t, j, 1, 10)
	mustClose(t, j)
	line, err := appendLine(nil, entry{"chat-eu/chat", &probe.Result{
		Target: "chat-eu", Scenario: "chat", Outcome: probe.Good, RequestID: "0", Time: time.Now().Add(-fileAge - time.Second),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, line, 0o600); err != nil {
		t.Fatal(err)
	}
	j = mustOpen(t, Options{Path: path})
	appendNumbered(t, j, 1, 2)
	mustClose(t, j)
	got, sum := replayAll(t, path)
	if diff := cmp.Diff(count(0, 2), numbers(t, got)); diff != "" || sum.Files != 2 {
		t.Errorf("%+v, -want +got:\n%s", sum, diff)
	}
}

// TestRotatedFileIsRemovedByAge has the library remove what is older than MaxAge, by the name of the file.
func TestRotatedFileIsRemovedByAge(t *testing.T) {
	path := newPath(t)
	old := func(age time.Duration) string {
		stamp := time.Now().Add(-age).UTC().Format(rotatedLayout)
		return strings.TrimSuffix(path, ".jsonl") + "-" + stamp + "-time.jsonl"
	}
	tooOld, young := old(49*time.Hour), old(47*time.Hour)
	mustClose(t, mustOpen(t, Options{Path: path}))
	for _, name := range []string{tooOld, young} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := mustOpen(t, Options{Path: path, MaxAge: 25 * time.Hour}) // in whole days: 48 hours
	appendNumbered(t, j, 1, 1)
	mustClose(t, j)
	if diff := cmp.Diff([]string{young, path}, mustList(t, path)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOthersCannotRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	path := newPath(t)
	j := mustOpen(t, Options{Path: path, MaxFileBytes: MinFileBytes})
	appendNumbered(t, j, 1, 500)
	mustClose(t, j)
	for _, name := range append(mustList(t, path), path+".lock", filepath.Dir(path)) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %s", name, info.Mode())
		}
	}
}

func TestOneWriterOnly(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, Options{Path: path})
	_, err := Open(Options{Path: path})
	if want := "another process writes to it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	mustClose(t, j)
	mustClose(t, mustOpen(t, Options{Path: path}))
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		opts Options
		want string
	}{
		{"without a path", Options{}, "no path"},
		{"on a folder", Options{Path: dir}, "is a directory"},
		{"below a file", Options{Path: filepath.Join(file, "results.jsonl")}, "not a directory"},
		{"with small files", Options{Path: "x", MaxFileBytes: 1000}, fmt.Sprintf("at least %d", MinFileBytes)},
		{"with one file", Options{Path: "x", MaxFiles: 1}, "at least 2"},
		{"with a negative age", Options{Path: "x", MaxAge: -1}, "negative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open(tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestAppendAfterClose(t *testing.T) {
	j := mustOpen(t, Options{Path: newPath(t)})
	mustClose(t, j)
	mustClose(t, j)
	j.Append("chat-eu/chat", numbered(1))
	if stats := j.Stats(); stats.Lost != 1 || stats.Written != 0 {
		t.Errorf("%+v", stats)
	}
}

func mustList(t testing.TB, path string) []string {
	t.Helper()
	files, err := list(path, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func fileSize(t testing.TB, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// BenchmarkReplay reads a journal of 100,000 results.
func BenchmarkReplay(b *testing.B) {
	path := newPath(b)
	j := mustOpen(b, Options{Path: path})
	const results = 100_000
	appendNumbered(b, j, 1, results)
	mustClose(b, j)
	var size int64
	for _, name := range mustList(b, path) {
		size += fileSize(b, name)
	}
	for _, bb := range []struct {
		name  string
		since time.Time
	}{{"all", time.Time{}}, {"too old", numbered(results).Time}} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Replay(path, bb.since, func(string, *probe.Result) {}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(results*b.N)/b.Elapsed().Seconds(), "results/s")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	j := mustOpen(b, Options{Path: newPath(b)})
	r := numbered(1)
	b.ReportAllocs()
	for b.Loop() {
		if err := j.writer.write(entry{"chat-eu/chat", r}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode reads results on one processor, as this package writes them and as encoding/json reads any.
func BenchmarkDecode(b *testing.B) {
	const results = 1000
	text := lines(b, results)
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got := decode(text, time.Time{}); len(got.entries) != results {
				b.Fatal(got.damaged)
			}
		}
		b.ReportMetric(float64(results*b.N)/b.Elapsed().Seconds(), "results/s")
	})
	b.Run("any", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for line := range bytes.Lines(text) {
				if err := new(probe.Result).UnmarshalJSON(line); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(results*b.N)/b.Elapsed().Seconds(), "results/s")
	})
}
