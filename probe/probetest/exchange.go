package probetest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// exchange is one request, and what is done about it.
type exchange struct {
	open    *atomic.Int64 // requests being answered by the whole endpoint
	model   *runningModel
	dialect dialect
	w       http.ResponseWriter
	r       *http.Request
	query   *query
	plan    plan
	served  Served
	reply   reply
	at      time.Time // when the next token is due
	buf     []byte    // the next write
}

func (x *exchange) run() {
	if x.fails() {
		return
	}
	entered := time.Now()
	release, err := x.model.enter(x.r.Context())
	if err != nil {
		if errors.Is(err, errQueueFull) {
			x.refuse(&apiError{status: http.StatusTooManyRequests, message: err.Error()})
		}
		return
	}
	defer release()
	x.open.Add(1)
	defer x.open.Add(-1)
	now := time.Now()
	x.at = now.Add(x.plan.ttft)
	x.reply = reply{
		query: x.query, id: fmt.Sprintf("sim-%d", x.served.Received.UnixNano()), created: x.served.Received,
		tokens: x.plan.tokens, finish: x.plan.finish, fault: x.plan.fault.Kind, rng: x.plan.rng,
		queue: now.Sub(entered), ttft: x.plan.ttft,
	}
	if s, ok := x.dialect.(streamer); ok && x.query.stream && x.plan.fault.Kind != FaultNotStreamed {
		x.stream(s)
		return
	}
	x.whole()
}

// refuse answers with an error.
func (x *exchange) refuse(e *apiError) { x.served.Status = writeError(x.w, x.dialect, e) }

// fails does what a fault does instead of an answer.
func (x *exchange) fails() bool {
	f := x.plan.fault
	if status, ok := refusals[f.Kind]; ok {
		x.refuse(&apiError{status: status, quota: f.Kind == FaultQuota, message: simulated(f.Kind), retryAfter: f.RetryAfter})
		return true
	}
	if status, ok := pages[f.Kind]; ok {
		x.served.Status = status
		x.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		x.w.WriteHeader(status)
		fmt.Fprintf(x.w, "<!DOCTYPE html>\n<html><head><title>%s</title></head><body></body></html>\n", simulated(f.Kind))
		return true
	}
	switch f.Kind {
	case FaultRedirect:
		x.served.Status = http.StatusTemporaryRedirect
		x.w.Header().Set("Location", x.r.URL.Path+"/moved")
		x.w.WriteHeader(http.StatusTemporaryRedirect)
	case FaultNoHeaders:
		<-x.r.Context().Done()
	case FaultResetAtOnce:
		x.reset()
	case FaultClosed:
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

func simulated(k FaultKind) string {
	return "simulated fault: " + strings.ReplaceAll(string(k), "_", " ")
}

// reset ends the connection with a TCP reset.
func (x *exchange) reset() {
	if c := connOf(x.r); c != nil {
		c.reset()
	}
	panic(http.ErrAbortHandler)
}

// cut is after how many tokens the fault strikes; -1 is never.
func (x *exchange) cut(s streamer) int {
	kind := x.plan.fault.Kind
	switch {
	case kind == FaultNoFirstToken:
		return 0
	case kind == FaultChecksum && s.contentType() != awsType:
		return -1
	case halfway[kind]:
		return half(x.plan.tokens)
	}
	return -1
}

// wait returns false when the client is gone.
func (x *exchange) wait() bool {
	return waitUntil(x.r.Context().Done(), x.at, precisionFor(int(x.open.Load())))
}

// gap puts the next token off.
func (x *exchange) gap() {
	d := seconds(draw(x.model.Gap, x.plan.rng, 0))
	x.at = x.at.Add(d)
	x.reply.decode += d
}

func (x *exchange) stream(s streamer) {
	x.head(s.contentType())
	x.buf = s.begin(x.buf, &x.reply)
	x.flush()
	cut := x.cut(s)
	for i := range x.plan.tokens {
		if i == cut {
			x.strike(s)
			return
		}
		if !x.wait() {
			return
		}
		x.buf = s.token(x.buf, &x.reply, i)
		x.flushTokens(1)
		if i < x.plan.tokens-1 {
			x.gap()
		}
	}
	if cut >= 0 { // a single token, or none: the fault comes after it
		x.strike(s)
		return
	}
	x.buf = s.finish(x.buf, &x.reply)
	if x.plan.fault.Kind == FaultDoubleFinish {
		x.buf = s.finish(x.buf, &x.reply)
	}
	x.buf = s.end(x.buf, &x.reply)
	x.flush()
}

// largeEvent is more than any client has to take, in bytes.
const largeEvent = 9 << 20

// noJSON begins as JSON does, and does not go on so.
const noJSON = `{"simulated" fault}`

// strike is the fault itself, half-way in a stream.
func (x *exchange) strike(s streamer) {
	switch kind := x.plan.fault.Kind; kind {
	case FaultInBand:
		x.buf = s.fail(x.buf, &x.reply, &apiError{status: http.StatusInternalServerError, message: simulated(kind)})
	case FaultMalformed:
		x.buf = s.frame(x.buf, noJSON)
	case FaultTooLarge:
		x.buf = s.frame(x.buf, large())
	case FaultChecksum:
		x.buf = s.frame(x.buf, "{}")
		x.buf[len(x.buf)-1] ^= 1
	case FaultPingStall:
		x.keepAlive(s.ping(nil))
		return
	default:
		x.breakOff()
		return
	}
	x.flush()
}

// breakOff ends an answer, or does not, as a fault of the transport does.
func (x *exchange) breakOff() {
	switch x.plan.fault.Kind {
	case FaultReset:
		x.reset()
	case FaultCut:
		panic(http.ErrAbortHandler)
	case FaultStall, FaultNoFirstToken:
		<-x.r.Context().Done()
	}
}

func large() string { return `{"simulated":"` + strings.Repeat("x", largeEvent) + `"}` }

// keepAlive writes signs of life until the client is gone.
func (x *exchange) keepAlive(ping []byte) {
	const every = 50 * time.Millisecond
	for {
		x.buf = append(x.buf, ping...)
		x.flush()
		x.at = time.Now().Add(every)
		if !waitUntil(x.r.Context().Done(), x.at, coarse) {
			return
		}
	}
}

// whole answers in one piece when the last token is due.
func (x *exchange) whole() {
	for range x.plan.tokens - 1 {
		x.gap()
	}
	kind := x.plan.fault.Kind
	if kind == FaultPingStall { // white space before a JSON document says nothing
		x.head(jsonType)
		x.keepAlive([]byte("\n"))
		return
	}
	body := x.dialect.whole(x.w.Header(), &x.reply)
	length, tokens := len(body), 0
	switch kind {
	case FaultInBand:
		body = x.dialect.refuse(x.w.Header(), &apiError{status: http.StatusInternalServerError, message: simulated(kind)})
		length = len(body)
	case FaultMalformed:
		body, length = []byte(noJSON), len(noJSON)
	case FaultTooLarge:
		body = []byte(large())
		length = len(body)
	case FaultTruncated: // a server that believes that this is all
		body = bytes.Clone(body[:len(body)/2])
		length = len(body)
	case FaultReset, FaultCut, FaultStall:
		body = body[:len(body)/2]
	case FaultNoFirstToken:
		body = nil
	default:
		tokens = x.plan.tokens
	}
	if !x.wait() {
		return
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(length))
	x.head(jsonType)
	x.buf = append(x.buf, body...)
	x.flushTokens(tokens)
	x.breakOff()
}

// head sets what the head of an answer says. It goes out with the first write.
func (x *exchange) head(contentType string) {
	x.served.Status = http.StatusOK
	x.w.Header().Set("Content-Type", contentType)
}

// flushTokens is flush of a write that holds tokens; the truth remembers the instant just before it.
func (x *exchange) flushTokens(n int) {
	x.served.OutputTokens += n
	x.served.Writes = append(x.served.Writes, time.Now())
	x.flush()
}

// flush makes one write. Its errors are those of a client that is gone, which wait tells.
func (x *exchange) flush() {
	_, _ = x.w.Write(x.buf)
	_ = http.NewResponseController(x.w).Flush()
	x.buf = x.buf[:0]
}
