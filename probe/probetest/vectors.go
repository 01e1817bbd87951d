package probetest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"net/http"
)

// embeddings is OpenAI's embeddings: whole answers of vectors.
type embeddings struct{}

// dimensions of the vectors.
const dimensions = 8

func (embeddings) read(_ *http.Request, body []byte) (*query, error) {
	var in struct {
		Model          string          `json:"model"`
		Input          json.RawMessage `json:"input"`
		EncodingFormat string          `json:"encoding_format"`
	}
	if err := unmarshal(body, &in); err != nil {
		return nil, err
	}
	q := &query{model: in.Model, tokenless: true, items: 1, base64: in.EncodingFormat == "base64"}
	var list []json.RawMessage
	if json.Unmarshal(in.Input, &list) == nil {
		q.items = len(list)
	}
	return q.check(len(in.Input))
}

func (embeddings) refuse(h http.Header, e *apiError) []byte { return openAIError(h, e) }

func (embeddings) whole(h http.Header, a *reply) []byte {
	h.Set("Openai-Processing-Ms", millis(a.total()))
	data := []any{}
	for i := range a.items() {
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": a.vector()})
	}
	out := map[string]any{"object": "list", "model": a.query.model, "data": data}
	if a.usage() {
		out["usage"] = map[string]int{"prompt_tokens": a.query.inputTokens, "total_tokens": a.query.inputTokens}
	}
	return encode(out)
}

// items is how many the answer has.
func (a *reply) items() int {
	if a.fault == FaultEmpty {
		return 0
	}
	return a.query.items
}

// vector is a unit vector, as the client wants it.
func (a *reply) vector() any {
	vector, sum := make([]float32, dimensions), 0.0
	for i := range vector {
		x := a.rng.NormFloat64()
		vector[i], sum = float32(x), sum+x*x
	}
	var raw []byte
	for i := range vector {
		vector[i] /= float32(math.Sqrt(sum))
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(vector[i]))
	}
	if a.query.base64 {
		return base64.StdEncoding.EncodeToString(raw)
	}
	return vector
}

// rerank is the API of Cohere, Jina, vLLM and llama.cpp, or that of Text Embeddings Inference, which does not name the
// model.
type rerank struct{ tei bool }

func (d rerank) read(_ *http.Request, body []byte) (*query, error) {
	var in struct {
		Model     string            `json:"model"`
		Query     string            `json:"query"`
		Documents []json.RawMessage `json:"documents"`
		Texts     []json.RawMessage `json:"texts"`
	}
	if err := unmarshal(body, &in); err != nil {
		return nil, err
	}
	documents := in.Documents
	if d.tei {
		documents = in.Texts
	}
	if len(documents) == 0 {
		return nil, errors.New("there are no documents")
	}
	input := len(in.Query)
	for _, doc := range documents {
		input += len(doc)
	}
	return (&query{model: in.Model, anyModel: d.tei, tokenless: true, items: len(documents)}).check(input)
}

func (d rerank) refuse(h http.Header, e *apiError) []byte {
	if d.tei {
		return tgi{}.refuse(h, e)
	}
	return cohereError(h, e)
}

// whole ranks the documents at random, the best first.
func (d rerank) whole(h http.Header, a *reply) []byte {
	score, list := "relevance_score", []any{}
	if d.tei {
		score = "score"
		h.Set("X-Total-Time", millis(a.total()))
		h.Set("X-Queue-Time", millis(a.queue))
		h.Set("X-Inference-Time", millis(a.ttft))
	}
	for rank, index := range a.rng.Perm(a.items()) {
		list = append(list, map[string]any{"index": index, score: 1 / float64(rank+1)})
	}
	if d.tei {
		return encode(list)
	}
	out := map[string]any{"id": a.id, "model": a.query.model, "results": list}
	if a.usage() {
		out["usage"] = map[string]int{"prompt_tokens": a.query.inputTokens, "total_tokens": a.query.inputTokens}
	}
	return encode(out)
}
