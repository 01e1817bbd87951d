package config

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // locations by name, also where the system has no zones: the image is empty but for the program

	"github.com/prometheus/alertmanager/timeinterval"
)

// Maintenance is a window in which series are not probed, on purpose: once, from From until To, or again and again, in
// TimeIntervals.
type Maintenance struct {
	Name      string
	Targets   []string // by name; none: all
	Scenarios []string // by name; none: all

	From, To      time.Time                   // To is the first instant after it; both zero where the window recurs
	TimeIntervals []timeinterval.TimeInterval // as in Alertmanager: in any of them; UTC unless they say otherwise
}

// Active returns the first window of maintenance that covers a series and contains t.
func (c *Config) Active(target, scenario string, t time.Time) (*Maintenance, bool) {
	for i := range c.Maintenance {
		if m := &c.Maintenance[i]; m.Covers(target, scenario) && m.Contains(t) {
			return m, true
		}
	}
	return nil, false
}

// Covers reports whether a series is meant.
func (m *Maintenance) Covers(target, scenario string) bool {
	return (len(m.Targets) == 0 || slices.Contains(m.Targets, target)) &&
		(len(m.Scenarios) == 0 || slices.Contains(m.Scenarios, scenario))
}

// Contains reports whether an instant of the wall clock is in the window.
func (m *Maintenance) Contains(t time.Time) bool {
	if m.recurs() {
		return slices.ContainsFunc(m.TimeIntervals, func(i timeinterval.TimeInterval) bool { return i.ContainsTime(t.UTC()) })
	}
	return !t.Before(m.From) && t.Before(m.To)
}

func (m *Maintenance) recurs() bool { return len(m.TimeIntervals) > 0 }

// endHorizon is how far End looks for the end of a recurring window.
const endHorizon = 8 * 24 * time.Hour

// End returns when the window that contains t ends. It is false where that is more than 8 days after t and the window
// recurs. It looks at each minute until then, which may take some milliseconds.
func (m *Maintenance) End(t time.Time) (time.Time, bool) {
	if !m.recurs() {
		return m.To, true
	}
	for at := t.Truncate(time.Minute).Add(time.Minute); at.Sub(t) <= endHorizon; at = at.Add(time.Minute) {
		if !m.Contains(at) {
			return at, true
		}
	}
	return time.Time{}, false
}

// check reports what is wrong with a window by itself, by the keys of the YAML.
func (m *Maintenance) check(r report) {
	if m.Name == "" {
		r.errorf("name", "missing: give each window a name; it is shown as the reason of the pause")
	}
	once := !m.From.IsZero() || !m.To.IsZero()
	switch {
	case once && m.recurs():
		r.errorf("time_intervals", "contradicts from and to: a window is either once or recurs; remove one, or make two windows of it")
	case m.recurs():
		m.checkTimeIntervals(r)
	case !once:
		r.errorf("", "when? Give from and to, such as 2027-01-31T22:00:00Z, or time_intervals as in Alertmanager")
	case m.From.IsZero():
		r.errorf("from", "missing: give the beginning too, such as 2027-01-31T22:00:00Z")
	case m.To.IsZero():
		r.errorf("to", "missing: give the end too, such as 2027-02-01T02:00:00Z")
	case !m.From.Before(m.To):
		r.errorf("to", "must be after from")
	}
}

// checkTimeIntervals refuses intervals that cannot be meant: those that never come, and those that never end.
func (m *Maintenance) checkTimeIntervals(r report) {
	for i, interval := range m.TimeIntervals {
		one := Maintenance{TimeIntervals: []timeinterval.TimeInterval{interval}}
		inside, outside := one.sides(interval)
		key := fmt.Sprintf("time_intervals[%d]", i)
		switch {
		case !inside:
			r.errorf(key, "never comes: no day fits all of its weekdays, days_of_month, months and years")
		case !outside:
			r.errorf(key, "never ends: give times, weekdays, days_of_month, months or years; or remove the target from the configuration")
		}
	}
	if len(m.TimeIntervals) > 1 && !slices.ContainsFunc(m.TimeIntervals, func(i timeinterval.TimeInterval) bool {
		_, outside := m.sides(i)
		return outside
	}) {
		r.errorf("time_intervals", "never ends: together they leave no time to probe")
	}
}

// sides reports whether the window contains an instant at all, and whether one is outside of it. It looks at the days of
// 28 years, after which weekdays fall on the same dates again, and on each at the times where the interval begins and ends.
func (m *Maintenance) sides(interval timeinterval.TimeInterval) (inside, outside bool) {
	zone := time.UTC
	if interval.Location != nil {
		zone = interval.Location.Location
	}
	first := 2024
	if len(interval.Years) > 0 {
		first = interval.Years[0].Begin
	}
	minutes := []int{0}
	for _, times := range interval.Times {
		minutes = append(minutes, times.StartMinute, times.EndMinute)
	}
	end := time.Date(first+28, 1, 1, 0, 0, 0, 0, zone)
	for day := time.Date(first, 1, 1, 0, 0, 0, 0, zone); day.Before(end) && (!inside || !outside); day = day.AddDate(0, 0, 1) {
		for _, minute := range minutes {
			contained := m.Contains(time.Date(day.Year(), day.Month(), day.Day(), 0, minute, 0, 0, zone))
			inside, outside = inside || contained, outside || !contained
		}
	}
	return inside, outside
}

// warnMaintenance says what is valid but hardly meant.
func warnMaintenance(m *Maintenance, series []*Series, now time.Time, r report) {
	covered := 0
	for _, s := range series {
		if m.Covers(s.Target.Name, s.Scenario.Name) {
			covered++
		}
	}
	switch {
	case covered == 0:
		r.warnf("", "covers no series: none of its targets has one of its scenarios")
	case m.over(now):
		r.warnf("", "is over and will not come again: remove it")
	case covered == len(series) && m.longerThanADay(now):
		r.warnf("", "pauses every series for more than a day: nothing is measured then, and no alert can fire")
	}
}

// over reports whether the window will not come again.
func (m *Maintenance) over(now time.Time) bool {
	if !m.recurs() {
		return !now.Before(m.To)
	}
	return !slices.ContainsFunc(m.TimeIntervals, func(i timeinterval.TimeInterval) bool {
		return len(i.Years) == 0 || slices.ContainsFunc(i.Years, func(y timeinterval.YearRange) bool { return y.End >= now.UTC().Year() })
	})
}

// longerThanADay reports whether the window, once begun, lasts for more than 24 hours at a time, be it within a year. A
// gap of less than an hour in one that recurs may go unseen.
func (m *Maintenance) longerThanADay(now time.Time) bool {
	if !m.recurs() {
		return m.To.Sub(m.From) > 24*time.Hour
	}
	hours := 0
	for at := now.Truncate(time.Hour); at.Before(now.AddDate(1, 0, 0)); at = at.Add(time.Hour) {
		if hours++; !m.Contains(at) {
			hours = 0
		}
		if hours > 24 {
			return true
		}
	}
	return false
}
