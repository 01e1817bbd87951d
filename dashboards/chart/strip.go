package chart

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// Strip shows how the last probes ended, the oldest at the left. The worse, the higher the bar.
type Strip struct {
	Name  string // what it says, in words: "12 probes: 10 good, 2 timeout"
	Marks []Mark
	Slots int // how many marks there is room for; marks stand at the right
}

// Mark is one probe in a Strip.
type Mark struct {
	Kind  Kind
	Title string // "": it is one of many good ones
	Href  string // where it leads; "": nowhere
}

const (
	markWidth   = 4 // with the gap to the next
	stripHeight = 20
)

// heights of the kinds, in pixels.
var heights = map[Kind]float64{Good: 8, Missed: 14, Failed: 20, Aborted: 3}

// SVG draws the strip. Marks of one kind that say nothing of their own are one path, since pages hold many strips.
func (s Strip) SVG() template.HTML {
	slots := max(s.Slots, len(s.Marks))
	c := newCanvas(float64(slots*markWidth), stripHeight, "strip", s.Name, slices.ContainsFunc(s.Marks, func(m Mark) bool { return m.Href != "" }))
	paths := map[Kind]*strings.Builder{}
	for i, m := range s.Marks {
		x := float64((slots - len(s.Marks) + i) * markWidth)
		height := heights[m.Kind]
		switch {
		case m.Href != "":
			c.link(m.Href, m.Title)
			c.rect(string(m.Kind), x, stripHeight-height, markWidth-1, height, m.Title)
			c.endLink()
		case m.Title != "":
			c.rect(string(m.Kind), x, stripHeight-height, markWidth-1, height, m.Title)
		default:
			if paths[m.Kind] == nil {
				paths[m.Kind] = &strings.Builder{}
			}
			fmt.Fprintf(paths[m.Kind], "M%s %dv-%sh3v%sz", num(x), stripHeight, num(height), num(height))
		}
	}
	for _, kind := range []Kind{Good, Missed, Failed, Aborted} {
		if path := paths[kind]; path != nil {
			fmt.Fprintf(&c.b, `<path class="%s" d="%s"/>`, kind, path)
		}
	}
	return c.end()
}
