package trace

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// spanOf exports one result and returns what the collector got.
func spanOf(t *testing.T, target *config.Target, r *probe.Result) spanFacts {
	t.Helper()
	rec := newReceiver(t, nil)
	e, err := New(t.Context(), Options{Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	e.Observe(target, r)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := rec.received()
	if len(spans) != 1 {
		t.Fatalf("%d spans came, want 1; %+v", len(spans), e.Stats())
	}
	if got, want := e.Stats(), (Stats{Sent: 1}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	return factsOf(spans[0])
}

func TestASlowAnswerIsNoErrorButSaysWhatItMissed(t *testing.T) {
	r := testResult(0)
	r.TraceID, r.SpanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	r.Outcome, r.Flags = probe.SLOViolation, []probe.Flag{probe.FlagStaleRetry}
	r.TTFB, r.TTFT, r.FirstAnswer = new(310*time.Millisecond), new(900*time.Millisecond), new(1200*time.Millisecond)
	r.E2E, r.TPOT, r.RequestID = new(4*time.Second), new(25*time.Millisecond), "req-7"
	r.InputTokens, r.OutputTokens, r.OutputTokensSource = new(12), new(100), probe.TokensUsage
	r.CachedInputTokens, r.ReasoningTokens = new(0), new(40)
	r.Phases = []probe.Phase{
		{Name: probe.PhaseDNS, Duration: 2 * time.Millisecond},
		{Name: probe.PhaseConnect, Duration: 3 * time.Millisecond},
		{Name: probe.PhaseTLS, Duration: 4 * time.Millisecond},
		{Name: probe.PhaseRequest, Duration: time.Millisecond},
		{Name: probe.PhaseHeaders, Duration: 299 * time.Millisecond},
	}
	r.Judgments = []probe.Judgment{
		{SLO: probe.SLOGoodput, Verdict: probe.Missed},
		{SLO: probe.SLOAvailability, Verdict: probe.Met},
		{SLO: config.CriterionTTFT, Verdict: probe.Missed},
		{SLO: config.CriterionTPOT, Verdict: probe.Met},
		{SLO: config.CriterionStall, Verdict: probe.Unmeasurable},
	}

	want := spanFacts{
		TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7", ParentID: "",
		Name: "chat llama-3.3-70b", Kind: otlp.Span_SPAN_KIND_CLIENT, Start: sentAt, Took: 4 * time.Second,
		Events: map[string]time.Duration{
			"dns": 2 * time.Millisecond, "connect": 5 * time.Millisecond, "tls": 9 * time.Millisecond,
			"request": 10 * time.Millisecond, "headers": 310 * time.Millisecond, "first_byte": 310 * time.Millisecond,
			"first_token": 900 * time.Millisecond, "first_answer": 1200 * time.Millisecond,
		},
		Status: otlp.Status_STATUS_CODE_UNSET,
		Attributes: map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "llama-3.3-70b",
			"gen_ai.response.finish_reasons": []any{"stop"},
			"gen_ai.usage.input_tokens":      int64(12), "gen_ai.usage.output_tokens": int64(100),
			"gen_ai.usage.cache_read.input_tokens": int64(0), "gen_ai.usage.reasoning.output_tokens": int64(40),
			"server.address": "llm.example.net", "server.port": int64(443), "http.response.status_code": int64(200),
			"goodput.target": "chat-eu", "goodput.scenario": "chat", "goodput.protocol": "openai-chat",
			"goodput.outcome": "slo_violation", "goodput.connection_reused": false, "goodput.flags": []any{"stale_retry"},
			"goodput.request_id": "req-7", "goodput.label.env": "prod",
			"goodput.ttfb_seconds": 0.31, "goodput.ttft_seconds": 0.9, "goodput.first_answer_seconds": 1.2,
			"goodput.tpot_seconds": 0.025, "goodput.e2e_seconds": 4.0,
			"goodput.slo.goodput": "bad", "goodput.slo.availability": "good", "goodput.slo.ttft": "bad",
			"goodput.slo.tpot": "good", "goodput.slo.stall": "unmeasurable", "goodput.missed": []any{"ttft", "stall"},
		},
	}
	if diff := cmp.Diff(want, spanOf(t, testTarget(), r)); diff != "" {
		t.Errorf("span (-want +got):\n%s", diff)
	}
}

func TestStatusAndLengthOfASpan(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*probe.Result)
		status    otlp.Status_StatusCode
		message   string
		errorType any
		took      time.Duration
	}{
		"good": {change: func(*probe.Result) {}, took: 2 * time.Second},
		"a failure ends when it was known": {
			change: func(r *probe.Result) {
				r.Outcome, r.Reason, r.E2E = probe.Timeout, probe.ReasonFirstToken, new(20*time.Second)
			},
			status: otlp.Status_STATUS_CODE_ERROR, message: "timeout: first_token", errorType: "timeout", took: 20 * time.Second,
		},
		"a canceled probe is no error, and ends with the last that came": {
			change: func(r *probe.Result) {
				r.Outcome, r.E2E, r.TTFB, r.TTFT = probe.Canceled, nil, new(time.Second), new(3*time.Second)
			},
			took: 3 * time.Second,
		},
		"where nothing is known the span has no length": {
			change: func(r *probe.Result) { r.Outcome, r.E2E = probe.LocalError, nil },
			status: otlp.Status_STATUS_CODE_ERROR, message: "local_error", errorType: "local_error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := testResult(0)
			c.change(r)
			got := spanOf(t, testTarget(), r)
			if got.Status != c.status || got.Message != c.message || got.Attributes["error.type"] != c.errorType || got.Took != c.took {
				t.Errorf("%v %q, error.type %v, %s long; want %v %q, %v, %s", got.Status, got.Message, got.Attributes["error.type"],
					got.Took, c.status, c.message, c.errorType, c.took)
			}
		})
	}
}

func TestASpanHoldsNoTextAndNoSecret(t *testing.T) {
	r := testResult(0)
	r.Outcome, r.Reason = probe.ServerError, probe.ReasonInternal
	r.Text, r.Error, r.Header = "the answer", "HTTP 500: the body", http.Header{"X-Note": {"the header"}}
	got := spanOf(t, testTarget(), r)
	for key, value := range got.Attributes {
		for _, unwanted := range []string{"the answer", "the body", "the header", "query-secret", "/v1"} {
			if s, ok := value.(string); ok && strings.Contains(s, unwanted) {
				t.Errorf("%s is %q", key, s)
			}
		}
	}
	if strings.Contains(got.Message, "the body") {
		t.Errorf("the status says %q", got.Message)
	}
}

// protobuf refuses a batch for one string that is no UTF-8, and a server may say anything.
func TestBytesThatAreNoTextDoNotSpoilTheBatch(t *testing.T) {
	r := testResult(0)
	r.Model, r.FinishReason, r.RequestID = "m\xff", "stop\xff", strings.Repeat("x", 5000)
	target := testTarget()
	target.Provider, target.Labels["env"] = "vllm\xff", "\xff"
	got := spanOf(t, target, r)
	if want := []any{"stop\uFFFD"}; !cmp.Equal(got.Attributes["gen_ai.response.finish_reasons"], want) {
		t.Errorf("finish reasons %q, want %q", got.Attributes["gen_ai.response.finish_reasons"], want)
	}
	if n := len(got.Attributes["goodput.request_id"].(string)); n != maxValue {
		t.Errorf("the request id has %d bytes, want it cut to %d", n, maxValue)
	}
	if got.Name != "chat m\uFFFD" || got.Attributes["gen_ai.provider.name"] != "vllm\uFFFD" {
		t.Errorf("name %q, provider %q", got.Name, got.Attributes["gen_ai.provider.name"])
	}
}

func TestCountedTokensAreNoUsage(t *testing.T) {
	r := testResult(0)
	r.OutputTokens, r.OutputTokensSource = new(7), probe.TokensCounted
	if n, ok := spanOf(t, testTarget(), r).Attributes["gen_ai.usage.output_tokens"]; ok {
		t.Errorf("usage of %v tokens, which the server never reported", n)
	}
}

func TestServerPort(t *testing.T) {
	for url, want := range map[string]struct {
		address any
		port    any
	}{
		"http://10.0.0.1/v1":          {"10.0.0.1", int64(80)},
		"https://llm.example.net":     {"llm.example.net", int64(443)},
		"http://[::1]:8000/v1/models": {"::1", int64(8000)},
	} {
		target := testTarget()
		target.URL = url
		got := spanOf(t, target, testResult(0)).Attributes
		if got["server.address"] != want.address || got["server.port"] != want.port {
			t.Errorf("%s: %v %v, want %v %v", url, got["server.address"], got["server.port"], want.address, want.port)
		}
	}
}

func TestEveryProtocolHasItsNames(t *testing.T) {
	if diff := cmp.Diff(config.Protocols, slices.Sorted(maps.Keys(apis))); diff != "" {
		t.Errorf("protocols (-config +here):\n%s", diff)
	}
}

// The request's traceparent is what the server's own spans hang on.
func TestTheSpanIsTheOneThatTheRequestNamed(t *testing.T) {
	var traceparent string
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		traceparent = r.Header.Get("Traceparent")
	}))
	defer endpoint.Close()
	target := &config.Target{
		Name: "t", Protocol: "openai-chat", URL: endpoint.URL, Model: "m", Connection: config.ConnectionNew,
		HTTP: promconfig.DefaultHTTPClientConfig,
	}
	clients := probe.NewClients()
	client, err := clients.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Release()
	prober, err := probe.New(&config.Series{Target: target, Scenario: &config.Scenario{
		Name: "s", Timeout: 10 * time.Second, Prompts: []config.Prompt{{Text: "hi", Weight: 1}},
	}}, client, "test")
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	r := prober.Probe(context.Background())
	got := spanOf(t, target, r)
	if want := "00-" + got.TraceID + "-" + got.SpanID + "-01"; traceparent != want {
		t.Errorf("the request carried %q, want %q", traceparent, want)
	}
	if got.Start.Before(before.Add(-time.Second)) || got.Took <= 0 || got.Took > 10*time.Second {
		t.Errorf("the span is from %s on and %s long", got.Start, got.Took)
	}
}
