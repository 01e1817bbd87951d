package wire

import (
	"bytes"
	"slices"
	"time"

	"goodput_exporter/probe/stream"
)

// frameDecoder is the decoder of a protocol whose frames are JSON. What makes it the protocol's is decode; most frames of
// a stream never get that far.
type frameDecoder struct {
	tmpl     template
	decode   func(f stream.Frame) (Event, error)
	sentinel *Event // what a frame of "[DONE]" says; nil: it is none of the protocol

	streamed bool // a frame before this one brought generated matter
}

var doneData = []byte("[DONE]")

// Decode implements Decoder.
func (d *frameDecoder) Decode(f stream.Frame) (ev Event, err error) {
	if d.tmpl.match(&f, &ev) {
		d.streamed = true
		return ev, nil
	}
	if d.sentinel != nil && bytes.Equal(bytes.TrimSpace(f.Data), doneData) {
		return *d.sentinel, nil
	}
	ev, err = d.decode(f)
	if settled, ev, err := settle(f, ev, err); settled {
		return ev, err
	}
	d.streamed = d.streamed || ev.Channels != 0
	d.tmpl.learn(f, ev, d.decode)
	return ev, nil
}

// settle deals with what is the same for every protocol of JSON frames: errors that stand outside of the framing, and
// noise there. It reports whether the frame says nothing more than the event or the error that it returns.
func settle(f stream.Frame, ev Event, err error) (settled bool, _ Event, _ error) {
	switch {
	case f.Event == "error" && present(f.Data) && (err != nil || ev.Error == nil):
		return true, Event{Error: &Error{Message: clip(string(f.Data))}}, nil //nolint:nilerr // it is told as it stands
	case f.Unframed && err != nil:
		return true, Event{}, nil //nolint:nilerr // noise between events; the terminal signal decides
	case f.Unframed:
		return true, Event{Error: ev.Error}, nil
	}
	return err != nil, ev, err
}

// says reports whether an event is of an answer, and not of something else in JSON.
func (e *Event) says() bool { return e.Channels != 0 || e.Finish != "" }

// serverTimes lists the times that are known, in the order of ServerKinds.
func serverTimes(times map[ServerKind]time.Duration) []ServerTime {
	var list []ServerTime
	for kind, took := range times {
		if took > 0 {
			list = append(list, ServerTime{kind, took})
		}
	}
	slices.SortFunc(list, func(a, b ServerTime) int {
		return slices.Index(ServerKinds, a.Kind) - slices.Index(ServerKinds, b.Kind)
	})
	return list
}
