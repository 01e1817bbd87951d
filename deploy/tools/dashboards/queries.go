package main

import "fmt"

// runbooks is where the alerts' runbook_url points to as well: one section an alert. The flag -runbooks sets it.
var runbooks = "https://runbooks.example.net/goodput"

// What panels select. On the overview any number of targets and scenarios are chosen, on the drill-down one of each.
const (
	manySeries = `job=~"$job",target=~"$target",model=~"$model",scenario=~"$scenario"`
	oneSeries  = `job=~"$job",target="$target",model=~"$model",scenario="$scenario"`
	repeated   = `job=~"$job",target="$target"` // in a row that repeats by target
	instances  = `job=~"$job",instance=~"$instance"`
)

// sloKey is what tells one SLO from another, in joins of recorded series with one another and with alerts.
const sloKey = seriesKey + ", slo"

// seriesKey is what tells one series from another, over all replicas and vantages.
const seriesKey = "job, target, model, scenario"

// recorded is a series of deploy/rules for a window.
func recorded(name, window, selector string) string {
	return fmt.Sprintf("%s%s{%s}", name, window, selector)
}

func attainment(window, selector string) string {
	return recorded("slo:goodput_slo_attainment:ratio_rate", window, selector)
}

func attainmentFrom(window, selector string) string {
	return recorded("slo:goodput_slo_attainment:wilson_lower95_", window, selector)
}

func attainmentTo(window, selector string) string {
	return recorded("slo:goodput_slo_attainment:wilson_upper95_", window, selector)
}

// burnRate is 1 where the budget is used up exactly at the end of its 30 days.
func burnRate(window, selector string) string {
	return recorded("slo:goodput_slo_bad_events_per_events:ratio_rate", window, selector) +
		" / on (" + sloKey + ") slo:goodput_slo_error_budget:ratio"
}

func budgetLeft(selector string) string {
	return recorded("slo:goodput_slo_error_budget_remaining:ratio", "30d", selector)
}

// quantile is a quantile of a histogram. Whether the metric is classic (name_bucket) or native, the expression is
// the same: a native histogram has no le to keep.
func quantile(q float64, metric, selector, window, by string) string {
	keep := "le"
	if by != "" {
		keep += ", " + by
	}
	return fmt.Sprintf("histogram_quantile(%g, sum by (%s) (rate(%s{%s}[%s])))", q, keep, metric, selector, window)
}

// either is the name of a latency histogram that has classic buckets by default, in the form that $buckets chooses.
func either(metric string) string { return metric + "_${buckets}" }

// firing selects alerts that page or ticket.
func firing(selector string) string {
	return fmt.Sprintf(`ALERTS{alertname=~"Goodput.*",alertstate="firing",%s}`, selector)
}

// counted is how many events a counter counted within the width of one bar.
func counted(by, metric, selector string) string {
	return fmt.Sprintf("sum by (%s) (increase(%s{%s}[$__interval]))", by, metric, selector)
}
