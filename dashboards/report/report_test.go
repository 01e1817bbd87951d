package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/load"
)

// page is a parsed page: how often each element occurs, and its visible text.
type page struct {
	elements map[string]int
	text     string
}

// parse reads a page and checks what holds for every one: it loads nothing, runs nothing, and is closed properly.
func parse(t *testing.T, source []byte) page {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	p := page{elements: map[string]int{}}
	var text strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case html.TextNode:
			if n.Parent.Data != "style" {
				text.WriteString(n.Data + " ")
			} else if strings.Contains(n.Data, "url(") || strings.Contains(n.Data, "@import") {
				t.Errorf("the style loads something")
			}
		case html.ElementNode:
			p.elements[n.Data]++
			for _, a := range n.Attr {
				if slices.Contains([]string{"src", "href", "srcset", "action", "data", "xlink:href"}, a.Key) || strings.HasPrefix(a.Key, "on") {
					t.Errorf("<%s> has the attribute %s=%q", n.Data, a.Key, a.Val)
				}
			}
		default:
		}
	}
	for _, forbidden := range []string{"script", "link", "img", "iframe", "object", "form", "base"} {
		if n := p.elements[forbidden]; n > 0 {
			t.Errorf("%d elements <%s>", n, forbidden)
		}
	}
	p.text = strings.Join(strings.Fields(text.String()), " ")
	if bad := regexp.MustCompile(`NaN|Inf\b|%!|<nil>|ZgotmplZ`).FindString(strings.ReplaceAll(string(source), "+Inf", "")); bad != "" {
		t.Errorf("the page says %q", bad)
	}
	return p
}

func (p page) says(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(p.text, part) {
			t.Errorf("the page does not say %q:\n%s", part, p.text)
		}
	}
}

func TestSweepPage(t *testing.T) {
	var b bytes.Buffer
	s := swept(t, "llama-3.3-70b", 1, 2, 4, 8, 16, 32, 64)
	if err := Sweep(&b, s); err != nil {
		t.Fatal(err)
	}
	p := parse(t, b.Bytes())
	p.says(t, "Sweep of llama-3.3-70b", "95 % of requests: ttft ≤ 800 ms, e2e ≤ 8 s",
		"Throughput and goodput", "SLO attainment", "objective 95 %", "TTFT of successes", "limit 800 ms", "E2E of successes", "TPOT of successes",
		"Recommended 12", "SLO capacity 16 proven", "Goodput peak 32", "Saturation none in this range",
		s.Answers.Recommended.Reason, s.Answers.SLOCapacity.Reason, s.Answers.GoodputPeak.Reason, s.Answers.Saturation.Reason)
	if p.elements["svg"] != 5 {
		t.Errorf("%d plots, want 5", p.elements["svg"])
	}
	if rows := p.elements["tr"]; rows != 1+len(s.Levels) {
		t.Errorf("%d rows in the table, want a header and %d levels", rows, len(s.Levels))
	}
}

func TestSweepPageOfWhatThereIs(t *testing.T) {
	empty := &load.SweepReport{Stopped: "interrupted before concurrency 1"}
	hopeless := swept(t, "m", 4)
	for _, r := range hopeless.Levels {
		*r = load.Report{Load: r.Load, Valid: false, Invalid: []string{"the client was slow"}}
	}
	for name, s := range map[string]*load.SweepReport{"no level": empty, "one level": swept(t, "m", 4), "a level without figures": hopeless} {
		var b bytes.Buffer
		if err := Sweep(&b, s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		parse(t, b.Bytes()).says(t, s.Stopped)
		b.Reset()
		if err := SweepSVG(&b, s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wellFormed(t, b.Bytes())
	}
	var b bytes.Buffer
	if err := Sweep(&b, hopeless); err != nil {
		t.Fatal(err)
	}
	parse(t, b.Bytes()).says(t, "not valid, in no answer", "the client was slow")
}

func TestSweepSVGStandsAlone(t *testing.T) {
	var b bytes.Buffer
	if err := SweepSVG(&b, swept(t, markup, 1, 2, 4, 8, 16, 32, 64)); err != nil {
		t.Fatal(err)
	}
	elements := wellFormed(t, b.Bytes())
	if elements["svg"] != 6 || elements["style"] != 1 || elements["script"] != 0 {
		t.Errorf("elements: %v", elements)
	}
	if urls := regexp.MustCompile(`https?://[^"<]*`).FindAllString(b.String(), -1); len(slices.DeleteFunc(urls, isNamespace)) > 0 {
		t.Errorf("URLs: %v", urls)
	}
	if bad := regexp.MustCompile(`NaN|Inf`).FindString(b.String()); bad != "" {
		t.Errorf("it has %s", bad)
	}
}

func isNamespace(url string) bool { return url == "http://www.w3.org/2000/svg" }

// wellFormed checks that a text is XML, and counts its elements.
func wellFormed(t *testing.T, source []byte) map[string]int {
	t.Helper()
	elements := map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(source))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
}

func TestBenchPage(t *testing.T) {
	run := simulated(load.Level{Concurrency: 32}, 1000, "llama-3.3-70b")
	r := load.Summarize(run)
	var b bytes.Buffer
	if err := Bench(&b, r, run.Records); err != nil {
		t.Fatal(err)
	}
	p := parse(t, b.Bytes())
	p.says(t, "llama-3.3-70b at concurrency 32", "TTFT: share of attempts within", "E2E: share of attempts within", "Requests over time",
		"limit 800 ms:", "limit 8 s:", "server error", "overloaded", "with failures as +Inf", "1000 requests were measured")
	if plots := strings.Count(b.String(), `class="chart"`); plots != 3 {
		t.Errorf("%d plots, want 3", plots)
	}
	if got := strings.Count(b.String(), `class="marker red cloud"`); got != countFailed(run.Records) {
		t.Errorf("%d failures in the timeline, want %d", got, countFailed(run.Records))
	}
}

func countFailed(records []load.Record) (n int) {
	for i := range records {
		if !records[i].Outcome.Success() {
			n++
		}
	}
	return n
}

func TestBenchPageWithoutRecords(t *testing.T) {
	run := simulated(load.Level{Concurrency: 2}, 100, "m")
	r := load.Summarize(run)
	r.Valid, r.Invalid, r.Interrupted = false, []string{"the client used 99 % of its CPU"}, true
	var text bytes.Buffer
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	read, err := load.ReadReport(&text)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*load.Report{"read from its JSON": read, "empty": {Valid: false}} {
		var b bytes.Buffer
		if err := Bench(&b, r, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		parse(t, b.Bytes()).says(t, "the client was the bottleneck")
	}
}

func TestTextsOfServersAreNoMarkup(t *testing.T) {
	run := simulated(load.Level{Concurrency: 8}, 200, markup)
	r := load.Summarize(run)
	r.Notes, r.Valid, r.Invalid = append(r.Notes, markup), false, []string{markup}
	s := swept(t, markup, 1, 2, 4)
	s.Stopped, s.Answers.SLOCapacity.Reason, s.Levels[0].Notes = markup, markup, []string{markup}
	for name, write := range map[string]func(io.Writer) error{
		"bench": func(w io.Writer) error { return Bench(w, r, run.Records) },
		"sweep": func(w io.Writer) error { return Sweep(w, s) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		parse(t, b.Bytes()).says(t, `llama<script src="https://evil.example/x.js">alert(1)</script>&"'`)
	}
}

func TestChartTextsAreEscaped(t *testing.T) {
	a := axis{name: markup, max: 1, ticks: []float64{0, 1}, format: func(float64) string { return markup }}
	c := chart{
		title: markup, about: markup, x: a, y: a, limits: []limit{{markup, 0.5}}, marks: []mark{{markup, red, 0.5}},
		lines: []line{{name: markup, style: blue, points: []point{{x: 1, y: 1}}}},
	}
	if elements := wellFormed(t, []byte(c.svg(""))); elements["script"] > 0 {
		t.Errorf("elements: %v", elements)
	}
}

// The curve reads as an empirical distribution: it ends at the share of successes, and crosses the limit where
// the report's attainment of the criterion is.
func TestDistributionCountsFailuresAsNeverWithin(t *testing.T) {
	var records []load.Record
	for i := range 100 {
		r := load.Record{Outcome: probe.Good, E2E: new(time.Duration(i+1) * 10 * time.Millisecond)}
		if i >= 90 {
			r.Outcome = probe.Timeout
		}
		records = append(records, r)
	}
	records = append(records, load.Record{Warmup: true, Outcome: probe.Good, E2E: new(time.Hour)}, load.Record{Outcome: probe.Canceled, E2E: new(time.Hour)})
	c := distributionChart("E2E", new(0.5), records, func(r *load.Record) *float64 { return toSeconds(r.E2E) })
	curve := c.lines[0].points
	if last := curve[len(curve)-1]; last.x != 0.9 || last.y != 0.9 {
		t.Errorf("the curve ends at %+v, want 0.9 s and 90 %%", last)
	}
	if want := "limit 500 ms: 50 % within"; c.marks[0].name != want {
		t.Errorf("mark %q, want %q", c.marks[0].name, want)
	}
}

func TestPlotsOfLongRunsAreBounded(t *testing.T) {
	run := simulated(load.Level{Concurrency: 8}, 20_000, "m")
	var b bytes.Buffer
	if err := Bench(&b, load.Summarize(run), run.Records); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 1_500_000 {
		t.Errorf("20,000 requests make a page of %d bytes", b.Len())
	}
	parse(t, b.Bytes()).says(t, "good (1 in 8 drawn)")
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		name     string
		of       func(low, high float64, n int) (from, to float64, ticks []float64)
		low, top float64
		n        int
		want     []float64
	}{
		{"round steps", linear, 0, 47, 5, []float64{0, 10, 20, 30, 40, 50}},
		{"shares", linear, 0.93, 1, 5, []float64{0.92, 0.94, 0.96, 0.98, 1}},
		{"all the same", linear, 0, 0, 5, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{"decades in three", logarithmic, 0.03, 4, 10, []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5}},
		{"many decades", logarithmic, 0.001, 100, 6, []float64{0.001, 0.01, 0.1, 1, 10, 100}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from, to, ticks := tt.of(tt.low, tt.top, tt.n)
			for i := range ticks {
				ticks[i] = math.Round(ticks[i]*1e6) / 1e6
			}
			if diff := cmp.Diff(tt.want, ticks); diff != "" {
				t.Errorf("ticks (-want +got):\n%s", diff)
			}
			if from > tt.low || to < tt.top {
				t.Errorf("the axis from %v to %v does not hold %v to %v", from, to, tt.low, tt.top)
			}
		})
	}
}

func TestMarkLabelsDoNotOverlap(t *testing.T) {
	c := chart{x: axis{max: 100}, marks: []mark{{"recommended 12", green, 12}, {"SLO capacity 16", red, 16}, {"saturation 90", blue, 90}}}
	rows, count := c.labelRows()
	if diff := cmp.Diff([]int{0, 1, 0}, rows); diff != "" || count != 2 {
		t.Errorf("%d rows (-want +got):\n%s", count, diff)
	}
}

func TestFigures(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{seconds(0.8), "800 ms"},
		{seconds(0.0004567), "0.457 ms"},
		{seconds(0.99999), "1 s"},
		{seconds(12.34), "12.3 s"},
		{seconds(245), "245 s"},
		{seconds(math.Inf(1)), "+Inf"},
		{percent(0.99999), "99.99 %"},
		{percent(1), "100 %"},
		{number(0.12345), "0.123"},
		{number(1024), "1024"},
		{rateOf(new(1.6)), "1.60"},
		{rateOf(new(160.4)), "160"},
		{rateOf(nil), none},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestSLOInWords(t *testing.T) {
	for _, tt := range []struct {
		slo  load.SLOReport
		want string
	}{
		{load.SLOReport{}, "none: a request that was answered in full is good"},
		{load.SLOReport{Objective: new(0.99)}, "99 % answered in full"},
		{load.SLOReport{Criteria: []load.CriterionReport{{Name: config.CriterionTTFT, Limit: new(0.8), Objective: new(0.95)}, {Name: config.CriterionComplete}}}, "ttft ≤ 800 ms (95 %), complete"},
	} {
		if got := sloText(&load.Report{SLO: tt.slo}); got != tt.want {
			text, _ := json.Marshal(tt.slo)
			t.Errorf("%s: %q, want %q", text, got, tt.want)
		}
	}
}
