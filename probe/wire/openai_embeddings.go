package wire

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"

	"goodput_exporter/probe/stream"
)

// embeddings is POST /v1/embeddings: never streamed, no tokens. Source: OpenAI's API reference.
type embeddings struct{ base *url.URL }

func newEmbeddings(base *url.URL) Protocol { return embeddings{base} }

// Traits implements Protocol.
func (embeddings) Traits() Traits { return Traits{Tokenless: true} }

// URL implements Protocol.
func (p embeddings) URL(Request) *url.URL { return join(p.base, "/v1", "/embeddings") }

// Request implements Protocol. Each message is one input.
func (embeddings) Request(r Request, h http.Header) ([]byte, error) {
	inputs := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		inputs[i] = m.Content
	}
	return jsonBody(r, h, "application/json", map[string]any{"model": r.Model, "input": inputs})
}

// Decoder implements Protocol.
func (embeddings) Decoder(r Request) Decoder { return embeddingsDecoder{inputs: len(r.Messages)} }

type embeddingsDecoder struct{ inputs int }

type embeddingsDoc struct {
	Data []struct {
		Embedding json.RawMessage `json:"embedding"`
	} `json:"data"`
	Usage *openAIUsage `json:"usage"`
}

// Decode implements Decoder. ErrCheck says what is wrong with the vectors.
func (d embeddingsDecoder) Decode(f stream.Frame) (Event, error) {
	var doc embeddingsDoc
	if err := unmarshal(f.Data, &doc); err != nil {
		return Event{}, notFinite(f.Data, err)
	}
	if doc.Data == nil {
		return Event{Error: ParseError(f.Data)}, nil
	}
	if len(doc.Data) != d.inputs {
		return Event{}, fmt.Errorf("%w: %d vectors for %d inputs", ErrCheck, len(doc.Data), d.inputs)
	}
	dimension := 0
	for i, item := range doc.Data {
		n, err := checkVector(item.Embedding)
		if err != nil {
			return Event{}, fmt.Errorf("%w: vector %d %w", ErrCheck, i, err)
		}
		if i > 0 && n != dimension {
			return Event{}, fmt.Errorf("%w: vector %d has %d dimensions, the one before %d", ErrCheck, i, n, dimension)
		}
		dimension = n
	}
	return Event{Answer: true, Done: true, Tokenless: true, Usage: doc.Usage.usage()}, nil
}

// nonFinite finds the numbers that some servers write, and JSON does not know.
var nonFinite = regexp.MustCompile(`[\[:,]\s*-?(?:NaN|Infinity)\b`)

// notFinite is syntaxError, but for a document whose numbers are at fault.
func notFinite(data []byte, err error) error {
	if nonFinite.Match(data) {
		return fmt.Errorf("%w: a number is not finite", ErrCheck)
	}
	return syntaxError(data, err)
}

// checkVector returns the dimension of a vector, given as a list or as base64 of little-endian floats.
func checkVector(v json.RawMessage) (int, error) {
	var list []*float64
	var text string
	switch {
	case json.Unmarshal(v, &list) == nil:
	case json.Unmarshal(v, &text) == nil:
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw)%4 != 0 {
			return 0, fmt.Errorf("is no base64 of floats")
		}
		for i := 0; i < len(raw); i += 4 {
			x := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])))
			list = append(list, &x)
		}
	default:
		return 0, fmt.Errorf("is no list of numbers")
	}
	if len(list) == 0 {
		return 0, fmt.Errorf("is empty")
	}
	zero := true
	for _, x := range list {
		if x == nil || math.IsNaN(*x) || math.IsInf(*x, 0) {
			return 0, fmt.Errorf("has a component that is no finite number")
		}
		zero = zero && *x == 0
	}
	if zero {
		return 0, fmt.Errorf("is all zero")
	}
	return len(list), nil
}
