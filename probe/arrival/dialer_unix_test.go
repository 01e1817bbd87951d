//go:build unix

package arrival

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"
)

// blackHole is an address where a connect gets no answer: the queue of its listener is full.
func blackHole(t *testing.T) string {
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
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Skip("this system's queues of connections do not fill up")
	return ""
}

// A dial ends with the request that it is for, not minutes later.
func TestDialEndsWithItsRequest(t *testing.T) {
	d, addr := dialer(t), blackHole(t)
	dialed := make(chan error, 1)
	rt, err := promconfig.NewRoundTripperFromConfig(promconfig.HTTPClientConfig{}, "test", promconfig.WithDialContextFunc(
		func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := d.DialContext(ctx, network, address)
			dialed <- err
			return c, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	x := NewExchange()
	req, err := http.NewRequestWithContext(x.Context(ctx), http.MethodPost, "http://"+addr, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	time.AfterFunc(50*time.Millisecond, func() { cancel(enough) })
	if _, err := rt.RoundTrip(req); !errors.Is(err, enough) {
		t.Errorf("got %v, want %v", err, enough)
	}
	select {
	case err := <-dialed:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the dial ended with %v, want %v", err, context.Canceled)
		}
	case <-time.After(10 * time.Second):
		t.Error("the dial goes on although its request was given up")
	}
	if connected, _ := x.Connected(); connected || !x.Begun(Connect) {
		t.Error("want a connect that began and did not end")
	}
	if _, ok := x.Took(Connect); ok {
		t.Error("a connect that did not end has a duration")
	}
}
