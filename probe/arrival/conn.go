package arrival

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a net.Conn that stamps its reads and remembers its first write.
type Conn struct {
	net.Conn
	rx      *receiver // nil where the kernel gives no times
	rxMu    sync.Mutex
	dialed  time.Time // just before the dialer was asked for the connection
	latest  instant   // stamp of the last read
	current atomic.Pointer[use]
}

// use is what happened on a connection since it was armed. It is kept apart from what happens in the next use,
// which can begin before the goroutine that read the end of a response comes to ask.
type use struct {
	wrote   instant      // just before the first write
	last    atomic.Bool  // the next write is the request's last
	written instant      // just after that write
	read    instant      // stamp of the last read
	lag     atomic.Int64 // of the last read, in nanoseconds; negative: its stamp is its return
}

func newConn(c net.Conn, dialed time.Time) *Conn {
	conn := &Conn{Conn: c, dialed: dialed, rx: newReceiver(c)}
	conn.arm()
	return conn
}

// Read reads as net.Conn does and stamps what it read.
func (c *Conn) Read(p []byte) (int, error) {
	if c.rx == nil || len(p) == 0 {
		n, err := c.Conn.Read(p)
		if n > 0 {
			c.stamp(time.Now(), -1)
		}
		return n, err
	}
	c.rxMu.Lock()
	defer c.rxMu.Unlock()
	n, received, err := c.rx.read(p)
	if n > 0 {
		now := time.Now()
		c.stamp(now, c.lag(now, received))
	}
	return n, err
}

// clockJitter is how far the wall clock's and the monotonic reading of one time.Now may be apart: they are taken
// one after the other, at times with an interruption between. So bytes of one arrival that are read in pieces may
// seem to come in the wrong order.
const clockJitter = time.Millisecond

// lag returns how long before now the kernel received bytes, given its wall-clock time in nanoseconds since
// 1970, or -1 where that cannot be: before the bytes stamped last, or after now. A step of the wall clock
// makes such times.
func (c *Conn) lag(now time.Time, received int64) time.Duration {
	if received == 0 {
		return -1
	}
	floor := c.dialed
	if t, ok := c.latest.get(); ok {
		floor = t
	}
	lag, longest := time.Duration(now.UnixNano()-received), now.Sub(floor)
	if lag < 0 || lag > longest+clockJitter {
		return -1
	}
	return min(lag, longest)
}

func (c *Conn) stamp(now time.Time, lag time.Duration) {
	at, u := now.Add(-max(lag, 0)), c.current.Load()
	c.latest.set(at)
	u.lag.Store(int64(lag))
	u.read.set(at)
}

// Stamp returns the stamp of the bytes that the last Read returned.
func (c *Conn) Stamp() (Stamp, bool) { return c.current.Load().stamp() }

// stamp returns the stamp of the last read of the use.
func (u *use) stamp() (Stamp, bool) {
	at, ok := u.read.get()
	if !ok {
		return Stamp{}, false
	}
	lag := u.lag.Load()
	return Stamp{At: at, Lag: time.Duration(max(lag, 0)), Kernel: lag >= 0}, true
}

// Write writes as net.Conn does and remembers the instants just before the first write since arm and just after the
// request's last.
func (c *Conn) Write(p []byte) (int, error) {
	u := c.current.Load()
	u.wrote.setOnce(time.Now())
	n, err := c.Conn.Write(p)
	if u.last.CompareAndSwap(true, false) {
		u.written.set(time.Now())
	}
	return n, err
}

// arm begins a new use: the next write is its first one.
func (c *Conn) arm() *use {
	u := &use{}
	c.current.Store(u)
	return u
}

// LocalAddr returns the address of the connection. It also carries the Conn itself through whatever wraps the
// connection: TLS, and the connection tracking of prometheus/common, which hides it otherwise.
func (c *Conn) LocalAddr() net.Addr { return connAddr{Addr: c.Conn.LocalAddr(), conn: c} }

type connAddr struct {
	net.Addr
	conn *Conn
}

// unwrap finds the Conn below c.
func unwrap(c net.Conn) (*Conn, bool) {
	if a, ok := c.LocalAddr().(connAddr); ok {
		return a.conn, true
	}
	return nil, false
}
