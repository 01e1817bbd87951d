package arrival

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"goodput_exporter/probe/probetest"
)

// pair returns both ends of a loopback connection: ours, dialed by d, and the server's.
func pair(t *testing.T, d *Dialer) (*Conn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := d.DialContext(context.Background(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return c.(*Conn), server.(*net.TCPConn)
}

func dialer(t *testing.T) *Dialer {
	d := NewDialer()
	t.Cleanup(d.Close)
	return d
}

// needKernelStamps waits until the kernel stamps what arrives, which begins a moment after somebody wants it.
func needKernelStamps(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the kernel gives no receive times here")
	}
	c, server := pair(t, dialer(t))
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := server.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if s, _ := c.Stamp(); s.Kernel {
			return
		}
	}
	t.Fatal("the kernel gives no receive times")
}

const (
	lateness = 50 * time.Millisecond // how late the tests read on purpose
	slack    = 10 * time.Millisecond // by how much a stamp may follow the write
)

// checkLateRead checks the stamp of bytes that were written after before and read at least lateness later.
func checkLateRead(t *testing.T, c *Conn, before, returned time.Time) {
	t.Helper()
	s, ok := c.Stamp()
	switch {
	case !ok:
		t.Fatal("no stamp")
	case !s.Kernel:
		t.Fatal("the stamp is not the kernel's")
	case s.At.Before(before.Add(-time.Millisecond)):
		t.Errorf("stamped %v before the write", before.Sub(s.At))
	case returned.Sub(s.At) < lateness-slack:
		t.Errorf("stamped %v before the read returned, want at least %v: the bytes were there", returned.Sub(s.At), lateness-slack)
	case s.Lag < lateness-slack:
		t.Errorf("own lag is %v, want at least %v", s.Lag, lateness-slack)
	}
}

func TestLateReadIsStampedWhenTheBytesCame(t *testing.T) {
	needKernelStamps(t)
	c, server := pair(t, dialer(t))
	buf := make([]byte, 100)
	for range 3 { // later reads as well as the first
		before := time.Now()
		if _, err := server.Write([]byte("bytes")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lateness)
		n, err := c.Read(buf)
		returned := time.Now()
		if err != nil || string(buf[:n]) != "bytes" {
			t.Fatalf("read %q, %v", buf[:n], err)
		}
		checkLateRead(t, c, before, returned)
	}
}

func TestLateReadBelowTLS(t *testing.T) {
	needKernelStamps(t)
	authority, err := probetest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	c, raw := pair(t, dialer(t))
	server := tls.Server(raw, authority.ServerConfig())
	client := tls.Client(c, &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"})
	handshake := make(chan error, 1)
	go func() { handshake <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-handshake; err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if _, err := server.Write([]byte("bytes")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lateness)
	if _, err := io.ReadFull(client, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	returned := time.Now()
	conn, ok := unwrap(client)
	if !ok || conn != c {
		t.Fatal("the connection was not found below TLS")
	}
	checkLateRead(t, conn, before, returned)
}

func TestReadStamps(t *testing.T) {
	d := dialer(t)
	d.ReadStamps = true
	c, server := pair(t, d)
	if _, ok := c.Stamp(); ok {
		t.Error("a stamp before the first read")
	}
	if _, err := server.Write([]byte("bytes")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lateness)
	before := time.Now()
	if _, err := c.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	s, ok := c.Stamp()
	if !ok || s.Kernel || s.Lag != 0 || s.At.Before(before) || s.At.After(time.Now()) {
		t.Errorf("stamp %+v, %v: want the return of the read, without the kernel's", s, ok)
	}
}

// A stamp tells the arrival of the last of the bytes that a read returns, as the end of an event does.
func TestReadOfSeveralWrites(t *testing.T) {
	needKernelStamps(t)
	c, server := pair(t, dialer(t))
	var last time.Time
	for range 3 {
		last = time.Now()
		if _, err := server.Write([]byte("bytes")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lateness)
	}
	if n, err := c.Read(make([]byte, 100)); n != 15 || err != nil {
		t.Fatalf("read %d bytes, %v; want 15 in one read", n, err)
	}
	checkLateRead(t, c, last, time.Now())
}

func TestLag(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) int64 { return now.UnixNano() - int64(d) }
	for _, tc := range []struct {
		name     string
		received int64
		last     time.Duration // ago; 0: this is the first read
		want     time.Duration
	}{
		{name: "in time", received: ago(0), want: 0},
		{name: "late", received: ago(3 * time.Millisecond), want: 3 * time.Millisecond},
		{name: "right after the last read's bytes", received: ago(2 * time.Millisecond), last: 2 * time.Millisecond, want: 2 * time.Millisecond},
		{name: "with the last read's bytes, by clocks that differ a little", received: ago(2*time.Millisecond + clockJitter), last: 2 * time.Millisecond, want: 2 * time.Millisecond},
		{name: "the kernel gave none", received: 0, want: -1},
		{name: "before the last read's bytes: the clock went forward", received: ago(2*time.Millisecond + 2*clockJitter), last: 2 * time.Millisecond, want: -1},
		{name: "before the dial: the clock went forward", received: ago(time.Hour), want: -1},
		{name: "after now: the clock went back", received: ago(-time.Nanosecond), want: -1},
		{name: "long after now: the clock went back", received: ago(-time.Hour), want: -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newConn(nil, now.Add(-time.Second))
			if tc.last > 0 {
				c.stamp(now, tc.last)
			}
			if got := c.lag(now, tc.received); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// Whoever reads finds the errors that net's own connections have.
func TestReadErrors(t *testing.T) {
	for _, readStamps := range []bool{false, true} {
		for _, tc := range []struct {
			name  string
			cause func(c *Conn, server *net.TCPConn)
			want  error
		}{
			{"end", func(_ *Conn, server *net.TCPConn) { server.Close() }, io.EOF},
			{"reset", func(_ *Conn, server *net.TCPConn) { server.SetLinger(0); server.Close() }, syscall.ECONNRESET},
			{"closed by us", func(c *Conn, _ *net.TCPConn) { c.Close() }, net.ErrClosed},
			{"deadline", func(c *Conn, _ *net.TCPConn) { c.SetReadDeadline(time.Now().Add(time.Millisecond)) }, os.ErrDeadlineExceeded},
		} {
			t.Run(tc.name, func(t *testing.T) {
				d := dialer(t)
				d.ReadStamps = readStamps
				c, server := pair(t, d)
				tc.cause(c, server)
				n, err := c.Read(make([]byte, 10))
				if n != 0 || !errors.Is(err, tc.want) {
					t.Errorf("read %d bytes, error %v; want %v", n, err, tc.want)
				}
				if errors.Is(tc.want, os.ErrDeadlineExceeded) {
					var timeout net.Error
					if !errors.As(err, &timeout) || !timeout.Timeout() {
						t.Errorf("%v does not say that it is a timeout", err)
					}
				}
				if _, ok := c.Stamp(); ok {
					t.Error("a stamp although nothing was read")
				}
			})
		}
	}
}

func TestReadOfNothing(t *testing.T) {
	c, _ := pair(t, dialer(t))
	if n, err := c.Read(nil); n != 0 || err != nil {
		t.Errorf("got %d, %v: a read into nothing must not wait", n, err)
	}
}

func TestDataBeforeTheEndIsRead(t *testing.T) {
	c, server := pair(t, dialer(t))
	server.Write([]byte("last words"))
	server.Close()
	if got, err := io.ReadAll(c); string(got) != "last words" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestConcurrentCloseEndsRead(t *testing.T) {
	c, _ := pair(t, dialer(t))
	const readers = 4
	errs := make(chan error, readers)
	for range readers {
		go func() {
			_, err := c.Read(make([]byte, 10))
			errs <- err
		}()
	}
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() { c.Close() })
	}
	closers.Wait()
	for range readers {
		if err := <-errs; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want %v", err, net.ErrClosed)
		}
	}
}

// Conn.Stamp may be called while another goroutine reads, as net/http's reader does.
func TestStampBesideReads(t *testing.T) {
	c, server := pair(t, dialer(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(io.Discard, c)
	}()
	for range 1000 {
		if _, err := server.Write([]byte("bytes")); err != nil {
			t.Fatal(err)
		}
		c.Stamp()
	}
	server.Close()
	<-done
}

func TestReadAllocatesNothing(t *testing.T) {
	c, server := pair(t, dialer(t))
	buf, message := make([]byte, 100), []byte("bytes")
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := server.Write(message); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.Stamp(); !ok {
			t.Fatal("no stamp")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per read, want none", allocs)
	}
}

func TestDialErrorsAreNet(t *testing.T) {
	d := dialer(t)
	if _, err := d.DialContext(context.Background(), "tcp", "127.0.0.1:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want %v", err, syscall.ECONNREFUSED)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := d.DialContext(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// What one write brought is often read in pieces: all of them came at once.
func TestPiecesOfOneArrival(t *testing.T) {
	needKernelStamps(t)
	c, server := pair(t, dialer(t))
	const pieces, size = 64, 256
	before := time.Now()
	if _, err := server.Write(make([]byte, pieces*size)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lateness)
	var last Stamp
	for i := range pieces {
		if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		checkLateRead(t, c, before, time.Now())
		s, _ := c.Stamp()
		if s.At.Before(last.At) {
			t.Errorf("piece %d is stamped %v before the one that it follows", i, last.At.Sub(s.At))
		}
		last = s
	}
}
