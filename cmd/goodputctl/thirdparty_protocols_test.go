//go:build thirdparty

package main_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// dialect is how aimock speaks one protocol: it paces every event alike, not the ones with tokens alone.
type dialect struct {
	protocol, path string
	leading        int // events before the first token
	trailing       int // events after the last token, up to the finish
	finish, length string
	noUsage        bool
}

// What aimock does other than the real servers, so that the tests do not ask for it:
//   - It calls a Responses answer that ran into the limit incomplete, but inside response.completed and without the
//     incomplete_details that tell why.
//   - Its Ollama ends every answer with done_reason "stop", and counts 0 tokens of all that it sent.
var dialects = map[string]dialect{
	"openai-responses":   {protocol: "openai-responses", path: "/v1", leading: 4, trailing: 4, finish: "completed"},
	"anthropic-messages": {protocol: "anthropic-messages", path: "/v1", leading: 2, trailing: 2, finish: "end_turn", length: "max_tokens"},
	"ollama chat":        {protocol: "ollama", path: "", leading: 0, trailing: 1, finish: "stop", noUsage: true},
	"ollama generate":    {protocol: "ollama", path: "/api/generate", leading: 0, trailing: 1, finish: "stop", noUsage: true},
}

func (d dialect) probe(t *testing.T, address, model string, flags ...string) report {
	t.Helper()
	return probeURL(t, "http://"+address+d.path, d.protocol, model, flags...)[0]
}

// checkSteady checks what a whole answer of the steady fixture says, however it came. tokenEvents are counted where
// the server's own count cannot be.
func (d dialect) checkSteady(t *testing.T, r report, tokenEvents int) {
	t.Helper()
	same(t, "outcome", r.Outcome, "good")
	same(t, "status", r.StatusCode, 200)
	same(t, "text", r.Text, steadyText)
	same(t, "finish reason", r.FinishReason, d.finish)
	same(t, "flagged usage_implausible", slices.Contains(r.Flags, "usage_implausible"), d.noUsage)
	if d.noUsage {
		same(t, "output tokens", count(r.OutputTokens), strconv.Itoa(tokenEvents))
		same(t, "source of output tokens", r.OutputTokensSource, "counted")
		return
	}
	same(t, "input tokens", count(r.InputTokens), strconv.Itoa(steadyInputTokens))
	same(t, "output tokens", count(r.OutputTokens), strconv.Itoa(steadyOutputTokens))
	same(t, "source of output tokens", r.OutputTokensSource, "usage")
}

func TestThirdPartyProtocolsStreamed(t *testing.T) {
	mock := startAimock(t, fixtures)
	for name, d := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ttft := steadyFirstEvent + float64(d.leading)*steadyGap
			e2e := ttft + float64(steadyTokenEvents-1+d.trailing)*steadyGap
			r := d.probe(t, mock, "steady", "--slo.ttft=2s")
			d.checkSteady(t, r, steadyTokenEvents)
			same(t, "verdict on ttft", r.SLO["ttft"], "good")
			between(t, "TTFT", r.TTFT, ttft-early, ttft+1)
			between(t, "E2E", r.E2E, e2e-early, e2e+2)
			between(t, "TPOT", r.TPOT, 0.9*steadyGap, 3*steadyGap)
			if slices.Contains(r.Flags, "buffered") {
				t.Errorf("flags %v: nothing was buffered", r.Flags)
			}
		})
	}
}

func TestThirdPartyProtocolsNotStreamed(t *testing.T) {
	mock := startAimock(t, fixtures)
	for name, d := range dialects {
		t.Run(name, func(t *testing.T) {
			r := d.probe(t, mock, "steady", "--no-stream")
			d.checkSteady(t, r, 1)
			between(t, "E2E", r.E2E, 0, 5)
			if r.TTFT != nil || r.TPOT != nil {
				t.Error("there is a TTFT or TPOT, although the answer was not streamed")
			}
		})
	}
}

func TestThirdPartyProtocolsLengthLimit(t *testing.T) {
	mock := startAimock(t, fixtures)
	for name, d := range dialects {
		if d.length == "" {
			continue
		}
		for _, mode := range []string{"--stream", "--no-stream"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				r := d.probe(t, mock, "limited by length", mode)
				same(t, "outcome", r.Outcome, "good")
				same(t, "finish reason", r.FinishReason, d.length)
				same(t, "flagged length_limited", slices.Contains(r.Flags, "length_limited"), true)
			})
		}
	}
}

// Directly, the connection that ends shows that the answer is not whole. Behind an nginx that gets it by HTTP/1.0,
// only the missing end of the protocol does.
func TestThirdPartyProtocolsCutStream(t *testing.T) {
	mock := startAimock(t, fixtures)
	proxy := startNginx(t, mock)
	for name, d := range dialects {
		for _, test := range []struct{ way, address, outcome, reason string }{
			{"direct", mock, "interrupted", "unexpected_eof"},
			{"nginx as shipped", proxy.shipped, "truncated", "unterminated"},
		} {
			t.Run(name+" "+test.way, func(t *testing.T) {
				r := d.probe(t, test.address, "cut")
				same(t, "outcome", r.Outcome, test.outcome)
				same(t, "reason", r.Reason, test.reason)
				same(t, "status", r.StatusCode, 200)
				same(t, "verdict on goodput", r.SLO["goodput"], "bad")
				checkBeginning(t, r.Text, "one two three")
			})
		}
	}
}

func TestThirdPartyProtocolsErrors(t *testing.T) {
	mock := startAimock(t, fixtures)
	for name, d := range dialects {
		for _, test := range statusTests {
			for _, mode := range []string{"--stream", "--no-stream"} {
				t.Run(strings.Join([]string{name, test.model, mode}, " "), func(t *testing.T) {
					t.Parallel()
					test.check(t, d.probe(t, mock, test.model, mode))
				})
			}
		}
	}
}
