package probetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// query is a request of either API.
type query struct {
	Model    string `json:"model"`
	Messages []struct {
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int  `json:"max_tokens"`
	MaxCompletionTokens int  `json:"max_completion_tokens"`
	MinTokens           int  `json:"min_tokens"`
	IgnoreEOS           bool `json:"ignore_eos"`

	chat        bool
	inputTokens int
}

// maxQuery bounds the body of a request, in bytes.
const maxQuery = 16 << 20

func readQuery(w http.ResponseWriter, r *http.Request, chat bool) (*query, error) {
	q := &query{chat: chat}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuery))
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	if err := json.Unmarshal(body, q); err != nil {
		return nil, fmt.Errorf("the body is no request: %w", err)
	}
	input := len(q.Prompt)
	for _, m := range q.Messages {
		input += len(m.Content)
	}
	switch {
	case input == 0 && chat:
		return nil, errors.New("messages are missing")
	case input == 0:
		return nil, errors.New("prompt is missing")
	case q.limit() < 0 || q.MinTokens < 0:
		return nil, errors.New("max_tokens and min_tokens cannot be negative")
	}
	const bytesPerToken = 4 // of English
	q.inputTokens = (input + bytesPerToken - 1) / bytesPerToken
	return q, nil
}

// limit is the most tokens that the client wants; 0 is no limit.
func (q *query) limit() int {
	if q.MaxCompletionTokens != 0 {
		return q.MaxCompletionTokens
	}
	return q.MaxTokens
}

// openAIAnswer answers one request.
type openAIAnswer struct {
	model  *Model
	open   *atomic.Int64 // requests being answered by the whole endpoint
	w      http.ResponseWriter
	r      *http.Request
	query  *query
	plan   plan
	served *Served
	at     time.Time // when the next token is due
	head   string    // the beginning that all objects of the answer have in common
	buf    []byte    // the next write
}

func (a *openAIAnswer) run() {
	a.at = time.Now().Add(a.plan.ttft)
	if a.query.Stream {
		a.stream()
	} else {
		a.whole()
	}
}

func (a *openAIAnswer) begin(contentType, object string) {
	a.w.Header().Set("Content-Type", contentType)
	a.head = fmt.Sprintf(`{"id":"sim-%d","object":%q,"created":%d,"model":%q,`,
		a.served.Received.UnixNano(), object, a.served.Received.Unix(), a.query.Model)
}

// cut is after how many tokens the fault strikes; -1 is never.
func (a *openAIAnswer) cut() int {
	switch a.plan.fault.Kind {
	case FaultInBand, FaultTruncated, FaultReset, FaultStall:
		return half(a.plan.tokens)
	case FaultNoFirstToken:
		return 0
	}
	return -1
}

// wait returns false when the client is gone.
func (a *openAIAnswer) wait() bool {
	return waitUntil(a.r.Context().Done(), a.at, precisionFor(int(a.open.Load())))
}

func (a *openAIAnswer) stream() {
	object := "text_completion"
	if a.query.chat {
		object = "chat.completion.chunk"
	}
	a.begin("text/event-stream", object)
	if a.query.chat { // servers send the role before there is a token
		a.chunk(`"delta":{"role":"assistant","content":""}`, "")
	}
	a.flush()
	for i := range a.plan.tokens {
		if i == a.cut() {
			a.strike()
			return
		}
		if !a.wait() {
			return
		}
		if a.query.chat {
			a.chunk(`"delta":{"content":`+strconv.Quote(word(i))+`}`, "")
		} else {
			a.chunk(`"text":`+strconv.Quote(word(i)), "")
		}
		a.flushTokens(1)
		a.at = a.at.Add(seconds(draw(a.model.Gap, a.plan.rng, 0)))
	}
	if a.cut() >= 0 { // a single token, or none: the fault comes after it
		a.strike()
		return
	}
	if a.query.chat {
		a.chunk(`"delta":{}`, a.plan.finish)
	} else {
		a.chunk(`"text":""`, a.plan.finish)
	}
	if a.query.StreamOptions.IncludeUsage {
		a.buf = append(a.buf, "data: "+a.head+`"choices":[],"usage":`+a.usage()+"}\n\n"...)
	}
	a.buf = append(a.buf, "data: [DONE]\n\n"...)
	a.flush()
}

// strike is the fault itself, half-way in an answer.
func (a *openAIAnswer) strike() {
	switch a.plan.fault.Kind {
	case FaultInBand:
		a.buf = append(a.buf, "data: "+inBandError+"\n\ndata: [DONE]\n\n"...)
		a.flush()
	case FaultReset:
		if c := connOf(a.r); c != nil {
			c.reset()
		}
		panic(http.ErrAbortHandler)
	case FaultStall, FaultNoFirstToken:
		<-a.r.Context().Done()
	}
}

const inBandError = `{"error":{"message":"simulated fault: in band","type":"server_error","param":null,"code":500}}`

// whole answers with one JSON object when its last token is due.
func (a *openAIAnswer) whole() {
	object := "text_completion"
	if a.query.chat {
		object = "chat.completion"
	}
	a.begin("application/json", object)
	for range a.plan.tokens - 1 {
		a.at = a.at.Add(seconds(draw(a.model.Gap, a.plan.rng, 0)))
	}
	body := a.head + `"choices":[{"index":0,` + a.text() + `,"finish_reason":"` + a.plan.finish + `"}],"usage":` + a.usage() + "}"
	length, tokens := len(body), 0
	switch a.plan.fault.Kind {
	case FaultInBand:
		body = inBandError
		length = len(body)
	case FaultTruncated: // a server that believes that this is all
		body = body[:len(body)/2]
		length = len(body)
	case FaultReset, FaultStall:
		body = body[:len(body)/2]
	case FaultNoFirstToken:
		body = ""
	default:
		tokens = a.plan.tokens
	}
	if !a.wait() {
		return
	}
	a.w.Header().Set("Content-Length", strconv.Itoa(length))
	a.buf = append(a.buf, body...)
	a.flushTokens(tokens)
	if a.plan.fault.Kind != FaultInBand {
		a.strike()
	}
}

// text is the member of a choice that holds the answer.
func (a *openAIAnswer) text() string {
	var text []byte
	for i := range a.plan.tokens {
		text = append(text, word(i)...)
	}
	if a.query.chat {
		return `"message":{"role":"assistant","content":` + strconv.Quote(string(text)) + `}`
	}
	return `"text":` + strconv.Quote(string(text))
}

func (a *openAIAnswer) usage() string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`,
		a.query.inputTokens, a.plan.tokens, a.query.inputTokens+a.plan.tokens)
}

// chunk adds an event with one choice to the next write. With usage asked for, all events have the member.
func (a *openAIAnswer) chunk(choice, finish string) {
	a.buf = append(a.buf, "data: "...)
	a.buf = append(a.buf, a.head...)
	a.buf = append(a.buf, `"choices":[{"index":0,`+choice+`,"finish_reason":`...)
	if finish == "" {
		a.buf = append(a.buf, "null"...)
	} else {
		a.buf = strconv.AppendQuote(a.buf, finish)
	}
	a.buf = append(a.buf, "}]"...)
	if a.query.StreamOptions.IncludeUsage {
		a.buf = append(a.buf, `,"usage":null`...)
	}
	a.buf = append(a.buf, "}\n\n"...)
}

// flushTokens is flush of a write that holds tokens; the truth remembers the instant just before it.
func (a *openAIAnswer) flushTokens(n int) {
	a.served.OutputTokens += n
	a.served.Writes = append(a.served.Writes, time.Now())
	a.flush()
}

// flush makes one write. Its errors are those of a client that is gone, which wait tells.
func (a *openAIAnswer) flush() {
	_, _ = a.w.Write(a.buf)
	_ = http.NewResponseController(a.w).Flush()
	a.buf = a.buf[:0]
}

var words = []string{" moss", " fern", " kelp", " oak", " reef", " dune", " silt", " pine", " ash", " elm", " jade", " opal"}

// word is the i-th token of any answer.
func word(i int) string { return words[i%len(words)] }

func writeError(w http.ResponseWriter, status int, kind, message string) {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": nil}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (h *handler) list(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	data := []entry{}
	for _, m := range h.config.Models {
		data = append(data, entry{ID: m.Name, Object: "model", Created: h.started.Unix(), OwnedBy: "probetest"})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}
