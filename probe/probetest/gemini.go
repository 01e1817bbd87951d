package probetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// gemini is the Gemini API, and Gemini on Vertex AI.
type gemini struct{}

func (gemini) read(r *http.Request, body []byte) (*query, error) {
	var in struct {
		System   json.RawMessage `json:"systemInstruction"`
		Contents []struct {
			Parts json.RawMessage `json:"parts"`
		} `json:"contents"`
		GenerationConfig struct {
			MaxOutputTokens int `json:"maxOutputTokens"`
		} `json:"generationConfig"`
	}
	if err := unmarshal(body, &in); err != nil {
		return nil, err
	}
	model, method, _ := strings.Cut(r.PathValue("method"), ":")
	q := &query{model: model, stream: method == "streamGenerateContent", limit: in.GenerationConfig.MaxOutputTokens}
	switch {
	case !q.stream && method != "generateContent":
		return nil, fmt.Errorf("no such method: %q", method)
	case q.stream && r.URL.Query().Get("alt") != "sse":
		return nil, errors.New("only streams with alt=sse are simulated")
	}
	input := len(in.System)
	for _, c := range in.Contents {
		input += len(c.Parts)
	}
	return q.check(input)
}

// googleStatus gives Google's names of statuses.
var googleStatus = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusNotFound: "NOT_FOUND",
	http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusServiceUnavailable: "UNAVAILABLE",
}

// refuse tells the delay in the body, as Google does.
func (gemini) refuse(_ http.Header, e *apiError) []byte { return geminiError(e) }

func geminiError(e *apiError) []byte {
	fields := map[string]any{"code": e.status, "message": e.message, "status": cmp.Or(googleStatus[e.status], "INTERNAL")}
	if e.retryAfter > 0 {
		fields["details"] = []any{map[string]string{
			"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%gs", e.retryAfter.Seconds()),
		}}
	}
	return encode(map[string]any{"error": fields})
}

func (gemini) contentType() string                { return sseType }
func (gemini) frame(b []byte, data string) []byte { return sseEvent(b, "", data) }
func (gemini) ping(b []byte) []byte               { return sseComment(b) }
func (gemini) begin(b []byte, _ *reply) []byte    { return b }

func (d gemini) token(b []byte, a *reply, i int) []byte {
	return sseEvent(b, "", d.object(a, a.word(i), "", i+1))
}

var geminiFinish = map[string]string{
	finishStop: "STOP", finishLength: "MAX_TOKENS", finishFilter: "SAFETY", finishRefusal: "PROHIBITED_CONTENT",
}

func (d gemini) finish(b []byte, a *reply) []byte {
	return sseEvent(b, "", d.object(a, "", geminiFinish[a.finish], a.tokens))
}

func (gemini) end(b []byte, _ *reply) []byte { return b }

func (gemini) fail(b []byte, _ *reply, e *apiError) []byte {
	return sseEvent(b, "", string(geminiError(e)))
}

// object is a response: the only one, or one of a stream, with the usage so far.
func (gemini) object(a *reply, text, finish string, tokens int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"candidates":[{"content":{"parts":[{"text":%s}],"role":"model"}`, quote(text))
	if finish != "" {
		fmt.Fprintf(&b, `,"finishReason":%q`, finish)
	}
	b.WriteString(`,"index":0}]`)
	if a.usage() {
		fmt.Fprintf(&b, `,"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d}`,
			a.query.inputTokens, tokens, a.query.inputTokens+tokens)
	}
	fmt.Fprintf(&b, `,"modelVersion":%s,"responseId":%q}`, quote(a.query.model), a.id)
	return b.String()
}

func (d gemini) whole(_ http.Header, a *reply) []byte {
	return []byte(d.object(a, a.text(), geminiFinish[a.finish], a.tokens))
}
