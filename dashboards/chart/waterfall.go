package chart

import "html/template"

// Waterfall shows what followed what.
type Waterfall struct {
	Name      string
	Spans     []Span
	Threshold *Threshold // nil: none
}

// Span is one part of a Waterfall, in seconds from its begin.
type Span struct {
	Name     string
	From, To float64
	Waiting  bool // for the other side
}

const (
	rowHeight  = 22
	nameWidth  = 110
	valueWidth = 70
)

// SVG draws the waterfall.
func (w Waterfall) SVG() template.HTML {
	height := float64(len(w.Spans)*rowHeight + marginBottom)
	c := newCanvas(chartWidth, height, "waterfall", w.Name, false)
	most := 0.0
	for _, s := range w.Spans {
		most = max(most, s.To)
	}
	if w.Threshold != nil {
		most = max(most, w.Threshold.Value)
	}
	x := newScale(most, nameWidth, chartWidth-valueWidth, 5)
	for _, tick := range x.ticks {
		c.line("grid", x.at(tick), 0, x.at(tick), height-marginBottom+4)
		c.text("tick", "middle", x.at(tick), height-6, Seconds(tick))
	}
	for i, s := range w.Spans {
		top := float64(i * rowHeight)
		class := "busy"
		if s.Waiting {
			class = "waiting"
		}
		c.text("name", "end", nameWidth-8, top+rowHeight/2+4, s.Name)
		c.rect(class, x.at(s.From), top+4, max(x.at(s.To)-x.at(s.From), 1.5), rowHeight-8, s.Name+" "+Seconds(s.To-s.From))
		c.text("value", "start", x.at(s.To)+6, top+rowHeight/2+4, Seconds(s.To-s.From))
	}
	if w.Threshold != nil {
		at := x.at(w.Threshold.Value)
		c.line("threshold", at, 0, at, height-marginBottom)
	}
	return c.end()
}
