package probetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"golang.org/x/net/http2"
)

// http1Session is a connection of HTTP/1.0 or HTTP/1.1. One goroutine reads requests, and so sees at once when
// the client closes; another one answers them in their order.
type http1Session struct {
	session
	reader *bufio.Reader
}

type http1Exchange struct {
	*arrival
	Exchange
	keep bool // the client wants to keep the connection
}

func (s *http1Session) serve() {
	ctx, cancel := context.WithCancel(s.player.ctx)
	exchanges := make(chan http1Exchange)
	answered := make(chan struct{}) // closed when no further request will be answered
	s.player.wg.Go(func() {
		defer close(answered)
		for x := range exchanges {
			if !s.answer(ctx, x) {
				return
			}
		}
	})
	err := s.read(exchanges, answered)
	s.ended(err)
	cancel()
	close(exchanges)
	<-answered
}

// read reads requests until the connection ends.
func (s *http1Session) read(exchanges chan<- http1Exchange, answered <-chan struct{}) error {
	for {
		r, err := http.ReadRequest(s.reader)
		if err != nil {
			if !isEnd(err) {
				s.player.failed(s.index, err)
			}
			return err
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.player.failed(s.index, fmt.Errorf("reading the body of a request: %w", err))
			return err
		}
		select {
		case <-answered:
			return net.ErrClosed // we are done with this connection, so nobody saw this request
		default:
		}
		a, x := s.arrived(Request{Proto: r.Proto, Method: r.Method, Path: r.RequestURI, Header: r.Header, Body: body})
		select {
		case exchanges <- http1Exchange{a, x, !r.Close}:
		case <-answered:
			return net.ErrClosed
		}
	}
}

// isEnd reports whether a connection ended, unlike one that brought something that is no request.
func isEnd(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}

// answer plays one exchange and reports whether the connection goes on.
func (s *http1Session) answer(ctx context.Context, x http1Exchange) bool {
	if x.HTTP.Version == "2" {
		s.player.failed(s.index, errors.New("the client spoke HTTP/1, the case is one of HTTP/2"))
		s.finish()
		return false
	}
	a := &http1Answer{conn: s.conn, head: x.HTTP, length: x.length()}
	s.play(x.Script, x.Received, ctx.Done(), a)
	if !a.ended {
		return false
	}
	if x.keep && x.HTTP.Version == "1.1" && x.HTTP.Framing != "close" {
		return true
	}
	s.finish()
	return false
}

// length is the Content-Length of a script. A script without a proper end leaves one byte out.
func (x *Exchange) length() int {
	n := 0
	for _, step := range x.Script {
		n += len(step.Write)
	}
	if x.Script[len(x.Script)-1].Do != DoEnd {
		n++
	}
	return n
}

// http1Answer is one answer of HTTP/1.
type http1Answer struct {
	conn   net.Conn
	head   Head
	length int
	begun  bool // the head was sent
	ended  bool // the body was ended properly
}

func (a *http1Answer) write(p []byte) error {
	var b bytes.Buffer
	a.begin(&b)
	switch {
	case a.head.Framing == "chunked" && len(p) > 0: // an empty chunk would be the last one
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(p), p)
	case a.head.Framing != "chunked":
		b.Write(p)
	}
	_, err := a.conn.Write(b.Bytes())
	return err
}

func (a *http1Answer) end() error {
	var b bytes.Buffer
	a.begin(&b)
	if a.head.Framing == "chunked" {
		b.WriteString("0\r\n\r\n")
	}
	a.ended = true
	if b.Len() == 0 {
		return nil
	}
	_, err := a.conn.Write(b.Bytes())
	return err
}

// begin adds the head to the first write.
func (a *http1Answer) begin(b *bytes.Buffer) {
	if a.begun {
		return
	}
	a.begun = true
	fmt.Fprintf(b, "HTTP/%s %d %s\r\n", a.head.Version, a.head.Status, http.StatusText(a.head.Status))
	for _, h := range a.head.Headers {
		fmt.Fprintf(b, "%s: %s\r\n", h[0], h[1])
	}
	switch a.head.Framing {
	case "chunked":
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case "length":
		fmt.Fprintf(b, "Content-Length: %d\r\n", a.length)
	case "close":
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
}

// The loader lets no script of HTTP/1 have these steps.
func (a *http1Answer) resetStream(http2.ErrCode) {}
func (a *http1Answer) goAway(*uint32)            {}
