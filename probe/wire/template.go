package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
	"sync/atomic"
	"unicode/utf8"

	"goodput_exporter/probe/stream"
)

// template recognises the frames that make up nearly all of a stream, without decoding them: those that equal one
// that was decoded before, but for a few values whose meaning is known. That is exact, not a guess: every byte that
// could mean something else is compared, and a template is proved by decoding before it is used.
//
// Decoding every event costs several times what all the rest of a probe does.
type template struct {
	shape   *shape
	memory  *Memory  // shared with the decoders of other answers; may be nil
	pattern *pattern // nil: none was learned yet
	counts  []int    // values of the slots of kind count, by their place in shape.counts; -1: not in the frame
	misses  int      // frames in a row that were learned in vain
	usage   Usage    // of the frame that fitted last
}

// pattern is what the frames of one template have in common. It is never changed.
type pattern struct {
	parts []part
	tail  []byte // after the last slot
}

// Memory is what the decoder of one answer leaves to those of later answers of the same series, so that each need not
// learn anew. Its zero value is empty; it is safe for concurrent use.
type Memory struct{ pattern atomic.Pointer[pattern] }

// shape says which values may differ between the frames of one template.
type shape struct {
	text   string   // key of the visible text
	skips  []string // keys of values that say nothing: ids, times, indices, padding
	counts []string // keys of numbers that the usage is made of

	// usage makes the usage of the counts, -1 where the frame has none. False: they are none.
	usage func(counts []int, u *Usage) bool
}

// part is a run of fixed bytes and the slot behind it.
type part struct {
	fixed []byte
	slot  slot
	count int // of slotCount: place in shape.counts
}

type slot int

const (
	slotText   slot = iota // a string without escapes: the text
	slotString             // a string without escapes, skipped
	slotNumber             // a number, skipped
	slotCount              // a number of tokens
)

// maxMisses is how often in a row a template is learned anew before it is given up: some servers send frames that
// differ each time.
const maxMisses = 8

// match returns what a frame says that fits the template.
func (t *template) match(f stream.Frame) (Event, bool) {
	if f.Whole || f.Unframed || f.Failure || f.Event == "error" {
		return Event{}, false
	}
	text, ok := t.fit(f.Data)
	if !ok {
		return Event{}, false
	}
	t.misses = 0
	return Event{Channels: Content, Text: text, Usage: t.told()}, true
}

// told returns the usage of the frame that fitted last, nil where it carries none.
func (t *template) told() *Usage {
	if t.shape.usage == nil || !t.shape.usage(t.counts, &t.usage) {
		return nil
	}
	return &t.usage
}

// fit returns the text of a document that fits the pattern. The counts are then those of the document.
func (t *template) fit(data []byte) (text []byte, ok bool) {
	if t.pattern == nil && !t.recall() {
		return nil, false
	}
	for i := range t.pattern.parts {
		p := &t.pattern.parts[i]
		if !bytes.HasPrefix(data, p.fixed) {
			return nil, false
		}
		data = data[len(p.fixed):]
		n := p.slot.length(data)
		if n < 0 {
			return nil, false
		}
		switch p.slot {
		case slotText:
			text = data[:n]
		case slotCount:
			v, err := strconv.Atoi(string(data[:n]))
			if err != nil || v < 0 {
				return nil, false
			}
			t.counts[p.count] = v
		case slotString, slotNumber:
		}
		data = data[n:]
	}
	// Decoding would replace what is no UTF-8.
	return text, bytes.Equal(data, t.pattern.tail) && len(text) > 0 && utf8.Valid(text)
}

// length returns the length of the value at the beginning of data, without its quotes, or -1 where it is none that
// the slot takes.
func (s slot) length(data []byte) int {
	if s == slotNumber || s == slotCount {
		return numberLength(data)
	}
	end := bytes.IndexByte(data, '"')
	if end < 0 {
		return -1
	}
	if special(data[:end]) {
		return -1
	}
	return end
}

// special reports whether a string has an escape, or a control character, which JSON does not allow in it. It looks at
// eight bytes at a time: strings are most of what a stream has.
func special(s []byte) bool {
	if bytes.IndexByte(s, '\\') >= 0 {
		return true
	}
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; len(s) >= 8; s = s[8:] {
		eight := binary.LittleEndian.Uint64(s)
		if (eight-' '*ones)&^eight&tops != 0 { // some byte is less than a space
			return true
		}
	}
	for _, c := range s {
		if c < ' ' {
			return true
		}
	}
	return false
}

// numberLength returns the length of the number at the beginning of data, -1 where it is none of JSON's.
func numberLength(data []byte) int {
	n := 0
	if bytes.HasPrefix(data, []byte("-")) {
		n++
	}
	whole := digits(data[n:])
	if whole == 0 || whole > 1 && data[n] == '0' {
		return -1
	}
	n += whole
	if n < len(data) && data[n] == '.' {
		fraction := digits(data[n+1:])
		if fraction == 0 {
			return -1
		}
		n += 1 + fraction
	}
	if n < len(data) && data[n]|0x20 == 'e' {
		if n++; n < len(data) && (data[n] == '+' || data[n] == '-') {
			n++
		}
		exponent := digits(data[n:])
		if exponent == 0 {
			return -1
		}
		n += exponent
	}
	return n
}

// digits returns how many digits data begins with.
func digits(data []byte) int {
	for i, c := range data {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(data)
}

func isNumeric(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// learn makes a template of a decoded frame that is visible text, and usage where the shape has counts, and nothing
// else. The proof: the same frame with other values in all slots means those values, by decoding and by the template.
func (t *template) learn(f stream.Frame, ev Event, decode func(stream.Frame) (Event, error)) {
	if t.misses >= maxMisses || !ev.plain() {
		return
	}
	t.misses++
	parts, tail, ok := t.shape.cut(f.Data, ev.Text)
	if !ok {
		return
	}
	const otherText, otherNumber = "another text", 70
	var other []byte
	for i, p := range parts {
		other = append(other, p.fixed...)
		if p.slot == slotText || p.slot == slotString {
			other = append(other, otherText...)
		} else {
			other = strconv.AppendInt(other, int64(otherNumber+i), 10)
		}
	}
	other = append(other, tail...)
	f.Data = other
	want, err := decode(f)
	if err != nil || !want.plain() || string(want.Text) != otherText {
		return
	}
	before := t.pattern
	t.use(&pattern{parts, bytes.Clone(tail)})
	if text, ok := t.fit(other); !ok || string(text) != otherText || !t.told().equal(want.Usage) {
		t.use(before)
		return
	}
	if t.memory != nil {
		t.memory.pattern.Store(t.pattern)
	}
}

// equal reports whether two reports tell the same counts.
func (u *Usage) equal(v *Usage) bool {
	if u == nil || v == nil {
		return u == v
	}
	same := func(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return same(u.Input, v.Input) && same(u.Output, v.Output) && same(u.CachedInput, v.CachedInput) && same(u.Reasoning, v.Reasoning)
}

// recall takes what the decoder of an earlier answer learned, if there is any.
func (t *template) recall() bool {
	if t.memory == nil {
		return false
	}
	p := t.memory.pattern.Load()
	if p == nil {
		return false
	}
	t.use(p)
	return true
}

func (t *template) use(p *pattern) {
	t.pattern = p
	t.counts = slices.Repeat([]int{-1}, len(t.shape.counts))
}

// plain reports whether an event is visible text, with or without usage, and nothing else.
func (e *Event) plain() bool {
	return e.Channels == Content && len(e.Text) > 0 && e.Finish == "" && !e.Done && !e.Answer && e.Error == nil && len(e.Server) == 0
}

// cut cuts a JSON document at the values that may differ. False: the text is not in it as it stands.
func (s *shape) cut(data, text []byte) (parts []part, tail []byte, ok bool) {
	literal, err := json.Marshal(string(text))
	if err != nil {
		return nil, nil, false
	}
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
		case !ok && string(key) == s.text && bytes.Equal(data[value:value+n], literal):
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
