package journal

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
	"unicode/utf8"

	"goodput_exporter/probe"
)

// A line is one JSON object that begins
//
//	{"crc32c":"e3069283","series":"chat-eu/chat","time":"2026-11-29T18:00:00.123456789Z",
//
// and goes on as probe.Result.MarshalJSON writes it. The checksum is that of everything after it and its comma, without
// the end of the line.
const (
	lineStart   = `{"crc32c":"`
	sumDigits   = 8
	sumEnd      = `",`
	seriesStart = `"series":`
	timeStart   = `,"time":`
)

// maxLine is how long a line may be, in bytes.
const maxLine = 256 << 10

// maxText is how much of an answer's text and of an error is kept, in bytes. Escaped, both fit into maxLine.
const maxText = 16 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errNoLine   = errors.New("not a line of a journal")
	errChecksum = errors.New("wrong checksum")
)

// appendLine appends the line of an entry, with its end.
func appendLine(to []byte, e entry) ([]byte, error) {
	short := *e.result
	short.Text, short.Error = cut(short.Text), cut(short.Error)
	doc, err := short.MarshalJSON()
	if err != nil {
		return to, err
	}
	series, err := json.Marshal(e.key)
	if err != nil {
		return to, err
	}
	if size := len(lineStart) + len(seriesStart) + len(series) + len(doc); size > maxLine-64 {
		return to, fmt.Errorf("a result of %s is too long: %d bytes", e.key, size)
	}
	start := len(to)
	to = append(to, lineStart+"00000000"+sumEnd+seriesStart...)
	to = append(to, series...)
	to = append(to, ',')
	to = append(to, doc[1:]...)
	seal(to[start:])
	return append(to, '\n'), nil
}

// seal writes the checksum into a line without its end.
func seal(line []byte) {
	sum := checksum(line[len(lineStart)+sumDigits+len(sumEnd):])
	copy(line[len(lineStart):], sum[:])
}

// checksum is that of a text in hexadecimal digits.
func checksum(text []byte) (digits [sumDigits]byte) {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(text, castagnoli))
	hex.Encode(digits[:], sum[:])
	return digits
}

// parsed is a line whose checksum is right.
type parsed struct {
	key  string
	time time.Time // of the result
	rest scanner   // of the line, behind the time
}

// parse reads the head of a line without its end.
func parse(line []byte, n names) (parsed, error) {
	s := scanner{text: line, names: n}
	if !s.accept(lineStart) || len(line) < s.at+sumDigits {
		return parsed{}, errNoLine
	}
	sum := [sumDigits]byte(line[s.at:])
	s.at += sumDigits
	if !s.accept(sumEnd) {
		return parsed{}, errNoLine
	}
	if checksum(line[s.at:]) != sum {
		return parsed{}, errChecksum
	}
	s.expect(seriesStart)
	p := parsed{key: s.name()}
	s.expect(timeStart)
	stamp := s.bytes()
	if s.failed {
		return parsed{}, errNoLine
	}
	p.rest = s
	return p, p.time.UnmarshalText(stamp)
}

// entry reads the rest.
func (p parsed) entry() (entry, error) {
	if r, ok := scanResult(&p.rest, p.time); ok {
		return entry{p.key, r}, nil
	}
	r := new(probe.Result)
	if err := r.UnmarshalJSON(p.rest.text); err != nil {
		return entry{}, err
	}
	return entry{p.key, r}, nil
}

// cut shortens a text to maxText, between two characters.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
