package wire

import (
	"net/http"
	"net/url"
	"strings"
)

// openAICompletions is the older POST /v1/completions: one prompt, no roles.
type openAICompletions struct{}

// Request implements Protocol. The messages become one text: their contents, a blank line between them.
func (openAICompletions) Request(r Request, h http.Header) ([]byte, error) {
	texts := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		texts[i] = m.Content
	}
	return openAIBody(r, h, map[string]any{"prompt": strings.Join(texts, "\n\n")})
}

// URL implements Protocol. "/chat/completions" ends like "/completions", but is the other protocol's.
func (openAICompletions) URL(base *url.URL, _ Request) *url.URL {
	u := *base
	if head, ok := strings.CutSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"); ok {
		u.Path = head + "/completions"
	}
	return join(&u, "/v1", "/completions")
}

// Decoder implements Protocol.
func (openAICompletions) Decoder() Decoder {
	return newOpenAIDecoder("text")
}
