package probetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// openAI is OpenAI's chat completions, its completions, or Azure's chat completions.
type openAI struct{ chat, azure bool }

func (d openAI) read(r *http.Request, body []byte) (*query, error) {
	var in struct {
		Model         string          `json:"model"`
		Messages      contents        `json:"messages"`
		Prompt        json.RawMessage `json:"prompt"`
		Stream        bool            `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		MaxTokens           int  `json:"max_tokens"`
		MaxCompletionTokens int  `json:"max_completion_tokens"`
		MinTokens           int  `json:"min_tokens"`
		IgnoreEOS           bool `json:"ignore_eos"`
	}
	if err := unmarshal(body, &in); err != nil {
		return nil, err
	}
	q := &query{
		model: cmp.Or(r.PathValue("deployment"), in.Model), stream: in.Stream, usage: in.StreamOptions.IncludeUsage,
		limit: cmp.Or(in.MaxCompletionTokens, in.MaxTokens), minTokens: in.MinTokens, ignoreEOS: in.IgnoreEOS,
	}
	input := len(in.Prompt)
	if d.chat {
		input = in.Messages.bytes()
	}
	return q.check(input)
}

func (openAI) refuse(h http.Header, e *apiError) []byte { return openAIError(h, e) }

// openAIError is an error of any of OpenAI's APIs. Its code is a word where the status does not say all.
func openAIError(h http.Header, e *apiError) []byte {
	e.setRetryAfter(h)
	kind, code := "invalid_request_error", any(e.status)
	switch {
	case e.quota:
		kind, code = "insufficient_quota", "insufficient_quota"
	case e.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case e.status == http.StatusUnauthorized:
		code = "invalid_api_key"
	case e.status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	return encode(map[string]any{"error": map[string]any{"message": e.message, "type": kind, "param": nil, "code": code}})
}

func (openAI) contentType() string                { return sseType }
func (openAI) frame(b []byte, data string) []byte { return sseEvent(b, "", data) }
func (openAI) ping(b []byte) []byte               { return sseComment(b) }

// setHead sets what all objects of an answer begin with.
func (d openAI) setHead(a *reply, chat, text string) {
	object := text
	if d.chat {
		object = chat
	}
	a.head = fmt.Sprintf(`{"id":%q,"object":%q,"created":%d,"model":%s,`, a.id, object, a.created.Unix(), quote(a.query.model))
}

// begin appends the role, which servers send before there is a token.
func (d openAI) begin(b []byte, a *reply) []byte {
	d.setHead(a, "chat.completion.chunk", "text_completion")
	if d.azure {
		b = sseEvent(b, "", `{"id":"","object":"","created":0,"model":"","choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`)
	}
	if d.chat {
		b = d.chunk(b, a, `"delta":{"role":"assistant","content":""}`, "")
	}
	return b
}

func (d openAI) token(b []byte, a *reply, i int) []byte {
	switch {
	case !d.chat:
		return d.chunk(b, a, `"text":`+strconv.Quote(a.word(i)), "")
	case a.finish == finishRefusal:
		return d.chunk(b, a, `"delta":{"refusal":`+strconv.Quote(a.word(i))+`}`, "")
	}
	return d.chunk(b, a, `"delta":{"content":`+strconv.Quote(a.word(i))+`}`, "")
}

// reason gives the finish reason: a refusal is an ordinary end of chat, and completions know only the filter.
func (d openAI) reason(a *reply) string {
	switch {
	case a.finish != finishRefusal:
		return a.finish
	case d.chat:
		return "stop"
	}
	return "content_filter"
}

func (d openAI) finish(b []byte, a *reply) []byte {
	if d.chat {
		return d.chunk(b, a, `"delta":{}`, d.reason(a))
	}
	return d.chunk(b, a, `"text":""`, d.reason(a))
}

func (d openAI) end(b []byte, a *reply) []byte {
	if a.query.usage && a.usage() {
		b = sseEvent(b, "", a.head+`"choices":[],"usage":`+openAIUsage(a)+"}")
	}
	return sseEvent(b, "", "[DONE]")
}

func (openAI) fail(b []byte, _ *reply, e *apiError) []byte {
	b = sseEvent(b, "", string(openAIError(http.Header{}, e)))
	return sseEvent(b, "", "[DONE]")
}

// chunk appends an event with one choice. With usage asked for, all events have the member.
func (openAI) chunk(b []byte, a *reply, choice, finish string) []byte {
	b = append(b, "data: "...)
	b = append(b, a.head...)
	b = append(b, `"choices":[{"index":0,`...)
	b = append(b, choice...)
	b = append(b, `,"finish_reason":`...)
	if finish == "" {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendQuote(b, finish)
	}
	b = append(b, "}]"...)
	if a.query.usage {
		b = append(b, `,"usage":null`...)
	}
	return append(b, "}\n\n"...)
}

func (d openAI) whole(h http.Header, a *reply) []byte {
	h.Set("Openai-Processing-Ms", millis(a.total()))
	d.setHead(a, "chat.completion", "text_completion")
	choice := `"text":` + quote(a.text())
	switch {
	case d.chat && a.finish == finishRefusal:
		choice = `"message":{"role":"assistant","content":null,"refusal":` + quote(a.text()) + `}`
	case d.chat:
		choice = `"message":{"role":"assistant","content":` + quote(a.text()) + `}`
	}
	body := a.head + `"choices":[{"index":0,` + choice + `,"finish_reason":"` + d.reason(a) + `"}]`
	if a.usage() {
		body += `,"usage":` + openAIUsage(a)
	}
	return []byte(body + "}")
}

func openAIUsage(a *reply) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`,
		a.query.inputTokens, a.tokens, a.query.inputTokens+a.tokens)
}
