package chart

import (
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"time"
)

// Plot shows a figure of probes over time. Probes without the figure are crosses on the axis.
type Plot struct {
	Name      string // "TTFT of the last 60 probes"
	Points    []Point
	Threshold *Threshold // nil: none
}

// Point is one probe.
type Point struct {
	Time  time.Time
	Value *float64 // seconds; nil where there is none
	Kind  Kind
	Title string // shown when it is pointed at
	Href  string // where it leads; "": nowhere
}

// SVG draws the plot.
func (p Plot) SVG() template.HTML {
	c := newCanvas(chartWidth, chartHeight, "plot", p.Name, slices.ContainsFunc(p.Points, func(p Point) bool { return p.Href != "" }))
	if len(p.Points) == 0 {
		c.text("empty", "middle", chartWidth/2, chartHeight/2, "no probes yet")
		return c.end()
	}
	most := 0.0
	for _, point := range p.Points {
		if point.Value != nil {
			most = max(most, *point.Value)
		}
	}
	if p.Threshold != nil {
		most = max(most, p.Threshold.Value*1.1)
	}
	y := newScale(most, chartHeight-marginBottom, marginTop, 4)
	for _, tick := range y.ticks {
		c.line("grid", marginLeft, y.at(tick), chartWidth-marginRight, y.at(tick))
		c.text("tick", "end", marginLeft-6, y.at(tick)+4, Seconds(tick))
	}
	x := newSpan(p.Points)
	for _, tick := range x.ticks() {
		c.text("tick", "middle", x.at(tick), chartHeight-6, tick.UTC().Format(x.layout))
	}
	if p.Threshold != nil {
		at := y.at(p.Threshold.Value)
		c.line("threshold", marginLeft, at, chartWidth-marginRight, at)
		c.text("limit", "end", chartWidth-marginRight, at-4, p.Threshold.Label)
	}
	p.drawLine(c, x, y)
	for _, point := range p.Points {
		point.draw(c, x, y)
	}
	return c.end()
}

// drawLine joins the probes that have the figure; where one has not, the line is broken.
func (p Plot) drawLine(c *canvas, x span, y scale) {
	var d strings.Builder
	command := "M"
	for _, point := range p.Points {
		if point.Value == nil {
			command = "M"
			continue
		}
		fmt.Fprintf(&d, "%s%s %s", command, num(x.at(point.Time)), num(y.at(*point.Value)))
		command = "L"
	}
	if d.Len() > 0 {
		fmt.Fprintf(&c.b, `<path class="line" d="%s"/>`, d.String())
	}
}

// draw draws a mark by kind: a dot is good, a square is late, a cross failed.
func (p Point) draw(c *canvas, x span, y scale) {
	px, py := x.at(p.Time), y.from
	if p.Value != nil {
		py = y.at(*p.Value)
	}
	if p.Href != "" {
		c.link(p.Href, p.Title)
		defer c.endLink()
	}
	title := html.EscapeString(p.Title)
	switch {
	case p.Value == nil || p.Kind == Failed || p.Kind == Aborted:
		fmt.Fprintf(&c.b, `<path class="cross %s" d="M%s %sl7 7m0 -7l-7 7"><title>%s</title></path>`, p.Kind, num(px-3.5), num(py-3.5), title)
	case p.Kind == Missed:
		c.rect("dot "+string(p.Kind), px-3, py-3, 6, 6, p.Title)
	default:
		fmt.Fprintf(&c.b, `<circle class="dot %s" cx="%s" cy="%s" r="2.5"><title>%s</title></circle>`, p.Kind, num(px), num(py), title)
	}
}

// span maps times to pixels.
type span struct {
	first, last time.Time
	layout      string
}

func newSpan(points []Point) span {
	byTime := func(a, b Point) int { return a.Time.Compare(b.Time) }
	s := span{first: slices.MinFunc(points, byTime).Time, last: slices.MaxFunc(points, byTime).Time}
	if !s.last.After(s.first) {
		s.first = s.last.Add(-time.Second)
	}
	switch d := s.last.Sub(s.first); {
	case d < 10*time.Minute:
		s.layout = "15:04:05"
	case d < 24*time.Hour:
		s.layout = "15:04"
	default:
		s.layout = "02 Jan 15:04"
	}
	return s
}

func (s span) at(t time.Time) float64 {
	const left, right = marginLeft + 8, chartWidth - marginRight - 8
	return left + (right-left)*float64(t.Sub(s.first))/float64(s.last.Sub(s.first))
}

// ticks returns full instants of a step that suits.
func (s span) ticks() []time.Time {
	const most = 5
	step := 24 * time.Hour
	for _, d := range []time.Duration{
		time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
		15 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	} {
		if s.last.Sub(s.first) <= most*d {
			step = d
			break
		}
	}
	step *= max(1, s.last.Sub(s.first)/(most*step))
	var ticks []time.Time
	for t := s.first.Truncate(step); !t.After(s.last); t = t.Add(step) {
		if !t.Before(s.first) {
			ticks = append(ticks, t)
		}
	}
	return ticks
}
