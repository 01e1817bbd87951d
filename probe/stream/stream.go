// Package stream cuts stamped bytes into stamped frames: server-sent events, lines of JSON, a list of JSON, AWS' event
// stream, or a whole body.
package stream

import (
	"errors"

	"goodput_exporter/probe/arrival"
)

// Frame is one unit of a response: an event of a stream, or a whole body.
type Frame struct {
	Stamp        arrival.Stamp // of the read that held the end of the frame's last line
	Event        string        // the event's name; "" where it has none
	Data         []byte        // valid until the framer is fed again
	Unterminated bool          // the body ended before the frame did; Data may be cut
	Unframed     bool          // a line of JSON without framing, in the midst of a stream
	Whole        bool          // a whole body, not an event of a stream
	Failure      bool          // the framing itself says that this tells an error
}

// Framer cuts the bytes of one response into frames. It is fed what each read returned, as it was read.
type Framer interface {
	// Feed takes the bytes of one read and hands over every frame that they end. It returns the first error of
	// emit, or ErrTooLarge.
	Feed(p []byte, at arrival.Stamp, emit func(Frame) error) error
	// Close ends the body: a frame that the body left unfinished is handed over as such.
	Close(emit func(Frame) error) error
}

// MaxFrame is the largest frame that is taken, in bytes.
const MaxFrame = 8 << 20

// ErrTooLarge says that a frame is larger than MaxFrame.
var ErrTooLarge = errors.New("an event is larger than 8 MiB")

// Whole takes a whole body as one frame.
type Whole struct {
	body []byte
	last arrival.Stamp
}

// Feed implements Framer.
func (w *Whole) Feed(p []byte, at arrival.Stamp, _ func(Frame) error) error {
	if len(w.body)+len(p) > MaxFrame {
		return ErrTooLarge
	}
	w.body = append(w.body, p...)
	w.last = at
	return nil
}

// Close implements Framer. A body without bytes is no frame.
func (w *Whole) Close(emit func(Frame) error) error {
	if len(w.body) == 0 {
		return nil
	}
	return emit(Frame{Stamp: w.last, Data: w.body, Whole: true})
}
