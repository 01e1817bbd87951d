package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"goodput_exporter/config"
	"goodput_exporter/probe/load"
)

// Sweep writes the report of a sweep as one HTML file that needs nothing else: no script, no other file, no network.
func Sweep(w io.Writer, s *load.SweepReport) error {
	v := sweepView{SweepReport: s, Unit: unitName(s), Answers: answers(s)}
	v.Charts = pageCharts(sweepCharts(s))
	for _, r := range s.Levels {
		v.Rows = append(v.Rows, newRow(r))
	}
	if n := len(s.Levels); n > 0 {
		v.SLOText = sloText(s.Levels[n-1])
	}
	return templates.ExecuteTemplate(w, "sweep", v)
}

// SweepSVG writes the plots of a sweep alone, as one SVG file that follows the reader's light or dark scheme.
func SweepSVG(w io.Writer, s *load.SweepReport) error {
	var b strings.Builder
	x, y, below := float64(gap), float64(gap), float64(gap) // below is where the next row begins
	for _, c := range sweepCharts(s) {
		if x+c.width() > gap+wideWidth {
			x, y = gap, below
		}
		b.WriteString(string(c.svg(fmt.Sprintf(` x="%g" y="%g" width="%g" height="%g"`, x, y, c.width(), c.height()))))
		x += c.width() + gap
		below = max(below, y+c.height()+gap)
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]g" width="%[1]d" height="%[2]g"><style>%[3]s</style>
<rect class="surface" width="100%%" height="100%%"/>
%[4]s</svg>
`, wideWidth+2*gap, below, chartCSS, b.String())
	return err
}

// sweepView is what the template of a sweep reads.
type sweepView struct {
	*load.SweepReport
	Unit    string
	SLOText string
	Answers []namedAnswer
	Charts  []pageChart
	Rows    []row
}

// namedAnswer is an answer of the sweep as it is shown.
type namedAnswer struct {
	Name, Level string // Level is "" where the range has none
	load.Answer
	Style style
}

func answers(s *load.SweepReport) []namedAnswer {
	all := []namedAnswer{
		{Name: "Recommended", Answer: s.Answers.Recommended, Style: green},
		{Name: "SLO capacity", Answer: s.Answers.SLOCapacity, Style: red},
		{Name: "Goodput peak", Answer: s.Answers.GoodputPeak, Style: orange},
		{Name: "Saturation", Answer: s.Answers.Saturation, Style: blue},
	}
	for i := range all {
		if l := all[i].Answer.Level; l != nil {
			all[i].Level = number(*l)
			if rates(s) {
				all[i].Level += "/s"
			}
		}
	}
	return all
}

func rates(s *load.SweepReport) bool { return len(s.Levels) > 0 && s.Levels[0].Load.Level().Open() }

func unitName(s *load.SweepReport) string {
	if rates(s) {
		return "offered load (requests a second)"
	}
	return "concurrency (requests in flight)"
}

// row is a level in the table.
type row struct {
	*load.Report
	Level      string
	TTFT, E2E  *load.Distribution
	Bad        string
	Confidence string
	Remarks    []string
}

func newRow(r *load.Report) row {
	return row{
		Report: r, Level: number(r.Load.Level().Value()), TTFT: successes(r.Latencies.TTFT), E2E: successes(r.Latencies.E2E),
		Bad: notGood(r), Confidence: string(r.Confidence()), Remarks: append(slices.Clone(r.Invalid), r.Notes...),
	}
}

func sweepCharts(s *load.SweepReport) []*chart {
	levels := slices.DeleteFunc(slices.Clone(s.Levels), func(r *load.Report) bool { return r.Throughput == nil || r.Attainment == nil })
	if len(levels) == 0 {
		return nil
	}
	x := loadAxis(s, levels)
	charts := []*chart{throughputChart(levels, x), attainmentChart(levels, x)}
	for _, l := range []struct {
		name, criterion string
		of              func(load.Latencies) *load.Latency
	}{
		{"TTFT", config.CriterionTTFT, func(l load.Latencies) *load.Latency { return l.TTFT }},
		{"TPOT", config.CriterionTPOT, func(l load.Latencies) *load.Latency { return l.TPOT }},
		{"E2E", config.CriterionE2E, func(l load.Latencies) *load.Latency { return l.E2E }},
	} {
		if c := latencyChart(l.name, l.criterion, levels, x, l.of); c != nil {
			charts = append(charts, c)
		}
	}
	charts[0].marks = answerMarks(s, x)
	return charts
}

// loadAxis is logarithmic where the levels span much, and has a tick at each.
func loadAxis(s *load.SweepReport, levels []*load.Report) axis {
	a := axis{name: unitName(s), format: number}
	for _, r := range levels {
		a.ticks = append(a.ticks, r.Load.Level().Value())
	}
	low, high := slices.Min(a.ticks), slices.Max(a.ticks)
	a.log = high/low > 6
	if a.log {
		margin := math.Pow(high/low, 0.03)
		a.min, a.max = low/margin, high*margin
	} else {
		margin := max((high-low)*0.03, low*0.03)
		a.min, a.max = low-margin, high+margin
	}
	return a
}

// answerMarks marks the answers; those at the same level share a mark.
func answerMarks(s *load.SweepReport, x axis) []mark {
	var marks []mark
	for _, a := range answers(s) {
		if a.Answer.Level == nil {
			continue
		}
		at, name := *a.Answer.Level, strings.ToLower(a.Name[:1])+a.Name[1:]
		if strings.HasPrefix(a.Name, "SLO") {
			name = a.Name
		}
		if i := slices.IndexFunc(marks, func(m mark) bool { return m.x == at }); i >= 0 {
			marks[i].name = name + ", " + marks[i].name
			continue
		}
		marks = append(marks, mark{name + " " + a.Level, a.Style, at})
	}
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.x, b.x) })
	return slices.DeleteFunc(marks, func(m mark) bool { return m.x < x.min })
}

func throughputChart(levels []*load.Report, x axis) *chart {
	var throughput, goodput, between []point
	top := 0.0
	for _, r := range levels {
		p := point{x: r.Load.Level().Value(), hollow: !r.Valid}
		throughput = append(throughput, p.at(*r.Throughput))
		goodput = append(goodput, p.at(*r.Goodput))
		between = append(between, point{x: p.x, low: *r.Goodput, high: *r.Throughput})
		top = max(top, *r.Throughput)
	}
	y := axis{name: "requests a second", format: number}
	y.min, y.max, y.ticks = linear(0, top*1.02, 5)
	return &chart{
		title: "Throughput and goodput", wide: true, about: "Completed and good requests a second against the load.", x: x, y: y,
		bands: []band{{"completed, not good", grey, between}},
		lines: []line{{name: "throughput", style: blue, points: throughput}, {name: "goodput", style: orange, points: goodput}},
	}
}

func attainmentChart(levels []*load.Report, x axis) *chart {
	var attainment, interval []point
	lowest := 1.0
	var limits []limit
	for _, r := range levels {
		p := point{x: r.Load.Level().Value(), hollow: !r.Valid}
		attainment = append(attainment, p.at(*r.Attainment))
		if i := r.SLO.Attainment.Interval; i != nil {
			interval = append(interval, point{x: p.x, low: float64(i.Low), high: float64(i.High)})
			lowest = min(lowest, float64(i.Low))
		}
		if o := r.SLO.Objective; o != nil {
			limits = []limit{{"objective " + percent(*o), *o}}
			lowest = min(lowest, *o)
		}
	}
	y := axis{name: "attainment", format: percent}
	y.min, _, y.ticks = linear(lowest, 1, 5)
	y.min, y.max = max(y.min, 0), 1
	y.ticks = slices.DeleteFunc(y.ticks, func(v float64) bool { return v < 0 || v > 1+1e-9 })
	return &chart{
		title: "SLO attainment", about: "Share of attempts that were good against the load, with its 95 % interval.", x: x, y: y, limits: limits,
		bands: []band{{"95 % interval", orange, interval}}, lines: []line{{name: "attainment", style: orange, points: attainment}},
	}
}

// latencyChart is nil where no level has the figure.
func latencyChart(name, criterion string, levels []*load.Report, x axis, of func(load.Latencies) *load.Latency) *chart {
	c := &chart{
		title: name + " of successes", about: "Its p50, p95 and p99 in seconds against the load.", x: x,
		lines: []line{{name: "p50", style: green}, {name: "p95", style: blue}, {name: "p99", style: orange}},
	}
	var all []float64
	for _, r := range levels {
		d := successes(of(r.Latencies))
		if d == nil {
			continue
		}
		p := point{x: r.Load.Level().Value(), hollow: !r.Valid}
		for i, v := range []load.Value{d.P50, d.P95, d.P99} {
			if v > 0 {
				c.lines[i].points = append(c.lines[i].points, p.at(float64(v)))
				all = append(all, float64(v))
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	if l := limitOf(levels[0], criterion); l != nil {
		c.limits = []limit{{"limit " + seconds(*l), *l}}
		all = append(all, *l)
	}
	c.y = latencyAxis(name, all)
	return c
}

func (p point) at(y float64) point {
	p.y = y
	return p
}
