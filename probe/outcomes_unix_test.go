//go:build unix

package probe_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// blackHole is an URL where a connect gets no answer: the queue of its listener is full.
func blackHole(t *testing.T, _ *config.Series) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
	for range 20 {
		c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			return "http://" + addr
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Skip("this system's queues of connections do not fill up")
	return ""
}

func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	tc := outcomeTest{server: blackHole, configure: []option{firstToken}, outcome: probe.Timeout, reason: probe.ReasonConnect}
	r := tc.probe(t)
	tc.compare(t, r)
	checkResult(t, r)
	if *r.E2E < 190*time.Millisecond {
		t.Errorf("it took %v, want the limit of 200 ms", *r.E2E)
	}
}

const noFilesURL = "GOODPUT_TEST_NO_FILES_URL"

// Without file descriptors nothing can be said of the endpoint. The limit is the process's, so it needs one of its own.
func TestOutOfFiles(t *testing.T) {
	if u := os.Getenv(noFilesURL); u != "" {
		probeWithoutFiles(t, u)
		return
	}
	u := stream(answer...)(t, nil)
	for name, u := range map[string]string{"by address": u, "by name": strings.Replace(u, "127.0.0.1", "localhost", 1)} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestOutOfFiles$")
			cmd.Env = append(os.Environ(), noFilesURL+"="+u)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func probeWithoutFiles(t *testing.T, u string) {
	limit := syscall.Rlimit{Cur: 64, Max: 64}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true} // it gets as far as the socket that it cannot have
	prober := newProber(t, config.NewSeries(u, "m"))
	var open []*os.File
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, f)
	}
	r := prober.Probe(context.Background())
	checkResult(t, r)
	if r.Outcome != probe.LocalError {
		t.Errorf("got %s", toJSON(t, r))
	}
}
