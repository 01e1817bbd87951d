package probe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe/arrival"
	"goodput_exporter/probe/probetest"
	"goodput_exporter/probe/wire"
)

// A verdict does not depend on how a body is cut into reads.
func TestVerdictDoesNotDependOnReads(t *testing.T) {
	cases, err := probetest.LoadCases("probetest/testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		body, ok := bodyOf(c)
		if !ok || !slices.Contains(wire.Names(), c.Protocol) {
			continue
		}
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
	}
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
	s := config.NewSeries("http://llm.invalid", "m")
	s.Target.Protocol = c.Protocol
	protocol, err := protocolOf(s.Target)
	if err != nil {
		t.Fatal(err)
	}
	s.Scenario.SLO = config.SLO{} // figures are of the reads, too
	s.Scenario.RequireText = slices.Contains(c.Needs, "require_text")
	a := &attempt{
		Prober:   &Prober{target: s.Target, scenario: s.Scenario, protocol: protocol},
		result:   &Result{},
		request:  wire.Request{Stream: c.Stream, MaxTokens: c.Limits.MaxTokens},
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
	f := a.read(&http.Response{StatusCode: 200, Header: head, Body: &body})
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
