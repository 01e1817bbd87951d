package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// elements counts a chart's elements by name and class, and checks that it is well-formed and has a name.
func elements(t *testing.T, svg template.HTML) map[string]int {
	t.Helper()
	counts := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counts
		}
		if err != nil {
			t.Fatalf("%v: %s", err, svg)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		name := start.Name.Local
		for _, a := range start.Attr {
			switch {
			case a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on"):
				t.Errorf("<%s %s> is inline", name, a.Name.Local)
			case a.Name.Local == "class":
				counts[name+"."+a.Value]++
			case strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf"):
				t.Errorf("<%s %s=%q>", name, a.Name.Local, a.Value)
			}
		}
		counts[name]++
	}
}

func TestStripGivesEachKindAShape(t *testing.T) {
	marks := []Mark{{Kind: Good}, {Kind: Good}, {Kind: Missed, Title: "12:00:00 slo violation"}, {Kind: Failed, Href: "/probes/1", Title: "timeout"}, {Kind: Aborted}}
	svg := Strip{Name: "five", Marks: marks, Slots: 60}.SVG()
	got := elements(t, svg)
	for name, want := range map[string]int{"path.good": 1, "rect.missed": 1, "rect.failed": 1, "path.aborted": 1, "a": 1, "title": 2} {
		if got[name] != want {
			t.Errorf("%s: %d, want %d", name, got[name], want)
		}
	}
	if !strings.Contains(string(svg), `d="M220 20v-8h3v8zM224 20v-8h3v8z"`) { // at the right, low
		t.Errorf("the good ones: %s", svg)
	}
	// A picture that holds links is none for assistive technology.
	if !strings.Contains(string(svg), `role="group"`) {
		t.Errorf("role: %s", svg)
	}
}

func TestPlotShowsWhatHasNoFigure(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	p := Plot{Name: "TTFT", Threshold: &Threshold{Value: 0.8, Label: "limit 800 ms"}, Points: []Point{
		{Time: at, Value: new(0.2), Kind: Good},
		{Time: at.Add(15 * time.Second), Kind: Failed, Title: "timeout"},
		{Time: at.Add(30 * time.Second), Value: new(1.8), Kind: Missed},
		{Time: at.Add(45 * time.Second), Value: new(0.3), Kind: Good},
	}}
	svg := p.SVG()
	got := elements(t, svg)
	for name, want := range map[string]int{"circle.dot good": 2, "rect.dot missed": 1, "path.cross failed": 1, "line.threshold": 1, "path.line": 1} {
		if got[name] != want {
			t.Errorf("%s: %d, want %d", name, got[name], want)
		}
	}
	if n := strings.Count(string(svg), "M") - 1; n < 2 { // the line is broken where a figure is missing
		t.Errorf("the line has %d parts", n)
	}
	for _, part := range []string{"limit 800 ms", "12:00:15", "2 s"} {
		if !strings.Contains(string(svg), ">"+part+"<") {
			t.Errorf("there is no %q", part)
		}
	}
}

func TestChartsOfFewValues(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for name, svg := range map[string]template.HTML{
		"no points":      Plot{Name: "x"}.SVG(),
		"one point":      Plot{Name: "x", Points: []Point{{Time: at, Value: new(0.0)}}}.SVG(),
		"no figure":      Plot{Name: "x", Points: []Point{{Time: at}, {Time: at}}}.SVG(),
		"a year":         Plot{Name: "x", Points: []Point{{Time: at}, {Time: at.AddDate(1, 0, 0)}}}.SVG(),
		"no values":      Histogram{Name: "x"}.SVG(),
		"one value":      Histogram{Name: "x", Values: []float64{0}}.SVG(),
		"far below":      Histogram{Name: "x", Values: []float64{1e-6}, Threshold: &Threshold{Value: 60}}.SVG(),
		"far above":      Histogram{Name: "x", Values: []float64{600}, Threshold: &Threshold{Value: 0.1}}.SVG(),
		"no marks":       Strip{Name: "x"}.SVG(),
		"no spans":       Waterfall{Name: "x"}.SVG(),
		"a span of none": Waterfall{Name: "x", Spans: []Span{{Name: "dns"}}}.SVG(),
	} {
		t.Run(name, func(t *testing.T) { elements(t, svg) })
	}
}

// Every value is in one bar, and no bar lies on both sides of the limit.
func TestHistogramBins(t *testing.T) {
	for _, tc := range []struct {
		values []float64
		limit  float64
		over   int
	}{
		{[]float64{0.1, 0.2, 0.799, 0.8, 0.801, 2.5}, 0.8, 2},
		{[]float64{8, 8, 8}, 8, 0},
		{[]float64{600, 0.05}, 0.1, 1},
		{[]float64{0.3, 0.4}, 0, 0},
	} {
		t.Run(fmt.Sprint(tc.values, tc.limit), func(t *testing.T) {
			h := Histogram{Values: tc.values}
			if tc.limit > 0 {
				h.Threshold = &Threshold{Value: tc.limit}
			}
			bins, width := h.bins()
			all, over := 0, 0
			for i, n := range bins {
				all += n
				if tc.limit > 0 && float64(i)*width >= tc.limit*(1-1e-9) {
					over += n
				}
			}
			if all != len(tc.values) || over != tc.over {
				t.Errorf("%d values, %d over the limit; want %d and %d", all, over, len(tc.values), tc.over)
			}
		})
	}
}

func TestWaterfall(t *testing.T) {
	svg := Waterfall{Name: "phases", Threshold: &Threshold{Value: 3}, Spans: []Span{{"dns", 0, 0.002, false}, {"headers", 0.002, 2, true}}}.SVG()
	got := elements(t, svg)
	if got["rect.busy"] != 1 || got["rect.waiting"] != 1 || got["line.threshold"] != 1 || !strings.Contains(string(svg), ">2 ms<") {
		t.Errorf("%v: %s", got, svg)
	}
}

func TestTextIsEscaped(t *testing.T) {
	const evil = `"><script>alert(1)</script>`
	for _, svg := range []template.HTML{
		Strip{Name: evil, Marks: []Mark{{Kind: Good, Title: evil, Href: evil}, {Kind: Good, Title: evil}}}.SVG(),
		Plot{Name: evil, Threshold: &Threshold{1, evil}, Points: []Point{{Kind: Failed, Title: evil, Href: evil}, {Kind: Good, Value: new(1.0), Title: evil}}}.SVG(),
		Histogram{Name: evil, Values: []float64{1}, Threshold: &Threshold{1, evil}}.SVG(),
		Waterfall{Name: evil, Spans: []Span{{evil, 0, 1, false}}}.SVG(),
	} {
		if got := elements(t, svg); got["script"] != 0 {
			t.Errorf("markup became an element: %s", svg)
		}
	}
}

func TestSeconds(t *testing.T) {
	var got []string
	for _, v := range []float64{0, 20e-6, 0.0009996, 0.0123, 0.2, 0.8123, 0.99951, 1.8449, 12.34, 100.4, 600} {
		got = append(got, Seconds(v))
	}
	want := []string{"0", "20 µs", "1 ms", "12.3 ms", "200 ms", "812 ms", "1 s", "1.84 s", "12.3 s", "100 s", "10m0s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScaleHoldsEverything(t *testing.T) {
	for _, most := range []float64{0, 1e-6, 0.8, 1, 3, 7.99, 1e6, math.Inf(1)} {
		s := newScale(most, 100, 0, 4)
		if n := len(s.ticks); n < 2 || n > 7 || (most < 1e9 && s.top < most) {
			t.Errorf("up to %g: %v", most, s.ticks)
		}
	}
}
