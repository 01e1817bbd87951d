package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"

	"goodput_exporter/probe/stream"
)

// What openai-chat and openai-completions have in common, with what the many servers add that speak them: vLLM,
// SGLang, llama.cpp, TGI, Ollama, Azure, Mistral, DeepSeek, OpenRouter, Groq, Together, Perplexity.
// Source: OpenAI's API reference, and those servers' own.

// openAIBody returns a request's body: the fields of the protocol, those all its requests have, and the
// configuration's own, which win.
func openAIBody(r Request, h http.Header, fields map[string]any) ([]byte, error) {
	h.Set("Content-Type", "application/json")
	fields["model"] = r.Model
	fields["stream"] = r.Stream
	if r.Stream {
		h.Set("Accept", "text/event-stream")
		fields["stream_options"] = map[string]any{"include_usage": true}
	} else {
		h.Set("Accept", "application/json")
	}
	limit := r.MaxTokensField
	if limit == "" {
		limit = "max_tokens"
	}
	if r.MaxTokens > 0 {
		fields[limit] = r.MaxTokens
	}
	if r.OutputTokens > 0 {
		// The servers that can pin a length do it with these; the others stop at the limit at the latest.
		fields[limit] = r.OutputTokens
		fields["min_tokens"] = r.OutputTokens
		fields["ignore_eos"] = true
	}
	maps.Copy(fields, r.Extra)
	return json.Marshal(fields)
}

type openAIDoc struct {
	Error   json.RawMessage `json:"error"`
	Choices []openAIChoice  `json:"choices"`
	Usage   *openAIUsage    `json:"usage"`
	XGroq   struct {
		Error json.RawMessage `json:"error"`
		Usage *openAIUsage    `json:"usage"`
	} `json:"x_groq"`
}

type openAIChoice struct {
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
	PromptTokens        *int `json:"prompt_tokens"`
	CompletionTokens    *int `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens *int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// openAIDecoder decodes the chunks of a stream or a whole answer.
type openAIDecoder struct {
	tmpl  template
	usage Usage // of the frame that the template fits last
}

// newOpenAIDecoder returns a decoder of chunks whose text stands under a key: "content" or "text".
func newOpenAIDecoder(key string) *openAIDecoder {
	return &openAIDecoder{tmpl: template{shape: &shape{
		text:   key,
		skips:  []string{"obfuscation", "total_tokens"},
		counts: []string{"prompt_tokens", "completion_tokens"},
	}}}
}

var doneData = []byte("[DONE]")

// Decode implements Decoder.
func (d *openAIDecoder) Decode(f stream.Frame) (Event, error) {
	if text, ok := d.tmpl.match(f.Data); ok && f.Event == "" {
		return Event{Channels: Content, Text: text, Usage: d.cumulative()}, nil
	}
	if bytes.Equal(bytes.TrimSpace(f.Data), doneData) {
		return Event{Done: true}, nil
	}
	ev, err := d.decode(f.Data)
	switch {
	case err != nil && f.Event == "error":
		return Event{Error: &Error{Message: clip(string(f.Data))}}, nil
	case err != nil && f.Unframed:
		return Event{}, nil // noise between events; the terminal signal decides
	case f.Unframed:
		return Event{Error: ev.Error}, nil
	case err != nil:
		return Event{}, err
	}
	if f.Whole && (ev.Channels != 0 || ev.Finish != "") {
		ev.Answer, ev.Done = true, true
	}
	d.tmpl.learn(f.Data, ev, d.decode)
	return ev, nil
}

// cumulative returns the usage of the frame that the template fitted, nil where it carries none.
func (d *openAIDecoder) cumulative() *Usage {
	input, output := &d.tmpl.counts[0], &d.tmpl.counts[1]
	if *input < 0 && *output < 0 {
		return nil
	}
	d.usage = Usage{Input: known(input), Output: known(output)}
	return &d.usage
}

func (d *openAIDecoder) decode(data []byte) (Event, error) {
	var doc openAIDoc
	if err := unmarshal(data, &doc); err != nil {
		return Event{}, syntaxError(data, err)
	}
	ev := Event{Usage: doc.Usage.usage(), Error: doc.err(data)}
	if ev.Usage == nil {
		ev.Usage = doc.XGroq.Usage.usage()
	}
	for i := range doc.Choices {
		doc.Choices[i].addTo(&ev)
	}
	return ev, nil
}

// err returns the error that a document tells, by its error object or by what it gives as the end of the answer.
func (doc *openAIDoc) err(data []byte) *Error {
	if present(doc.XGroq.Error) {
		return &Error{Message: clip(textOf(doc.XGroq.Error))}
	}
	if present(doc.Error) || len(doc.Choices) == 0 {
		return ParseError(data)
	}
	for _, c := range doc.Choices {
		switch c.FinishReason {
		case "error", "abort":
			return &Error{Status: http.StatusInternalServerError, Message: clip("finish_reason " + c.FinishReason + " " + c.NativeFinishReason)}
		case "insufficient_system_resource":
			return &Error{Status: http.StatusServiceUnavailable, Overloaded: true, Message: "finish_reason " + c.FinishReason}
		}
	}
	return nil
}

func (c *openAIChoice) addTo(ev *Event) {
	if c.FinishReason != "" {
		ev.Finish = c.FinishReason
		ev.Limited = slices.Contains([]string{"length", "max_tokens", "model_length"}, c.FinishReason)
		ev.Filtered = c.FinishReason == "content_filter"
	}
	if c.Text != "" {
		ev.add(Content, c.Text)
	}
	if c.Delta != nil {
		c.Delta.addTo(ev)
	}
	if c.Message != nil && c.Delta == nil { // Perplexity repeats the growing answer as a message beside each delta
		ev.Answer, ev.Done = true, true
		c.Message.addTo(ev)
	}
}

func (m *openAIMessage) addTo(ev *Event) {
	for _, r := range []json.RawMessage{m.Reasoning, m.ReasoningContent} {
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
		ev.add(Content, text)
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
			ev.add(Content, p.Text)
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

// add adds generated matter. An empty text is none.
func (e *Event) add(c Channel, text string) {
	if text == "" {
		return
	}
	e.Channels |= c
	e.Text = append(e.Text, text...)
}

// usage returns nil where the server reports no tokens: null, or an object without any.
func (u *openAIUsage) usage() *Usage {
	if u == nil || u.PromptTokens == nil && u.CompletionTokens == nil {
		return nil
	}
	return &Usage{
		Input: u.PromptTokens, Output: u.CompletionTokens,
		CachedInput: u.PromptTokensDetails.CachedTokens, Reasoning: u.CompletionTokensDetails.ReasoningTokens,
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
