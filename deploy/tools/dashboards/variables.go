package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func dataSourceVariable() cog.Builder[dashboard.VariableModel] {
	return dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")
}

// several is a variable that takes any number of a label's values, and all at first.
func several(name, label, query string) cog.Builder[dashboard.VariableModel] {
	return labelValues(name, label, query).Multi(true).IncludeAll(true).AllValue(".+").Current(option("All", "$__all"))
}

// one is a variable that takes one of a label's values.
func one(name, label, query string) cog.Builder[dashboard.VariableModel] {
	return labelValues(name, label, query).Multi(false).IncludeAll(false)
}

func labelValues(name, label, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).
		Datasource(dataSource()).
		Query(dashboard.StringOrMap{String: &query}).
		Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortNaturalAsc)
}

// choice is a variable with stated values, each written as "text : value" or as the value alone. The first is
// selected.
func choice(name, label string, options ...string) cog.Builder[dashboard.VariableModel] {
	b := dashboard.NewCustomVariableBuilder(name).
		Label(label).
		Values(dashboard.StringOrMap{String: ptr(strings.Join(options, ","))}).
		Multi(false).IncludeAll(false).AllowCustomValue(false)
	all := make([]dashboard.VariableOption, 0, len(options))
	for i, o := range options {
		text, value, ok := strings.Cut(o, " : ")
		if !ok {
			value = text
		}
		item := option(text, value)
		item.Selected = ptr(i == 0)
		all = append(all, item)
	}
	return b.Options(all).Current(all[0])
}

func option(text, value string) dashboard.VariableOption {
	return dashboard.VariableOption{
		Text:  dashboard.StringOrArrayOfString{String: &text},
		Value: dashboard.StringOrArrayOfString{String: &value},
	}
}

func ptr[T any](v T) *T { return &v }

// windowVariable chooses the span that ratios and quantiles are of, of those that deploy/rules record. It is no $__rate_interval: that is a minute at a
// scrape interval of 15 s, four probes, of which neither says anything.
func windowVariable() cog.Builder[dashboard.VariableModel] {
	return choice("window", "Window", "1h", "5m", "30m", "6h", "1d")
}

// bucketsVariable chooses which of a histogram's two forms the quantiles of TTFT, TPOT and duration come from. The
// other histograms have no classic buckets unless the exporter runs with --metrics.full.
func bucketsVariable() cog.Builder[dashboard.VariableModel] {
	return choice("buckets", "Histograms", "native : seconds", "classic : seconds_bucket")
}

func jobVariable() cog.Builder[dashboard.VariableModel] {
	return several("job", "Job", "label_values(goodput_probe_interval_seconds, job)")
}
