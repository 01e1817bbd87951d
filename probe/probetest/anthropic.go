package probetest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// anthropic is Anthropic's Messages API: its own, that of Vertex AI, whose path names the model, or that of Bedrock,
// whose streams are AWS event streams.
type anthropic struct{ aws bool }

func (d anthropic) read(r *http.Request, body []byte) (*query, error) {
	var in struct {
		Model     string          `json:"model"`
		System    json.RawMessage `json:"system"`
		Messages  contents        `json:"messages"`
		Stream    bool            `json:"stream"`
		MaxTokens int             `json:"max_tokens"`
	}
	if err := unmarshal(body, &in); err != nil {
		return nil, err
	}
	if in.MaxTokens == 0 {
		return nil, errors.New("max_tokens: field required")
	}
	q := &query{model: in.Model, stream: in.Stream, limit: in.MaxTokens}
	if method := r.PathValue("method"); method != "" {
		var operation string
		q.model, operation, _ = strings.Cut(method, ":")
		q.stream = q.stream || operation == "streamRawPredict"
	}
	if d.aws {
		q.model, q.stream = r.PathValue("model"), strings.HasSuffix(r.URL.Path, "-stream")
	}
	return q.check(len(in.System) + in.Messages.bytes())
}

// overloaded is Anthropic's own status.
const overloaded = 529

func (d anthropic) refuse(h http.Header, e *apiError) []byte {
	if d.aws {
		return awsError(h, e)
	}
	e.setRetryAfter(h)
	if e.status == http.StatusServiceUnavailable {
		e.status = overloaded
	}
	return []byte(d.errorBody(e))
}

// anthropicErrors gives the types of errors, by status.
var anthropicErrors = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
	http.StatusNotFound: "not_found_error", http.StatusTooManyRequests: "rate_limit_error", overloaded: "overloaded_error",
}

func (anthropic) errorBody(e *apiError) string {
	kind := cmp.Or(anthropicErrors[e.status], "api_error")
	if e.quota {
		kind = "billing_error"
	}
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_sim"}`, kind, quote(e.message))
}

func (d anthropic) contentType() string {
	if d.aws {
		return awsType
	}
	return sseType
}

func (d anthropic) frame(b []byte, data string) []byte { return d.event(b, "", data) }

// event appends an event: named, or in a chunk of AWS with the padding that hides its length.
func (d anthropic) event(b []byte, name, data string) []byte {
	if !d.aws {
		return sseEvent(b, name, data)
	}
	chunk := fmt.Sprintf(`{"bytes":%q,"p":%q}`, base64.StdEncoding.EncodeToString([]byte(data)), "abcdefghijklmnop"[:len(data)%16])
	return awsMessage(b, "event", "chunk", chunk)
}

func (d anthropic) ping(b []byte) []byte { return d.event(b, "ping", `{"type":"ping"}`) }

func (d anthropic) begin(b []byte, a *reply) []byte {
	b = d.event(b, "message_start", fmt.Sprintf(
		`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`,
		a.id, quote(a.query.model), a.query.inputTokens))
	b = d.event(b, "content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	return d.ping(b)
}

func (d anthropic) token(b []byte, a *reply, i int) []byte {
	return d.event(b, "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+quote(a.word(i))+`}}`)
}

// anthropicFinish has no word of its own for a filter, which is a refusal too.
var anthropicFinish = map[string]string{
	finishStop: "end_turn", finishLength: "max_tokens", finishFilter: "refusal", finishRefusal: "refusal",
}

func (d anthropic) finish(b []byte, a *reply) []byte {
	if a.events == 0 { // a finish that is told twice closes the block once
		b = d.event(b, "content_block_stop", `{"type":"content_block_stop","index":0}`)
	}
	a.events++
	usage := ""
	if a.usage() {
		usage = fmt.Sprintf(`,"usage":{"output_tokens":%d}`, a.tokens)
	}
	return d.event(b, "message_delta", fmt.Sprintf(
		`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null}%s}`, anthropicFinish[a.finish], usage))
}

func (d anthropic) end(b []byte, _ *reply) []byte {
	return d.event(b, "message_stop", `{"type":"message_stop"}`)
}

func (d anthropic) fail(b []byte, _ *reply, e *apiError) []byte {
	if d.aws {
		return awsException(b, e)
	}
	return d.event(b, "error", d.errorBody(e))
}

func (anthropic) whole(_ http.Header, a *reply) []byte {
	usage := ""
	if a.usage() {
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%d,"output_tokens":%d}`, a.query.inputTokens, a.tokens)
	}
	return fmt.Appendf(nil, `{"id":%q,"type":"message","role":"assistant","model":%s,"content":[{"type":"text","text":%s}],"stop_reason":%q,"stop_sequence":null%s}`,
		a.id, quote(a.query.model), quote(a.text()), anthropicFinish[a.finish], usage)
}
