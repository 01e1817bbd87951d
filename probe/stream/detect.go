package stream

import "goodput_exporter/probe/arrival"

// Framing is how a protocol frames the events of a stream.
type Framing int

// The framings.
const (
	FramingSSE Framing = iota
	FramingNDJSON
	FramingAWS
)

// Kind is what a body turned out to be, whatever its Content-Type says.
type Kind int

// The kinds of bodies.
const (
	Nothing Kind = iota // no byte that is not white space
	Events              // a stream
	JSON                // one JSON document
	HTML                // markup: a proxy's or a load balancer's page
	Unknown             // none of these, as far as the end of the body told: plain text
)

// Detect is a Framer for the answer to any request. The first byte that is not white space tells what the body is:
// no stream of server-sent events begins with a brace, a bracket or markup. What is no stream becomes one frame.
type Detect struct {
	Framing  Framing // of the protocol's streams
	Streamed bool    // a stream was asked for
	Kind     Kind

	framer Framer
}

// Feed implements Framer.
func (d *Detect) Feed(p []byte, at arrival.Stamp, emit func(Frame) error) error {
	if d.framer == nil {
		p = trimLead(p)
		if len(p) == 0 {
			return nil
		}
		d.Kind, d.framer = d.detect(p[0])
	}
	return d.framer.Feed(p, at, emit)
}

// detect returns what a body is that begins with this byte, and what cuts it.
func (d *Detect) detect(first byte) (Kind, Framer) {
	switch {
	case first == '<':
		return HTML, &Whole{}
	case first == '{' && d.Streamed && d.Framing == FramingNDJSON:
		return Events, &NDJSON{}
	case first == '[' && d.Streamed:
		return Events, &Array{}
	case first == '{' || first == '[':
		return JSON, &Whole{}
	case d.Framing == FramingAWS && (first < ' ' || first > '~'): // the first byte of a length; text is a proxy's
		return Events, &AWS{}
	}
	return Events, &SSE{}
}

// Close implements Framer.
func (d *Detect) Close(emit func(Frame) error) error {
	if d.framer == nil {
		return nil
	}
	err := d.framer.Close(emit)
	if s, ok := d.framer.(*SSE); ok && !s.known {
		d.Kind = Unknown
	}
	return err
}

// Comments returns how many comment lines the stream had so far.
func (d *Detect) Comments() int {
	if s, ok := d.framer.(*SSE); ok {
		return s.Comments
	}
	return 0
}

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
