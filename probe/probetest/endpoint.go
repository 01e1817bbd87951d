package probetest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config describes a simulated endpoint.
type Config struct {
	Models  []Model
	Seed    uint64       // equal seeds give equal answers to equal requests in equal order
	TLS     *tls.Config  // nil: no TLS
	Observe func(Served) // told of each request at its end, concurrently; nil: nobody is told
}

// Served is the truth about one request.
type Served struct {
	Truth
	Model        string
	Fault        FaultKind
	InputTokens  int
	OutputTokens int // those that were written
}

// Endpoint simulates an inference server with the API of OpenAI: chat completions and completions.
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

// URL is the endpoint's base URL.
func (e *Endpoint) URL() string { return e.scheme + "://" + e.listener.Addr().String() + "/v1" }

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

// NewHandler returns a simulated endpoint without a server of its own. Served times are then those of the
// handler, and a reset is an aborted connection.
func NewHandler(c Config) (http.Handler, error) { return newHandler(c) }

type handler struct {
	config  Config
	models  map[string]*runningModel
	mux     *http.ServeMux
	open    atomic.Int64 // requests being answered
	started time.Time
}

// runningModel is a model with its state.
type runningModel struct {
	Model
	slots   chan struct{} // nil: no limit
	waiting atomic.Int64
	mu      sync.Mutex
	counts  map[kind]int
}

func newHandler(c Config) (*handler, error) {
	h := &handler{config: c, models: map[string]*runningModel{}, mux: http.NewServeMux(), started: time.Now()}
	for _, m := range c.Models {
		if m.Name == "" || h.models[m.Name] != nil {
			return nil, fmt.Errorf("model %q: want names that are not empty and differ", m.Name)
		}
		running := &runningModel{Model: m, counts: map[kind]int{}}
		if m.Concurrency > 0 {
			running.slots = make(chan struct{}, m.Concurrency)
		}
		h.models[m.Name] = running
	}
	h.mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { h.complete(w, r, true) })
	h.mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { h.complete(w, r, false) })
	h.mux.HandleFunc("GET /v1/models", h.list)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "invalid_request_error", "no such path: "+r.URL.Path)
	})
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mux.ServeHTTP(w, r)
}

func (h *handler) complete(w http.ResponseWriter, r *http.Request, chat bool) {
	q, err := readQuery(w, r, chat)
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	m := h.models[q.Model]
	if m == nil {
		writeError(w, http.StatusNotFound, "invalid_request_error", fmt.Sprintf("the model %q does not exist", q.Model))
		return
	}
	p := m.plan(h.config.Seed, q, m.count(q.kind()))
	served := Served{Truth: truthOf(r.Header), Model: m.Name, Fault: p.fault.Kind, InputTokens: q.inputTokens}
	served.Received = time.Now()
	if c := connOf(r); c != nil {
		served.Received, served.Kernel = c.received()
	}
	if h.config.Observe != nil {
		defer func() { h.config.Observe(served) }()
	}
	if refuse(w, p.fault) {
		return
	}
	release, err := m.enter(r.Context())
	if err != nil {
		if errors.Is(err, errQueueFull) {
			writeError(w, http.StatusTooManyRequests, "rate_limit_error", err.Error())
		}
		return
	}
	defer release()
	h.open.Add(1)
	defer h.open.Add(-1)
	(&openAIAnswer{model: &m.Model, open: &h.open, w: w, r: r, query: q, plan: p, served: &served}).run()
}

// refuse answers with the error status of a fault that has one.
func refuse(w http.ResponseWriter, f Fault) bool {
	status, kind := 0, "server_error"
	switch f.Kind {
	case FaultRateLimited:
		status, kind = http.StatusTooManyRequests, "rate_limit_error"
	case FaultInternal:
		status = http.StatusInternalServerError
	case FaultUnavailable:
		status = http.StatusServiceUnavailable
	default:
		return false
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(f.RetryAfter/time.Second)))
	}
	writeError(w, status, kind, "simulated fault: "+strings.ReplaceAll(string(f.Kind), "_", " "))
	return true
}

// count numbers the requests of each kind, from 1.
func (m *runningModel) count(k kind) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[k]++
	return m.counts[k]
}

var errQueueFull = errors.New("too many requests are waiting")

// enter waits for a free place, and returns what gives it back.
func (m *runningModel) enter(ctx context.Context) (release func(), err error) {
	if m.slots == nil {
		return func() {}, nil
	}
	leave := func() { <-m.slots }
	select {
	case m.slots <- struct{}{}:
		return leave, nil
	default:
	}
	waiting := m.waiting.Add(1)
	defer m.waiting.Add(-1)
	if m.MaxQueue > 0 && waiting > int64(m.MaxQueue) {
		return nil, errQueueFull
	}
	select {
	case m.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
