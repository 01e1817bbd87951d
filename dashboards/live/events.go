package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"goodput_exporter/collector/live"
)

// streams are the clients of GET /api/v1/events.
type streams struct {
	open      atomic.Int64
	heartbeat time.Duration // how long a stream may be silent, so that proxies and clients know that it lives
	pause     time.Duration // after each write: what happens meanwhile is written at once
}

func newStreams() streams { return streams{heartbeat: 15 * time.Second, pause: 100 * time.Millisecond} }

const (
	maxStreams   = 1000
	writeTimeout = 30 * time.Second // of a client that reads nothing
)

// serveEvents is GET /api/v1/events?target=&scenario=: live.Event as server-sent events, named by their types, from now on.
// A client that is too slow misses some and is told how many by the event "dropped".
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if err := known(query, "target", "scenario"); err != nil {
		fail(w, err)
		return
	}
	if p.streams.open.Add(1) > maxStreams {
		p.streams.open.Add(-1)
		fail(w, fmt.Errorf("%w: there are %d streams of events already", ErrUnavailable, maxStreams))
		return
	}
	defer p.streams.open.Add(-1)
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &stream{
		streams: &p.streams, w: w, control: http.NewResponseController(w),
		target: query.Get("target"), scenario: query.Get("scenario"),
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold events back
	s.pending.WriteString("retry: 3000\n: connected\n\n")
	s.run(ctx, p.opts.Live.Subscribe(ctx))
	_ = s.control.SetWriteDeadline(time.Time{}) // the connection may serve others
}

// stream is one client.
type stream struct {
	*streams
	w                http.ResponseWriter
	control          *http.ResponseController
	target, scenario string       // "" is any
	pending          bytes.Buffer // what is not written yet
}

// run writes events until the client or the server goes away.
func (s *stream) run(ctx context.Context, events <-chan live.Event) {
	heartbeat := time.NewTicker(s.heartbeat)
	defer heartbeat.Stop()
	for s.flush() == nil {
		select {
		case <-ctx.Done():
			return
		case <-heartbeat.C:
			s.pending.WriteString(": heartbeat\n\n")
		case e, ok := <-events:
			if !ok || !sleep(ctx, s.pause) {
				return
			}
			s.encode(e)
			for range len(events) {
				s.encode(<-events)
			}
		}
	}
}

// encode appends an event, if the client wants it.
func (s *stream) encode(e live.Event) {
	if e.Dropped > 0 {
		fmt.Fprintf(&s.pending, "event: dropped\ndata: {\"events\":%d}\n\n", e.Dropped)
	}
	if !s.wants(e) {
		return
	}
	if data, err := e.JSON(); err == nil {
		fmt.Fprintf(&s.pending, "event: %s\ndata: %s\n\n", e.Type, data)
	}
}

func (s *stream) wants(e live.Event) bool {
	var target, scenario string
	switch data := e.Data.(type) {
	case *live.ResultData:
		target, scenario = data.Target, data.Scenario
	case *live.StateData:
		target, scenario = data.Target, data.Scenario
	default:
		return true
	}
	return (s.target == "" || s.target == target) && (s.scenario == "" || s.scenario == scenario)
}

func (s *stream) flush() error {
	if s.pending.Len() == 0 {
		return nil
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.pending.WriteTo(s.w); err != nil {
		return err
	}
	return s.control.Flush()
}

// sleep reports whether ctx outlived it.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
