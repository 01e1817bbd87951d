package wire

import (
	"encoding/json"
	"net/http"
	"net/url"

	"goodput_exporter/probe/stream"
)

// cohere is Cohere's POST /v2/chat. Source: Cohere's API reference.
type cohere struct{ base *url.URL }

func newCohere(base *url.URL) Protocol { return cohere{base} }

// Traits implements Protocol.
func (cohere) Traits() Traits { return Traits{} }

// URL implements Protocol.
func (p cohere) URL(Request) *url.URL { return join(p.base, "/v2", "/chat") }

// Request implements Protocol.
func (cohere) Request(r Request, h http.Header) ([]byte, error) {
	fields := map[string]any{"model": r.Model, "messages": r.Messages, "stream": r.Stream}
	if n := r.limit(); n > 0 {
		fields["max_tokens"] = n
	}
	return jsonBody(r, h, r.accept(eventStream), fields)
}

// Decoder implements Protocol.
func (cohere) Decoder(r Request) Decoder {
	return &frameDecoder{tmpl: template{memory: r.Memory, shape: &shape{text: "text"}}, decode: decodeCohere}
}

type cohereDoc struct {
	Type         string        `json:"type"`
	Delta        cohereDelta   `json:"delta"`
	Message      cohereMessage `json:"message"` // of a whole answer
	FinishReason string        `json:"finish_reason"`
	Usage        *cohereUsage  `json:"usage"`

	Error json.RawMessage `json:"error"` // of a gateway
}

type cohereDelta struct {
	Message      cohereMessage   `json:"message"`
	FinishReason string          `json:"finish_reason"`
	Usage        *cohereUsage    `json:"usage"`
	Error        json.RawMessage `json:"error"`
}

type cohereMessage struct {
	Content   json.RawMessage `json:"content"` // a block in a stream, a list of them in a whole answer
	ToolPlan  string          `json:"tool_plan"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

type cohereUsage struct {
	Tokens      cohereTokens `json:"tokens"`
	BilledUnits cohereTokens `json:"billed_units"`
}

type cohereTokens struct {
	Input  *float64 `json:"input_tokens"` // whole numbers, but of a type that is none
	Output *float64 `json:"output_tokens"`
}

func decodeCohere(f stream.Frame) (Event, error) {
	var doc cohereDoc
	if err := unmarshal(f.Data, &doc); err != nil {
		return Event{}, syntaxError(f.Data, err)
	}
	var ev Event
	switch doc.Type {
	case "": // a whole answer, or an error
		doc.Message.addTo(&ev)
		if doc.FinishReason == "" && ev.Channels == 0 {
			ev.Error = ParseError(f.Data)
			return ev, nil
		}
		ev.finishCohere(doc.FinishReason, doc.Usage)
		ev.Answer = true
	case "message-end":
		ev.finishCohere(doc.Delta.FinishReason, doc.Delta.Usage)
		if present(doc.Delta.Error) {
			ev.Error = &Error{Message: clip(textOf(doc.Delta.Error))}
		}
	default:
		if present(doc.Error) {
			ev.Error = ParseError(f.Data)
		}
		doc.Delta.Message.addTo(&ev)
	}
	return ev, nil
}

func (m cohereMessage) addTo(ev *Event) {
	if m.ToolPlan != "" {
		ev.Channels |= Reasoning
	}
	if present(m.ToolCalls) {
		ev.Channels |= Tool
	}
	type block struct {
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
	}
	var blocks []block
	if len(m.Content) > 0 && m.Content[0] == '{' {
		blocks = make([]block, 1)
		_ = unmarshal(m.Content, &blocks[0])
	} else if present(m.Content) {
		_ = unmarshal(m.Content, &blocks)
	}
	for _, b := range blocks {
		ev.addText(b.Text)
		if b.Thinking != "" {
			ev.Channels |= Reasoning
		}
	}
}

func (e *Event) finishCohere(reason string, u *cohereUsage) {
	e.Finish, e.Done = reason, true
	e.Limited = reason == "MAX_TOKENS"
	switch reason {
	case "ERROR", "ERROR_TOXIC", "ERROR_LIMIT":
		e.Error = &Error{Status: http.StatusInternalServerError, Message: "finish_reason " + reason}
	case "TIMEOUT":
		e.Error = &Error{Status: http.StatusGatewayTimeout, Message: "finish_reason " + reason}
	}
	if u == nil {
		return
	}
	tokens := u.Tokens
	if tokens.Output == nil {
		tokens = u.BilledUnits
	}
	if tokens.Output != nil {
		e.Usage = &Usage{Input: integer(tokens.Input), Output: integer(tokens.Output)}
	}
}

func integer(f *float64) *int {
	if f == nil {
		return nil
	}
	n := int(*f)
	return &n
}
