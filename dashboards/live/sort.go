package page

import (
	"cmp"
	"slices"
	"strings"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// column is one of the table.
type column struct {
	title, about, class string
	sort                string // its name in the query; "": nothing sorts by it

	// value is what to sort by, and false where the series has none. What worries most comes first: the highest value,
	// or the lowest where ascending says so.
	value     func(*live.SeriesStatus) (float64, bool)
	ascending bool
}

var columns = []column{
	{title: "State", about: "of the series, and since when", sort: "state"},
	{title: "Series", about: "target, scenario, model, labels", sort: "series", ascending: true},
	attainment("5m"), attainment("1h"), attainment("6h"), attainment("1d"),
	{title: "Burn", about: "burn rate of the error budget over the last hour", sort: "burn", class: "number", value: burn},
	{title: "Budget", about: "error budget of the last day that is used", sort: "budget", class: "number", value: budget},
	latency(config.CriterionTTFT), latency(config.CriterionTPOT), latency(config.CriterionE2E),
	{title: "Last probes", about: "the higher a bar, the worse: good, limit missed, failed"},
	{title: "Next", about: "when the next slot is", sort: "next", ascending: true, class: "number", value: next},
}

func attainment(window string) column {
	return column{
		title: window, about: "attainment over " + window + ": good of all attempts, with the 95 % interval",
		sort: window, class: "number", ascending: true,
		value: func(s *live.SeriesStatus) (float64, bool) {
			if o := sloOf(s, probe.SLOGoodput); o != nil {
				for _, w := range o.Windows {
					if w.Name == window && w.Ratio != nil {
						return w.Attainment, true
					}
				}
			}
			return 0, false
		},
	}
}

func latency(figure string) column {
	return column{
		title: criterionTitle(figure), about: "95th percentile now, that of the last day, and the limit", sort: figure, class: "number",
		value: func(s *live.SeriesStatus) (float64, bool) {
			if f := figureOf(s, figure); f != nil && f.Now.P95 != nil {
				return *f.Now.P95, true
			}
			return 0, false
		},
	}
}

func burn(s *live.SeriesStatus) (float64, bool) {
	if o := sloOf(s, probe.SLOGoodput); o != nil {
		if b := burnOf(o, "1h"); b != nil {
			return *b, true
		}
	}
	return 0, false
}

func budget(s *live.SeriesStatus) (float64, bool) {
	if o := sloOf(s, probe.SLOGoodput); o != nil && o.BudgetUsed != nil {
		return *o.BudgetUsed, true
	}
	return 0, false
}

func next(s *live.SeriesStatus) (float64, bool) {
	if s.NextSlot == nil {
		return 0, false
	}
	return float64(s.NextSlot.UnixNano()), true
}

// newColumns returns the columns with the links that sort by them.
func newColumns(q overviewQuery) []columnView {
	views := make([]columnView, 0, len(columns))
	for _, c := range columns {
		v := columnView{Title: c.title, About: c.about, Class: c.class}
		if c.sort != "" {
			sorted := cmp.Or(q.Sort, "state") == c.sort
			if sorted {
				v.Sorted = "descending"
				if c.ascending != q.Reverse {
					v.Sorted = "ascending"
				}
			}
			to := overviewQuery{Filter: q.Filter, Sort: c.sort, Reverse: sorted && !q.Reverse}
			if c.sort == "state" {
				to.Sort = ""
			}
			v.URL = to.url()
		}
		views = append(views, v)
	}
	return views
}

// sortSeries sorts by a column, and what is equal by how pressing it is.
func sortSeries(list []*live.SeriesStatus, q overviewQuery) {
	compare := live.Pressing
	if i := slices.IndexFunc(columns, func(c column) bool { return c.sort == q.Sort && q.Sort != "" }); i >= 0 {
		compare = columns[i].compare
	}
	slices.SortStableFunc(list, func(a, b *live.SeriesStatus) int {
		n := compare(a, b)
		if q.Reverse {
			n = -n
		}
		return cmp.Or(n, live.Pressing(a, b))
	})
}

func (c *column) compare(a, b *live.SeriesStatus) int {
	switch {
	case c.sort == "series":
		return strings.Compare(a.Key, b.Key)
	case c.value == nil:
		return live.Pressing(a, b)
	}
	x, hasX := c.value(a)
	y, hasY := c.value(b)
	switch {
	case hasX != hasY && hasX:
		return -1
	case hasX != hasY:
		return 1
	case c.ascending:
		return cmp.Compare(x, y)
	}
	return cmp.Compare(y, x)
}

// filterSeries returns the series that fit every word of a filter. A word name=value fits a label, or one of target,
// scenario, model, protocol, host and state; another one fits where it is a part of any of these.
func filterSeries(all []live.SeriesStatus, filter string) []*live.SeriesStatus {
	words := strings.Fields(strings.ToLower(filter))
	matching := make([]*live.SeriesStatus, 0, len(all))
	for i := range all {
		if fits(&all[i], words) {
			matching = append(matching, &all[i])
		}
	}
	return matching
}

func fits(s *live.SeriesStatus, words []string) bool {
	for _, word := range words {
		if !fitsWord(s, word) {
			return false
		}
	}
	return true
}

func fitsWord(s *live.SeriesStatus, word string) bool {
	own := []struct{ name, value string }{
		{"target", s.Target},
		{"scenario", s.Scenario},
		{"model", s.Model},
		{"protocol", s.Protocol},
		{"host", s.URLHost},
		{"state", string(s.State)},
	}
	if name, value, ok := strings.Cut(word, "="); ok {
		for _, o := range own {
			if o.name == name {
				return strings.EqualFold(o.value, value)
			}
		}
		for label, v := range s.Labels {
			if strings.EqualFold(label, name) {
				return strings.EqualFold(v, value)
			}
		}
		return false
	}
	for _, o := range own {
		if strings.Contains(strings.ToLower(o.value), word) {
			return true
		}
	}
	for _, v := range s.Labels {
		if strings.Contains(strings.ToLower(v), word) {
			return true
		}
	}
	return strings.Contains(strings.ToLower(s.Key), word)
}
