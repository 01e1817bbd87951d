// Package wire knows the protocols: a request out, frames in, events up. One file a protocol, one line a protocol
// in the table below.
package wire

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe/stream"
)

// Protocol is one way to ask one endpoint for an answer.
type Protocol interface {
	Traits() Traits
	// URL is the endpoint's for a request.
	URL(r Request) *url.URL
	// Request returns the HTTP request's body, and sets what headers it needs. The transport adds credentials.
	Request(r Request, h http.Header) ([]byte, error)
	// Decoder returns a decoder for the response to one request, streamed or whole.
	Decoder(r Request) Decoder
}

// Traits are the facts of a protocol that others must know.
type Traits struct {
	Framing   stream.Framing // of its streams
	Tokenless bool           // its answers are vectors or scores: whole, without tokens
	Sentinel  bool           // more than the finish ends a stream: a missing sentinel is worth a flag
	KeyHeader string         // the header of an API key; "" is "Authorization: Bearer"
}

// Signer is a protocol whose requests are signed, after everything else about them is settled.
type Signer interface {
	Sign(req *http.Request, body []byte) error
}

// protocols is the table of protocols: each is made for the base URL or the full URL of an endpoint.
var protocols = map[string]func(base *url.URL) Protocol{
	"anthropic-messages": newAnthropic,
	"azure-openai":       newAzure,
	"bedrock-converse":   newBedrockConverse,
	"cohere":             newCohere,
	"gemini":             newGemini,
	"ollama":             newOllama,
	"openai-chat":        newOpenAIChat,
	"openai-completions": newOpenAICompletions,
	"openai-embeddings":  newEmbeddings,
	"openai-responses":   newResponses,
	"rerank":             newRerank,
	"tgi":                newTGI,
}

// New returns the protocol of that name for an endpoint.
func New(name string, base *url.URL) (Protocol, error) {
	if p, ok := protocols[name]; ok {
		return p(base), nil
	}
	return nil, fmt.Errorf("unknown protocol %q: it must be one of %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of all protocols, sorted.
func Names() []string { return slices.Sorted(maps.Keys(protocols)) }

// Request is what a probe asks, free of protocol.
type Request struct {
	Model          string
	Messages       []config.Message
	Stream         bool
	MaxTokens      int    // a ceiling; 0 is none
	OutputTokens   int    // a pinned length; 0 is none
	MaxTokensField string // the name of the limit's field, where the protocol has more than one
	Extra          map[string]any
	Memory         *Memory // of the series; nil: each answer is new
}

// Decoder turns the frames of one response into events.
type Decoder interface {
	// Decode returns what a frame says. ErrMalformed says that the frame is not of the protocol, ErrCut that it
	// would be if it went on.
	Decode(f stream.Frame) (Event, error)
}

// Errors of Decode.
var (
	ErrMalformed = errors.New("not of the protocol")
	ErrCut       = errors.New("ends in the midst of a JSON value")
	ErrCheck     = errors.New("not what an answer must be") // of the protocol, but of no use
)

// Channel is where generated matter goes.
type Channel uint8

// The channels. An event can have matter in several.
const (
	Content Channel = 1 << iota
	Reasoning
	Refusal
	Tool
)

// Event is what one frame says. Its zero value says nothing: a comment, a role, a null.
type Event struct {
	Channels Channel // with generated matter; 0: this is no token event
	Text     []byte  // visible text; valid until the next frame
	Finish   string  // why the answer ended, as the server says it; "" while it goes on
	Limited  bool    // Finish says: by the token limit
	Filtered bool    // Finish says: by a content filter
	Refused  bool    // Finish says: the model refused
	Done     bool    // nothing more can come: the protocol's sentinel, or the end of a whole answer
	Answer   bool    // a whole answer, not a part of a stream
	Usage    *Usage
	Error    *Error // an error told inside the body
	Server   []ServerTime

	Tokenless bool // a whole answer that by its nature has no tokens
}

// ServerTime is a time that the server measured itself.
type ServerTime struct {
	Kind ServerKind
	Took time.Duration
}

// ServerKind says what a server measured.
type ServerKind string

// The kinds of server times.
const (
	ServerTTFT    ServerKind = "ttft"    // to the first token
	ServerQueue   ServerKind = "queue"   // waiting to be served
	ServerPrefill ServerKind = "prefill" // reading the prompt
	ServerDecode  ServerKind = "decode"  // making the tokens
	ServerLoad    ServerKind = "load"    // loading the model
	ServerTotal   ServerKind = "total"   // all of it
)

// ServerKinds lists the kinds of server times, in the order of the documentation.
var ServerKinds = []ServerKind{ServerTTFT, ServerQueue, ServerPrefill, ServerDecode, ServerLoad, ServerTotal}

// Usage is the server's report of tokens. What it does not report is nil.
type Usage struct {
	Input, Output, CachedInput, Reasoning *int
}

// known returns a count that a template holds, nil where it is not in the frame.
func known(n *int) *int {
	if *n < 0 {
		return nil
	}
	return n
}

// Error is an error that a server told in a body.
type Error struct {
	Status     int // the HTTP status that says the same; 0 where nothing tells
	Quota      bool
	Overloaded bool
	Filtered   bool
	Message    string
	RetryAfter *time.Duration
}

// join completes a base URL by an endpoint's path, unless the URL has it already. A base without any path gets the
// version too: "https://host" and "https://host/v1" both become "https://host/v1/chat/completions".
func join(base *url.URL, version, path string) *url.URL {
	u := *base
	u.RawPath = ""
	trimmed := strings.TrimRight(u.Path, "/")
	switch {
	case strings.HasSuffix(trimmed, path):
	case trimmed == "":
		u.Path = version + path
	default:
		u.Path = trimmed + path
	}
	return &u
}
