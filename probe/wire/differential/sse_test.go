package differential

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmaxmax/go-sse"

	"goodput_exporter/probe/arrival"
	"goodput_exporter/probe/stream"
)

// event is one of the framing's.
type event struct{ Name, Data string }

// What go-sse reads, we read. It keeps to the standard, so what we read beyond that is not compared: an event that the
// body leaves unfinished, JSON without framing, and the field "error".
func TestFraming(t *testing.T) {
	for id, c := range wellFormed(t, "openai-chat", "openai-completions", "openai-responses", "anthropic-messages", "azure-openai", "tgi", "cohere", "gemini") {
		body := bodyOf(c)
		if first := bytes.TrimLeft(body, " \r\n"); len(first) > 0 && first[0] == '[' {
			continue // a JSON list
		}
		t.Run(id+" "+c.Title, func(t *testing.T) {
			var want, got []event
			for e, err := range sse.Read(bytes.NewReader(body), &sse.ReadConfig{MaxEventSize: stream.MaxFrame}) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Data != "" { // of empty data the standard makes no event
					want = append(want, event{e.Type, e.Data})
				}
			}
			emit := func(f stream.Frame) error {
				if !f.Unterminated && !f.Unframed && f.Event != "error" {
					got = append(got, event{f.Event, string(f.Data)})
				}
				return nil
			}
			framer := &stream.SSE{}
			if err := framer.Feed(body, arrival.Stamp{}, emit); err != nil {
				t.Fatal(err)
			}
			if err := framer.Close(emit); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-go-sse +ours):\n%s", diff)
			}
		})
	}
}
