package journal

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"goodput_exporter/probe"
)

// began is when result 0 was sent: long ago, but not as long as the age of a file.
var began = time.Now().Add(-6 * time.Hour).Round(0).UTC()

// numbered is a result that tells its number. Every third is not good, and no two are of the same length or time.
func numbered(n int) *probe.Result {
	r := &probe.Result{
		Target: "chat-eu", Scenario: "chat", Model: "llama", Protocol: "openai-chat",
		Time: began.Add(time.Duration(n) * 100 * time.Millisecond), Outcome: probe.Good,
		Judgments: []probe.Judgment{
			{SLO: probe.SLOGoodput, Verdict: probe.Met},
			{SLO: probe.SLOAvailability, Verdict: probe.Met},
			{SLO: "ttft", Verdict: probe.Met},
			{SLO: "e2e", Verdict: probe.Met},
		},
		StatusCode: 200, FinishReason: "stop", Text: strings.Repeat("Grüße ", n%17),
		TTFB: new(50 * time.Millisecond), TTFT: new(200*time.Millisecond + time.Duration(n)),
		E2E: new(3*time.Second + time.Duration(n)*time.Microsecond), TPOT: new(31234567 * time.Nanosecond),
		Stall:       new(99 * time.Millisecond),
		Phases:      []probe.Phase{{Name: probe.PhaseRequest, Duration: 81234}, {Name: probe.PhaseHeaders, Duration: 49876543}},
		InputTokens: new(20), OutputTokens: new(97), OutputTokensSource: probe.TokensUsage, TokenEvents: 96,
		ConnectionReused: true, HTTPVersion: "HTTP/1.1", RequestID: strconv.Itoa(n),
		TraceID: fmt.Sprintf("%032x", n), SpanID: fmt.Sprintf("%016x", n), StampSource: "kernel", OwnLag: new(21 * time.Microsecond),
	}
	if n%3 == 0 {
		r.Outcome, r.Reason, r.Error = probe.ServerError, probe.ReasonOverloaded, "status 503: <busy>"
		r.Flags = []probe.Flag{probe.FlagTruncated}
		r.TPOT, r.OutputTokens, r.OutputTokensSource = nil, nil, probe.TokensNone
		r.Judgments[0].Verdict, r.Judgments[1].Verdict, r.Judgments[3].Verdict = probe.Missed, probe.Missed, probe.Unmeasurable
	}
	return r
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "journal", "results.jsonl") }

func mustOpen(t testing.TB, opts Options) *Journal {
	t.Helper()
	j, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// appendNumbered appends results and waits until they are written, so that the queue has room. They are the first of j.
func appendNumbered(t testing.TB, j *Journal, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		j.Append("chat-eu/chat", numbered(n))
		if n%1000 == 0 || n == to {
			waitWritten(t, j, n-from+1)
		}
	}
}

// waitWritten waits until so many results were written since the journal was opened.
func waitWritten(t testing.TB, j *Journal, results int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); j.Stats().Written < uint64(results); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("not %d results written but %+v", results, j.Stats())
		}
	}
}

func mustClose(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// replayAll returns all that comes back.
func replayAll(t testing.TB, path string) ([]*probe.Result, Replayed) {
	t.Helper()
	var results []*probe.Result
	sum, err := Replay(path, time.Time{}, func(key string, r *probe.Result) {
		if key != r.Target+"/"+r.Scenario {
			t.Errorf("key %q of a result of %s/%s", key, r.Target, r.Scenario)
		}
		results = append(results, r)
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Restored != len(results) {
		t.Errorf("%d results restored, %d said", len(results), sum.Restored)
	}
	return results, sum
}

// numbers are those of results.
func numbers(t testing.TB, results []*probe.Result) []int {
	t.Helper()
	list := make([]int, 0, len(results))
	for _, r := range results {
		n, err := strconv.Atoi(r.RequestID)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

func count(from, to int) []int {
	list := make([]int, 0, to-from+1)
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

func (b batch) results() []*probe.Result {
	var list []*probe.Result
	for _, e := range b.entries {
		list = append(list, e.result)
	}
	return list
}
