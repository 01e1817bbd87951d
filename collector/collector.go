// Package collector turns the results of probes into metrics. It owns the birth and the death of series: all
// counters of a series stand at 0 before its first probe, and nothing of it stays when it is gone.
//
// The metrics live in a registry of the collector's own, never in the default one: libraries register things there
// that are nobody's business at a scrape.
package collector

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"goodput_exporter/config"
)

// Options of a Collector. The zero value is usable.
type Options struct {
	// Full exposes every reason of a failure from birth and the full lists of classic buckets. Without it a
	// target with one scenario stays within 130 lines of text: see buckets.go.
	Full bool

	// SkipReasons lists the reasons for which a slot can be skipped, so that each is born at 0.
	SkipReasons []string

	// BudgetRemaining returns what is left of a target's budget, by unit (UnitRequests, UnitOutputTokens), and
	// false where the target has no such budget. It is called at every scrape, and must not call the Collector.
	// It may be nil.
	BudgetRemaining func(target, unit string) (remaining int, ok bool)

	// Process are further metrics of the process, which outlive every series.
	Process []prometheus.Collector

	// Paused reports whether a series is not to be probed now, on purpose. It is called for each series at every scrape,
	// and must not call the Collector. It may be nil.
	Paused func(target, scenario string) bool
}

// SkipPaused is the reason of slots that were skipped on purpose. The scheduler names it so.
const SkipPaused = "paused"

// The units of goodput_budget_remaining.
const (
	UnitRequests     = "requests"
	UnitOutputTokens = "output_tokens"
)

// Collector holds the metrics of one process. It is safe for concurrent use, and a prometheus.Gatherer.
type Collector struct {
	opts    Options
	process processMetrics

	mu       sync.RWMutex // a scrape sees the series before an Update or those after it
	families *families
	series   map[string]*Series
}

var _ prometheus.Gatherer = (*Collector)(nil)

// New returns a Collector without series.
func New(opts Options) *Collector {
	process := newProcessMetrics()
	process.collectors = append(process.collectors, opts.Process...)
	return &Collector{opts: opts, process: process, families: newFamilies(nil, opts, process.collectors)}
}

// Update brings the series to those of cfg, which must be valid: new ones are born, those that are not in it any
// more die. A series keeps its counters as long as all that its metrics depend on stays as it was: labels, model,
// SLO, interval, price, and whether it streams; otherwise it dies and another is born.
//
// Prometheus wants one set of label names for all of a metric. Where cfg has other names than before, every
// metric is made anew and all counters start again at 0; the handles of unchanged series stay valid.
func (c *Collector) Update(cfg *config.Config) {
	c.mu.Lock()
	defer c.mu.Unlock()

	renamed := !slices.Equal(c.families.labelNames, cfg.LabelNames)
	if renamed {
		c.families = newFamilies(cfg.LabelNames, c.opts, c.process.collectors)
	}
	c.families.targets.targets = slices.Clone(cfg.Targets)

	series := make(map[string]*Series, len(cfg.Series))
	listed := make([]*Series, 0, len(cfg.Series))
	for _, sc := range cfg.Series {
		s, wanted := c.series[sc.Key()], settingsOf(sc)
		switch {
		case s == nil || !s.settings.equal(wanted):
			s = &Series{settings: wanted}
			s.born(c.families)
		case renamed:
			s.born(c.families)
		}
		series[sc.Key()] = s
		listed = append(listed, s)
	}
	c.series, c.families.series = series, listed
}

// Series returns the handle of a living series by its config.Series.Key, or nil. After an Update, ask again for
// every series that is new or was changed.
func (c *Collector) Series(key string) *Series {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.series[key]
}

// Gather implements prometheus.Gatherer.
func (c *Collector) Gather() ([]*dto.MetricFamily, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.families.registry.Gather()
}

// Handler returns the handler of /metrics. It speaks OpenMetrics, because exemplars exist in no other text
// format, compresses, and answers scrapes that come at the same time from one collection.
func (c *Collector) Handler() http.Handler {
	return promhttp.HandlerFor(c, promhttp.HandlerOpts{EnableOpenMetrics: true, CoalesceGather: true})
}

// ReloadSucceeded records that the configuration of the time t is in force, at start as at reload.
func (c *Collector) ReloadSucceeded(t time.Time) {
	c.process.reloadSuccessful.WithLabelValues().Set(1)
	c.process.reloadTime.WithLabelValues().Set(unixSeconds(t))
}

// ReloadFailed records that the last configuration was refused.
func (c *Collector) ReloadFailed() {
	c.process.reloadSuccessful.WithLabelValues().Set(0)
}

// processMetrics say something of the process. They outlive every set of label names.
type processMetrics struct {
	// Vectors without labels: there is no reload time to expose before the first reload.
	reloadSuccessful, reloadTime *prometheus.GaugeVec

	collectors []prometheus.Collector // all of them
}

func newProcessMetrics() processMetrics {
	successful := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "goodput_config_last_reload_successful",
		Help: "Whether the last attempt to load the configuration succeeded.",
	}, nil)
	at := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "goodput_config_last_reload_success_timestamp_seconds",
		Help: "When the configuration was last loaded successfully.",
	}, nil)
	return processMetrics{
		reloadSuccessful: successful,
		reloadTime:       at,
		collectors: []prometheus.Collector{
			successful,
			at,
			version.NewCollector("goodput_exporter"),
			collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		},
	}
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
