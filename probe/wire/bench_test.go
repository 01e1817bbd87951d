package wire

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"goodput_exporter/config"
	"goodput_exporter/probe/stream"
)

// chunks are one token event of each protocol as its servers send it, in length too.
var chunks = map[string]struct{ base, event, data string }{
	"openai-chat":        {data: openAIChunk},
	"azure-openai":       {data: strings.Replace(openAIChunk, `"logprobs":null`, `"logprobs":null,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"},"self_harm":{"filtered":false,"severity":"safe"},"sexual":{"filtered":false,"severity":"safe"},"violence":{"filtered":false,"severity":"safe"}}`, 1)},
	"openai-completions": {data: strings.Replace(openAIChunk, `"delta":{"content":" token"}`, `"text":" token"`, 1)},
	"openai-responses": {
		event: "response.output_text.delta",
		data:  `{"type":"response.output_text.delta","sequence_number":41,"item_id":"msg_68f0c2d1a2b48193a1b2c3d4e5f60718","output_index":0,"content_index":0,"delta":" token","logprobs":[],"obfuscation":"cZ8wq0aPq1"}`,
	},
	"anthropic-messages": {event: "content_block_delta", data: anthropicChunk},
	"anthropic-messages on Bedrock": {
		base: "http://llm/model/x", event: "chunk",
		data: `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(anthropicChunk)) + `","p":"abcdefghijklmnopqrstuvwxyzABCDEF"}`,
	},
	"gemini": {data: `{"candidates":[{"content":{"parts":[{"text":" token"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":31,"candidatesTokenCount":17,"totalTokenCount":120,"promptTokensDetails":[{"modality":"TEXT","tokenCount":31}],"thoughtsTokenCount":72},"modelVersion":"gemini-2.5-flash","responseId":"Zx2kafHuOZqKmtkP1Ne_8A0"}`},
	"ollama": {data: `{"model":"llama3.3:70b","created_at":"2026-11-29T15:00:00.123456789Z","message":{"role":"assistant","content":" token"},"done":false}`},
	"bedrock-converse": {
		event: "contentBlockDelta", data: `{"contentBlockIndex":0,"delta":{"text":" token"},"p":"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL"}`,
	},
	"tgi":    {data: `{"index":17,"token":{"id":6010,"text":" token","logprob":-0.31835938,"special":false},"generated_text":null,"details":null}`},
	"cohere": {event: "content-delta", data: `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":" token"}}}}`},
	"openai-embeddings": {data: `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[` +
		strings.Repeat("0.0123456,", 1023) + `-0.1]}],"model":"m","usage":{"prompt_tokens":4,"total_tokens":4}}`},
	"rerank": {data: `{"model":"m","results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.1}],"usage":{"total_tokens":12}}`},
}

const (
	openAIChunk    = `{"id":"chatcmpl-0a1b2c3d4e5f","object":"chat.completion.chunk","created":1767693600,"model":"meta-llama/Llama-3.3-70B-Instruct","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}`
	anthropicChunk = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}`
)

// decoderOf returns a decoder for a chunk, and the frame of it.
func decoderOf(tb testing.TB, name string) (Decoder, stream.Frame) {
	tb.Helper()
	c := chunks[name]
	protocol, _, _ := strings.Cut(name, " ")
	p := protocolFor(tb, protocol, c.base)
	tokenless := p.Traits().Tokenless
	return p.Decoder(Request{Stream: !tokenless, Messages: []config.Message{{Role: "user", Content: "hi"}}}), stream.Frame{Event: c.event, Data: []byte(c.data), Whole: tokenless}
}

// No decoder allocates for a token event: what it says is recognised, not decoded.
func TestTokenEventsDoNotAllocate(t *testing.T) {
	for name := range chunks {
		d, frame := decoderOf(t, name)
		if frame.Whole {
			continue
		}
		for range 2 { // the first one learns
			if ev, err := d.Decode(frame); err != nil || string(ev.Text) != " token" {
				t.Fatalf("%s: %+v, %v", name, ev, err)
			}
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = d.Decode(frame) }); n != 0 {
			t.Errorf("%s: %v allocations per event", name, n)
		}
	}
}

// BenchmarkDecode is the cost of one token event, or of one whole answer where there are none.
func BenchmarkDecode(b *testing.B) {
	for name := range chunks {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			d, frame := decoderOf(b, name)
			b.ReportAllocs()
			b.SetBytes(int64(len(frame.Data)))
			for b.Loop() {
				if ev, err := d.Decode(frame); err != nil || len(ev.Text) == 0 && !ev.Tokenless {
					b.Fatal(fmt.Sprint(ev, err))
				}
			}
		})
	}
}
