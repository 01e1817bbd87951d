package wire

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"time"

	"goodput_exporter/probe/stream"
)

// anthropic is POST /v1/messages: Anthropic's own, or the same model on Vertex AI (rawPredict) or Bedrock
// (invoke), which the URL tells apart. Source: Anthropic's API reference, and its Go SDK for the two others.
type anthropic struct {
	base *url.URL
	host anthropicHost
}

type anthropicHost int

const (
	anthropicDirect anthropicHost = iota
	anthropicVertex
	anthropicBedrock
)

func newAnthropic(base *url.URL) Protocol {
	p := anthropic{base: base}
	switch {
	case isBedrock(base):
		p.host = anthropicBedrock
	case isVertex(base):
		p.host = anthropicVertex
	}
	return p
}

// Traits implements Protocol.
func (p anthropic) Traits() Traits {
	switch p.host {
	case anthropicVertex:
		return Traits{Sentinel: true}
	case anthropicBedrock:
		return Traits{Sentinel: true, Framing: stream.FramingAWS}
	}
	return Traits{Sentinel: true, KeyHeader: "x-api-key"}
}

// URL implements Protocol.
func (p anthropic) URL(r Request) *url.URL {
	switch p.host {
	case anthropicVertex:
		return vertexURL(p.base, r, "anthropic", "rawPredict", "streamRawPredict")
	case anthropicBedrock:
		return bedrockURL(p.base, r, "invoke", "invoke-with-response-stream")
	}
	return join(p.base, "/v1", "/messages")
}

// defaultAnthropicLimit is sent where no limit is configured: the protocol demands one.
const defaultAnthropicLimit = 1024

// Request implements Protocol.
func (p anthropic) Request(r Request, h http.Header) ([]byte, error) {
	system, messages := r.system()
	fields := map[string]any{"messages": messages, "max_tokens": defaultAnthropicLimit}
	if n := r.limit(); n > 0 {
		fields["max_tokens"] = n
	}
	if system != "" {
		fields["system"] = system
	}
	accept := r.accept(eventStream)
	switch p.host {
	case anthropicVertex:
		fields["anthropic_version"] = "vertex-2023-10-16"
		fields["stream"] = r.Stream
	case anthropicBedrock:
		fields["anthropic_version"] = "bedrock-2023-05-31"
		accept = r.accept(awsEventStream)
	default:
		h.Set("Anthropic-Version", "2023-06-01")
		fields["model"] = r.Model
		fields["stream"] = r.Stream
	}
	return jsonBody(r, h, accept, fields)
}

// Sign implements Signer.
func (p anthropic) Sign(req *http.Request, body []byte) error {
	if p.host != anthropicBedrock {
		return nil
	}
	return signAWS(req, body, p.base)
}

// Decoder implements Protocol.
func (p anthropic) Decoder(r Request) Decoder {
	events := frameDecoder{tmpl: template{memory: r.Memory, shape: &shape{text: "text"}}, decode: decodeAnthropic}
	if p.host == anthropicBedrock {
		return &anthropicChunkDecoder{events: events, cover: template{shape: &shape{text: "bytes", skips: []string{"p"}}}}
	}
	return &events
}

// anthropicChunkDecoder decodes events of which each stands in a chunk of AWS' event stream.
type anthropicChunkDecoder struct {
	cover  template // of the chunk
	event  []byte   // inside the chunk
	events frameDecoder
}

type anthropicEvent struct {
	Type         string           `json:"type"`
	Message      *anthropicAnswer `json:"message"`
	ContentBlock anthropicBlock   `json:"content_block"`
	Delta        anthropicBlock   `json:"delta"`
	Metrics      struct {
		FirstByteMS  int64 `json:"firstByteLatency"`
		InvocationMS int64 `json:"invocationLatency"`
	} `json:"amazon-bedrock-invocationMetrics"`
	anthropicAnswer
}

type anthropicAnswer struct {
	Content    []anthropicBlock `json:"content"`
	StopReason string           `json:"stop_reason"`
	Usage      *anthropicUsage  `json:"usage"`
}

type anthropicBlock struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Thinking    string `json:"thinking"`
	PartialJSON string `json:"partial_json"`
	Name        string `json:"name"`
	StopReason  string `json:"stop_reason"`
}

type anthropicUsage struct {
	InputTokens          *int `json:"input_tokens"`
	OutputTokens         *int `json:"output_tokens"`
	CacheReadInputTokens *int `json:"cache_read_input_tokens"`
}

// Decode implements Decoder.
func (d *anthropicChunkDecoder) Decode(f stream.Frame) (Event, error) {
	if f.Failure {
		return Event{Error: bedrockException(f)}, nil
	}
	if !f.Whole {
		var err error
		if f.Data, err = d.uncover(f); err != nil || len(f.Data) == 0 {
			return Event{}, err
		}
	}
	return d.events.Decode(f)
}

// uncover returns the event inside a chunk of AWS' event stream, nil where there is none. The padding beside it says
// nothing.
func (d *anthropicChunkDecoder) uncover(f stream.Frame) (event []byte, err error) {
	var cover Event
	if !d.cover.match(&f, &cover) {
		if len(f.Data) == 0 {
			return nil, nil
		}
		if cover, err = decodeChunk(f); err != nil {
			return nil, err
		}
		d.cover.learn(f, cover, decodeChunk)
	}
	d.event, err = base64.StdEncoding.AppendDecode(d.event[:0], cover.Text)
	if err != nil {
		return nil, errors.Join(ErrMalformed, err)
	}
	return d.event, nil
}

// decodeChunk decodes a chunk; its text is the event in base64.
func decodeChunk(f stream.Frame) (ev Event, err error) {
	var chunk struct {
		Bytes string `json:"bytes"`
	}
	if err := unmarshal(f.Data, &chunk); err != nil {
		return Event{}, syntaxError(f.Data, err)
	}
	ev.addText(chunk.Bytes)
	return ev, nil
}

func decodeAnthropic(f stream.Frame) (Event, error) {
	var doc anthropicEvent
	if err := unmarshal(f.Data, &doc); err != nil {
		return Event{}, syntaxError(f.Data, err)
	}
	var ev Event
	switch doc.Type {
	case "message_start":
		if doc.Message != nil && doc.Message.Usage != nil {
			doc.Message.Usage.OutputTokens = nil // they are no report, but a beginning
			ev.Usage = doc.Message.Usage.usage()
		}
	case "content_block_start":
		doc.ContentBlock.addTo(&ev)
	case "content_block_delta":
		doc.Delta.addTo(&ev)
	case "message_delta":
		ev.Finish = doc.Delta.StopReason
		ev.Usage = doc.Usage.usage()
	case "message_stop":
		ev.Done = true
		ev.Server = serverTimes(map[ServerKind]time.Duration{
			ServerTTFT: time.Duration(doc.Metrics.FirstByteMS) * time.Millisecond, ServerTotal: time.Duration(doc.Metrics.InvocationMS) * time.Millisecond,
		})
	case "message":
		for _, b := range doc.Content {
			b.addTo(&ev)
		}
		ev.Finish = doc.StopReason
		ev.Usage = doc.Usage.usage()
		ev.Answer, ev.Done = true, true
	case "error":
		ev.Error = mustError(f.Data)
	case "":
		ev.Error = ParseError(f.Data)
	}
	ev.Limited = ev.Finish == "max_tokens" || ev.Finish == "model_context_window_exceeded"
	ev.Refused = ev.Finish == "refusal"
	return ev, nil
}

func (b anthropicBlock) addTo(ev *Event) {
	ev.addText(b.Text)
	if b.Thinking != "" {
		ev.Channels |= Reasoning
	}
	if b.Name != "" || b.PartialJSON != "" {
		ev.Channels |= Tool
	}
}

// usage returns the report, nil where it has no counts. What message_start told, message_delta may leave out.
func (u *anthropicUsage) usage() *Usage {
	if u == nil || u.InputTokens == nil && u.OutputTokens == nil {
		return nil
	}
	return &Usage{Input: u.InputTokens, Output: u.OutputTokens, CachedInput: u.CacheReadInputTokens}
}
