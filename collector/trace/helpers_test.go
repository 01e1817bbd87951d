package trace

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-kit/log"
	otlpcollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlpcommon "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// receiver is an OTLP/HTTP collector.
type receiver struct {
	*httptest.Server
	answer func(http.ResponseWriter, *http.Request) // in place of success; it may be nil

	mu       sync.Mutex
	header   http.Header
	spans    []*otlp.Span
	resource map[string]any
}

// newReceiver starts a receiver, and makes it the one of the environment.
func newReceiver(t *testing.T, answer func(http.ResponseWriter, *http.Request)) *receiver {
	t.Helper()
	rec := &receiver{answer: answer}
	rec.Server = httptest.NewServer(rec)
	t.Cleanup(rec.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", rec.URL)
	return rec
}

func (rec *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if rec.answer != nil {
		rec.answer(w, req)
		return
	}
	var message otlpcollector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &message); err != nil || req.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
		return
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.header = req.Header
	for _, r := range message.GetResourceSpans() {
		rec.resource = plain(r.GetResource().GetAttributes())
		for _, s := range r.GetScopeSpans() {
			rec.spans = append(rec.spans, s.GetSpans()...)
		}
	}
}

// received returns the spans that came so far.
func (rec *receiver) received() []*otlp.Span {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.spans
}

// plain is a list of attributes as Go has them.
func plain(attributes []*otlpcommon.KeyValue) map[string]any {
	m := map[string]any{}
	for _, kv := range attributes {
		m[kv.GetKey()] = plainValue(kv.GetValue())
	}
	return m
}

func plainValue(v *otlpcommon.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *otlpcommon.AnyValue_StringValue:
		return v.StringValue
	case *otlpcommon.AnyValue_IntValue:
		return v.IntValue
	case *otlpcommon.AnyValue_DoubleValue:
		return v.DoubleValue
	case *otlpcommon.AnyValue_BoolValue:
		return v.BoolValue
	case *otlpcommon.AnyValue_ArrayValue:
		list := []any{}
		for _, e := range v.ArrayValue.GetValues() {
			list = append(list, plainValue(e))
		}
		return list
	}
	return v
}

// spanFacts is what matters of a span, comparable.
type spanFacts struct {
	TraceID, SpanID, ParentID string
	Name                      string
	Kind                      otlp.Span_SpanKind
	Start                     time.Time
	Took                      time.Duration
	Events                    map[string]time.Duration // after the start
	Status                    otlp.Status_StatusCode
	Message                   string
	Attributes                map[string]any
}

func factsOf(s *otlp.Span) spanFacts {
	at := func(nanos uint64) time.Time { return time.Unix(0, int64(nanos)).UTC() }
	start := at(s.GetStartTimeUnixNano())
	events := map[string]time.Duration{}
	for _, e := range s.GetEvents() {
		events[e.GetName()] = at(e.GetTimeUnixNano()).Sub(start)
	}
	return spanFacts{
		TraceID: hex.EncodeToString(s.GetTraceId()), SpanID: hex.EncodeToString(s.GetSpanId()),
		ParentID: hex.EncodeToString(s.GetParentSpanId()),
		Name:     s.GetName(), Kind: s.GetKind(), Start: start, Took: at(s.GetEndTimeUnixNano()).Sub(start), Events: events,
		Status: s.GetStatus().GetCode(), Message: s.GetStatus().GetMessage(), Attributes: plain(s.GetAttributes()),
	}
}

// logs is a logger's memory.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) logger() log.Logger {
	return log.LoggerFunc(func(keyvals ...any) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		return log.NewLogfmtLogger(&l.buf).Log(keyvals...)
	})
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

var sentAt = time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC)

func testTarget() *config.Target {
	return &config.Target{
		Name: "chat-eu", Protocol: "openai-chat", URL: "https://llm.example.net/v1?key=query-secret", Model: "llama-3.3-70b",
		Labels: map[string]string{"env": "prod"},
	}
}

// testResult is a good one; n tells it from others.
func testResult(n int) *probe.Result {
	return &probe.Result{
		Target: "chat-eu", Scenario: "chat", Model: "llama-3.3-70b", Protocol: "openai-chat", Time: sentAt, Outcome: probe.Good,
		StatusCode: 200, FinishReason: "stop", Text: "an answer", E2E: new(2 * time.Second),
		TraceID: fmt.Sprintf("%032x", n+1), SpanID: fmt.Sprintf("%016x", n+1),
	}
}
