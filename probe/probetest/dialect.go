package probetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// dialect is how one API reads requests, and writes errors and whole answers. One file an API.
type dialect interface {
	// read reads a request. Its error is the client's fault.
	read(r *http.Request, body []byte) (*query, error)
	// refuse returns the body of an error, sets the headers that go with it, and may give it another status.
	refuse(h http.Header, e *apiError) []byte
	// whole returns an answer in one piece, and sets the headers that go with it.
	whole(h http.Header, a *reply) []byte
}

// streamer is a dialect whose answers can be streams. Its methods append to what is written next.
type streamer interface {
	dialect
	contentType() string
	frame(b []byte, data string) []byte // anything, framed as an event
	ping(b []byte) []byte               // a sign of life
	begin(b []byte, a *reply) []byte
	token(b []byte, a *reply, i int) []byte
	finish(b []byte, a *reply) []byte            // why it ended, and what else belongs to that
	end(b []byte, a *reply) []byte               // what follows
	fail(b []byte, a *reply, e *apiError) []byte // an error in the midst, and what follows
}

// route is one API, and where it is served.
type route struct {
	protocol string // as the configuration names it
	patterns []string
	dialect  dialect
}

const (
	vertexModels = "/v1/projects/{project}/locations/{location}/publishers/"
	jsonType     = "application/json"
	sseType      = "text/event-stream"
)

// routes is the table of APIs.
var routes = []route{
	{"openai-chat", []string{"/v1/chat/completions"}, openAI{chat: true}},
	{"openai-completions", []string{"/v1/completions"}, openAI{}},
	{"azure-openai", []string{"/openai/deployments/{deployment}/chat/completions", "/openai/v1/chat/completions"}, openAI{chat: true, azure: true}},
	{"openai-responses", []string{"/v1/responses"}, responses{}},
	{"openai-embeddings", []string{"/v1/embeddings"}, embeddings{}},
	{"anthropic-messages", []string{"/v1/messages", vertexModels + "anthropic/models/{method...}"}, anthropic{}},
	{"anthropic-messages", []string{"/model/{model}/invoke", "/model/{model}/invoke-with-response-stream"}, anthropic{aws: true}},
	{"bedrock-converse", []string{"/model/{model}/converse", "/model/{model}/converse-stream"}, converse{}},
	{"gemini", []string{"/v1beta/models/{method...}", vertexModels + "google/models/{method...}"}, gemini{}},
	{"ollama", []string{"/api/chat"}, ollama{}},
	{"ollama", []string{"/api/generate"}, ollama{generate: true}},
	{"tgi", []string{"/generate", "/generate_stream"}, tgi{}},
	{"cohere", []string{"/v2/chat"}, cohere{}},
	{"rerank", []string{"/v1/rerank", "/v2/rerank"}, rerank{}},
	{"rerank", []string{"/rerank"}, rerank{tei: true}},
}

// Base is an URL by which a client of a protocol reaches a model of an endpoint.
type Base struct {
	Protocol string
	Via      string // whose way of serving the protocol; "" where there is but one
	URL      string
}

// Bases lists the URLs of a model, protocol by protocol. root is the endpoint's URL without a path.
func Bases(root, model string) []Base {
	const vertex = "/v1/projects/p/locations/l"
	return []Base{
		{"openai-chat", "", root + "/v1"},
		{"openai-completions", "", root + "/v1"},
		{"openai-responses", "", root + "/v1"},
		{"openai-embeddings", "", root + "/v1"},
		{"azure-openai", "deployment", root},
		{"azure-openai", "v1", root + "/openai/v1"},
		{"anthropic-messages", "", root + "/v1"},
		{"anthropic-messages", "Vertex", root + vertex},
		{"anthropic-messages", "Bedrock", root + "/model/" + url.PathEscape(model)},
		{"bedrock-converse", "", root},
		{"gemini", "", root},
		{"gemini", "Vertex", root + vertex},
		{"ollama", "chat", root},
		{"ollama", "generate", root + "/api/generate"},
		{"tgi", "", root},
		{"cohere", "", root},
		{"rerank", "", root + "/v1"},
		{"rerank", "TEI", root + "/rerank"},
	}
}

// query is a request of any API.
type query struct {
	protocol string
	model    string
	anyModel bool // the API has no way to name one
	stream   bool
	limit    int // the most tokens that the client wants; 0 is no limit

	minTokens int
	ignoreEOS bool // the model may not end before the limit
	usage     bool // a stream reports usage
	base64    bool // vectors are wanted so

	tokenless   bool // the answer has none
	items       int  // things to embed or to rank
	inputTokens int
}

// check completes a request whose input has that many bytes.
func (q *query) check(input int) (*query, error) {
	switch {
	case input == 0:
		return nil, errors.New("the input is missing")
	case q.limit < 0 || q.minTokens < 0:
		return nil, errors.New("a number of tokens cannot be negative")
	}
	const bytesPerToken = 4 // of English
	q.inputTokens = (input + bytesPerToken - 1) / bytesPerToken
	return q, nil
}

// unmarshal reads the JSON of a request.
func unmarshal(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the body is no request: %w", err)
	}
	return nil
}

// contents is a list of messages, of which only the length matters.
type contents []struct {
	Content json.RawMessage `json:"content"`
}

func (c contents) bytes() int {
	n := 0
	for _, m := range c {
		n += len(m.Content)
	}
	return n
}

// reply is all that there is to say of one answer.
type reply struct {
	query   *query
	id      string
	created time.Time
	tokens  int
	finish  string // finishStop, ...
	fault   FaultKind
	rng     *rand.Rand

	head   string // what all events have in common, where the dialect has such a thing
	events int    // so far, where the dialect numbers them

	// The server's own times, so far.
	queue, ttft, decode time.Duration
}

// usage reports whether the answer is to report usage.
func (a *reply) usage() bool { return a.fault != FaultUsageMissing }

func (a *reply) total() time.Duration { return a.queue + a.ttft + a.decode }

var words = []string{" moss", " fern", " kelp", " oak", " reef", " dune", " silt", " pine", " ash", " elm", " jade", " opal"}

// word is the i-th token of any answer.
func word(i int) string { return words[i%len(words)] }

// word is the i-th token of this answer.
func (a *reply) word(i int) string {
	if a.fault == FaultStuck {
		i = 0
	}
	return word(i)
}

// text is all tokens.
func (a *reply) text() string {
	var text []byte
	for i := range a.tokens {
		text = append(text, a.word(i)...)
	}
	return string(text)
}

// sseEvent appends a server-sent event; name "" is none.
func sseEvent(b []byte, name, data string) []byte {
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}

func sseComment(b []byte) []byte { return append(b, ": ping\n\n"...) }

// setRetryAfter sets the header that asks a client to wait.
func (e *apiError) setRetryAfter(h http.Header) {
	if e.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(e.retryAfter/time.Second)))
	}
}

// quote returns a JSON string.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// encode returns JSON of what can be nothing but JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a value of our own making
	}
	return b
}

// millis returns milliseconds as a header has them.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
