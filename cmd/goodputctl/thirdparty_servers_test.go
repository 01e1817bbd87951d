//go:build thirdparty

package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// program returns the path of a third-party program that make check has installed.
func program(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s is not set: make check installs the third-party programs and runs these tests", variable)
	}
	return path
}

// startServer runs a server until the end of the test, and waits until it answers HTTP requests at all addresses.
func startServer(t *testing.T, addresses []string, name string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second // then it is killed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, ended := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is always ended by a signal
		ended()
		close(done)
	}()
	t.Cleanup(func() {
		<-done
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(name), &output)
		}
	})
	for _, address := range addresses {
		if err := awaitHTTP(ctx, address); err != nil {
			t.Fatalf("%s at %s: %v", filepath.Base(name), address, err)
		}
	}
}

// awaitHTTP polls an address until it answers, whatever the status.
func awaitHTTP(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", http.NoBody)
		if err != nil {
			return err
		}
		request.Close = true
		response, err := http.DefaultTransport.RoundTrip(request)
		if err == nil {
			return response.Body.Close()
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-poll.C:
		}
	}
}

// startAimock starts aimock with the fixtures and returns its address.
func startAimock(t *testing.T, fixtures string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fixtures.json")
	if err := os.WriteFile(file, []byte(fixtures), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	startServer(t, []string{address}, program(t, "AIMOCK"),
		"--host", "127.0.0.1", "--port", port, "--fixtures", file, "--validate-on-load", "--log-level", "warn")
	return address
}

// nginx is one nginx with a server for each way that people set it up before an upstream.
type nginx struct {
	shipped    string // proxy_pass and nothing else: buffered, HTTP/1.0 to the upstream
	unbuffered string // proxy_buffering off
	http11     string // proxy_http_version 1.1 with kept upstream connections
}

// startNginx starts nginx before an upstream. Everything that is not in the configuration has nginx's default,
// which Debian leaves as it is. One process, so that ending it leaves none behind.
func startNginx(t *testing.T, upstream string) nginx {
	t.Helper()
	n := nginx{shipped: freeAddress(t), unbuffered: freeAddress(t), http11: freeAddress(t)}
	dir := t.TempDir()
	configuration := fmt.Sprintf(`
daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	upstream kept { server %[2]s; keepalive 4; }
	server { listen %[3]s; location / { proxy_pass http://%[2]s; } }
	server { listen %[4]s; location / { proxy_pass http://%[2]s; proxy_buffering off; } }
	server { listen %[5]s; location / { proxy_pass http://kept; proxy_http_version 1.1; proxy_set_header Connection ""; } }
}
`, dir, upstream, n.shipped, n.unbuffered, n.http11)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	startServer(t, []string{n.shipped, n.unbuffered, n.http11}, program(t, "NGINX"), "-p", dir, "-c", file)
	return n
}
