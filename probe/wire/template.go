package wire

import (
	"bytes"
	"encoding/json"
)

// template recognises the frames that make up nearly all of a stream, without decoding them: those that equal one
// that was decoded before but for the text in one JSON string. That is exact, not a guess: the bytes before and
// after the text are the same, and the text itself can end nowhere else.
//
// Decoding every event costs several times what all the rest of a probe does.
type template struct {
	prefix, suffix []byte
	misses         int // frames in a row that were learned in vain
}

// maxMisses is how often in a row a template is learned anew before it is given up: some servers send frames that
// differ each time.
const maxMisses = 8

// match returns the text of a frame that fits the template.
func (t *template) match(data []byte) ([]byte, bool) {
	if len(t.prefix) == 0 || len(data) <= len(t.prefix)+len(t.suffix) ||
		!bytes.HasPrefix(data, t.prefix) || !bytes.HasSuffix(data, t.suffix) {
		return nil, false
	}
	text := data[len(t.prefix) : len(data)-len(t.suffix)]
	for _, c := range text {
		if c == '"' || c == '\\' || c < ' ' {
			return nil, false
		}
	}
	t.misses = 0
	return text, true
}

// learn makes a template of a decoded frame whose only matter is text, the value of key. The proof is in the
// test: the frame with another text must say the same with that text.
func (t *template) learn(data, text []byte, key string, decode func([]byte) (Event, error)) {
	if t.misses >= maxMisses {
		return
	}
	t.misses++
	literal, err := json.Marshal(string(text))
	if err != nil {
		return
	}
	for _, sep := range []string{":", ": "} {
		at := bytes.Index(data, append([]byte(`"`+key+`"`+sep), literal...))
		if at < 0 {
			continue
		}
		begin := at + len(key) + 2 + len(sep) + 1
		end := begin + len(literal) - 2
		prefix, suffix := bytes.Clone(data[:begin]), bytes.Clone(data[end:])
		const other = "another text"
		ev, err := decode(bytes.Join([][]byte{prefix, []byte(other), suffix}, nil))
		if err == nil && ev.plain() && string(ev.Text) == other {
			t.prefix, t.suffix = prefix, suffix
		}
		return
	}
}

// plain reports whether an event is visible text and nothing else.
func (e *Event) plain() bool {
	return e.Channels == Content && len(e.Text) > 0 && e.Finish == "" && !e.Done && !e.Answer && e.Usage == nil && e.Error == nil
}
