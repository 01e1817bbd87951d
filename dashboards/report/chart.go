package report

import (
	"encoding/xml"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// chart is a plot that is drawn as SVG. Its colours come from chart.css, so that they follow the reader's scheme.
type chart struct {
	title  string
	about  string // what it shows, for those who cannot see it
	x, y   axis
	bands  []band
	lines  []line
	clouds []cloud
	limits []limit
	marks  []mark
	shade  float64 // x below it is shaded, such as a warm-up; 0 is none
	wide   bool    // as wide as two others beside each other
}

// axis is one axis. Its range holds all values, or they are drawn at its end.
type axis struct {
	name     string
	min, max float64
	log      bool
	ticks    []float64
	format   func(float64) string
}

// point is one point of a plot. low and high are the ends of its interval, where it has one.
type point struct {
	x, y      float64
	low, high float64
	hollow    bool // it does not count
}

// line joins points. Its colour and marker come from its style.
type line struct {
	name   string
	style  style
	points []point
	steps  bool // a value holds until the next point, and points are not marked
}

// band fills what lies between low and high of its points.
type band struct {
	name   string
	style  style
	points []point
}

// cloud is points by themselves.
type cloud struct {
	name   string
	style  style
	points []point
}

// limit is a horizontal line with a label.
type limit struct {
	name string
	y    float64
}

// mark is a vertical line with a label above the plot.
type mark struct {
	name  string
	style style
	x     float64
}

// style is a colour and a marker that go together, so that either can be told apart alone.
type style string

const (
	blue   style = "blue"   // circle
	orange style = "orange" // square
	green  style = "green"  // triangle
	red    style = "red"    // cross
	grey   style = "grey"   // dot
)

// Sizes, in units of the drawing.
const (
	narrowWidth = 554
	gap         = 24 // between two charts
	wideWidth   = 2*narrowWidth + gap
	plotHeight  = 220
	plotLeft    = 76
	plotRight   = 16
	headHeight  = 44 // title and legend
	labelHeight = 16 // a row of labels of marks
	footHeight  = 46 // ticks and name of the x axis
	charWidth   = 6.6
)

// drawing is a chart while it is drawn.
type drawing struct {
	chart
	strings.Builder
	sx, sy      scale
	top, bottom float64
}

func (c *chart) width() float64 {
	if c.wide {
		return wideWidth
	}
	return narrowWidth
}

// right is the coordinate of the right end of the plot.
func (c *chart) right() float64 { return c.width() - plotRight }

// height is that of the whole chart.
func (c *chart) height() float64 {
	_, rows := c.labelRows()
	return headHeight + float64(labelHeight*rows) + plotHeight + footHeight
}

// svg draws the chart. attributes stand in its element, such as a position in another drawing.
func (c *chart) svg(attributes string) template.HTML {
	d := &drawing{chart: *c}
	d.bottom = c.height() - footHeight
	d.top = d.bottom - plotHeight
	d.sx = scale{c.x.min, c.x.max, c.x.log, plotLeft, c.right()}
	d.sy = scale{c.y.min, c.y.max, c.y.log, d.bottom, d.top}
	d.add(`<svg class="chart" xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %g %g"%s>`, c.width(), c.height(), attributes)
	d.add(`<title>%s</title><desc>%s</desc>`, escape(c.title), escape(c.about))
	d.drawText(plotLeft, 16, "start", "title", c.title)
	d.drawLegend()
	d.drawAxes()
	d.drawBands()
	d.drawMarks()
	for _, l := range c.lines {
		d.drawLine(l)
	}
	for _, cl := range c.clouds {
		for _, p := range cl.points {
			d.drawMarker(cl.style, d.sx.at(p.x), d.sy.at(p.y), 0.6, " cloud")
		}
	}
	d.drawLimits()
	d.add(`</svg>`)
	return template.HTML(d.String()) //nolint:gosec // every text in it went through escape
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *drawing) drawText(x, y float64, anchor, class, text string) {
	d.add(`<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`, x, y, anchor, class, escape(text))
}

func (d *drawing) drawLegend() {
	x, y := float64(plotLeft), 36.0
	for _, b := range d.bands {
		d.add(`<rect class="band %s" x="%.1f" y="%.1f" width="16" height="10"/>`, b.style, x, y-9)
		x = d.legendName(x, y, b.name)
	}
	for _, l := range d.lines {
		d.add(`<path class="line %s" d="M%.1f %.1fh16"/>`, l.style, x, y-4)
		if !l.steps {
			d.drawMarker(l.style, x+8, y-4, 1, "")
		}
		x = d.legendName(x, y, l.name)
	}
	for _, c := range d.clouds {
		d.drawMarker(c.style, x+8, y-4, 1, "")
		x = d.legendName(x, y, c.name)
	}
}

func (d *drawing) legendName(x, y float64, name string) float64 {
	d.drawText(x+22, y, "start", "legend", name)
	return x + 22 + charWidth*float64(len(name)) + 18
}

func (d *drawing) drawAxes() {
	if d.shade > d.x.min {
		d.add(`<rect class="shade" x="%d" y="%.1f" width="%.1f" height="%d"/>`, plotLeft, d.top, d.sx.at(d.shade)-plotLeft, plotHeight)
	}
	for _, v := range d.y.ticks {
		y := d.sy.at(v)
		d.add(`<path class="grid" d="M%d %.1fH%.1f"/>`, plotLeft, y, d.right())
		d.drawText(plotLeft-8, y+4, "end", "tick", d.y.format(v))
	}
	d.add(`<path class="axis" d="M%d %.1fH%.1f"/>`, plotLeft, d.bottom, d.right())
	free := math.Inf(-1)
	for _, v := range d.x.ticks {
		x, text := d.sx.at(v), d.x.format(v)
		half := charWidth * float64(len(text)) / 2
		d.add(`<path class="axis" d="M%.1f %.1fv5"/>`, x, d.bottom)
		if x-half > free {
			d.drawText(x, d.bottom+18, "middle", "tick", text)
			free = x + half + charWidth
		}
	}
	d.drawText((plotLeft+d.right())/2, d.bottom+38, "middle", "name", d.x.name)
	d.add(`<text transform="translate(14 %.1f) rotate(-90)" text-anchor="middle" class="name">%s</text>`, (d.top+d.bottom)/2, escape(d.y.name))
}

func (d *drawing) drawBands() {
	for _, b := range d.bands {
		var path strings.Builder
		for i, p := range b.points {
			fmt.Fprintf(&path, "%s%.1f %.1f", moveOrLine(i), d.sx.at(p.x), d.sy.at(p.high))
		}
		for _, p := range slices.Backward(b.points) {
			fmt.Fprintf(&path, "L%.1f %.1f", d.sx.at(p.x), d.sy.at(p.low))
		}
		if path.Len() > 0 {
			d.add(`<path class="band %s" d="%sZ"/>`, b.style, path.String())
		}
	}
}

func (d *drawing) drawLine(l line) {
	var path strings.Builder
	for i, p := range l.points {
		x, y := d.sx.at(p.x), d.sy.at(p.y)
		if l.steps && i > 0 {
			fmt.Fprintf(&path, "H%.1fV%.1f", x, y)
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", moveOrLine(i), x, y)
	}
	if path.Len() > 0 {
		d.add(`<path class="line %s" d="%s"/>`, l.style, path.String())
	}
	if l.steps {
		return
	}
	for _, p := range l.points {
		class := ""
		if p.hollow {
			class = " hollow"
		}
		d.drawMarker(l.style, d.sx.at(p.x), d.sy.at(p.y), 1, class)
	}
}

func moveOrLine(i int) string {
	if i == 0 {
		return "M"
	}
	return "L"
}

// shapes are the markers, around the origin.
var shapes = map[style]string{
	blue:   "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
	orange: "M-3.5-3.5h7v7h-7z",
	green:  "M0-4.5l4.5 8h-9z",
	red:    "M-3.5-3.5l7 7m0-7l-7 7",
	grey:   "M-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0z",
}

func (d *drawing) drawMarker(s style, x, y, size float64, class string) {
	d.add(`<path class="marker %s%s" transform="translate(%.1f %.1f) scale(%g)" d="%s"/>`, s, class, x, y, size, shapes[s])
}

func (d *drawing) drawLimits() {
	for _, l := range d.limits {
		if l.y < d.y.min || l.y > d.y.max {
			continue
		}
		y := d.sy.at(l.y)
		d.add(`<path class="limit" d="M%d %.1fH%.1f"/>`, plotLeft, y, d.right())
		below := 0.0
		if y < d.top+labelHeight {
			below = labelHeight + 3 // above is the legend
		}
		d.drawText(plotLeft+6, y-5+below, "start", "limit-name", l.name)
	}
}

// drawMarks draws the vertical lines. Their labels stand above the plot, in as many rows as they need.
func (d *drawing) drawMarks() {
	rows, _ := d.labelRows()
	height := func(i int) float64 { return d.top - 6 - float64(labelHeight*rows[i]) }
	for i, m := range d.marks {
		d.add(`<path class="mark %s" d="M%.1f %.1fV%.1f"/>`, m.style, d.sx.at(m.x), height(i)+3, d.bottom)
	}
	for i, m := range d.marks {
		left, right := d.labelSpan(d.sx.at(m.x), m.name)
		d.drawText((left+right)/2, height(i), "middle", "mark-name", m.name)
	}
}

// labelRows returns the row of each mark's label, counted from the plot upwards, and how many rows there are.
func (c *chart) labelRows() (rows []int, count int) {
	s := scale{c.x.min, c.x.max, c.x.log, plotLeft, c.right()}
	var taken []float64 // by row: up to where it is
	for _, m := range c.marks {
		left, right := c.labelSpan(s.at(m.x), m.name)
		row := slices.IndexFunc(taken, func(end float64) bool { return end < left })
		if row < 0 {
			row, taken = len(taken), append(taken, 0)
		}
		taken[row] = right + charWidth
		rows = append(rows, row)
	}
	return rows, len(taken)
}

// labelSpan returns where a label around x lies so that it stays inside the drawing.
func (c *chart) labelSpan(x float64, name string) (left, right float64) {
	width := charWidth * float64(len([]rune(name)))
	left = min(max(x-width/2, plotLeft), c.right()-width)
	return left, left + width
}

// escape makes text fit to stand in XML and in HTML alike.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // to a strings.Builder
	return b.String()
}
