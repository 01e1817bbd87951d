package wire

import (
	"bytes"
	"slices"
	"strconv"

	"goodput_exporter/probe/stream"
)

// learn makes a template of a decoded frame that is visible text, and usage where the shape has counts, and nothing
// else.
func (t *template) learn(f stream.Frame, ev Event, decode func(stream.Frame) (Event, error)) {
	if t.misses >= maxMisses || !ev.plain() {
		return
	}
	t.misses++
	if t.prove(f, ev, decode) && t.memory != nil {
		t.memory.pattern.Store(t.pattern)
	}
}

// prove makes the pattern of a decoded frame, and reports whether it does; else the pattern stays what it is. The proof:
// the same frame with other values in all slots means those values, by decoding and by the template.
func (t *template) prove(f stream.Frame, ev Event, decode func(stream.Frame) (Event, error)) bool {
	parts, tail, ok := t.shape.cut(f.Data, ev.Text)
	if !ok {
		return false
	}
	const otherText, otherNumber = "another text", 70
	var other []byte
	for i, p := range parts {
		other = append(other, p.fixed...)
		switch p.slot {
		case slotNone:
		case slotText, slotString:
			other = append(other, otherText...)
		case slotNumber, slotCount:
			other = strconv.AppendInt(other, int64(otherNumber+i), 10)
		}
	}
	other = append(other, tail...)
	f.Data = other
	want, err := decode(f)
	if err != nil {
		return false
	}
	before := t.pattern
	ev.Text, ev.Usage = nil, nil
	counted := slices.ContainsFunc(parts, func(p part) bool { return p.slot == slotCount })
	t.use(&pattern{parts: parts, tail: bytes.Clone(tail), event: ev, text: textPart(parts), counted: counted})
	var got Event
	if !t.fit(other, &got) || !want.equal(&got) {
		t.use(before)
		return false
	}
	return true
}

// textPart returns the place of the text's part, 0 where there is none, or a count stands before it.
func textPart(parts []part) int {
	i := slices.IndexFunc(parts, func(p part) bool { return p.slot == slotText || p.slot == slotCount })
	if i < 0 || parts[i].slot == slotCount {
		return 0
	}
	return i
}

// equal reports whether two events that are no errors, and tell no server's times, say the same.
func (e *Event) equal(o *Event) bool {
	return e.simple() && o.simple() && bytes.Equal(e.Text, o.Text) && e.Usage.equal(o.Usage) &&
		e.Channels == o.Channels && e.Finish == o.Finish && e.Limited == o.Limited && e.Filtered == o.Filtered &&
		e.Refused == o.Refused && e.Done == o.Done && e.Answer == o.Answer && e.Tokenless == o.Tokenless
}

// simple reports whether an event tells neither an error nor a server's times.
func (e *Event) simple() bool { return e.Error == nil && len(e.Server) == 0 }

// equal reports whether two reports tell the same counts.
func (u *Usage) equal(v *Usage) bool {
	if u == nil || v == nil {
		return u == v
	}
	same := func(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return same(u.Input, v.Input) && same(u.Output, v.Output) && same(u.CachedInput, v.CachedInput) && same(u.Reasoning, v.Reasoning)
}

// plain reports whether an event is visible text, with or without usage, and nothing else.
func (e *Event) plain() bool {
	return e.Channels == Content && len(e.Text) > 0 && e.Finish == "" && !e.Done && !e.Answer && e.simple()
}

// cut cuts a JSON document at the values that may differ. False: the text, where there is any, is not one of them.
func (s *shape) cut(data, text []byte) (parts []part, tail []byte, ok bool) {
	ok = len(text) == 0
	from := 0
	add := func(kind slot, begin, end, count int) {
		parts = append(parts, part{bytes.Clone(data[from:begin]), kind, count})
		from = end
	}
	for at := 0; at < len(data); {
		key, value, next := nextKey(data, at)
		if key == nil {
			break
		}
		at = next
		n := valueLength(data[value:])
		isString := n > 0 && data[value] == '"'
		isNumber := n > 0 && isNumeric(data[value])
		count := slices.Index(s.counts, string(key))
		switch {
		case !ok && isString && string(key) == s.text && bytes.Equal(unquote(data[value:value+n]), text):
			add(slotNone, value+1, value+1, 0) // apart from the text's part, so that one can begin there
			add(slotText, value+1, value+n-1, 0)
			ok = true
		case isString && slices.Contains(s.skips, string(key)):
			add(slotString, value+1, value+n-1, 0)
		case isNumber && slices.Contains(s.skips, string(key)):
			add(slotNumber, value, value+n, 0)
		case isNumber && count >= 0:
			add(slotCount, value, value+n, count)
		case !isString:
			continue // look inside objects and lists
		}
		at = value + n
	}
	return parts, data[from:], ok
}

// nextKey returns the first key at or after at, where its value begins, and where to look for the next key. A nil key:
// there is none. data must be valid JSON.
func nextKey(data []byte, at int) (key []byte, value, next int) {
	for at < len(data) {
		open := bytes.IndexByte(data[at:], '"')
		if open < 0 {
			return nil, 0, 0
		}
		begin := at + open
		end := begin + stringLength(data[begin:])
		at = end
		for at < len(data) && (data[at] == ' ' || data[at] == '\t' || data[at] == '\n' || data[at] == '\r') {
			at++
		}
		if at >= len(data) || data[at] != ':' {
			continue // a string that is a value
		}
		at++
		for at < len(data) && (data[at] == ' ' || data[at] == '\t' || data[at] == '\n' || data[at] == '\r') {
			at++
		}
		return data[begin+1 : end-1], at, at
	}
	return nil, 0, 0
}

// stringLength returns the length of the JSON string at the beginning of data, quotes included.
func stringLength(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// valueLength returns the length of the string or number at the beginning of data, 0 where it is something else.
func valueLength(data []byte) int {
	switch {
	case len(data) == 0:
		return 0
	case data[0] == '"':
		return stringLength(data)
	}
	n := 0
	for n < len(data) && isNumeric(data[n]) {
		n++
	}
	return n
}
