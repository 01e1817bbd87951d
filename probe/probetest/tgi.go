package probetest

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

// tgi is the API of Text Generation Inference, which serves one model and does not name it.
type tgi struct{}

func (tgi) read(r *http.Request, body []byte) (*query, error) {
	var in struct {
		Inputs     string `json:"inputs"`
		Parameters struct {
			MaxNewTokens int `json:"max_new_tokens"`
		} `json:"parameters"`
	}
	if err := unmarshal(body, &in); err != nil {
		return nil, err
	}
	return (&query{anyModel: true, stream: strings.HasSuffix(r.URL.Path, "_stream"), limit: in.Parameters.MaxNewTokens}).check(len(in.Inputs))
}

// tgiErrors gives the types of errors, by status.
var tgiErrors = map[int]string{
	http.StatusBadRequest: "validation", http.StatusTooManyRequests: "overloaded", http.StatusServiceUnavailable: "unhealthy",
	http.StatusInternalServerError: "incomplete_generation",
}

func (d tgi) refuse(h http.Header, e *apiError) []byte {
	e.setRetryAfter(h)
	return []byte(d.errorBody(e))
}

func (tgi) errorBody(e *apiError) string {
	return fmt.Sprintf(`{"error":%s,"error_type":%q}`, quote(e.message), cmp.Or(tgiErrors[e.status], "unknown"))
}

func (tgi) contentType() string                { return sseType }
func (tgi) frame(b []byte, data string) []byte { return sseEvent(b, "", data) }
func (tgi) ping(b []byte) []byte               { return sseComment(b) }
func (tgi) begin(b []byte, _ *reply) []byte    { return b }

// token appends a token. The last one before a limit is the last event; else the end is a token of its own.
func (d tgi) token(b []byte, a *reply, i int) []byte {
	if a.finish == finishLength && i == a.tokens-1 {
		return d.event(b, a, i, a.word(i), false, true)
	}
	return d.event(b, a, i, a.word(i), false, false)
}

func (d tgi) finish(b []byte, a *reply) []byte {
	if a.finish == finishLength && a.tokens > 0 {
		return b
	}
	return d.event(b, a, a.tokens, "</s>", true, true)
}

func (d tgi) event(b []byte, a *reply, i int, text string, special, last bool) []byte {
	end := `"generated_text":null,"details":null`
	if last {
		end = `"generated_text":` + quote(a.text()) + `,"details":` + d.details(a)
	}
	return sseEvent(b, "", fmt.Sprintf(`{"index":%d,"token":{"id":%d,"text":%s,"logprob":-0.5,"special":%t},%s}`,
		i+1, i%len(words)+3, quote(text), special, end))
}

func (tgi) end(b []byte, _ *reply) []byte { return b }

func (d tgi) fail(b []byte, _ *reply, e *apiError) []byte { return sseEvent(b, "", d.errorBody(e)) }

// details tell the end. TGI has no filters.
func (tgi) details(a *reply) string {
	reason := "eos_token"
	if a.finish == finishLength {
		reason = "length"
	}
	if !a.usage() {
		return fmt.Sprintf(`{"finish_reason":%q,"seed":null}`, reason)
	}
	return fmt.Sprintf(`{"finish_reason":%q,"generated_tokens":%d,"input_length":%d,"seed":null}`, reason, a.tokens, a.query.inputTokens)
}

func (d tgi) whole(h http.Header, a *reply) []byte {
	h.Set("X-Total-Time", millis(a.total()))
	h.Set("X-Queue-Time", millis(a.queue))
	h.Set("X-Inference-Time", millis(a.ttft+a.decode))
	return []byte(`{"generated_text":` + quote(a.text()) + `,"details":` + d.details(a) + `}`)
}
