package main

import (
	"context"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"

	"goodput_exporter/collector/journal"
	"goodput_exporter/collector/trace"
	"goodput_exporter/probe/pause"
)

// outside is what of the daemon lies outside of the process, as far as the flags ask for it.
type outside struct {
	journal *journal.Journal // nil: there is none
	traces  *trace.Exporter  // nil: nobody is told
	pauses  *pause.Registry
}

// open opens what the flags ask for.
func (f *flags) open(ctx context.Context, logger log.Logger) (o outside, err error) {
	if o.pauses, err = pause.New(pause.Options{File: f.silencesFile}); err != nil {
		return o, err
	}
	if o.traces, err = f.openTraces(ctx, logger); err != nil {
		return o, err
	}
	if o.journal, err = f.journal.open(logger); err != nil {
		closeTraces(o.traces, logger)
	}
	return o, err
}

// close writes and sends what is left. No probe may run any more.
func (o outside) close(logger log.Logger) {
	closeTraces(o.traces, logger)
	if o.journal == nil {
		return
	}
	if err := o.journal.Close(); err != nil {
		level.Error(logger).Log("msg", "close the journal", "err", err)
	}
}

// metrics are those of the process that tell of it.
func (o outside) metrics() []prometheus.Collector {
	return append(journalMetrics(o.journal), traceMetrics(o.traces)...)
}
