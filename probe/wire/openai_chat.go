package wire

import (
	"net/http"
	"net/url"
)

// openAIChat is POST /v1/chat/completions.
type openAIChat struct{ base *url.URL }

func newOpenAIChat(base *url.URL) Protocol { return openAIChat{base} }

// Traits implements Protocol.
func (openAIChat) Traits() Traits { return Traits{Sentinel: true} }

// URL implements Protocol.
func (p openAIChat) URL(Request) *url.URL { return join(p.base, "/v1", "/chat/completions") }

// Request implements Protocol.
func (openAIChat) Request(r Request, h http.Header) ([]byte, error) {
	return openAIBody(r, h, "messages", r.Messages)
}

// Decoder implements Protocol.
func (openAIChat) Decoder(r Request) Decoder { return newOpenAIDecoder(openAIContent, r.Memory) }
