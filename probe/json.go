package probe

import (
	"encoding/json"
	"time"

	"goodput_exporter/probe/wire"
)

// MarshalJSON writes a result as one object. A figure that does not exist is absent; durations are in seconds.
func (r *Result) MarshalJSON() ([]byte, error) {
	doc := jsonResult{
		Time: r.Time.UTC(), Target: r.Target, Scenario: r.Scenario, Model: r.Model, Protocol: r.Protocol,
		Outcome: r.Outcome, Reason: r.Reason, InBand: r.InBand, Error: r.Error,
		StatusCode: r.StatusCode, FinishReason: r.FinishReason, Flags: append([]Flag{}, r.Flags...), SLO: jsonSLO(r.Judgments),
		Text: r.Text,
		TTFB: seconds(r.TTFB), TTFT: seconds(r.TTFT), FirstAnswer: seconds(r.FirstAnswer), E2E: seconds(r.E2E),
		TPOT: seconds(r.TPOT), Stall: seconds(r.Stall), ChunkGapMean: seconds(mean(r.ChunkGaps)),
		InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, OutputTokensSource: r.OutputTokensSource,
		CachedInputTokens: r.CachedInputTokens, ReasoningTokens: r.ReasoningTokens,
		TokenEvents: r.TokenEvents, Comments: r.Comments,
		Phases: jsonPhases(r.Phases), ConnectionReused: r.ConnectionReused, HTTPVersion: r.HTTPVersion,
		RetryAfter: seconds(r.RetryAfter), RequestID: r.RequestID, TraceID: r.TraceID,
		StampSource: r.StampSource, OwnLag: seconds(r.OwnLag),
	}
	for _, s := range r.ServerTimes {
		doc.setServerTime(s)
	}
	return json.Marshal(doc)
}

type jsonResult struct {
	Time     time.Time `json:"time"`
	Target   string    `json:"target"`
	Scenario string    `json:"scenario"`
	Model    string    `json:"model"`
	Protocol string    `json:"protocol"`

	Outcome      Outcome            `json:"outcome"`
	Reason       Reason             `json:"reason,omitempty"`
	InBand       bool               `json:"in_band"`
	Error        string             `json:"error,omitempty"`
	StatusCode   int                `json:"status_code,omitempty"`
	FinishReason string             `json:"finish_reason,omitempty"`
	Flags        []Flag             `json:"flags"`
	SLO          map[string]Verdict `json:"slo"`
	Text         string             `json:"text,omitempty"`

	TTFB         *float64 `json:"ttfb_seconds,omitempty"`
	TTFT         *float64 `json:"ttft_seconds,omitempty"`
	FirstAnswer  *float64 `json:"first_answer_seconds,omitempty"`
	E2E          *float64 `json:"e2e_seconds,omitempty"`
	TPOT         *float64 `json:"tpot_seconds,omitempty"`
	Stall        *float64 `json:"stall_seconds,omitempty"`
	ChunkGapMean *float64 `json:"chunk_gap_mean_seconds,omitempty"`

	ServerTTFT    *float64 `json:"server_ttft_seconds,omitempty"`
	ServerQueue   *float64 `json:"server_queue_seconds,omitempty"`
	ServerPrefill *float64 `json:"server_prefill_seconds,omitempty"`
	ServerDecode  *float64 `json:"server_decode_seconds,omitempty"`
	ServerLoad    *float64 `json:"server_load_seconds,omitempty"`
	ServerTotal   *float64 `json:"server_total_seconds,omitempty"`

	InputTokens        *int         `json:"input_tokens,omitempty"`
	OutputTokens       *int         `json:"output_tokens,omitempty"`
	OutputTokensSource TokensSource `json:"output_tokens_source"`
	CachedInputTokens  *int         `json:"cached_input_tokens,omitempty"`
	ReasoningTokens    *int         `json:"reasoning_tokens,omitempty"`
	TokenEvents        int          `json:"token_events"`
	Comments           int          `json:"comments"`

	Phases           map[PhaseName]float64 `json:"phases"`
	ConnectionReused bool                  `json:"connection_reused"`
	HTTPVersion      string                `json:"http_version,omitempty"`
	RetryAfter       *float64              `json:"retry_after_seconds,omitempty"`
	RequestID        string                `json:"request_id,omitempty"`
	TraceID          string                `json:"trace_id"`
	StampSource      string                `json:"stamp_source,omitempty"`
	OwnLag           *float64              `json:"own_lag_seconds,omitempty"`
}

// setServerTime sets what the server says of a time.
func (doc *jsonResult) setServerTime(s ServerTime) {
	*map[ServerKind]**float64{
		wire.ServerTTFT: &doc.ServerTTFT, wire.ServerQueue: &doc.ServerQueue, wire.ServerPrefill: &doc.ServerPrefill,
		wire.ServerDecode: &doc.ServerDecode, wire.ServerLoad: &doc.ServerLoad, wire.ServerTotal: &doc.ServerTotal,
	}[s.Kind] = seconds(&s.Took)
}

func jsonSLO(judgments []Judgment) map[string]Verdict {
	m := make(map[string]Verdict, len(judgments))
	for _, j := range judgments {
		m[j.SLO] = j.Verdict
	}
	return m
}

func jsonPhases(phases []Phase) map[PhaseName]float64 {
	m := make(map[PhaseName]float64, len(phases))
	for _, p := range phases {
		m[p.Name] = p.Duration.Seconds()
	}
	return m
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.Seconds()
	return &s
}

func mean(gaps []time.Duration) *time.Duration {
	if len(gaps) == 0 {
		return nil
	}
	var sum time.Duration
	for _, g := range gaps {
		sum += g
	}
	sum /= time.Duration(len(gaps))
	return &sum
}
