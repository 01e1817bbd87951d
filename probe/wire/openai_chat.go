package wire

import (
	"net/http"
	"net/url"
)

// openAIChat is POST /v1/chat/completions.
type openAIChat struct{}

// Request implements Protocol.
func (openAIChat) Request(r Request, h http.Header) ([]byte, error) {
	return openAIBody(r, h, map[string]any{"messages": r.Messages})
}

// URL implements Protocol.
func (openAIChat) URL(base *url.URL, _ Request) *url.URL {
	return join(base, "/v1", "/chat/completions")
}

// Decoder implements Protocol.
func (openAIChat) Decoder() Decoder {
	return newOpenAIDecoder("content")
}
