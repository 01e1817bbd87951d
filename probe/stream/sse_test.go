package stream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/probe/arrival"
)

// frame is a Frame as a test writes it down.
type frame struct {
	At           int // index of the read whose stamp it carries
	Event        string
	Data         string
	Unterminated bool
	Unframed     bool
}

var start = time.Now()

// frames feeds reads to a framer, the i-th one stamped i seconds after start.
func frames(t *testing.T, f Framer, reads ...string) []frame {
	t.Helper()
	var got []frame
	emit := func(f Frame) error {
		got = append(got, frame{
			At: int(f.Stamp.At.Sub(start).Seconds()), Event: f.Event, Data: string(f.Data),
			Unterminated: f.Unterminated, Unframed: f.Unframed,
		})
		return nil
	}
	for i, r := range reads {
		// A framer may keep nothing of the buffer it is fed: it is overwritten by the next read.
		p := []byte(r)
		if err := f.Feed(p, arrival.Stamp{At: start.Add(time.Duration(i) * time.Second)}, emit); err != nil {
			t.Fatal(err)
		}
		for j := range p {
			p[j] = '#'
		}
	}
	if err := f.Close(emit); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSSE(t *testing.T) {
	for name, tc := range map[string]struct {
		reads []string
		want  []frame
	}{
		"line feeds":                    {[]string{"data: a\n\ndata: b\n\n"}, []frame{{Data: "a"}, {Data: "b"}}},
		"carriage returns":              {[]string{"data: a\r\rdata: b\r\r"}, []frame{{Data: "a"}, {Data: "b"}}},
		"both":                          {[]string{"data: a\r\n\r\ndata: b\r\n\r\n"}, []frame{{Data: "a"}, {Data: "b"}}},
		"mixed":                         {[]string{"data: a\r\n\ndata: b\n\r\ndata: c\r\n\r"}, []frame{{Data: "a"}, {Data: "b"}, {Data: "c"}}},
		"CRLF split between reads":      {[]string{"data: a\r", "\n\r", "\ndata: b\n\n"}, []frame{{Data: "a"}, {Data: "b", At: 2}}},
		"a byte order mark":             {[]string{"\xef\xbb", "\xbfdata: a\n\n"}, []frame{{Data: "a", At: 1}}},
		"no space after the colon":      {[]string{"data:a\n\n"}, []frame{{Data: "a"}}},
		"one space only is dropped":     {[]string{"data:  a\n\n"}, []frame{{Data: " a"}}},
		"several data lines":            {[]string{"data: a\ndata: b\n", "data: c\n\n"}, []frame{{Data: "a\nb\nc", At: 1}}},
		"comments and other fields":     {[]string{": hi\nid: 7\nretry: 3\nfoo\ndata: a\n\n:\n\n"}, []frame{{Data: "a"}}},
		"an event's name":               {[]string{"event: ping\ndata: {}\n\ndata: a\n\n"}, []frame{{Event: "ping", Data: "{}"}, {Data: "a"}}},
		"empty data is no event":        {[]string{"data:\n\ndata\n\nevent: x\n\n"}, nil},
		"an empty line of data counts":  {[]string{"data:\ndata: a\n\n"}, []frame{{Data: "\na"}}},
		"stamped by the last line":      {[]string{"data: a\n", "\n"}, []frame{{Data: "a"}}},
		"stamped by the line's end":     {[]string{"data: a", "\n", "\n"}, []frame{{Data: "a", At: 1}}},
		"stamped by the last field":     {[]string{"data: a\n", "id: 7\n", "\n"}, []frame{{Data: "a", At: 1}}},
		"JSON without framing, printed": {[]string{"data: a\n\n{\n \"error\":\n", "1}\n"}, []frame{{Data: "a"}, {At: 1, Data: "{\n \"error\":\n1}", Unframed: true}}},
		"no JSON for all its looks":     {[]string{"{x\ny: z\ndata: a\n\n{\n\ndata: b\n\n"}, []frame{{Data: "a"}, {Data: "b"}}},
		"a comment does not move it":    {[]string{"data: a\n:", " pi", "ng\n\n"}, []frame{{Data: "a"}}},
		"unterminated after its line":   {[]string{"data: a\n"}, []frame{{Data: "a", Unterminated: true}}},
		"unterminated inside its line":  {[]string{"data: a", "b"}, []frame{{Data: "ab", At: 1, Unterminated: true}}},
		"an error field":                {[]string{"error: {\"x\":1}\n\n"}, []frame{{Event: "error", Data: `{"x":1}`}}},
		"JSON without framing":          {[]string{"data: a\n\n{\"error\":1}\n"}, []frame{{Data: "a"}, {Data: `{"error":1}`, Unframed: true}}},
		"a long line over many reads":   {[]string{"data: " + strings.Repeat("x", 5000), strings.Repeat("y", 5000), "\n\n"}, []frame{{Data: strings.Repeat("x", 5000) + strings.Repeat("y", 5000), At: 2}}},
		"joined lines over many reads":  {[]string{"data: a\nda", "ta: b\nd", "ata: c\n\n"}, []frame{{Data: "a\nb\nc", At: 2}}},
		"what follows does not clobber": {[]string{"data: 1", "2\ndata: 34567", "8\n\n"}, []frame{{Data: "12\n345678", At: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, frames(t, &SSE{}, tc.reads...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// However the bytes are split into reads, the frames are the same.
func TestSSESplitAnywhere(t *testing.T) {
	body := "\xef\xbb\xbf: c\r\nevent: e\ndata: one\r\rdata: t\ndata:wo\n\r\n{\"x\":1}\n\ndata: three"
	whole := frames(t, &SSE{}, body)
	if len(whole) != 4 {
		t.Fatalf("%d frames", len(whole))
	}
	ignoreAt := cmp.Transformer("ignoreAt", func(f frame) string {
		return fmt.Sprint(f.Event, "|", f.Data, "|", f.Unterminated, f.Unframed)
	})
	for i := range body {
		for j := i; j < len(body); j++ {
			got := frames(t, &SSE{}, body[:i], body[i:j], body[j:])
			if diff := cmp.Diff(whole, got, ignoreAt); diff != "" {
				t.Fatalf("split at %d and %d: %s", i, j, diff)
			}
		}
	}
}

func TestTooLarge(t *testing.T) {
	chunk := []byte(strings.Repeat("x", 1<<20))
	none := func(Frame) error { return nil }
	for name, tc := range map[string]struct {
		framer Framer
		head   string
	}{
		"one line":   {&SSE{}, "data: "},
		"many lines": {&SSE{}, "\ndata: "},
		"whole body": {&Whole{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			for i := 0; i < 10 && err == nil; i++ {
				if i == 0 || tc.head[:min(1, len(tc.head))] == "\n" {
					err = tc.framer.Feed([]byte(tc.head), arrival.Stamp{}, none)
				}
				if err == nil {
					err = tc.framer.Feed(chunk, arrival.Stamp{}, none)
				}
			}
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("got %v after 10 MiB", err)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	for name, tc := range map[string]struct {
		reads   []string
		kind    Kind
		want    []frame
		framing Framing
		whole   bool
	}{
		"events":               {reads: []string{"\n\n", "data: a\n\n"}, kind: Events, want: []frame{{Data: "a", At: 1}}},
		"a comment":            {reads: []string{": hello\n\n"}, kind: Events, want: nil},
		"JSON":                 {reads: []string{" \n", "{\"a\":", "1}\n"}, kind: JSON, want: []frame{{Data: "{\"a\":1}\n", At: 2}}},
		"JSON behind a mark":   {reads: []string{"\xef\xbb\xbf{}"}, kind: JSON, want: []frame{{Data: "{}"}}},
		"a list, not streamed": {reads: []string{"[1]"}, kind: JSON, want: []frame{{Data: "[1]"}}, whole: true},
		"a list, streamed":     {reads: []string{"[{\"a\":\"]\\\"}\"}", ",\r\n{\"b\":[{}]", "}]"}, kind: Events, want: []frame{{Data: `{"a":"]\"}"}`}, {Data: `{"b":[{}]}`, At: 2}}},
		"a cut list":           {reads: []string{"[{\"a\":1},{\"b"}, kind: Events, want: []frame{{Data: `{"a":1}`}, {Data: `{"b`, Unterminated: true}}},
		"lines":                {reads: []string{"{\"a\":1}\n{\"b\"", ":2}\r\n\n{}"}, framing: FramingNDJSON, kind: Events, want: []frame{{Data: `{"a":1}`}, {Data: `{"b":2}`, At: 1}, {Data: "{}", At: 1, Unterminated: true}}},
		"a page":               {reads: []string{"<html>"}, kind: HTML, want: []frame{{Data: "<html>"}}},
		"nothing":              {reads: []string{}, kind: Nothing, want: nil},
		"nothing but newlines": {reads: []string{"\r\n", "\n"}, kind: Nothing, want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Detect{Framing: tc.framing, Streamed: !tc.whole}
			if diff := cmp.Diff(tc.want, frames(t, d, tc.reads...)); diff != "" {
				t.Error(diff)
			}
			if d.Kind != tc.kind {
				t.Errorf("kind %v, want %v", d.Kind, tc.kind)
			}
		})
	}
}
