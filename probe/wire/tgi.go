package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"goodput_exporter/probe/stream"
)

// tgi is the own API of Hugging Face's Text Generation Inference: POST /generate_stream and /generate.
// Source: TGI's API reference.
type tgi struct{ base *url.URL }

func newTGI(base *url.URL) Protocol { return tgi{base} }

// Traits implements Protocol.
func (tgi) Traits() Traits { return Traits{} }

// URL implements Protocol.
func (p tgi) URL(r Request) *url.URL {
	u := *p.base
	u.Path = strings.TrimRight(u.Path, "/")
	for _, path := range []string{"/generate_stream", "/generate"} {
		u.Path = strings.TrimSuffix(u.Path, path)
	}
	if r.Stream {
		return join(&u, "", "/generate_stream")
	}
	return join(&u, "", "/generate")
}

// Request implements Protocol.
func (tgi) Request(r Request, h http.Header) ([]byte, error) {
	parameters := map[string]any{"details": true}
	if n := r.limit(); n > 0 {
		parameters["max_new_tokens"] = n
	}
	return jsonBody(r, h, r.accept(eventStream), map[string]any{"inputs": r.text(), "parameters": parameters})
}

// Decoder implements Protocol.
func (tgi) Decoder(r Request) Decoder {
	shape := &shape{text: "text", skips: []string{"index", "id", "logprob"}}
	return &frameDecoder{tmpl: template{memory: r.Memory, shape: shape}, decode: decodeTGI}
}

type tgiDoc struct {
	Token *struct {
		Text    string `json:"text"`
		Special bool   `json:"special"`
	} `json:"token"`
	GeneratedText *string `json:"generated_text"`
	Details       *struct {
		FinishReason    string            `json:"finish_reason"`
		GeneratedTokens *int              `json:"generated_tokens"`
		InputLength     *int              `json:"input_length"`
		Prefill         []json.RawMessage `json:"prefill"`
	} `json:"details"`
	Error json.RawMessage `json:"error"`
}

func decodeTGI(f stream.Frame) (Event, error) {
	var doc tgiDoc
	data := f.Data
	if bytes.HasPrefix(data, []byte("[")) { // a whole answer of older versions
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil && len(list) == 1 {
			data = list[0]
		}
	}
	if err := unmarshal(data, &doc); err != nil {
		return Event{}, syntaxError(data, err)
	}
	var ev Event
	if present(doc.Error) || doc.Token == nil && doc.GeneratedText == nil {
		ev.Error = ParseError(data)
	}
	// The end-of-text token is generated too, but nobody sees it.
	if t := doc.Token; t != nil && !t.Special {
		ev.addText(t.Text)
	} else if t == nil && doc.GeneratedText != nil {
		ev.addText(*doc.GeneratedText)
	}
	ev.Done = doc.GeneratedText != nil || doc.Details != nil
	ev.Answer = ev.Done && doc.Token == nil // the last event of a stream has a token
	if det := doc.Details; det != nil {
		ev.Finish = det.FinishReason
		ev.Limited = det.FinishReason == "length"
		if det.GeneratedTokens != nil {
			ev.Usage = &Usage{Output: det.GeneratedTokens, Input: det.InputLength}
			if det.InputLength == nil && len(det.Prefill) > 0 {
				n := len(det.Prefill)
				ev.Usage.Input = &n
			}
		}
	}
	return ev, nil
}
