package wire

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/probe/stream"
)

// A decoder that knows what an earlier one learned says the same as one that knows nothing.
func TestMemoryEqualsDecoding(t *testing.T) {
	chunk := func(id, content string) string {
		return fmt.Sprintf(`{"id":%q,"created":17,"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, id, content)
	}
	var memory Memory
	earlier := openAIChat{}.Decoder(Request{Memory: &memory})
	if _, err := earlier.Decode(stream.Frame{Data: []byte(chunk("first", "moss"))}); err != nil {
		t.Fatal(err)
	}
	if memory.pattern.Load() == nil {
		t.Fatal("nothing was learned")
	}
	for name, frames := range map[string][]stream.Frame{
		"the next stream":   {{Data: []byte(chunk("second", "fern"))}, {Data: []byte(chunk("second", "a\nb"))}},
		"another stream":    {{Data: []byte(`{"choices":[{"delta":{"role":"assistant","content":""}}]}`)}, {Data: []byte(chunk("third", "kelp"))}},
		"a whole body":      {{Data: []byte(chunk("fourth", "fern")), Whole: true}},
		"a bare line":       {{Data: []byte(chunk("fifth", "fern")), Unframed: true}},
		"a named event":     {{Data: []byte(chunk("sixth", "fern")), Event: "error"}},
		"the whole message": {{Data: []byte(chunk("seventh", "fern"))}, {Data: []byte(`{"choices":[{"message":{"content":"fern"},"finish_reason":"stop"}]}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			knows, fresh := openAIChat{}.Decoder(Request{Memory: &memory}), openAIChat{}.Decoder(Request{})
			for _, f := range frames {
				got, gotErr := knows.Decode(f)
				want, wantErr := fresh.Decode(f)
				if (gotErr == nil) != (wantErr == nil) {
					t.Fatalf("%s: error %v, want %v", f.Data, gotErr, wantErr)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s", f.Data, diff)
				}
			}
		})
	}
}

func TestMemoryIsUsed(t *testing.T) {
	var memory Memory
	frame := func(id string) stream.Frame {
		return stream.Frame{Data: fmt.Appendf(nil, `{"id":%q,"created":17,"choices":[{"index":0,"delta":{"content":"moss"}}]}`, id)}
	}
	if _, err := (openAIChat{}).Decoder(Request{Memory: &memory}).Decode(frame("first")); err != nil {
		t.Fatal(err)
	}
	d := newOpenAIDecoder("content", &memory)
	if ev, ok := d.tmpl.match(frame("second")); !ok || string(ev.Text) != "moss" {
		t.Errorf("got %q, %v: the next answer is learned anew", ev.Text, ok)
	}
}
