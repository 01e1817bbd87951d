package arrival

import (
	"context"
	"net"
	"time"
)

// Dialer makes connections that stamp. Close it when no more are to be made; its connections live on.
type Dialer struct {
	net  net.Dialer
	stop func()

	// ReadStamps turns the kernel's receive times off: reads are stamped when they return.
	ReadStamps bool
}

// NewDialer returns a dialer with net.Dialer's defaults: happy eyeballs, keep-alives, no limit of time but the
// context's.
func NewDialer() *Dialer { return &Dialer{stop: keepStamping()} }

// Close gives back what the dialer holds.
func (d *Dialer) Close() { d.stop() }

// DialContext dials as net.Dialer does. The connection is a *Conn.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	start := time.Now()
	c, err := d.net.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := newConn(c, start)
	if d.ReadStamps {
		conn.rx = nil
	}
	return conn, nil
}
