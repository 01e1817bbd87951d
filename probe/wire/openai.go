package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"goodput_exporter/probe/stream"
)

// What openai-chat, openai-completions and azure-openai have in common, with what the many servers add that speak them: vLLM,
// SGLang, llama.cpp, TGI, Ollama, Azure, Mistral, DeepSeek, OpenRouter, Groq, Together, Perplexity.
// Source: OpenAI's API reference, and those servers' own.

// openAIBody returns a request's body, with what is asked under a key. The rest of it is made once for all requests of a
// series that are limited alike.
func openAIBody(r Request, h http.Header, key string, asked any) ([]byte, error) {
	jsonHeader(h, r.accept(eventStream))
	return r.Memory.body(r, key, asked, openAIFields)
}

// openAIFields returns the fields of a request's body besides what is asked.
func openAIFields(r Request) map[string]any {
	fields := map[string]any{"model": r.Model, "stream": r.Stream}
	if r.Stream {
		fields["stream_options"] = map[string]any{"include_usage": true}
	}
	field := r.MaxTokensField
	if field == "" {
		field = "max_tokens"
	}
	if n := r.limit(); n > 0 {
		fields[field] = n
	}
	if r.OutputTokens > 0 {
		// The servers that can pin a length do it with these; the others stop at the limit at the latest.
		fields["min_tokens"] = r.OutputTokens
		fields["ignore_eos"] = true
	}
	return fields
}

type openAIDoc struct {
	Error   json.RawMessage `json:"error"`
	Choices []openAIChoice  `json:"choices"`
	Usage   *openAIUsage    `json:"usage"`
	XGroq   struct {
		Error json.RawMessage `json:"error"`
		Usage *openAIUsage    `json:"usage"`
	} `json:"x_groq"`
	Timings struct { // llama.cpp's
		PromptMS    float64 `json:"prompt_ms"`
		PredictedMS float64 `json:"predicted_ms"`
	} `json:"timings"`
	Metrics struct { // vLLM's
		TTFTMS       float64 `json:"time_to_first_token_ms"`
		QueueMS      float64 `json:"queue_time_ms"`
		GenerationMS float64 `json:"generation_time_ms"`
	} `json:"metrics"`
}

// serverTimes returns the times that the server tells in the body.
func (doc *openAIDoc) serverTimes() []ServerTime {
	times := map[ServerKind]time.Duration{}
	add := func(kind ServerKind, v float64, unit time.Duration) {
		if took, ok := duration(v, unit); ok && took > 0 {
			times[kind] = took
		}
	}
	add(ServerPrefill, doc.Timings.PromptMS, time.Millisecond)
	add(ServerDecode, doc.Timings.PredictedMS, time.Millisecond)
	add(ServerTTFT, doc.Metrics.TTFTMS, time.Millisecond)
	add(ServerQueue, doc.Metrics.QueueMS, time.Millisecond)
	add(ServerDecode, doc.Metrics.GenerationMS, time.Millisecond)
	for _, u := range []*openAIUsage{doc.Usage, doc.XGroq.Usage} {
		if u != nil {
			add(ServerQueue, u.QueueTime, time.Second)
			add(ServerPrefill, u.PromptTime, time.Second)
			add(ServerDecode, u.CompletionTime, time.Second)
			add(ServerTotal, u.TotalTime, time.Second)
		}
	}
	return serverTimes(times)
}

type openAIChoice struct {
	Index              int            `json:"index"`
	Delta              *openAIMessage `json:"delta"`
	Message            *openAIMessage `json:"message"`
	Text               string         `json:"text"`
	FinishReason       string         `json:"finish_reason"`
	NativeFinishReason string         `json:"native_finish_reason"`
}

type openAIMessage struct {
	Content          json.RawMessage  `json:"content"` // a string, null, or a list of parts
	Reasoning        json.RawMessage  `json:"reasoning"`
	ReasoningContent json.RawMessage  `json:"reasoning_content"`
	ReasoningDetails json.RawMessage  `json:"reasoning_details"`
	Refusal          json.RawMessage  `json:"refusal"`
	ToolCalls        []openAIToolCall `json:"tool_calls"`
	FunctionCall     openAIFunction   `json:"function_call"`
}

type openAIToolCall struct {
	Function openAIFunction `json:"function"`
}

type openAIFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type openAIUsage struct {
	PromptTokens        count `json:"prompt_tokens"`
	CompletionTokens    count `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`

	// Groq's, in seconds.
	QueueTime      float64 `json:"queue_time"`
	PromptTime     float64 `json:"prompt_time"`
	CompletionTime float64 `json:"completion_time"`
	TotalTime      float64 `json:"total_time"`
}

// count is a number of tokens, which some servers write as 3.0 or "3". What is no whole number is absent.
type count struct{ n *int }

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(bytes.Trim(data, `"`)), 64)
	if n := int(f); err == nil && float64(n) == f {
		c.n = &n
	}
	return nil
}

// openAIChunks decodes the chunks of one stream, or a whole answer.
type openAIChunks struct {
	frames frameDecoder
	state  openAIState
	memory *Memory  // may be nil
	rare   template // of the frame that is tried
}

// The shapes of chunks and whole answers: the text stands under "content", or under "text".
var (
	openAIContent = openAIShape("content")
	openAIText    = openAIShape("text")
)

func openAIShape(key string) *shape {
	return &shape{
		text:   key,
		skips:  []string{"id", "created", "obfuscation", "total_tokens"},
		counts: []string{"prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"},
		usage: func(counts []int, u *Usage) bool {
			*u = Usage{known(&counts[0]), known(&counts[1]), known(&counts[2]), known(&counts[3])}
			return u.Input != nil || u.Output != nil
		},
	}
}

// openAIDone is what the sentinel says.
var openAIDone = &Event{Done: true}

func newOpenAIDecoder(s *shape, m *Memory) *frameDecoder {
	d := &openAIChunks{
		frames: frameDecoder{tmpl: template{memory: m, shape: s}, sentinel: openAIDone},
		memory: m,
		rare:   template{shape: s},
	}
	d.frames.decode = d.decode
	return &d.frames
}

// decode decodes a frame, unless it was learned before what it says.
func (d *openAIChunks) decode(f stream.Frame) (Event, error) {
	d.state.streamed = d.frames.streamed
	if d.memory == nil || f.Event != "" || f.Unframed {
		return d.decodeJSON(f)
	}
	if ev, ok := d.recognise(f); ok {
		return ev, nil
	}
	before := d.state
	ev, err := d.decodeJSON(f)
	if err == nil {
		d.learn(f, ev, before)
	}
	return ev, err
}

func (d *openAIChunks) decodeJSON(f stream.Frame) (Event, error) {
	var doc openAIDoc
	if err := unmarshal(f.Data, &doc); err != nil {
		return Event{}, syntaxError(f.Data, err)
	}
	named := f.Event != "" && f.Event != "message" && f.Event != "error"
	ev := Event{Usage: doc.Usage.usage(), Error: doc.err(f.Data, named), Server: doc.serverTimes()}
	if ev.Usage == nil {
		ev.Usage = doc.XGroq.Usage.usage()
	}
	for i := range doc.Choices {
		d.add(&doc.Choices[i], &ev)
	}
	if f.Whole && ev.says() {
		ev.Answer, ev.Done = true, true
	}
	return ev, nil
}

// add adds what a choice says. Of several choices, the end of the first one to end is that of the answer.
func (d *openAIChunks) add(c *openAIChoice, ev *Event) {
	if c.FinishReason != "" && c.FinishReason != "null" {
		if !d.state.finished {
			d.state.finished, d.state.choice = true, c.Index
		}
		if d.state.choice == c.Index {
			c.addFinish(ev)
		}
	}
	if c.Text != "" {
		ev.addText(c.Text)
	}
	if c.Delta != nil {
		c.Delta.addTo(ev)
	}
	// Some servers repeat the answer so far as a message, beside each delta or behind the last.
	if c.Message != nil && c.Delta == nil && !d.state.streamed {
		ev.Answer, ev.Done = true, true
		c.Message.addTo(ev)
	}
}

func (c *openAIChoice) addFinish(ev *Event) {
	reason := strings.ToLower(c.FinishReason)
	ev.Finish = c.FinishReason
	ev.Limited = slices.Contains([]string{"length", "max_tokens", "model_length"}, reason)
	ev.Filtered = reason == "content_filter"
}

// err returns the error that a document tells, by its error object or by what it gives as the end of the answer. In an
// event with a name of its own, such as a ping, a message alone is no error.
func (doc *openAIDoc) err(data []byte, named bool) *Error {
	if present(doc.XGroq.Error) {
		return &Error{Message: clip(textOf(doc.XGroq.Error))}
	}
	if present(doc.Error) || len(doc.Choices) == 0 && !named {
		return ParseError(data)
	}
	for _, c := range doc.Choices {
		switch strings.ToLower(c.FinishReason) {
		case "error", "abort":
			return &Error{Status: http.StatusInternalServerError, Message: clip("finish_reason " + c.FinishReason + " " + c.NativeFinishReason)}
		case "insufficient_system_resource":
			return &Error{Status: http.StatusServiceUnavailable, Overloaded: true, Message: "finish_reason " + c.FinishReason}
		}
	}
	return nil
}

func (m *openAIMessage) addTo(ev *Event) {
	for _, r := range []json.RawMessage{m.Reasoning, m.ReasoningContent, m.ReasoningDetails} {
		if present(r) {
			ev.Channels |= Reasoning
		}
	}
	if present(m.Refusal) {
		ev.Channels |= Refusal
	}
	for _, t := range m.ToolCalls {
		t.Function.addTo(ev)
	}
	m.FunctionCall.addTo(ev)
	if !present(m.Content) {
		return
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		ev.addText(text)
		return
	}
	addParts(m.Content, ev)
}

func (f openAIFunction) addTo(ev *Event) {
	if f.Name != "" || present(f.Arguments) {
		ev.Channels |= Tool
	}
}

// addParts adds a list of content parts, as Mistral sends it. Parts of unknown types say nothing.
func addParts(list json.RawMessage, ev *Event) {
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Refusal  string          `json:"refusal"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if unmarshal(list, &parts) != nil {
		return
	}
	for _, p := range parts {
		switch p.Type {
		case "text", "output_text":
			ev.addText(p.Text)
		case "thinking", "reasoning":
			if present(p.Thinking) || p.Text != "" {
				ev.Channels |= Reasoning
			}
		case "refusal":
			if p.Refusal != "" {
				ev.Channels |= Refusal
			}
		}
	}
}

// addText adds visible text. An empty one is none.
func (e *Event) addText(text string) {
	if text == "" {
		return
	}
	e.Channels |= Content
	e.Text = append(e.Text, text...)
}

// usage returns nil where the server reports no tokens: null, or an object without any.
func (u *openAIUsage) usage() *Usage {
	if u == nil || u.PromptTokens.n == nil && u.CompletionTokens.n == nil {
		return nil
	}
	return &Usage{
		Input: u.PromptTokens.n, Output: u.CompletionTokens.n,
		CachedInput: u.PromptTokensDetails.CachedTokens.n, Reasoning: u.CompletionTokensDetails.ReasoningTokens.n,
	}
}

// syntaxError tells JSON that is cut from JSON that is wrong.
func syntaxError(data []byte, err error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	var v json.RawMessage
	if errors.Is(d.Decode(&v), io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return errors.Join(ErrMalformed, err)
}
