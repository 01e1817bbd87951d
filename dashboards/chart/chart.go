// Package chart draws small charts as SVG: figures over time, distributions, strips of outcomes, waterfalls.
//
// The SVG is to stand within an HTML page. It holds no style of its own, so that it obeys a strict Content-Security-Policy:
// its colours are in CSS, which is to be on the page, be it as a file or in a style element. What colour says is said by
// shape and in words too. Text is escaped.
package chart

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
)

// CSS is the style of all charts, for light and dark pages.
//
//go:embed chart.css
var CSS string

// Kind says how a probe ended. Each has a colour and a shape.
type Kind string

// The kinds.
const (
	Good    Kind = "good"    // answered, within every limit
	Missed  Kind = "missed"  // answered, but missed a limit
	Failed  Kind = "failed"  // not answered
	Aborted Kind = "aborted" // the prober's own: not an attempt
)

// Threshold is a line at a value.
type Threshold struct {
	Value float64
	Label string
}

// The size of a chart in CSS pixels, unless it is said otherwise; charts scale with the page.
const (
	chartWidth  = 480
	chartHeight = 180

	marginLeft, marginRight = 56, 12
	marginTop, marginBottom = 14, 24
)

// canvas is SVG being written.
type canvas struct{ b strings.Builder }

// newCanvas begins an SVG with a name. It reads as one picture, unless there are links in it.
func newCanvas(width, height float64, class, name string, links bool) *canvas {
	c := &canvas{}
	role := "img"
	if links {
		role = "group"
	}
	fmt.Fprintf(&c.b, `<svg class="chart %s" viewBox="0 0 %s %s" role="%s" aria-label="%s">`,
		class, num(width), num(height), role, html.EscapeString(name))
	return c
}

// link begins a link that the pointer reaches. The keyboard passes it by: a chart can hold hundreds.
func (c *canvas) link(href, title string) {
	fmt.Fprintf(&c.b, `<a href="%s" tabindex="-1" aria-label="%s">`, html.EscapeString(href), html.EscapeString(title))
}

func (c *canvas) endLink() { c.b.WriteString("</a>") }

func (c *canvas) end() template.HTML {
	c.b.WriteString("</svg>")
	return template.HTML(c.b.String()) //nolint:gosec // every text in it was escaped
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

// rect draws a rectangle; a title is shown when it is pointed at.
func (c *canvas) rect(class string, x, y, w, h float64, title string) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, num(x), num(y), num(w), num(h))
	if title == "" {
		c.b.WriteString("/>")
		return
	}
	fmt.Fprintf(&c.b, `><title>%s</title></rect>`, html.EscapeString(title))
}

// text writes a text; anchor is start, middle or end.
func (c *canvas) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, num(x), num(y), html.EscapeString(s))
}

// num writes a coordinate to within a tenth of a pixel.
func num(v float64) string { return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") }
