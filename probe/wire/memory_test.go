package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
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
	d, f, ev := newOpenAIDecoder(openAIContent, &memory), frame("second"), Event{}
	if !d.tmpl.match(&f, &ev) || string(ev.Text) != "moss" {
		t.Errorf("got %q: the next answer is learned anew", ev.Text)
	}
}

// answers are frames in the order in which servers of the OpenAI family send them. Those of one name differ in what
// differs from answer to answer.
func answers(n int) map[string][]stream.Frame {
	frames := func(format ...string) []stream.Frame {
		var list []stream.Frame
		for _, f := range format {
			head := fmt.Sprintf(`{"id":"id-%d","created":%d,`, n, 1700000000+n)
			list = append(list, stream.Frame{Data: []byte(head + strings.ReplaceAll(f, "#", strconv.Itoa(n)) + "}")})
		}
		return list
	}
	whole := func(format string) []stream.Frame {
		list := frames(format)
		list[0].Whole = true
		return list
	}
	const (
		role    = `"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]`
		text    = `"choices":[{"index":0,"delta":{"content":"moss #"},"finish_reason":null}]`
		stop    = `"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`
		other   = `"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]`
		length  = `"choices":[{"index":0,"delta":{},"finish_reason":"length"}]`
		usage   = `"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":1#,"total_tokens":2#,"prompt_tokens_details":{"cached_tokens":#}}`
		message = `"choices":[{"index":0,"message":{"content":"fern #"},"finish_reason":"stop"}]`
	)
	return map[string][]stream.Frame{
		"a stream":                 frames(role, text, text, stop, usage),
		"the token limit":          frames(role, text, length, usage),
		"a finish twice":           frames(text, stop, stop, usage),
		"two choices":              frames(text, stop, other, usage),
		"the other choice first":   frames(text, other, stop, usage),
		"no text":                  frames(role, stop, usage),
		"usage before the finish":  frames(text, usage, stop),
		"usage beside the finish":  frames(text, stop+`,"usage":{"prompt_tokens":8,"completion_tokens":1#}`),
		"usage of one choice":      frames(text, stop, other+`,"usage":{"prompt_tokens":8,"completion_tokens":1#}`),
		"a server's time":          frames(text, stop, `"choices":[],"usage":{"prompt_tokens":8,"queue_time":0.#}`),
		"a fraction of a token":    frames(text, stop, `"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":#.5}`),
		"the message at the end":   frames(text, message),
		"the message alone":        frames(message),
		"a whole answer":           whole(message + `,"usage":{"prompt_tokens":8,"completion_tokens":1#}`),
		"a whole one with escapes": whole(`"choices":[{"index":0,"message":{"content":"a\n<b>\u00e9 \ud800 #"},"finish_reason":"stop"}]`),
		"a whole one without text": whole(`"choices":[{"index":0,"message":{"content":null},"finish_reason":"stop"}]`),
		"a whole one of two":       whole(`"choices":[{"index":1,"message":{"content":"a #"},"finish_reason":"length"},{"index":0,"message":{"content":"b"},"finish_reason":"stop"}]`),
		"a whole call":             whole(`"choices":[{"index":0,"message":{"content":"a #","tool_calls":[{"id":"t#","function":{"name":"f"}}]},"finish_reason":"tool_calls"}]`),
		"a whole error":            whole(`"error":{"message":"broken #"}`),
		"an error at the end":      frames(text, `"choices":[],"message":"broken #"`),
		"nothing at the end":       frames(text, stop, `"choices":[],"message":""`),
	}
}

// Whatever answers came before, an answer says the same as to a decoder that knows nothing.
func TestMemoryOfAnswersEqualsDecoding(t *testing.T) {
	for before, earlier := range answers(1) {
		for name, frames := range answers(7) {
			var memory Memory
			for range 2 {
				tell(t, openAIChat{}.Decoder(Request{Memory: &memory}), earlier)
			}
			got := tell(t, openAIChat{}.Decoder(Request{Memory: &memory}), frames)
			want := tell(t, openAIChat{}.Decoder(Request{}), frames)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(decoded{})); diff != "" {
				t.Errorf("%s after %s: %s", name, before, diff)
			}
		}
	}
}

func tell(t *testing.T, d Decoder, frames []stream.Frame) decoded {
	t.Helper()
	var all decoded
	for _, f := range frames {
		if err := all.add(d.Decode(f)); err != nil {
			t.Fatalf("%s: %v", f.Data, err)
		}
	}
	return all
}

// What comes once in an answer is decoded in the first answers of a series only.
func TestRareFramesAreRecognised(t *testing.T) {
	for _, name := range []string{"a stream", "the token limit", "usage before the finish", "a whole answer", "a whole one with escapes", "a whole one without text"} {
		var memory Memory
		for n := range 3 {
			d := newOpenAIDecoder(openAIContent, &memory)
			decodes, decode := 0, d.decode
			d.decode = func(f stream.Frame) (Event, error) {
				vain := memory.learned()
				ev, err := decode(f)
				if memory.learned() > vain {
					decodes++
				}
				return ev, err
			}
			tell(t, d, answers(n)[name])
			if n == 0 && decodes == 0 || n > 0 && decodes > 0 {
				t.Errorf("%s: %d frames of answer %d were learned", name, decodes, n)
			}
		}
	}
}

// learned returns how many frames were learned and not recognised yet.
func (m *Memory) learned() (n int32) {
	for i := range m.rare {
		n += m.rare[i].vain.Load()
	}
	return n
}

// A server whose rare frames differ each time is not learned for ever.
func TestRareFramesAreGivenUp(t *testing.T) {
	var memory Memory
	for n := range 2 * maxMisses {
		frame := fmt.Sprintf(`{"choices":[{"index":0,"message":{"content":"a","reasoning_content":"thought %d"},"finish_reason":"stop"}]}`, n)
		tell(t, openAIChat{}.Decoder(Request{Memory: &memory}), []stream.Frame{{Data: []byte(frame), Whole: true}})
	}
	if n := memory.learned(); n != maxMisses {
		t.Errorf("learned %d times, want %d", n, maxMisses)
	}
}

// The body of a request is the same whether the requests before it left their form or not.
func TestMemoryOfBodies(t *testing.T) {
	var memory Memory
	for _, r := range []Request{
		{Model: "m", Stream: true, MaxTokens: 5},
		{Model: "m", Stream: true, MaxTokens: 5},
		{Model: "m", Stream: true, MaxTokens: 6},
		{Model: "m", Stream: true, MaxTokens: 5, OutputTokens: 6},
		{Model: "m", Stream: true},
	} {
		for i, text := range []string{"hi", `<b> & "\u0000"`, "\x00"} {
			r.Messages = []config.Message{{Role: "user", Content: text}}
			for _, extra := range []map[string]any{nil, {"messages": "mine"}} {
				r.Extra = extra
				fields := openAIFields(r)
				fields["messages"] = r.Messages
				maps.Copy(fields, extra)
				want, err := json.Marshal(fields)
				if err != nil {
					t.Fatal(err)
				}
				if extra == nil { // it is the same for all requests of a series
					r.Memory = &memory
				} else {
					r.Memory = &Memory{}
				}
				got, err := openAIChat{}.Request(r, http.Header{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("request %d: %s", i, diff)
				}
			}
		}
	}
}
