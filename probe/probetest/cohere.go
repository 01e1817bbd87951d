package probetest

import (
	"fmt"
	"net/http"
)

// cohere is Cohere's chat, version 2.
type cohere struct{}

func (cohere) read(_ *http.Request, body []byte) (*query, error) {
	var in struct {
		Model     string   `json:"model"`
		Messages  contents `json:"messages"`
		Stream    bool     `json:"stream"`
		MaxTokens int      `json:"max_tokens"`
	}
	if err := unmarshal(body, &in); err != nil {
		return nil, err
	}
	return (&query{model: in.Model, stream: in.Stream, limit: in.MaxTokens}).check(in.Messages.bytes())
}

func (cohere) refuse(h http.Header, e *apiError) []byte { return cohereError(h, e) }

func cohereError(h http.Header, e *apiError) []byte {
	e.setRetryAfter(h)
	return encode(map[string]string{"id": "sim", "message": e.message})
}

func (cohere) contentType() string                { return sseType }
func (cohere) frame(b []byte, data string) []byte { return sseEvent(b, "", data) }
func (cohere) ping(b []byte) []byte               { return sseComment(b) }

func (cohere) begin(b []byte, a *reply) []byte {
	b = sseEvent(b, "message-start", fmt.Sprintf(
		`{"id":%q,"type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`, a.id))
	return sseEvent(b, "content-start", `{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`)
}

func (cohere) token(b []byte, a *reply, i int) []byte {
	return sseEvent(b, "content-delta", `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":`+quote(a.word(i))+`}}}}`)
}

// reason gives the finish reason. Cohere has none for filters.
func (cohere) reason(a *reply) string {
	if a.finish == finishLength {
		return "MAX_TOKENS"
	}
	return "COMPLETE"
}

func (d cohere) finish(b []byte, a *reply) []byte {
	b = sseEvent(b, "content-end", `{"type":"content-end","index":0}`)
	return sseEvent(b, "message-end", fmt.Sprintf(`{"type":"message-end","delta":{"finish_reason":%q%s}}`, d.reason(a), d.usage(a)))
}

// usage is the member of that name, with a comma before it.
func (cohere) usage(a *reply) string {
	if !a.usage() {
		return ""
	}
	tokens := fmt.Sprintf(`{"input_tokens":%d,"output_tokens":%d}`, a.query.inputTokens, a.tokens)
	return `,"usage":{"billed_units":` + tokens + `,"tokens":` + tokens + `}`
}

func (cohere) end(b []byte, _ *reply) []byte { return b }

func (cohere) fail(b []byte, _ *reply, e *apiError) []byte {
	return sseEvent(b, "message-end", `{"type":"message-end","delta":{"error":`+quote(e.message)+`,"finish_reason":"ERROR"}}`)
}

func (d cohere) whole(_ http.Header, a *reply) []byte {
	return fmt.Appendf(nil, `{"id":%q,"message":{"role":"assistant","content":[{"type":"text","text":%s}]},"finish_reason":%q%s}`,
		a.id, quote(a.text()), d.reason(a), d.usage(a))
}
