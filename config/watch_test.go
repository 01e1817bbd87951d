package config

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestWatchSeesChanges(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(dir string) error
		globs   []string
		change  func(dir string) error
	}{
		{"a file is written", file("a.yml", "1"), []string{"*.yml"}, file("a.yml", "2")},
		{"a file is new", nil, []string{"*.yml"}, file("a.yml", "1")},
		{"a file is removed", file("a.yml", "1"), []string{"a.yml"}, func(dir string) error { return os.Remove(filepath.Join(dir, "a.yml")) }},
		{"an editor renames over a file", file("a.yml", "1"), []string{"a.yml"}, steps(file("a.yml~", "2"), rename("a.yml~", "a.yml"))},
		{
			"Kubernetes swaps a symlink",
			steps(file("..1/a.yml", "1"), file("..2/a.yml", "2"), symlink("..1", "..data"), symlink("..data/a.yml", "a.yml")),
			[]string{"*.yml"},
			steps(symlink("..2", "..tmp"), rename("..tmp", "..data")),
		},
		{"a symlink's destination is written", steps(file("far/a.yml", "1"), symlink("far/a.yml", "a.yml")), []string{"*.yml"}, file("far/a.yml", "2")},
		{"the directory is new", nil, []string{"conf/more/*.yml"}, file("conf/more/a.yml", "1")},
		{"a directory that matches is new", file("conf/x/a.yml", "1"), []string{"conf/*/a.yml"}, file("conf/y/a.yml", "1")},
		{
			"the directory is replaced", steps(file("conf/a.yml", "1"), file("new/a.yml", "2")),
			[]string{"conf/*.yml"},
			steps(rename("conf", "old"), rename("new", "conf")),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.prepare != nil {
				if err := tt.prepare(dir); err != nil {
					t.Fatal(err)
				}
			}
			changed, _ := startWatch(t, dir, tt.globs, 50*time.Millisecond)
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			select {
			case <-changed:
			case <-time.After(20 * time.Second):
				t.Error("the change was not seen")
			}
		})
	}
}

// A file beside the targets that changes all the time must not lead to reloads.
func TestWatchIgnoresOtherFiles(t *testing.T) {
	dir := t.TempDir()
	if err := file("a.yml", "1")(dir); err != nil {
		t.Fatal(err)
	}
	changed, stop := startWatch(t, dir, []string{"*.yml"}, time.Nanosecond)
	change := steps(
		file("log.txt", "1"), file("log.txt", "2"),
		file("same", "1"), rename("same", "a.yml"), // replaced by its like
		file("new", "1"), rename("new", "b.yml"),
	)
	if err := change(dir); err != nil {
		t.Fatal(err)
	}
	<-changed
	stop()
	if len(changed) > 0 {
		t.Error("changed was called more than once for one change")
	}
}

// startWatch watches until stop or the end of the test.
func startWatch(t *testing.T, dir string, globs []string, settle time.Duration) (changed <-chan struct{}, stop func()) {
	t.Helper()
	var patterns []string
	for _, glob := range globs {
		patterns = append(patterns, filepath.Join(dir, glob))
	}
	w, err := newWatcher(patterns)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := make(chan struct{}, 16)
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx, settle, func() { calls <- struct{}{} }) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return calls, stop
}

func file(name, content string) func(string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(content), 0o600)
	}
}

func rename(from, to string) func(string) error {
	return func(dir string) error { return os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)) }
}

func symlink(to, name string) func(string) error {
	return func(dir string) error { return os.Symlink(to, filepath.Join(dir, name)) }
}

func steps(all ...func(string) error) func(string) error {
	return func(dir string) error {
		for _, step := range all {
			if err := step(dir); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&Config{TargetGlobs: []string{filepath.Join(t.TempDir(), "*.yml")}}).Watch(ctx, func() { t.Error("changed was called") }); err != nil {
		t.Errorf("Watch = %v", err)
	}
}
