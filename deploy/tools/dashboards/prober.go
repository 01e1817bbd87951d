package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// prober is for those who run the exporter: does it probe when it should, and what does it cost?
func prober() page {
	return page{
		uid:         "goodput-prober",
		title:       "Goodput / Prober",
		description: "The prober itself: does it probe when it should, is it late, and what does it cost?",
		from:        "now-6h", refresh: "30s",
		variables: []cog.Builder[dashboard.VariableModel]{
			jobVariable(),
			several("instance", "Instance", `label_values(goodput_probe_interval_seconds{job=~"$job"}, instance)`),
			windowVariable(),
		},
		sections: []section{
			{title: "State", panels: []placed{
				{4, 4, version()},
				{3, 4, stats("Up", "Exporters that Prometheus reaches, of how many.", "none", queries{
					now("up", `sum(up{`+instances+`})`), now("of", `count(up{`+instances+`})`),
				}).ColorScheme(plainColor())},
				{3, 4, reloaded()},
				{4, 4, stats("Configuration loaded", "Time since the configuration was last loaded successfully, the oldest of all instances.", "s", queries{
					now("", `time() - min(goodput_config_last_reload_success_timestamp_seconds{`+instances+`})`),
				}).Decimals(0).ColorScheme(plainColor())},
				{3, 4, stats("Series", "Targets × scenarios that are probed, over all instances.", "none", queries{
					now("", `count(goodput_probe_interval_seconds{`+instances+`})`),
				}).ColorScheme(plainColor())},
				{3, 4, stats("Probes in a minute", "Attempts that are due by the configured intervals.", "none", queries{
					now("", `60 * sum(1 / goodput_probe_interval_seconds{`+instances+`})`),
				}).Decimals(0).ColorScheme(plainColor())},
				{4, 4, skippedShare()},
			}},
			{title: "Slots", panels: []placed{
				{8, 8, slots()},
				{8, 8, skipped()},
				{8, 8, timeSeries("Probes in flight", "Probes that were started and have not ended, by target.", "none", queries{
					line("{{target}}", `sum by (target) (goodput_probes_in_flight{`+instances+`})`),
				}).Min(0).Decimals(0)},
			}},
			{title: "Its own lateness", panels: []placed{
				{8, 8, lateness("Start delay (over $window)", "How late probes started in their slots. Above a fifth of the interval an alert fires: what it measures is then no steady stream.", "goodput_start_delay_seconds")},
				{8, 8, lateness("Own lag (over $window)", "How late the prober read what had arrived, the worst read of an attempt. Stamps are the kernel's, so it spoils no figure until it is large.", "goodput_own_lag_seconds")},
				{8, 8, mishaps()},
			}},
			{title: "What it costs Prometheus and the endpoints", panels: []placed{
				{6, 8, timeSeries("Tokens a day (over $window)", "What the attempts send and get, extrapolated to a day.", "short", queries{
					line("{{target}} input", `sum by (target) (rate(goodput_input_tokens_total{`+instances+`}[$window])) * 86400`),
					line("{{target}} output", `sum by (target) (rate(goodput_output_tokens_total{`+instances+`}[$window])) * 86400`),
				}).Min(0)},
				{6, 8, timeSeries("Scrape duration", "How long Prometheus takes to scrape an exporter.", "s", queries{
					line("{{instance}}", `scrape_duration_seconds{`+instances+`}`),
				}).Min(0)},
				{6, 8, timeSeries("Samples of a scrape", "Samples that a scrape brings, and series that were new. A native histogram is one sample.", "short", queries{
					line("{{instance}} samples", `scrape_samples_scraped{`+instances+`}`),
					line("{{instance}} new series", `scrape_series_added{`+instances+`}`),
				}).Min(0).Decimals(0)},
				{6, 8, timeSeries("Samples for each series", "What one target in one scenario costs Prometheus at each scrape.", "short", queries{
					line("{{instance}}", `sum by (instance) (scrape_samples_scraped{`+instances+`}) / on (instance) count by (instance) (goodput_probe_interval_seconds{`+instances+`})`),
				}).Min(0).Decimals(0)},
			}},
			{title: "Process", panels: []placed{
				{6, 8, timeSeries("CPU", "Cores in use.", "suffix:cores", queries{
					line("{{instance}}", `rate(process_cpu_seconds_total{`+instances+`}[$__rate_interval])`),
				}).Min(0).Decimals(2)},
				{6, 8, timeSeries("Memory", "Resident memory, and the part of it that Go's heap has in use.", "bytes", queries{
					line("{{instance}} resident", `process_resident_memory_bytes{`+instances+`}`),
					line("{{instance}} heap", `go_memstats_heap_inuse_bytes{`+instances+`}`),
				}).Min(0)},
				{6, 8, timeSeries("Goroutines and files", "Goroutines, and open file descriptors. Lines that only ever rise are a leak.", "short", queries{
					line("{{instance}} goroutines", `go_goroutines{`+instances+`}`),
					line("{{instance}} files", `process_open_fds{`+instances+`}`),
				}).Min(0).Decimals(0)},
				{6, 8, timeSeries("Garbage collection", "The longest and the median pause of Go's garbage collector of late.", "s", queries{
					line("{{instance}} longest", `go_gc_duration_seconds{quantile=~"1|1.0",`+instances+`}`),
					line("{{instance}} median", `go_gc_duration_seconds{quantile="0.5",`+instances+`}`),
				}).Min(0)},
			}},
			{title: "Dollars and budgets, where they are configured", collapsed: true, panels: []placed{
				{12, 8, timeSeries("Dollars a day (over $window)", "What the attempts cost at the configured prices, extrapolated to a day.", "currencyUSD", queries{
					line("{{target}}", `sum by (target) (rate(goodput_cost_dollars_total{`+instances+`}[$window])) * 86400`),
				}).Min(0).NoValue("No price set")},
				{12, 8, timeSeries("Budget left", "What is left of the targets' budgets of the day, in requests and tokens.", "short", queries{
					line("{{target}} {{unit}}", `min by (target, unit) (goodput_budget_remaining{`+instances+`})`),
				}).Min(0).NoValue("No budget set")},
			}},
		},
	}
}

func version() cog.Builder[dashboard.Panel] {
	return stats("Version", "Versions of the exporters that run, and the Go that built them.", "none", queries{
		now("{{version}} ({{goversion}})", `count by (version, goversion) (goodput_exporter_build_info{`+instances+`})`),
	}).
		TextMode(common.BigValueTextModeName).ColorScheme(plainColor())
}

func reloaded() cog.Builder[dashboard.Panel] {
	return stats("Last reload", "Whether the last attempt to load the configuration succeeded. After a failed one the old configuration stays in force.", "none", queries{
		now("", `min(goodput_config_last_reload_successful{`+instances+`})`),
	}).
		ColorMode(common.BigValueColorModeBackground).
		Mappings(words(value{"0", "failed", red}, value{"1", "OK", green}))
}

func skippedShare() cog.Builder[dashboard.Panel] {
	return stats("Slots skipped (30 m)", "The share of slots in which no probe was started, other than on purpose. Above 10 % an alert fires.", "percentunit", queries{
		now("", `sum(increase(goodput_slots_skipped_total{`+instances+`,reason!="paused"}[30m])) / (sum(increase(goodput_slots_total{`+instances+`}[30m])) > 0)`),
	}).
		Decimals(1).Thresholds(steps(green, step{0.01, yellow}, step{0.1, red}))
}

func slots() cog.Builder[dashboard.Panel] {
	every := func(metric, selector string) string {
		return "sum(increase(" + metric + "{" + selector + "}[$__interval]))"
	}
	return bars("Slots, and what became of them", "Attempts, probes that the prober aborted itself, and slots without a probe, on purpose (paused) or not. Together they are all slots, up to those in flight.", queries{
		line("attempts", every("goodput_probes_total", instances)),
		line("aborted", every("goodput_aborted_probes_total", instances)),
		line("paused", every("goodput_slots_skipped_total", instances+`,reason="paused"`)),
		line("skipped", every("goodput_slots_skipped_total", instances+`,reason!="paused"`)),
	}).OverrideByName("attempts", colored(green)).OverrideByName("aborted", colored(orange)).
		OverrideByName("paused", colored(blue)).OverrideByName("skipped", colored(red))
}

func skipped() cog.Builder[dashboard.Panel] {
	return bars("Slots skipped, by reason",
		"overlap: the probe before still ran. budget: the target's budget thins probes out. late: the prober itself was late. in_flight: as many probes were running as may. paused: on purpose.",
		queries{line("{{reason}}", counted("reason", "goodput_slots_skipped_total", instances))}).AxisSoftMax(1)
}

func lateness(title, description, metric string) cog.Builder[dashboard.Panel] {
	return timeSeries(title, description+" Native histograms only.", "s", queries{
		line("p50", quantile(0.5, metric, instances, "$window", "")),
		line("p95", quantile(0.95, metric, instances, "$window", "")),
		line("p99", quantile(0.99, metric, instances, "$window", "")),
		line("max", quantile(1, metric, instances, "$window", "")),
	}).
		Min(1e-5).ScaleDistribution(common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10)).
		OverrideByName("p50", colored(green)).OverrideByName("p95", colored(orange)).
		OverrideByName("p99", colored(purple)).OverrideByName("max", colored(red))
}

func mishaps() cog.Builder[dashboard.Panel] {
	return bars("Aborted probes and dead connections",
		"canceled: by a stop or a reload. local_error: out of file descriptors, an unreadable secret. Neither is an attempt. A dead kept connection is replaced once, and counted.",
		queries{
			line("{{reason}}", counted("reason", "goodput_aborted_probes_total", instances)),
			line("dead connection", "sum(increase(goodput_stale_connection_retries_total{"+instances+"}[$__interval]))"),
		}).AxisSoftMax(1)
}
