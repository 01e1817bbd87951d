package wire

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"goodput_exporter/probe/stream"
)

// ollama is Ollama's own POST /api/chat, or /api/generate where the URL says so. Source: Ollama's API reference.
type ollama struct {
	base     *url.URL
	generate bool
}

func newOllama(base *url.URL) Protocol {
	return ollama{base, strings.HasSuffix(strings.TrimRight(base.Path, "/"), "/api/generate")}
}

// Traits implements Protocol.
func (ollama) Traits() Traits { return Traits{Framing: stream.FramingNDJSON} }

// URL implements Protocol.
func (p ollama) URL(Request) *url.URL {
	if p.generate {
		return p.base
	}
	u := *p.base
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/api")
	return join(&u, "", "/api/chat")
}

// Request implements Protocol.
func (p ollama) Request(r Request, h http.Header) ([]byte, error) {
	fields := map[string]any{"model": r.Model, "stream": r.Stream}
	if p.generate {
		fields["prompt"] = r.text()
	} else {
		fields["messages"] = r.Messages
	}
	if n := r.limit(); n > 0 {
		fields["options"] = map[string]any{"num_predict": n}
	}
	return jsonBody(r, h, r.accept("application/x-ndjson"), fields)
}

// Decoder implements Protocol.
func (p ollama) Decoder(r Request) Decoder {
	key := "content"
	if p.generate {
		key = "response"
	}
	d := &frameDecoder{tmpl: template{memory: r.Memory, shape: &shape{text: key, skips: []string{"created_at"}}}}
	d.decode = func(f stream.Frame) (Event, error) { return decodeOllama(f, d.streamed) }
	return d
}

type ollamaDoc struct {
	Message struct {
		Content   string          `json:"content"`
		Thinking  string          `json:"thinking"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	} `json:"message"`
	Response   string          `json:"response"`
	Thinking   string          `json:"thinking"`
	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason"`
	Error      json.RawMessage `json:"error"`

	PromptEvalCount    *int  `json:"prompt_eval_count"` // left out when it is 0
	EvalCount          *int  `json:"eval_count"`
	TotalDuration      int64 `json:"total_duration"` // nanoseconds, as all durations
	LoadDuration       int64 `json:"load_duration"`
	PromptEvalDuration int64 `json:"prompt_eval_duration"`
	EvalDuration       int64 `json:"eval_duration"`
}

// decodeOllama decodes a line. streamed: a line before it brought generated matter.
func decodeOllama(f stream.Frame, streamed bool) (Event, error) {
	var doc ollamaDoc
	if err := unmarshal(f.Data, &doc); err != nil {
		return Event{}, syntaxError(f.Data, err)
	}
	var ev Event
	ev.addText(doc.Message.Content + doc.Response)
	if doc.Message.Thinking != "" || doc.Thinking != "" {
		ev.Channels |= Reasoning
	}
	if present(doc.Message.ToolCalls) {
		ev.Channels |= Tool
	}
	if present(doc.Error) {
		ev.Error = ParseError(f.Data)
	}
	if doc.Done {
		ev.Done, ev.Finish = true, doc.DoneReason
		// The end of a stream brings nothing new: all that there is and the end in one line is an answer that is whole.
		ev.Answer = f.Whole || ev.Channels != 0 && !streamed
		ev.Limited = doc.DoneReason == "length"
		if doc.EvalCount != nil {
			ev.Usage = &Usage{Input: doc.PromptEvalCount, Output: doc.EvalCount}
		}
		ev.Server = serverTimes(map[ServerKind]time.Duration{
			ServerTotal: time.Duration(doc.TotalDuration), ServerLoad: time.Duration(doc.LoadDuration),
			ServerPrefill: time.Duration(doc.PromptEvalDuration), ServerDecode: time.Duration(doc.EvalDuration),
		})
	}
	return ev, nil
}
