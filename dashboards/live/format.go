package page

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/dashboards/chart"
	"goodput_exporter/probe"
)

// none stands where a figure does not exist.
const none = "–"

// functions are those of the templates.
var functions = template.FuncMap{
	"asset": assetURL, "seriesURL": seriesURL,
	"share": share, "between": between, "used": used, "gauge": gauge, "gaugeClass": gaugeClass, "times": times,
	"burn":    func(o live.SLOStatus) *float64 { return burnOf(&o, "1h") },
	"seconds": secondsOf, "pointer": func(v float64) *float64 { return &v },
	"clock": clock, "iso": iso, "ago": ago, "ahead": ahead,
	"word": word, "glyph": glyph, "kind": kind, "title": criterionTitle, "spaced": spaced,
}

// share writes a ratio as per cent. It rounds down, so that 100 % is only what is whole.
func share(v float64) string {
	digits := 1
	if v >= 0.99 && v < 1 {
		digits = 2
	}
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Floor(v*100*scale+1e-7)/scale, 'f', -1, 64) + " %"
}

// between writes an interval of ratios, in per cent like the ratio that it stands by.
func between(low, high float64) string {
	return strings.TrimSuffix(share(low), " %") + "–" + strings.TrimSuffix(share(high), " %")
}

// used writes how much of the budget is used, of which there may be many times all.
func used(v float64) string {
	if v < 0.1 {
		return share(v)
	}
	return fmt.Sprintf("%.0f %%", v*100)
}

// secondsOf writes a figure.
func secondsOf(v *float64) string {
	if v == nil {
		return none
	}
	return chart.Seconds(*v)
}

// times writes a burn rate.
func times(v *float64) string {
	switch {
	case v == nil:
		return none
	case *v == 0:
		return "0×"
	case *v < 9.95:
		return fmt.Sprintf("%.1f×", *v)
	}
	return fmt.Sprintf("%.0f×", *v)
}

// gauge is how much of a width a ratio fills.
func gauge(v, width float64) string { return fmt.Sprintf("%.0f", width*min(max(v, 0), 1)) }

func gaugeClass(v float64) string {
	if v >= 1 {
		return "full"
	}
	return "filled"
}

// clock writes a time in UTC. The page adds the reader's own.
func clock(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// ago writes how long ago a time was, in its two largest units.
func ago(now, t time.Time) string { return span(now.Sub(t)) }

// ahead writes how far ahead a time is.
func ahead(now, t time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return "in " + span(t.Sub(now))
}

func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// word and glyph say a state; both do, since colour and shape are not for everybody.
func word(s live.State) string { return states[s].word }

func glyph(s live.State) string { return states[s].glyph }

var states = map[live.State]struct{ word, glyph string }{
	live.Down:    {"Down", "✕"},
	live.Burning: {"Burning", "▲"},
	live.NoData:  {"No data", "?"},
	live.Paused:  {"Paused", "‖"},
	live.OK:      {"OK", "✓"},
}

// summary says how many series are in each state, the most pressing first.
func summary(counts map[live.State]int) string {
	var parts []string
	for _, s := range live.States {
		if n := counts[s]; n > 0 {
			name := strings.ToLower(word(s))
			if s == live.OK {
				name = "ok"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	if parts == nil {
		return "no series"
	}
	return strings.Join(parts, ", ")
}

// kind is how an outcome is drawn.
func kind(outcome string) chart.Kind {
	switch o := probe.Outcome(outcome); {
	case o == probe.Good:
		return chart.Good
	case o.Success():
		return chart.Missed
	case o.Attempt():
		return chart.Failed
	}
	return chart.Aborted
}

// criterionTitle writes the name of an SLO, a criterion or a figure for people.
func criterionTitle(name string) string {
	switch name {
	case config.CriterionTTFT, config.CriterionTPOT, config.CriterionE2E, "ttfb":
		return strings.ToUpper(name)
	}
	text := spaced(name)
	return strings.ToUpper(text[:1]) + text[1:]
}

func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// ended says in short how a probe ended.
func ended(p *live.Probe) string {
	text := spaced(p.Outcome)
	switch {
	case p.Reason != "":
		text += " (" + spaced(p.Reason) + ")"
	case len(p.Missed) > 0:
		text += " (" + spaced(strings.Join(p.Missed, ", ")) + ")"
	}
	return text
}
