package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// overview is for the owners of services: which SLOs are met, and how much budget is left.
func overview() page {
	return page{
		uid:         "goodput-overview",
		title:       "Goodput / SLO overview",
		description: "Which SLOs are met, how much of each error budget is left, and how fast it goes.",
		from:        "now-7d", refresh: "1m",
		variables: []cog.Builder[dashboard.VariableModel]{
			jobVariable(),
			several("target", "Target", `label_values(goodput_probe_interval_seconds{job=~"$job"}, target)`),
			several("model", "Model", `label_values(goodput_probe_interval_seconds{job=~"$job",target=~"$target"}, model)`),
			several("scenario", "Scenario", `label_values(goodput_probe_interval_seconds{job=~"$job",target=~"$target"}, scenario)`),
			several("slo", "SLO", `label_values(goodput_slo_objective_ratio{job=~"$job",target=~"$target"}, slo)`),
		},
		sections: []section{
			{title: "Now", panels: []placed{
				{24, 4, sloCounts()},
				{24, 10, sloTable()},
			}},
			{title: "Error budgets", panels: []placed{
				{12, 9, budgets()},
				{12, 9, burnRates()},
			}},
			{title: "What is behind it", panels: []placed{
				{8, 9, badByCriterion()},
				{8, 9, requestsPerSecond()},
				{8, 9, tokensPerSecond()},
			}},
			{title: "Method", panels: []placed{{24, 6, method()}}},
		},
	}
}

const overviewSLOs = manySeries + `,slo=~"$slo"`

// sloCounts sorts the SLOs into four classes that leave none out.
func sloCounts() cog.Builder[dashboard.Panel] {
	left := budgetLeft(overviewSLOs)
	enough := "on (" + sloKey + ") (slo:goodput_slo_window_fill:ratio_1h >= 0.25)"
	burning := "on (" + sloKey + `) ALERTS{alertname="GoodputErrorBudgetBurn",alertstate="firing"}`
	count := func(expr string) string { return "count(" + expr + ") or vector(0)" }
	return stats("SLOs by state",
		"Meeting: a quarter of the budget of 30 days is left, or more, and no burn alert fires. At risk: less is left, or a burn alert fires. "+
			"Breached: the budget is used up. Too little data: of the last hour's probes less than a quarter came; nothing is said of these, nor of those that are paused.",
		"none", queries{
			now("Meeting", count("("+left+" >= 0.25 unless "+burning+") and "+enough)),
			now("At risk", count("(("+left+" >= 0.25 and "+burning+") or ("+left+" >= 0 < 0.25)) and "+enough)),
			now("Breached", count(left+" < 0 and "+enough)),
			now("Too little data", count("slo:goodput_slo_objective:ratio{"+overviewSLOs+"} unless "+enough)),
		}).
		ColorMode(common.BigValueColorModeBackground).TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(grey)).
		OverrideByName("Meeting", thresholds(steps(grey, step{1, green}))).
		OverrideByName("At risk", thresholds(steps(grey, step{1, orange}))).
		OverrideByName("Breached", thresholds(steps(grey, step{1, red}))).
		OverrideByName("Too little data", thresholds(steps(grey, step{1, blue})))
}

func sloTable() cog.Builder[dashboard.Panel] {
	by := func(aggregate, expr string) string {
		return aggregate + " by (target, scenario, slo) (" + expr + ")"
	}
	percent := func(width int) []dashboard.DynamicConfigValue {
		return []dashboard.DynamicConfigValue{property("unit", "percentunit"), property("decimals", 2), property("custom.width", width)}
	}
	burn := []dashboard.DynamicConfigValue{
		property("unit", "suffix:×"), property("decimals", 1), property("custom.width", 80),
		property("custom.cellOptions", map[string]any{"type": "color-text"}),
		property("thresholds", steps(green, step{1, yellow}, step{3, orange}, step{6, red})),
	}
	paused := "(slo:goodput_slo_objective:ratio{" + overviewSLOs + "} * 0 + 3) and on (" + seriesKey + ") " +
		"(min by (" + seriesKey + ") (goodput_paused{" + manySeries + "}) > 0)"
	state := by("max", firing(`severity="critical",`+overviewSLOs)+" * 2 or "+firing(`severity="warning",`+overviewSLOs)+
		" or "+paused+" or slo:goodput_slo_objective:ratio{"+overviewSLOs+"} * 0")
	days7 := func(name string) string { return "sum_over_time(" + recorded(name, "5m", overviewSLOs) + "[7d:5m])" }
	attainment7d := "1 - " + days7("slo:goodput_slo_bad_events:increase") + " / (" + days7("slo:goodput_slo_events:increase") + " > 0)"
	lasts := "30 * 86400 * clamp_min(" + budgetLeft(overviewSLOs) + ", 0) / on (" + sloKey + ") (" + burnRate("6h", overviewSLOs) + " > 0)"

	return tableOf("SLOs",
		"One row for each SLO; the worst, where several jobs probe the same. Paused: not probed, on purpose. 95 % from–to is the interval (Wilson) in which the true attainment of the day "+
			"lies, as far as that many attempts can tell. Budget lasts: at the pace of the last 6 h. Data: the share of the last hour's expected probes that came; below 25 % "+
			"no burn alert judges.",
		[]string{"target", "scenario", "slo"},
		column{"Alert", state, []dashboard.DynamicConfigValue{
			property("mappings", words(value{"0", "–", "text"}, value{"1", "ticket", orange}, value{"2", "page", red}, value{"3", "paused", blue})),
			property("custom.cellOptions", map[string]any{"type": "color-text"}), property("custom.width", 70),
		}},
		column{"Objective", by("max", "slo:goodput_slo_objective:ratio{"+overviewSLOs+"}"), percent(85)},
		column{"1 d", by("min", attainment("1d", overviewSLOs)), percent(75)},
		column{"95 % from", by("min", attainmentFrom("1d", overviewSLOs)), percent(85)},
		column{"95 % to", by("min", attainmentTo("1d", overviewSLOs)), percent(75)},
		column{
			"Attempts 1 d", by("sum", recorded("slo:goodput_slo_events:increase", "1d", overviewSLOs)),
			[]dashboard.DynamicConfigValue{property("decimals", 0), property("custom.width", 105)},
		},
		column{"7 d", by("min", attainment7d), percent(75)},
		column{"30 d", by("min", attainment("30d", overviewSLOs)), percent(75)},
		column{"Budget left", by("min", budgetLeft(overviewSLOs)), []dashboard.DynamicConfigValue{
			property("unit", "percentunit"), property("decimals", 0), property("min", 0), property("max", 1),
			property("custom.cellOptions", map[string]any{"type": "gauge", "mode": "basic", "valueDisplayMode": "color"}),
			property("thresholds", budgetSteps()),
		}},
		column{"Burn 1 h", by("max", burnRate("1h", overviewSLOs)), burn},
		column{"Burn 6 h", by("max", burnRate("6h", overviewSLOs)), burn},
		column{"Budget lasts", by("min", lasts), []dashboard.DynamicConfigValue{
			property("unit", "s"), property("decimals", 1), property("custom.width", 110),
		}},
		column{"Data 1 h", by("min", "slo:goodput_slo_window_fill:ratio_1h{"+overviewSLOs+"}"), []dashboard.DynamicConfigValue{
			property("unit", "percentunit"), property("decimals", 0), property("custom.width", 85),
			property("custom.cellOptions", map[string]any{"type": "color-text"}),
			property("thresholds", steps(red, step{0.25, yellow}, step{0.9, green})),
		}},
	).
		OverrideByName("scenario", width(120)).OverrideByName("slo", width(110)).
		OverrideByName("target", []dashboard.DynamicConfigValue{property("custom.width", 130), property("links", []map[string]any{{
			"title": "Drill down", "targetBlank": false,
			"url": "/d/goodput-target?var-datasource=${datasource}&var-target=${__data.fields.target}&var-scenario=${__data.fields.scenario}&var-slo=${__data.fields.slo}",
		}})}).
		SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName("Budget left").Desc(false)})
}

// budgetSteps colour what is left of a budget.
func budgetSteps() cog.Builder[dashboard.ThresholdsConfig] {
	return steps(red, step{0, orange}, step{0.25, green})
}

func budgets() cog.Builder[dashboard.Panel] {
	return timeSeries("Error budget left (30 d)",
		"1 is the whole budget, 0 none of it; below 0 the SLO of the 30 days is broken. Drawn down to −100 %.",
		"percentunit", queries{line("{{target}} {{scenario}} {{slo}}", "clamp_min("+budgetLeft(overviewSLOs)+", -1)")}).
		Min(-1).Max(1).Decimals(0).
		Thresholds(budgetSteps()).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
		Legend(listOnTheRight())
}

func burnRates() cog.Builder[dashboard.Panel] {
	return timeSeries("Burn rate (1 h)",
		"How many times faster than allowed the budget goes: at 1 it lasts 30 days, at 14.4 two. The lines are the alerts' thresholds: "+
			"1 and 3 make tickets, 6 and 14.4 page (each over a longer window as well, see the runbooks).",
		"suffix:×", queries{line("{{target}} {{scenario}} {{slo}}", burnRate("1h", overviewSLOs))}).
		Min(0).Decimals(1).AxisSoftMax(15).
		Thresholds(steps("transparent", step{1, yellow}, step{3, orange}, step{6, red}, step{14.4, "dark-red"})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
		Legend(listOnTheRight())
}

func badByCriterion() cog.Builder[dashboard.Panel] {
	return bars("Bad events, by what was missed",
		"One attempt may miss several criteria, and a failed one misses all. A tall availability means failures; without it, slowness.",
		queries{line("{{slo}}", counted("slo", "goodput_slo_events_total", manySeries+`,result="bad",slo!="goodput"`))})
}

func requestsPerSecond() cog.Builder[dashboard.Panel] {
	return besideThroughput(timeSeries("Requests: goodput beside throughput",
		"Throughput is what succeeded; goodput what met the SLO as well. The gap is what throughput hides. These are the probes' own requests, summed over what is chosen.",
		"reqps", queries{
			line("throughput", "sum(target_scenario:goodput_requests:rate1h{"+manySeries+"})"),
			line("goodput", "sum(target_scenario:goodput_good_requests:rate1h{"+manySeries+"})"),
		}).Min(0))
}

func tokensPerSecond() cog.Builder[dashboard.Panel] {
	return besideThroughput(timeSeries("Output tokens: goodput beside throughput",
		"Output tokens of all attempts, and of good ones.",
		"suffix:tok/s", queries{
			line("throughput", "sum(target_scenario:goodput_output_tokens:rate1h{"+manySeries+"})"),
			line("goodput", "sum(target_scenario:goodput_good_output_tokens:rate1h{"+manySeries+"})"),
		}).Min(0))
}

func method() cog.Builder[dashboard.Panel] {
	return note("How to read this", `
**Goodput** is requests that succeeded *and* met every criterion of their SLO; **attainment** is good attempts / attempts. Failures and timeouts are attempts.
Probes are synthetic and few: they say what a user would have seen, not how many users did.

- One probe in 15 s is 20 in 5 minutes and 240 in an hour. At an objective of 99 % an hour in order still has an interval of about 97–99.8 %: look at *from* and *to* before the figure.
- Budgets are of 30 days, from counts. Prometheus must keep as long: `+"`--storage.tsdb.retention.time=35d`"+`. Until it has, they are of what there is.
- Burn alerts need a bad share that is proven (Wilson, 99 %), at least 5 bad events, and a quarter of the window filled. A quiet prober has alerts of its own.
- Quantiles of latency are on the drill-down. They decide nothing here: each attempt is judged by itself, at the exact limit.
`)
}
