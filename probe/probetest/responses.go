package probetest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// responses is OpenAI's Responses API.
type responses struct{}

func (responses) read(_ *http.Request, body []byte) (*query, error) {
	var in struct {
		Model           string          `json:"model"`
		Input           json.RawMessage `json:"input"`
		Stream          bool            `json:"stream"`
		MaxOutputTokens int             `json:"max_output_tokens"`
	}
	if err := unmarshal(body, &in); err != nil {
		return nil, err
	}
	return (&query{model: in.Model, stream: in.Stream, limit: in.MaxOutputTokens}).check(len(in.Input))
}

func (responses) refuse(h http.Header, e *apiError) []byte { return openAIError(h, e) }

func (responses) contentType() string                { return sseType }
func (responses) frame(b []byte, data string) []byte { return sseEvent(b, "", data) }
func (responses) ping(b []byte) []byte               { return sseComment(b) }

// event appends an event. rest is its members beside type and number, each with a comma before it.
func (responses) event(b []byte, a *reply, kind, rest string) []byte {
	data := fmt.Sprintf(`{"type":%q,"sequence_number":%d%s}`, kind, a.events, rest)
	a.events++
	return sseEvent(b, kind, data)
}

func (d responses) begin(b []byte, a *reply) []byte {
	b = d.event(b, a, "response.created", `,"response":`+d.object(a, "in_progress", "", "[]"))
	b = d.event(b, a, "response.in_progress", `,"response":`+d.object(a, "in_progress", "", "[]"))
	b = d.event(b, a, "response.output_item.added",
		`,"output_index":0,"item":{"id":"msg_sim","type":"message","status":"in_progress","role":"assistant","content":[]}`)
	return d.event(b, a, "response.content_part.added", d.place()+`,"part":`+d.part(a, ""))
}

func (responses) place() string { return `,"item_id":"msg_sim","output_index":0,"content_index":0` }

// part is the content of the answer's only message, so far.
func (responses) part(a *reply, text string) string {
	if a.finish == finishRefusal {
		return `{"type":"refusal","refusal":` + quote(text) + `}`
	}
	return `{"type":"output_text","annotations":[],"text":` + quote(text) + `}`
}

func (d responses) token(b []byte, a *reply, i int) []byte {
	kind := "response.output_text.delta"
	if a.finish == finishRefusal {
		kind = "response.refusal.delta"
	}
	return d.event(b, a, kind, d.place()+`,"delta":`+quote(a.word(i)))
}

// output is the list of the answer's only message.
func (d responses) output(a *reply) string {
	return "[" + d.item(a) + "]"
}

func (d responses) item(a *reply) string {
	return `{"id":"msg_sim","type":"message","status":"completed","role":"assistant","content":[` + d.part(a, a.text()) + `]}`
}

func (d responses) finish(b []byte, a *reply) []byte {
	if a.finish == finishRefusal {
		b = d.event(b, a, "response.refusal.done", d.place()+`,"refusal":`+quote(a.text()))
	} else {
		b = d.event(b, a, "response.output_text.done", d.place()+`,"text":`+quote(a.text()))
	}
	b = d.event(b, a, "response.content_part.done", d.place()+`,"part":`+d.part(a, a.text()))
	b = d.event(b, a, "response.output_item.done", `,"output_index":0,"item":`+d.item(a))
	status, details := d.status(a)
	return d.event(b, a, "response."+status, `,"response":`+d.object(a, status, details, d.output(a)))
}

func (responses) end(b []byte, _ *reply) []byte { return b }

func (d responses) fail(b []byte, a *reply, e *apiError) []byte {
	failure := `,"error":{"code":"server_error","message":` + quote(e.message) + `}`
	return d.event(b, a, "response.failed", `,"response":`+d.object(a, "failed", failure, "[]"))
}

// status says how an answer ended, and as a further member why.
func (responses) status(a *reply) (status, details string) {
	switch a.finish {
	case finishLength:
		return "incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`
	case finishFilter:
		return "incomplete", `,"incomplete_details":{"reason":"content_filter"}`
	}
	return "completed", ""
}

func (responses) object(a *reply, status, details, output string) string {
	usage := "null"
	if status != "in_progress" && a.usage() {
		usage = fmt.Sprintf(`{"input_tokens":%d,"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`,
			a.query.inputTokens, a.tokens, a.query.inputTokens+a.tokens)
	}
	return fmt.Sprintf(`{"id":%q,"object":"response","created_at":%d,"model":%s,"status":%q%s,"output":%s,"usage":%s}`,
		a.id, a.created.Unix(), quote(a.query.model), status, details, output, usage)
}

func (d responses) whole(h http.Header, a *reply) []byte {
	h.Set("Openai-Processing-Ms", millis(a.total()))
	status, details := d.status(a)
	return []byte(d.object(a, status, details, d.output(a)))
}
