package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/guptarohit/asciigraph"
	"golang.org/x/term"

	"goodput_exporter/config"
	"goodput_exporter/probe/load"
)

// canvas is what plots are drawn on.
type canvas struct {
	width  int  // in columns
	utf8   bool // it can show box-drawing characters
	colour bool
}

// Sizes of plots, in characters.
const (
	plotRows    = 10
	widestPlot  = 100
	yAxisWidth  = 14 // labels and axis
	withoutSize = 80 // width where there is no terminal
)

// newCanvas finds out what w can show.
func newCanvas(w io.Writer) canvas {
	c := canvas{width: withoutSize, utf8: utf8Locale()}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return c
	}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		c.width = min(width, widestPlot)
	}
	c.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return c
}

// utf8Locale reports whether the locale, by the first of its variables that is set, is one of UTF-8.
func utf8Locale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return strings.HasSuffix(v, "utf-8") || strings.HasSuffix(v, "utf8")
		}
	}
	return false
}

// curve is one series of a plot. Where there is no colour it is drawn with its letter.
type curve struct {
	name   string
	letter string
	colour asciigraph.AnsiColor
	value  func(*load.Report) (float64, bool)
}

// plotSweep draws throughput and goodput, attainment, and the latencies against the load. It is "" with fewer than two
// levels.
func plotSweep(s *load.SweepReport, c canvas) string {
	levels := slices.DeleteFunc(slices.Clone(s.Levels), func(r *load.Report) bool { return r.Attainment == nil || r.Throughput == nil })
	if len(levels) < 2 {
		return ""
	}
	plots := []string{
		c.plot("requests a second", decimals, levels, []curve{
			{"throughput", "t", asciigraph.DodgerBlue, func(r *load.Report) (float64, bool) { return *r.Throughput, true }},
			{"goodput", "g", asciigraph.Orange, func(r *load.Report) (float64, bool) { return *r.Goodput, true }},
		}),
		c.plot("share of attempts", percent, levels, []curve{
			objectiveCurve(),
			{"attainment", "a", asciigraph.Orange, func(r *load.Report) (float64, bool) { return *r.Attainment, true }},
		}, asciigraph.UpperBound(1)),
		c.plot("TTFT of successes", inUnits, levels, latencyCurves(levels, config.CriterionTTFT, func(r *load.Report) *load.Latency { return r.Latencies.TTFT })),
		c.plot("E2E of successes", inUnits, levels, latencyCurves(levels, config.CriterionE2E, func(r *load.Report) *load.Latency { return r.Latencies.E2E })),
	}
	return strings.Join(slices.DeleteFunc(plots, func(p string) bool { return p == "" }), "\n")
}

func objectiveCurve() curve {
	return curve{"objective", "-", asciigraph.Red, func(r *load.Report) (float64, bool) {
		if r.SLO.Objective == nil {
			return 0, false
		}
		return *r.SLO.Objective, true
	}}
}

// latencyCurves are the quantiles of a figure, and its limit unless that is so far above them that it would press them
// flat.
func latencyCurves(levels []*load.Report, criterion string, of func(*load.Report) *load.Latency) []curve {
	quantile := func(name, letter string, colour asciigraph.AnsiColor, q func(*load.Distribution) load.Value) curve {
		return curve{name, letter, colour, func(r *load.Report) (float64, bool) {
			d := successesOf(of(r))
			if d == nil {
				return 0, false
			}
			return float64(q(d)), true
		}}
	}
	curves := []curve{
		quantile("p99", "#", asciigraph.Orange, func(d *load.Distribution) load.Value { return d.P99 }),
		quantile("p95", "9", asciigraph.DodgerBlue, func(d *load.Distribution) load.Value { return d.P95 }),
		quantile("p50", "5", asciigraph.MediumSeaGreen, func(d *load.Distribution) load.Value { return d.P50 }),
	}
	greatest := 0.0
	for _, r := range levels {
		p99, _ := curves[0].value(r)
		greatest = max(greatest, p99)
	}
	for _, c := range levels[0].SLO.Criteria {
		if c.Name == criterion && c.Limit != nil && *c.Limit < 2*greatest {
			limit := curve{"limit", "-", asciigraph.Red, func(*load.Report) (float64, bool) { return *c.Limit, true }}
			curves = slices.Insert(curves, 0, limit)
		}
	}
	return curves
}

// plot draws curves over the levels, with options beside its own. It is "" where none has a value.
func (c canvas) plot(title string, format func(float64) string, levels []*load.Report, curves []curve, more ...asciigraph.Option) string {
	x := xAxis(levels)
	columns := max(c.width-yAxisWidth, 10)
	var data [][]float64
	var names []string
	var colours []asciigraph.AnsiColor
	var letters []asciigraph.CharSet
	for _, curve := range curves {
		values := x.resample(levels, curve.value, columns)
		if values == nil {
			continue
		}
		data, colours, letters = append(data, values), append(colours, curve.colour), append(letters, asciigraph.CreateCharSet(curve.letter))
		names = append(names, curve.legend(c))
	}
	if data == nil {
		return ""
	}
	options := append([]asciigraph.Option{
		asciigraph.Height(plotRows), asciigraph.LowerBound(0), asciigraph.YAxisValueFormatter(format),
		asciigraph.XAxisRange(x.low, x.high), asciigraph.XAxisTickCount(x.ticks), asciigraph.XAxisValueFormatter(x.label),
	}, more...)
	if c.lines() {
		options = append(options, asciigraph.SeriesColors(colours...))
	} else {
		options = append(options, asciigraph.SeriesChars(letters...))
	}
	drawn := asciigraph.PlotMany(data, options...)
	if !c.utf8 {
		drawn = strings.NewReplacer("┤", "|", "┼", "+", "└", "+", "─", "-", "┬", "+").Replace(drawn)
	}
	return fmt.Sprintf("%s against %s: %s\n%s\n", title, x.name, strings.Join(names, ", "), drawn)
}

// lines reports whether curves can be told apart as lines of different colours.
func (c canvas) lines() bool { return c.colour && c.utf8 }

func (v curve) legend(c canvas) string {
	if c.lines() {
		return v.colour.String() + v.name + asciigraph.Default.String()
	}
	return fmt.Sprintf("%s (%s)", v.name, v.letter)
}

// loadAxis is the x axis: the load, or its binary logarithm where the levels span much.
type loadAxis struct {
	name      string
	log       bool
	low, high float64 // of the load or its logarithm
	ticks     int
}

func xAxis(levels []*load.Report) loadAxis {
	first, last := levels[0].Load.Level(), levels[len(levels)-1].Load.Level()
	a := loadAxis{name: "concurrency", log: last.Value()/first.Value() > 6, ticks: 5}
	if first.Open() {
		a.name = "rate in requests a second"
	}
	a.low, a.high = a.position(first.Value()), a.position(last.Value())
	if doublings := a.high - a.low; a.log && doublings == math.Trunc(doublings) && doublings <= 12 {
		a.ticks = int(doublings) + 1
	}
	return a
}

func (a loadAxis) position(value float64) float64 {
	if a.log {
		return math.Log2(value)
	}
	return value
}

func (a loadAxis) label(position float64) string {
	if a.log {
		position = math.Exp2(position)
	}
	return fmt.Sprintf("%.3g", position)
}

// resample returns a value for each column: those of the levels, and straight lines between them. It is nil where no
// level has a value; columns before the first and after the last level with one are NaN.
func (a loadAxis) resample(levels []*load.Report, value func(*load.Report) (float64, bool), columns int) []float64 {
	var at, values []float64
	for _, r := range levels {
		if v, ok := value(r); ok && !math.IsInf(v, 0) {
			at, values = append(at, a.position(r.Load.Level().Value())), append(values, v)
		}
	}
	if at == nil {
		return nil
	}
	resampled := make([]float64, columns)
	for i := range resampled {
		x := a.low + (a.high-a.low)*float64(i)/float64(columns-1)
		next, exact := slices.BinarySearch(at, x)
		switch {
		case exact:
			resampled[i] = values[next]
		case next == 0 || next == len(at):
			resampled[i] = math.NaN()
		default:
			part := (x - at[next-1]) / (at[next] - at[next-1])
			resampled[i] = values[next-1] + part*(values[next]-values[next-1])
		}
	}
	return resampled
}
