package stream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/probe/arrival"
)

// cut is what a framer makes of a body: its frames, and the error that ended them.
type cut struct {
	Frames []Frame
	Err    string
}

func cutInto(f Framer, reads ...[]byte) cut {
	var c cut
	emit := func(f Frame) error {
		f.Data = append([]byte{}, f.Data...)
		c.Frames = append(c.Frames, f)
		return nil
	}
	for _, read := range reads {
		// A framer may keep nothing of the buffer it is fed.
		buffer := bytes.Clone(read)
		if err := f.Feed(buffer, arrival.Stamp{}, emit); err != nil {
			c.Err = err.Error()
			return c
		}
		clear(buffer)
	}
	if err := f.Close(emit); err != nil {
		c.Err = err.Error()
	}
	return c
}

// fuzzFramer checks that the frames are the same however a body is split into reads, and no more than the body.
func fuzzFramer(f *testing.F, newFramer func() Framer, seeds ...string) {
	f.Helper()
	for _, s := range seeds {
		f.Add([]byte(s), uint16(len(s)/3), uint16(2*len(s)/3))
	}
	f.Fuzz(func(t *testing.T, body []byte, i, j uint16) {
		at := []int{min(int(i), len(body)), min(int(j), len(body))}
		slices.Sort(at)
		want := cutInto(newFramer(), body)
		if diff := cmp.Diff(want, cutInto(newFramer(), body[:at[0]], body[at[0]:at[1]], body[at[1]:])); diff != "" {
			t.Errorf("split at %d: %s", at, diff)
		}
		size := 0
		for _, f := range want.Frames {
			size += len(f.Data)
		}
		if size > len(body) {
			t.Errorf("%d bytes of frames of a body of %d", size, len(body))
		}
	})
}

const (
	sseSeed   = "\xef\xbb\xbf: c\r\nevent: e\rdata: {\"x\":1}\n\n{\n\"e\":2}\nerror: x\n\ndata: a\ndata:b\r\n\r\ndata: [DONE]"
	lineSeed  = "{\"a\":1}\r\n\n{\"b\":2}\n{\"c"
	arraySeed = "[{\"a\":\"]\\\"}\"},\r\n{\"b\":[{}]}, 1, \"{\", {\"c\""
)

func FuzzSSE(f *testing.F)    { fuzzFramer(f, func() Framer { return &SSE{} }, sseSeed) }
func FuzzNDJSON(f *testing.F) { fuzzFramer(f, func() Framer { return &NDJSON{} }, lineSeed) }
func FuzzArray(f *testing.F)  { fuzzFramer(f, func() Framer { return &Array{} }, arraySeed) }

func FuzzDetect(f *testing.F) {
	for _, framing := range []Framing{FramingSSE, FramingNDJSON, FramingAWS} {
		for _, s := range []string{sseSeed, lineSeed, arraySeed, "\n <html>", "", "plain text"} {
			f.Add([]byte(s), uint16(len(s)/2), uint8(framing), true)
			f.Add([]byte(s), uint16(1), uint8(framing), false)
		}
		f.Add(awsMessage([]byte("\x0b:event-type\x07\x00\x01x"), []byte("{}")), uint16(9), uint8(framing), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, i uint16, framing uint8, streamed bool) {
		at := min(int(i), len(body))
		detect := func() *Detect { return &Detect{Framing: Framing(framing % 3), Streamed: streamed} }
		one, two := detect(), detect()
		if diff := cmp.Diff(cutInto(one, body), cutInto(two, body[:at], body[at:])); diff != "" {
			t.Errorf("split at %d: %s", at, diff)
		}
		if one.Kind != two.Kind || one.Comments() != two.Comments() {
			t.Errorf("split at %d: kind %v with %d comments, and %v with %d", at, one.Kind, one.Comments(), two.Kind, two.Comments())
		}
	})
}

// FuzzAWS writes messages whose checksums are right, whatever is in them, and then spoils one bit: no message may
// come out that is not one of those written.
func FuzzAWS(f *testing.F) {
	f.Add([]byte("\x0b:event-type\x07\x00\x01x"), []byte(`{"x":1}`), uint16(5), uint16(30), false)
	f.Add([]byte("\x0d:message-type\x07\x00\x09exception\x0f:exception-type\x07\x00\x01y"), []byte("{}"), uint16(70), uint16(3), true)
	f.Fuzz(func(t *testing.T, headers, payload []byte, i, bit uint16, spoil bool) {
		message := awsMessage(headers, payload)
		body := slices.Concat(message, message)
		clean := cutInto(&AWS{}, body)
		at := int(i) % len(body)
		if spoil {
			body[at] ^= 1 << (bit % 8)
		}
		want := cutInto(&AWS{}, body)
		if diff := cmp.Diff(want, cutInto(&AWS{}, body[:at], body[at:])); diff != "" {
			t.Errorf("split at %d: %s", at, diff)
		}
		for _, f := range want.Frames {
			if !slices.ContainsFunc(clean.Frames, func(c Frame) bool { return cmp.Equal(c, f) }) {
				t.Errorf("a message came out that nobody wrote: %+v", f)
			}
		}
		if spoil && want.Err == "" && len(want.Frames) == 2 {
			t.Errorf("a spoilt bit at %d was not noticed", at)
		}
	})
}

// awsMessage writes a message around headers and payload as they are.
func awsMessage(headers, payload []byte) []byte {
	m := slices.Concat(lengths(prelude+len(headers)+len(payload)+4, len(headers)), headers, payload)
	return binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
}

// lengths is the beginning of a message: its length, that of its headers, and their checksum.
func lengths(total, headers int) []byte {
	m := binary.BigEndian.AppendUint32(nil, uint32(total))
	m = binary.BigEndian.AppendUint32(m, uint32(headers))
	return binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
}

func TestAWS(t *testing.T) {
	event := awsMessage([]byte("\x0d:message-type\x07\x00\x05event\x0b:event-type\x07\x00\x01x"), []byte("{}"))
	spoilt := func(at int) []byte {
		m := bytes.Clone(event)
		m[at] ^= 1
		return m
	}
	for name, tc := range map[string]struct {
		body []byte
		want []Frame
		err  error
	}{
		"two messages":       {slices.Concat(event, event), []Frame{{Event: "x", Data: []byte("{}")}, {Event: "x", Data: []byte("{}")}}, nil},
		"an exception":       {awsMessage([]byte("\x0d:message-type\x07\x00\x09exception\x0f:exception-type\x07\x00\x01y"), []byte("{}")), []Frame{{Event: "y", Data: []byte("{}"), Failure: true}}, nil},
		"a length is wrong":  {spoilt(2)[:prelude], nil, ErrCRC}, // told at once, not when so many bytes will have come
		"a header is wrong":  {spoilt(20), nil, ErrCRC},
		"the end is wrong":   {spoilt(len(event) - 1), nil, ErrCRC},
		"the end is missing": {event[:len(event)-1], nil, nil},
		"too large":          {lengths(MaxFrame+1, 0), nil, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Frame
			emit := func(f Frame) error {
				f.Data = bytes.Clone(f.Data)
				got = append(got, f)
				return nil
			}
			a := &AWS{}
			err := a.Feed(tc.body, arrival.Stamp{}, emit)
			if !errors.Is(err, tc.err) || err != nil && tc.err == nil {
				t.Errorf("got the error %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
