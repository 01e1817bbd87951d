package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// onCall is for the person who was paged, and for the wall: is it meeting its SLO right now, and what is failing?
func onCall() page {
	return page{
		uid:         "goodput-oncall",
		title:       "Goodput / On call",
		description: "Is it good right now, and what exactly is failing? Counts, not percentages: few minutes hold few probes.",
		from:        "now-30m", refresh: "10s",
		variables: []cog.Builder[dashboard.VariableModel]{
			jobVariable(),
			several("target", "Target", `label_values(goodput_probe_interval_seconds{job=~"$job"}, target)`),
			bucketsVariable(),
		},
		sections: []section{
			{title: "Alerts", panels: []placed{
				{4, 7, firingCount()},
				{14, 7, alertTable()},
				{6, 7, runbookList()},
			}},
			{title: "$target", repeat: "target", panels: []placed{
				{6, 6, status()},
				{9, 6, badOf()},
				{9, 6, probeStrip()},
				{6, 7, lastGood("{{scenario}}", "time() - max by (scenario) (goodput_last_good_timestamp_seconds{"+repeated+"})")},
				{9, 7, ttftNow()},
				{9, 7, failingNow()},
			}},
		},
	}
}

func firingCount() cog.Builder[dashboard.Panel] {
	count := func(severity string) string {
		return `count(ALERTS{alertname=~"Goodput.*",alertstate="firing",severity="` + severity + `"}) or vector(0)`
	}
	return stats("Firing", "Alerts that fire now: those that page, and those for working hours. Also of targets that are not chosen above.", "none", queries{
		now("page", count("critical")), now("ticket", count("warning")),
	}).
		ColorMode(common.BigValueColorModeBackground).TextMode(common.BigValueTextModeValueAndName).
		OverrideByName("page", thresholds(steps(green, step{1, red}))).
		OverrideByName("ticket", thresholds(steps(green, step{1, orange})))
}

func alertTable() cog.Builder[dashboard.Panel] {
	since := `ALERTS{alertname=~"Goodput.*"} * ignoring (alertstate) group_left () ALERTS_FOR_STATE * 1000`
	return tableOf("Firing and pending alerts", "Alerts of the rules in deploy/rules that fire, or will if it goes on, and since when.",
		[]string{"alertstate", "severity", "alertname", "target", "scenario", "slo"},
		column{
			"since", "max by (alertstate, severity, alertname, target, scenario, slo) (" + since + ")",
			[]dashboard.DynamicConfigValue{property("unit", "dateTimeFromNow"), property("custom.width", 130)},
		},
	).
		NoValue("No alert").
		OverrideByName("severity", states(value{"critical", "page", red}, value{"warning", "ticket", orange}, value{"info", "info", blue})).
		OverrideByName("alertstate", states(value{"firing", "firing", red}, value{"pending", "pending", yellow})).
		OverrideByName("alertname", width(230)).OverrideByName("target", width(130)).
		OverrideByName("scenario", width(110)).OverrideByName("slo", width(100)).
		SortBy([]cog.Builder[common.TableSortByFieldState]{
			common.NewTableSortByFieldStateBuilder().DisplayName("alertstate").Desc(false),
			common.NewTableSortByFieldStateBuilder().DisplayName("severity").Desc(false),
		})
}

// states colours the words of a label.
func states(values ...value) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{
		property("mappings", words(values...)),
		property("custom.cellOptions", map[string]any{"type": "color-text"}),
		property("custom.width", 85),
	}
}

// alertNames are the alerts of deploy/rules, each with a section in the runbooks.
var alertNames = []string{
	"GoodputTargetDown", "GoodputDrop", "GoodputErrorBudgetBurn", "GoodputErrorBudgetExhausted",
	"GoodputProberStalled", "GoodputExporterDown", "GoodputExporterAbsent", "GoodputConfigReloadFailed",
	"GoodputProbesSkipped", "GoodputProbeStartDelay", "GoodputUsageMissing",
}

func runbookList() cog.Builder[dashboard.Panel] {
	var b strings.Builder
	for _, name := range alertNames {
		fmt.Fprintf(&b, "- [%s](%s#%s)\n", strings.TrimPrefix(name, "Goodput"), runbooks, strings.ToLower(name))
	}
	return note("Runbooks", b.String())
}

// status is the worst that alerts say of each scenario, unless no replica probes it on purpose. Where there are no probes
// nothing is said.
func status() cog.Builder[dashboard.Panel] {
	alert := func(factor int, name, severity string) string {
		return fmt.Sprintf(`%d * ALERTS{alertname=%q,alertstate="firing",severity=%q,%s}`, factor, name, severity, repeated)
	}
	expr := "max by (scenario) (" + strings.Join([]string{
		"5 * (min by (scenario) (goodput_paused{" + repeated + "}) > 0)",
		alert(4, "GoodputTargetDown", "critical"),
		alert(3, "GoodputErrorBudgetBurn", "critical"),
		alert(2, "GoodputDrop", "critical"),
		alert(1, "GoodputErrorBudgetBurn", "warning"),
		"0 * (sum by (scenario) (increase(goodput_probes_total{" + repeated + "}[5m])) > 0)",
	}, " or ") + ")"
	return stats("Status", "The worst that alerts say now. Down: no good answer. Burning: the error budget goes so fast that somebody is paged; dropped: far more attempts are bad than the objective allows, though the budget does not show it yet; slow burn: faster than it should, for working hours. "+
		"Paused: not probed, on purpose (maintenance, a silence). No data: no probe in 5 minutes.", "none", queries{now("{{scenario}}", expr)}).
		ColorMode(common.BigValueColorModeBackground).TextMode(common.BigValueTextModeValueAndName).
		Mappings(words(value{"0", "OK", green}, value{"1", "Slow burn", orange}, value{"2", "Dropped", red}, value{"3", "Burning", red}, value{"4", "Down", "dark-red"}, value{"5", "Paused", blue})).
		Thresholds(steps(green))
}

// badOf shows counts: "3 of 20" warns of what 85 % hides.
func badOf() cog.Builder[dashboard.Panel] {
	events := func(window, extra string) string {
		return "round(sum by (scenario) (increase(goodput_slo_events_total{" + repeated + `,slo="goodput"` + extra + "}[" + window + "])))"
	}
	bad := []dashboard.DynamicConfigValue{
		property("custom.width", 95),
		property("custom.cellOptions", map[string]any{"type": "color-text"}),
		property("thresholds", steps(green, step{1, yellow}, step{5, red})),
	}
	return tableOf("Bad of attempts", "How many attempts were bad (failed, or missed a criterion), of how many.",
		[]string{"scenario"},
		column{"bad, 5 m", events("5m", `,result="bad"`), bad}, column{"of", events("5m", ""), width(70)},
		column{"bad, 1 h", events("1h", `,result="bad"`), bad}, column{"of ", events("1h", ""), width(70)},
	)
}

func probeStrip() cog.Builder[dashboard.Panel] {
	bad := "sum by (scenario) (increase(goodput_slo_events_total{" + repeated + `,slo="goodput",result="bad"}[$__rate_interval]))`
	every := "(sum by (scenario) (increase(goodput_slo_events_total{" + repeated + `,slo="goodput"}[$__rate_interval])) > 0)`
	none, half, whole := 0.0, 0.001, 0.999
	span := func(from, to float64, text, color string) dashboard.ValueMapping {
		return dashboard.ValueMapping{RangeMap: &dashboard.RangeMap{
			Type:    dashboard.MappingTypeRangeToText,
			Options: dashboard.DashboardRangeMapOptions{From: &from, To: &to, Result: dashboard.ValueMappingResult{Text: &text, Color: &color}},
		}}
	}
	return strip("The last minutes", "Each cell is a minute of probes: all good, some bad, all bad. No cell: no probe.",
		queries{line("{{scenario}}", bad+" / "+every)}).
		Mappings([]dashboard.ValueMapping{
			span(none, half, "good", green), span(half, whole, "some bad", orange), span(whole, 2, "all bad", red),
		})
}

func ttftNow() cog.Builder[dashboard.Panel] {
	metric := either("goodput_time_to_first_token")
	return timeSeries("TTFT now (5 m), beside its limit and a day ago",
		"Median and slowest time to the first token of 5 minutes, the median 24 h ago, and the SLO's limit. Dots are attempts, with their trace id.", "s", queries{
			line("{{scenario}} p50", quantile(0.5, metric, repeated, "5m", "scenario")).Exemplar(true),
			line("{{scenario}} max", quantile(1, metric, repeated, "5m", "scenario")),
			line("{{scenario}} p50 24 h ago", "histogram_quantile(0.5, sum by (le, scenario) (rate("+metric+"{"+repeated+"}[1h] offset 1d)))"),
			line("{{scenario}} limit", "max by (scenario) (goodput_slo_threshold_seconds{"+repeated+`,slo="ttft"})`),
		}).Min(0).
		OverrideByRegexp("/limit$/", []dashboard.DynamicConfigValue{property("custom.lineStyle", map[string]any{"fill": "dash", "dash": []int{8, 6}})}).
		OverrideByRegexp("/ago$/", []dashboard.DynamicConfigValue{property("custom.lineStyle", map[string]any{"fill": "dash", "dash": []int{2, 4}})}).
		OverrideByRegexp("/max$/", []dashboard.DynamicConfigValue{property("custom.lineWidth", 1)})
}

func failingNow() cog.Builder[dashboard.Panel] {
	return outcomeColors(bars("What fails", "Bad attempts: failures by reason, and (slo_violation) answers that were too slow or cut.", queries{
		line("{{outcome}}: {{reason}}", counted("outcome, reason", "goodput_probe_failures_total", repeated)+" > 0"),
		line("slo_violation: {{scenario}}", counted("scenario", "goodput_probes_total", repeated+`,outcome="slo_violation"`)+" > 0"),
	}).NoValue("Nothing fails"))
}
