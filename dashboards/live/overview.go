package page

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/dashboards/chart"
	"goodput_exporter/probe"
)

const (
	pageRows   = 100 // series on one page
	stripMarks = 32
	maxKeys    = pageRows // of GET /rows
	maxFilter  = 200      // bytes
)

// overviewView is the page of all series.
type overviewView struct {
	layout
	Summary summaryView
	Columns []columnView
	Rows    []rowView
	Query   overviewQuery

	Matching, All int    // series
	First, Last   int    // of the matching ones, from 1
	Previous      string // URL; "" where there is none
	Next          string
}

// summaryView counts states, each with a link that filters by it.
type summaryView struct {
	Text   string
	States []stateCount
}

type stateCount struct {
	State live.State
	Name  string
	Count int
	URL   string
}

type columnView struct {
	Title, About string
	URL          string // that sorts by it; "" where nothing does
	Sorted       string // ascending, descending or ""
	Class        string
}

// rowView is one series in the table.
type rowView struct {
	*live.SeriesStatus
	Now     time.Time
	Windows []windowView
	Burn    *float64 // of the last hour
	Budget  *float64
	Figures []figureView // ttft, tpot and e2e; the Figure of one that the series has not is nil
	Labels  []string
	Strip   template.HTML
	Probe   bool // is offered
}

type windowView struct {
	live.Window
	Worry string // missed, failed or ""
}

// All is how many attempts there were.
func (w windowView) All() int { return w.Good + w.Bad }

// newWindowView says how a window stands to the objective: below it, or so far below that chance is no excuse.
func newWindowView(w live.Window, objective *float64) windowView {
	v := windowView{Window: w}
	switch {
	case w.Ratio == nil || objective == nil:
	case w.High < *objective:
		v.Worry = "failed"
	case w.Attainment < *objective:
		v.Worry = "missed"
	}
	return v
}

type figureView struct {
	*live.Figure
	Title string
	Over  bool // now is over the limit
}

func newRow(s *live.SeriesStatus, now time.Time, offersProbe bool) rowView {
	row := rowView{SeriesStatus: s, Now: now, Labels: labels(s.Labels), Probe: offersProbe}
	if g := sloOf(s, probe.SLOGoodput); g != nil {
		for _, w := range g.Windows {
			row.Windows = append(row.Windows, newWindowView(w, g.Objective))
		}
		row.Burn, row.Budget = burnOf(g, "1h"), g.BudgetUsed
	}
	for _, name := range []string{config.CriterionTTFT, config.CriterionTPOT, config.CriterionE2E} {
		row.Figures = append(row.Figures, newFigure(name, figureOf(s, name)))
	}
	row.Strip = newStrip(s.Probes, stripMarks, false).SVG()
	return row
}

func newFigure(name string, f *live.Figure) figureView {
	v := figureView{Figure: f, Title: criterionTitle(name)}
	v.Over = f != nil && f.Limit != nil && f.Now.P95 != nil && *f.Now.P95 > *f.Limit
	return v
}

func sloOf(s *live.SeriesStatus, name string) *live.SLOStatus {
	for i := range s.SLOs {
		if s.SLOs[i].Name == name {
			return &s.SLOs[i]
		}
	}
	return nil
}

func burnOf(o *live.SLOStatus, window string) *float64 {
	for _, w := range o.Windows {
		if w.Name == window {
			return w.BurnRate
		}
	}
	return nil
}

func figureOf(s *live.SeriesStatus, name string) *live.Figure {
	for i := range s.Figures {
		if s.Figures[i].Name == name {
			return &s.Figures[i]
		}
	}
	return nil
}

func labels(m map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+m[name])
	}
	return list
}

// newStrip draws the last probes. With links each leads to its story; without, only those that were not good say more.
func newStrip(probes []live.Probe, slots int, links bool) chart.Strip {
	probes = probes[max(0, len(probes)-slots):]
	s := chart.Strip{Slots: slots}
	counts := map[string]int{}
	for i := range probes {
		p := &probes[i]
		counts[ended(p)]++
		m := chart.Mark{Kind: kind(p.Outcome)}
		if links || m.Kind != chart.Good {
			m.Title = p.Time.Format("15:04:05") + " " + ended(p)
		}
		if links {
			m.Href = storyURL(p.ID)
		}
		s.Marks = append(s.Marks, m)
	}
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	s.Name = "no probes yet"
	if parts != nil {
		s.Name = fmt.Sprintf("last %d probes: %s", len(probes), strings.Join(parts, ", "))
	}
	return s
}

// overviewQuery is what the page of all series is asked for.
type overviewQuery struct {
	Filter  string
	Sort    string // "": the most pressing first
	Reverse bool
	Page    int // from 1
}

// url returns the page's URL for a query.
func (q overviewQuery) url() string {
	values := url.Values{}
	for name, value := range map[string]string{"q": q.Filter, "sort": q.Sort} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Reverse {
		values.Set("reverse", "1")
	}
	if q.Page > 1 {
		values.Set("page", strconv.Itoa(q.Page))
	}
	if len(values) == 0 {
		return "/"
	}
	return "/?" + values.Encode()
}

func readOverviewQuery(values url.Values) (overviewQuery, error) {
	q := overviewQuery{Filter: strings.TrimSpace(values.Get("q")), Sort: values.Get("sort"), Reverse: values.Get("reverse") == "1"}
	page, err := number(values, "page", 1, 1, math.MaxInt32)
	switch {
	case err != nil:
		return q, err
	case len(q.Filter) > maxFilter:
		return q, invalid("q: it must have at most %d bytes", maxFilter)
	case q.Sort != "" && !slices.ContainsFunc(columns, func(c column) bool { return c.sort == q.Sort }):
		return q, invalid("sort=%q: there is no such column", q.Sort)
	}
	q.Page = page
	return q, nil
}

// serveOverview is GET /?q=&sort=&reverse=&page=.
func (p *Page) serveOverview(w http.ResponseWriter, r *http.Request) {
	q, err := readOverviewQuery(r.URL.Query())
	if err != nil {
		p.serveError(w, err)
		return
	}
	st := p.all()
	text, err := p.rendered.get(strconv.FormatInt(st.Now.UnixNano(), 36)+q.url(), func() ([]byte, error) {
		return execute("overview", p.newOverview(st, q))
	})
	write(w, http.StatusOK, text, err)
}

func (p *Page) newOverview(st *live.Status, q overviewQuery) overviewView {
	matching := filterSeries(st.Series, q.Filter)
	sortSeries(matching, q)
	pages := max(1, (len(matching)+pageRows-1)/pageRows)
	q.Page = min(q.Page, pages)
	first := (q.Page - 1) * pageRows
	last := min(first+pageRows, len(matching))
	v := overviewView{
		layout:  p.layout(st.Now, summary(st.Summary)),
		Summary: newSummary(st.Summary), Columns: newColumns(q), Query: q,
		Matching: len(matching), All: len(st.Series), First: min(first+1, last), Last: last,
	}
	v.layout.Worst = worst(st.Summary)
	for _, s := range matching[first:last] {
		if now, ok := p.one(s.Key, stripMarks); ok {
			v.Rows = append(v.Rows, newRow(&now, st.Now, p.opts.Probe != nil))
		}
	}
	turned := q
	if q.Page > 1 {
		turned.Page = q.Page - 1
		v.Previous = turned.url()
	}
	if q.Page < pages {
		turned.Page = q.Page + 1
		v.Next = turned.url()
	}
	return v
}

// serveRows is GET /rows?key=&key=…: rows of the table, for live.js. Series that are gone have none.
func (p *Page) serveRows(w http.ResponseWriter, r *http.Request) {
	keys := r.URL.Query()["key"]
	if len(keys) > maxKeys {
		fail(w, invalid("%d keys: there can be %d", len(keys), maxKeys))
		return
	}
	var b bytes.Buffer
	b.WriteString("<table>")
	for _, key := range keys {
		if p.opts.Live.Series(key) == nil {
			continue
		}
		row, err := p.rendered.get("row "+key, func() ([]byte, error) {
			s, ok := p.one(key, stripMarks)
			if !ok {
				return nil, nil
			}
			return execute("row", newRow(&s, time.Now(), p.opts.Probe != nil))
		})
		if err != nil {
			write(w, 0, nil, err)
			return
		}
		b.Write(row)
	}
	b.WriteString("</table>")
	write(w, http.StatusOK, b.Bytes(), nil)
}

// newSummary has every state that there is, the most pressing first.
func newSummary(counts map[live.State]int) summaryView {
	v := summaryView{Text: summary(counts)}
	for _, state := range live.States {
		if n := counts[state]; n > 0 {
			link := overviewQuery{Filter: "state=" + string(state)}.url()
			v.States = append(v.States, stateCount{State: state, Name: strings.ToLower(word(state)), Count: n, URL: link})
		}
	}
	return v
}

func worst(counts map[live.State]int) live.State {
	for _, state := range live.States {
		if counts[state] > 0 {
			return state
		}
	}
	return live.NoData
}
