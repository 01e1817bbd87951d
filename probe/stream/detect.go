package stream

import "goodput_exporter/probe/arrival"

// Kind is what a body turned out to be, whatever its Content-Type says.
type Kind int

// The kinds of bodies.
const (
	Nothing Kind = iota // no byte that is not white space
	Events              // server-sent events
	JSON                // one JSON document
	HTML                // markup: a proxy's or a load balancer's page
)

// Detect is a Framer for the answer to a request for a stream. The first byte that is not white space tells what
// the body is: no stream of events begins with a brace, a bracket or markup. What is no stream becomes one frame.
type Detect struct {
	Kind  Kind
	sse   SSE
	whole Whole
}

// Feed implements Framer.
func (d *Detect) Feed(p []byte, at arrival.Stamp, emit func(Frame) error) error {
	if d.Kind == Nothing {
		p = trimLead(p)
		if len(p) == 0 {
			return nil
		}
		d.Kind = kindOf(p[0])
	}
	if d.Kind == Events {
		return d.sse.Feed(p, at, emit)
	}
	return d.whole.Feed(p, at, emit)
}

// Close implements Framer.
func (d *Detect) Close(emit func(Frame) error) error {
	if d.Kind == Events {
		return d.sse.Close(emit)
	}
	return d.whole.Close(emit)
}

// Comments returns how many comment lines the stream had so far.
func (d *Detect) Comments() int { return d.sse.Comments }

// trimLead drops white space and the bytes of a byte order mark from the beginning of a body.
func trimLead(p []byte) []byte {
	for len(p) > 0 {
		switch p[0] {
		case ' ', '\t', '\r', '\n', bom[0], bom[1], bom[2]:
			p = p[1:]
		default:
			return p
		}
	}
	return p
}

func kindOf(first byte) Kind {
	switch first {
	case '{', '[':
		return JSON
	case '<':
		return HTML
	}
	return Events
}
