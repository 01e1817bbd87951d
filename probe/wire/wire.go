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

// Protocol is one way to ask for generated text.
type Protocol interface {
	// Request returns the HTTP request's body, and sets what headers it needs. The transport adds credentials.
	Request(r Request, h http.Header) ([]byte, error)
	// URL completes a base URL to the endpoint's; the endpoint's own URL it leaves alone.
	URL(base *url.URL, r Request) *url.URL
	// Decoder returns a decoder for one response, streamed or whole.
	Decoder() Decoder
}

// protocols is the table of protocols.
var protocols = map[string]Protocol{
	"openai-chat":        openAIChat{},
	"openai-completions": openAICompletions{},
}

// Lookup returns the protocol of that name.
func Lookup(name string) (Protocol, error) {
	if p, ok := protocols[name]; ok {
		return p, nil
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
	Done     bool    // nothing more can come: the protocol's sentinel, or the end of a whole answer
	Answer   bool    // a whole answer, not a part of a stream
	Usage    *Usage
	Error    *Error // an error told inside the body
}

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
