package wire

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"goodput_exporter/config"
)

// text returns the messages as one text, a blank line between them, for protocols without roles.
func (r Request) text() string {
	texts := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		texts[i] = m.Content
	}
	return strings.Join(texts, "\n\n")
}

// system splits the messages into the text of the system's and the others, for protocols that keep them apart.
func (r Request) system() (system string, others []config.Message) {
	var texts []string
	for _, m := range r.Messages {
		if m.Role == "system" || m.Role == "developer" {
			texts = append(texts, m.Content)
		} else {
			others = append(others, m)
		}
	}
	return strings.Join(texts, "\n\n"), others
}

// limit returns the most tokens that an answer may have; 0 is none.
func (r Request) limit() int { return max(r.MaxTokens, r.OutputTokens) }

// jsonBody returns a request's JSON body: the fields of the protocol, and the configuration's own, which win.
func jsonBody(r Request, h http.Header, accept string, fields map[string]any) ([]byte, error) {
	jsonHeader(h, accept)
	maps.Copy(fields, r.Extra)
	return json.Marshal(fields)
}

func jsonHeader(h http.Header, accept string) {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", accept)
}

// accept returns the media type to ask for: that of a stream, or JSON.
func (r Request) accept(stream string) string {
	if r.Stream {
		return stream
	}
	return "application/json"
}

const eventStream = "text/event-stream"
