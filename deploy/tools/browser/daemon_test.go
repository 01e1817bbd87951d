package browser

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// daemon is a goodput_exporter with its demo, as a process of its own.
type daemon struct {
	origin string
	cmd    *exec.Cmd
}

// startDaemon starts the demo with further flags, and waits until every series had its first slot. It ends with the test.
func startDaemon(t *testing.T, flags ...string) *daemon {
	t.Helper()
	binary := os.Getenv("GOODPUT_EXPORTER")
	if binary == "" {
		t.Skip("set GOODPUT_EXPORTER to the program")
	}
	address := freeAddress(t)
	d := &daemon{
		origin: "http://" + address,
		cmd: exec.CommandContext(context.Background(), binary,
			append([]string{"--demo", "--web.listen-address=" + address, "--log.level=error", "--probe.grace=0s"}, flags...)...),
	}
	d.cmd.Stdout, d.cmd.Stderr = os.Stderr, os.Stderr
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if response, err := http.Get(d.origin + "/-/ready"); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return d
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the daemon is not ready")
		}
	}
}

// stop ends the daemon. It may be called again.
func (d *daemon) stop() {
	if d.cmd.ProcessState != nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait() // ended by us
}

// get returns the answer to a request, and its body.
func (d *daemon) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	response, err := http.Get(d.origin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
