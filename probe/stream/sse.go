package stream

import (
	"bytes"
	"encoding/json"

	"goodput_exporter/probe/arrival"
)

// SSE cuts a body of server-sent events, as the WHATWG standard has them and as servers send them: lines end with
// LF, CRLF or CR, also mixed and split between reads; one byte order mark may lead; comments are counted. Beyond
// the standard, a field "error" and a bare line of JSON, which it would ignore, are handed over, since servers
// tell errors so; and an event that the body leaves unfinished is handed over as unterminated instead of dropped.
type SSE struct {
	Comments int // comment lines so far

	known    bool   // there was a line that belongs into a stream
	line     []byte // the beginning of a line whose end has not come yet
	started  bool   // the first line is over, and with it the place for a byte order mark
	skipLF   bool   // the last line ended with CR: an LF that follows belongs to it
	event    []byte
	has      bool   // the current event has a data line
	data     []byte // the data lines of the current event, joined by LF
	ours     bool   // data lies in owned, not in the buffer of the read
	owned    []byte
	loose    []byte        // the beginning of JSON without framing, over several lines
	lastLine arrival.Stamp // of the end of the current event's last field line
	lastByte arrival.Stamp // of the last bytes kept in line
}

var bom = []byte("\xef\xbb\xbf")

// Feed implements Framer.
func (s *SSE) Feed(p []byte, at arrival.Stamp, emit func(Frame) error) error {
	if s.skipLF && len(p) > 0 {
		s.skipLF = false
		if p[0] == '\n' {
			p = p[1:]
		}
	}
	for len(p) > 0 {
		end, next := lineEnd(p)
		if end < 0 {
			return s.keepRest(p, at)
		}
		line := p[:end]
		if p[end] == '\r' && next == len(p) && p[next-1] == '\r' {
			s.skipLF = true
		}
		p = p[next:]
		if len(s.line) > 0 {
			if len(s.line)+len(line) > MaxFrame {
				return ErrTooLarge
			}
			s.line = append(s.line, line...)
			line = s.line
			s.line = s.line[:0]
		}
		if err := s.takeLine(line, at, emit); err != nil {
			return err
		}
	}
	s.own()
	return nil
}

// lineEnd returns where the first line of p ends and where the next one begins, or -1 where it does not end.
func lineEnd(p []byte) (end, next int) {
	if p[0] == '\n' { // every other line of most streams
		return 0, 1
	}
	lf := bytes.IndexByte(p, '\n')
	head := p
	if lf >= 0 {
		head = p[:lf]
	}
	cr := bytes.IndexByte(head, '\r')
	switch {
	case cr >= 0 && cr+1 == lf:
		return cr, lf + 1
	case cr >= 0:
		return cr, cr + 1
	case lf >= 0:
		return lf, lf + 1
	}
	return -1, 0
}

// keepRest keeps the beginning of a line for the next read.
func (s *SSE) keepRest(p []byte, at arrival.Stamp) error {
	if len(s.line)+len(p)+len(s.data) > MaxFrame {
		return ErrTooLarge
	}
	s.own() // before the append: the data may lie in line
	s.line = append(s.line, p...)
	s.lastByte = at
	return nil
}

// own copies the data of an unfinished event out of the buffer of the read.
func (s *SSE) own() {
	if !s.ours {
		s.owned = append(s.owned[:0], s.data...)
		s.data, s.ours = s.owned, true
	}
}

func (s *SSE) takeLine(line []byte, at arrival.Stamp, emit func(Frame) error) error {
	if !s.started {
		s.started = true
		line = bytes.TrimPrefix(line, bom)
	}
	if len(line) == 0 {
		return s.dispatch(false, emit)
	}
	if line[0] == ':' {
		s.known = true
		s.Comments++
		return nil
	}
	name, value := field(line)
	if line[0] == '{' || len(s.loose) > 0 && string(name) != "data" {
		return s.takeLoose(line, at, emit)
	}
	s.lastLine = at
	switch string(name) {
	case "data":
		s.known = true
		return s.addData(value)
	case "event":
		s.known = true
		s.event = append(s.event[:0], value...)
	case "id", "retry":
		s.known = true
	case "error":
		s.known = true
		return emit(Frame{Stamp: at, Event: "error", Data: value})
	}
	return nil
}

// maxLoose is the most JSON without framing that is looked at, in bytes. Errors are told so, and they are short.
const maxLoose = 64 << 10

// takeLoose takes a line of JSON without framing, and hands the JSON over when it is complete.
func (s *SSE) takeLoose(line []byte, at arrival.Stamp, emit func(Frame) error) error {
	if len(s.loose)+len(line) > maxLoose {
		s.loose = s.loose[:0]
		return nil
	}
	s.loose = append(append(s.loose, line...), '\n')
	if !json.Valid(s.loose) {
		return nil
	}
	s.known = true
	f := Frame{Stamp: at, Data: s.loose[:len(s.loose)-1], Unframed: true}
	s.loose = s.loose[:0]
	return emit(f)
}

// field splits a line at its first colon; one space after the colon is no part of the value.
func field(line []byte) (name, value []byte) {
	if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok { // nearly every line
		return line[:4], bytes.TrimPrefix(rest, []byte(" "))
	}
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(value, []byte(" "))
}

// addData adds one data line to the current event. The only line of an event stays where it is; further ones are
// joined in storage of our own.
func (s *SSE) addData(value []byte) error {
	if !s.has {
		s.has, s.ours, s.data = true, false, value
		return nil
	}
	if len(s.data)+1+len(value) > MaxFrame {
		return ErrTooLarge
	}
	s.own()
	s.owned = append(append(s.owned, '\n'), value...)
	s.data = s.owned
	return nil
}

func (s *SSE) dispatch(unterminated bool, emit func(Frame) error) error {
	f := Frame{Stamp: s.lastLine, Event: string(s.event), Data: s.data, Unterminated: unterminated}
	has := s.has && len(s.data) > 0
	s.loose = s.loose[:0]
	s.event, s.data, s.has, s.ours = s.event[:0], nil, false, true
	if !has {
		return nil
	}
	return emit(f)
}

// Close implements Framer.
func (s *SSE) Close(emit func(Frame) error) error {
	if len(s.line) > 0 {
		line := s.line
		s.line = nil
		if err := s.takeLine(line, s.lastByte, emit); err != nil {
			return err
		}
	}
	return s.dispatch(true, emit)
}
