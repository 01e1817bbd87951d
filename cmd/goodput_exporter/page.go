package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-kit/log/level"
	"github.com/prometheus/common/version"

	livepage "goodput_exporter/dashboards/live"
	"goodput_exporter/probe"
)

// newPage returns the live page and its API.
func newPage(d *daemon, f *flags) (http.Handler, error) {
	return livepage.New(livepage.Options{
		Live: d.live, Version: version.Info(), TelemetryPath: f.telemetryPath, ConfigFile: f.configFile,
		Probe: d.probeNow, Silences: silences{d},
	})
}

// probeNow sends a probe of a series outside of its slots. It costs of the target's budget, but is in no metric and no
// SLO: whoever asks for it may well do so because something is wrong.
func (d *daemon) probeNow(ctx context.Context, key string) (*probe.Result, error) {
	s := (*d.series.Load())[key]
	if s == nil {
		return nil, fmt.Errorf("%w: there is no series %s", livepage.ErrNotFound, key)
	}
	var r *probe.Result
	affordable := d.budgetOf(s.config.Target).Spend(s.config.Scenario.LongestAnswer(), func() int {
		r = s.prober.Probe(ctx)
		return outputTokens(r)
	})
	if !affordable {
		return nil, fmt.Errorf("%w: target %s", livepage.ErrBudget, s.config.Target.Name)
	}
	level.Info(d.logger).Log("msg", "probe on demand", "series", key, "outcome", r.Outcome, "trace_id", r.TraceID)
	return r, nil
}
