//go:build thirdparty

// These tests run the built goodputctl against servers that we did not write: aimock, a server of several protocols
// from the npm registry, directly and behind Debian's nginx. make check installs them and runs the tests.

package main_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The steady fixture: a role chunk after 200 ms, then a chunk of five characters every 50 ms. So the first token
// comes after 250 ms and the last, the thirteenth, after 850 ms. The server says that these were twelve tokens.
const (
	steadyText         = "one two three four five six seven eight nine ten eleven twelve"
	steadyInputTokens  = 9
	steadyOutputTokens = 12
	steadyTokenEvents  = 13
	steadyFirstEvent   = 0.200
	steadyGap          = 0.050
	steadyTTFT         = steadyFirstEvent + steadyGap
	steadyE2E          = steadyTTFT + (steadyTokenEvents-1)*steadyGap

	early = 0.020 // Node timers may fire this much early over all chunks together, and no more
)

const fixtures = `{"fixtures": [
	{
		"match": {"model": "steady"},
		"response": {
			"content": "` + steadyText + `",
			"usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}
		},
		"chunkSize": 5, "streamingProfile": {"ttft": 200, "tps": 20}
	},
	{
		"match": {"model": "limited by length"},
		"response": {"content": "` + steadyText + `", "finishReason": "length"}, "chunkSize": 5
	},
	{
		"match": {"model": "cut"},
		"response": {"content": "` + steadyText + `"},
		"chunkSize": 5, "latency": 30, "truncateAfterChunks": 8
	},
	{"match": {"model": "status 401"}, "response": {"status": 401, "error": {"message": "bad key", "code": "invalid_api_key"}}},
	{"match": {"model": "status 429"}, "response": {"status": 429, "error": {"message": "slow down"}, "retryAfter": 7}},
	{"match": {"model": "status 500"}, "response": {"status": 500, "error": {"message": "broken"}}},
	{"match": {"model": "status 503"}, "response": {"status": 503, "error": {"message": "overloaded"}}}
]}`

// report is what goodputctl probe --output=json prints of one probe, as far as these tests look at it.
type report struct {
	Outcome            string            `json:"outcome"`
	Reason             string            `json:"reason"`
	StatusCode         int               `json:"status_code"`
	FinishReason       string            `json:"finish_reason"`
	Flags              []string          `json:"flags"`
	SLO                map[string]string `json:"slo"`
	Text               string            `json:"text"`
	TTFT               *float64          `json:"ttft_seconds"`
	E2E                *float64          `json:"e2e_seconds"`
	TPOT               *float64          `json:"tpot_seconds"`
	InputTokens        *int              `json:"input_tokens"`
	OutputTokens       *int              `json:"output_tokens"`
	OutputTokensSource string            `json:"output_tokens_source"`
	RetryAfter         *float64          `json:"retry_after_seconds"`
	ConnectionReused   bool              `json:"connection_reused"`
}

// probeChat runs goodputctl probe against the chat completions of an address and returns its reports.
func probeChat(t *testing.T, address, model string, flags ...string) []report {
	t.Helper()
	return probeURL(t, "http://"+address+"/v1", "openai-chat", model, flags...)
}

// probeURL runs goodputctl probe and returns its reports, having checked that the exit status says the same as they do.
func probeURL(t *testing.T, url, protocol, model string, flags ...string) []report {
	t.Helper()
	args := append([]string{
		"probe", "--url", url, "--protocol", protocol, "--model", model, "--output=json", "--prompt", "Count to twelve.",
	}, flags...)
	cmd := exec.CommandContext(t.Context(), program(t, "GOODPUTCTL"), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}

	var reports []report
	good := true
	for line := range strings.Lines(string(output)) {
		var r report
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in the line %q", err, line)
		}
		reports = append(reports, r)
		good = good && r.Outcome == "good"
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("goodputctl %s\n%s%s", strings.Join(args, " "), output, &stderr)
		}
	})
	if len(reports) == 0 {
		t.Fatalf("goodputctl printed no report: %v\n%s", err, &stderr)
	}
	want := 1
	if good {
		want = 0
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		t.Errorf("exit status %d, want %d", got, want)
	}
	return reports
}

// between checks that a figure exists and stands in [low, high).
func between(t *testing.T, name string, figure *float64, low, high float64) {
	t.Helper()
	switch {
	case figure == nil:
		t.Errorf("there is no %s", name)
	case *figure < low || *figure >= high:
		t.Errorf("%s is %.4f, want at least %.4f and less than %.4f", name, *figure, low, high)
	}
}

// same checks a value that must be right to the last bit.
func same[T comparable](t *testing.T, name string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}

// count is a number of tokens that may be absent, for messages.
func count(n *int) string {
	if n == nil {
		return "absent"
	}
	return strconv.Itoa(*n)
}

// checkSteady checks all of a report of the steady fixture that does not depend on the way to it.
func checkSteady(t *testing.T, r report) {
	t.Helper()
	same(t, "text", r.Text, steadyText)
	same(t, "status", r.StatusCode, 200)
	same(t, "finish reason", r.FinishReason, "stop")
	same(t, "input tokens", count(r.InputTokens), strconv.Itoa(steadyInputTokens))
	same(t, "output tokens", count(r.OutputTokens), strconv.Itoa(steadyOutputTokens))
	same(t, "source of output tokens", r.OutputTokensSource, "usage")
}

// checkBeginning checks that a text is the beginning of the steady one, not all of it, and has at least so much.
func checkBeginning(t *testing.T, text, least string) {
	t.Helper()
	if !strings.HasPrefix(text, least) || !strings.HasPrefix(steadyText, text) || text == steadyText {
		t.Errorf("text is %q, want what came before the end", text)
	}
}

func TestThirdPartySteadyStream(t *testing.T) {
	mock := startAimock(t, fixtures)
	proxy := startNginx(t, mock)
	// Between the TTFT of a stream that flows and that of one that a proxy holds back until its end.
	const limit = "--slo.ttft=600ms"

	for name, address := range map[string]string{"direct": mock, "nginx unbuffered": proxy.unbuffered} {
		t.Run(name, func(t *testing.T) {
			for _, r := range probeChat(t, address, "steady", limit, "--count", "2") {
				checkSteady(t, r)
				same(t, "outcome", r.Outcome, "good")
				same(t, "verdict on ttft", r.SLO["ttft"], "good")
				between(t, "TTFT", r.TTFT, steadyTTFT-early, 0.600)
				between(t, "E2E", r.E2E, steadyE2E-early, steadyE2E+1)
				// Twelve gaps over the eleven that the server's count of tokens stands for.
				between(t, "TPOT", r.TPOT, 0.9*12*steadyGap/(steadyOutputTokens-1), 2*steadyGap)
				if slices.Contains(r.Flags, "buffered") {
					t.Errorf("flags %v: nothing was buffered", r.Flags)
				}
			}
		})
	}

	// As shipped, nginx holds a short answer until its end. That is when a user sees it, so it is the TTFT.
	t.Run("nginx as shipped", func(t *testing.T) {
		r := probeChat(t, proxy.shipped, "steady", limit)[0]
		checkSteady(t, r)
		same(t, "outcome", r.Outcome, "slo_violation")
		same(t, "verdict on ttft", r.SLO["ttft"], "bad")
		same(t, "verdict on availability", r.SLO["availability"], "good")
		between(t, "TTFT", r.TTFT, steadyE2E-early, steadyE2E+1)
		between(t, "E2E", r.E2E, steadyE2E-early, steadyE2E+1)
		if r.TPOT != nil {
			t.Errorf("TPOT is %v, although all tokens came in one read", *r.TPOT)
		}
		if !slices.Contains(r.Flags, "buffered") {
			t.Errorf("flags %v, want buffered", r.Flags)
		}
	})
}

func TestThirdPartyAnswerNotStreamed(t *testing.T) {
	mock := startAimock(t, fixtures)
	proxy := startNginx(t, mock)

	for name, address := range map[string]string{
		"direct": mock, "nginx as shipped": proxy.shipped, "nginx unbuffered": proxy.unbuffered,
	} {
		t.Run(name, func(t *testing.T) {
			r := probeChat(t, address, "steady", "--no-stream")[0]
			checkSteady(t, r)
			same(t, "outcome", r.Outcome, "good")
			between(t, "E2E", r.E2E, 0, 5)
			if r.TTFT != nil || r.TPOT != nil {
				t.Error("there is a TTFT or TPOT, although the answer was not streamed")
			}
		})
	}
}

func TestThirdPartyConnectionIsReused(t *testing.T) {
	mock := startAimock(t, fixtures)
	proxy := startNginx(t, mock)

	for name, address := range map[string]string{"direct": mock, "nginx as shipped": proxy.shipped} {
		t.Run(name, func(t *testing.T) {
			reports := probeChat(t, address, "steady", "--no-stream", "--count", "2")
			same(t, "number of reports", len(reports), 2)
			same(t, "the first is on a reused connection", reports[0].ConnectionReused, false)
			same(t, "the second is on a reused connection", reports[len(reports)-1].ConnectionReused, true)
		})
	}
}

func TestThirdPartyLengthLimit(t *testing.T) {
	mock := startAimock(t, fixtures)

	for outcome, flags := range map[string][]string{
		"good":          nil,
		"slo_violation": {"--slo.e2e", "5s"}, // an SLO brings the criterion complete along
	} {
		t.Run(outcome, func(t *testing.T) {
			r := probeChat(t, mock, "limited by length", flags...)[0]
			same(t, "outcome", r.Outcome, outcome)
			same(t, "finish reason", r.FinishReason, "length")
			same(t, "verdict on availability", r.SLO["availability"], "good")
			if !slices.Contains(r.Flags, "length_limited") {
				t.Errorf("flags %v, want length_limited", r.Flags)
			}
		})
	}
}

// A server that dies in the middle of its answer closes the connection. Directly, and through a proxy that
// speaks HTTP/1.1 to it, the missing last chunk shows that. To nginx as shipped, which speaks HTTP/1.0, it is the
// end of the answer like any other, and the client gets a whole body; only the protocol's own end is missing.
func TestThirdPartyCutStream(t *testing.T) {
	mock := startAimock(t, fixtures)
	proxy := startNginx(t, mock)

	for name, test := range map[string]struct{ address, outcome, reason string }{
		"direct":           {mock, "interrupted", "unexpected_eof"},
		"nginx as shipped": {proxy.shipped, "truncated", "unterminated"},
		"nginx unbuffered": {proxy.unbuffered, "truncated", "unterminated"},
		"nginx HTTP/1.1":   {proxy.http11, "interrupted", "unexpected_eof"},
	} {
		t.Run(name, func(t *testing.T) {
			r := probeChat(t, test.address, "cut")[0]
			same(t, "outcome", r.Outcome, test.outcome)
			same(t, "reason", r.Reason, test.reason)
			same(t, "status", r.StatusCode, 200)
			same(t, "verdict on goodput", r.SLO["goodput"], "bad")
			same(t, "verdict on availability", r.SLO["availability"], "bad")
			checkBeginning(t, r.Text, "one two three four five")
		})
	}
}

func TestThirdPartyTimeouts(t *testing.T) {
	mock := startAimock(t, fixtures)

	for reason, flags := range map[string][]string{
		"idle":  {"--idle-timeout", "25ms"}, // half a gap
		"total": {"--timeout", "650ms", "--first-token-timeout", "600ms", "--idle-timeout", "600ms"},
	} {
		t.Run(reason, func(t *testing.T) {
			r := probeChat(t, mock, "steady", flags...)[0]
			same(t, "outcome", r.Outcome, "timeout")
			same(t, "reason", r.Reason, reason)
			same(t, "verdict on goodput", r.SLO["goodput"], "bad")
			checkBeginning(t, r.Text, "o")
		})
	}
}

// statusTest is a fixture that answers with an error.
type statusTest struct {
	model, outcome, reason string
	status                 int
	retryAfter             *float64
}

var statusTests = []statusTest{
	{model: "status 401", outcome: "client_error", reason: "auth", status: 401},
	{model: "unknown", outcome: "client_error", reason: "not_found", status: 404},
	{model: "status 429", outcome: "rate_limited", reason: "limit", status: 429, retryAfter: new(7.0)},
	{model: "status 500", outcome: "server_error", reason: "internal", status: 500},
	{model: "status 503", outcome: "server_error", reason: "overloaded", status: 503},
}

func (test statusTest) check(t *testing.T, r report) {
	t.Helper()
	same(t, "outcome", r.Outcome, test.outcome)
	same(t, "reason", r.Reason, test.reason)
	same(t, "status", r.StatusCode, test.status)
	if r.TTFT != nil {
		t.Errorf("TTFT is %v, although there was no token", *r.TTFT)
	}
	switch {
	case test.retryAfter != nil:
		between(t, "Retry-After", r.RetryAfter, *test.retryAfter, *test.retryAfter+0.001)
	case r.RetryAfter != nil:
		t.Errorf("Retry-After is %v, although the server sent none", *r.RetryAfter)
	}
}

func TestThirdPartyErrors(t *testing.T) {
	mock := startAimock(t, fixtures)
	proxy := startNginx(t, mock)

	for _, test := range statusTests {
		for name, address := range map[string]string{"direct": mock, "nginx as shipped": proxy.shipped} {
			t.Run(test.model+" "+name, func(t *testing.T) {
				test.check(t, probeChat(t, address, test.model)[0])
			})
		}
	}
}

func TestThirdPartyDeadUpstream(t *testing.T) {
	dead := freeAddress(t)
	proxy := startNginx(t, dead)

	t.Run("nginx as shipped", func(t *testing.T) {
		r := probeChat(t, proxy.shipped, "steady")[0]
		same(t, "outcome", r.Outcome, "server_error")
		same(t, "reason", r.Reason, "bad_gateway")
		same(t, "status", r.StatusCode, 502)
	})
	t.Run("direct", func(t *testing.T) {
		r := probeChat(t, dead, "steady")[0]
		same(t, "outcome", r.Outcome, "connection_error")
		same(t, "reason", r.Reason, "refused")
		same(t, "status", r.StatusCode, 0)
	})
}
