package probetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// log collects what an endpoint served.
type log struct {
	mu     sync.Mutex
	served []Served
}

func (l *log) observe(s Served) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served = append(l.served, s)
}

func start(t *testing.T, c Config) (*Endpoint, *http.Client) {
	t.Helper()
	e, err := Start("127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = e.Close()
	})
	return e, &http.Client{Transport: transport}
}

const (
	chatRequest  = `{"model":"m","messages":[{"role":"user","content":"twelve bytes"}],"stream":true,"stream_options":{"include_usage":true}%s}`
	wholeRequest = `{"model":"m","messages":[{"role":"user","content":"twelve bytes"}]%s}`
)

func TestEndpointStreams(t *testing.T) {
	e, c := start(t, Config{Models: []Model{{Name: "m", OutputTokens: Fixed(3)}}})
	tests := []struct {
		name, path, body string
		want             []string // the events, without what all of them have in common
	}{
		{"chat", "/chat/completions", fmt.Sprintf(chatRequest, ""), []string{
			`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}`,
			`"choices":[{"index":0,"delta":{"content":" moss"},"finish_reason":null}],"usage":null}`,
			`"choices":[{"index":0,"delta":{"content":" fern"},"finish_reason":null}],"usage":null}`,
			`"choices":[{"index":0,"delta":{"content":" kelp"},"finish_reason":null}],"usage":null}`,
			`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}`,
			`"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":3,"total_tokens":7}}`,
			`[DONE]`,
		}},
		{"completions without usage, cut by the limit", "/completions", `{"model":"m","prompt":"ab","stream":true,"max_tokens":2}`, []string{
			`"choices":[{"index":0,"text":" moss","finish_reason":null}]}`,
			`"choices":[{"index":0,"text":" fern","finish_reason":null}]}`,
			`"choices":[{"index":0,"text":"","finish_reason":"length"}]}`,
			`[DONE]`,
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			response, body, err := post(t.Context(), c, e.URL()+tc.path, tc.body)
			if err != nil || response.Header.Get("Content-Type") != "text/event-stream" {
				t.Fatal(response, err)
			}
			var got []string
			for event := range strings.SplitSeq(strings.TrimSuffix(string(body), "\n\n"), "\n\n") {
				data := strings.TrimPrefix(event, "data: ")
				if data != "[DONE]" && !json.Valid([]byte(data)) {
					t.Errorf("no JSON: %q", data)
				}
				_, rest, cut := strings.Cut(data, `"model":"m",`)
				if !cut {
					rest = data
				}
				got = append(got, rest)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndpointAnswersWhole(t *testing.T) {
	e, c := start(t, Config{Models: []Model{{Name: "m", OutputTokens: Fixed(3)}}})
	tests := []struct {
		name, extra, text, finish string
		tokens                    int
	}{
		{"natural length", "", " moss fern kelp", "stop", 3},
		{"max_tokens", `,"max_tokens":2`, " moss fern", "length", 2},
		{"max_completion_tokens", `,"max_completion_tokens":1`, " moss", "length", 1},
		{"min_tokens", `,"min_tokens":4`, " moss fern kelp oak", "stop", 4},
		{"pinned", `,"max_tokens":5,"min_tokens":5,"ignore_eos":true`, " moss fern kelp oak reef", "length", 5},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			response, body, err := post(t.Context(), c, e.URL()+"/chat/completions", fmt.Sprintf(wholeRequest, tc.extra))
			if err != nil {
				t.Fatal(err)
			}
			if response.ContentLength != int64(len(body)) {
				t.Errorf("Content-Length %d, want %d", response.ContentLength, len(body))
			}
			var got struct {
				Choices []struct {
					Message struct{ Content string }
					Finish  string `json:"finish_reason"`
				}
				Usage struct {
					Prompt     int `json:"prompt_tokens"`
					Completion int `json:"completion_tokens"`
				}
			}
			if err := json.Unmarshal(body, &got); err != nil || len(got.Choices) != 1 {
				t.Fatalf("%s: %v", body, err)
			}
			choice := got.Choices[0]
			if choice.Message.Content != tc.text || choice.Finish != tc.finish || got.Usage.Completion != tc.tokens || got.Usage.Prompt != 4 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestEndpointRefusesBadRequests(t *testing.T) {
	e, c := start(t, Config{Models: []Model{{Name: "m"}}})
	tests := []struct {
		path, body string
		status     int
		want       string
	}{
		{"/chat/completions", `{`, 400, "the body is no request"},
		{"/chat/completions", `{"model":"m"}`, 400, "the input is missing"},
		{"/completions", `{"model":"m"}`, 400, "the input is missing"},
		{"/completions", `{"model":"m","prompt":"a","max_tokens":-1}`, 400, "negative"},
		{"/completions", `{"model":"x","prompt":"a"}`, 404, `the model \"x\" does not exist`},
		{"/nowhere", `{}`, 404, "no such path"},
	}
	for _, tc := range tests {
		response, body, err := post(t.Context(), c, e.URL()+tc.path, tc.body)
		if err != nil || response.StatusCode != tc.status || !strings.Contains(string(body), tc.want) || !json.Valid(body) {
			t.Errorf("%s %s: got %v %s (%v), want %d %q", tc.path, tc.body, response, body, err, tc.status, tc.want)
		}
	}
}

func TestEndpointFaults(t *testing.T) {
	tests := []struct {
		kind   FaultKind
		status int
		check  func(body string, err error) bool // of the streamed answer
		whole  func(body string, err error) bool // of the whole one; nil: the same
	}{
		{FaultRateLimited, 429, clean(`"type":"rate_limit_error"`), nil},
		{FaultInternal, 500, clean(`"type":"server_error"`), nil},
		{FaultUnavailable, 503, clean(`"type":"server_error"`), nil},
		{FaultInBand, 200, clean(`"code":500`), nil},
		{FaultTruncated, 200, lacks("finish_reason\":\"", "[DONE]"), lacks("usage")},
		{FaultReset, 200, broken(syscall.ECONNRESET), nil},
		{FaultStall, 200, broken(context.DeadlineExceeded), nil},
		{FaultNoFirstToken, 200, broken(context.DeadlineExceeded), nil},
		{FaultLengthLimited, 200, clean(`"finish_reason":"length"`), nil},
		{FaultEmpty, 200, lacks("moss"), nil},
		{FaultContentFilter, 200, clean(`"finish_reason":"content_filter"`), nil},
	}
	for _, tc := range tests {
		for _, request := range []string{chatRequest, wholeRequest} {
			t.Run(fmt.Sprintf("%s, stream=%v", tc.kind, request == chatRequest), func(t *testing.T) {
				var l log
				e, c := start(t, Config{Observe: l.observe, Models: []Model{{
					Name: "m", OutputTokens: Fixed(4), Faults: []Fault{{Kind: tc.kind, Rate: 1, RetryAfter: 3 * time.Second}},
				}}})
				ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
				if tc.kind != FaultStall && tc.kind != FaultNoFirstToken {
					ctx, cancel = context.WithCancel(t.Context())
				}
				defer cancel()
				response, body, err := post(ctx, c, e.URL()+"/chat/completions", fmt.Sprintf(request, `,"max_tokens":8`))
				check := tc.check
				if request == wholeRequest && tc.whole != nil {
					check = tc.whole
				}
				if !check(string(body), err) {
					t.Errorf("got %q, %v", body, err)
				}
				if response != nil && response.StatusCode != tc.status {
					t.Errorf("status %d, want %d", response.StatusCode, tc.status)
				}
				if response != nil && (response.Header.Get("Retry-After") == "3") != (tc.status != 200) {
					t.Errorf("Retry-After %q", response.Header.Get("Retry-After"))
				}
				if err := e.Close(); err != nil { // waits for the handler, which tells the truth at its end
					t.Fatal(err)
				}
				if len(l.served) != 1 || l.served[0].Fault != tc.kind {
					t.Errorf("served: %+v", l.served)
				}
			})
		}
	}
}

func clean(part string) func(string, error) bool {
	return func(body string, err error) bool { return err == nil && strings.Contains(body, part) }
}

func lacks(parts ...string) func(string, error) bool {
	return func(body string, err error) bool {
		return err == nil && !slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(body, p) })
	}
}

func broken(want error) func(string, error) bool {
	return func(_ string, err error) bool { return errors.Is(err, want) || errors.Is(err, io.ErrUnexpectedEOF) }
}

func TestEndpointTimesAreTrue(t *testing.T) {
	var l log
	e, c := start(t, Config{Observe: l.observe, Models: []Model{{
		Name: "m", TTFT: Fixed(0.030), Gap: Fixed(0.010), Prefill: 5 * time.Millisecond, OutputTokens: Fixed(4),
	}}})
	before := time.Now()
	for range 2 { // the second one on a kept connection
		if _, _, err := post(t.Context(), c, e.URL()+"/chat/completions", fmt.Sprintf(chatRequest, "")); err != nil {
			t.Fatal(err)
		}
	}
	_ = e.Close()
	for _, s := range l.served {
		if len(s.Writes) != 4 || s.OutputTokens != 4 || s.InputTokens != 4 {
			t.Fatalf("served: %+v", s)
		}
		if s.Received.Before(before) || s.Received.After(s.Writes[0]) {
			t.Errorf("received %v before the request was sent", before.Sub(s.Received))
		}
		if ttft := s.Writes[0].Sub(s.Received); ttft < 50*time.Millisecond {
			t.Errorf("first token after %v, want at least 30 ms and 4 × 5 ms of prefill", ttft)
		}
		if last := s.Writes[3].Sub(s.Received); last < 80*time.Millisecond {
			t.Errorf("last token after %v, want at least three gaps of 10 ms more", last)
		}
	}
}

func TestEndpointQueues(t *testing.T) {
	var l log
	e, c := start(t, Config{Observe: l.observe, Models: []Model{{
		Name: "m", TTFT: Fixed(0.3), OutputTokens: Fixed(1), Concurrency: 1, MaxQueue: 1,
	}}})
	statuses := make(chan int, 3)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			response, _, err := post(t.Context(), c, e.URL()+"/chat/completions", fmt.Sprintf(chatRequest, ""))
			if err != nil {
				t.Error(err)
				return
			}
			statuses <- response.StatusCode
		})
	}
	wg.Wait()
	close(statuses)
	var got []int
	for s := range statuses {
		got = append(got, s)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]int{200, 200, 429}, got); diff != "" {
		t.Errorf("one is served, one waits, one is too many (-want +got):\n%s", diff)
	}
	_ = e.Close()
	var slowest time.Duration
	for _, s := range l.served {
		if len(s.Writes) > 0 {
			slowest = max(slowest, s.Writes[0].Sub(s.Received))
		}
	}
	if slowest < 550*time.Millisecond {
		t.Errorf("the one that waited took %v, want two times of service", slowest)
	}
}

func TestModelPlansAreDeterministic(t *testing.T) {
	m := Demo()[1]
	outline := func(seed uint64) []string {
		var out []string
		for n := 1; n <= 50; n++ {
			p := m.plan(seed, &query{protocol: "openai-chat", stream: true, limit: 64}, n)
			out = append(out, fmt.Sprint(p.fault.Kind, p.ttft, p.tokens, p.finish, draw(m.Gap, p.rng, 0)))
		}
		return out
	}
	if diff := cmp.Diff(outline(1), outline(1)); diff != "" {
		t.Errorf("the same seed gave other plans:\n%s", diff)
	}
	if cmp.Equal(outline(1), outline(2)) {
		t.Error("another seed gave the same plans")
	}
}

func TestModelFaultsEvery(t *testing.T) {
	m := Model{Faults: []Fault{{Kind: FaultInternal, First: 2, Every: 5}, {Kind: FaultReset, First: 4, Every: 5}}}
	var got []int
	for n := 1; n <= 12; n++ {
		if m.plan(0, &query{}, n).fault.Kind != FaultNone {
			got = append(got, n)
		}
	}
	if diff := cmp.Diff([]int{2, 4, 7, 9, 12}, got); diff != "" {
		t.Errorf("requests with a fault (-want +got):\n%s", diff)
	}
}

func TestLognormalHasItsQuantiles(t *testing.T) {
	m := Model{TTFT: Lognormal(0.1, 0.3)}
	const n = 4000
	below50, below95 := 0, 0
	for i := range n {
		switch p := m.plan(7, &query{}, i); {
		case p.ttft < 100*time.Millisecond:
			below50++
			fallthrough
		case p.ttft < 300*time.Millisecond:
			below95++
		}
	}
	if below50 < n*47/100 || below50 > n*53/100 || below95 < n*93/100 || below95 > n*97/100 {
		t.Errorf("%d and %d of %d are below the 0.5 and 0.95 quantiles", below50, below95, n)
	}
}

func TestDemoShowsGoodAndBadEarly(t *testing.T) {
	requests := map[string]*query{
		"chat":      {protocol: "openai-chat", stream: true, limit: 256, inputTokens: 30},
		"summarize": {protocol: "openai-chat", limit: 400, minTokens: 400, ignoreEOS: true, inputTokens: 4000},
		"complete":  {protocol: "openai-completions", stream: true, limit: 64, inputTokens: 12},
	}
	share := map[string][2]float64{"healthy": {0.975, 0.995}, "degraded": {0.70, 0.80}}
	for _, m := range Demo() {
		for name, q := range requests {
			early, good := 0, 0
			const total = 4000
			for n := 1; n <= total; n++ {
				p := m.plan(1, q, n)
				if p.fault.Kind == FaultNone {
					good++
				} else if n <= 8 {
					early++
				}
			}
			if early < 1 || early > 6 {
				t.Errorf("%s, %s: %d of the first 8 requests have a fault, want some of both kinds", m.Name, name, early)
			}
			if s := float64(good) / total; s < share[m.Name][0] || s > share[m.Name][1] {
				t.Errorf("%s, %s: %.1f %% without a fault, want %v", m.Name, name, 100*s, share[m.Name])
			}
		}
	}
}
