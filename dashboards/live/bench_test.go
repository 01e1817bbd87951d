package page

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// thousands returns a page of 3,000 series with two hours of probes each.
func thousands(b *testing.B) *Page {
	b.Helper()
	l := live.New(live.Options{})
	cfg := &config.Config{}
	for i := range 3000 {
		cfg.Series = append(cfg.Series, testSeries(fmt.Sprintf("target-%04d", i), "chat"))
	}
	l.Update(cfg)
	now := time.Now()
	for i := range 480 {
		r := result(now.Add(-time.Duration(480-i)*interval), probe.Good)
		for _, s := range cfg.Series {
			l.Series(s.Key()).Restore(r)
		}
	}
	return newPage(b, Options{Live: l})
}

func benchmark(b *testing.B, p *Page, url string, before func()) {
	b.Helper()
	size := 0
	for b.Loop() {
		before()
		size = len(do(p, request(http.MethodGet, url, "")).body)
	}
	b.ReportMetric(float64(size), "bytes")
}

// The page of 3,000 series: when nobody else looks, and when somebody did within the second.
func BenchmarkOverview(b *testing.B) {
	p := thousands(b)
	b.Run("first", func(b *testing.B) { benchmark(b, p, "/", func() { p.snapshot.status = nil }) })
	b.Run("shared", func(b *testing.B) { benchmark(b, p, "/", func() {}) })
	b.Run("row", func(b *testing.B) { benchmark(b, p, "/rows?key=target-0042/chat", func() { p.rendered.entries = nil }) })
	b.Run("status", func(b *testing.B) { benchmark(b, p, "/api/v1/status", func() {}) })
	b.Run("series", func(b *testing.B) { benchmark(b, p, "/series?target=target-0042&scenario=chat", func() {}) })
}
