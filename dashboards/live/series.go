package page

import (
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"goodput_exporter/collector/live"
	"goodput_exporter/dashboards/chart"
	"goodput_exporter/probe"
)

// What the page of a series shows.
const (
	shownStories = 20 // of each kind
	shownProbes  = 240
)

// seriesView is the page of one series.
type seriesView struct {
	layout
	rowView
	SLOs     []sloView
	Charts   []chartView
	Skipped  []countView
	Failures []probeView // the last ones that were not good
	Others   []probeView // good ones, of which few are kept
	Demand   []probeView
	Silences []silenceView
	Pause    bool // is offered
	Lengths  []lengthView
}

type sloView struct {
	live.SLOStatus
	Windows []windowView
}

type chartView struct {
	Title string
	SVG   template.HTML
}

type countView struct {
	Name  string
	Count int
}

// probeView is one probe in a table.
type probeView struct {
	live.Story
	URL     string
	Kind    chart.Kind
	Outcome string
	TTFT    *float64
	E2E     *float64
}

// silenceView is a silence of the series.
type silenceView struct {
	Silence
	InForce   bool
	Deletable bool
}

// lengthView is a choice of how long to pause.
type lengthView struct{ Value, Name string }

var lengths = []lengthView{
	{"15m", "15 minutes"},
	{"1h", "1 hour"},
	{"4h", "4 hours"},
	{"24h", "1 day"},
	{"168h", "1 week"},
}

// serveSeries is GET /series?target=&scenario=.
func (p *Page) serveSeries(w http.ResponseWriter, r *http.Request) {
	target, scenario := r.URL.Query().Get("target"), r.URL.Query().Get("scenario")
	s, ok := p.one(target+"/"+scenario, shownProbes)
	if !ok {
		p.serveError(w, noSeries(target, scenario))
		return
	}
	render(w, http.StatusOK, "series", p.newSeriesView(&s, time.Now()))
}

func (p *Page) newSeriesView(s *live.SeriesStatus, now time.Time) seriesView {
	v := seriesView{
		layout:  p.layout(now, strings.ToLower(word(s.State))+": "+s.Key),
		rowView: newRow(s, now, p.opts.Probe != nil),
		Pause:   p.opts.Silences != nil, Lengths: lengths,
		Charts: charts(s),
	}
	v.layout.Worst = s.State
	v.Strip = newStrip(s.Probes, live.Strip, true).SVG()
	for _, o := range s.SLOs {
		view := sloView{SLOStatus: o}
		for _, w := range o.Windows {
			view.Windows = append(view.Windows, newWindowView(w, o.Objective))
		}
		v.SLOs = append(v.SLOs, view)
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Skipped)) {
		v.Skipped = append(v.Skipped, countView{spaced(reason), s.Skipped[reason]})
	}
	v.Failures, v.Others = p.kept(s, live.NotGood), p.kept(s, "good")
	for _, st := range p.demand.of(s.Key) {
		v.Demand = append(v.Demand, newProbeView(st))
	}
	if p.opts.Silences != nil {
		v.Silences = silencesOf(p.opts.Silences.List(), s, now)
	}
	return v
}

// kept lists the stories of a series that are kept, the newest first.
func (p *Page) kept(s *live.SeriesStatus, outcome string) []probeView {
	var list []probeView
	for _, st := range p.opts.Live.Results(live.Filter{Target: s.Target, Scenario: s.Scenario, Outcome: outcome, Limit: shownStories}) {
		list = append(list, newProbeView(st))
	}
	return list
}

func newProbeView(st live.Story) probeView {
	r := st.Result
	short := live.Probe{Outcome: string(r.Outcome), Reason: string(r.Reason), Missed: st.Missed}
	return probeView{
		Story: st, URL: storyURL(st.ID), Kind: kind(string(r.Outcome)), Outcome: ended(&short),
		TTFT: seconds(r.TTFT), E2E: seconds(r.E2E),
	}
}

func silencesOf(all []Silence, s *live.SeriesStatus, now time.Time) []silenceView {
	var list []silenceView
	for _, sil := range all {
		if sil.covers(s.Target, s.Scenario) && (sil.Until.IsZero() || sil.Until.After(now)) {
			list = append(list, silenceView{sil, !sil.Start.After(now), sil.Origin != OriginConfig})
		}
	}
	return list
}

// charts draws the figures of the last probes, over time and as distributions.
func charts(s *live.SeriesStatus) []chartView {
	var list []chartView
	for _, f := range s.Figures {
		if f.Name == "tpot" {
			continue // its table row says enough
		}
		title := criterionTitle(f.Name)
		threshold := thresholdOf(&f)
		plot := chart.Plot{Name: fmt.Sprintf("%s of the last %d probes", title, len(s.Probes)), Threshold: threshold}
		histogram := chart.Histogram{Name: "Distribution of " + title + " of those that were answered in full", Threshold: threshold}
		for i := range s.Probes {
			p := &s.Probes[i]
			value := p.E2E
			if f.Name == "ttft" {
				value = p.TTFT
			}
			mark := p.Time.Format("15:04:05 UTC") + " " + ended(p)
			if value != nil {
				mark += " " + chart.Seconds(*value)
			}
			if value != nil && probe.Outcome(p.Outcome).Success() {
				histogram.Values = append(histogram.Values, *value)
			}
			plot.Points = append(plot.Points, chart.Point{
				Time: p.Time, Value: value, Kind: kind(p.Outcome), Title: mark, Href: storyURL(p.ID),
			})
		}
		list = append(list,
			chartView{title + ", last probes", plot.SVG()},
			chartView{title + ", distribution", histogram.SVG()})
	}
	return list
}

func thresholdOf(f *live.Figure) *chart.Threshold {
	if f.Limit == nil {
		return nil
	}
	return &chart.Threshold{Value: *f.Limit, Label: "limit " + chart.Seconds(*f.Limit)}
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	v := d.Seconds()
	return &v
}
