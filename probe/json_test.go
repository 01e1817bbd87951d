package probe_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/probe"
	"goodput_exporter/probe/probetest"
)

// TestResultComesBackFromJSON checks it for a result that has everything, for one that has nothing, and for every length of time.
func TestResultComesBackFromJSON(t *testing.T) {
	full := fullResult()
	checkComesBack(t, full)
	checkComesBack(t, &probe.Result{Outcome: probe.Canceled, OutputTokensSource: probe.TokensNone})
	for d := time.Duration(1); d < 20*24*time.Hour; d = d*5/3 + 1 {
		full.TTFT, full.OwnLag = &d, new(-d)
		checkComesBack(t, full)
	}
}

// TestResultsOfCasesComeBackFromJSON checks it for what real probes find.
func TestResultsOfCasesComeBackFromJSON(t *testing.T) {
	cases, err := probetest.LoadCases(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(cases); i += 5 {
		c := cases[i]
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			p, err := probetest.NewPlayer(c, probetest.PlayerOptions{TLS: c.HTTP2()})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for _, r := range probeSeries(t, caseSeries(t, c, p), 1) {
				checkComesBack(t, r)
			}
		})
	}
}

func TestUnmarshalResultRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"an outcome that is none": `{"outcome":"splendid"}`,
		"no outcome":              `{}`,
		"what is no object":       `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			r := probe.Result{Target: "before"}
			if err := json.Unmarshal([]byte(text), &r); err == nil || r.Target != "before" {
				t.Errorf("error %v, result %+v", err, r)
			}
		})
	}
}

func checkComesBack(t *testing.T, r *probe.Result) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got probe.Result
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := *r
	want.Time = want.Time.Round(0)
	want.ChunkGaps = nil
	want.ServerTimes = slices.Clone(want.ServerTimes)
	slices.SortFunc(want.ServerTimes, func(a, b probe.ServerTime) int {
		return slices.Index(probe.ServerKinds, a.Kind) - slices.Index(probe.ServerKinds, b.Kind)
	})
	want.Text, want.Error = strings.ToValidUTF8(want.Text, "\uFFFD"), strings.ToValidUTF8(want.Error, "\uFFFD")
	if diff := cmp.Diff(&want, &got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// fullResult has something else than nothing in every field.
func fullResult() *probe.Result {
	return &probe.Result{
		Target: "chat-eu", Scenario: "chat", Model: "m", Protocol: "openai-chat",
		Time:    time.Date(2026, 11, 29, 18, 0, 0, 123456789, time.UTC),
		Outcome: probe.ServerError, Reason: probe.ReasonOverloaded, InBand: true, Error: "the server says \"busy\" <b>",
		Flags: []probe.Flag{probe.FlagBuffered, probe.FlagOwnLag},
		Judgments: []probe.Judgment{
			{SLO: probe.SLOGoodput, Verdict: probe.Missed},
			{SLO: probe.SLOAvailability, Verdict: probe.Missed},
			{SLO: "ttft", Verdict: probe.Met},
			{SLO: "tpot", Verdict: probe.NotApplicable},
			{SLO: "e2e", Verdict: probe.Unmeasurable},
			{SLO: "complete", Verdict: probe.Missed},
		},
		StatusCode: 200, FinishReason: "error", Text: "Grüße\n\u2028 😀",
		TTFB: new(1 * time.Millisecond), TTFT: new(123456789 * time.Nanosecond), FirstAnswer: new(3 * time.Second),
		E2E: new(59*time.Second + 999999999), TPOT: new(333333333 * time.Nanosecond), Stall: new(time.Duration(1)),
		ChunkGaps:   []time.Duration{1, 2},
		Phases:      []probe.Phase{{Name: probe.PhaseDNS, Duration: 1234567}, {Name: probe.PhaseHeaders, Duration: 7}},
		InputTokens: new(12), OutputTokens: new(0), OutputTokensSource: probe.TokensCounted, CachedInputTokens: new(3),
		ReasoningTokens: new(4), TokenEvents: 5, Comments: 6,
		ServerTimes: []probe.ServerTime{{Kind: "ttft", Took: 31500 * time.Microsecond}, {Kind: "total", Took: 7}},
		RetryAfter:  new(30 * time.Second), ConnectionReused: true, HTTPVersion: "HTTP/1.1", RequestID: "req-1",
		TraceID: strings.Repeat("ab", 16), SpanID: strings.Repeat("cd", 8), StampSource: "kernel", OwnLag: new(42 * time.Microsecond),
	}
}
