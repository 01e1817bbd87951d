package load

import (
	"bytes"
	"encoding/csv"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goodput_exporter/probe"
)

// fullRun has a value in every field that a run can have.
func fullRun() *Run {
	run := drawnRun(5, 200)
	run.About.Burstiness, run.About.CancelShare, run.About.CancelAfter = 0.5, 0.05, time.Second
	run.About.MaxInFlight, run.About.Share = 64, "1/4"
	run.About.SLO.Availability = 0.999
	run.Interrupted, run.Hopeless, run.Unsent = true, "no answer", 4
	run.Records[17] = Record{
		N: 17, Warmup: true, Intended: 1, Sent: 2, Ended: 3, Queued: true, GivenUp: true, Outcome: probe.ServerError, Reason: probe.ReasonInternal, InBand: true,
		Judgments: []probe.Judgment{{SLO: "goodput", Verdict: probe.Missed}}, StatusCode: 200, FinishReason: "stop", Flags: []probe.Flag{probe.FlagTruncated},
		TTFT: new(time.Duration(1)), FirstAnswer: new(time.Duration(2)), TPOT: new(time.Duration(3)), Stall: new(time.Duration(4)),
		E2E: new(time.Duration(5)), OwnLag: new(time.Duration(6)), InputTokens: new(0), OutputTokens: new(1), OutputTokensSource: probe.TokensCounted,
		CachedInputTokens: new(2), ReasoningTokens: new(3), ConnectionReused: true, TraceID: "t", RequestID: "r", Error: "line\nbreak, \"quotes\" <é>",
	}
	return run
}

func rawOf(t *testing.T, run *Run) string {
	t.Helper()
	var text bytes.Buffer
	if err := WriteRaw(&text, run); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestRawIsLossless(t *testing.T) {
	want := fullRun()
	got, err := ReadRaw(strings.NewReader(rawOf(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the run is another one when read back (-want +got):\n%s", diff)
	}
}

func TestBrokenRawFilesAreRefusedByLine(t *testing.T) {
	whole := rawOf(t, drawnRun(5, 10))
	lines := strings.SplitAfter(whole, "\n")
	for name, tc := range map[string]struct{ text, want string }{
		"empty":             {"", "line 1: the file is empty"},
		"foreign":           {"throughput: 10\n", "line 1: not a raw result of goodputctl bench"},
		"foreign JSON":      {`{"version": 1}` + "\n", "line 1: not a raw result"},
		"newer":             {strings.Replace(whole, `"version":1`, `"version":9`, 1), "line 1: a raw result of version 9"},
		"cut between lines": {strings.Join(lines[:5], ""), "line 5: the file ends without the end of the run"},
		"cut in a line":     {strings.Join(lines[:5], "") + lines[5][:20], "line 6: not a line of a raw result, or cut short"},
		"line missing":      {strings.Join(append(append([]string{}, lines[:3]...), lines[4:]...), ""), "line 11: the run had 10 records, the file has 9"},
		"two runs":          {whole + whole, "line 13: more lines after the end"},
		"foreign line":      {lines[0] + "{}\n", "line 2: neither a record nor the end"},
		"unknown outcome":   {lines[0] + `{"record":{"n":0,"intended_ns":0,"sent_ns":0,"ended_ns":0,"outcome":"fine"}}`, `line 2: unknown outcome "fine"`},
		"unknown field":     {lines[0] + `{"record":{"n":0,"outcome":"good","speed":1}}`, `line 2: not a line of a raw result, or cut short: json: unknown field "speed"`},
	} {
		if _, err := ReadRaw(strings.NewReader(tc.text)); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want %q", name, err, tc.want)
		}
	}
}

func TestCSVHasALineARequest(t *testing.T) {
	run := fullRun()
	var text bytes.Buffer
	w := NewCSV(&text, run.About.SLO)
	for i := range run.Records {
		if err := w.Write(&run.Records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	table, err := csv.NewReader(&text).ReadAll() // refuses lines of another length
	if err != nil {
		t.Fatal(err)
	}
	if len(table) != 1+len(run.Records) {
		t.Fatalf("%d lines, want a header and %d requests", len(table), len(run.Records))
	}
	at := func(line int, column string) string {
		for i, name := range table[0] {
			if name == column {
				return table[1+line][i]
			}
		}
		t.Fatalf("there is no column %q in %q", column, table[0])
		return ""
	}
	full := map[string]string{
		"n": "17", "warmup": "true", "sent_seconds": "0.000000002", "ttft_seconds": "0.000000001", "e2e_seconds": "0.000000005",
		"outcome": "server_error", "reason": "internal", "input_tokens": "0", "flags": "truncated", "error": "line\nbreak, \"quotes\" <é>",
		"slo_ttft": "", "status_code": "200",
	}
	for column, want := range full {
		if got := at(17, column); got != want {
			t.Errorf("%s is %q, want %q", column, got, want)
		}
	}
	attempts, good, missedTTFT := 0, 0, 0
	for i := range run.Records {
		switch outcome := probe.Outcome(at(i, "outcome")); {
		case at(i, "warmup") == "true" || at(i, "given_up") == "true":
			continue
		case outcome == probe.Good:
			good++
		case outcome == probe.RateLimited && at(i, "ttft_seconds") != "":
			t.Errorf("line %d has a TTFT, although there was none", i)
		}
		attempts++
		if at(i, "slo_ttft") == "bad" {
			missedTTFT++
		}
	}
	r := Summarize(run)
	ttft := r.SLO.Criteria[0].Attainment
	if attempts != r.Counts.Attempts || good != r.Counts.Good || missedTTFT != ttft.Of-ttft.Met {
		t.Errorf("the table has %d attempts, %d good, %d beyond the TTFT; the report %d, %d, %d",
			attempts, good, missedTTFT, r.Counts.Attempts, r.Counts.Good, ttft.Of-ttft.Met)
	}
}

// fullDisk fails after so many bytes.
type fullDisk struct{ left int }

var errDisk = errors.New("no space left")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.left -= len(p); d.left < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestFullDiskIsAnError(t *testing.T) {
	run := drawnRun(5, 200)
	for _, space := range []int{0, 10_000} {
		if err := WriteRaw(&fullDisk{space}, run); !errors.Is(err, errDisk) {
			t.Errorf("raw: got error %v, want %v", err, errDisk)
		}
	}
	w := NewCSV(&fullDisk{}, run.About.SLO)
	if err := w.Flush(); !errors.Is(err, errDisk) {
		t.Errorf("CSV: got error %v, want %v", err, errDisk)
	}
}
