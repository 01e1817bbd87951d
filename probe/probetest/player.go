package probetest

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// Player plays a case on a loopback listener, connection by connection and request by request.
type Player struct {
	c         Case
	listener  *net.TCPListener
	authority *Authority  // nil: no TLS
	tls       *tls.Config // nil: no TLS

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	open connSet

	mu          sync.Mutex
	connections int
	requests    []*arrival
	errs        []string
}

// PlayerOptions say how a case is served.
type PlayerOptions struct {
	// TLS serves over TLS. A case of HTTP/2 needs it, except with clients that speak HTTP/2 on plain
	// connections by prior knowledge.
	TLS bool
}

// Seen is what a player saw of its client.
type Seen struct {
	Requests    []Request // in the order of arrival
	Connections int
	// ClosedAfter is from the last request until the client closed its connection or canceled its stream;
	// nil while it has not.
	ClosedAfter *time.Duration
	Errors      []string // what a client sent that was no request
}

// Request is one request as it arrived.
type Request struct {
	Connection int // from 0, in the order of connecting
	Proto      string
	Method     string
	Path       string // with the query
	Header     http.Header
	Body       []byte
	Received   time.Time // when the last byte had arrived
}

// arrival is a request that waits for its client to close.
type arrival struct {
	Request
	once    sync.Once
	gone    chan struct{} // closed when the client closed
	goneFor time.Duration // from Received; set before gone is closed
}

func newArrival(r Request) *arrival { return &arrival{Request: r, gone: make(chan struct{})} }

func (a *arrival) clientClosed() {
	a.once.Do(func() {
		a.goneFor = time.Since(a.Received)
		close(a.gone)
	})
}

// NewPlayer starts to play. Close ends it.
func NewPlayer(c Case, options PlayerOptions) (*Player, error) {
	p := &Player{c: c}
	if options.TLS {
		authority, err := NewAuthority()
		if err != nil {
			return nil, err
		}
		p.authority = authority
		p.tls = authority.ServerConfig(p.alpn()...)
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("listening for case %s: %w", c.ID, err)
	}
	stampAccepted(listener)
	p.listener = listener
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	return p, nil
}

// alpn offers what the case speaks, so that a client that does not speak it fails early.
func (p *Player) alpn() []string {
	var protocols []string
	if p.c.HTTP2() {
		protocols = append(protocols, "h2")
	}
	if p.c.hasVersion(func(v string) bool { return v != "2" }) {
		protocols = append(protocols, "http/1.1")
	}
	return protocols
}

// URL is the base URL to give to a prober, with the base path of the case.
func (p *Player) URL() string {
	scheme := "http"
	if p.tls != nil {
		scheme = "https"
	}
	return scheme + "://" + p.listener.Addr().String() + p.c.BasePath
}

// CertPool returns a pool that trusts the player; nil without TLS.
func (p *Player) CertPool() *x509.CertPool {
	if p.authority == nil {
		return nil
	}
	return p.authority.Pool()
}

// CertPEM returns the certificate that a client has to trust; nil without TLS.
func (p *Player) CertPEM() []byte {
	if p.authority == nil {
		return nil
	}
	return p.authority.PEM()
}

// Seen returns what the player has seen so far. Where the case says by when the client must have closed, it
// waits for that, until then.
func (p *Player) Seen() Seen {
	p.mu.Lock()
	seen := Seen{Connections: p.connections, Errors: slices.Clone(p.errs)}
	var last *arrival
	for _, a := range p.requests {
		seen.Requests = append(seen.Requests, a.Request)
		last = a
	}
	p.mu.Unlock()
	if last == nil {
		return seen
	}
	select {
	case <-last.gone:
	case <-time.After(time.Until(last.Received.Add(p.closeLimit()))):
	}
	select {
	case <-last.gone:
		seen.ClosedAfter = &last.goneFor
	default:
	}
	return seen
}

func (p *Player) closeLimit() time.Duration {
	var limit time.Duration
	for _, e := range append([]Expectation{p.c.Expect}, p.c.ExpectAny...) {
		if ms, ok := number(e["closed_by_ms"]); ok {
			limit = max(limit, milliseconds(ms))
		}
	}
	return limit
}

// Close ends all connections and waits for the player's goroutines.
func (p *Player) Close() error {
	p.cancel()
	err := p.listener.Close()
	p.open.closeAll()
	p.wg.Wait()
	return err
}

func (p *Player) accept() {
	for {
		tcp, err := p.listener.AcceptTCP() // Go sets TCP_NODELAY: one write is one TCP write
		if err != nil {
			return
		}
		conn := newStampedConn(tcp)
		p.mu.Lock()
		index := p.connections
		p.connections++
		p.mu.Unlock()
		p.open.add(conn)
		p.wg.Go(func() {
			defer p.open.close(conn)
			p.serve(conn, index)
		})
	}
}

func (p *Player) serve(conn *stampedConn, index int) {
	s := session{player: p, index: index, stamped: conn, conn: conn}
	isHTTP2 := false
	if p.tls != nil {
		secure := tls.Server(conn, p.tls)
		if err := secure.HandshakeContext(p.ctx); err != nil {
			p.failed(index, err)
			return
		}
		s.conn = secure
		isHTTP2 = secure.ConnectionState().NegotiatedProtocol == "h2"
	}
	reader := bufio.NewReader(s.conn)
	if p.tls == nil {
		start, err := reader.Peek(len("PRI"))
		if err != nil {
			return // a client that connected and asked nothing
		}
		isHTTP2 = string(start) == "PRI"
	}
	if isHTTP2 {
		newHTTP2Session(s, reader).serve()
	} else {
		(&http1Session{session: s, reader: reader}).serve()
	}
}

// failed notes what a client did wrong.
func (p *Player) failed(connection int, err error) {
	if p.ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, fmt.Sprintf("connection %d: %v", connection+1, err))
}

// session is one connection.
type session struct {
	player  *Player
	index   int
	stamped *stampedConn
	conn    net.Conn // stamped, or TLS over it
	count   int      // requests so far
	last    *arrival // nil: none so far
}

// arrived notes a request that was read whole, and returns what answers it.
func (s *session) arrived(r Request) (*arrival, Exchange) {
	r.Connection = s.index
	r.Received, _ = s.stamped.received()
	a := newArrival(r)
	s.last = a
	x := s.player.c.exchange(s.index, s.count)
	s.count++
	s.player.mu.Lock()
	s.player.requests = append(s.player.requests, a)
	s.player.mu.Unlock()
	return a, x
}

// ended is told of the error that ended the reading of the connection.
func (s *session) ended(err error) {
	if s.last != nil && !errors.Is(err, net.ErrClosed) { // else it was us
		s.last.clientClosed()
	}
}

// finish closes our side: on TLS close_notify, then FIN.
func (s *session) finish() {
	if secure, ok := s.conn.(*tls.Conn); ok {
		_ = secure.CloseWrite()
	}
	_ = s.stamped.tcp.CloseWrite()
}

// answer is what a script can do to one request, over HTTP/1 or HTTP/2.
type answer interface {
	write(p []byte) error // a part of the body; the head goes out together with the first
	end() error           // the proper end of the body
	resetStream(code http2.ErrCode)
	goAway(last *uint32)
}

// play plays a script from start on. It stops early when done is closed, which is also how hold ends.
func (s *session) play(script []Step, start time.Time, done <-chan struct{}, a answer) {
	for _, step := range script {
		if !waitUntil(done, start.Add(step.At), fine) {
			return
		}
		var err error
		switch step.Do {
		case DoWrite:
			err = a.write(step.Write)
		case DoEnd:
			err = a.end()
		case DoFin:
			s.finish()
		case DoRst:
			s.stamped.reset()
		case DoHold:
			<-done
		case DoResetStream:
			a.resetStream(step.Code)
		case DoGoAway:
			a.goAway(step.Last)
		}
		if err != nil {
			return // the client is gone; its reader notes when
		}
	}
}
