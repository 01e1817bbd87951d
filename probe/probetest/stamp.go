package probetest

import (
	"net"
	"sync"
	"time"
)

// stampedConn is a connection that knows when the bytes that were read last had arrived: by the kernel where
// it says so, else by the return of the read.
type stampedConn struct {
	net.Conn
	tcp      *net.TCPConn
	receiver receiver

	mu     sync.Mutex
	at     time.Time
	kernel bool
}

// newStampedConn wraps a connection. Where it was accepted, its listener should have been told too, by
// stampAccepted: else what arrives before this call has no time of the kernel.
func newStampedConn(c *net.TCPConn) *stampedConn {
	return &stampedConn{Conn: c, tcp: c, receiver: newReceiver(c)}
}

// Read implements net.Conn. It is not safe for concurrent use, unlike received.
func (c *stampedConn) Read(p []byte) (int, error) {
	n, stamp, err := c.receiver.receive(p)
	if n <= 0 {
		return n, err
	}
	now := time.Now()
	at, kernel := now, false
	if stamp != 0 {
		// The stamp is of the wall clock. Only its distance from now is used, so a wrong wall clock does no harm.
		if lag := now.UnixNano() - stamp; lag >= 0 {
			at, kernel = now.Add(-time.Duration(lag)), true
		}
	}
	c.mu.Lock()
	c.at, c.kernel = at, kernel
	c.mu.Unlock()
	return n, err
}

// received returns when the bytes read last had arrived, and whether the kernel said so.
func (c *stampedConn) received() (at time.Time, kernel bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at, c.kernel
}

// reset ends the connection with a TCP reset.
func (c *stampedConn) reset() {
	_ = c.tcp.SetLinger(0)
	_ = c.tcp.Close()
}
