package probe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe/arrival"
	"goodput_exporter/probe/probetest"
	"goodput_exporter/probe/wire"
)

const (
	casesFile         = "probetest/testdata/cases.yaml"
	moreCasesFile     = "probetest/testdata/more_cases.yaml"
	protocolCasesFile = "probetest/testdata/protocol_cases.yaml"
)

// eachCase hands over the cases of use here, and the body of each.
func eachCase(tb testing.TB, files []string, do func(probetest.Case, []byte)) {
	tb.Helper()
	for _, file := range files {
		cases, err := probetest.LoadCases(file)
		if err != nil {
			tb.Fatal(err)
		}
		for _, c := range cases {
			if body, ok := bodyOf(c); ok && slices.Contains(wire.Names(), c.Protocol) {
				do(c, body)
			}
		}
	}
}

// A verdict does not depend on how a body is cut into reads.
func TestVerdictDoesNotDependOnReads(t *testing.T) {
	eachCase(t, []string{casesFile, protocolCasesFile}, func(c probetest.Case, body []byte) {
		t.Run(c.ID+" "+c.Title, func(t *testing.T) {
			t.Parallel()
			want := readBody(t, c, body)
			compare := func(how string, pieces ...[]byte) {
				if diff := cmp.Diff(want, readBody(t, c, pieces...)); diff != "" {
					t.Fatalf("%s (-in one read +so):\n%s", how, diff)
				}
			}
			for i := 1; i < len(body); i++ {
				compare(fmt.Sprintf("split after %q", body[max(0, i-10):i]), body[:i], body[i:])
			}
			compare("byte by byte", slices.Collect(slices.Chunk(body, 1))...)
		})
	})
}

// FuzzVerdict checks that nothing is good without a terminal signal of its protocol, and that the verdict is the same
// however a body is split.
func FuzzVerdict(f *testing.F) {
	eachCase(f, []string{casesFile, moreCasesFile, protocolCasesFile}, func(c probetest.Case, body []byte) {
		f.Add(uint8(slices.Index(wire.Names(), c.Protocol)), c.Stream, strings.HasPrefix(c.BasePath, "/model/"), body, uint16(len(body)/2))
	})
	f.Fuzz(func(t *testing.T, protocol uint8, streamed, bedrock bool, body []byte, at uint16) {
		c := probetest.Case{
			Protocol: wire.Names()[int(protocol)%len(wire.Names())], Stream: streamed,
			Connections: []probetest.ConnectionPlan{{Requests: []probetest.Exchange{{}}}},
		}
		if bedrock {
			c.BasePath = "/model/x"
		}
		split := min(int(at), len(body))
		want := readBody(t, c, body)
		if diff := cmp.Diff(want, readBody(t, c, body[:split], body[split:])); diff != "" {
			t.Fatalf("split at %d (-in one read +so):\n%s", split, diff)
		}
		if want.Outcome == Good && !terminated(c, body) {
			t.Errorf("good, without a terminal signal: %+v", want)
		}
	})
}

// terminals are what a body must have somewhere to be complete, by protocol.
var terminals = map[string][]string{
	"anthropic-messages": {"message_stop", "stop_reason", `"message"`},
	"azure-openai":       {"finish_reason", "[done]", `"message"`, `"text"`},
	"bedrock-converse":   {"stopreason", "metadata", `"output"`},
	"cohere":             {"finish_reason", "message-end", `"message"`},
	"gemini":             {"finishreason", "blockreason", `"text"`, `"functioncall"`, `"executablecode"`},
	"ollama":             {`"done"`},
	"openai-chat":        {"finish_reason", "[done]", `"message"`, `"text"`},
	"openai-completions": {"finish_reason", "[done]", `"message"`, `"text"`},
	"openai-embeddings":  {`"embedding"`},
	"openai-responses":   {"response.completed", "response.incomplete", `"output"`, `"object"`},
	"rerank":             {`"index"`},
	"tgi":                {`"generated_text"`, `"details"`},
}

// terminated reports whether a body has a terminal signal. One with escapes or in base64 may hide it.
func terminated(c probetest.Case, body []byte) bool {
	if bytes.ContainsAny(body, `\`) || c.BasePath == "/model/x" {
		return true
	}
	lower := bytes.ToLower(body)
	return slices.ContainsFunc(terminals[c.Protocol], func(s string) bool { return bytes.Contains(lower, []byte(s)) })
}

// bodyOf returns what the first answer of a case writes. False: it is not of use here.
func bodyOf(c probetest.Case) ([]byte, bool) {
	x := c.Connections[0].Requests[0]
	var body []byte
	for _, step := range x.Script {
		body = append(body, step.Write...)
	}
	const most = 2 << 10 // every byte is a split: long bodies cost their length squared
	return body, x.HTTP.Status == 200 && len(body) > 0 && len(body) <= most
}

// reads is a body that hands over each of its pieces by one read.
type reads [][]byte

func (r *reads) Read(p []byte) (int, error) {
	if len(*r) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*r)[0])
	if (*r)[0] = (*r)[0][n:]; len((*r)[0]) == 0 {
		*r = (*r)[1:]
	}
	return n, nil
}

func (*reads) Close() error { return nil }

// verdictOf is a result without its times.
type verdictOf struct {
	Outcome  Outcome
	Reason   Reason
	InBand   bool
	Error    string
	Flags    []Flag
	Text     string
	Finish   string
	Comments int
	Events   int
	Channels wire.Channel
	Usage    wire.Usage
	Tokens   *int
	Source   TokensSource
	Wait     *time.Duration
}

// readBody reads a body as a probe of the case does.
func readBody(t *testing.T, c probetest.Case, pieces ...[]byte) verdictOf {
	t.Helper()
	s := config.NewSeries("http://llm.invalid"+c.BasePath, "m")
	s.Target.Protocol = c.Protocol
	protocol, err := protocolOf(s.Target)
	if err != nil {
		t.Fatal(err)
	}
	s.Scenario.SLO = config.SLO{} // figures are of the reads, too
	s.Scenario.RequireText = slices.Contains(c.Needs, "require_text")
	a := &attempt{
		Prober: &Prober{target: s.Target, scenario: s.Scenario, protocol: protocol},
		result: &Result{},
		request: wire.Request{
			Stream: c.Stream && !protocol.Traits().Tokenless, MaxTokens: c.Limits.MaxTokens,
			Messages: []config.Message{{Role: "user", Content: "hi"}},
		},
		exchange: arrival.NewExchange(),
		ctx:      context.Background(),
	}
	httptrace.ContextClientTrace(a.exchange.Context(a.ctx)).ConnectStart("tcp", "") // the beginning of it all
	a.limits = &limits{total: time.Hour, exchange: a.exchange, cancel: func(error) {}}
	a.limits.watch()
	defer a.limits.stop()
	head := http.Header{}
	for _, h := range c.Connections[0].Requests[0].HTTP.Headers {
		head.Add(h[0], h[1])
	}
	body := reads(slices.Clone(pieces))
	f := a.read(&http.Response{StatusCode: http.StatusOK, Header: head, Body: &body})
	a.conclude(f)
	r := a.result
	// What a body shows of when it came is of its reads.
	var flags []Flag
	for _, f := range r.Flags {
		if f != FlagBuffered && f != FlagOwnLag {
			flags = append(flags, f)
		}
	}
	return verdictOf{
		Outcome: r.Outcome, Reason: r.Reason, InBand: r.InBand, Error: r.Error, Flags: flags, Text: r.Text,
		Finish: r.FinishReason, Comments: r.Comments, Events: a.answer.tokens, Channels: a.answer.channels, Usage: a.answer.usage,
		Tokens: r.OutputTokens, Source: r.OutputTokensSource, Wait: r.RetryAfter,
	}
}
