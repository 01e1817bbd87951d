package probe

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"goodput_exporter/config"
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
		Phases: jsonPhases(r.Phases), ConnectionReused: r.ConnectionReused, HTTPVersion: r.HTTPVersion, Header: r.Header,
		RetryAfter: seconds(r.RetryAfter), RequestID: r.RequestID, TraceID: r.TraceID, SpanID: r.SpanID,
		StampSource: r.StampSource, OwnLag: seconds(r.OwnLag),
	}
	for _, s := range r.ServerTimes {
		*doc.serverTime(s.Kind) = seconds(&s.Took)
	}
	return json.Marshal(doc)
}

// UnmarshalJSON reads what MarshalJSON writes. Everything comes back equal but ChunkGaps, which are not in it, the
// monotonic reading of Time, and bytes that are not UTF-8. Judgments, phases and server times come in the order of the
// documentation.
func (r *Result) UnmarshalJSON(text []byte) error {
	var doc jsonResult
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	if !slices.Contains(Outcomes, doc.Outcome) && !slices.Contains(AbortedOutcomes, doc.Outcome) {
		return fmt.Errorf("unknown outcome %q", doc.Outcome)
	}
	*r = Result{
		Time: doc.Time, Target: doc.Target, Scenario: doc.Scenario, Model: doc.Model, Protocol: doc.Protocol,
		Outcome: doc.Outcome, Reason: doc.Reason, InBand: doc.InBand, Error: doc.Error,
		StatusCode: doc.StatusCode, FinishReason: doc.FinishReason, Flags: append([]Flag(nil), doc.Flags...),
		Judgments: judgments(doc.SLO), Text: doc.Text,
		TTFB: duration(doc.TTFB), TTFT: duration(doc.TTFT), FirstAnswer: duration(doc.FirstAnswer), E2E: duration(doc.E2E),
		TPOT: duration(doc.TPOT), Stall: duration(doc.Stall),
		InputTokens: doc.InputTokens, OutputTokens: doc.OutputTokens, OutputTokensSource: doc.OutputTokensSource,
		CachedInputTokens: doc.CachedInputTokens, ReasoningTokens: doc.ReasoningTokens,
		TokenEvents: doc.TokenEvents, Comments: doc.Comments,
		Phases: phases(doc.Phases), ConnectionReused: doc.ConnectionReused, HTTPVersion: doc.HTTPVersion, Header: doc.Header,
		RetryAfter: duration(doc.RetryAfter), RequestID: doc.RequestID, TraceID: doc.TraceID, SpanID: doc.SpanID,
		StampSource: doc.StampSource, OwnLag: duration(doc.OwnLag),
	}
	for _, kind := range ServerKinds {
		if took := duration(*doc.serverTime(kind)); took != nil {
			r.ServerTimes = append(r.ServerTimes, ServerTime{Kind: kind, Took: *took})
		}
	}
	return nil
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
	Header           http.Header           `json:"response_headers,omitempty"`
	RetryAfter       *float64              `json:"retry_after_seconds,omitempty"`
	RequestID        string                `json:"request_id,omitempty"`
	TraceID          string                `json:"trace_id"`
	SpanID           string                `json:"span_id,omitempty"`
	StampSource      string                `json:"stamp_source,omitempty"`
	OwnLag           *float64              `json:"own_lag_seconds,omitempty"`
}

// serverTime is where what the server says of a time stands.
func (doc *jsonResult) serverTime(kind ServerKind) **float64 {
	switch kind {
	case wire.ServerTTFT:
		return &doc.ServerTTFT
	case wire.ServerQueue:
		return &doc.ServerQueue
	case wire.ServerPrefill:
		return &doc.ServerPrefill
	case wire.ServerDecode:
		return &doc.ServerDecode
	case wire.ServerLoad:
		return &doc.ServerLoad
	}
	return &doc.ServerTotal
}

func jsonSLO(judgments []Judgment) map[string]Verdict {
	m := make(map[string]Verdict, len(judgments))
	for _, j := range judgments {
		m[j.SLO] = j.Verdict
	}
	return m
}

// judgments lists the known SLOs in the order of the documentation.
func judgments(verdicts map[string]Verdict) []Judgment {
	var list []Judgment
	add := func(slo string) {
		if v, ok := verdicts[slo]; ok {
			list = append(list, Judgment{slo, v})
		}
	}
	add(SLOGoodput)
	add(SLOAvailability)
	for _, criterion := range config.Criteria {
		add(criterion)
	}
	return list
}

func jsonPhases(phases []Phase) map[PhaseName]float64 {
	m := make(map[PhaseName]float64, len(phases))
	for _, p := range phases {
		m[p.Name] = p.Duration.Seconds()
	}
	return m
}

func phases(took map[PhaseName]float64) []Phase {
	var list []Phase
	for _, name := range PhaseNames {
		if s, ok := took[name]; ok {
			list = append(list, Phase{name, *duration(&s)})
		}
	}
	return list
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.Seconds()
	return &s
}

// duration is what seconds was made of: to the nanosecond up to some weeks.
func duration(seconds *float64) *time.Duration {
	if seconds == nil {
		return nil
	}
	const most = float64(math.MaxInt64 >> 1)
	d := time.Duration(min(max(math.Round(*seconds*1e9), -most), most))
	return &d
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
