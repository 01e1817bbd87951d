package chart

import (
	"fmt"
	"html/template"
	"math"
)

// Histogram shows how values in seconds are distributed.
type Histogram struct {
	Name      string
	Values    []float64
	Threshold *Threshold // what lies above it is drawn as missed; nil: none
}

// SVG draws the histogram.
func (h Histogram) SVG() template.HTML {
	c := newCanvas(chartWidth, chartHeight, "histogram", h.Name, false)
	if len(h.Values) == 0 {
		c.text("empty", "middle", chartWidth/2, chartHeight/2, "no such figure yet")
		return c.end()
	}
	bins, width := h.bins()
	fullest := 0
	for _, n := range bins {
		fullest = max(fullest, n)
	}
	y := newScale(float64(fullest), chartHeight-marginBottom, marginTop, min(fullest, 4))
	for _, tick := range y.ticks {
		if tick == math.Trunc(tick) {
			c.line("grid", marginLeft, y.at(tick), chartWidth-marginRight, y.at(tick))
			c.text("tick", "end", marginLeft-6, y.at(tick)+4, digits(tick))
		}
	}
	x := scale{top: width * float64(len(bins)), from: marginLeft, to: chartWidth - marginRight}
	for i, n := range bins {
		from, to := float64(i)*width, float64(i+1)*width
		if i%max(1, len(bins)/5) == 0 {
			c.text("tick", "middle", x.at(from), chartHeight-6, Seconds(from))
		}
		if n == 0 {
			continue
		}
		kind := Good
		if h.Threshold != nil && from >= h.Threshold.Value*(1-1e-9) {
			kind = Missed
		}
		c.rect("bar "+string(kind), x.at(from)+1, y.at(float64(n)), x.at(to)-x.at(from)-2, y.from-y.at(float64(n)),
			fmt.Sprintf("%d from %s to %s", n, Seconds(from), Seconds(to)))
	}
	if h.Threshold != nil {
		at := x.at(h.Threshold.Value)
		anchor, gap := "end", -4.0
		if at < chartWidth/2 {
			anchor, gap = "start", 4
		}
		c.line("threshold", at, marginTop, at, y.from)
		c.text("limit", anchor, at+gap, marginTop+8, h.Threshold.Label)
	}
	return c.end()
}

// bins counts the values in bins of one width from 0 on, such that the threshold is an edge and holds what equals it
// below itself.
func (h Histogram) bins() (counts []int, width float64) {
	const wanted, most = 20, 60
	largest := 0.0
	for _, v := range h.Values {
		largest = max(largest, v)
	}
	width = roundUp(max(largest, 1e-6) / wanted)
	if h.Threshold != nil {
		largest = max(largest, h.Threshold.Value*1.05)
		width = h.Threshold.Value / math.Ceil(h.Threshold.Value/roundUp(largest/wanted))
	}
	n := min(int(math.Ceil(largest/width*(1-1e-9))), most)
	if n < most {
		counts = make([]int, max(n, 1))
	} else {
		counts, width = make([]int, most), largest/most
	}
	for _, v := range h.Values {
		counts[min(max(int(math.Ceil(v/width*(1-1e-9)))-1, 0), len(counts)-1)]++
	}
	return counts, width
}
