package stream

import (
	"bytes"

	"goodput_exporter/probe/arrival"
)

// NDJSON cuts a body into lines, each of them a JSON document. Empty lines are nothing.
type NDJSON struct {
	line []byte // the beginning of a line whose end has not come yet
	at   arrival.Stamp
}

// Feed implements Framer.
func (n *NDJSON) Feed(p []byte, at arrival.Stamp, emit func(Frame) error) error {
	n.at = at
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			break
		}
		line := p[:end]
		p = p[end+1:]
		if len(n.line) > 0 {
			if len(n.line)+len(line) > MaxFrame {
				return ErrTooLarge
			}
			line = append(n.line, line...)
			n.line = line[:0]
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := emit(Frame{Stamp: at, Data: line}); err != nil {
			return err
		}
	}
	if len(n.line)+len(p) > MaxFrame {
		return ErrTooLarge
	}
	n.line = append(n.line, p...)
	return nil
}

// Close implements Framer. A last line without its end is unterminated, but usual.
func (n *NDJSON) Close(emit func(Frame) error) error {
	line := bytes.TrimSpace(n.line)
	if len(line) == 0 {
		return nil
	}
	return emit(Frame{Stamp: n.at, Data: line, Unterminated: true})
}
