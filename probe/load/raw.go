package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// rawVersion is the version of the raw form.
const rawVersion = 1

// longestRawLine bounds a line in bytes: far above any record, so that a foreign file is not read whole to be refused.
const longestRawLine = 4 << 20

// rawLine is one line of a raw file; one of the fields is set. The first line has the head, each further one a record,
// the last one the end. Durations are integer nanoseconds: nothing is lost.
type rawLine struct {
	Head   *rawHead   `json:"goodput_run,omitempty"`
	Record *rawRecord `json:"record,omitempty"`
	End    *rawEnd    `json:"end,omitempty"`
}

type rawHead struct {
	Version int       `json:"version"`
	About   rawAbout  `json:"about"`
	Level   rawLevel  `json:"level"`
	Started time.Time `json:"started"`
}

// The following are Level, About, config.SLO, Record, Window and Gaps with the names of the file. A field that is added
// there and not here does not compile.
type (
	rawLevel struct {
		Concurrency int     `json:"concurrency,omitempty"`
		Rate        float64 `json:"rate_req_s,omitempty"`
	}

	rawAbout struct {
		Target      string        `json:"target,omitempty"`
		Scenario    string        `json:"scenario,omitempty"`
		Model       string        `json:"model"`
		Protocol    string        `json:"protocol"`
		URL         string        `json:"url"`
		SLO         config.SLO    `json:"slo"`
		Arrivals    string        `json:"arrivals,omitempty"`
		Burstiness  float64       `json:"burstiness,omitempty"`
		Workload    string        `json:"workload,omitempty"`
		CancelShare float64       `json:"cancel_share,omitempty"`
		CancelAfter time.Duration `json:"cancel_after_ns,omitempty"`
		MaxInFlight int           `json:"max_in_flight,omitempty"`
		Share       string        `json:"share,omitempty"`
	}

	rawRecord struct {
		N                  int                `json:"n"`
		Warmup             bool               `json:"warmup,omitempty"`
		Intended           time.Duration      `json:"intended_ns"`
		Sent               time.Duration      `json:"sent_ns"`
		Ended              time.Duration      `json:"ended_ns"`
		Queued             bool               `json:"queued,omitempty"`
		GivenUp            bool               `json:"given_up,omitempty"`
		Outcome            probe.Outcome      `json:"outcome"`
		Reason             probe.Reason       `json:"reason,omitempty"`
		InBand             bool               `json:"in_band,omitempty"`
		Judgments          []probe.Judgment   `json:"judgments,omitempty"`
		StatusCode         int                `json:"status_code,omitempty"`
		FinishReason       string             `json:"finish_reason,omitempty"`
		Flags              []probe.Flag       `json:"flags,omitempty"`
		TTFT               *time.Duration     `json:"ttft_ns,omitempty"`
		FirstAnswer        *time.Duration     `json:"first_answer_ns,omitempty"`
		TPOT               *time.Duration     `json:"tpot_ns,omitempty"`
		Stall              *time.Duration     `json:"stall_ns,omitempty"`
		E2E                *time.Duration     `json:"e2e_ns,omitempty"`
		OwnLag             *time.Duration     `json:"own_lag_ns,omitempty"`
		InputTokens        *int               `json:"input_tokens,omitempty"`
		OutputTokens       *int               `json:"output_tokens,omitempty"`
		OutputTokensSource probe.TokensSource `json:"output_tokens_source,omitempty"`
		CachedInputTokens  *int               `json:"cached_input_tokens,omitempty"`
		ReasoningTokens    *int               `json:"reasoning_tokens,omitempty"`
		ConnectionReused   bool               `json:"connection_reused,omitempty"`
		TraceID            string             `json:"trace_id,omitempty"`
		RequestID          string             `json:"request_id,omitempty"`
		Error              string             `json:"error,omitempty"`
	}

	rawWindow struct {
		From     time.Duration `json:"from_ns"`
		LastSend time.Duration `json:"last_send_ns"`
		To       time.Duration `json:"to_ns"`
	}

	rawGaps struct {
		Counts map[int]int   `json:"buckets,omitempty"`
		Count  int           `json:"count"`
		Sum    time.Duration `json:"sum_ns"`
	}
)

type rawEnd struct {
	Records     int           `json:"records"`
	Window      rawWindow     `json:"window"`
	Gaps        rawGaps       `json:"chunk_gaps"`
	Interrupted bool          `json:"interrupted,omitempty"`
	Hopeless    string        `json:"hopeless,omitempty"`
	CPU         time.Duration `json:"cpu_ns"`
	Cores       int           `json:"cores"`
	Unsent      int           `json:"unsent_requests,omitempty"`
}

// WriteRaw writes a run as JSON lines, from which ReadRaw makes the same run again.
func WriteRaw(w io.Writer, run *Run) error {
	buffered := bufio.NewWriter(w)
	e := json.NewEncoder(buffered)
	e.SetEscapeHTML(false)
	err := e.Encode(rawLine{Head: &rawHead{
		Version: rawVersion, About: rawAbout(run.About), Level: rawLevel(run.Level), Started: run.Started.UTC(),
	}})
	for i := range run.Records {
		if err != nil {
			return err
		}
		record := rawRecord(run.Records[i])
		err = e.Encode(rawLine{Record: &record})
	}
	if err != nil {
		return err
	}
	err = e.Encode(rawLine{End: &rawEnd{
		Records: len(run.Records), Window: rawWindow(run.Window), Gaps: rawGaps(run.Gaps),
		Interrupted: run.Interrupted, Hopeless: run.Hopeless, CPU: run.CPU, Cores: run.Cores, Unsent: run.Unsent,
	}})
	if err != nil {
		return err
	}
	return buffered.Flush()
}

// ReadRaw reads what WriteRaw wrote. An error names the line: a file that is cut short, or another kind of file, is none.
func ReadRaw(r io.Reader) (*Run, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestRawLine)
	var raw rawReader
	n := 0
	for lines.Scan() {
		n++
		if err := raw.line(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	switch {
	case lines.Err() != nil:
		return nil, fmt.Errorf("line %d: %w", n+1, lines.Err())
	case n == 0:
		return nil, errors.New("line 1: the file is empty")
	case !raw.ended:
		return nil, fmt.Errorf("line %d: the file ends without the end of the run: it was cut short", n)
	}
	return &raw.run, nil
}

// rawReader is a run that is being read.
type rawReader struct {
	run          Run
	begun, ended bool
}

func (r *rawReader) line(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var line rawLine
	err := d.Decode(&line)
	switch {
	case !r.begun && (err != nil || line.Head == nil):
		return errors.New("not a raw result of goodputctl bench: it does not begin with goodput_run")
	case err != nil:
		return fmt.Errorf("not a line of a raw result, or cut short: %w", err)
	case r.ended:
		return errors.New("more lines after the end of the run: a file holds one run")
	case !r.begun:
		return r.head(line.Head)
	case line.Record != nil:
		return r.record(line.Record)
	case line.End != nil:
		return r.end(line.End)
	}
	return errors.New("neither a record nor the end of the run")
}

func (r *rawReader) head(h *rawHead) error {
	if h.Version != rawVersion {
		return fmt.Errorf("a raw result of version %d; this program reads version %d", h.Version, rawVersion)
	}
	r.begun = true
	r.run.About, r.run.Level, r.run.Started = About(h.About), Level(h.Level), h.Started
	return nil
}

func (r *rawReader) record(rec *rawRecord) error {
	if !slices.Contains(probe.Outcomes, rec.Outcome) && !slices.Contains(probe.AbortedOutcomes, rec.Outcome) {
		return fmt.Errorf("unknown outcome %q", rec.Outcome)
	}
	r.run.Records = append(r.run.Records, Record(*rec))
	return nil
}

func (r *rawReader) end(e *rawEnd) error {
	if e.Records != len(r.run.Records) {
		return fmt.Errorf("the run had %d records, the file has %d: lines are missing, or there twice", e.Records, len(r.run.Records))
	}
	r.ended = true
	r.run.Window, r.run.Gaps = Window(e.Window), Gaps(e.Gaps)
	r.run.Interrupted, r.run.Hopeless = e.Interrupted, e.Hopeless
	r.run.CPU, r.run.Cores, r.run.Unsent = e.CPU, e.Cores, e.Unsent
	return nil
}
