package report

import (
	"fmt"
	"io"
	"math"
	"slices"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/load"
)

// Bench writes the report of one level as one HTML file that needs nothing else: no script, no other file, no network.
// The plots are made of the records; without them, as of a report that was read from its JSON, there are none.
func Bench(w io.Writer, r *load.Report, records []load.Record) error {
	v := benchView{Report: r, Level: r.Load.Level().String(), SLOText: sloText(r), Outcomes: outcomeRows(r), Latencies: latencyRows(r)}
	v.Charts = pageCharts(benchCharts(r, records))
	return templates.ExecuteTemplate(w, "bench", v)
}

// benchView is what the template of a bench reads.
type benchView struct {
	*load.Report
	Level, SLOText string
	Charts         []pageChart
	Outcomes       []outcomeRow
	Latencies      []latencyRow
}

// outcomeRow is how often an outcome occurred.
type outcomeRow struct {
	Outcome probe.Outcome
	Style   style
	Count   int
	Share   float64
	Reasons []load.ReasonCount
}

func outcomeRows(r *load.Report) []outcomeRow {
	var rows []outcomeRow
	for _, o := range probe.Outcomes {
		n := r.Counts.Outcomes[o]
		if n == 0 && !o.Success() {
			continue
		}
		row := outcomeRow{Outcome: o, Style: outcomeStyle(o), Count: n}
		if r.Counts.Attempts > 0 {
			row.Share = float64(n) / float64(r.Counts.Attempts)
		}
		for _, c := range r.Counts.Reasons {
			if c.Outcome == o {
				row.Reasons = append(row.Reasons, c)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func outcomeStyle(o probe.Outcome) style {
	switch {
	case o == probe.Good:
		return blue
	case o == probe.SLOViolation:
		return orange
	case o.Attempt():
		return red
	}
	return grey
}

// latencyRow is one figure in the table.
type latencyRow struct {
	Name         string
	Limit        *float64
	Successes    *load.Distribution
	WithFailures *load.Distribution
}

func latencyRows(r *load.Report) []latencyRow {
	l := r.Latencies
	var rows []latencyRow
	add := func(name, criterion string, of *load.Latency) {
		if of != nil {
			rows = append(rows, latencyRow{name, limitOf(r, criterion), of.Successes, of.WithFailures})
		}
	}
	add("TTFT", config.CriterionTTFT, l.TTFT)
	add("first answer", config.CriterionFirstAnswer, l.FirstAnswer)
	add("TPOT", config.CriterionTPOT, l.TPOT)
	add("stall", config.CriterionStall, l.Stall)
	add("E2E", config.CriterionE2E, l.E2E)
	add("E2E from when it was due", "", l.E2EFromIntended)
	if l.ChunkGap != nil {
		rows = append(rows, latencyRow{Name: "chunk gap", Successes: l.ChunkGap})
	}
	return rows
}

func benchCharts(r *load.Report, records []load.Record) []*chart {
	var charts []*chart
	for _, c := range []*chart{
		distributionChart("TTFT", limitOf(r, config.CriterionTTFT), records, func(rec *load.Record) *float64 { return toSeconds(rec.TTFT) }),
		distributionChart("E2E", limitOf(r, config.CriterionE2E), records, func(rec *load.Record) *float64 { return toSeconds(rec.E2E) }),
		timelineChart(r, records),
	} {
		if c != nil {
			charts = append(charts, c)
		}
	}
	return charts
}

// curvePoints bounds the points of a distribution: as many as a screen can show.
const curvePoints = 600

// distributionChart plots which share of the attempts had a figure of at most x. Failures never had it, so that the curve
// ends at the share of successes. It is nil where no success has the figure.
func distributionChart(name string, limit *float64, records []load.Record, figure func(*load.Record) *float64) *chart {
	var values []float64
	attempts := 0
	for i := range records {
		rec := &records[i]
		if !rec.Attempt() {
			continue
		}
		attempts++
		if v := figure(rec); v != nil && *v > 0 && rec.Outcome.Success() {
			values = append(values, *v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	share := func(n int) float64 { return float64(n) / float64(attempts) }
	curve := []point{{x: values[0]}}
	step := max(1, len(values)/curvePoints)
	for i := 0; i < len(values); i += step {
		if len(values)-i <= step*curvePoints/50 {
			step = 1 // the tail is drawn whole: it is what people look for
		}
		curve = append(curve, point{x: values[i], y: share(i + 1)})
	}
	c := &chart{
		title: name + ": share of attempts within", about: "Share of all attempts that had at most so much. Failures never come in.",
		x:     latencyAxis(name, values),
		y:     axis{name: "share of attempts", max: 1, ticks: []float64{0, 0.25, 0.5, 0.75, 0.95, 1}, format: percent},
		lines: []line{{name: fmt.Sprintf("%d attempts", attempts), style: blue, points: curve, steps: true}},
	}
	if limit != nil {
		within, _ := slices.BinarySearchFunc(values, *limit, func(v, limit float64) int {
			if v <= limit {
				return -1
			}
			return 1
		})
		c.x = latencyAxis(name, append(values, *limit))
		c.marks = []mark{{fmt.Sprintf("limit %s: %s within", seconds(*limit), percent(share(within))), red, *limit}}
	}
	return c
}

// clouds are the groups of the timeline, in the order in which they are drawn: what matters most is on top.
var clouds = []cloud{{name: "canceled", style: grey}, {name: "good", style: blue}, {name: "SLO violation", style: orange}, {name: "failed", style: red}}

// cloudPoints bounds the points of one group.
const cloudPoints = 3000

// timelineChart plots how long each request took against when it was sent. It is nil without records.
func timelineChart(r *load.Report, records []load.Record) *chart {
	groups := slices.Clone(clouds)
	var times []float64
	from, last := math.Inf(1), 0.0
	warmup := false
	for i := range records {
		rec := &records[i]
		took := rec.Ended - rec.Sent
		if rec.E2E != nil && rec.Outcome.Success() {
			took = *rec.E2E
		}
		if took <= 0 {
			continue
		}
		p := point{x: rec.Sent.Seconds(), y: took.Seconds()}
		g := slices.IndexFunc(groups, func(c cloud) bool { return c.style == outcomeStyle(rec.Outcome) })
		groups[g].points = append(groups[g].points, p)
		times = append(times, p.y)
		last = max(last, p.x)
		if rec.Warmup {
			warmup = true
		} else {
			from = min(from, p.x)
		}
	}
	if len(times) == 0 {
		return nil
	}
	c := &chart{title: "Requests over time", wide: true, about: "How long each request took, against when it was sent, by what became of it."}
	if warmup && !math.IsInf(from, 1) {
		c.shade, c.title = from, c.title+" (shaded: warm-up, not in the figures)"
	}
	if l := limitOf(r, config.CriterionE2E); l != nil {
		c.limits = []limit{{"limit of E2E " + seconds(*l), *l}}
		times = append(times, *l)
	}
	for _, g := range groups {
		if len(g.points) > 0 {
			c.clouds = append(c.clouds, g.thinned(cloudPoints))
		}
	}
	c.x = axis{name: "sent, since the start of the run", format: seconds}
	_, _, c.x.ticks = linear(0, last, 8)
	c.x.ticks = slices.DeleteFunc(c.x.ticks, func(v float64) bool { return v > last })
	c.x.max = max(last, 1e-3)
	c.y = latencyAxis("took", times)
	return c
}

// thinned leaves out points evenly, and says so, where there are more than n.
func (c cloud) thinned(n int) cloud {
	every := (len(c.points) + n - 1) / n
	if every <= 1 {
		return c
	}
	var kept []point
	for i := 0; i < len(c.points); i += every {
		kept = append(kept, c.points[i])
	}
	return cloud{fmt.Sprintf("%s (1 in %d drawn)", c.name, every), c.style, kept}
}
