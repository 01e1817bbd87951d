package journal

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON as this package writes it: without blanks and nulls. At the first thing that it does not expect it
// fails, and whatever it returns from then on means nothing: the text is one for encoding/json.
type scanner struct {
	text   []byte
	at     int // how much of it is read: an index, since a pointer that moves costs a write barrier at each step
	failed bool
	names  names
}

// names holds the strings that come with every result, so that all share one copy. It may be nil.
type names map[string]string

func (n names) of(text []byte) string {
	name, ok := n[string(text)]
	if !ok {
		name = string(text)
		if n != nil {
			n[name] = name
		}
	}
	return name
}

// accept reads a text, if it is next.
func (s *scanner) accept(text string) bool {
	if rest := s.text[s.at:]; len(rest) < len(text) || string(rest[:len(text)]) != text {
		return false
	}
	s.at += len(text)
	return true
}

func (s *scanner) expect(text string) {
	if !s.accept(text) {
		s.failed = true
	}
}

// acceptByte is accept for one byte, which most are.
func (s *scanner) acceptByte(c byte) bool {
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) expectByte(c byte) {
	if !s.acceptByte(c) {
		s.failed = true
	}
}

// object calls member for every member of an object, to read its value.
func (s *scanner) object(member func(key []byte)) {
	s.expectByte('{')
	if !s.acceptByte('}') {
		s.members(member)
	}
}

// members reads an object from the first key on.
func (s *scanner) members(member func(key []byte)) {
	for !s.failed {
		key := s.bytes()
		s.expectByte(':')
		member(key)
		if s.acceptByte('}') {
			return
		}
		s.expectByte(',')
	}
}

// list reads strings.
func (s *scanner) list() []string {
	list := []string{}
	s.expectByte('[')
	for end := s.acceptByte(']'); !end && !s.failed; {
		list = append(list, s.string())
		if end = s.acceptByte(']'); !end {
			s.expectByte(',')
		}
	}
	return list
}

func (s *scanner) string() string { return string(s.bytes()) }

// name reads a string that is likely to come again.
func (s *scanner) name() string { return s.names.of(s.bytes()) }

// bytes reads a string.
func (s *scanner) bytes() []byte {
	if !s.acceptByte('"') {
		s.failed = true
		return nil
	}
	rest := s.text[s.at:]
	for i, c := range rest {
		if c == '"' {
			s.at += i + 1
			return rest[:i]
		}
		if c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	return s.unusual()
}

// unusual reads a string that may not stand for itself, behind its first quote.
func (s *scanner) unusual() []byte {
	rest := s.text[s.at:]
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			text, ok := unescape(rest[:i])
			s.failed = s.failed || !ok
			s.at += i + 1
			return text
		}
	}
	s.failed = true
	return nil
}

// unescape returns what the text between the quotes of a string stands for, and false where it stands for nothing, or
// holds what encoding/json does not write: halves of a character beyond 16 bits.
func unescape(quoted []byte) ([]byte, bool) {
	const escapes, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if !utf8.Valid(quoted) {
		return nil, false
	}
	text := make([]byte, 0, len(quoted))
	for i := 0; i < len(quoted); i++ {
		c := quoted[i]
		if c < ' ' {
			return nil, false
		}
		if c != '\\' {
			text = append(text, c)
			continue
		}
		i++ // it never is the last byte: it would have escaped the quote
		if at := strings.IndexByte(escapes, quoted[i]); at >= 0 {
			text = append(text, meanings[at])
			continue
		}
		if quoted[i] != 'u' || len(quoted) < i+5 {
			return nil, false
		}
		r, err := strconv.ParseUint(string(quoted[i+1:i+5]), 16, 16)
		if err != nil || utf16.IsSurrogate(rune(r)) {
			return nil, false
		}
		text = utf8.AppendRune(text, rune(r))
		i += 4
	}
	return text, true
}

func (s *scanner) bool() bool {
	if s.accept("true") {
		return true
	}
	s.expect("false")
	return false
}

func (s *scanner) int() int {
	n, err := strconv.Atoi(string(s.number()))
	if err != nil {
		s.failed = true
	}
	return n
}

// duration reads seconds, to the nanosecond as probe.Result.UnmarshalJSON does.
func (s *scanner) duration() time.Duration {
	const most = 1e6 // beyond, a float64 is not that exact
	v, err := strconv.ParseFloat(string(s.number()), 64)
	if err != nil || math.Abs(v) > most {
		s.failed = true
		return 0
	}
	return time.Duration(math.Round(v * 1e9))
}

// number reads the text of a number.
func (s *scanner) number() []byte {
	begin := s.at
	s.acceptByte('-')
	if !s.acceptByte('0') {
		s.digits()
	}
	if s.acceptByte('.') {
		s.digits()
	}
	if s.acceptByte('e') || s.acceptByte('E') {
		_ = s.acceptByte('-') || s.acceptByte('+')
		s.digits()
	}
	return s.text[begin:s.at]
}

// digits reads one digit at least.
func (s *scanner) digits() {
	begin := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	s.failed = s.failed || s.at == begin
}
