// Package probe sends one request to an endpoint, stamps what comes back, decides the outcome and judges it by the
// SLO. It knows nothing of Prometheus: whoever wants results observes them.
//
// The words and definitions (target, scenario, series, t_send, token event, TTFT, TPOT, E2E, good) are those of
// the README.
package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"goodput_exporter/config"
	"goodput_exporter/probe/arrival"
	"goodput_exporter/probe/stream"
	"goodput_exporter/probe/wire"
	"goodput_exporter/probe/workload"
)

// Prober probes one series. It is safe for concurrent use.
type Prober struct {
	target    *config.Target
	scenario  *config.Scenario
	protocol  wire.Protocol
	client    *Client
	source    *workload.Source
	memory    wire.Memory
	common    wire.Request       // what all its requests have in common
	endpoint  *http.Request      // of which they are copies: a URL need not be parsed anew for each
	query     []string           // what is secret in the target's URL
	schema    *jsonschema.Schema // which the answer must fit; nil: none
	userAgent string
}

// New returns a prober of a valid series, which sends its requests by client.
func New(s *config.Series, client *Client, userAgent string) (*Prober, error) {
	protocol, err := protocolOf(s.Target)
	if err != nil {
		return nil, err
	}
	source, err := workload.New(s.Scenario, rand.Uint64())
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Scenario.Name, err)
	}
	schema, err := s.Scenario.Check.CompileSchema()
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Scenario.Name, err)
	}
	extra := maps.Clone(s.Target.ExtraBody)
	if extra == nil {
		extra = map[string]any{}
	}
	maps.Copy(extra, s.Scenario.ExtraBody)
	p := &Prober{
		target: s.Target, scenario: s.Scenario, protocol: protocol, client: client,
		source: source, query: secretsOfQuery(s.Target.URL), schema: schema, userAgent: userAgent,
	}
	p.common = wire.Request{
		Model:          s.Target.Model,
		Stream:         s.Scenario.Stream && !protocol.Traits().Tokenless,
		MaxTokensField: s.Target.MaxTokensField,
		Extra:          extra, // the target's fields of the body, and the scenario's over them
		Memory:         &p.memory,
	}
	if p.endpoint, err = requestTo(protocol.URL(p.common)); err != nil {
		return nil, fmt.Errorf("target %s: %w", s.Target.Name, err)
	}
	return p, nil
}

// protocolOf returns a target's protocol.
func protocolOf(t *config.Target) (wire.Protocol, error) {
	base, err := url.Parse(t.URL)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.Name, err)
	}
	protocol, err := wire.New(t.Protocol, base)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.Name, err)
	}
	return protocol, nil
}

// attempt is one probe under way.
type attempt struct {
	*Prober
	result  *Result
	request wire.Request
	body    []byte
	header  http.Header // what the protocol wants
	expect  *regexp.Regexp

	exchange *arrival.Exchange
	head     http.Header // of the response; nil: none came
	limits   *limits
	ctx      context.Context
	answer   answer
	decoder  wire.Decoder
	detect   *stream.Detect
	reads    int
}

// Probe asks the next prompt of the series' scenario and returns what became of it. When ctx ends before it does, its
// outcome is Canceled.
func (p *Prober) Probe(ctx context.Context) *Result { return p.Ask(ctx, p.source.Next()) }

// Ask is Probe with a prompt of the caller's.
func (p *Prober) Ask(ctx context.Context, prompt workload.Prompt) *Result {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	a := &attempt{Prober: p, result: p.newResult()}
	a.answer.text, a.answer.gaps = s.text[:0], s.gaps[:0]
	f := a.prepare(prompt)
	if f == nil {
		f = a.run(ctx)
	}
	a.conclude(f)
	a.keepHeader()
	a.detach()
	s.text, s.gaps = a.answer.text, a.answer.gaps // they may have grown
	return a.result
}

// scratch is where an answer grows, and after it the next one.
type scratch struct {
	text []byte
	gaps []time.Duration
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

// detach gives the result copies of what it shares with the attempt. Results are kept by the thousands.
func (a *attempt) detach() {
	r := a.result
	r.ChunkGaps = slices.Clone(r.ChunkGaps)
	if r.OwnLag != nil {
		r.OwnLag = new(*r.OwnLag)
	}
}

func (p *Prober) newResult() *Result {
	trace, span := newTraceIDs()
	return &Result{
		Target: p.target.Name, Scenario: p.scenario.Name, Model: p.target.Model, Protocol: p.target.Protocol,
		Time: time.Now(), TraceID: trace, SpanID: span,
	}
}

// run sends the request and reads the answer; once more where the connection was stale.
func (a *attempt) run(ctx context.Context) *failure {
	for retries := 0; ; retries++ {
		f, stale := a.try(ctx)
		if !stale || retries == maxStaleRetries {
			return f
		}
		// What lies idle beside a stale connection is likely to be stale too; the next try dials.
		a.client.dropIdle()
		a.flag(FlagStaleRetry)
	}
}

// maxStaleRetries bounds the retries on connections that turn out to be dead. More than one is needed only where
// another probe puts a dead connection back between dropIdle and the retry.
const maxStaleRetries = 2

// try makes one exchange. stale: the reused connection was dead, the request may be sent again.
func (a *attempt) try(parent context.Context) (f *failure, stale bool) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	a.exchange = arrival.NewExchange(a.client.secretHeaders...)
	a.ctx = a.exchange.Context(ctx)
	a.limits = &limits{total: a.scenario.Timeout, idle: a.scenario.IdleTimeout, exchange: a.exchange, cancel: cancel}
	if a.request.Stream {
		a.limits.firstToken = a.scenario.FirstTokenTimeout
	}
	a.limits.watch()
	defer a.limits.stop()

	resp, err := a.send()
	if err != nil {
		if f := ofCause(ctx, a.exchange, false); f != nil {
			return f, false
		}
		return ofTransport(err, a.exchange), isStale(err, a.exchange)
	}
	defer resp.Body.Close()
	a.describe(resp)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return a.refused(resp), false
	}
	return a.read(resp), false
}

// send sends the request, and follows one redirect that keeps the method and the body, where that is allowed.
func (a *attempt) send() (*http.Response, error) {
	to := a.endpoint
	var previous *http.Response
	for {
		resp, err := a.roundTrip(to, previous)
		if err != nil || previous != nil || !a.target.HTTP.FollowRedirects {
			return resp, err
		}
		if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
			return resp, nil
		}
		next, err := resp.Location()
		if err != nil || next.Scheme != "http" && next.Scheme != "https" {
			return resp, nil //nolint:nilerr // a redirect to nowhere is told as a redirect
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
		_ = resp.Body.Close()
		previous = resp
		if to, err = requestTo(next); err != nil {
			return nil, err
		}
	}
}

// requestTo returns a request without a body.
func requestTo(u *url.URL) (*http.Request, error) {
	return http.NewRequestWithContext(context.Background(), http.MethodPost, u.String(), http.NoBody)
}

// roundTrip sends a copy of a request, with the body that it lacks.
func (a *attempt) roundTrip(to *http.Request, previous *http.Response) (*http.Response, error) {
	req := to.WithContext(a.ctx)
	u := *to.URL // which a signer may write to
	req.URL = &u
	// Without GetBody the transport cannot send a second time behind the clock's back.
	req.GetBody = nil
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(a.body)), int64(len(a.body))
	req.Response = previous // so that credentials do not follow a redirect to another host
	req.Header = maps.Clone(a.header)
	req.Header.Set("User-Agent", a.userAgent)
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("Traceparent", "00-"+a.result.TraceID+"-"+a.result.SpanID+"-01")
	if s, ok := a.protocol.(wire.Signer); ok && !a.client.authorizes() {
		if err := s.Sign(req, a.body); err != nil {
			return nil, err
		}
	}
	return a.client.rt.RoundTrip(req)
}

// describe writes what the response's head says into the result.
func (a *attempt) describe(resp *http.Response) {
	r := a.result
	a.head = resp.Header
	r.StatusCode, r.HTTPVersion = resp.StatusCode, resp.Proto
	r.RetryAfter = wire.RetryAfter(resp.Header, time.Now())
	r.ServerTimes = wire.ServerTimes(resp.Header)
	for _, name := range requestIDHeaders {
		if id := resp.Header.Get(name); id != "" {
			r.RequestID = id
			return
		}
	}
}

// requestIDHeaders are where servers and gateways name a request, the most telling ones first.
var requestIDHeaders = []string{
	"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Generation-Id", "X-Amzn-Requestid", "X-Litellm-Call-Id", "Cf-Ray",
}

// maxErrorBody is how much of the body of an error is read, in bytes.
const maxErrorBody = 64 << 10

// refused classifies a response whose status is not 2xx.
func (a *attempt) refused(resp *http.Response) *failure {
	var body []byte
	plain, err := a.plain(resp)
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(plain, maxErrorBody))
	}
	if err != nil {
		if f := ofCause(a.ctx, a.exchange, true); f != nil && f.outcome == Canceled {
			return f
		}
	}
	told := wire.ResponseError(resp.StatusCode, resp.Header, body)
	a.retryAfter(told)
	f := ofStatus(told)
	if off, ok := clockOff(resp.Header, time.Now()); ok && f.reason == ReasonAuth {
		f.err = fmt.Errorf("%w (the clock here is off the server's by %s: signatures and tokens can fail by that)", f.err, off)
	}
	return f
}

// clockOff returns by how much the wall clock differs from the server's, where that is enough for signatures to fail.
func clockOff(h http.Header, now time.Time) (time.Duration, bool) {
	const tolerated = 4 * time.Minute // AWS takes 5
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0, false
	}
	off := now.Sub(date).Round(time.Second)
	return off, off.Abs() > tolerated
}

// retryAfter takes the delay that an error asks for, unless the head had one.
func (a *attempt) retryAfter(told *wire.Error) {
	if a.result.RetryAfter == nil {
		a.result.RetryAfter = told.RetryAfter
	}
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

// read reads the answer to its end and classifies it. Nil is a success.
func (a *attempt) read(resp *http.Response) *failure {
	a.decoder = a.protocol.Decoder(a.request)
	a.detect = &stream.Detect{Framing: a.protocol.Traits().Framing, Streamed: a.request.Stream}
	err := a.readBody(resp)
	a.answer.kind = a.detect.Kind
	a.result.Comments = a.detect.Comments()
	limit := ofCause(a.ctx, a.exchange, true)
	switch {
	case a.answer.err != nil:
		a.retryAfter(a.answer.err)
		return ofError(a.answer.err)
	case err == nil:
		return a.ended()
	case errors.Is(err, stream.ErrTooLarge):
		return ofBody(err)
	case a.answer.over() && limit != nil:
		a.flag(FlagLingering)
		return a.ended()
	case a.answer.over():
		a.flag(FlagResetAfterFinish)
		return a.ended()
	case limit != nil:
		return limit
	}
	return ofBody(err)
}

// ended classifies an answer whose body ended, or has nothing more to say. Nil is a success.
func (a *attempt) ended() *failure {
	if f := ofEnd(&a.answer, a.request.Stream, a.scenario.AcceptNotStreamed); f != nil {
		return f
	}
	return a.check()
}

// readBody feeds the body to the framer, read by read, and the frames to the answer.
func (a *attempt) readBody(resp *http.Response) error {
	body, err := a.plain(resp)
	if errors.Is(err, io.EOF) {
		return nil // encoded, but empty
	}
	if err != nil {
		return err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		n, err := body.Read(*buf)
		if n > 0 {
			a.reads++
			if err := a.detect.Feed((*buf)[:n], a.exchange.Stamp(), a.frame); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			// A whole body is complete when it ends, which may be later than its last byte of matter.
			if err := a.detect.Feed(nil, a.exchange.Stamp(), a.frame); err != nil {
				return err
			}
			return a.detect.Close(a.frame)
		case err != nil && a.detect.Kind == stream.Events:
			_ = a.detect.Close(a.frame) // an event that lacks only its end counts; err says why
			return err
		case err != nil:
			return err
		}
	}
}

// frame takes one frame of the body.
func (a *attempt) frame(f stream.Frame) error {
	if a.answer.done {
		return nil // nothing after the sentinel counts
	}
	if a.detect.Kind == stream.HTML {
		return nil
	}
	ev, err := a.decoder.Decode(f)
	if f.Unterminated {
		if err != nil {
			return nil //nolint:nilerr // cut: the terminal signal decides
		}
		a.flag(FlagUnterminatedEvent)
	}
	if err != nil {
		return a.undecoded(err)
	}
	a.answer.add(&ev, f.Stamp, a.reads)
	switch {
	case ev.Done, ev.Error != nil:
		a.limits.onDone(f.Stamp.At)
	case ev.Finish != "":
		a.limits.onFinish(f.Stamp.At)
	case ev.Channels != 0:
		a.limits.onToken(f.Stamp.At)
	}
	return nil
}

// undecoded deals with a frame that is not of the protocol. A whole body that is cut has only lost its end.
func (a *attempt) undecoded(err error) error {
	if a.answer.over() {
		return nil
	}
	if errors.Is(err, wire.ErrCut) && a.detect.Kind == stream.JSON {
		a.answer.cut = true
		return nil
	}
	return err
}

func (a *attempt) flag(f Flag) {
	if !slices.Contains(a.result.Flags, f) {
		a.result.Flags = append(a.result.Flags, f)
	}
}
