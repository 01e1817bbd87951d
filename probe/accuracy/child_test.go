//go:build bench && linux

package accuracy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goodput_exporter/probe/probetest"
)

// The benchmark starts itself anew for what must not be in the measured process. A child is told its role and
// that role's settings by the environment, speaks JSON on its standard output, and ends with its standard input.
const (
	roleVariable     = "GOODPUT_BENCH_ROLE"
	settingsVariable = "GOODPUT_BENCH_SETTINGS"
)

var roles = map[string]func(settings []byte, out *json.Encoder) error{
	"truth":     serveTruth,
	"busy":      beBusy,
	"footprint": leaveFootprint,
	"load":      makeLoad,
}

func TestMain(m *testing.M) {
	play, ok := roles[os.Getenv(roleVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := play([]byte(os.Getenv(settingsVariable)), json.NewEncoder(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is another process of the benchmark.
type child struct {
	cmd *exec.Cmd
	out *json.Decoder
}

// startChild starts a process in a role, which ends with the test at the latest.
func startChild(t *testing.T, role string, settings any, env ...string) *child {
	t.Helper()
	encoded, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), roleVariable+"="+role, settingsVariable+"="+string(encoded)), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the child in role %s: %v", role, err)
		}
	})
	return &child{cmd, json.NewDecoder(bufio.NewReader(out))}
}

// read reads the next message of the child.
func (c *child) read(t *testing.T, message any) {
	t.Helper()
	if err := c.out.Decode(message); err != nil {
		t.Fatal(err)
	}
}

// untilEnd returns when the parent wants the child to end.
func untilEnd() { _, _ = io.Copy(io.Discard, os.Stdin) }

// beBusy is the role of somebody who needs two cores.
func beBusy(_ []byte, out *json.Encoder) error {
	for range 2 {
		go func() {
			for {
			}
		}()
	}
	if err := out.Encode("busy"); err != nil {
		return err
	}
	untilEnd()
	return nil
}

// truthSettings are those of a server that tells the truth. Durations are drawn between two limits, in seconds.
type truthSettings struct {
	Mode      probetest.TruthMode
	Tokens    int
	TTFT, Gap [2]float64
	TLS       bool
}

// truthServer is a probetest.TruthServer in another process.
type truthServer struct {
	URL string
	PEM []byte // of its authority; nil without TLS

	*child `json:"-"`
}

func startTruthServer(t *testing.T, settings truthSettings, env ...string) *truthServer {
	t.Helper()
	s := &truthServer{child: startChild(t, "truth", settings, env...)}
	s.read(t, s)
	return s
}

func serveTruth(encoded []byte, out *json.Encoder) error {
	var settings truthSettings
	if err := json.Unmarshal(encoded, &settings); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c := probetest.TruthConfig{
		Mode: settings.Mode, Tokens: settings.Tokens, Keep: 1 << 10, Seed: uint64(time.Now().UnixNano()),
		TTFT: probetest.Uniform(settings.TTFT[0], settings.TTFT[1]), Gap: probetest.Uniform(settings.Gap[0], settings.Gap[1]),
	}
	self := truthServer{URL: "http://" + l.Addr().String()}
	if settings.TLS {
		authority, err := probetest.NewAuthority()
		if err != nil {
			return err
		}
		c.TLS = authority.ServerConfig("http/1.1")
		self = truthServer{URL: "https://" + l.Addr().String(), PEM: authority.PEM()}
	}
	ctx, stop := context.WithCancel(context.Background())
	s := probetest.ServeTruth(ctx, l, c)
	defer s.Wait()
	defer stop()
	if err := out.Encode(self); err != nil {
		return err
	}
	untilEnd()
	return nil
}

// truths returns what the server knows of its latest requests, by their request ids and trace ids.
func (s *truthServer) truths(t *testing.T) map[string]probetest.Truth {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	}}
	resp, err := client.Get(s.URL + "/truth")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	truths := map[string]probetest.Truth{}
	for d := json.NewDecoder(resp.Body); d.More(); {
		var truth probetest.Truth
		if err := d.Decode(&truth); err != nil {
			t.Fatal(err)
		}
		truths[truth.RequestID+truth.TraceID] = truth
	}
	return truths
}

// pin confines a process to some cores. Threads that it makes later inherit that.
func pin(t *testing.T, pid int, cores unix.CPUSet) {
	t.Helper()
	for range 2 { // a thread may have been made meanwhile by one that was not confined yet
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(filepath.Base(thread))
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.SchedSetaffinity(id, &cores); err != nil && err != unix.ESRCH {
				t.Fatal(err)
			}
		}
	}
}

// core returns the set of one core.
func core(n int) (set unix.CPUSet) {
	set.Set(n)
	return set
}

// cpuTime returns the CPU time that this process has used so far.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
