package wire

import (
	"net/http"
	"net/url"
	"strings"
)

// openAICompletions is the older POST /v1/completions: one prompt, no roles.
type openAICompletions struct{ base *url.URL }

func newOpenAICompletions(base *url.URL) Protocol { return openAICompletions{base} }

// Traits implements Protocol.
func (openAICompletions) Traits() Traits { return Traits{Sentinel: true} }

// URL implements Protocol. "/chat/completions" ends like "/completions", but is the other protocol's.
func (p openAICompletions) URL(Request) *url.URL {
	u := *p.base
	if head, ok := strings.CutSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"); ok {
		u.Path = head + "/completions"
	}
	return join(&u, "/v1", "/completions")
}

// Request implements Protocol.
func (openAICompletions) Request(r Request, h http.Header) ([]byte, error) {
	return openAIBody(r, h, "prompt", r.text())
}

// Decoder implements Protocol.
func (openAICompletions) Decoder(r Request) Decoder { return newOpenAIDecoder(openAIText, r.Memory) }
