package arrival

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"
)

// Exchange observes one HTTP request and its response from below: when its first network act was, how long each
// phase took, when its bytes arrived. Make a new one for each request.
type Exchange struct {
	mu       sync.Mutex
	asked    time.Time // the transport was asked for a connection
	conn     *Conn     // nil until there is one, and where the dialer is not ours
	use      *use      // of conn by this request; nil where several share it: HTTP/2
	got      bool
	warm     bool      // the connection existed before the request
	sent     time.Time // t_send where a redirect was followed, of the request before it
	secret   []string  // headers whose values are secret besides those that always are
	secrets  []string  // the values that were sent
	phases   [phaseCount]span
	firstOne Stamp // first byte of the response
}

// Phase is a part of the way to the response's first byte.
type Phase int

// The phases, in order of time.
const (
	DNS     Phase = iota
	Connect       // TCP; to the proxy where there is one
	TLS
	Request // from the first write to the end of the request
	Headers // from there to the first byte of the response
	phaseCount
)

type span struct{ start, end time.Time }

// NewExchange returns an exchange that nothing has happened to yet. The values of those headers are secret, besides
// those of the usual ones.
func NewExchange(secretHeaders ...string) *Exchange { return &Exchange{secret: secretHeaders} }

// Context returns ctx with the exchange's hooks, for the request to be observed.
func (e *Exchange) Context(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, requestKey{}, ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { e.locked(func(now time.Time) { e.asked = now }) },
		DNSStart:             func(httptrace.DNSStartInfo) { e.begin(DNS) },
		DNSDone:              func(httptrace.DNSDoneInfo) { e.end(DNS) },
		ConnectStart:         func(string, string) { e.begin(Connect) },
		ConnectDone:          func(_, _ string, err error) { e.endUnless(Connect, err) },
		TLSHandshakeStart:    func() { e.begin(TLS) },
		TLSHandshakeDone:     func(_ tls.ConnectionState, err error) { e.endUnless(TLS, err) },
		GotConn:              e.gotConn,
		WroteHeaderField:     e.wroteHeader,
		WroteRequest:         e.wroteRequest,
		GotFirstResponseByte: e.firstByte,
	})
}

func (e *Exchange) locked(do func(now time.Time)) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	do(now)
}

// begin starts a phase. Of several tries at once (two address families), the first counts; what a dial does after
// the request got another connection does not.
func (e *Exchange) begin(p Phase) {
	e.locked(func(now time.Time) {
		if !e.got && e.phases[p].start.IsZero() {
			e.phases[p].start = now
		}
	})
}

func (e *Exchange) end(p Phase) { e.endUnless(p, nil) }

func (e *Exchange) endUnless(p Phase, err error) {
	e.locked(func(now time.Time) {
		if !e.got && err == nil && e.phases[p].end.IsZero() {
			e.phases[p].end = now
		}
	})
}

func (e *Exchange) gotConn(info httptrace.GotConnInfo) {
	e.locked(func(now time.Time) {
		if e.got && e.sent.IsZero() { // this request follows a redirect; all began with the one before it
			e.sent, e.phases[Request].start = e.start(), e.firstWrite()
		}
		e.got, e.warm = true, info.Reused
		if e.sent.IsZero() {
			e.phases[Request].start = now
		}
		conn, ok := unwrap(info.Conn)
		if !ok {
			return
		}
		e.conn = conn
		// A connection that was dialed for another request and never used is warm too.
		e.warm = e.warm || conn.dialed.Before(e.asked)
		if e.warm && e.sent.IsZero() {
			e.phases[DNS], e.phases[Connect], e.phases[TLS] = span{}, span{}, span{}
		}
		e.use = nil
		if !shared(info.Conn) {
			e.use = conn.arm()
		}
	})
}

// shared reports whether a connection speaks HTTP/2, and so serves several requests at once.
func shared(c net.Conn) bool {
	tc, ok := c.(interface{ ConnectionState() tls.ConnectionState })
	return ok && tc.ConnectionState().NegotiatedProtocol == "h2"
}

// sensitive tells the headers whose values must not be told to anybody.
func (e *Exchange) sensitive(header string) bool {
	switch textproto.CanonicalMIMEHeaderKey(header) {
	case "Authorization", "Proxy-Authorization", "Cookie", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "X-Amz-Security-Token":
		return true
	}
	return slices.ContainsFunc(e.secret, func(name string) bool { return strings.EqualFold(name, header) })
}

func (e *Exchange) wroteHeader(name string, values []string) {
	if e.sensitive(name) {
		e.locked(func(time.Time) { e.secrets = append(e.secrets, values...) })
	}
}

// wroteRequest is called when the request lies in the transport's buffer. What is in there is written then.
func (e *Exchange) wroteRequest(info httptrace.WroteRequestInfo) {
	e.locked(func(now time.Time) {
		if info.Err == nil && e.phases[Request].end.IsZero() {
			e.phases[Request].end, e.phases[Headers].start = now, now
			if e.use != nil {
				e.use.last.Store(true)
			}
		}
	})
}

func (e *Exchange) firstByte() {
	e.locked(func(now time.Time) {
		e.firstOne = e.stampAt(now)
		e.phases[Headers].end = e.firstOne.At
	})
}

// stampAt returns the stamp of the read that has just returned, at the instant now.
func (e *Exchange) stampAt(now time.Time) Stamp {
	if e.use != nil {
		if s, ok := e.use.stamp(); ok {
			return s
		}
	}
	return Stamp{At: now}
}

// Stamp returns when the bytes arrived that the last read of the response's body returned. Call it before the
// next read.
func (e *Exchange) Stamp() Stamp {
	// The connection is not replaced any more: the response was read from it.
	if e.use != nil {
		if s, ok := e.use.stamp(); ok {
			return s
		}
	}
	return Stamp{At: time.Now()}
}

// Start returns t_send: the instant just before the first network act of the request. False: there was none yet.
func (e *Exchange) Start() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	start := e.start()
	return start, !start.IsZero()
}

// start is Start with the lock held; zero is none.
func (e *Exchange) start() time.Time {
	switch {
	case !e.sent.IsZero():
		return e.sent
	case e.got && e.warm:
		return e.firstWrite()
	case e.got && e.conn != nil:
		return e.conn.dialed
	}
	var first time.Time
	for _, p := range []Phase{DNS, Connect, TLS} {
		if t := e.phases[p].start; !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if first.IsZero() && e.got {
		return e.phases[Request].start
	}
	return first
}

// firstWrite returns the instant just before the first write of the request; where it is not known, that at
// which the connection was had.
func (e *Exchange) firstWrite() time.Time {
	if e.use != nil {
		if t, ok := e.use.wrote.get(); ok {
			return t
		}
	}
	return e.phases[Request].start
}

// FirstByte returns the stamp of the first byte of the response.
func (e *Exchange) FirstByte() (Stamp, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.firstOne, !e.firstOne.At.IsZero()
}

// Asked reports whether a connection was asked for, which is when the endpoint comes in.
func (e *Exchange) Asked() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.asked.IsZero()
}

// Connected reports whether the request has a connection, and whether it was there before the request.
func (e *Exchange) Connected() (connected, reused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got, e.warm
}

// Took returns how long a phase took. False: it did not take place, or did not end.
func (e *Exchange) Took(p Phase) (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.phases[p]
	if e.use != nil && e.sent.IsZero() {
		written, ok := e.use.written.get()
		switch {
		case p == Request && ok:
			s = span{e.firstWrite(), written}
		case p == Headers && ok:
			s.start = written
		}
	}
	if s.start.IsZero() || s.end.IsZero() {
		return 0, false
	}
	return max(s.end.Sub(s.start), 0), true
}

// Begun reports whether a phase began, whether it ended or not.
func (e *Exchange) Begun(p Phase) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.phases[p].start.IsZero()
}

// Secrets returns the values of the sensitive headers that were sent, so that they can be kept out of messages.
func (e *Exchange) Secrets() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.secrets
}
