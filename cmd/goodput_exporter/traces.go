package main

import (
	"context"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/version"

	"goodput_exporter/collector/trace"
)

// flushWait is how long the last spans may take at shutdown.
const flushWait = 5 * time.Second

// openTraces returns what exports a span of each probe; nil where the flags ask for none.
func (f *flags) openTraces(ctx context.Context, logger log.Logger) (*trace.Exporter, error) {
	if !f.otlp {
		return nil, nil
	}
	return trace.New(ctx, trace.Options{Version: version.Version, Logger: logger})
}

// closeTraces sends the last spans. No probe may run any more.
func closeTraces(traces *trace.Exporter, logger log.Logger) {
	if traces == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushWait)
	defer cancel()
	if err := traces.Close(ctx); err != nil {
		level.Warn(logger).Log("msg", "the last spans were not sent", "err", err)
	}
}

// traceMetrics returns the metrics of the export of spans.
func traceMetrics(traces *trace.Exporter) []prometheus.Collector {
	if traces == nil {
		return nil
	}
	counter := func(result string, value func(trace.Stats) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "goodput_trace_spans_total", Help: "Spans of probes by what became of them.", ConstLabels: prometheus.Labels{"result": result},
		}, func() float64 { return float64(value(traces.Stats())) })
	}
	return []prometheus.Collector{
		counter("sent", func(s trace.Stats) uint64 { return s.Sent }),
		counter("dropped", func(s trace.Stats) uint64 { return s.Dropped }),
		counter("failed", func(s trace.Stats) uint64 { return s.Failed }),
	}
}
