package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/load"
)

// describeReport tells a report to a person, and at its end in the keys that common benchmark scripts print.
func describeReport(r *load.Report) string {
	var b strings.Builder
	describeRun(&b, r)
	describeRates(&b, r)
	describeSLO(&b, r)
	describeLatencies(&b, r)
	describeCounts(&b, r)
	describeClient(&b, r)
	describeCaveats(&b, r)
	describeKeys(&b, r)
	return b.String()
}

// describeRun says what was asked of whom, how much, and when.
func describeRun(b *strings.Builder, r *load.Report) {
	a, l := r.About, r.Load
	name := a.Model
	if a.Target != "" {
		name = a.Target + "/" + a.Scenario + ", " + a.Model
	}
	line(b, "endpoint", fmt.Sprintf("%s, %s at %s", name, a.Protocol, a.URL))
	if a.Workload != "" {
		line(b, "workload", a.Workload)
	}
	line(b, "SLO", terms(&r.SLO))
	text := l.Level().String()
	if l.Arrivals != "" {
		text += ", " + l.Arrivals + " arrivals"
	}
	if l.Burstiness != nil {
		text += fmt.Sprintf(" of burstiness %g", *l.Burstiness)
	}
	if l.MaxInFlight != nil {
		text += fmt.Sprintf(", at most %d in flight", *l.MaxInFlight)
	}
	if l.CancelShare != nil && l.CancelAfter != nil {
		text += fmt.Sprintf(", %s given up after %s", percent(*l.CancelShare), inUnits(*l.CancelAfter))
	}
	if l.Share != "" {
		text += ", part " + l.Share
	}
	line(b, "load", text)
	if l.AchievedConcurrency != nil && l.PeakConcurrency != nil {
		text = fmt.Sprintf("%s in flight on average, %d at most", decimals(*l.AchievedConcurrency), *l.PeakConcurrency)
		if l.OfferedRate != nil && l.AchievedRate != nil {
			text = fmt.Sprintf("%s/s of %s/s offered, %s", decimals(*l.AchievedRate), decimals(*l.OfferedRate), text)
		}
		line(b, "achieved", text)
	}
	if r.Duration != nil && r.Drain != nil {
		line(b, "ran", fmt.Sprintf("%s from %s, the last %s to drain; %d requests, and %d of the warm-up before",
			inUnits(*r.Duration), r.Started.UTC().Format(time.DateTime+" UTC"), inUnits(*r.Drain), r.Counts.Requests, r.Counts.WarmupRequests))
	}
}

// terms tells an SLO in words.
func terms(s *load.SLOReport) string {
	if s.Objective == nil && len(s.Criteria) == 0 {
		return "none: good is what was answered in full"
	}
	var limits []string
	for _, c := range s.Criteria {
		switch {
		case c.Name == config.CriterionComplete:
			limits = append(limits, "complete")
		case c.Limit != nil:
			limits = append(limits, c.Name+" ≤ "+inUnits(*c.Limit))
		}
	}
	if s.Objective == nil {
		return strings.Join(limits, ", ")
	}
	if len(limits) == 0 {
		limits = []string{"an answer in full"}
	}
	return fmt.Sprintf("%s of requests with %s", percent(*s.Objective), strings.Join(limits, ", "))
}

// describeRates puts throughput beside goodput.
func describeRates(b *strings.Builder, r *load.Report) {
	if r.Duration == nil {
		return
	}
	b.WriteString("\n")
	for _, rate := range []struct {
		name, unit string
		value      *float64
		interval   *load.Interval
	}{
		{"throughput", "req/s", r.Throughput, r.RateIntervals.Throughput},
		{"successful", "req/s", r.Successful, nil},
		{"goodput", "req/s", r.Goodput, r.RateIntervals.Goodput},
		{"output tokens", "/s", r.OutputTokenRate, r.RateIntervals.OutputTokenRate},
		{"of good answers", "/s", r.GoodTokenRate, nil},
		{"input tokens", "/s", r.InputTokenRate, nil},
	} {
		if rate.value == nil {
			continue
		}
		interval := ""
		if i := rate.interval; i != nil {
			interval = fmt.Sprintf("  95 %% from %s to %s", decimals(float64(i.Low)), decimals(float64(i.High)))
		}
		fmt.Fprintf(b, "%-17s%10s %s%s\n", rate.name, decimals(*rate.value), rate.unit, interval)
	}
}

// describeSLO says how the objectives and criteria were kept.
func describeSLO(b *strings.Builder, r *load.Report) {
	if r.Counts.Attempts == 0 {
		return
	}
	b.WriteString("\n")
	describeShare(b, "attainment", r.SLO.Attainment, r.SLO.Objective, "")
	for _, c := range r.SLO.Criteria {
		var more []string
		if c.Unmeasurable > 0 {
			more = append(more, fmt.Sprintf("%d unmeasurable", c.Unmeasurable))
		}
		if c.NotApplicable > 0 {
			more = append(more, fmt.Sprintf("%d not applicable", c.NotApplicable))
		}
		describeShare(b, "  "+c.Name, c.Attainment, c.Objective, strings.Join(more, ", "))
	}
	describeShare(b, "availability", r.SLO.Availability, r.SLO.AvailabilityObjective, "")
}

func describeShare(b *strings.Builder, name string, s load.Share, objective *float64, more string) {
	ratio := "-"
	if s.Ratio != nil {
		ratio = percent(*s.Ratio)
	}
	fmt.Fprintf(b, "%-17s%10s  %d of %d", name, ratio, s.Met, s.Of)
	if s.Interval != nil {
		fmt.Fprintf(b, ", 95 %% from %s to %s", percent(float64(s.Interval.Low)), percent(float64(s.Interval.High)))
		if objective != nil {
			b.WriteString(": " + kept(s, *objective))
		}
	}
	if more != "" {
		fmt.Fprintf(b, "; %s", more)
	}
	b.WriteString("\n")
}

// kept says how a share stands to its objective, as far as its interval can tell.
func kept(s load.Share, objective float64) string {
	verb, proof := "misses ", ", unproven"
	if *s.Ratio >= objective {
		verb = "meets "
	}
	if float64(s.Interval.Low) >= objective || float64(s.Interval.High) < objective {
		proof = ""
	}
	return verb + percent(objective) + proof
}

// describeLatencies has one line a figure, successes beside all attempts.
func describeLatencies(b *strings.Builder, r *load.Report) {
	l := r.Latencies
	rows := []struct {
		name    string
		latency *load.Latency
	}{
		{"TTFT", l.TTFT},
		{"first answer", l.FirstAnswer},
		{"TPOT", l.TPOT},
		{"stall", l.Stall},
		{"E2E", l.E2E},
		{"E2E from due", l.E2EFromIntended},
	}
	b.WriteString("\n")
	fmt.Fprintf(b, "%-17s%40s | %30s\n", "latency", "successes", "with failures")
	row(b, "", "mean", "p50", "p95", "p99", "|", "p50", "p95", "p99")
	for _, one := range rows {
		if one.latency == nil {
			continue
		}
		cells := append(append(quantiles(one.latency.Successes, true), "|"), quantiles(one.latency.WithFailures, false)...)
		row(b, one.name, cells...)
	}
	if l.ChunkGap != nil {
		row(b, "chunk gap", quantiles(l.ChunkGap, true)...)
	}
	if r.Lengths.Input == nil && r.Lengths.Output == nil {
		return
	}
	b.WriteString("\n")
	row(b, "length in tokens", "mean", "p50", "p95", "p99")
	lengths(b, "input", r.Lengths.Input)
	lengths(b, "output", r.Lengths.Output)
}

// row writes cells of ten characters.
func row(b *strings.Builder, name string, cells ...string) {
	fmt.Fprintf(b, "%-17s", name)
	for _, c := range cells {
		if c == "|" {
			b.WriteString(" |")
			continue
		}
		fmt.Fprintf(b, "%10s", c)
	}
	b.WriteString("\n")
}

// quantiles are the mean, where it is asked for, and the quantiles of a distribution of seconds.
func quantiles(d *load.Distribution, mean bool) []string {
	if d == nil {
		d = &load.Distribution{}
	}
	values := []load.Value{d.P50, d.P95, d.P99}
	if mean {
		values = append([]load.Value{d.Mean}, values...)
	}
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = "-"
		if d.Count > 0 {
			cells[i] = inUnits(float64(v))
		}
	}
	return cells
}

func lengths(b *strings.Builder, name string, d *load.Distribution) {
	if d == nil {
		return
	}
	row(b, name, decimals(float64(d.Mean)), whole(d.P50), whole(d.P95), whole(d.P99))
}

func whole(v load.Value) string { return strconv.FormatFloat(float64(v), 'f', 0, 64) }

// describeCounts says what became of the requests.
func describeCounts(b *strings.Builder, r *load.Report) {
	c := r.Counts
	b.WriteString("\n")
	count := func(name string, n int) { fmt.Fprintf(b, "%-40s%7d\n", name, n) }
	count("attempts", c.Attempts)
	for _, o := range probe.Outcomes {
		if n := c.Outcomes[o]; n > 0 && o.Success() {
			count("  "+string(o), n)
		}
	}
	for _, reason := range c.Reasons {
		name := string(reason.Outcome)
		if reason.Reason != "" {
			name += " (" + string(reason.Reason) + ")"
		}
		count("  "+name, reason.Count)
	}
	for _, other := range []struct {
		name string
		n    int
	}{
		{"given up on purpose", c.GivenUp},
		{"canceled by the end of the run", c.Canceled},
		{"local errors", c.LocalErrors},
		{"due, but never sent", r.Client.Unsent},
	} {
		if other.n > 0 {
			count(other.name, other.n)
		}
	}
}

// describeClient says how late the client itself was, and how busy.
func describeClient(b *strings.Builder, r *load.Report) {
	var parts []string
	if d := r.Client.StartLag; d != nil {
		parts = append(parts, "sent late by p99 "+inUnits(float64(d.P99)))
	}
	if d := r.Client.OwnLag; d != nil {
		parts = append(parts, "read late by p99 "+inUnits(float64(d.P99)))
	}
	if share := r.Client.CPUShare; share != nil {
		parts = append(parts, fmt.Sprintf("used %s of %d cores", percent(*share), r.Client.Cores))
	}
	if len(parts) > 0 {
		b.WriteString("\n")
		line(b, "client", strings.Join(parts, ", "))
	}
}

// describeCaveats says what the figures are not.
func describeCaveats(b *strings.Builder, r *load.Report) {
	for _, reason := range r.Invalid {
		fmt.Fprintf(b, "NOT VALID: %s\n", reason)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "note: %s\n", note)
	}
}

// describeKeys writes the figures that common benchmark scripts print, one a line; those that do not exist are left out.
func describeKeys(b *strings.Builder, r *load.Report) {
	b.WriteString("\n")
	for _, f := range []struct {
		key   string
		value *float64
	}{
		{"duration_seconds", r.Duration},
		{"throughput_req_s", r.Throughput},
		{"successful_req_s", r.Successful},
		{"goodput_req_s", r.Goodput},
		{"slo_attainment", r.Attainment},
		{"output_token_s", r.OutputTokenRate},
		{"latency_mean_s", r.LatencyMean},
		{"latency_p50_s", r.LatencyP50},
		{"latency_p95_s", r.LatencyP95},
		{"latency_p99_s", r.LatencyP99},
	} {
		if f.value != nil {
			fmt.Fprintf(b, "%s: %.6g\n", f.key, *f.value)
		}
	}
}

func line(b *strings.Builder, name, text string) { fmt.Fprintf(b, "%-10s%s\n", name, text) }

// inUnits writes seconds with three digits in the unit that suits them.
func inUnits(seconds float64) string {
	switch {
	case math.IsInf(seconds, 1):
		return "+Inf"
	case seconds >= 100:
		return strconv.FormatFloat(seconds, 'f', 0, 64) + " s"
	case seconds >= 1:
		return strconv.FormatFloat(seconds, 'f', 2, 64) + " s"
	}
	return strconv.FormatFloat(seconds*1e3, 'f', 1, 64) + " ms"
}

// decimals writes a number with about four digits.
func decimals(v float64) string {
	switch {
	case v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// percent writes a share.
func percent(ratio float64) string {
	return strconv.FormatFloat(math.Round(ratio*1e4)/1e2, 'f', -1, 64) + " %"
}
