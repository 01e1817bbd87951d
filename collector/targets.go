package collector

import (
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"goodput_exporter/config"
)

// targetCollector exposes what belongs to a target and not to one of its series. It holds no counters, so that
// its metrics are made at the scrape from the targets of the moment.
type targetCollector struct {
	labelNames []string
	remaining  func(target, unit string) (int, bool)
	info       *prometheus.Desc
	budget     *prometheus.Desc

	targets []*config.Target // Collector.mu guards it
}

func newTargetCollector(labelNames []string, remaining func(target, unit string) (int, bool)) *targetCollector {
	names := slices.Concat([]string{"target", "model"}, labelNames)
	return &targetCollector{
		labelNames: labelNames,
		remaining:  remaining,
		info: prometheus.NewDesc("goodput_target_info",
			"What a target is. Always 1.",
			slices.Concat(names, []string{"protocol", "url_host", "provider"}), nil),
		budget: prometheus.NewDesc("goodput_budget_remaining",
			"What is left of the target's budget of the day.",
			slices.Concat(names, []string{"unit"}), nil),
	}
}

// Describe implements prometheus.Collector.
func (t *targetCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- t.info
	ch <- t.budget
}

// Collect implements prometheus.Collector.
func (t *targetCollector) Collect(ch chan<- prometheus.Metric) {
	for _, target := range t.targets {
		values := slices.Concat([]string{valid(target.Name), valid(target.Model)}, labelValues(target.Labels, t.labelNames))
		ch <- prometheus.MustNewConstMetric(t.info, prometheus.GaugeValue, 1,
			slices.Concat(values, []string{valid(target.Protocol), urlHost(target.URL), valid(target.Provider)})...)
		if t.remaining == nil {
			continue
		}
		for _, unit := range []string{UnitRequests, UnitOutputTokens} {
			if left, ok := t.remaining(target.Name, unit); ok {
				ch <- prometheus.MustNewConstMetric(t.budget, prometheus.GaugeValue, float64(left),
					slices.Concat(values, []string{unit})...)
			}
		}
	}
}

// urlHost returns the host of a URL, with its port where it names one. Path and query stay out: they may hold
// what nobody should read on a dashboard.
func urlHost(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return valid(u.Host)
}

// labelValues returns the values of names in order, "" where labels has none.
func labelValues(labels map[string]string, names []string) []string {
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = valid(labels[name])
	}
	return values
}

// valid makes a label value of a string from outside, such as the environment: client_golang takes UTF-8 only.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
