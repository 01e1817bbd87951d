package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/alertmanager/timeinterval"
)

type maintenanceYAML struct {
	Name          string              `yaml:"name"`
	Targets       []string            `yaml:"targets"`
	Scenarios     []string            `yaml:"scenarios"`
	From          *instant            `yaml:"from"`
	To            *instant            `yaml:"to"`
	TimeIntervals []*timeIntervalYAML `yaml:"time_intervals"`
}

// timeIntervalYAML is the time_interval of Alertmanager. Its ranges are read by Alertmanager's own code, its times by ours,
// whose errors name the key.
type timeIntervalYAML struct {
	Times       []*timesYAML      `yaml:"times"`
	Weekdays    []weekdaysYAML    `yaml:"weekdays"`
	DaysOfMonth []daysOfMonthYAML `yaml:"days_of_month"`
	Months      []monthsYAML      `yaml:"months"`
	Years       []yearsYAML       `yaml:"years"`
	Location    *locationYAML     `yaml:"location"`
}

type timesYAML struct {
	StartTime *clock `yaml:"start_time"`
	EndTime   *clock `yaml:"end_time"`
}

// addMaintenance takes the windows of a file, of which all targets are known.
func (l *loader) addMaintenance() {
	names := make(map[string]int)
	for i, raw := range l.file.Maintenance {
		at := place{l.main, fmt.Sprintf("maintenance[%d]", i)}
		r := report{&l.problems, locator(at, at)}
		if l.spoilt(at.path) {
			continue // what could not be read cannot be judged
		}
		m := raw.maintenance(r)
		if l.spoilt(at.path) {
			continue
		}
		m.check(r)
		l.checkCovered(m, r)
		if first, taken := names[m.Name]; taken && m.Name != "" {
			r.errorf("name", "duplicate window %q, first in line %d; names must be unique", m.Name, first)
		} else {
			names[m.Name] = r.locate("name").Line
		}
		l.cfg.Maintenance = append(l.cfg.Maintenance, *m)
		if len(l.errors) == 0 {
			warnMaintenance(m, l.cfg.Series, time.Now(), r)
		}
	}
}

// spoilt reports whether a key below a path has had its error.
func (l *loader) spoilt(path string) bool {
	return slices.ContainsFunc(l.errors, func(e *Error) bool { return strings.HasPrefix(e.Key, path+".") })
}

// checkCovered refuses targets and scenarios that do not exist: a typing error would let probes go on.
func (l *loader) checkCovered(m *Maintenance, r report) {
	if l.unread {
		return
	}
	targets := slices.Sorted(maps.Keys(l.names))
	for i, name := range m.Targets {
		if !slices.Contains(targets, name) {
			r.errorf(fmt.Sprintf("targets[%d]", i), "unknown target %q; %s", name, didYouMean(name, targets))
		}
	}
	scenarios := l.knownScenarios()
	for i, name := range m.Scenarios {
		if !slices.Contains(scenarios, name) {
			r.errorf(fmt.Sprintf("scenarios[%d]", i), "unknown scenario %q; %s", name, didYouMean(name, scenarios))
		}
	}
}

func (raw *maintenanceYAML) maintenance(r report) *Maintenance {
	m := &Maintenance{
		Name: raw.Name, Targets: raw.Targets, Scenarios: raw.Scenarios,
		From: time.Time(value(raw.From)), To: time.Time(value(raw.To)),
	}
	for i, interval := range raw.TimeIntervals {
		m.TimeIntervals = append(m.TimeIntervals, interval.timeInterval(fmt.Sprintf("time_intervals[%d]", i), r))
	}
	return m
}

func (raw *timeIntervalYAML) timeInterval(key string, r report) (t timeinterval.TimeInterval) {
	if raw == nil {
		return t
	}
	for i, times := range raw.Times {
		t.Times = append(t.Times, times.timeRange(fmt.Sprintf("%s.times[%d]", key, i), r))
	}
	for _, v := range raw.Weekdays {
		t.Weekdays = append(t.Weekdays, v.WeekdayRange)
	}
	for _, v := range raw.DaysOfMonth {
		t.DaysOfMonth = append(t.DaysOfMonth, v.DayOfMonthRange)
	}
	for _, v := range raw.Months {
		t.Months = append(t.Months, v.MonthRange)
	}
	for _, v := range raw.Years {
		t.Years = append(t.Years, v.YearRange)
	}
	if raw.Location != nil {
		t.Location = &raw.Location.Location
	}
	return t
}

func (raw *timesYAML) timeRange(key string, r report) (t timeinterval.TimeRange) {
	switch {
	case raw == nil || raw.StartTime == nil || raw.EndTime == nil:
		r.errorf(key, "must have start_time and end_time, such as {start_time: '22:00', end_time: '24:00'}")
	case *raw.StartTime >= *raw.EndTime:
		r.errorf(key, "end_time must be after start_time; make two of a time over midnight, one until 24:00 and one from 00:00")
	default:
		t = timeinterval.TimeRange{StartMinute: int(*raw.StartTime), EndMinute: int(*raw.EndTime)}
	}
	return t
}

// clock is a time of the day in minutes, from 00:00 to 24:00.
type clock int

func (c *clock) setScalar(value string) error {
	if value == "24:00" {
		*c = 24 * 60
		return nil
	}
	t, err := time.Parse("15:04", value)
	if err != nil || len(value) != len("15:04") {
		return fmt.Errorf("must be %s", c.form())
	}
	*c = clock(t.Hour()*60 + t.Minute())
	return nil
}

func (c *clock) form() string { return "a time of the day from 00:00 to 24:00, such as 09:30" }

// instant is a time in the form of RFC 3339.
type instant time.Time

func (i *instant) setScalar(value string) error {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return errors.New("must be " + i.form())
	}
	*i = instant(t)
	return nil
}

func (i *instant) form() string {
	return "a time with its zone (RFC 3339), such as 2027-01-31T22:00:00Z or 2027-01-31T22:00:00+01:00"
}

// The ranges of a timeIntervalYAML.
type (
	weekdaysYAML    struct{ timeinterval.WeekdayRange }
	daysOfMonthYAML struct{ timeinterval.DayOfMonthRange }
	monthsYAML      struct{ timeinterval.MonthRange }
	yearsYAML       struct{ timeinterval.YearRange }
	locationYAML    struct{ timeinterval.Location }
)

func (w *weekdaysYAML) setScalar(value string) error {
	return readAsAlertmanager(&w.WeekdayRange, value, w.form())
}

func (d *daysOfMonthYAML) setScalar(value string) error {
	return readAsAlertmanager(&d.DayOfMonthRange, value, d.form())
}

func (m *monthsYAML) setScalar(value string) error {
	return readAsAlertmanager(&m.MonthRange, value, m.form())
}

func (y *yearsYAML) setScalar(value string) error {
	return readAsAlertmanager(&y.YearRange, value, y.form())
}

func (l *locationYAML) setScalar(value string) error {
	return readAsAlertmanager(&l.Location, value, l.form())
}

func (w *weekdaysYAML) form() string { return "weekdays such as sunday or monday:friday" }
func (d *daysOfMonthYAML) form() string {
	return "days of the month such as 1, 1:7, or -1 for the last"
}
func (m *monthsYAML) form() string   { return "months such as january, 12 or june:august" }
func (y *yearsYAML) form() string    { return "years such as 2027 or 2027:2029" }
func (l *locationYAML) form() string { return "a time zone such as Europe/Berlin" }

// readAsAlertmanager reads a string as Alertmanager does.
func readAsAlertmanager(out unmarshaler, value, form string) error {
	err := out.UnmarshalYAML(func(v any) error {
		*v.(*string) = value
		return nil
	})
	if err == nil {
		return nil
	}
	if errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("must be %s", form)
	}
	return fmt.Errorf("must be %s: %w", form, err)
}

type maintenanceView struct {
	Name          string             `yaml:"name"`
	Targets       []string           `yaml:"targets,omitempty,flow"`
	Scenarios     []string           `yaml:"scenarios,omitempty,flow"`
	From          string             `yaml:"from,omitempty"`
	To            string             `yaml:"to,omitempty"`
	TimeIntervals []timeIntervalView `yaml:"time_intervals,omitempty"`
}

type timeIntervalView struct {
	Times       []timeinterval.TimeRange       `yaml:"times,omitempty"`
	Weekdays    []timeinterval.WeekdayRange    `yaml:"weekdays,omitempty,flow"`
	DaysOfMonth []timeinterval.DayOfMonthRange `yaml:"days_of_month,omitempty,flow"`
	Months      []timeinterval.MonthRange      `yaml:"months,omitempty,flow"`
	Years       []timeinterval.YearRange       `yaml:"years,omitempty,flow"`
	Location    string                         `yaml:"location,omitempty"`
}

func viewMaintenance(m *Maintenance) maintenanceView {
	v := maintenanceView{Name: m.Name, Targets: m.Targets, Scenarios: m.Scenarios}
	if !m.recurs() {
		v.From, v.To = m.From.Format(time.RFC3339), m.To.Format(time.RFC3339)
	}
	for _, t := range m.TimeIntervals {
		view := timeIntervalView{Times: t.Times, Weekdays: t.Weekdays, DaysOfMonth: t.DaysOfMonth, Months: t.Months, Years: t.Years}
		if t.Location != nil {
			view.Location = t.Location.String()
		}
		v.TimeIntervals = append(v.TimeIntervals, view)
	}
	return v
}
