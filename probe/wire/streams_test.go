package wire

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe/stream"
)

// summary is what the events of an answer add up to, as far as this package knows.
type summary struct {
	Channels                         Channel
	Text, Finish                     string
	Tokens                           int // token events
	Input, Output, Cached, Reasoning int // -1: not told
	Done, Answer                     bool
	Limited, Filtered, Refused       bool
	Error                            int // status
	ErrorText                        string
	Overloaded, Tokenless            bool
	Server                           []ServerTime
}

func summarize(t *testing.T, d Decoder, frames []stream.Frame) summary {
	t.Helper()
	s := summary{Input: -1, Output: -1, Cached: -1, Reasoning: -1}
	number := func(into *int, n *int) {
		if n != nil {
			*into = *n
		}
	}
	for _, f := range frames {
		ev, err := d.Decode(f)
		if err != nil {
			t.Fatalf("%s: %v", f.Data, err)
		}
		s.Channels |= ev.Channels
		s.Text += string(ev.Text)
		if ev.Channels != 0 {
			s.Tokens++
		}
		if ev.Finish != "" {
			s.Finish = ev.Finish
		}
		if u := ev.Usage; u != nil {
			number(&s.Input, u.Input)
			number(&s.Output, u.Output)
			number(&s.Cached, u.CachedInput)
			number(&s.Reasoning, u.Reasoning)
		}
		s.Done, s.Answer, s.Tokenless = s.Done || ev.Done, s.Answer || ev.Answer, s.Tokenless || ev.Tokenless
		s.Limited, s.Filtered, s.Refused = s.Limited || ev.Limited, s.Filtered || ev.Filtered, s.Refused || ev.Refused
		if ev.Error != nil {
			s.Error, s.ErrorText, s.Overloaded = ev.Error.Status, ev.Error.Message, ev.Error.Overloaded
		}
		s.Server = append(s.Server, ev.Server...)
	}
	return s
}

// lines are the frames of a stream, one a line: "name: data", or "data" alone where events have no names. A name with
// an exclamation mark is a failure by the framing.
func lines(text string) []stream.Frame {
	var frames []stream.Frame
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := stream.Frame{Data: []byte(strings.TrimSpace(line))}
		if name, data, ok := strings.Cut(line, ": {"); ok && !strings.Contains(name, `"`) {
			f.Event, f.Data = strings.TrimSpace(name), []byte("{"+data)
		}
		f.Event, f.Failure = strings.TrimSuffix(f.Event, "!"), strings.HasSuffix(f.Event, "!")
		frames = append(frames, f)
	}
	return frames
}

func whole(text string) []stream.Frame { return []stream.Frame{{Data: []byte(text), Whole: true}} }

// chunked wraps events as Bedrock's invoke does.
func chunked(frames []stream.Frame) []stream.Frame {
	for i := range frames {
		if !frames[i].Failure {
			data := base64.StdEncoding.EncodeToString(frames[i].Data)
			frames[i] = stream.Frame{Event: "chunk", Data: []byte(`{"bytes":"` + data + `","p":"abc"}`)}
		}
	}
	return frames
}

const anthropicStream = `
message_start: {"type":"message_start","message":{"content":[],"stop_reason":null,"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}}
ping: {"type":"ping"}
content_block_start: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
content_block_delta: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Rain"}}
content_block_delta: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" falls"}}
content_block_stop: {"type":"content_block_stop","index":0}
message_delta: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}
message_stop: {"type":"message_stop"}`

var anthropicAnswerSummary = summary{
	Channels: Content, Text: "Rain falls", Finish: "end_turn", Tokens: 2, Input: 9, Output: 7, Cached: 4, Reasoning: -1, Done: true,
}

func TestStreams(t *testing.T) {
	none := summary{Input: -1, Output: -1, Cached: -1, Reasoning: -1}
	with := func(change func(*summary)) summary {
		s := none
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		protocol, base string
		frames         []stream.Frame
		want           summary
	}{
		"anthropic": {"anthropic-messages", "", lines(anthropicStream), anthropicAnswerSummary},
		"anthropic on Bedrock": {
			"anthropic-messages", "https://bedrock-runtime.eu-west-1.amazonaws.com", chunked(lines(anthropicStream)), anthropicAnswerSummary,
		},
		"anthropic thinks, calls a tool, is cut": {
			"anthropic-messages", "", lines(`
content_block_delta: {"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}
content_block_delta: {"type":"content_block_delta","delta":{"type":"signature_delta","signature":"x"}}
content_block_start: {"type":"content_block_start","content_block":{"type":"tool_use","name":"look","input":{}}}
content_block_delta: {"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":""}}
content_block_delta: {"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}
message_delta: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"input_tokens":5,"output_tokens":16}}`),
			with(func(s *summary) {
				s.Channels, s.Tokens, s.Finish, s.Limited, s.Input, s.Output = Reasoning|Tool, 3, "max_tokens", true, 5, 16
			}),
		},
		"anthropic refuses": {
			"anthropic-messages", "", lines(`message_delta: {"type":"message_delta","delta":{"stop_reason":"refusal"}}`),
			with(func(s *summary) { s.Finish, s.Refused = "refusal", true }),
		},
		"anthropic overloaded": {
			"anthropic-messages", "", lines(`error: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}`),
			with(func(s *summary) { s.Error, s.ErrorText, s.Overloaded = 529, "busy", true }),
		},
		"anthropic, whole": {
			"anthropic-messages", "", whole(`{"type":"message","content":[{"type":"text","text":"Rain"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}`),
			with(func(s *summary) {
				s.Channels, s.Text, s.Tokens, s.Finish, s.Input, s.Output, s.Done, s.Answer = Content, "Rain", 1, "end_turn", 9, 2, true, true
			}),
		},
		"responses": {
			"openai-responses", "", lines(`
response.created: {"type":"response.created","response":{"status":"in_progress","usage":null}}
response.reasoning_summary_text.delta: {"type":"response.reasoning_summary_text.delta","delta":"hm","sequence_number":3}
response.output_text.delta: {"type":"response.output_text.delta","item_id":"i","delta":"oak","sequence_number":4,"obfuscation":"abc"}
response.output_text.delta: {"type":"response.output_text.delta","item_id":"i","delta":" elm","sequence_number":5,"obfuscation":"d"}
response.output_text.done: {"type":"response.output_text.done","text":"oak elm","sequence_number":6}
response.output_item.done: {"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"oak elm"}]}}
response.completed: {"type":"response.completed","response":{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"oak elm"}]}],"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":1},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":6}}}}`),
			summary{Channels: Content | Reasoning, Text: "oak elm", Tokens: 3, Finish: "completed", Input: 5, Output: 9, Cached: 1, Reasoning: 6, Done: true},
		},
		"responses, cut by the limit": {
			"openai-responses", "", lines(`response.incomplete: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`),
			with(func(s *summary) { s.Finish, s.Limited, s.Done = "max_output_tokens", true, true }),
		},
		"responses, failed": {
			"openai-responses", "", lines(`response.failed: {"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"}}}`),
			with(func(s *summary) { s.Finish, s.Done, s.Error, s.ErrorText = "failed", true, 429, "slow down" }),
		},
		"responses, error event": {
			"openai-responses", "", lines(`error: {"type":"error","code":"server_error","message":"gone","sequence_number":2}`),
			with(func(s *summary) { s.Error, s.ErrorText = 500, "gone" }),
		},
		"responses, a tool": {
			"openai-responses", "", lines(`
response.output_item.added: {"type":"response.output_item.added","item":{"type":"function_call","name":"look"}}
response.function_call_arguments.delta: {"type":"response.function_call_arguments.delta","delta":"{}"}`),
			with(func(s *summary) { s.Channels, s.Tokens = Tool, 2 }),
		},
		"responses, whole": {
			"openai-responses", "", whole(`{"object":"response","status":"completed","error":null,"output":[{"type":"reasoning","summary":[]},{"type":"message","content":[{"type":"output_text","text":"oak"}]}],"usage":{"input_tokens":5,"output_tokens":2}}`),
			with(func(s *summary) {
				s.Channels, s.Text, s.Tokens, s.Finish, s.Input, s.Output, s.Done, s.Answer = Content, "oak", 1, "completed", 5, 2, true, true
			}),
		},
		"gemini": {
			"gemini", "", lines(`
{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"}}],"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":3}}
{"candidates":[{"content":{"parts":[{"text":"oak"}],"role":"model"}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1,"totalTokenCount":9,"thoughtsTokenCount":3}}
{"candidates":[{"content":{"parts":[{"text":" elm"}],"role":"model"}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":10,"thoughtsTokenCount":3}}
{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":10,"thoughtsTokenCount":3}}`),
			summary{Channels: Content | Reasoning, Text: "oak elm", Tokens: 3, Finish: "STOP", Input: 5, Output: 5, Cached: -1, Reasoning: 3},
		},
		"gemini, no parts": {
			"gemini", "", lines(`{"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS"}]}`),
			with(func(s *summary) { s.Finish, s.Limited = "MAX_TOKENS", true }),
		},
		"gemini, prompt blocked": {
			"gemini", "", lines(`{"promptFeedback":{"blockReason":"SAFETY"}}`),
			with(func(s *summary) { s.Finish, s.Filtered = "SAFETY", true }),
		},
		"gemini, filtered": {
			"gemini", "", lines(`{"candidates":[{"finishReason":"RECITATION"}]}`),
			with(func(s *summary) { s.Finish, s.Filtered = "RECITATION", true }),
		},
		"gemini, error": {
			"gemini", "", lines(`{"error":{"code":503,"message":"full","status":"UNAVAILABLE"}}`),
			with(func(s *summary) { s.Error, s.ErrorText, s.Overloaded = 503, "full", true }),
		},
		"gemini, a call": {
			"gemini", "", whole(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look"}}]},"finishReason":"STOP"}]}`),
			with(func(s *summary) { s.Channels, s.Tokens, s.Finish, s.Done, s.Answer = Tool, 1, "STOP", true, true }),
		},
		"converse": {
			"bedrock-converse", "", lines(`
messageStart: {"role":"assistant","p":"ab"}
contentBlockDelta: {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}},"p":"a"}
contentBlockDelta: {"contentBlockIndex":1,"delta":{"text":"oak"},"p":"abcd"}
contentBlockDelta: {"contentBlockIndex":1,"delta":{"text":" elm"},"p":"ab"}
contentBlockStop: {"contentBlockIndex":1}
messageStop: {"stopReason":"end_turn"}
metadata: {"usage":{"inputTokens":5,"outputTokens":4,"totalTokens":9},"metrics":{"latencyMs":250}}`),
			summary{
				Channels: Content | Reasoning, Text: "oak elm", Tokens: 3, Finish: "end_turn", Input: 5, Output: 4, Cached: -1, Reasoning: -1, Done: true,
				Server: []ServerTime{{ServerTotal, 250 * time.Millisecond}},
			},
		},
		"converse, throttled": {
			"bedrock-converse", "", lines(`throttlingException!: {"message":"slow down"}`),
			with(func(s *summary) { s.Error, s.ErrorText = 429, "slow down" }),
		},
		"converse, the model fails": {
			"bedrock-converse", "", lines(`modelStreamErrorException!: {"message":"lost"}`),
			with(func(s *summary) { s.Error, s.ErrorText = 500, "lost" }),
		},
		"converse, guardrail": {
			"bedrock-converse", "", lines(`messageStop: {"stopReason":"guardrail_intervened"}`),
			with(func(s *summary) { s.Finish, s.Filtered = "guardrail_intervened", true }),
		},
		"converse, whole": {
			"bedrock-converse", "", whole(`{"output":{"message":{"role":"assistant","content":[{"text":"oak"}]}},"stopReason":"max_tokens","usage":{"inputTokens":5,"outputTokens":1}}`),
			with(func(s *summary) {
				s.Channels, s.Text, s.Tokens, s.Finish, s.Limited, s.Input, s.Output, s.Done, s.Answer = Content, "oak", 1, "max_tokens", true, 5, 1, true, true
			}),
		},
		"ollama": {
			"ollama", "", lines(`
{"model":"m","created_at":"2026-01-01T00:00:00.1Z","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}
{"model":"m","created_at":"2026-01-01T00:00:00.2Z","message":{"role":"assistant","content":"oak"},"done":false}
{"model":"m","created_at":"2026-01-01T00:00:00.35Z","message":{"role":"assistant","content":" elm"},"done":false}
{"model":"m","created_at":"2026-01-01T00:00:00.4Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":9000000,"load_duration":1000000,"prompt_eval_count":5,"prompt_eval_duration":2000000,"eval_count":3,"eval_duration":4000000}`),
			summary{
				Channels: Content | Reasoning, Text: "oak elm", Tokens: 3, Finish: "stop", Input: 5, Output: 3, Cached: -1, Reasoning: -1, Done: true,
				Server: []ServerTime{
					{ServerPrefill, 2 * time.Millisecond}, {ServerDecode, 4 * time.Millisecond}, {ServerLoad, time.Millisecond}, {ServerTotal, 9 * time.Millisecond},
				},
			},
		},
		"ollama generates": {
			"ollama", "http://h/api/generate", lines(`
{"created_at":"1","response":"oak","done":false}
{"created_at":"2","response":"","done":true,"done_reason":"length","eval_count":1}`),
			with(func(s *summary) {
				s.Channels, s.Text, s.Tokens, s.Finish, s.Limited, s.Output, s.Done = Content, "oak", 1, "length", true, 1, true
			}),
		},
		"ollama, error": {
			"ollama", "", lines(`{"error":"llama runner process has terminated"}`),
			with(func(s *summary) { s.ErrorText = "llama runner process has terminated" }),
		},
		"tgi": {
			"tgi", "", lines(`
{"index":1,"token":{"id":12,"text":"oak","logprob":-0.5,"special":false},"generated_text":null,"details":null}
{"index":2,"token":{"id":345,"text":" elm","logprob":-1.25,"special":false},"generated_text":null,"details":null}
{"index":3,"token":{"id":2,"text":"</s>","logprob":-0.1,"special":true},"generated_text":"oak elm","details":{"finish_reason":"eos_token","generated_tokens":3,"seed":null,"input_length":5}}`),
			with(func(s *summary) {
				s.Channels, s.Text, s.Tokens, s.Finish, s.Input, s.Output, s.Done = Content, "oak elm", 2, "eos_token", 5, 3, true
			}),
		},
		"tgi, error": {
			"tgi", "", lines(`{"error":"Request failed during generation","error_type":"generation"}`),
			with(func(s *summary) { s.ErrorText = "Request failed during generation" }),
		},
		"tgi, whole": {
			"tgi", "", whole(`{"generated_text":"oak","details":{"finish_reason":"length","generated_tokens":1,"prefill":[]}}`),
			with(func(s *summary) {
				s.Channels, s.Text, s.Tokens, s.Finish, s.Limited, s.Output, s.Done, s.Answer = Content, "oak", 1, "length", true, 1, true, true
			}),
		},
		"cohere": {
			"cohere", "", lines(`
message-start: {"type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_calls":[]}}}
content-start: {"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}
content-delta: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"oak"}}}}
content-delta: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":" elm"}}}}
content-end: {"type":"content-end","index":0}
message-end: {"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":3,"output_tokens":2},"tokens":{"input_tokens":70,"output_tokens":2}}}}`),
			with(func(s *summary) {
				s.Channels, s.Text, s.Tokens, s.Finish, s.Input, s.Output, s.Done = Content, "oak elm", 2, "COMPLETE", 70, 2, true
			}),
		},
		"cohere, error": {
			"cohere", "", lines(`message-end: {"type":"message-end","delta":{"finish_reason":"ERROR","error":"lost"}}`),
			with(func(s *summary) { s.Finish, s.Done, s.ErrorText = "ERROR", true, "lost" }),
		},
		"cohere, whole": {
			"cohere", "", whole(`{"id":"i","finish_reason":"MAX_TOKENS","message":{"role":"assistant","content":[{"type":"text","text":"oak"}]},"usage":{"tokens":{"input_tokens":7,"output_tokens":1}}}`),
			with(func(s *summary) {
				s.Channels, s.Text, s.Tokens, s.Finish, s.Limited, s.Input, s.Output, s.Done, s.Answer = Content, "oak", 1, "MAX_TOKENS", true, 7, 1, true, true
			}),
		},
		"embeddings": {
			"openai-embeddings", "", whole(`{"data":[{"embedding":[0.1,-0.2]}],"usage":{"prompt_tokens":4,"total_tokens":4}}`),
			with(func(s *summary) { s.Input, s.Done, s.Answer, s.Tokenless = 4, true, true, true }),
		},
		"embeddings in base64": {
			"openai-embeddings", "", whole(`{"data":[{"embedding":"AACAPwAAAMA="}]}`),
			with(func(s *summary) { s.Done, s.Answer, s.Tokenless = true, true, true }),
		},
		"rerank": {
			"rerank", "", whole(`{"results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.1}],"usage":{"total_tokens":12}}`),
			with(func(s *summary) { s.Input, s.Done, s.Answer, s.Tokenless = 12, true, true, true }),
		},
		"rerank by TEI": {
			"rerank", "http://tei/rerank", whole(`[{"index":1,"score":0.9},{"index":0,"score":-3}]`),
			with(func(s *summary) { s.Done, s.Answer, s.Tokenless = true, true, true }),
		},
		"llama.cpp's timings": {
			"openai-chat", "", lines(`{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"prompt_n":5,"prompt_ms":20.5,"predicted_n":3,"predicted_ms":40}}`),
			with(func(s *summary) {
				s.Finish = "stop"
				s.Server = []ServerTime{{ServerPrefill, 20500 * time.Microsecond}, {ServerDecode, 40 * time.Millisecond}}
			}),
		},
		"Groq's times": {
			"openai-chat", "", lines(`{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"queue_time":0.01,"prompt_tokens":1,"prompt_time":0.002,"completion_tokens":2,"completion_time":0.5,"total_time":0.502}}}`),
			with(func(s *summary) {
				s.Finish, s.Input, s.Output = "stop", 1, 2
				s.Server = []ServerTime{
					{ServerQueue, 10 * time.Millisecond}, {ServerPrefill, 2 * time.Millisecond}, {ServerDecode, 500 * time.Millisecond}, {ServerTotal, 502 * time.Millisecond},
				}
			}),
		},
		"vLLM's times": {
			"openai-chat", "", lines(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2},"metrics":{"time_to_first_token_ms":31.5,"queue_time_ms":1.5,"generation_time_ms":400}}`),
			with(func(s *summary) {
				s.Input, s.Output = 1, 2
				s.Server = []ServerTime{{ServerTTFT, 31500 * time.Microsecond}, {ServerQueue, 1500 * time.Microsecond}, {ServerDecode, 400 * time.Millisecond}}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := url.Parse(tc.base)
			if err != nil {
				t.Fatal(err)
			}
			p, err := New(tc.protocol, base)
			if err != nil {
				t.Fatal(err)
			}
			d := p.Decoder(Request{Stream: true, Messages: []config.Message{{Role: "user", Content: "hi"}}})
			if diff := cmp.Diff(tc.want, summarize(t, d, tc.frames)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChecks(t *testing.T) {
	for name, tc := range map[string]struct{ protocol, body, want string }{
		"too few vectors":   {"openai-embeddings", `{"data":[]}`, "0 vectors for 1 inputs"},
		"not a number":      {"openai-embeddings", `{"data":[{"embedding":[1,null]}]}`, "no finite number"},
		"all zero":          {"openai-embeddings", `{"data":[{"embedding":[0,0]}]}`, "all zero"},
		"no vector":         {"openai-embeddings", `{"data":[{"embedding":{}}]}`, "no list"},
		"no such document":  {"rerank", `{"results":[{"index":9,"relevance_score":1}]}`, "no index"},
		"a document twice":  {"rerank", `{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1}]}`, "twice"},
		"no score":          {"rerank", `{"results":[{"index":0}]}`, "no finite score"},
		"no results at all": {"rerank", `{"results":[]}`, "0 results"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(tc.protocol, &url.URL{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Decoder(Request{Messages: []config.Message{{Content: "hi"}}}).Decode(whole(tc.body)[0])
			if !errors.Is(err, ErrCheck) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
