package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
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
	memory  *Memory        // shared with the decoders of other answers; may be nil
	pattern *pattern       // nil: none was learned yet
	counts  [maxCounts]int // values of the slots of kind count, by their place in shape.counts; -1: not in the frame
	misses  int            // frames in a row that were learned in vain
	usage   Usage          // of the frame that fitted last
	lead    []byte         // all before the text of the frame that fitted last; empty: not known
}

// pattern is what the frames of one template have in common. It is never changed.
type pattern struct {
	parts []part
	tail  []byte // after the last slot
	event Event  // what each of its frames says, but for its text and its usage
	text  int    // place of the text's part; 0: there is none, or a count stands before it

	counted bool // it has counts
}

// Memory is what the decoder of one answer leaves to those of later answers of the same series, so that each need not
// learn anew. Its zero value is empty; it is safe for concurrent use.
type Memory struct {
	pattern atomic.Pointer[pattern]
	rare    [rareKinds]rareMemory
	bodies  atomic.Pointer[bodyForm]
}

// shape says which values may differ between the frames of one template.
type shape struct {
	text   string   // key of the visible text
	skips  []string // keys of values that say nothing: ids, times, indices, padding
	counts []string // keys of numbers that the usage is made of; maxCounts at most

	// usage makes the usage of the counts, -1 where the frame has none. False: they are none.
	usage func(counts []int, u *Usage) bool
}

// maxCounts is the number of counts in a [Usage].
const maxCounts = 4

// part is a run of fixed bytes and the slot behind it.
type part struct {
	fixed []byte
	slot  slot
	count int // of slotCount: place in shape.counts
}

type slot int

const (
	slotNone   slot = iota // nothing
	slotText               // a string: the text
	slotString             // a string without escapes, skipped
	slotNumber             // a number, skipped
	slotCount              // a number of tokens
)

// maxMisses is how often in a row a template is learned anew before it is given up: some servers send frames that
// differ each time.
const maxMisses = 8

// match reports whether a frame fits the template, and writes what it says into ev. Both are large, and this is called
// for nearly every frame, hence the pointers.
func (t *template) match(f *stream.Frame, ev *Event) bool {
	if f.Whole || f.Unframed || f.Failure || f.Event == "error" {
		return false
	}
	if t.pattern == nil && !t.recall() || !t.fit(f.Data, ev) {
		return false
	}
	t.misses = 0
	return true
}

// fit reports whether a document fits the pattern, and writes what it says into ev.
func (t *template) fit(data []byte, ev *Event) bool {
	text, ok := t.values(data)
	if !ok {
		return false
	}
	*ev = t.pattern.event
	ev.Text = text
	if t.pattern.counted && t.shape.usage(t.counts[:], &t.usage) {
		ev.Usage = &t.usage
	}
	return true
}

// values returns the text of a document that fits the pattern. The counts are then those of the document.
func (t *template) values(data []byte) (text []byte, ok bool) {
	at, first := 0, 0
	if len(t.lead) > 0 && bytes.HasPrefix(data, t.lead) { // ids and times are mostly those of the frame before
		at, first = len(t.lead), t.pattern.text
	}
	for i := first; i < len(t.pattern.parts); i++ {
		p := &t.pattern.parts[i]
		if !bytes.HasPrefix(data[at:], p.fixed) {
			return nil, false
		}
		at += len(p.fixed)
		n := 0
		switch p.slot {
		case slotNone:
		case slotText:
			if text, n = textAt(data, at); len(text) == 0 {
				return nil, false
			}
			if first == 0 && t.pattern.text > 0 {
				t.lead = append(t.lead[:0], data[:at]...)
			}
		default:
			if n = p.slot.length(data[at:]); n < 0 {
				return nil, false
			}
		}
		if p.slot == slotCount {
			v, err := strconv.Atoi(string(data[at : at+n]))
			if err != nil || v < 0 {
				return nil, false
			}
			t.counts[p.count] = v
		}
		at += n
	}
	return text, bytes.Equal(data[at:], t.pattern.tail)
}

// textAt returns the text of the JSON string that begins at a place in data, behind its quote, and how long it is there. A
// nil text: there is none.
func textAt(data []byte, at int) (text []byte, n int) {
	n = slotText.length(data[at:])
	if n >= 0 && utf8.Valid(data[at:at+n]) { // decoding would replace what is no UTF-8
		return data[at : at+n], n
	}
	literal := data[at-1:]
	literal = literal[:stringLength(literal)]
	return unquote(literal), len(literal) - len(`""`)
}

// unquote decodes a JSON string, nil where it is none.
func unquote(literal []byte) []byte {
	var s string
	if json.Unmarshal(literal, &s) != nil {
		return nil
	}
	return []byte(s)
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
	t.pattern, t.lead = p, t.lead[:0]
	t.counts = [maxCounts]int{-1, -1, -1, -1}
}
