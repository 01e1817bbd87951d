package wire

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"goodput_exporter/probe/stream"
)

// gemini is generateContent of the Gemini API, with an API key, or of Vertex AI, with OAuth.
// Source: the Gemini API's reference.
type gemini struct{ base *url.URL }

func newGemini(base *url.URL) Protocol { return gemini{base} }

func (p gemini) vertex() bool { return isVertex(p.base) }

// Traits implements Protocol. Nothing follows the finish but, at most, more of the same.
func (p gemini) Traits() Traits {
	if p.vertex() {
		return Traits{}
	}
	return Traits{KeyHeader: "x-goog-api-key"}
}

// URL implements Protocol. Without alt=sse the stream would be one JSON list.
func (p gemini) URL(r Request) *url.URL {
	base := *p.base
	publisher := "google"
	if !p.vertex() {
		publisher = ""
		if strings.Trim(base.Path, "/") == "" {
			base.Path = "/v1beta"
		}
	}
	u := vertexURL(&base, r, publisher, "generateContent", "streamGenerateContent")
	q := u.Query()
	q.Del("alt")
	if r.Stream {
		q.Set("alt", "sse")
	}
	u.RawQuery = q.Encode()
	return u
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text         string          `json:"text"`
	Thought      bool            `json:"thought,omitempty"`
	FunctionCall json.RawMessage `json:"functionCall,omitempty"`
	Code         json.RawMessage `json:"executableCode,omitempty"`
}

// Request implements Protocol.
func (gemini) Request(r Request, h http.Header) ([]byte, error) {
	system, messages := r.system()
	contents := make([]geminiContent, len(messages))
	for i, m := range messages {
		role := "user"
		if m.Role == "assistant" || m.Role == "model" {
			role = "model"
		}
		contents[i] = geminiContent{Role: role, Parts: []geminiPart{{Text: m.Content}}}
	}
	fields := map[string]any{"contents": contents}
	if system != "" {
		fields["systemInstruction"] = geminiContent{Parts: []geminiPart{{Text: system}}}
	}
	if n := r.limit(); n > 0 {
		fields["generationConfig"] = map[string]any{"maxOutputTokens": n}
	}
	return jsonBody(r, h, r.accept(eventStream), fields)
}

// Decoder implements Protocol.
func (gemini) Decoder(r Request) Decoder {
	shape := &shape{
		text: "text", skips: []string{"totalTokenCount", "createTime", "tokenCount"},
		counts: []string{"promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount"},
		usage:  new(geminiCounts).usage,
	}
	return &frameDecoder{tmpl: template{memory: r.Memory, shape: shape}, decode: decodeGemini}
}

// geminiCounts makes the usage of a template's counts.
type geminiCounts struct{ output int } // of the usage told last

type geminiDoc struct {
	Candidates []struct {
		Content      geminiContent `json:"content"`
		FinishReason string        `json:"finishReason"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	UsageMetadata *geminiUsage `json:"usageMetadata"`
}

type geminiUsage struct {
	Prompt     *int `json:"promptTokenCount"`
	Candidates *int `json:"candidatesTokenCount"`
	Thoughts   *int `json:"thoughtsTokenCount"`
	Cached     *int `json:"cachedContentTokenCount"`
}

func decodeGemini(f stream.Frame) (Event, error) {
	var doc geminiDoc
	if err := unmarshal(f.Data, &doc); err != nil {
		return Event{}, syntaxError(f.Data, err)
	}
	var ev Event
	if u := doc.UsageMetadata; u != nil {
		ev.Usage = u.usage(new(int))
	}
	if len(doc.Candidates) == 0 {
		ev.Error = ParseError(f.Data)
	}
	if reason := doc.PromptFeedback.BlockReason; reason != "" && reason != "BLOCK_REASON_UNSPECIFIED" {
		ev.Finish, ev.Filtered = reason, true
	}
	for _, c := range doc.Candidates {
		for _, p := range c.Content.Parts {
			p.addTo(&ev)
		}
		ev.finishGemini(c.FinishReason)
	}
	if f.Whole && ev.says() {
		ev.Answer, ev.Done = true, true
	}
	return ev, nil
}

func (c *geminiCounts) usage(counts []int, u *Usage) bool {
	told := geminiUsage{known(&counts[0]), known(&counts[1]), known(&counts[2]), known(&counts[3])}.usage(&c.output)
	if told != nil {
		*u = *told
	}
	return told != nil
}

// usage returns the report, nil where there is none. The output tokens are those of the answer and those of the
// thoughts; the sum is kept in output.
func (u geminiUsage) usage(output *int) *Usage {
	if u.Prompt == nil && u.Candidates == nil {
		return nil
	}
	told := &Usage{Input: u.Prompt, CachedInput: u.Cached, Reasoning: u.Thoughts}
	*output = 0
	for _, n := range []*int{u.Candidates, u.Thoughts} {
		if n != nil {
			*output += *n
			told.Output = output
		}
	}
	return told
}

func (p geminiPart) addTo(ev *Event) {
	switch {
	case present(p.FunctionCall) || present(p.Code):
		ev.Channels |= Tool
	case p.Thought && p.Text != "":
		ev.Channels |= Reasoning
	default:
		ev.addText(p.Text)
	}
}

// finishGemini takes a finish reason. The reasons of filters end the answer; so do calls that went wrong, which are
// the model's own failure to answer.
func (e *Event) finishGemini(reason string) {
	switch reason {
	case "", "FINISH_REASON_UNSPECIFIED":
		return
	case "MAX_TOKENS":
		e.Limited = true
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		e.Filtered = true
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE":
		e.Error = &Error{Status: http.StatusInternalServerError, Message: "finishReason " + reason}
	}
	e.Finish = reason
}
