package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// target is for engineers: one target in one scenario, and what makes its attempts bad.
func target() page {
	return page{
		uid:         "goodput-target",
		title:       "Goodput / Target",
		description: "One target in one scenario: attainment, what fails, latencies beside their limits, lengths, and the prober's own part.",
		from:        "now-6h", refresh: "30s",
		variables: []cog.Builder[dashboard.VariableModel]{
			jobVariable(),
			one("target", "Target", `label_values(goodput_probe_interval_seconds{job=~"$job"}, target)`),
			several("model", "Model", `label_values(goodput_probe_interval_seconds{job=~"$job",target="$target"}, model)`),
			one("scenario", "Scenario", `label_values(goodput_probe_interval_seconds{job=~"$job",target="$target"}, scenario)`),
			one("slo", "SLO", `label_values(goodput_slo_objective_ratio{job=~"$job",target="$target",scenario="$scenario"}, slo)`),
			windowVariable(),
			bucketsVariable(),
		},
		sections: []section{
			{title: "Is it good?", panels: []placed{
				{6, 4, countOfAttempts()},
				{6, 4, speed()},
				{6, 4, lastGood("", "time() - max(goodput_last_good_timestamp_seconds{"+oneSeries+"})")},
				{6, 4, budgetOfTarget()},
				{10, 9, attainmentBand()},
				{8, 9, criteria()},
				{6, 9, dropScore()},
				{8, 8, outcomes()},
				{8, 8, failures(oneSeries)},
				{8, 8, requestsOfTarget()},
			}},
			{title: "Latency beside its limit", panels: []placed{
				{8, 9, latency("Time to first token (TTFT)", "From the send to the first token of any kind.", either("goodput_time_to_first_token"), oneSeries, "ttft")},
				{8, 9, latency("Time per output token (TPOT)", "Mean time per output token after the first, one observation an attempt.", either("goodput_time_per_output_token"), oneSeries, "tpot")},
				{8, 9, latency("Duration (E2E)", "From the send to the end of the answer, of attempts that succeeded.", either("goodput_request_duration"), oneSeries+`,result="ok"`, "e2e")},
				{8, 8, latency("First answer", "From the send to the first token that is not reasoning.", "goodput_time_to_first_answer_seconds", oneSeries, "first_answer")},
				{8, 8, latency("Longest stall", "The longest pause between two token events of an attempt.", "goodput_stall_seconds", oneSeries, "stall")},
				{8, 8, latency("Failures: how long they took", "From the send to the failure. They are in no other latency here: fast failures do not flatter it.", either("goodput_request_duration"), oneSeries+`,result="failed"`, "")},
			}},
			{title: "Distributions", panels: []placed{
				{6, 8, heat("TTFT", "How the times to the first token move.", either("goodput_time_to_first_token"), oneSeries)},
				{6, 8, heat("TPOT", "How the times per output token move.", either("goodput_time_per_output_token"), oneSeries)},
				{6, 8, heat("Duration", "How the durations of successful attempts move.", either("goodput_request_duration"), oneSeries+`,result="ok"`)},
				{6, 8, heat("Chunk gaps", "How the times between token events move; several tokens may come in one event. Native histograms only.", "goodput_chunk_gap_seconds", oneSeries)},
			}},
			{title: "Tokens and lengths", panels: []placed{
				{8, 8, tokensOfTarget()},
				{8, 8, lengths("Input length", "Input tokens of successful attempts. Latency means nothing without lengths.", "goodput_request_input_tokens")},
				{8, 8, lengths("Output length", "Output tokens of successful attempts.", "goodput_request_output_tokens")},
			}},
			{title: "Connection, and the prober's own part", panels: []placed{
				{8, 8, phases()},
				{8, 8, ownPart()},
				{8, 8, slotsOfTarget()},
			}},
			{title: "The server's own view (vLLM, llm-d), where Prometheus scrapes it too", collapsed: true, panels: serverView()},
		},
	}
}

const sloOfTarget = oneSeries + `,slo="$slo"`

// countOfAttempts says how many attempts there were, since a share of 20 is no share.
func countOfAttempts() cog.Builder[dashboard.Panel] {
	return stats("Attempts in $window", "Bad attempts by the chosen SLO, and all of them.", "none", queries{
		now("bad", "round(sum("+recorded("slo:goodput_slo_bad_events:increase", "${window}", sloOfTarget)+"))"),
		now("of", "round(sum("+recorded("slo:goodput_slo_events:increase", "${window}", sloOfTarget)+"))"),
	}).
		OverrideByName("bad", thresholds(steps(green, step{1, orange}))).
		OverrideByName("of", colored("text"))
}

func speed() cog.Builder[dashboard.Panel] {
	tpot := func(q float64) string {
		return "1 / " + quantile(q, either("goodput_time_per_output_token"), oneSeries, "$window", "")
	}
	return stats("Tokens per second, one stream", "1 / TPOT: half of the attempts are slower than the first figure, one of twenty than the second.",
		"suffix:tok/s", queries{now("p50", tpot(0.5)), now("p95", tpot(0.95))}).
		Decimals(0).ColorScheme(plainColor())
}

// lastGood is a stat of the seconds since the last good attempt.
func lastGood(legend, expr string) cog.Builder[dashboard.Panel] {
	return stats("Since the last good attempt", "Time since a good attempt was sent. Compare it with the probe interval.",
		"s", queries{now(legend, expr)}).
		Decimals(0).Thresholds(steps(green, step{120, orange}, step{600, red}))
}

func budgetOfTarget() cog.Builder[dashboard.Panel] {
	return stats("Error budget left (30 d), burn ($window)", "What is left of the chosen SLO's error budget of 30 days, and how many times faster than allowed it goes.",
		"percentunit", queries{
			now("budget", budgetLeft(sloOfTarget)),
			now("burn", burnRate("${window}", sloOfTarget)),
		}).
		Decimals(0).
		OverrideByName("budget", thresholds(budgetSteps())).
		OverrideByName("burn", append(thresholds(steps(green, step{1, yellow}, step{3, orange}, step{6, red})),
			property("unit", "suffix:×"), property("decimals", 1)))
}

// attainmentBand draws attainment in its interval: the band is what the attempts of a window can tell.
func attainmentBand() cog.Builder[dashboard.Panel] {
	edge := append(colored(blue), property("custom.lineWidth", 0),
		property("custom.hideFrom", map[string]any{"legend": true, "tooltip": false, "viz": false}))
	return timeSeries("Attainment ($slo, over $window) and its 95 % interval",
		"Good attempts / attempts, the interval (Wilson) in which its true value lies as far as so many attempts can tell, and the objective. While the objective is inside the "+
			"band, the window does not say whether the SLO is met.",
		"percentunit", queries{
			line("attainment", attainment("${window}", sloOfTarget)),
			line("from", attainmentFrom("${window}", sloOfTarget)),
			line("to", attainmentTo("${window}", sloOfTarget)),
			line("objective", "slo:goodput_slo_objective:ratio{"+sloOfTarget+"}"),
		}).
		Max(1).Decimals(1).
		OverrideByName("attainment", append(colored(blue), property("custom.lineWidth", 2))).
		OverrideByName("from", edge).
		OverrideByName("to", append(edge, property("custom.fillBelowTo", "from"), property("custom.fillOpacity", 25))).
		OverrideByName("objective", dashed(red))
}

func criteria() cog.Builder[dashboard.Panel] {
	good := "sum by (slo) (increase(goodput_slo_events_total{" + oneSeries + `,result="good"}[$window]))`
	every := "(sum by (slo) (increase(goodput_slo_events_total{" + oneSeries + "}[$window])) > 0)"
	return timeSeries("Attainment by criterion (over $window)",
		"The share of attempts that met each criterion. goodput is all of them together, availability that there was an answer. The lowest criterion is the one to look at below. "+
			"Its interval is as wide as the one beside: the counts are the same.",
		"percentunit", queries{line("{{slo}}", good+" / "+every)}).
		Max(1).Decimals(1).
		OverrideByName("goodput", append(colored("text"), property("custom.lineWidth", 3)))
}

// dropScore draws the score of each prober: none sees the attempts of another.
func dropScore() cog.Builder[dashboard.Panel] {
	return timeSeries("Drop score",
		"Whether goodput has dropped, by a sequential test of good and bad attempts in their order, for each prober. Above 1 it has, and GoodputDrop pages. Bursts of failures leave it low; "+
			"it falls back when attempts are good again, and begins at 0 after a restart.",
		"none", queries{line("{{instance}}", "max by (instance) (goodput_drop_score{"+oneSeries+"})")}).
		Min(0).AxisSoftMax(1.2).Decimals(2).
		Thresholds(steps(green, step{1, red})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
}

func outcomes() cog.Builder[dashboard.Panel] {
	return outcomeColors(bars("Outcomes", "What became of each attempt.", queries{line("{{outcome}}", counted("outcome", "goodput_probes_total", oneSeries)+" > 0")}))
}

// outcomeColors are the same for an outcome wherever it is drawn: good is green, too slow is yellow, the rest failed.
func outcomeColors(b *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	for _, c := range [][2]string{
		{"good", green},
		{"slo_violation", yellow},
		{"timeout", "dark-orange"},
		{"rate_limited", purple},
		{"server_error", red},
		{"client_error", "dark-purple"},
		{"connection_error", "dark-red"},
		{"truncated", "light-orange"},
		{"interrupted", "semi-dark-orange"},
		{"content_filtered", blue},
		{"invalid_response", "super-light-red"},
	} {
		b.OverrideByRegexp("/^"+c[0]+"/", colored(c[1]))
	}
	return b
}

func failures(selector string) cog.Builder[dashboard.Panel] {
	return outcomeColors(bars("Failures, by reason", "Attempts that failed, by outcome and reason. An answer that was merely too slow is no failure.",
		queries{line("{{outcome}}: {{reason}}", counted("outcome, reason", "goodput_probe_failures_total", selector)+" > 0")}).
		NoValue("No failures"))
}

func requestsOfTarget() cog.Builder[dashboard.Panel] {
	per := func(slo string) string {
		return "sum(rate(goodput_slo_events_total{" + oneSeries + `,slo="` + slo + `",result="good"}[$window]))`
	}
	return besideThroughput(timeSeries("Requests: goodput beside throughput (over $window)",
		"Attempts, those that succeeded, and those that met the SLO as well, per second.", "reqps", queries{
			line("throughput", per("availability")), line("goodput", per("goodput")),
			line("attempts", "sum(rate(goodput_slo_events_total{"+oneSeries+`,slo="availability"}[$window]))`),
		}).Min(0).
		OverrideByName("attempts", dashed(grey)))
}

// latency draws quantiles beside the limit that the SLO sets. p99 always is of 6 hours: an hour's is nearly its
// maximum.
func latency(title, description, metric, selector, slo string) cog.Builder[dashboard.Panel] {
	q := queries{
		line("p50", quantile(0.5, metric, selector, "$window", "")),
		line("p95", quantile(0.95, metric, selector, "$window", "")).Exemplar(true),
		line("p99 (6 h)", quantile(0.99, metric, selector, "6h", "")),
	}
	b := timeSeries(title, description, "s", q).Min(0).
		OverrideByName("p50", colored(green)).OverrideByName("p95", colored(orange)).OverrideByName("p99 (6 h)", colored(purple))
	if slo == "" {
		return b
	}
	return b.Description(description+" The dashed line is the SLO's limit, if it has one. Dots are attempts, with their trace id.").
		WithTarget(line("limit", "max(goodput_slo_threshold_seconds{"+oneSeries+`,slo="`+slo+`"})`)).
		OverrideByName("limit", dashed(red))
}

func tokensOfTarget() cog.Builder[dashboard.Panel] {
	per := func(metric string) string { return "sum(rate(" + metric + "{" + oneSeries + "}[$window]))" }
	return besideThroughput(timeSeries("Tokens: goodput beside throughput (over $window)",
		"Output tokens of all attempts and of good ones, and what else passes, per second.", "suffix:tok/s", queries{
			line("output throughput", per("goodput_output_tokens_total")), line("output goodput", per("goodput_good_output_tokens_total")),
			line("input", per("goodput_input_tokens_total")), line("cached input", per("goodput_cached_input_tokens_total")),
			line("reasoning", per("goodput_reasoning_tokens_total")),
		}).Min(0))
}

func lengths(title, description, metric string) cog.Builder[dashboard.Panel] {
	return timeSeries(title, description+" Native histograms only.", "suffix:tok", queries{
		line("p5", quantile(0.05, metric, oneSeries, "$window", "")),
		line("p50", quantile(0.5, metric, oneSeries, "$window", "")),
		line("p95", quantile(0.95, metric, oneSeries, "$window", "")),
	}).Min(0).Decimals(0).
		OverrideByName("p5", colored(blue)).OverrideByName("p50", colored(green)).OverrideByName("p95", colored(orange))
}

func phases() cog.Builder[dashboard.Panel] {
	return timeSeries("Phases up to the response, p95 (over $window)",
		"The parts of the way to the first byte of the response. A reused connection has no dns, connect and tls. headers is the server's own time. Native histograms only.",
		"s", queries{line("{{phase}}", quantile(0.95, "goodput_phase_duration_seconds", oneSeries, "$window", "phase")+" >= 0")}).
		Min(1e-5).ScaleDistribution(common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10))
}

func ownPart() cog.Builder[dashboard.Panel] {
	return timeSeries("The prober's own lateness, p95 (over $window)",
		"How late the prober started in its slots and read what had arrived. It is in no latency above; large values say to look at the prober first. Native histograms only.",
		"s", queries{
			line("start delay", quantile(0.95, "goodput_start_delay_seconds", oneSeries, "$window", "")),
			line("own lag", quantile(0.95, "goodput_own_lag_seconds", oneSeries, "$window", "")),
		}).
		Min(1e-5).ScaleDistribution(common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10))
}

func slotsOfTarget() cog.Builder[dashboard.Panel] {
	every := func(metric string) string { return "sum(increase(" + metric + "{" + oneSeries + "}[$__interval]))" }
	return bars("What else went wrong",
		"Slots skipped; probes that the prober itself aborted; verdicts that are bad because a figure did not exist; kept connections that were dead; answers without a report of tokens. All at 0 is right.",
		queries{
			line("skipped", every("goodput_slots_skipped_total")),
			line("aborted", every("goodput_aborted_probes_total")),
			line("unmeasurable", every("goodput_slo_unmeasurable_total")),
			line("dead connection", every("goodput_stale_connection_retries_total")),
			line("usage missing", every("goodput_usage_missing_total")),
		}).AxisSoftMax(1)
}

// serverView stands beside ours what servers say of all their traffic.
func serverView() []placed {
	vllm := `model_name=~"$model"`
	both := func(metric string) queries {
		return queries{
			line("p50", quantile(0.5, metric, vllm, "$window", "")),
			line("p95", quantile(0.95, metric, vllm, "$window", "")),
		}
	}
	return []placed{
		{8, 8, timeSeries("TTFT by the server", "What vLLM measures for all requests of the model, without the network and its queue before it.", "s",
			both("vllm:time_to_first_token_seconds_bucket")).Min(0)},
		{8, 8, timeSeries("TPOT by the server", "vLLM's time per output token, by request: the same definition as ours.", "s",
			both("vllm:request_time_per_output_token_seconds_bucket")).Min(0)},
		{8, 8, timeSeries("Load of the server", "Requests that run and wait in vLLM, and how full its KV cache is.", "short", queries{
			line("running", "sum(vllm:num_requests_running{"+vllm+"})"),
			line("waiting", "sum(vllm:num_requests_waiting{"+vllm+"})"),
			line("KV cache", "max(vllm:kv_cache_usage_perc{"+vllm+"})"),
		}).Min(0).OverrideByName("KV cache", []dashboard.DynamicConfigValue{
			property("unit", "percentunit"), property("custom.axisPlacement", "right"), property("max", 1),
		})},
	}
}
