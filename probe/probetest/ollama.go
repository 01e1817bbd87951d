package probetest

import (
	"fmt"
	"net/http"
	"time"
)

// ollama is Ollama's chat or its generate.
type ollama struct{ generate bool }

func (d ollama) read(_ *http.Request, body []byte) (*query, error) {
	var in struct {
		Model    string   `json:"model"`
		Prompt   string   `json:"prompt"`
		Messages contents `json:"messages"`
		Stream   *bool    `json:"stream"`
		Options  struct {
			NumPredict int `json:"num_predict"`
		} `json:"options"`
	}
	if err := unmarshal(body, &in); err != nil {
		return nil, err
	}
	input := in.Messages.bytes()
	if d.generate {
		input = len(in.Prompt)
	}
	return (&query{model: in.Model, stream: in.Stream == nil || *in.Stream, limit: in.Options.NumPredict}).check(input)
}

func (ollama) refuse(h http.Header, e *apiError) []byte {
	e.setRetryAfter(h)
	return encode(map[string]string{"error": e.message})
}

func (ollama) contentType() string                { return "application/x-ndjson" }
func (ollama) frame(b []byte, data string) []byte { return append(append(b, data...), '\n') }
func (ollama) ping(b []byte) []byte               { return append(b, '\n') }
func (ollama) begin(b []byte, _ *reply) []byte    { return b }

func (d ollama) token(b []byte, a *reply, i int) []byte {
	return d.frame(b, d.object(a, a.word(i), `,"done":false`))
}

// finish appends the last line. Ollama has no filters.
func (d ollama) finish(b []byte, a *reply) []byte { return d.frame(b, d.object(a, "", d.done(a))) }

// done are the members of the last line: why it ended, tokens, and times in nanoseconds.
func (ollama) done(a *reply) string {
	reason := "stop"
	if a.finish == finishLength {
		reason = "length"
	}
	const load = time.Millisecond
	members := fmt.Sprintf(`,"done":true,"done_reason":%q,"total_duration":%d,"load_duration":%d`, reason, a.total()+load, load)
	if a.usage() {
		members += fmt.Sprintf(`,"prompt_eval_count":%d,"prompt_eval_duration":%d,"eval_count":%d,"eval_duration":%d`,
			a.query.inputTokens, a.ttft, a.tokens, a.decode)
	}
	return members
}

func (d ollama) object(a *reply, text, rest string) string {
	content := `"message":{"role":"assistant","content":` + quote(text) + `}`
	if d.generate {
		content = `"response":` + quote(text)
	}
	return fmt.Sprintf(`{"model":%s,"created_at":%q,%s%s}`, quote(a.query.model), time.Now().UTC().Format(time.RFC3339Nano), content, rest)
}

func (ollama) end(b []byte, _ *reply) []byte { return b }

func (d ollama) fail(b []byte, _ *reply, e *apiError) []byte {
	return d.frame(b, string(encode(map[string]string{"error": e.message})))
}

func (d ollama) whole(_ http.Header, a *reply) []byte {
	return []byte(d.object(a, a.text(), d.done(a)))
}
