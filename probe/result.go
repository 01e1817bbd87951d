package probe

import (
	"net/http"
	"time"

	"goodput_exporter/probe/wire"
)

// Result is all that one probe found out. It is a value that nobody changes once it was handed to an Observer.
//
// A figure that does not exist is nil, never 0. Durations are differences of monotonic instants, counted from
// t_send: the instant just before the first network act of the probe (the write of the request on a reused
// connection; the DNS query or the connect on a new one).
type Result struct {
	Target, Scenario, Model, Protocol string

	Time      time.Time // wall clock and monotonic reading of t_send; of the start where nothing was sent
	Outcome   Outcome
	Reason    Reason // "" where the outcome is good or slo_violation
	InBand    bool   // the error came inside an answer with status 200
	Error     string // in words, without secrets; "" where nothing failed
	Flags     []Flag // sorted
	Judgments []Judgment

	StatusCode   int    // 0: no response
	FinishReason string // as the server sent it; "" when there was none
	Text         string // the visible text, up to MaxText bytes

	TTFB        *time.Duration // first byte of the response
	TTFT        *time.Duration // first token event in any channel
	FirstAnswer *time.Duration // first token event that is not reasoning
	E2E         *time.Duration // last token event or finish, whichever is later; of a failure, when it was known
	TPOT        *time.Duration // (last token - first token) / (n - 1)
	Stall       *time.Duration // the longest chunk gap
	ChunkGaps   []time.Duration
	Phases      []Phase // in order of time; only those that took place

	InputTokens        *int
	OutputTokens       *int // n of TPOT: by usage, else counted
	OutputTokensSource TokensSource
	CachedInputTokens  *int
	ReasoningTokens    *int

	ServerTimes []ServerTime // what the server says of its own times

	Comments         int // comment lines of the stream
	TokenEvents      int
	ConnectionReused bool
	RetryAfter       *time.Duration
	RequestID        string      // as the server named it
	TraceID          string      // 32 hex digits, sent in traceparent
	SpanID           string      // 16 hex digits
	HTTPVersion      string      // "HTTP/1.1"
	Header           http.Header // of the response, without secrets, the first values by name; nil where the outcome is good

	StampSource string         // "kernel" or "read"; "" where nothing was read
	OwnLag      *time.Duration // how late the prober read its latest-read bytes; known with kernel stamps only
}

// TokensSource says where the count of output tokens comes from.
type TokensSource string

// The sources of OutputTokens.
const (
	TokensUsage   TokensSource = "usage"   // the server's last usage report
	TokensCounted TokensSource = "counted" // token events, each at least one token
	TokensNone    TokensSource = "none"    // there was no token event
)

// ServerTime is a time that the server measured itself.
type ServerTime = wire.ServerTime

// ServerKind says what a server measured.
type ServerKind = wire.ServerKind

// ServerKinds lists the kinds of server times, in the order of the documentation.
var ServerKinds = wire.ServerKinds

// Phase is one part of the way to the response's headers.
type Phase struct {
	Name     PhaseName
	Duration time.Duration
}

// PhaseName names a Phase.
type PhaseName string

// The phases, in order of time.
const (
	PhaseDNS     PhaseName = "dns"
	PhaseConnect PhaseName = "connect"
	PhaseTLS     PhaseName = "tls"
	PhaseRequest PhaseName = "request" // writing the request
	PhaseHeaders PhaseName = "headers" // from the written request to the first byte of the response
)

// PhaseNames lists the phases in order of time.
var PhaseNames = []PhaseName{PhaseDNS, PhaseConnect, PhaseTLS, PhaseRequest, PhaseHeaders}

// Judgment is the verdict on one criterion, or on all of them together.
type Judgment struct {
	SLO     string // SLOGoodput, SLOAvailability, or the name of a criterion
	Verdict Verdict
}

// The judgments that every attempt has.
const (
	SLOGoodput      = "goodput"      // succeeded and met every criterion that applies
	SLOAvailability = "availability" // outcome good or slo_violation
)

// Verdict is what a criterion says of one probe.
type Verdict string

// The verdicts. Unmeasurable is bad, and counted apart; NotApplicable is neither good nor bad.
const (
	Met           Verdict = "good"
	Missed        Verdict = "bad"
	Unmeasurable  Verdict = "unmeasurable"
	NotApplicable Verdict = "not_applicable"
)

// Observer is told of every result, in the order of completion. Observe must not block.
type Observer interface {
	Observe(*Result)
}

// Has reports whether the result carries the flag.
func (r *Result) Has(f Flag) bool {
	for _, g := range r.Flags {
		if g == f {
			return true
		}
	}
	return false
}

// Missed lists the criteria that the result missed, or that could not be measured, in the order of the SLO.
func (r *Result) Missed() []string {
	var names []string
	for _, j := range r.Judgments {
		criterion := j.SLO != SLOGoodput && j.SLO != SLOAvailability
		if criterion && (j.Verdict == Missed || j.Verdict == Unmeasurable) {
			names = append(names, j.SLO)
		}
	}
	return names
}

// Figure is one of a result's durations, by its name.
type Figure struct {
	Name  string // as in the JSON, without the unit: "ttft"
	Value time.Duration
}

// Figures returns the figures that exist, in order of time.
func (r *Result) Figures() []Figure {
	var figures []Figure
	for _, f := range []struct {
		name  string
		value *time.Duration
	}{
		{"ttfb", r.TTFB},
		{"ttft", r.TTFT},
		{"first_answer", r.FirstAnswer},
		{"tpot", r.TPOT},
		{"stall", r.Stall},
		{"e2e", r.E2E},
		{"retry_after", r.RetryAfter},
		{"own_lag", r.OwnLag},
	} {
		if f.value != nil {
			figures = append(figures, Figure{f.name, *f.value})
		}
	}
	return figures
}
