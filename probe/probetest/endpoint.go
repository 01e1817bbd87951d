package probetest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config describes a simulated endpoint.
type Config struct {
	Models  []Model
	Seed    uint64       // equal seeds give equal answers to equal requests in equal order
	TLS     *tls.Config  // nil: no TLS
	Observe func(Served) // told of each request at its end, concurrently; nil: nobody is told
	Keep    int          // requests that GET /truth remembers, the newest; 0 is 1024
}

// Endpoint simulates an inference server that speaks every protocol of probe/wire, each at the paths where its real
// servers have it. Any credentials will do.
//
// GET /truth answers with what it truly did, one JSON object a line ([Served]); GET /truth?id=ID with that of one
// X-Request-Id or trace id. GET /metrics counts requests by protocol, model, fault and status.
type Endpoint struct {
	listener net.Listener
	server   *http.Server
	scheme   string
	running  sync.WaitGroup // the server and its connections
}

// Start starts an endpoint on an address such as "127.0.0.1:0". Close ends it.
func Start(addr string, c Config) (*Endpoint, error) {
	h, err := newHandler(c)
	if err != nil {
		return nil, err
	}
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("starting the simulated endpoint: %w", err)
	}
	stampAccepted(tcp)
	e := &Endpoint{listener: stampedListener{tcp.(*net.TCPListener)}, scheme: "http"}
	if c.TLS != nil {
		e.scheme = "https"
		e.listener = tls.NewListener(e.listener, c.TLS)
	}
	e.server = &http.Server{
		Handler:           h,
		ConnContext:       withConn,
		ConnState:         e.track,
		ReadHeaderTimeout: time.Minute,
	}
	e.running.Go(func() {
		_ = e.server.Serve(e.listener) // it always ends in an error: ErrServerClosed
	})
	return e, nil
}

// track counts connections, so that Close can wait for the end of their handlers.
func (e *Endpoint) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		e.running.Add(1)
	case http.StateClosed, http.StateHijacked:
		e.running.Done()
	}
}

// Root is the endpoint's URL without a path.
func (e *Endpoint) Root() string { return e.scheme + "://" + e.listener.Addr().String() }

// URL is the base URL of OpenAI's protocols. Bases has those of the others.
func (e *Endpoint) URL() string { return e.Root() + "/v1" }

// Close cuts all requests off and waits for them.
func (e *Endpoint) Close() error {
	err := e.server.Close()
	e.running.Wait()
	return err
}

// stampedListener accepts connections that know when the kernel received what they read.
type stampedListener struct{ *net.TCPListener }

// Accept implements net.Listener.
func (l stampedListener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return newStampedConn(c), nil
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request; nil when the server is not ours.
func connOf(r *http.Request) *stampedConn {
	c, _ := r.Context().Value(connKey{}).(*stampedConn)
	return c
}
