package load

import (
	"math"
	"strconv"

	"goodput_exporter/config"
)

// figureUnit is what a figure is counted in.
type figureUnit int

const (
	unitNumber figureUnit = iota
	unitRatio
	unitSeconds
)

// quantity is one figure of a report, by the name that gates and comparisons know it by.
type quantity struct {
	name  string
	alias string // the key at the top of the JSON, or a short name for it; "" where there is none
	unit  figureUnit
	value func(*Report) *float64 // nil: the report has no such figure
}

// allFigures lists the figures in the order of the report.
func allFigures() []quantity {
	all := []quantity{
		{"attainment", "slo_attainment", unitRatio, func(r *Report) *float64 { return r.Attainment }},
		{"availability", "", unitRatio, func(r *Report) *float64 { return r.SLO.Availability.Ratio }},
		{"error_rate", "", unitRatio, errorRate},
	}
	for _, name := range config.Criteria {
		all = append(all, quantity{"attainment_" + name, "", unitRatio, func(r *Report) *float64 {
			if c := r.criterion(name); c != nil {
				return c.Attainment.Ratio
			}
			return nil
		}})
	}
	all = append(all,
		quantity{"goodput", "goodput_req_s", unitNumber, func(r *Report) *float64 { return r.Goodput }},
		quantity{"throughput", "throughput_req_s", unitNumber, func(r *Report) *float64 { return r.Throughput }},
		quantity{"successful", "successful_req_s", unitNumber, func(r *Report) *float64 { return r.Successful }},
		quantity{"output_tokens", "output_token_s", unitNumber, func(r *Report) *float64 { return r.OutputTokenRate }},
		quantity{"good_output_tokens", "good_output_token_s", unitNumber, func(r *Report) *float64 { return r.GoodTokenRate }},
		quantity{"input_tokens", "input_token_s", unitNumber, func(r *Report) *float64 { return r.InputTokenRate }},
		quantity{"offered", "offered_req_s", unitNumber, func(r *Report) *float64 { return r.Load.OfferedRate }},
		quantity{"achieved", "achieved_req_s", unitNumber, func(r *Report) *float64 { return r.Load.AchievedRate }},
		quantity{"achieved_concurrency", "", unitNumber, func(r *Report) *float64 { return r.Load.AchievedConcurrency }},
		quantity{"duration", "duration_seconds", unitSeconds, func(r *Report) *float64 { return r.Duration }},
	)
	all = append(all, countFigures()...)
	for _, l := range latencyNames {
		successes := func(r *Report) *Distribution { return l.of(&r.Latencies).successes() }
		withFailures := func(r *Report) *Distribution { return l.of(&r.Latencies).withFailures() }
		all = append(all, distributionFigures(l.name, successes)...)
		all = append(all, distributionFigures(l.name+"_with_failures", withFailures)...)
	}
	all = append(all, distributionFigures("chunk_gap", func(r *Report) *Distribution { return r.Latencies.ChunkGap })...)
	all = append(all, distributionFigures("start_lag", func(r *Report) *Distribution { return r.Client.StartLag })...)
	return append(all, distributionFigures("own_lag", func(r *Report) *Distribution { return r.Client.OwnLag })...)
}

// latencyNames are the figures of Latencies that every request has its own of.
var latencyNames = []struct {
	name string
	of   func(*Latencies) *Latency
}{
	{"ttft", func(l *Latencies) *Latency { return l.TTFT }},
	{"first_answer", func(l *Latencies) *Latency { return l.FirstAnswer }},
	{"tpot", func(l *Latencies) *Latency { return l.TPOT }},
	{"stall", func(l *Latencies) *Latency { return l.Stall }},
	{"e2e", func(l *Latencies) *Latency { return l.E2E }},
	{"e2e_from_intended", func(l *Latencies) *Latency { return l.E2EFromIntended }},
}

// successes is nil where there are none.
func (l *Latency) successes() *Distribution {
	if l == nil {
		return nil
	}
	return l.Successes
}

func (l *Latency) withFailures() *Distribution {
	if l == nil {
		return nil
	}
	return l.WithFailures
}

func countFigures() []quantity {
	count := func(name string, of func(*Counts) int) quantity {
		return quantity{name, "", unitNumber, func(r *Report) *float64 { return new(float64(of(&r.Counts))) }}
	}
	return []quantity{
		count("requests", func(c *Counts) int { return c.Requests }),
		count("attempts", func(c *Counts) int { return c.Attempts }),
		count("successes", func(c *Counts) int { return c.Successes }),
		count("good", func(c *Counts) int { return c.Good }),
		count("failures", func(c *Counts) int { return c.Failures }),
		count("timeouts", func(c *Counts) int { return c.Timeouts }),
		count("rate_limited", func(c *Counts) int { return c.RateLimited }),
		count("local_errors", func(c *Counts) int { return c.LocalErrors }),
	}
}

// distributionFigures are the mean, the quantiles and the greatest of a distribution of seconds.
func distributionFigures(name string, of func(*Report) *Distribution) []quantity {
	var all []quantity
	for _, q := range []struct {
		name string
		of   func(*Distribution) Value
	}{
		{"mean", func(d *Distribution) Value { return d.Mean }},
		{"p50", func(d *Distribution) Value { return d.P50 }},
		{"p95", func(d *Distribution) Value { return d.P95 }},
		{"p99", func(d *Distribution) Value { return d.P99 }},
		{"max", func(d *Distribution) Value { return d.Max }},
	} {
		f := quantity{name: name + "_" + q.name, unit: unitSeconds, value: func(r *Report) *float64 {
			if d := of(r); d != nil {
				return new(float64(q.of(d)))
			}
			return nil
		}}
		if name == "e2e" && q.name != "max" {
			f.alias = "latency_" + q.name + "_s"
		}
		all = append(all, f)
	}
	return all
}

// errorRate is the share of the attempts that failed.
func errorRate(r *Report) *float64 {
	if r.Counts.Attempts == 0 {
		return nil
	}
	return new(float64(r.Counts.Failures) / float64(r.Counts.Attempts))
}

// criterion is nil where the SLO has no such criterion.
func (r *Report) criterion(name string) *CriterionReport {
	for i := range r.SLO.Criteria {
		if r.SLO.Criteria[i].Name == name {
			return &r.SLO.Criteria[i]
		}
	}
	return nil
}

// plain writes a number with four significant digits, or as a whole number.
func plain(v float64) string {
	if math.Abs(v) < 1000 {
		v = significant(v, 4)
	} else {
		v = math.Round(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
