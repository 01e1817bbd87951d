package wire

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"goodput_exporter/probe/stream"
)

// bedrockConverse is Bedrock's Converse and ConverseStream. Source: Bedrock Runtime's API reference.
type bedrockConverse struct{ base *url.URL }

func newBedrockConverse(base *url.URL) Protocol { return bedrockConverse{base} }

// Traits implements Protocol. The metadata behind the stop are usage, not a sentinel.
func (bedrockConverse) Traits() Traits { return Traits{Framing: stream.FramingAWS} }

// URL implements Protocol.
func (p bedrockConverse) URL(r Request) *url.URL {
	return bedrockURL(p.base, r, "converse", "converse-stream")
}

type converseText struct {
	Text string `json:"text"`
}

// Request implements Protocol.
func (bedrockConverse) Request(r Request, h http.Header) ([]byte, error) {
	type message struct {
		Role    string         `json:"role"`
		Content []converseText `json:"content"`
	}
	system, messages := r.system()
	list := make([]message, len(messages))
	for i, m := range messages {
		list[i] = message{m.Role, []converseText{{m.Content}}}
	}
	fields := map[string]any{"messages": list}
	if system != "" {
		fields["system"] = []converseText{{system}}
	}
	if n := r.limit(); n > 0 {
		fields["inferenceConfig"] = map[string]any{"maxTokens": n}
	}
	return jsonBody(r, h, r.accept(awsEventStream), fields)
}

// Sign implements Signer.
func (p bedrockConverse) Sign(req *http.Request, body []byte) error {
	return signAWS(req, body, p.base)
}

// Decoder implements Protocol.
func (bedrockConverse) Decoder(r Request) Decoder {
	return &converseDecoder{tmpl: template{memory: r.Memory, shape: &shape{text: "text", skips: []string{"p"}}}}
}

type converseDecoder struct{ tmpl template }

type converseDoc struct {
	Start struct {
		ToolUse *struct{} `json:"toolUse"`
	} `json:"start"`
	Delta      converseBlock `json:"delta"`
	StopReason string        `json:"stopReason"`
	Output     *struct {
		Message struct {
			Content []converseBlock `json:"content"`
		} `json:"message"`
	} `json:"output"`
	Usage *struct {
		Input  *int `json:"inputTokens"`
		Output *int `json:"outputTokens"`
		Cached *int `json:"cacheReadInputTokens"`
	} `json:"usage"`
	Metrics struct {
		LatencyMS *float64 `json:"latencyMs"`
	} `json:"metrics"`
	Message string `json:"message"`
}

type converseBlock struct {
	Text      string          `json:"text"`
	Reasoning json.RawMessage `json:"reasoningContent"`
	ToolUse   json.RawMessage `json:"toolUse"`
}

// Decode implements Decoder.
func (d *converseDecoder) Decode(f stream.Frame) (ev Event, err error) {
	if f.Failure {
		return Event{Error: bedrockException(f)}, nil
	}
	if len(f.Data) == 0 {
		return Event{}, nil
	}
	if f.Event == "contentBlockDelta" && d.tmpl.match(&f, &ev) {
		return ev, nil
	}
	ev, err = decodeConverse(f)
	if err != nil {
		return Event{}, err
	}
	switch {
	case f.Event == "metadata":
		ev.Done = true
	case f.Whole && ev.says():
		ev.Answer, ev.Done = true, true
	case f.Whole:
		ev.Error = ParseError(f.Data)
	case f.Event == "contentBlockDelta":
		d.tmpl.learn(f, ev, decodeConverse)
	}
	return ev, nil
}

func decodeConverse(f stream.Frame) (Event, error) {
	var doc converseDoc
	if err := unmarshal(f.Data, &doc); err != nil {
		return Event{}, syntaxError(f.Data, err)
	}
	var ev Event
	if doc.Start.ToolUse != nil {
		ev.Channels |= Tool
	}
	doc.Delta.addTo(&ev)
	if doc.Output != nil {
		for _, b := range doc.Output.Message.Content {
			b.addTo(&ev)
		}
	}
	if u := doc.Usage; u != nil && (u.Input != nil || u.Output != nil) {
		ev.Usage = &Usage{Input: u.Input, Output: u.Output, CachedInput: u.Cached}
	}
	if ms := doc.Metrics.LatencyMS; ms != nil {
		ev.Server = []ServerTime{{ServerTotal, time.Duration(*ms * float64(time.Millisecond))}}
	}
	ev.Finish = doc.StopReason
	switch doc.StopReason {
	case "max_tokens", "model_context_window_exceeded":
		ev.Limited = true
	case "content_filtered", "guardrail_intervened":
		ev.Filtered = true
	case "malformed_model_output", "malformed_tool_use":
		ev.Error = &Error{Status: http.StatusInternalServerError, Message: "stopReason " + doc.StopReason}
	}
	return ev, nil
}

func (b converseBlock) addTo(ev *Event) {
	ev.addText(b.Text)
	if present(b.ToolUse) {
		ev.Channels |= Tool
	}
	var reasoning struct {
		Text          string `json:"text"`
		ReasoningText struct {
			Text string `json:"text"`
		} `json:"reasoningText"`
	}
	if present(b.Reasoning) && unmarshal(b.Reasoning, &reasoning) == nil && (reasoning.Text != "" || reasoning.ReasoningText.Text != "") {
		ev.Channels |= Reasoning
	}
}
