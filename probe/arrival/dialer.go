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
	ctx, cancel := untilGivenUp(ctx)
	defer cancel()
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

type requestKey struct{}

// untilGivenUp returns a context for the dial that an Exchange's request needs. The transport lets a dial go on
// after its request was given up, for minutes where nobody answers: probe by probe, that would add up to all the
// sockets that a process may have.
func untilGivenUp(ctx context.Context) (context.Context, context.CancelFunc) {
	dial, cancel := context.WithCancel(ctx)
	request, ok := ctx.Value(requestKey{}).(context.Context)
	if !ok {
		return dial, cancel
	}
	stop := context.AfterFunc(request, cancel)
	return dial, func() {
		stop()
		cancel()
	}
}
