package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-kit/log/level"
	"github.com/prometheus/common/version"

	livepage "goodput_exporter/dashboards/live"
	"goodput_exporter/probe"
)

// newPage returns the live page and its API.
func newPage(d *daemon, f *flags) (http.Handler, error) {
	return livepage.New(livepage.Options{
		Live: d.live, Version: version.Info(), TelemetryPath: f.telemetryPath, ConfigFile: f.configFile,
		Request: d.request, Probe: d.probeNow, Silences: silences{d},
	})
}

// request tells of the requests of a series, without secrets.
func (d *daemon) request(key string) (livepage.Request, bool) {
	s := (*d.series.Load())[key]
	if s == nil {
		return livepage.Request{}, false
	}
	r := livepage.Request{Header: http.Header{"User-Agent": {d.userAgent}}}
	if u, err := url.Parse(s.config.Target.URL); err == nil {
		u.User, u.RawQuery = nil, ""
		r.URL = u.String()
	}
	settings := s.config.Target.HTTP
	if settings.Authorization != nil || settings.BasicAuth != nil || settings.OAuth2 != nil {
		r.Header.Set("Authorization", masked)
	}
	if settings.HTTPHeaders == nil {
		return r, true
	}
	for name, h := range settings.HTTPHeaders.Headers {
		r.Header[name] = h.Values
		if len(h.Secrets)+len(h.Files) > 0 {
			r.Header[name] = []string{masked}
		}
	}
	return r, true
}

// masked stands for a secret, as in /config.
const masked = "<secret>"

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
