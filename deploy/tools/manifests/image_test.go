package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// No container engine is at hand in CI: these tests run the image's content, laid out by the script that the
// Containerfile runs, as a plain directory in bubblewrap. The Containerfile itself is not executed.

// instruction returns the argument of an instruction of the Containerfile's last stage.
func instruction(t *testing.T, name string) string {
	t.Helper()
	text := read(t, "deploy/image/Containerfile")
	last := text[strings.LastIndex(text, "\nFROM "):]
	found := regexp.MustCompile(`(?m)^` + name + ` (.+)$`).FindStringSubmatch(last)
	if found == nil {
		t.Fatalf("the last stage has no %s", name)
	}
	return found[1]
}

// The image is what a scratch image must be: static programs, CA certificates, and nothing that only a shell could use.
func TestImageContent(t *testing.T) {
	dir := imageContent(t)
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "/bin/goodput_exporter /bin/goodputctl /etc/ssl/certs/ca-certificates.crt /usr/share/doc/goodput_exporter/LICENSE"
	if got := strings.Join(files, " "); got != want {
		t.Errorf("the image holds %s\nwant %s", got, want)
	}
	for _, program := range files[:2] {
		f, err := elf.Open(dir + program)
		if err != nil {
			t.Fatal(err)
		}
		if libraries, _ := f.ImportedLibraries(); len(libraries) > 0 {
			t.Errorf("%s needs %v, which a scratch image lacks", program, libraries)
		}
		f.Close()
	}
}

// What stands in several places of the repository is the same in all.
func TestVersions(t *testing.T) {
	changelog := first(t, "CHANGELOG.md", `(?m)^## v?(\d[\w.+-]*)`)
	golang := first(t, "go.mod", `(?m)^go (\d[\d.]*)$`)
	for _, place := range []struct{ what, path, pattern, want string }{
		{"label of the image", "deploy/image/Containerfile", `image\.version="(.+)"`, changelog},
		{"tag of the image in compose", "deploy/compose/compose.yml", `image: goodput_exporter:(\S+)`, changelog},
		{"tag of the image in the base", "deploy/kubernetes/base/kustomization.yaml", `newTag: (\S+)`, changelog},
		{"chart", chart + "/Chart.yaml", `(?m)^version: (\S+)`, changelog},
		{"application of the chart", chart + "/Chart.yaml", `(?m)^appVersion: (\S+)`, changelog},
		{"Go of the image", "deploy/image/Containerfile", `golang:(\d+\.\d+)`, strings.Join(strings.Split(golang, ".")[:2], ".")},
		// What CI tests with is what compose starts: v0.316.0 of the module is release 3.16.0.
		{"Prometheus in compose", "deploy/tools/go.mod", `prometheus/prometheus v0\.3(\d+\.\d+)`, first(t, "deploy/compose/compose.yml", `prom/prometheus:v3\.(\S+)`)},
		{"Alertmanager in compose", "deploy/tools/go.mod", `prometheus/alertmanager v(\S+)`, first(t, "deploy/compose/compose.yml", `prom/alertmanager:v(\S+)`)},
	} {
		if got := first(t, place.path, place.pattern); got != place.want {
			t.Errorf("%s: %s, want %s", place.what, got, place.want)
		}
	}
}

// first returns what the group of a pattern first matches in a file.
func first(t *testing.T, path, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, path))
	if found == nil {
		t.Fatalf("%s: nothing matches %s", path, pattern)
	}
	return found[1]
}

// The image's content crosses to the other platform that most clusters have.
func TestImageContentOfOtherPlatform(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles everything for another platform")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "deploy/image/rootfs"), dir)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(dir + "/bin/goodput_exporter")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != elf.EM_AARCH64 {
		t.Errorf("a program for %v, want one for arm64", f.Machine)
	}
}

// Run as the image says, without privileges and with nothing writable, the demo answers and ends when it is told to.
func TestImageRuns(t *testing.T) {
	bwrap := tool(t, "BWRAP", "bwrap")
	uid, _, _ := strings.Cut(instruction(t, "USER"), ":")
	entrypoint := strings.Trim(instruction(t, "ENTRYPOINT"), `[]"`)
	address := freeAddress(t)

	args := []string{
		"--ro-bind", imageContent(t), "/", "--unshare-all", "--share-net", "--as-pid-1", "--die-with-parent", "--new-session",
		"--cap-drop", "ALL", "--clearenv", "--chdir", "/",
		entrypoint, "--demo", "--web.listen-address=" + address,
	}
	if os.Getuid() == 0 { // be that user outside too, so that what root alone may read stays unread
		args = append([]string{"--reuid=" + uid, "--regid=" + uid, "--clear-groups", "--no-new-privs", bwrap}, args...)
		bwrap = "setpriv"
	}
	sandbox := start(t, bwrap, args...)
	sandbox.get(t, "http://"+address+"/-/healthy")
	sandbox.get(t, "http://"+address+"/-/ready")

	pid := child(t, sandbox.Process.Pid)
	status, mounts := readFile(t, fmt.Sprintf("/proc/%d/status", pid)), readFile(t, fmt.Sprintf("/proc/%d/mounts", pid))
	for _, want := range []string{"Uid:\t" + uid, "CapEff:\t0000000000000000", "NoNewPrivs:\t1"} {
		if !strings.Contains(status, want) && (os.Getuid() == 0 || !strings.HasPrefix(want, "Uid")) {
			t.Errorf("its status lacks %q:\n%s", want, status)
		}
	}
	if !regexp.MustCompile(`(?m)^\S+ / \S+ ro,`).MatchString(mounts) {
		t.Errorf("its root is writable:\n%s", mounts)
	}
	sandbox.stop(t, pid)
}

// child returns the only child of a process.
func child(t *testing.T, parent int) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(readFile(t, fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// freeAddress returns an address of loopback that nobody listened on just now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// process is a daemon under test.
type process struct {
	*exec.Cmd
	log    *bytes.Buffer // to be read after exited
	exited chan error
}

func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(name, args...), log: &bytes.Buffer{}, exited: make(chan error, 1)}
	p.Stdout, p.Stderr = p.log, p.log
	p.WaitDelay = time.Second
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.Wait(); close(p.exited) }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("%s\n%s", p, p.log)
		}
	})
	return p
}

// get waits for an address to answer with 200.
func (p *process) get(t *testing.T, url string) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		select {
		case err := <-p.exited:
			t.Fatalf("it ended: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		resp, err := http.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		last = resp.Status
	}
	t.Fatalf("%s: %s", url, last)
}

// stop ends the daemon, which has this process id, as a container engine and systemd do, and expects it to end well.
func (p *process) stop(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.exited:
		if err != nil {
			t.Errorf("after SIGTERM: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("still running 30 s after SIGTERM")
	}
}
