// Package trace exports one span per probe over OTLP/HTTP. The span has the ids that the probe's request carried in its
// traceparent, so that it is the parent of the spans that the server records of the same request.
//
// Where the spans go is set by the standard variables of the environment: OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS,
// _TIMEOUT, _PROTOCOL (http/protobuf or http/json), _COMPRESSION, _CERTIFICATE, _CLIENT_CERTIFICATE and _CLIENT_KEY, or
// the same with OTEL_EXPORTER_OTLP_TRACES_; OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES; OTEL_BSP_SCHEDULE_DELAY,
// _EXPORT_TIMEOUT and _MAX_EXPORT_BATCH_SIZE. The length of the queue and the sampling are fixed: the traceparent has told
// the server that the span is sampled.
package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-kit/log"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// Options of an Exporter.
type Options struct {
	Version string     // of the program; "" is unknown
	Logger  log.Logger // is told of failed exports, at most once a minute; nil is none
}

// queueLength is how many spans wait at most, those that are being sent included: 20 s of 3,000 series that are probed
// every 15 s.
const queueLength = 4096

// maxValue is the length of an attribute's value, in bytes, beyond which it is cut: what a server said may be long.
const maxValue = 1024

// name is that of the service and of the instrumentation.
const name = "goodput_exporter"

// Exporter sends spans. It is safe for concurrent use.
type Exporter struct {
	tracer    trace.Tracer
	processor sdktrace.SpanProcessor
	sender    *sender

	mu      sync.RWMutex // Observe queues under it, so that Close flushes all that was queued
	closed  bool
	dropped atomic.Uint64
}

// Stats count what became of the spans since the start. Each is in one of them once it waits no more.
type Stats struct {
	Sent    uint64 // the collector took them
	Dropped uint64 // never queued: the queue was full, or the Exporter was closed
	Failed  uint64 // queued, but the collector could not be reached, was too slow, or did not take the whole batch
}

// New returns an exporter that is set up by the environment. It connects to nothing yet: that the collector is not there
// is no error. Whatever is wrong with the environment is, and is told without its values, which may be secret.
func New(ctx context.Context, opts Options) (*Exporter, error) {
	secrets, err := checkEnvironment()
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName(name), semconv.ServiceVersion(opts.Version)),
		resource.WithFromEnv(), // has the last word
	)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	client, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	s := newSender(client, opts.Logger, secrets)
	processor := sdktrace.NewBatchSpanProcessor(s, sdktrace.WithMaxQueueSize(queueLength))
	limits := sdktrace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 {
		limits.AttributeValueLengthLimit = maxValue
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(described),
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithIDGenerator(sentIDs{}),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithSpanProcessor(processor),
	)
	return &Exporter{
		tracer: provider.Tracer(name,
			trace.WithInstrumentationVersion(opts.Version), trace.WithSchemaURL(semconv.SchemaURL)),
		processor: processor,
		sender:    s,
	}, nil
}

// Observe queues the span of a probe of that target. It never waits: where the queue is full, the span is dropped and
// counted. A result without ids, of which no request was made, has no span.
func (e *Exporter) Observe(target *config.Target, r *probe.Result) {
	ctx, ok := withIDs(context.Background(), r)
	if !ok {
		return
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed || !e.sender.admit() {
		e.dropped.Add(1)
		return
	}
	record(ctx, e.tracer, target, r)
}

// Stats returns what became of the spans so far.
func (e *Exporter) Stats() Stats {
	return Stats{Sent: e.sender.sent.Load(), Dropped: e.dropped.Load(), Failed: e.sender.failed.Load()}
}

// Close sends what waits and ends the exporter. When ctx ends before that, it gives up what is left, and says so.
func (e *Exporter) Close(ctx context.Context) error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	failed := e.sender.failed.Load()
	err := e.processor.Shutdown(ctx)
	e.sender.cut(ctx)
	<-e.sender.drained
	if lost := e.sender.failed.Load() - failed; lost > 0 {
		return fmt.Errorf("traces: %d spans could not be sent at the end: %w", lost, cmp.Or(err, errNotTaken))
	}
	return nil
}

var errNotTaken = errors.New("the collector did not take them")
