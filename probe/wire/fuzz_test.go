package wire

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe/arrival"
	"goodput_exporter/probe/probetest"
	"goodput_exporter/probe/stream"
)

func FuzzAnthropicMessages(f *testing.F) { fuzzBodies(f, "anthropic-messages", "http://llm") }
func FuzzAzureOpenAI(f *testing.F)       { fuzzBodies(f, "azure-openai", "http://llm") }
func FuzzCohere(f *testing.F)            { fuzzBodies(f, "cohere", "http://llm") }
func FuzzGemini(f *testing.F)            { fuzzBodies(f, "gemini", "http://llm") }
func FuzzOllama(f *testing.F)            { fuzzBodies(f, "ollama", "http://llm") }
func FuzzOllamaGenerate(f *testing.F)    { fuzzBodies(f, "ollama", "http://llm/api/generate") }
func FuzzOpenAIChat(f *testing.F)        { fuzzBodies(f, "openai-chat", "http://llm") }
func FuzzOpenAICompletions(f *testing.F) { fuzzBodies(f, "openai-completions", "http://llm") }
func FuzzOpenAIEmbeddings(f *testing.F)  { fuzzBodies(f, "openai-embeddings", "http://llm") }
func FuzzOpenAIResponses(f *testing.F)   { fuzzBodies(f, "openai-responses", "http://llm") }
func FuzzRerank(f *testing.F)            { fuzzBodies(f, "rerank", "http://llm") }
func FuzzTGI(f *testing.F)               { fuzzBodies(f, "tgi", "http://llm") }

// Of AWS' event stream the messages are mutated, not the bytes: no mutation would get past the checksums.
func FuzzBedrockConverse(f *testing.F) { fuzzMessages(f, "bedrock-converse", "http://llm") }

func FuzzBedrockInvoke(f *testing.F) { fuzzMessages(f, "anthropic-messages", "http://llm/model/x") }

// caseFiles have bodies to begin with.
var caseFiles = []string{
	"../probetest/testdata/cases.yaml", "../probetest/testdata/more_cases.yaml", "../probetest/testdata/protocol_cases.yaml",
}

// eachBody hands over the bodies of the cases of a protocol, and whether they answer a streaming request.
func eachBody(f *testing.F, protocol string, add func(body []byte, streamed bool)) {
	f.Helper()
	for _, file := range caseFiles {
		cases, err := probetest.LoadCases(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range cases {
			var body []byte
			for _, step := range c.Connections[0].Requests[0].Script {
				body = append(body, step.Write...)
			}
			const most = 8 << 10 // the fuzzer is slow on long ones
			if c.Protocol == protocol && len(body) <= most {
				add(body, c.Stream)
			}
		}
	}
}

// fuzzBodies checks that a body means the same however it is split, whether templates take part or not.
func fuzzBodies(f *testing.F, name, base string) {
	f.Helper()
	p := protocolFor(f, name, base)
	eachBody(f, name, func(body []byte, streamed bool) { f.Add(body, uint16(len(body)/2), streamed) })
	f.Fuzz(func(t *testing.T, body []byte, at uint16, streamed bool) {
		streamed = streamed && !p.Traits().Tokenless
		split := min(int(at), len(body))
		cut := func(d Decoder, pieces ...[]byte) decoded {
			return readEvents(d, &stream.Detect{Framing: p.Traits().Framing, Streamed: streamed}, pieces...)
		}
		check(t, p, streamed, body, func(d Decoder) decoded { return cut(d, body) },
			func(d Decoder) decoded { return cut(d, body[:split], body[split:]) })
	})
}

// fuzzMessages does the same for the messages of AWS' event stream, one a line.
func fuzzMessages(f *testing.F, name, base string) {
	f.Helper()
	p := protocolFor(f, name, base)
	f.Add([]byte(anthropicStream))
	eachBody(f, name, func(body []byte, _ bool) {
		var text []byte
		_ = (&stream.AWS{}).Feed(body, arrival.Stamp{}, func(m stream.Frame) error {
			text = append(append(append(append(text, m.Event...), ": "...), m.Data...), '\n')
			return nil
		})
		f.Add(text)
	})
	f.Fuzz(func(t *testing.T, text []byte) {
		messages := lines(string(text))
		body := text
		if name == "anthropic-messages" {
			messages = chunked(messages)
		}
		read := func(d Decoder) decoded {
			var got decoded
			for _, m := range messages {
				if got.add(d.Decode(m)) != nil {
					break
				}
			}
			return got
		}
		check(t, p, true, body, read, read)
	})
}

// decoded is what a body turned out to say.
type decoded struct {
	events []Event
	err    string
}

// add adds what one frame says, and returns the error that ends the answer.
func (d *decoded) add(ev Event, err error) error {
	switch {
	case errors.Is(err, ErrCut), errors.Is(err, ErrMalformed), errors.Is(err, ErrCheck):
		d.err = err.Error()
		return err
	case err != nil:
		panic("an error of no kind: " + err.Error())
	}
	ev.Text = bytes.Clone(ev.Text)
	if ev.Usage != nil {
		u := *ev.Usage
		for _, n := range []**int{&u.Input, &u.Output, &u.CachedInput, &u.Reasoning} {
			if *n != nil {
				c := **n
				*n = &c
			}
		}
		ev.Usage = &u
	}
	d.events = append(d.events, ev)
	return nil
}

func readEvents(d Decoder, framer stream.Framer, pieces ...[]byte) decoded {
	var got decoded
	emit := func(m stream.Frame) error { return got.add(d.Decode(m)) }
	for _, piece := range pieces {
		// A framer may keep nothing of the buffer it is fed.
		buffer := bytes.Clone(piece)
		if err := framer.Feed(buffer, arrival.Stamp{}, emit); err != nil {
			return got
		}
		clear(buffer)
	}
	_ = framer.Close(emit)
	return got
}

// check compares ways to read the same body, and the events with the body.
func check(t *testing.T, p Protocol, streamed bool, body []byte, whole, split func(Decoder) decoded) {
	t.Helper()
	var memory Memory
	request := Request{Stream: streamed, Messages: []config.Message{{Role: "user", Content: "hi"}}}
	plain := p.Decoder(request)
	forget(plain)
	want := whole(plain)
	request.Memory = &memory
	for how, got := range map[string]decoded{
		"with templates":        whole(p.Decoder(request)),
		"with those remembered": whole(p.Decoder(request)),
		"split":                 split(p.Decoder(request)),
	} {
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(decoded{})); diff != "" {
			t.Fatalf("%s:\n%s", how, diff)
		}
	}
	text := 0
	for _, ev := range want.events {
		text += len(ev.Text)
		if !invented(ev.Finish, body) {
			continue
		}
		t.Fatalf("the finish %q is nowhere in the body", ev.Finish)
	}
	if most := 3 * len(body); text > most { // a byte that is no UTF-8 becomes three
		t.Fatalf("%d bytes of text of a body of %d", text, len(body))
	}
}

// invented reports whether a finish is nowhere in the body. A body with escapes may have it in another form.
func invented(finish string, body []byte) bool {
	return finish != "" && !bytes.Contains(body, []byte(finish)) && !bytes.ContainsAny(body, `\`) &&
		!strings.Contains(finish, "\uFFFD") && finish != "completed"
}

// forget makes a decoder decode every frame.
func forget(d Decoder) {
	var templates []*template
	switch d := d.(type) {
	case *anthropicChunkDecoder:
		templates = []*template{&d.events.tmpl, &d.cover}
	case *converseDecoder:
		templates = []*template{&d.tmpl}
	case *frameDecoder:
		templates = []*template{&d.tmpl}
	case embeddingsDecoder, rerankDecoder:
	default:
		panic("a decoder that this test does not know")
	}
	for _, t := range templates {
		t.misses = maxMisses
	}
}

// A decoder that was made to forget decodes: else the fuzz targets would compare templates with themselves.
func TestForgetKnowsAllDecoders(t *testing.T) {
	for _, name := range Names() {
		d := protocolFor(t, name, "http://llm").Decoder(Request{})
		forget(d)
		if slices.Contains([]string{"openai-embeddings", "rerank"}, name) {
			continue
		}
		frame := stream.Frame{Event: chunks[name].event, Data: []byte(chunks[name].data)}
		if n := testing.AllocsPerRun(10, func() { _, _ = d.Decode(frame) }); n == 0 {
			t.Errorf("%s: a template took part", name)
		}
	}
}

func protocolFor(tb testing.TB, name, base string) Protocol {
	tb.Helper()
	u, err := url.Parse(base)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := New(name, u)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
