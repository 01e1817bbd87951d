package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
)

const root = "../../.."

// tool returns the path of a program that `make check` installs: that of the environment variable, or of PATH.
func tool(t *testing.T, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not set and %s is not in PATH", variable, name)
	}
	return path
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// output returns what a command prints, and fails the test where it fails.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, out)
	}
	return string(out)
}

var rootfs struct {
	sync.Once
	dir string
}

// imageContent lays out the content of the image, once for all tests: a directory that every user may read.
func imageContent(t *testing.T) string {
	t.Helper()
	rootfs.Do(func() {
		dir, err := os.MkdirTemp("", "goodput-image-")
		if err != nil {
			t.Fatal(err)
		}
		output(t, filepath.Join(root, "deploy/image/rootfs"), dir)
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		rootfs.dir = dir
	})
	if rootfs.dir == "" {
		t.Fatal("the content of the image could not be built")
	}
	return rootfs.dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if rootfs.dir != "" {
		_ = os.RemoveAll(rootfs.dir)
	}
	os.Exit(code)
}

// flags returns the flags of the daemon.
func flags(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, flag := range regexp.MustCompile(`--(?:\[no-\])?([\w.-]+)`).FindAllStringSubmatch(output(t, imageContent(t)+"/bin/goodput_exporter", "--help"), -1) {
		known["--"+flag[1]] = true
	}
	if !known["--config.file"] {
		t.Fatalf("found no --config.file in the help: %v", known)
	}
	return known
}
