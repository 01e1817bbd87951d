package load

import (
	"time"

	"goodput_exporter/probe"
)

// Record is one request of a run: what reports are made of. A figure that does not exist is nil. Durations of the
// figures count from t_send, as in probe.Result; instants from the start of the run.
type Record struct {
	N      int  // number of the request, in the order of the starts
	Warmup bool // not in the figures

	Intended time.Duration // when it was due: by the schedule of an open loop; in a closed one when its turn came
	Sent     time.Duration // t_send
	Ended    time.Duration // when its outcome was known
	Queued   bool          // it waited for MaxInFlight
	GivenUp  bool          // canceled on purpose by CancelShare: not an attempt

	Outcome   probe.Outcome
	Reason    probe.Reason
	InBand    bool
	Judgments []probe.Judgment

	StatusCode   int
	FinishReason string
	Flags        []probe.Flag

	TTFT        *time.Duration
	FirstAnswer *time.Duration
	TPOT        *time.Duration
	Stall       *time.Duration
	E2E         *time.Duration
	OwnLag      *time.Duration

	InputTokens        *int
	OutputTokens       *int
	OutputTokensSource probe.TokensSource
	CachedInputTokens  *int
	ReasoningTokens    *int

	ConnectionReused bool
	TraceID          string
	RequestID        string
	Error            string
}

// Attempt reports whether the request counts: it was measured, and neither given up nor spoilt by the client itself.
func (r *Record) Attempt() bool { return !r.Warmup && !r.GivenUp && r.Outcome.Attempt() }

// Lag is how much later than intended the request was sent: the client's own delay, the wait for MaxInFlight included.
func (r *Record) Lag() time.Duration { return r.Sent - r.Intended }

// newRecord makes the record of a result. start is instant 0 of the run.
func newRecord(n int, start time.Time, intended time.Duration, r *probe.Result, ended time.Time) Record {
	return Record{
		N: n, Intended: intended, Sent: max(intended, r.Time.Sub(start)), Ended: ended.Sub(start),
		Outcome: r.Outcome, Reason: r.Reason, InBand: r.InBand, Judgments: r.Judgments,
		StatusCode: r.StatusCode, FinishReason: r.FinishReason, Flags: r.Flags,
		TTFT: r.TTFT, FirstAnswer: r.FirstAnswer, TPOT: r.TPOT, Stall: r.Stall, E2E: r.E2E, OwnLag: r.OwnLag,
		InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, OutputTokensSource: r.OutputTokensSource,
		CachedInputTokens: r.CachedInputTokens, ReasoningTokens: r.ReasoningTokens,
		ConnectionReused: r.ConnectionReused, TraceID: r.TraceID, RequestID: r.RequestID, Error: r.Error,
	}
}
