package load

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// CSV writes records as the lines of a table (RFC 4180), those of the warm-up included. Units stand in the header; a
// figure that does not exist is an empty field.
type CSV struct {
	w       *csv.Writer
	columns []column
}

// column is one column: its name and what a record has there.
type column struct {
	name  string
	value func(*Record) string
}

// NewCSV begins a table with its header. It has a column with the verdict on each criterion of the SLO.
func NewCSV(w io.Writer, slo config.SLO) *CSV {
	c := &CSV{w: csv.NewWriter(w), columns: columns(slo)}
	header := make([]string, len(c.columns))
	for i, col := range c.columns {
		header[i] = col.name
	}
	_ = c.w.Write(header) // its error is that of the next Write or Flush too
	return c
}

// Write adds a record. It may stay in a buffer until Flush.
func (c *CSV) Write(rec *Record) error {
	line := make([]string, len(c.columns))
	for i, col := range c.columns {
		line[i] = col.value(rec)
	}
	return c.w.Write(line)
}

// Flush writes what is buffered, and returns the first error of any write.
func (c *CSV) Flush() error {
	c.w.Flush()
	return c.w.Error()
}

// columns are those of a table. Instants count from the start of the run.
func columns(slo config.SLO) []column {
	all := []column{
		{"n", func(r *Record) string { return strconv.Itoa(r.N) }},
		{"warmup", func(r *Record) string { return strconv.FormatBool(r.Warmup) }},
		{"intended_seconds", func(r *Record) string { return inSeconds(&r.Intended) }},
		{"sent_seconds", func(r *Record) string { return inSeconds(&r.Sent) }},
		{"ended_seconds", func(r *Record) string { return inSeconds(&r.Ended) }},
		{"given_up", func(r *Record) string { return strconv.FormatBool(r.GivenUp) }},
		{"outcome", func(r *Record) string { return string(r.Outcome) }},
		{"reason", func(r *Record) string { return string(r.Reason) }},
		{"in_band", func(r *Record) string { return strconv.FormatBool(r.InBand) }},
	}
	for _, criterion := range slo.Criteria {
		all = append(all, column{"slo_" + criterion.Name, func(r *Record) string { return string(r.verdict(criterion.Name)) }})
	}
	return append(all,
		column{"ttft_seconds", func(r *Record) string { return inSeconds(r.TTFT) }},
		column{"first_answer_seconds", func(r *Record) string { return inSeconds(r.FirstAnswer) }},
		column{"tpot_seconds", func(r *Record) string { return inSeconds(r.TPOT) }},
		column{"stall_seconds", func(r *Record) string { return inSeconds(r.Stall) }},
		column{"e2e_seconds", func(r *Record) string { return inSeconds(r.E2E) }},
		column{"own_lag_seconds", func(r *Record) string { return inSeconds(r.OwnLag) }},
		column{"input_tokens", func(r *Record) string { return decimal(r.InputTokens) }},
		column{"output_tokens", func(r *Record) string { return decimal(r.OutputTokens) }},
		column{"output_tokens_source", func(r *Record) string { return string(r.OutputTokensSource) }},
		column{"cached_input_tokens", func(r *Record) string { return decimal(r.CachedInputTokens) }},
		column{"reasoning_tokens", func(r *Record) string { return decimal(r.ReasoningTokens) }},
		column{"status_code", func(r *Record) string { return statusCode(r.StatusCode) }},
		column{"finish_reason", func(r *Record) string { return r.FinishReason }},
		column{"flags", func(r *Record) string { return joined(r.Flags) }},
		column{"connection_reused", func(r *Record) string { return strconv.FormatBool(r.ConnectionReused) }},
		column{"trace_id", func(r *Record) string { return r.TraceID }},
		column{"request_id", func(r *Record) string { return r.RequestID }},
		column{"error", func(r *Record) string { return r.Error }},
	)
}

// verdict is that on a criterion, "" where the request has none: it was no attempt.
func (r *Record) verdict(criterion string) probe.Verdict {
	for _, j := range r.Judgments {
		if j.SLO == criterion {
			return j.Verdict
		}
	}
	return ""
}

func inSeconds(d *time.Duration) string {
	if d == nil {
		return ""
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

func decimal(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func statusCode(code int) string {
	if code == 0 {
		return "" // there was no response
	}
	return strconv.Itoa(code)
}

func joined(flags []probe.Flag) string {
	names := make([]string, len(flags))
	for i, f := range flags {
		names[i] = string(f)
	}
	return strings.Join(names, " ")
}
