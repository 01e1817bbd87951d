package probetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// http2Session is a connection of HTTP/2. One goroutine reads frames; each stream plays in its own.
type http2Session struct {
	session
	reader  *bufio.Reader
	framer  *http2.Framer
	streams map[uint32]*http2Stream // of the reading goroutine alone

	mu       sync.Mutex // guards what follows, and the order of writes
	out      bytes.Buffer
	header   bytes.Buffer
	encoder  *hpack.Encoder
	room     *sync.Cond // a window grew, or a stream ended
	window   int64      // bytes that the client still takes on the connection
	initial  int64      // the window of new streams
	maxFrame int
}

// http2Stream is one request and its answer.
type http2Stream struct {
	session *http2Session
	id      uint32
	ctx     context.Context // ends when the client canceled the stream or closed the connection
	cancel  context.CancelFunc
	request Request
	arrival *arrival // nil: not yet read whole
	head    Head
	begun   bool
	window  int64 // guarded by the session's mu
}

func newHTTP2Session(s session, reader *bufio.Reader) *http2Session {
	h := &http2Session{
		session: s, reader: reader, streams: map[uint32]*http2Stream{},
		window: 65535, initial: 65535, maxFrame: 16384, // as RFC 9113 begins
	}
	h.framer = http2.NewFramer(&h.out, reader)
	h.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.encoder = hpack.NewEncoder(&h.header)
	h.room = sync.NewCond(&h.mu)
	return h
}

func (s *http2Session) serve() {
	ctx, cancel := context.WithCancel(s.player.ctx)
	var playing sync.WaitGroup
	err := s.read(ctx, &playing)
	s.ended(err)
	cancel()
	s.wake()
	playing.Wait()
}

// read reads frames until the connection ends.
func (s *http2Session) read(ctx context.Context, playing *sync.WaitGroup) error {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(s.reader, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		err := errors.New("it does not begin with the preface of HTTP/2")
		s.player.failed(s.index, err)
		return err
	}
	if err := s.send(func() error { return s.framer.WriteSettings() }); err != nil {
		return err
	}
	for {
		frame, err := s.framer.ReadFrame()
		if err != nil {
			return err
		}
		stream, err := s.handle(ctx, frame)
		if err != nil {
			s.player.failed(s.index, err)
			return err
		}
		if stream != nil {
			arrival, x := s.arrived(stream.request)
			stream.arrival, stream.head = arrival, x.HTTP
			playing.Go(func() { s.play(x.Script, arrival.Received, stream.ctx.Done(), stream) })
		}
	}
}

// handle acts on one frame, and returns the stream whose request it ended.
func (s *http2Session) handle(ctx context.Context, frame http2.Frame) (*http2Stream, error) {
	id := frame.Header().StreamID
	stream := s.streams[id]
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		if stream == nil { // else these are trailers
			stream = s.open(ctx, f)
		}
		return stream.ifEnded(f.StreamEnded()), nil
	case *http2.DataFrame:
		if stream == nil {
			return nil, fmt.Errorf("DATA on stream %d, which is not open", id)
		}
		stream.request.Body = append(stream.request.Body, f.Data()...)
		return stream.ifEnded(f.StreamEnded()), s.grant(id, f.Length)
	case *http2.SettingsFrame:
		return nil, s.settings(f)
	case *http2.WindowUpdateFrame:
		s.grow(stream, id, int64(f.Increment))
	case *http2.PingFrame:
		if !f.IsAck() {
			return nil, s.send(func() error { return s.framer.WritePing(true, f.Data) })
		}
	case *http2.RSTStreamFrame:
		if stream != nil {
			stream.canceled()
		}
	}
	return nil, nil
}

func (s *http2Session) open(ctx context.Context, f *http2.MetaHeadersFrame) *http2Stream {
	header := http.Header{}
	for _, field := range f.RegularFields() {
		header.Add(field.Name, field.Value)
	}
	stream := &http2Stream{session: s, id: f.StreamID, request: Request{
		Proto: "HTTP/2.0", Method: f.PseudoValue("method"), Path: f.PseudoValue("path"), Header: header,
	}}
	stream.ctx, stream.cancel = context.WithCancel(ctx)
	s.mu.Lock()
	stream.window = s.initial
	s.mu.Unlock()
	s.streams[f.StreamID] = stream
	return stream
}

func (s *http2Session) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	s.mu.Lock()
	if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
		for _, stream := range s.streams {
			stream.window += int64(v) - s.initial
		}
		s.initial = int64(v)
	}
	if v, ok := f.Value(http2.SettingMaxFrameSize); ok {
		s.maxFrame = int(v)
	}
	if v, ok := f.Value(http2.SettingHeaderTableSize); ok {
		s.encoder.SetMaxDynamicTableSizeLimit(v)
	}
	s.room.Broadcast()
	s.mu.Unlock()
	return s.send(func() error { return s.framer.WriteSettingsAck() })
}

// grant lets the client send as much again as it sent.
func (s *http2Session) grant(id, n uint32) error {
	if n == 0 {
		return nil
	}
	return s.send(func() error {
		return errors.Join(s.framer.WriteWindowUpdate(0, n), s.framer.WriteWindowUpdate(id, n))
	})
}

func (s *http2Session) grow(stream *http2Stream, id uint32, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == 0 {
		s.window += n
	} else if stream != nil {
		stream.window += n
	}
	s.room.Broadcast()
}

func (s *http2Session) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.Broadcast()
}

// send makes one TCP write of the frames that write makes.
func (s *http2Session) send(write func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sendLocked(write)
}

func (s *http2Session) sendLocked(write func() error) error {
	s.out.Reset()
	if err := write(); err != nil {
		return err
	}
	_, err := s.conn.Write(s.out.Bytes())
	return err
}

// ifEnded returns the stream if its request was read whole.
func (t *http2Stream) ifEnded(ended bool) *http2Stream {
	if ended && t.arrival == nil {
		return t
	}
	return nil
}

func (t *http2Stream) canceled() {
	if t.arrival != nil {
		t.arrival.clientClosed()
	}
	t.cancel()
	t.session.wake()
}

// write sends one DATA frame, or as many as the client's limits ask for.
func (t *http2Stream) write(p []byte) error {
	s := t.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for first := true; first || len(p) > 0; first = false {
		n, err := t.waitRoom(len(p))
		if err != nil {
			return err
		}
		err = s.sendLocked(func() error {
			if err := t.begin(false); err != nil || n == 0 {
				return err
			}
			return s.framer.WriteData(t.id, false, p[:n])
		})
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// waitRoom waits until the client takes some of n bytes, and takes them off the windows.
func (t *http2Stream) waitRoom(n int) (int, error) {
	s := t.session
	if n == 0 {
		return 0, nil
	}
	for s.window <= 0 || t.window <= 0 {
		if err := t.ctx.Err(); err != nil {
			return 0, err
		}
		s.room.Wait()
	}
	n = int(min(int64(min(n, s.maxFrame)), s.window, t.window))
	s.window -= int64(n)
	t.window -= int64(n)
	return n, nil
}

func (t *http2Stream) end() error {
	return t.session.send(func() error {
		if !t.begun {
			return t.begin(true)
		}
		return t.session.framer.WriteData(t.id, true, nil)
	})
}

// begin adds the head to the first write. The session's mu is held.
func (t *http2Stream) begin(end bool) error {
	if t.begun {
		return nil
	}
	t.begun = true
	s := t.session
	s.header.Reset()
	fields := []hpack.HeaderField{{Name: ":status", Value: strconv.Itoa(t.head.Status)}}
	for _, h := range t.head.Headers {
		fields = append(fields, hpack.HeaderField{Name: strings.ToLower(h[0]), Value: h[1]})
	}
	for _, f := range fields {
		if err := s.encoder.WriteField(f); err != nil {
			return err
		}
	}
	return s.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: t.id, BlockFragment: s.header.Bytes(), EndStream: end, EndHeaders: true,
	})
}

func (t *http2Stream) resetStream(code http2.ErrCode) {
	_ = t.session.send(func() error { return t.session.framer.WriteRSTStream(t.id, code) })
}

func (t *http2Stream) goAway(last *uint32) {
	id := t.id
	if last != nil {
		id = *last
	}
	_ = t.session.send(func() error { return t.session.framer.WriteGoAway(id, http2.ErrCodeNo, nil) })
}
