package load

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"goodput_exporter/probe"
)

// ReportVersion is the version of a Report's JSON. Keys may be added within a version; none is renamed or removed.
const ReportVersion = 1

// Report is what a run came to. Its JSON is a contract: snake_case, base units in the names, and a figure that does not
// exist is absent, never 0. The keys that common benchmark scripts print stand at its top.
//
// Every rate divides by the same duration: from the first start of a measured request to the last end of one, the drain
// included. So
//
//	throughput_req_s = attempts / duration, whatever became of them: an attempt is completed when its outcome is known
//	successful_req_s = successes / duration: answered in full, be it within the SLO or not
//	goodput_req_s    = good requests / duration
//	slo_attainment   = good requests / attempts
type Report struct {
	Version     int       `json:"version"`
	About       Subject   `json:"about"`
	Load        Load      `json:"load"`
	Started     time.Time `json:"started"`
	Interrupted bool      `json:"interrupted"`        // ended before its time: these are the figures so far
	Hopeless    string    `json:"hopeless,omitempty"` // why the run was given up

	Valid   bool     `json:"valid"`             // false: the client was the bottleneck, the figures are not the endpoint's
	Invalid []string `json:"invalid,omitempty"` // why not, in words

	Duration        *float64 `json:"duration_seconds,omitempty"`
	Drain           *float64 `json:"drain_seconds,omitempty"` // the part of the duration after the last start
	Throughput      *float64 `json:"throughput_req_s,omitempty"`
	Successful      *float64 `json:"successful_req_s,omitempty"`
	Goodput         *float64 `json:"goodput_req_s,omitempty"`
	Attainment      *float64 `json:"slo_attainment,omitempty"`
	OutputTokenRate *float64 `json:"output_token_s,omitempty"`      // of all attempts
	GoodTokenRate   *float64 `json:"good_output_token_s,omitempty"` // token goodput: of good requests
	InputTokenRate  *float64 `json:"input_token_s,omitempty"`

	// Of E2E, of successes.
	LatencyMean *float64 `json:"latency_mean_s,omitempty"`
	LatencyP50  *float64 `json:"latency_p50_s,omitempty"`
	LatencyP95  *float64 `json:"latency_p95_s,omitempty"`
	LatencyP99  *float64 `json:"latency_p99_s,omitempty"`

	RateIntervals RateIntervals `json:"rate_intervals"`

	SLO       SLOReport `json:"slo"`
	Counts    Counts    `json:"counts"`
	Latencies Latencies `json:"latencies"`
	Lengths   Lengths   `json:"lengths"`
	Client    Client    `json:"client"`
	Notes     []string  `json:"notes,omitempty"` // what to bear in mind when reading the figures
}

// Subject is what was asked of whom.
type Subject struct {
	Target   string `json:"target,omitempty"`
	Scenario string `json:"scenario,omitempty"`
	Model    string `json:"model"`
	Protocol string `json:"protocol"`
	URL      string `json:"url"`
	Workload string `json:"workload,omitempty"` // in words
}

// Load is what load was asked for and what came of it. Either Concurrency or Rate is set.
type Load struct {
	Concurrency *int     `json:"concurrency,omitempty"` // closed loop: requests in flight
	Rate        *float64 `json:"rate_req_s,omitempty"`  // open loop

	Arrivals    string   `json:"arrivals,omitempty"`
	Burstiness  *float64 `json:"burstiness,omitempty"`
	MaxInFlight *int     `json:"max_in_flight,omitempty"`
	CancelShare *float64 `json:"cancel_share,omitempty"` // of the requests that were given up on purpose
	CancelAfter *float64 `json:"cancel_after_seconds,omitempty"`
	Share       string   `json:"share,omitempty"` // "2/8": one of several clients that make the load together

	// OfferedRate is that of the schedule as it was drawn: between the first and the last due instant of the measured
	// requests. AchievedRate is the same of their starts.
	OfferedRate  *float64 `json:"offered_req_s,omitempty"`
	AchievedRate *float64 `json:"achieved_req_s,omitempty"`
	// AchievedConcurrency is the mean over time of the requests in flight, from the first to the last measured start.
	AchievedConcurrency *float64 `json:"achieved_concurrency,omitempty"`
	PeakConcurrency     *int     `json:"peak_concurrency,omitempty"`
}

// Level returns the level of load that was asked for.
func (l *Load) Level() Level {
	var level Level
	if l.Concurrency != nil {
		level.Concurrency = *l.Concurrency
	}
	if l.Rate != nil {
		level.Rate = *l.Rate
	}
	return level
}

// SLOReport is how the SLO was kept.
type SLOReport struct {
	// Objective is absent where no SLO was given: a good request is then one that was answered in full.
	Objective *float64 `json:"objective,omitempty"`
	// AvailabilityObjective is absent where availability has none of its own.
	AvailabilityObjective *float64 `json:"availability_objective,omitempty"`

	Attainment   Share             `json:"attainment"`   // all criteria together
	Availability Share             `json:"availability"` // answered in full
	Criteria     []CriterionReport `json:"criteria"`
}

// CriterionReport is how one criterion was kept.
type CriterionReport struct {
	Name      string   `json:"name"`
	Limit     *float64 `json:"limit_seconds,omitempty"`
	Objective *float64 `json:"objective,omitempty"` // where it has one of its own

	Attainment    Share `json:"attainment"` // of those to which it applies; unmeasurable ones missed it
	Unmeasurable  int   `json:"unmeasurable"`
	NotApplicable int   `json:"not_applicable"`
}

// Share is how many of some requests met a condition, and the share of all such requests that would, as far as so few
// can tell: Wilson's interval of 95 %.
type Share struct {
	Met      int       `json:"met"`
	Of       int       `json:"of"`
	Ratio    *float64  `json:"ratio,omitempty"`
	Interval *Interval `json:"interval,omitempty"`
}

// Interval is one of 95 % confidence, both ends included.
type Interval struct {
	Low  Value `json:"low"`
	High Value `json:"high"`
}

// RateIntervals are the intervals of the rates: what the run itself varied, by the method of batch means, and the luck of
// the drain. They are absent where there were fewer than 100 attempts.
type RateIntervals struct {
	Throughput      *Interval `json:"throughput_req_s,omitempty"`
	Goodput         *Interval `json:"goodput_req_s,omitempty"`
	OutputTokenRate *Interval `json:"output_token_s,omitempty"`
}

// Counts says what became of the requests. Requests = Attempts + GivenUp + Canceled + LocalErrors, and
// Attempts = Successes + Failures.
type Counts struct {
	Requests       int `json:"requests"` // that were measured
	WarmupRequests int `json:"warmup_requests"`

	Attempts  int `json:"attempts"`
	Successes int `json:"successes"` // good and slo_violation
	Good      int `json:"good"`
	Failures  int `json:"failures"` // timeouts and rate limits among them

	Timeouts    int `json:"timeouts"`
	RateLimited int `json:"rate_limited"`
	InBand      int `json:"in_band"` // failures that came inside an answer with status 200

	GivenUp     int `json:"given_up"`     // canceled on purpose, as impatient users do
	Canceled    int `json:"canceled"`     // by the end of the run
	LocalErrors int `json:"local_errors"` // the client's own

	Outcomes map[probe.Outcome]int `json:"outcomes"` // every outcome of an attempt, those without one at 0
	Reasons  []ReasonCount         `json:"reasons"`  // of failures, the most frequent first
	Flags    map[probe.Flag]int    `json:"flags"`    // of attempts; those that occurred

	InputTokens      int `json:"input_tokens"` // of attempts, as far as they are known
	OutputTokens     int `json:"output_tokens"`
	GoodOutputTokens int `json:"good_output_tokens"`
	TokensCounted    int `json:"output_tokens_counted_requests"` // successes whose tokens no usage report told
}

// ReasonCount is how often attempts failed for one reason.
type ReasonCount struct {
	Outcome probe.Outcome `json:"outcome"`
	Reason  probe.Reason  `json:"reason"`
	Count   int           `json:"count"`
}

// Latencies are in seconds.
type Latencies struct {
	TTFT        *Latency `json:"ttft_seconds,omitempty"`
	FirstAnswer *Latency `json:"first_answer_seconds,omitempty"`
	TPOT        *Latency `json:"tpot_seconds,omitempty"`
	Stall       *Latency `json:"stall_seconds,omitempty"`
	E2E         *Latency `json:"e2e_seconds,omitempty"`
	// E2EFromIntended counts from when the request was due, in an open loop: with the wait that a late start adds.
	E2EFromIntended *Latency `json:"e2e_from_intended_seconds,omitempty"`
	// ChunkGap is of successes, right to 0.3 %, and without intervals: the gaps of one answer depend on each other.
	ChunkGap *Distribution `json:"chunk_gap_seconds,omitempty"`
}

// Latency is one figure of the requests, twice: failures neither hide in nor flatter the latency of successes.
type Latency struct {
	Successes    *Distribution `json:"successes,omitempty"`     // that have the figure
	WithFailures *Distribution `json:"with_failures,omitempty"` // each failed attempt is +Inf: its user still waits
}

// Distribution describes a sample. Its quantiles are values of the sample by the nearest rank: p95 of n values is the
// ⌈0.95 n⌉-th smallest. Their intervals lie between two further ranks, and are absent where the sample is too small to
// have both.
type Distribution struct {
	Count int   `json:"count"`
	Mean  Value `json:"mean"`
	Min   Value `json:"min"`
	P50   Value `json:"p50"`
	P95   Value `json:"p95"`
	P99   Value `json:"p99"`
	Max   Value `json:"max"`

	P50Interval *Interval `json:"p50_interval,omitempty"`
	P95Interval *Interval `json:"p95_interval,omitempty"`
	P99Interval *Interval `json:"p99_interval,omitempty"`
}

// Lengths are in tokens, of successes.
type Lengths struct {
	Input  *Distribution `json:"input_tokens,omitempty"`
	Output *Distribution `json:"output_tokens,omitempty"`
}

// Client is what the client itself did to the figures.
type Client struct {
	StartLag *Distribution `json:"start_lag_seconds,omitempty"` // how late requests were sent, waits for max_in_flight included
	OwnLag   *Distribution `json:"own_lag_seconds,omitempty"`   // how late answers were read
	CPU      float64       `json:"cpu_seconds"`                 // of this process, on all cores
	CPUShare *float64      `json:"cpu_share,omitempty"`         // of what the cores could have given
	Cores    int           `json:"cores"`
	Queued   int           `json:"queued_requests"` // that waited for max_in_flight
	Unsent   int           `json:"unsent_requests"` // due, but not sent when the run ended
}

// Value is a number of a report. JSON has no infinity: it is written as the string "+Inf", as Prometheus writes it.
type Value float64

const infinite = `"+Inf"`

// MarshalJSON writes a number, or "+Inf".
func (v Value) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(v), 1) {
		return []byte(infinite), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(text []byte) error {
	if string(text) == infinite {
		*v = Value(math.Inf(1))
		return nil
	}
	return json.Unmarshal(text, (*float64)(v))
}

// WriteJSON writes the report as indented JSON.
func (r *Report) WriteJSON(w io.Writer) error { return writeDocument(w, r) }

// ReadReport reads a report as WriteJSON wrote it.
func ReadReport(r io.Reader) (*Report, error) {
	var report Report
	if err := readDocument(r, &report, &report.Version); err != nil {
		return nil, fmt.Errorf("not the JSON of a report, as goodputctl bench --output=json prints it: %w", err)
	}
	return &report, nil
}

// writeDocument writes a report of one level or of several.
func writeDocument(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// readDocument reads what writeDocument wrote. version is that of v.
func readDocument(r io.Reader, v any, version *int) error {
	if err := json.NewDecoder(r).Decode(v); err != nil {
		return err
	}
	if *version != ReportVersion {
		return fmt.Errorf("a report of version %d; this program reads version %d", *version, ReportVersion)
	}
	return nil
}
