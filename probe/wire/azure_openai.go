package wire

import (
	"net/http"
	"net/url"
	"strings"
)

// azure is Azure OpenAI: chat completions of a deployment, or those of the newer surface that is OpenAI's own. A key
// goes into the header api-key; Entra's tokens are bearer tokens (http.oauth2 or http.authorization).
// Source: Azure OpenAI's REST reference.
type azure struct{ base *url.URL }

func newAzure(base *url.URL) Protocol { return azure{base} }

// azureAPIVersion is the version of the deployments' API that is asked for where the URL names none.
const azureAPIVersion = "2024-10-21"

// Traits implements Protocol.
func (azure) Traits() Traits { return Traits{Sentinel: true, KeyHeader: "api-key"} }

// URL implements Protocol. A URL with /openai/v1 is the newer surface; else the model is the name of a deployment.
func (p azure) URL(r Request) *url.URL {
	if strings.Contains(p.base.Path, "/openai/v1") {
		return join(p.base, "", "/chat/completions")
	}
	u := *p.base
	if !strings.Contains(u.Path, "/deployments/") {
		u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/openai") + "/openai/deployments/" + r.Model
	}
	u = *join(&u, "", "/chat/completions")
	q := u.Query()
	if !q.Has("api-version") {
		q.Set("api-version", azureAPIVersion)
		u.RawQuery = q.Encode()
	}
	return &u
}

// Request implements Protocol.
func (azure) Request(r Request, h http.Header) ([]byte, error) {
	return openAIBody(r, h, "messages", r.Messages)
}

// Decoder implements Protocol.
func (azure) Decoder(r Request) Decoder { return newOpenAIDecoder(openAIContent, r.Memory) }
