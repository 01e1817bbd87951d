package probetest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// TruthConfig describes the answers of a [TruthServer].
type TruthConfig struct {
	Mode   TruthMode
	Tokens int          // of each answer; 0 is 128
	TTFT   Distribution // seconds from the request to the first write; nil is 50 ms + U(0, 10)
	Gap    Distribution // seconds between writes; nil is 10 ms + U(0, 2)
	TLS    *tls.Config  // nil: no TLS
	Seed   uint64
	Keep   int // truths that are kept, the newest; 0 is 16,384
}

// TruthMode is how an answer is written.
type TruthMode string

// The modes.
const (
	TruthPaced TruthMode = ""      // a stream, one write a token
	TruthBatch TruthMode = "batch" // a stream, all of it in one write
	TruthWhole TruthMode = "whole" // one JSON object
)

// TruthServer answers any POST with a chat completion, and remembers when it received the request and when it
// wrote. It speaks a lean HTTP/1.1 of its own: what it costs should not be what a benchmark measures.
//
// GET /truth answers with what it remembers, one JSON object a line ([Truth]), and GET /truth?id=ID with those
// of one X-Request-Id or trace id. A POST without either is answered and not remembered.
type TruthServer struct {
	config   TruthConfig
	listener net.Listener
	writes   [][]byte // what an answer consists of
	done     <-chan struct{}
	running  sync.WaitGroup
	conns    connSet
	streams  atomic.Int64
	number   atomic.Uint64 // requests so far

	mu   sync.Mutex
	next int
	kept []truthRecord // a ring
}

// truthRecord is a Truth without pointers in its long part, which keeps the garbage collector out of the way.
type truthRecord struct {
	Truth
	writes []time.Duration // since Received
}

// ServeTruth serves on a listener of TCP connections until the context ends, and closes it then. Wait waits for that.
func ServeTruth(ctx context.Context, l net.Listener, c TruthConfig) *TruthServer {
	if c.Tokens == 0 {
		c.Tokens = 128
	}
	if c.TTFT == nil {
		c.TTFT = Uniform(0.050, 0.060)
	}
	if c.Gap == nil {
		c.Gap = Uniform(0.010, 0.012)
	}
	if c.Keep == 0 {
		c.Keep = 1 << 14
	}
	s := &TruthServer{config: c, listener: l, writes: renderAnswer(c.Mode, c.Tokens), done: ctx.Done()}
	stampAccepted(l)
	s.running.Go(func() {
		<-ctx.Done()
		_ = l.Close()
		s.conns.closeAll()
	})
	s.running.Go(s.accept)
	return s
}

// Wait returns when the server has ended.
func (s *TruthServer) Wait() { s.running.Wait() }

// Truth returns the truth of the newest request with an X-Request-Id or trace id.
func (s *TruthServer) Truth(id string) (Truth, bool) {
	found := s.truths(id)
	if len(found) == 0 {
		return Truth{}, false
	}
	return found[len(found)-1], true
}

// truths returns what is kept, the oldest first; with an id only that.
func (s *TruthServer) truths(id string) []Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Truth
	for i := range s.kept {
		r := s.kept[(s.next+i)%len(s.kept)]
		if id != "" && id != r.RequestID && id != r.TraceID {
			continue
		}
		t := r.Truth
		for _, w := range r.writes {
			t.Writes = append(t.Writes, t.Received.Add(w))
		}
		out = append(out, t)
	}
	return out
}

func (s *TruthServer) keep(r truthRecord) {
	if r.RequestID == "" && r.TraceID == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) < s.config.Keep {
		s.kept = append(s.kept, r)
		return
	}
	s.kept[s.next] = r
	s.next = (s.next + 1) % len(s.kept)
}

func (s *TruthServer) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if !waitUntil(s.done, time.Now().Add(10*time.Millisecond), coarse) { // out of file descriptors
				return
			}
			continue
		}
		s.conns.add(c)
		s.running.Go(func() {
			defer s.conns.close(c)
			s.serve(c)
		})
	}
}

func (s *TruthServer) serve(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	conn := &truthConn{stamped: newStampedConn(tcp)}
	conn.Conn = conn.stamped
	if s.config.TLS != nil {
		conn.Conn = tls.Server(conn.stamped, s.config.TLS)
	}
	for {
		r, err := conn.readRequest()
		if err != nil {
			return
		}
		if err := s.answer(conn, r); err != nil || r.close {
			return
		}
	}
}

func (s *TruthServer) answer(c *truthConn, r leanRequest) error {
	if r.method != http.MethodPost {
		return s.report(c, r.target)
	}
	s.streams.Add(1)
	defer s.streams.Add(-1)
	rng := rand.New(rand.NewPCG(s.config.Seed, s.number.Add(1)))
	record := truthRecord{Truth: r.Truth, writes: make([]time.Duration, 0, len(s.writes))}
	due := r.Received.Add(seconds(s.config.TTFT(rng)))
	for i, data := range s.writes {
		if !waitUntil(s.done, due, precisionFor(int(s.streams.Load()))) {
			return context.Canceled
		}
		written := time.Since(r.Received)
		record.writes = append(record.writes, written)
		if i == len(s.writes)-1 {
			s.keep(record) // before the client can have read the end and ask
		}
		if _, err := c.Write(data); err != nil {
			return err
		}
		// From the write, not from when it was due: a late server does not make up for it by a burst.
		due = r.Received.Add(written + seconds(s.config.Gap(rng)))
	}
	return nil
}

// report answers GET /truth.
func (s *TruthServer) report(c net.Conn, target string) error {
	var body bytes.Buffer
	status := http.StatusOK
	u, err := url.Parse(target)
	if err != nil || u.Path != "/truth" {
		status = http.StatusNotFound
	} else {
		encoder := json.NewEncoder(&body)
		for _, t := range s.truths(u.Query().Get("id")) {
			if err := encoder.Encode(t); err != nil {
				return err
			}
		}
	}
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/jsonl\r\nContent-Length: %d\r\n\r\n", status, http.StatusText(status), body.Len())
	_, err = c.Write(append([]byte(head), body.Bytes()...))
	return err
}

// renderAnswer makes the writes of an answer. The last one also holds the finish, the usage and the end of the
// body, so that the last token and the end are one instant.
func renderAnswer(mode TruthMode, tokens int) [][]byte {
	const object = `{"id":"truth","object":"chat.completion%s","created":1767693600,"model":"truth",`
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":8,"completion_tokens":%d,"total_tokens":%d}}`, tokens, tokens+8)
	if mode == TruthWhole {
		var text strings.Builder
		for i := range tokens {
			text.WriteString(word(i))
		}
		body := fmt.Sprintf(object+`"choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],%s`, "", text.String(), usage)
		return [][]byte{fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)}
	}
	chunk := func(event string) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event) }
	event := "data: " + fmt.Sprintf(object, ".chunk")
	var writes [][]byte
	for i := range tokens {
		writes = append(writes, chunk(event+`"choices":[{"index":0,"delta":{"content":`+strconv.Quote(word(i))+`},"finish_reason":null}]}`+"\n\n"))
	}
	writes[0] = append([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"), writes[0]...)
	tail := chunk(event + `"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		event + `"choices":[],` + usage + "\n\ndata: [DONE]\n\n")
	last := len(writes) - 1
	writes[last] = append(append(writes[last], tail...), "0\r\n\r\n"...)
	if mode == TruthBatch {
		return [][]byte{bytes.Join(writes, nil)}
	}
	return writes
}

// truthConn reads requests by hand.
type truthConn struct {
	net.Conn
	stamped *stampedConn
	buf     []byte // what was read and not used yet
}

// leanRequest is what a TruthServer needs of a request.
type leanRequest struct {
	Truth
	method, target string
	close          bool // the client does not keep the connection
}

// readRequest reads a request with its body, which must have a Content-Length.
func (c *truthConn) readRequest() (leanRequest, error) {
	end := bytes.Index(c.buf, []byte("\r\n\r\n"))
	for ; end < 0; end = bytes.Index(c.buf, []byte("\r\n\r\n")) {
		if len(c.buf) > 64<<10 {
			return leanRequest{}, errors.New("the head of the request is over 64 KiB")
		}
		if err := c.fill(); err != nil {
			return leanRequest{}, err
		}
	}
	r, length, err := parseHead(string(c.buf[:end]))
	if err != nil {
		return r, err
	}
	c.buf = c.buf[end+4:]
	for length > len(c.buf) { // bodies are not kept
		length -= len(c.buf)
		c.buf = c.buf[:0]
		if err := c.fill(); err != nil {
			return r, err
		}
	}
	c.buf = c.buf[length:]
	r.Received, r.Kernel = c.stamped.received()
	return r, nil
}

// fill reads once.
func (c *truthConn) fill() error {
	const block = 4 << 10
	if cap(c.buf)-len(c.buf) < block {
		c.buf = append(make([]byte, 0, len(c.buf)+4*block), c.buf...)
	}
	n, err := c.Read(c.buf[len(c.buf):cap(c.buf)])
	c.buf = c.buf[:len(c.buf)+n]
	if n > 0 {
		return nil
	}
	return err
}

// parseHead also returns the Content-Length.
func parseHead(head string) (r leanRequest, length int, err error) {
	line, rest, _ := strings.Cut(head, "\r\n")
	parts := strings.Fields(line)
	if len(parts) != 3 {
		return r, 0, fmt.Errorf("no request line: %q", line)
	}
	r.method, r.target = parts[0], parts[1]
	for line := range strings.SplitSeq(rest, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.EqualFold(name, "Content-Length"):
			if length, err = strconv.Atoi(value); err != nil || length < 0 {
				return r, 0, fmt.Errorf("bad Content-Length %q", value)
			}
		case strings.EqualFold(name, "Transfer-Encoding"):
			return r, 0, errors.New("the body has no Content-Length")
		case strings.EqualFold(name, "Connection"):
			r.close = strings.EqualFold(value, "close")
		case strings.EqualFold(name, "X-Request-Id"):
			r.RequestID = value
		case strings.EqualFold(name, "Traceparent"):
			r.TraceID = traceID(value)
		}
	}
	return r, length, nil
}
