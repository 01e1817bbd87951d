package load

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

const (
	// significance is the chance of calling any figure of two equal services different, for all figures together.
	significance = 0.05
	// leastChange is the ratio by which a rate or a latency must change to be called better or worse: with many
	// requests a difference is soon certain that matters to nobody.
	leastChange = 0.02
)

// Comparison is what changed from one report to another.
type Comparison struct {
	Changes []Change `json:"changes"`
	Notes   []string `json:"notes,omitempty"` // what to bear in mind, such as different loads
}

// Change is how one figure changed.
type Change struct {
	Figure   string    `json:"figure"` // by the name that gates know it by
	Old      *Value    `json:"old,omitempty"`
	New      *Value    `json:"new,omitempty"`
	Change   *Value    `json:"change,omitempty"`          // new − old, in the figure's unit
	Relative *float64  `json:"relative_change,omitempty"` // new / old − 1
	Interval *Interval `json:"interval,omitempty"`        // of the change, 95 %
	P        *float64  `json:"p,omitempty"`               // the chance of so great a change between equal services, corrected
	Verdict  Direction `json:"verdict"`
	Why      string    `json:"why,omitempty"` // it cannot be compared

	unit figureUnit
}

// Format writes an old or a new value in the unit of the figure, "-" where there is none.
func (c *Change) Format(v *Value) string {
	if v == nil {
		return "-"
	}
	q := quantity{unit: c.unit}
	return q.format(float64(*v))
}

// Amount writes the change: of a share in percentage points, else as a ratio of the old value. It is "-" where there is
// none.
func (c *Change) Amount() string {
	switch {
	case c.unit == unitRatio && c.Change != nil:
		return points(*c.Change)
	case c.Relative != nil && !math.IsNaN(*c.Relative):
		return fmt.Sprintf("%+.1f %%", 100**c.Relative)
	}
	return "-"
}

// Range writes the interval of the change as Amount writes the change, or in the unit of the figure.
func (c *Change) Range() string {
	switch {
	case c.Interval == nil:
		return "-"
	case c.unit == unitRatio:
		return points(c.Interval.Low) + " to " + points(c.Interval.High)
	}
	return c.Format(&c.Interval.Low) + " to " + c.Format(&c.Interval.High)
}

func points(share Value) string { return fmt.Sprintf("%+.2f points", 100*float64(share)) }

// Direction says what a change is.
type Direction string

// The directions of a change.
const (
	Better        Direction = "better"
	Worse         Direction = "worse"
	NoChange      Direction = "no_significant_change"
	NotComparable Direction = "not_comparable"
)

// Worse reports whether any figure became worse.
func (c *Comparison) Worse() bool {
	return slices.ContainsFunc(c.Changes, func(change Change) bool { return change.Verdict == Worse })
}

// sameThing says why two reports are of different things, and nil where a change of their figures means something.
func sameThing(old, recent *Report) error {
	var different []string
	for _, c := range []struct{ what, a, b string }{
		{"model", old.About.Model, recent.About.Model},
		{"scenario", old.About.Scenario, recent.About.Scenario},
		{"workload", old.About.Workload, recent.About.Workload},
	} {
		if c.a != c.b {
			different = append(different, fmt.Sprintf("%s (%q and %q)", c.what, c.a, c.b))
		}
	}
	if a, b := terms(old), terms(recent); !reflect.DeepEqual(a, b) {
		different = append(different, fmt.Sprintf("SLO (%s and %s)", strings.Join(a, " "), strings.Join(b, " ")))
	}
	if len(different) == 0 {
		return nil
	}
	return fmt.Errorf("the reports are of different things: they differ in %s", strings.Join(different, ", "))
}

// terms are the objectives and limits of a report's SLO.
func terms(r *Report) []string {
	var all []string
	if r.SLO.Objective != nil {
		all = append(all, percent(*r.SLO.Objective))
	}
	if r.SLO.AvailabilityObjective != nil {
		all = append(all, "availability@"+percent(*r.SLO.AvailabilityObjective))
	}
	for _, c := range r.SLO.Criteria {
		term := c.Name
		if c.Limit != nil {
			term += "=" + plain(*c.Limit) + "s"
		}
		if c.Objective != nil {
			term += "@" + percent(*c.Objective)
		}
		all = append(all, term)
	}
	return all
}

// Compare is CompareAnyway where two reports are of the same model, scenario, workload and SLO. Else its error says in
// what they differ.
func Compare(old, recent *Report) (*Comparison, error) {
	if err := sameThing(old, recent); err != nil {
		return nil, err
	}
	return CompareAnyway(old, recent), nil
}

// CompareAnyway says which figures changed, and which of the changes are more than chance:
//
//   - shares (attainment, availability, criteria) by Fisher's exact test; the interval of the difference is Newcombe's;
//   - quantiles of latency and rates by the interval of the difference that their own two intervals give (the method of
//     variance estimates recovery of Donner and Zou), and its distance from 0 in standard errors.
//
// The chances are corrected for how many figures are looked at (Holm), and rates and latencies must change by 2 % at
// least. Requests are taken for independent, except in the rates: what lasts longer than a run, such as a busy hour, is
// not in any of it. Where that matters, compare several runs of each.
func CompareAnyway(old, recent *Report) *Comparison {
	c := &Comparison{Notes: differentLoads(old, recent)}
	c.shares(old, recent)
	c.rates(old, recent)
	c.quantiles(old, recent)
	holm(c.Changes)
	for i := range c.Changes {
		c.Changes[i].judge()
	}
	return c
}

func differentLoads(old, recent *Report) []string {
	var notes []string
	if a, b := old.Load.Level(), recent.Load.Level(); a != b {
		notes = append(notes, fmt.Sprintf("the loads differ (%s and %s): rates are not compared, and latencies differ for that alone", a, b))
	}
	for _, r := range []struct {
		name   string
		report *Report
	}{{"old", old}, {"new", recent}} {
		if !r.report.Valid {
			notes = append(notes, fmt.Sprintf("the %s report is not valid: %s", r.name, strings.Join(r.report.Invalid, "; ")))
		}
		if r.report.Interrupted || r.report.Hopeless != "" {
			notes = append(notes, fmt.Sprintf("the run of the %s report ended before its time", r.name))
		}
	}
	return notes
}

func (c *Comparison) shares(old, recent *Report) {
	c.share("attainment", old.SLO.Attainment, recent.SLO.Attainment)
	c.share("availability", old.SLO.Availability, recent.SLO.Availability)
	for _, criterion := range old.SLO.Criteria {
		if now := recent.criterion(criterion.Name); now != nil {
			c.share("attainment_"+criterion.Name, criterion.Attainment, now.Attainment)
		}
	}
}

func (c *Comparison) share(name string, old, recent Share) {
	change := newChange(name, unitRatio, old.Ratio, recent.Ratio, old.Interval, recent.Interval)
	if change.P != nil {
		change.P = new(fisher(old.Met, old.Of, recent.Met, recent.Of))
	}
	c.Changes = append(c.Changes, change)
}

func (c *Comparison) rates(old, recent *Report) {
	for _, rate := range []struct {
		name string
		of   func(*Report) (*float64, *Interval)
	}{
		{"goodput", func(r *Report) (*float64, *Interval) { return r.Goodput, r.RateIntervals.Goodput }},
		{"throughput", func(r *Report) (*float64, *Interval) { return r.Throughput, r.RateIntervals.Throughput }},
		{"output_tokens", func(r *Report) (*float64, *Interval) { return r.OutputTokenRate, r.RateIntervals.OutputTokenRate }},
	} {
		a, aInterval := rate.of(old)
		b, bInterval := rate.of(recent)
		change := newChange(rate.name, unitNumber, a, b, aInterval, bInterval)
		if old.Load.Level() != recent.Load.Level() {
			change.P, change.Why = nil, "the loads differ"
		}
		c.Changes = append(c.Changes, change)
	}
}

func (c *Comparison) quantiles(old, recent *Report) {
	for _, l := range latencyNames {
		a, b := l.of(&old.Latencies).successes(), l.of(&recent.Latencies).successes()
		if a == nil && b == nil {
			continue
		}
		if a == nil {
			a = &Distribution{}
		}
		if b == nil {
			b = &Distribution{}
		}
		for _, q := range []struct {
			name string
			of   func(*Distribution) (Value, *Interval)
		}{
			{"p50", func(d *Distribution) (Value, *Interval) { return d.P50, d.P50Interval }},
			{"p95", func(d *Distribution) (Value, *Interval) { return d.P95, d.P95Interval }},
			{"p99", func(d *Distribution) (Value, *Interval) { return d.P99, d.P99Interval }},
		} {
			aValue, aInterval := quantileOf(a, q.of)
			bValue, bInterval := quantileOf(b, q.of)
			c.Changes = append(c.Changes, newChange(l.name+"_"+q.name, unitSeconds, aValue, bValue, aInterval, bInterval))
		}
	}
}

// quantileOf is nil where the distribution is empty.
func quantileOf(d *Distribution, of func(*Distribution) (Value, *Interval)) (*float64, *Interval) {
	if d.Count == 0 {
		return nil, nil
	}
	v, interval := of(d)
	return new(float64(v)), interval
}

// newChange compares two values by their intervals. It has no P where they cannot be compared, and then says why.
func newChange(name string, unit figureUnit, old, recent *float64, a, b *Interval) Change {
	c := Change{Figure: name, Old: (*Value)(old), New: (*Value)(recent), unit: unit}
	switch {
	case old == nil || recent == nil:
		c.Why = "one of the reports has no such figure"
		return c
	case a == nil || b == nil:
		c.Why = "too few requests for an interval"
	}
	d := *recent - *old
	c.Change = (*Value)(&d)
	if *old != 0 {
		c.Relative = new(*recent / *old - 1)
	}
	if c.Why != "" {
		return c
	}
	below := math.Hypot(*recent-float64(b.Low), float64(a.High)-*old)
	above := math.Hypot(float64(b.High)-*recent, *old-float64(a.Low))
	c.Interval = &Interval{Value(d - below), Value(d + above)}
	toZero := below
	if d < 0 {
		toZero = above
	}
	p := 1.0
	if d != 0 {
		p = math.Erfc(z95 * math.Abs(d) / toZero / math.Sqrt2)
	}
	c.P = &p
	return c
}

// judge gives the verdict.
func (c *Change) judge() {
	switch {
	case c.P == nil:
		c.Verdict = NotComparable
	case *c.P > significance, c.unit != unitRatio && c.Relative != nil && math.Abs(*c.Relative) < leastChange:
		c.Verdict = NoChange
	case (*c.Change > 0) == (c.unit != unitSeconds): // more is better, but for latencies
		c.Verdict = Better
	default:
		c.Verdict = Worse
	}
}

// holm corrects the chances for how many there are, by Holm's method: any figure of equal services is called different
// with at most the significance.
func holm(changes []Change) {
	var tested []*float64
	for i := range changes {
		if changes[i].P != nil {
			tested = append(tested, changes[i].P)
		}
	}
	slices.SortFunc(tested, func(a, b *float64) int { return cmp.Compare(*a, *b) })
	least := 0.0
	for i, p := range tested {
		least = max(least, min(1, *p*float64(len(tested)-i)))
		*p = least
	}
}

// fisher is the chance, by Fisher's exact test (two-sided), that two groups of equal quality differ as much as a of n and
// b of m.
func fisher(a, n, b, m int) float64 {
	met := a + b
	logChance := func(k int) float64 { return logChoose(n, k) + logChoose(m, met-k) - logChoose(n+m, met) }
	const rounding = 1e-7 // ties are ties in spite of it
	observed := logChance(a) + rounding
	sum := 0.0
	for k := max(0, met-m); k <= min(n, met); k++ {
		if l := logChance(k); l <= observed {
			sum += math.Exp(l)
		}
	}
	return min(1, sum)
}
