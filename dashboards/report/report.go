// Package report renders what bench and sweep found as HTML: one file that needs no other, no script and no network, so
// that it can be mailed, attached to a build and opened from a disk. Plots are SVG and drawn here.
package report

import (
	"embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"goodput_exporter/probe"
	"goodput_exporter/probe/load"
)

//go:embed *.html.tmpl page.css
var files embed.FS

// chartCSS has the colours of the plots. It stands in pages and in SVG files alike.
//
//go:embed chart.css
var chartCSS string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"css":        css,
	"number":     numberOf,
	"rate":       rateOf,
	"percent":    percentOf,
	"seconds":    secondsOf,
	"value":      func(v load.Value) string { return seconds(float64(v)) },
	"count":      func(v load.Value) string { return number(float64(v)) },
	"percentage": percentage,
	"time":       func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"words":      words,
}).ParseFS(files, "*.html.tmpl"))

func css() (template.CSS, error) {
	page, err := files.ReadFile("page.css")
	return template.CSS(chartCSS + string(page)), err //nolint:gosec // our own files
}

// pageChart is a plot in a page.
type pageChart struct {
	Wide bool
	SVG  template.HTML
}

func pageCharts(charts []*chart) []pageChart {
	var all []pageChart
	for _, c := range charts {
		all = append(all, pageChart{c.wide, c.svg("")})
	}
	return all
}

const none = "–" // where a figure does not exist

func numberOf(v *float64) string {
	if v == nil {
		return none
	}
	return number(*v)
}

// rateOf prints a rate with as many decimals as its size asks for, so that those of a column can be compared.
func rateOf(v *float64) string {
	if v == nil {
		return none
	}
	decimals := 0
	for limit := 100.0; *v < limit && decimals < 3; limit /= 10 {
		decimals++
	}
	return strconv.FormatFloat(*v, 'f', decimals, 64)
}

func percentOf(v *float64) string {
	if v == nil {
		return none
	}
	return percent(*v)
}

func secondsOf(v *float64) string {
	if v == nil {
		return none
	}
	return seconds(*v)
}

// number prints three significant digits, and all digits of whole numbers.
func number(v float64) string {
	if v >= 100 || v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(rounded(v), 'f', -1, 64)
}

// percent prints a ratio. One just below 1 is not rounded up to 100 %.
func percent(ratio float64) string {
	p := math.Round(ratio*1e4) / 1e2
	if p == 100 && ratio < 1 {
		p = 99.99
	}
	return strconv.FormatFloat(p, 'f', -1, 64) + " %"
}

// percentage prints the ends of an interval, and shares.
func percentage(ratio any) (string, error) {
	switch r := ratio.(type) {
	case load.Value:
		return percent(float64(r)), nil
	case float64:
		return percent(r), nil
	}
	return "", fmt.Errorf("%v is no ratio", ratio)
}

// seconds prints a duration in ms below one second, in s above.
func seconds(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case v == 0:
		return "0"
	case rounded(v) < 1:
		return strconv.FormatFloat(rounded(v*1000), 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(rounded(v), 'f', -1, 64) + " s"
}

// rounded has three significant digits.
func rounded(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// toSeconds is nil where there is no duration.
func toSeconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}

// words writes an identifier such as slo_violation as words.
func words(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") }

func successes(l *load.Latency) *load.Distribution {
	if l == nil {
		return nil
	}
	return l.Successes
}

// limitOf returns the limit of a criterion of the SLO in seconds; nil: it has none.
func limitOf(r *load.Report, criterion string) *float64 {
	for _, c := range r.SLO.Criteria {
		if c.Name == criterion {
			return c.Limit
		}
	}
	return nil
}

// sloText tells the SLO of a report in a line.
func sloText(r *load.Report) string {
	var parts []string
	for _, c := range r.SLO.Criteria {
		part := words(c.Name)
		if c.Limit != nil {
			part += " ≤ " + seconds(*c.Limit)
		}
		if c.Objective != nil {
			part += " (" + percent(*c.Objective) + ")"
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, ", ")
	switch o := r.SLO.Objective; {
	case o == nil && text == "":
		return "none: a request that was answered in full is good"
	case o != nil && text == "":
		return percent(*o) + " answered in full"
	case o != nil:
		return percent(*o) + " of requests: " + text
	}
	return text
}

// notGood lists the outcomes of attempts that were not good, the most frequent first.
func notGood(r *load.Report) string {
	var outcomes []probe.Outcome
	for _, o := range probe.Outcomes {
		if o != probe.Good && r.Counts.Outcomes[o] > 0 {
			outcomes = append(outcomes, o)
		}
	}
	slices.SortStableFunc(outcomes, func(a, b probe.Outcome) int { return r.Counts.Outcomes[b] - r.Counts.Outcomes[a] })
	parts := make([]string, len(outcomes))
	for i, o := range outcomes {
		parts[i] = fmt.Sprintf("%d %s", r.Counts.Outcomes[o], words(o))
	}
	return strings.Join(parts, ", ")
}

// latencyAxis holds positive values in seconds. It is logarithmic where they span much.
func latencyAxis(name string, values []float64) axis {
	a := axis{name: name, format: seconds}
	low, high := slices.Min(values), slices.Max(values)
	a.log = high/low > 8
	if a.log {
		a.min, a.max, a.ticks = logarithmic(low, high, 10)
	} else {
		a.min, a.max, a.ticks = linear(0, high*1.02, 5)
	}
	return a
}
