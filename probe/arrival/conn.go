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
	rx       *receiver // nil where the kernel gives no times
	rxMu     sync.Mutex
	dialed   time.Time // just before the dialer was asked for the connection
	lastRead instant
	lastLag  atomic.Int64 // nanoseconds; negative: the stamp is the return of the read
	wrote    instant      // first write since it was armed
}

func newConn(c net.Conn, dialed time.Time) *Conn {
	conn := &Conn{Conn: c, dialed: dialed, rx: newReceiver(c)}
	conn.lastLag.Store(-1)
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
// one after the other. So bytes of one arrival that are read in pieces seem to come in a slightly wrong order.
const clockJitter = 100 * time.Microsecond

// lag returns how long before now the kernel received bytes, given its wall-clock time in nanoseconds since
// 1970, or -1 where that cannot be: before the bytes stamped last, or after now. A step of the wall clock
// makes such times.
func (c *Conn) lag(now time.Time, received int64) time.Duration {
	if received == 0 {
		return -1
	}
	floor := c.dialed
	if t, ok := c.lastRead.get(); ok {
		floor = t
	}
	lag, longest := time.Duration(now.UnixNano()-received), now.Sub(floor)
	if lag < 0 || lag > longest+clockJitter {
		return -1
	}
	return min(lag, longest)
}

func (c *Conn) stamp(now time.Time, lag time.Duration) {
	c.lastLag.Store(int64(lag))
	c.lastRead.set(now.Add(-max(lag, 0)))
}

// Stamp returns the stamp of the bytes that the last Read returned.
func (c *Conn) Stamp() (Stamp, bool) {
	at, ok := c.lastRead.get()
	if !ok {
		return Stamp{}, false
	}
	lag := c.lastLag.Load()
	return Stamp{At: at, Lag: time.Duration(max(lag, 0)), Kernel: lag >= 0}, true
}

// Write writes as net.Conn does and remembers the instant just before the first write since arm.
func (c *Conn) Write(p []byte) (int, error) {
	c.wrote.setOnce(time.Now())
	return c.Conn.Write(p)
}

// arm makes the next write the first one.
func (c *Conn) arm() { c.wrote.clear() }

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
