package stream

import "goodput_exporter/probe/arrival"

// Array cuts one JSON list, sent bit by bit, into its elements: Gemini's stream where server-sent events were not
// asked for, or a proxy dropped the question.
type Array struct {
	element  []byte // the current element, as far as it came
	depth    int    // of objects and lists inside the element; 0: between elements
	inString bool
	escaped  bool
	opened   bool // the list's own bracket came
	at       arrival.Stamp
}

// Feed implements Framer.
func (a *Array) Feed(p []byte, at arrival.Stamp, emit func(Frame) error) error {
	for _, c := range p {
		if !a.opened {
			a.opened = c == '['
			continue
		}
		if a.depth == 0 && c != '{' && c != '[' {
			continue // commas, white space, the end of the list
		}
		if len(a.element) == MaxFrame {
			return ErrTooLarge
		}
		a.element = append(a.element, c)
		a.at = at
		if a.step(c); a.depth > 0 {
			continue
		}
		if err := emit(Frame{Stamp: at, Data: a.element}); err != nil {
			return err
		}
		a.element = a.element[:0]
	}
	return nil
}

// step follows strings and nesting over one byte of an element.
func (a *Array) step(c byte) {
	switch {
	case a.escaped:
		a.escaped = false
	case a.inString && c == '\\':
		a.escaped = true
	case c == '"':
		a.inString = !a.inString
	case a.inString:
	case c == '{' || c == '[':
		a.depth++
	case c == '}' || c == ']':
		a.depth--
	}
}

// Close implements Framer. A cut element is handed over as unterminated.
func (a *Array) Close(emit func(Frame) error) error {
	if len(a.element) == 0 {
		return nil
	}
	return emit(Frame{Stamp: a.at, Data: a.element, Unterminated: true})
}
