package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"

	"goodput_exporter/probe/stream"
)

// rerank is POST /v1/rerank as Jina, vLLM and llama.cpp have it, /v2/rerank as Cohere has it, or TEI's /rerank; the
// URL tells them apart. Never streamed, no tokens. Source: the APIs of those servers.
type rerank struct{ base *url.URL }

func newRerank(base *url.URL) Protocol { return rerank{base} }

// Traits implements Protocol.
func (rerank) Traits() Traits { return Traits{Tokenless: true} }

// URL implements Protocol.
func (p rerank) URL(Request) *url.URL { return join(p.base, "/v1", "/rerank") }

// tei reports whether the endpoint is that of Text Embeddings Inference, whose path has no version.
func (p rerank) tei() bool { return strings.TrimRight(p.base.Path, "/") == "/rerank" }

// rerankDocuments are ranked where the prompt has none of its own.
var rerankDocuments = []string{
	"The Danube flows through ten countries.",
	"Sourdough needs flour, water, salt and time.",
	"A lighthouse warns ships of rocks near the coast.",
	"Compilers translate programs into machine code.",
}

// documents returns what is asked and what is ranked: the first message, and the others.
func (r Request) documents() (query string, documents []string) {
	for i, m := range r.Messages {
		if i == 0 {
			query = m.Content
		} else {
			documents = append(documents, m.Content)
		}
	}
	if len(documents) == 0 {
		documents = rerankDocuments
	}
	return query, documents
}

// Request implements Protocol.
func (p rerank) Request(r Request, h http.Header) ([]byte, error) {
	query, documents := r.documents()
	fields := map[string]any{"query": query}
	if p.tei() {
		fields["texts"] = documents
	} else {
		fields["model"], fields["documents"] = r.Model, documents
	}
	return jsonBody(r, h, "application/json", fields)
}

// Decoder implements Protocol.
func (rerank) Decoder(r Request) Decoder {
	_, documents := r.documents()
	return rerankDecoder{documents: len(documents)}
}

type rerankDecoder struct{ documents int }

type rerankResult struct {
	Index          *int     `json:"index"`
	RelevanceScore *float64 `json:"relevance_score"`
	Score          *float64 `json:"score"`
}

// Decode implements Decoder. ErrCheck says what is wrong with the ranking.
func (d rerankDecoder) Decode(f stream.Frame) (Event, error) {
	var doc struct {
		Results []rerankResult `json:"results"`
		Usage   struct {
			PromptTokens *int `json:"prompt_tokens"`
			TotalTokens  *int `json:"total_tokens"`
		} `json:"usage"`
	}
	var err error
	if len(f.Data) > 0 && f.Data[0] == '[' {
		err = json.Unmarshal(f.Data, &doc.Results)
	} else {
		err = unmarshal(f.Data, &doc)
	}
	if err != nil {
		return Event{}, notFinite(f.Data, err)
	}
	if doc.Results == nil {
		return Event{Error: ParseError(f.Data)}, nil
	}
	if err := d.check(doc.Results); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrCheck, err)
	}
	ev := Event{Answer: true, Done: true, Tokenless: true}
	if input := doc.Usage.PromptTokens; input != nil {
		ev.Usage = &Usage{Input: input}
	} else if total := doc.Usage.TotalTokens; total != nil {
		ev.Usage = &Usage{Input: total}
	}
	return ev, nil
}

func (d rerankDecoder) check(results []rerankResult) error {
	if len(results) == 0 || len(results) > d.documents {
		return fmt.Errorf("%d results for %d documents", len(results), d.documents)
	}
	seen := map[int]bool{}
	for i, r := range results {
		score := r.RelevanceScore
		if score == nil {
			score = r.Score
		}
		switch {
		case r.Index == nil || *r.Index < 0 || *r.Index >= d.documents:
			return fmt.Errorf("result %d has no index of a document", i)
		case seen[*r.Index]:
			return fmt.Errorf("document %d is there twice", *r.Index)
		case score == nil || math.IsNaN(*score) || math.IsInf(*score, 0):
			return fmt.Errorf("result %d has no finite score", i)
		}
		seen[*r.Index] = true
	}
	return nil
}
