package probetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// converse is Bedrock's Converse and ConverseStream.
type converse struct{}

func (converse) read(r *http.Request, body []byte) (*query, error) {
	var in struct {
		System          json.RawMessage `json:"system"`
		Messages        contents        `json:"messages"`
		InferenceConfig struct {
			MaxTokens int `json:"maxTokens"`
		} `json:"inferenceConfig"`
	}
	if err := unmarshal(body, &in); err != nil {
		return nil, err
	}
	q := &query{
		model: r.PathValue("model"), stream: strings.HasSuffix(r.URL.Path, "-stream"), limit: in.InferenceConfig.MaxTokens,
	}
	return q.check(len(in.System) + in.Messages.bytes())
}

func (converse) refuse(h http.Header, e *apiError) []byte { return awsError(h, e) }

const awsType = "application/vnd.amazon.eventstream"

// awsErrors gives the types of errors, by status.
var awsErrors = map[int]string{
	http.StatusBadRequest: "ValidationException", http.StatusForbidden: "AccessDeniedException",
	http.StatusNotFound: "ResourceNotFoundException", http.StatusTooManyRequests: "ThrottlingException",
	http.StatusServiceUnavailable: "ServiceUnavailableException",
}

// awsError is an error of AWS, whose type stands in a header.
func awsError(h http.Header, e *apiError) []byte {
	e.setRetryAfter(h)
	if e.status == http.StatusUnauthorized {
		e.status = http.StatusForbidden
	}
	h.Set("X-Amzn-Errortype", cmp.Or(awsErrors[e.status], "InternalServerException"))
	return encode(map[string]string{"message": e.message})
}

// awsMessage appends a message of an event stream, with its checksums.
func awsMessage(b []byte, kind, name, payload string) []byte {
	m := eventstream.Message{Payload: []byte(payload)}
	m.Headers.Set(":message-type", eventstream.StringValue(kind))
	m.Headers.Set(":"+kind+"-type", eventstream.StringValue(name))
	m.Headers.Set(":content-type", eventstream.StringValue(jsonType))
	buf := bytes.NewBuffer(b)
	if err := eventstream.NewEncoder().Encode(buf, m); err != nil {
		panic(err) // no header and no payload of ours is too long
	}
	return buf.Bytes()
}

// awsException appends the end of a stream that failed.
func awsException(b []byte, e *apiError) []byte {
	return awsMessage(b, "exception", "internalServerException", string(encode(map[string]string{"message": e.message})))
}

func (converse) contentType() string { return awsType }
func (converse) frame(b []byte, data string) []byte {
	return awsMessage(b, "event", "contentBlockDelta", data)
}
func (converse) ping(b []byte) []byte { return awsMessage(b, "event", "ping", "{}") }

func (converse) begin(b []byte, _ *reply) []byte {
	return awsMessage(b, "event", "messageStart", `{"p":"abcd","role":"assistant"}`)
}

func (converse) token(b []byte, a *reply, i int) []byte {
	return awsMessage(b, "event", "contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":0,"delta":{"text":%s},"p":%q}`,
		quote(a.word(i)), "abcdefghijklmnop"[:i%16]))
}

var converseFinish = map[string]string{
	finishStop: "end_turn", finishLength: "max_tokens", finishFilter: "content_filtered", finishRefusal: "guardrail_intervened",
}

func (converse) finish(b []byte, a *reply) []byte {
	if a.events == 0 { // a finish that is told twice closes the block once
		b = awsMessage(b, "event", "contentBlockStop", `{"contentBlockIndex":0,"p":"ab"}`)
	}
	a.events++
	return awsMessage(b, "event", "messageStop", fmt.Sprintf(`{"p":"abc","stopReason":%q}`, converseFinish[a.finish]))
}

func (d converse) end(b []byte, a *reply) []byte {
	return awsMessage(b, "event", "metadata", `{`+d.metadata(a)+`,"p":"abcde"}`)
}

// metadata are what stands behind an answer.
func (converse) metadata(a *reply) string {
	metrics := fmt.Sprintf(`"metrics":{"latencyMs":%d}`, a.total().Milliseconds())
	if !a.usage() {
		return metrics
	}
	return metrics + fmt.Sprintf(`,"usage":{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d}`,
		a.query.inputTokens, a.tokens, a.query.inputTokens+a.tokens)
}

func (converse) fail(b []byte, _ *reply, e *apiError) []byte { return awsException(b, e) }

func (d converse) whole(_ http.Header, a *reply) []byte {
	return fmt.Appendf(nil, `{"output":{"message":{"role":"assistant","content":[{"text":%s}]}},"stopReason":%q,%s}`,
		quote(a.text()), converseFinish[a.finish], d.metadata(a))
}
