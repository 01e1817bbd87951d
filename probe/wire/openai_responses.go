package wire

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"goodput_exporter/probe/stream"
)

// responses is POST /v1/responses. Source: OpenAI's API reference.
type responses struct{ base *url.URL }

func newResponses(base *url.URL) Protocol { return responses{base} }

// Traits implements Protocol. Some proxies add the sentinel of chat completions; it is not part of the protocol.
func (responses) Traits() Traits { return Traits{} }

// URL implements Protocol.
func (p responses) URL(Request) *url.URL { return join(p.base, "/v1", "/responses") }

// Request implements Protocol.
func (responses) Request(r Request, h http.Header) ([]byte, error) {
	fields := map[string]any{"model": r.Model, "input": r.Messages, "stream": r.Stream}
	if n := r.limit(); n > 0 {
		fields["max_output_tokens"] = n
	}
	return jsonBody(r, h, r.accept(eventStream), fields)
}

// Decoder implements Protocol.
func (responses) Decoder(r Request) Decoder {
	shape := &shape{text: "delta", skips: []string{"sequence_number", "item_id", "obfuscation"}}
	return &frameDecoder{tmpl: template{memory: r.Memory, shape: shape}, decode: decodeResponses, sentinel: &Event{}}
}

type responsesEvent struct {
	Type     string          `json:"type"`
	Delta    json.RawMessage `json:"delta"`
	Item     responsesItem   `json:"item"`
	Response *responsesDoc   `json:"response"`
	responsesDoc
}

type responsesDoc struct {
	Object            string          `json:"object"`
	Status            string          `json:"status"`
	Error             json.RawMessage `json:"error"`
	IncompleteDetails struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Output []responsesItem `json:"output"`
	Usage  *responsesUsage `json:"usage"`
}

type responsesItem struct {
	Type      string `json:"type"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Input     string `json:"input"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Text string `json:"text"`
	} `json:"summary"`
}

type responsesUsage struct {
	InputTokens       *int `json:"input_tokens"`
	OutputTokens      *int `json:"output_tokens"`
	InputTokenDetails struct {
		CachedTokens *int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokenDetails struct {
		ReasoningTokens *int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// responsesChannels are the events that carry generated matter, by type.
var responsesChannels = map[string]Channel{
	"response.output_text.delta":                Content,
	"response.refusal.delta":                    Refusal,
	"response.reasoning_text.delta":             Reasoning,
	"response.reasoning_summary_text.delta":     Reasoning,
	"response.reasoning_summary.delta":          Reasoning,
	"response.reasoning.delta":                  Reasoning,
	"response.function_call_arguments.delta":    Tool,
	"response.custom_tool_call_input.delta":     Tool,
	"response.mcp_call_arguments.delta":         Tool,
	"response.code_interpreter_call_code.delta": Tool,
}

func decodeResponses(f stream.Frame) (Event, error) {
	var doc responsesEvent
	if err := unmarshal(f.Data, &doc); err != nil {
		return Event{}, syntaxError(f.Data, err)
	}
	var ev Event
	switch doc.Type {
	case "response.completed", "response.incomplete", "response.failed":
		if doc.Response == nil {
			doc.Response = &responsesDoc{}
		}
		doc.Response.end(&ev, strings.TrimPrefix(doc.Type, "response."))
		ev.Done = true
	case "error":
		ev.Error = mustError(f.Data)
	case "response.output_item.added":
		if doc.Item.Name != "" {
			ev.Channels |= Tool
		}
	case "":
		doc.responsesDoc.whole(&ev, f.Data)
	default:
		if present(doc.Error) {
			ev.Error = ParseError(f.Data)
		}
		doc.delta(&ev)
	}
	return ev, nil
}

// delta adds the matter of an event that brings some. An unknown type says nothing.
func (doc *responsesEvent) delta(ev *Event) {
	channel, ok := responsesChannels[doc.Type]
	var text string
	if !ok || json.Unmarshal(doc.Delta, &text) != nil || text == "" {
		return
	}
	if channel == Content {
		ev.addText(text)
	} else {
		ev.Channels |= channel
	}
}

// end adds what the terminal event of a stream, or a whole answer, says of the end: its status, or what stands for
// one that is missing.
func (r *responsesDoc) end(ev *Event, status string) {
	if u := r.Usage; u != nil && (u.InputTokens != nil || u.OutputTokens != nil) {
		ev.Usage = &Usage{
			Input: u.InputTokens, Output: u.OutputTokens,
			CachedInput: u.InputTokenDetails.CachedTokens, Reasoning: u.OutputTokenDetails.ReasoningTokens,
		}
	}
	if r.Status != "" {
		status = r.Status
	}
	ev.Finish = status
	switch {
	case present(r.Error):
		ev.Error = ParseError(append(append([]byte(`{"error":`), r.Error...), '}'))
	case status == "failed" || status == "cancelled":
		ev.Error = &Error{Message: clip("status " + status)}
	case status == "incomplete":
		ev.Finish = r.IncompleteDetails.Reason
		ev.Limited = ev.Finish == "max_output_tokens" || ev.Finish == "max_tokens"
		ev.Filtered = ev.Finish == "content_filter"
	}
}

// whole adds an answer that is no stream. One that is still under way is none.
func (r *responsesDoc) whole(ev *Event, data []byte) {
	if r.Object != "response" && len(r.Output) == 0 {
		ev.Error = ParseError(data)
		return
	}
	if r.Status == "queued" || r.Status == "in_progress" {
		return
	}
	for _, item := range r.Output {
		item.addTo(ev)
	}
	r.end(ev, "completed")
	ev.Answer, ev.Done = true, true
}

func (i responsesItem) addTo(ev *Event) {
	if i.Name != "" || i.Arguments != "" || i.Input != "" {
		ev.Channels |= Tool
	}
	for _, s := range i.Summary {
		if s.Text != "" {
			ev.Channels |= Reasoning
		}
	}
	for _, c := range i.Content {
		switch {
		case c.Type == "reasoning_text" && c.Text != "":
			ev.Channels |= Reasoning
		case c.Refusal != "":
			ev.Channels |= Refusal
		default:
			ev.addText(c.Text)
		}
	}
}
