package collector

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

const benchSeries = 1000

func BenchmarkObserve(b *testing.B) {
	c := New(Options{})
	sc := testSeries("a", "chat")
	c.Update(testConfig(sc))
	s := c.Series(sc.Key())
	for _, gaps := range []int{0, 15, 127} {
		b.Run(fmt.Sprintf("gaps=%d", gaps), func(b *testing.B) {
			r := goodResult()
			r.ChunkGaps = nil
			for range gaps {
				r.ChunkGaps = append(r.ChunkGaps, 10*time.Millisecond+rand.N(2*time.Millisecond))
			}
			b.ReportAllocs()
			for b.Loop() {
				s.Observe(r)
			}
		})
	}
}

// BenchmarkScrape compares a scrape of our series with one of as many, of the same kinds and with as many
// observations, in vectors of client_golang. heap-MB is what the series hold between scrapes.
func BenchmarkScrape(b *testing.B) {
	for _, peer := range []struct {
		name string
		make func() prometheus.Gatherer
	}{
		{"collector", func() prometheus.Gatherer { return benchCollector() }},
		{"client_golang", func() prometheus.Gatherer { return clientGolang(benchCollector()) }},
	} {
		b.Run(peer.name, func(b *testing.B) {
			before := heap()
			gatherer := peer.make()
			held := heap() - before
			for _, format := range []struct{ name, accept, encoding string }{
				{"text", "text/plain", "identity"},
				{"text-gzip", "text/plain", "gzip"},
				{"openmetrics-gzip", "application/openmetrics-text; version=1.0.0", "gzip"},
				{"protobuf-gzip", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "gzip"},
			} {
				b.Run(format.name, func(b *testing.B) {
					handler := promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true})
					request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
					request.Header.Set("Accept", format.accept)
					request.Header.Set("Accept-Encoding", format.encoding)
					var size int
					b.ReportAllocs()
					for b.Loop() {
						recorder := httptest.NewRecorder()
						handler.ServeHTTP(recorder, request)
						size = recorder.Body.Len()
					}
					b.ReportMetric(float64(size)/1e6, "MB")
					b.ReportMetric(float64(held)/1e6, "heap-MB")
				})
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func benchCollector() *Collector {
	c := New(Options{SkipReasons: skipReasons})
	cfg := testConfig()
	for i := range benchSeries {
		s := testSeries(fmt.Sprintf("target-%d", i), "chat")
		cfg.Series = append(cfg.Series, s)
		cfg.Targets = append(cfg.Targets, s.Target)
	}
	c.Update(cfg)
	random := rand.New(rand.NewPCG(1, 2))
	for _, sc := range cfg.Series {
		for range 50 {
			r := goodResult()
			for _, figure := range []*time.Duration{r.TTFT, r.FirstAnswer, r.TPOT, r.Stall, r.E2E, r.OwnLag} {
				*figure = time.Duration(float64(*figure) * (1 + random.ExpFloat64()))
			}
			c.Series(sc.Key()).Observe(r)
		}
	}
	return c
}

// clientGolang makes the metrics of a collector anew, in vectors of client_golang.
func clientGolang(c *Collector) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	families, err := c.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		var names []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			names = append(names, l.GetName())
		}
		counters := prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.GetName(), Help: f.GetHelp()}, names)
		gauges := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.GetName(), Help: f.GetHelp()}, names)
		var bounds []float64
		for _, bucket := range f.GetMetric()[0].GetHistogram().GetBucket() {
			bounds = append(bounds, bucket.GetUpperBound())
		}
		histograms := prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: f.GetName(), Help: f.GetHelp(), Buckets: bounds, NativeHistogramBucketFactor: 1.1,
			NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
		}, names)
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				counters.WithLabelValues(values...).Add(m.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				gauges.WithLabelValues(values...).Set(m.GetGauge().GetValue())
			case dto.MetricType_HISTOGRAM:
				observer := histograms.WithLabelValues(values...)
				mean := m.GetHistogram().GetSampleSum() / float64(m.GetHistogram().GetSampleCount())
				for range m.GetHistogram().GetSampleCount() {
					observer.(prometheus.ExemplarObserver).ObserveWithExemplar(
						mean/2*(1+rand.ExpFloat64()), prometheus.Labels{"trace_id": "0af7651916cd43dd8448eb211c80319c"})
				}
			}
		}
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			registry.MustRegister(counters)
		case dto.MetricType_GAUGE:
			registry.MustRegister(gauges)
		case dto.MetricType_HISTOGRAM:
			registry.MustRegister(histograms)
		}
	}
	return registry
}
