package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe/stream"
)

func ptr[T any](v T) *T { return &v }

func TestOpenAIChatEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		data string
		want Event
	}{
		"content":                {`{"choices":[{"delta":{"content":"moss"}}]}`, Event{Channels: Content, Text: []byte("moss")}},
		"a role is no token":     {`{"choices":[{"delta":{"role":"assistant","content":""}}]}`, Event{}},
		"null is no token":       {`{"choices":[{"delta":{"role":"assistant","content":null}}]}`, Event{}},
		"no delta":               {`{"choices":[{"content_filter_offsets":{}}]}`, Event{}},
		"no choices":             {`{"choices":[],"prompt_filter_results":[]}`, Event{}},
		"an empty finish":        {`{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}`, Event{Channels: Content, Text: []byte("a")}},
		"a finish":               {`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, Event{Finish: "stop"}},
		"the token limit":        {`{"choices":[{"delta":{},"finish_reason":"length"}]}`, Event{Finish: "length", Limited: true}},
		"a filter":               {`{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`, Event{Finish: "content_filter", Filtered: true}},
		"an unknown finish":      {`{"choices":[{"delta":{},"finish_reason":"eos"}]}`, Event{Finish: "eos"}},
		"finish beside content":  {`{"choices":[{"delta":{"content":"z"},"finish_reason":"stop"}]}`, Event{Channels: Content, Text: []byte("z"), Finish: "stop"}},
		"reasoning":              {`{"choices":[{"delta":{"reasoning":"hm"}}]}`, Event{Channels: Reasoning}},
		"reasoning, older":       {`{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}`, Event{Channels: Reasoning}},
		"empty reasoning":        {`{"choices":[{"delta":{"reasoning_content":""}}]}`, Event{}},
		"refusal":                {`{"choices":[{"delta":{"refusal":"no"}}]}`, Event{Channels: Refusal}},
		"a tool's name":          {`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"look","arguments":""}}]}}]}`, Event{Channels: Tool}},
		"a tool's arguments":     {`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]}}]}`, Event{Channels: Tool}},
		"a tool call's id alone": {`{"choices":[{"delta":{"tool_calls":[{"id":"t1","function":{"arguments":""}}]}}]}`, Event{}},
		"a function's name":      {`{"choices":[{"delta":{"function_call":{"name":"look"}}}]}`, Event{Channels: Tool}},
		"parts":                  {`{"choices":[{"delta":{"content":[{"type":"text","text":"fi"},{"type":"text","text":"g"}]}}]}`, Event{Channels: Content, Text: []byte("fig")}},
		"thinking parts":         {`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m"}]}]}}]}`, Event{Channels: Reasoning}},
		"unknown parts":          {`{"choices":[{"delta":{"content":[{"type":"reference","reference_ids":[1]}]}}]}`, Event{}},
		"a type nobody expects":  {`{"choices":[{"delta":{"content":"a","tool_calls":7}}]}`, Event{Channels: Content, Text: []byte("a")}},
		"usage":                  {`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}`, Event{Usage: &Usage{Input: ptr(9), Output: ptr(2)}}},
		"usage in detail": {
			`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}}`,
			Event{Usage: &Usage{Input: ptr(9), Output: ptr(2), CachedInput: ptr(4), Reasoning: ptr(1)}},
		},
		"no usage yet":       {`{"choices":[{"delta":{"content":"a"}}],"usage":null}`, Event{Channels: Content, Text: []byte("a")}},
		"Groq's usage":       {`{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":1,"completion_tokens":2}}}`, Event{Finish: "stop", Usage: &Usage{Input: ptr(1), Output: ptr(2)}}},
		"Groq's error":       {`{"choices":[{"delta":{}}],"x_groq":{"error":"over capacity"}}`, Event{Error: &Error{Message: "over capacity"}}},
		"null is no error":   {`{"error":null,"choices":[{"delta":{"content":"a"}}]}`, Event{Channels: Content, Text: []byte("a")}},
		"an error":           {`{"error":{"message":"engine lost","type":"server_error","code":null}}`, Event{Error: &Error{Status: 500, Message: "engine lost"}}},
		"an error as text":   {`{"error":"engine lost"}`, Event{Error: &Error{Message: "engine lost"}}},
		"an integer code":    {`{"error":{"message":"m","type":"server_error","code":400}}`, Event{Error: &Error{Status: 400, Message: "m"}}},
		"an overload":        {`{"error":{"message":"m","type":"overloaded_error"}}`, Event{Error: &Error{Status: 529, Overloaded: true, Message: "m"}}},
		"an error finish":    {`{"choices":[{"delta":{"content":""},"finish_reason":"error","native_finish_reason":"gone"}]}`, Event{Finish: "error", Error: &Error{Status: 500, Message: "finish_reason error gone"}}},
		"vLLM's older error": {`{"object":"error","message":"too long","type":"BadRequestError","code":400}`, Event{Error: &Error{Status: 400, Message: "too long"}}},
		"the sentinel":       {`[DONE]`, Event{Done: true}},
		"a whole answer in an event": {
			`{"choices":[{"message":{"content":"all"},"finish_reason":"stop"}]}`,
			Event{Channels: Content, Text: []byte("all"), Finish: "stop", Done: true, Answer: true},
		},
		"Perplexity's growing message is no delta": {
			`{"choices":[{"delta":{"content":"b"},"message":{"content":"ab"}}]}`,
			Event{Channels: Content, Text: []byte("b")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := openAIChat{}.Decoder(Request{}).Decode(stream.Frame{Data: []byte(tc.data)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	for data, want := range map[string]error{
		`{"choices":[{"ind`: ErrCut,
		`{"choices":}`:      ErrMalformed,
		`hello`:             ErrMalformed,
	} {
		if _, err := (openAIChat{}).Decoder(Request{}).Decode(stream.Frame{Data: []byte(data)}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", data, err, want)
		}
	}
}

// However a stream varies, the fast way says what the slow way says.
func TestTemplateEqualsDecoding(t *testing.T) {
	chunk := func(text string) string {
		b, _ := json.Marshal(text)
		return `{"id":"c1","choices":[{"index":0,"delta":{"content":` + string(b) + `},"finish_reason":null}],"usage":null}`
	}
	frames := []string{
		chunk("moss"), chunk(" fern"), chunk(`say "hi"`), chunk(`back\slash`), chunk("line\nfeed"), chunk("ü€"), chunk(""), chunk(" "), chunk("moss"),
		`{"id":"c1","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":null}`,
		`{"id":"c1","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":{"completion_tokens":3}}`,
		`{"id":"c1","choices":[{"index":0,"delta":{"content":"a","x":"b"},"finish_reason":null}],"usage":null}`,
		`{"id":"c1","choices":[{"index":0,"delta":{"content":"b","reasoning":"b"},"finish_reason":null}],"usage":null}`,
		`{"id":"other","choices":[{"index":0,"delta":{"content":"moss"}}]}`,
		`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":8,"completion_tokens":1,"total_tokens":9}}`,
		`{"choices":[{"delta":{"content":"b"}}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`,
		`{"choices":[{"delta":{"content":"b"}}],"usage":{"prompt_tokens":8,"completion_tokens":2.5,"total_tokens":10}}`,
		`{"choices":[{"delta":{"content":"b"}}],"usage":{"prompt_tokens":8,"completion_tokens":-2,"total_tokens":10}}`,
		`{"choices":[{"delta":{"content":"c"}}],"obfuscation":"aa"}`, `{"choices":[{"delta":{"content":"d"}}],"obfuscation":"bcd"}`,
		`{"choices":[{"delta":{"content":"d"}}],"obfuscation":"b\"d"}`,
		`{"id": "other", "choices": [{"delta": {"content": "spaced"}}]}`, `{"id": "other", "choices": [{"delta": {"content": "more"}}]}`,
		`{"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":1,"details":{"completion_tokens":9}}}`,
		`{"choices":[{"delta":{"content":"b"}}],"usage":{"completion_tokens":2,"details":{"completion_tokens":9}}}`,
		`{"choices":[{"delta":{"content":"a"}}],"timings":{"completion_tokens":9}}`,
		`{"choices":[{"delta":{"content":"b"}}],"timings":{"completion_tokens":8}}`,
		chunk("again"), chunk("and again"),
	}
	warm := openAIChat{}.Decoder(Request{})
	for _, f := range frames {
		fresh, err := openAIChat{}.Decoder(Request{}).Decode(stream.Frame{Data: []byte(f)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := warm.Decode(stream.Frame{Data: []byte(f)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fresh, got); diff != "" {
			t.Errorf("%s: %s", f, diff)
		}
	}
}

func TestTemplateIsUsed(t *testing.T) {
	for name, tc := range map[string]struct{ decoder, chunk string }{
		"chat":        {"openai-chat", `{"id":"c1","choices":[{"delta":{"content":"%s"},"finish_reason":null}]}`},
		"with spaces": {"openai-chat", `{"id": "c1", "choices": [{"delta": {"content": "%s"}}]}`},
		"completions": {"openai-completions", `{"choices":[{"index":0,"text":"%s","finish_reason":null}]}`},
		"cumulative usage": {
			"openai-chat", `{"choices":[{"delta":{"content":"%s"}}],"usage":{"prompt_tokens":7,"total_tokens":8,"completion_tokens":1}}`,
		},
		"padding": {"openai-chat", `{"choices":[{"delta":{"content":"%s"}}],"obfuscation":"x1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(tc.decoder, &url.URL{})
			if err != nil {
				t.Fatal(err)
			}
			d := p.Decoder(Request{})
			frame := stream.Frame{Data: fmt.Appendf(nil, tc.chunk, "text")}
			if _, err := d.Decode(frame); err != nil {
				t.Fatal(err)
			}
			if n := testing.AllocsPerRun(100, func() { _, _ = d.Decode(frame) }); n != 0 {
				t.Errorf("%v allocations per event: it was decoded", n)
			}
		})
	}
}

func TestRequestBody(t *testing.T) {
	base := Request{Model: "m", Messages: []config.Message{{Role: "system", Content: "be brief"}, {Role: "user", Content: "hi"}}}
	for name, tc := range map[string]struct {
		protocol string
		change   func(*Request)
		want     string
	}{
		"whole":       {"openai-chat", func(*Request) {}, `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"model":"m","stream":false}`},
		"completions": {"openai-completions", func(r *Request) { r.MaxTokens = 5 }, `{"max_tokens":5,"model":"m","prompt":"be brief\n\nhi","stream":false}`},
		"streamed": {
			"openai-chat", func(r *Request) { r.Stream, r.MaxTokens, r.MaxTokensField = true, 16, "max_completion_tokens" },
			`{"max_completion_tokens":16,"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"model":"m","stream":true,"stream_options":{"include_usage":true}}`,
		},
		"pinned": {
			"openai-completions", func(r *Request) { r.OutputTokens = 9; r.Extra = map[string]any{"temperature": 0} },
			`{"ignore_eos":true,"max_tokens":9,"min_tokens":9,"model":"m","prompt":"be brief\n\nhi","stream":false,"temperature":0}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(tc.protocol, &url.URL{})
			if err != nil {
				t.Fatal(err)
			}
			r := base
			tc.change(&r)
			h := http.Header{}
			body, err := p.Request(r, h)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(body)); diff != "" {
				t.Error(diff)
			}
			if h.Get("Content-Type") != "application/json" || strings.Contains(h.Get("Accept"), "event-stream") != r.Stream {
				t.Errorf("headers %v", h)
			}
		})
	}
}

func TestURL(t *testing.T) {
	for _, tc := range []struct {
		protocol, base string
		stream         bool
		want           string
	}{
		{"openai-chat", "https://h", false, "https://h/v1/chat/completions"},
		{"openai-chat", "https://h/", false, "https://h/v1/chat/completions"},
		{"openai-chat", "https://h/v1", false, "https://h/v1/chat/completions"},
		{"openai-chat", "https://h/v1/", false, "https://h/v1/chat/completions"},
		{"openai-chat", "https://h/api/openai?k=1", false, "https://h/api/openai/chat/completions?k=1"},
		{"openai-chat", "https://h/v1/chat/completions", false, "https://h/v1/chat/completions"},
		{"openai-completions", "https://h/v1", false, "https://h/v1/completions"},
		{"openai-completions", "https://h/v1/completions", false, "https://h/v1/completions"},
		{"openai-completions", "https://h/v1/chat/completions", false, "https://h/v1/completions"},
		{"openai-responses", "https://h", true, "https://h/v1/responses"},
		{"azure-openai", "https://r.openai.azure.com", true, "https://r.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21"},
		{"azure-openai", "https://r.openai.azure.com/openai/deployments/d?api-version=2025-01-01", true, "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2025-01-01"},
		{"azure-openai", "https://r.openai.azure.com/openai/v1", true, "https://r.openai.azure.com/openai/v1/chat/completions"},
		{"anthropic-messages", "https://api.anthropic.com", true, "https://api.anthropic.com/v1/messages"},
		{"anthropic-messages", "https://h/v1/messages", false, "https://h/v1/messages"},
		{"anthropic-messages", "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu", true, "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic/models/m:streamRawPredict"},
		{"anthropic-messages", "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic/models/c:streamRawPredict", false, "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic/models/c:rawPredict"},
		{"anthropic-messages", "https://bedrock-runtime.eu-west-1.amazonaws.com", true, "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/invoke-with-response-stream"},
		{"gemini", "https://generativelanguage.googleapis.com", true, "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse"},
		{"gemini", "https://generativelanguage.googleapis.com/v1beta", false, "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent"},
		{"gemini", "http://h/v1beta/models/g:generateContent", true, "http://h/v1beta/models/g:streamGenerateContent?alt=sse"},
		{"gemini", "https://aiplatform.googleapis.com/v1/projects/p/locations/global", true, "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/m:streamGenerateContent?alt=sse"},
		{"bedrock-converse", "https://bedrock-runtime.eu-west-1.amazonaws.com", true, "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse-stream"},
		{"bedrock-converse", "http://h/model/anthropic.claude-v1:0/converse-stream", false, "http://h/model/anthropic.claude-v1%3A0/converse"},
		{"ollama", "http://h:11434", true, "http://h:11434/api/chat"},
		{"ollama", "http://h:11434/api", true, "http://h:11434/api/chat"},
		{"ollama", "http://h:11434/api/generate", true, "http://h:11434/api/generate"},
		{"tgi", "http://h", true, "http://h/generate_stream"},
		{"tgi", "http://h/generate_stream", false, "http://h/generate"},
		{"cohere", "https://api.cohere.com", true, "https://api.cohere.com/v2/chat"},
		{"openai-embeddings", "https://h/v1", false, "https://h/v1/embeddings"},
		{"rerank", "https://h", false, "https://h/v1/rerank"},
		{"rerank", "https://api.cohere.com/v2", false, "https://api.cohere.com/v2/rerank"},
		{"rerank", "http://tei/rerank", false, "http://tei/rerank"},
	} {
		base, err := url.Parse(tc.base)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(tc.protocol, base)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Model: "m", Stream: tc.stream}
		if got := p.URL(r).String(); got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.protocol, tc.base, got, tc.want)
		}
	}
}
