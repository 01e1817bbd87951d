package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at reads a time in the form of RFC 3339.
func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMaintenanceIsActive(t *testing.T) {
	write(t, nil)
	cfg := load(t, strings.Replace(valid, "targets:\n", "  other: {prompt: Hello.}\ntargets:\n", 1)+`
  - {name: us, url: 'http://b', model: m, scenarios: [chat, {name: other}]}
maintenance:
  - name: move
    targets: [eu]
    from: 2030-01-31T22:00:00+01:00
    to: 2030-02-01T02:00:00+01:00
  - name: patch day
    scenarios: [other]
    time_intervals:
      - {times: [{start_time: '22:00', end_time: '24:00'}], weekdays: [sunday], location: America/New_York}
      - {times: [{start_time: '00:00', end_time: '02:00'}], weekdays: [monday], location: America/New_York}
      - {days_of_month: ['-1'], months: [june, '12'], years: ['2031:2032']}
`)
	tests := []struct{ target, scenario, at, want, end string }{
		{"eu", "chat", "2030-01-31T20:59:59Z", "", ""},
		{"eu", "chat", "2030-01-31T21:00:00Z", "move", "2030-02-01T01:00:00Z"},
		{"eu", "chat", "2030-02-01T00:59:59Z", "move", "2030-02-01T01:00:00Z"},
		{"eu", "chat", "2030-02-01T01:00:00Z", "", ""},
		{"us", "chat", "2030-01-31T22:00:00Z", "", ""},
		// Sunday evening in New York, over its midnight: in winter 5 hours behind UTC, in summer 4.
		{"us", "other", "2030-01-07T02:59:59Z", "", ""},
		{"us", "other", "2030-01-07T03:00:00Z", "patch day", "2030-01-07T07:00:00Z"},
		{"us", "other", "2030-07-08T05:59:30Z", "patch day", "2030-07-08T06:00:00Z"},
		{"us", "other", "2030-07-08T06:00:00Z", "", ""},
		{"us", "chat", "2030-01-07T03:00:00Z", "", ""},
		{"eu", "other", "2030-01-07T03:00:00Z", "patch day", "2030-01-07T07:00:00Z"},
		// Without a location in UTC, whatever the zone of the time that is asked for.
		{"us", "other", "2031-06-30T00:00:00Z", "patch day", "2031-07-01T00:00:00Z"},
		{"us", "other", "2031-07-01T01:30:00+02:00", "patch day", "2031-07-01T00:00:00Z"},
		{"us", "other", "2031-07-01T00:00:00Z", "", ""},
		{"us", "other", "2033-06-30T00:00:00Z", "", ""},
	}
	for _, tt := range tests {
		m, ok := cfg.Active(tt.target, tt.scenario, at(t, tt.at))
		if ok != (tt.want != "") || ok && m.Name != tt.want {
			t.Errorf("%s/%s at %s: %v, want %q", tt.target, tt.scenario, tt.at, m, tt.want)
			continue
		}
		if !ok {
			continue
		}
		if end, ok := m.End(at(t, tt.at)); !ok || !end.Equal(at(t, tt.end)) {
			t.Errorf("%s/%s at %s: ends at %s (%t), want %s", tt.target, tt.scenario, tt.at, end, ok, tt.end)
		}
	}
	if got := cfg.Keep(Shard{Index: 0, Count: 2}).Maintenance; len(got) != 2 {
		t.Errorf("a shard has %d windows, want both", len(got))
	}
}

func TestEndBeyondTheHorizonIsUnknown(t *testing.T) {
	write(t, nil)
	cfg := load(t, valid+"maintenance: [{name: a, targets: [eu], scenarios: [chat], time_intervals: [{months: [june]}]}]\n")
	if end, ok := cfg.Maintenance[0].End(at(t, "2030-06-01T00:00:00Z")); ok {
		t.Errorf("the end is %s, want none", end)
	}
	if end, ok := cfg.Maintenance[0].End(at(t, "2030-06-29T12:34:56Z")); !ok || !end.Equal(at(t, "2030-07-01T00:00:00Z")) {
		t.Errorf("the end is %s, want the first of July", end)
	}
}

func TestMaintenanceErrors(t *testing.T) {
	const once = "from: 2030-01-31T22:00:00Z, to: 2030-02-01T02:00:00Z"
	tests := []struct{ name, window, want string }{
		{"unknown key", "{name: a, target: [eu]}", `maintenance[0].target: unknown key; did you mean "targets"?`},
		{
			"unknown target", "{name: a, targets: [eu, staging], " + once + "}",
			`maintenance[0].targets[1]: unknown target "staging"; known are eu`,
		},
		{
			"unknown scenario", "{name: a, scenarios: [chta], " + once + "}",
			`maintenance[0].scenarios[0]: unknown scenario "chta"; did you mean "chat"?`,
		},
		{"no name", "{" + once + "}", `maintenance[0].name: missing: give each window a name; it is shown as the reason of the pause`},
		{"neither kind", "{name: a}", `maintenance[0]: when? Give from and to, such as 2027-01-31T22:00:00Z, or time_intervals as in Alertmanager`},
		{"null", "~", "maintenance[0].name: missing: give each window a name; it is shown as the reason of the pause\nc.yml:12: maintenance[0]: when? Give from and to, such as 2027-01-31T22:00:00Z, or time_intervals as in Alertmanager"},
		{
			"both kinds", "{name: a, " + once + ", time_intervals: [{weekdays: [sunday]}]}",
			`maintenance[0].time_intervals: contradicts from and to: a window is either once or recurs; remove one, or make two windows of it`,
		},
		{"from alone", "{name: a, from: 2030-01-31T22:00:00Z}", `maintenance[0].to: missing: give the end too, such as 2027-02-01T02:00:00Z`},
		{"to alone", "{name: a, to: 2030-01-31T22:00:00Z}", `maintenance[0].from: missing: give the beginning too, such as 2027-01-31T22:00:00Z`},
		{"from after to", "{name: a, to: 2030-01-31T22:00:00Z, from: 2030-02-01T02:00:00Z}", `maintenance[0].to: must be after from`},
		{
			"time without a zone", "{name: a, from: 2030-01-31T22:00:00, to: 2030-02-01T02:00:00Z}",
			`maintenance[0].from: must be a time with its zone (RFC 3339), such as 2027-01-31T22:00:00Z or 2027-01-31T22:00:00+01:00`,
		},
		{
			"interval of nothing", "{name: a, time_intervals: [{}]}",
			`maintenance[0].time_intervals[0]: never ends: give times, weekdays, days_of_month, months or years; or remove the target from the configuration`,
		},
		{
			"interval of all days", "{name: a, time_intervals: [{weekdays: ['sunday:saturday'], times: [{start_time: '00:00', end_time: '24:00'}]}]}",
			`maintenance[0].time_intervals[0]: never ends: give times, weekdays, days_of_month, months or years; or remove the target from the configuration`,
		},
		{
			"two intervals that fill the week", "{name: a, time_intervals: [{weekdays: ['monday:friday']}, {weekdays: ['saturday:sunday']}]}",
			`maintenance[0].time_intervals: never ends: together they leave no time to probe`,
		},
		{
			"a day that no month has", "{name: a, time_intervals: [{months: [february], days_of_month: ['30']}]}",
			`maintenance[0].time_intervals[0]: never comes: no day fits all of its weekdays, days_of_month, months and years`,
		},
		{
			"a leap day in a year without", "{name: a, time_intervals: [{months: [february], days_of_month: ['29'], years: ['2030']}]}",
			`maintenance[0].time_intervals[0]: never comes: no day fits all of its weekdays, days_of_month, months and years`,
		},
		{
			"no weekday", "{name: a, time_intervals: [{weekdays: [sundy]}]}",
			`maintenance[0].time_intervals[0].weekdays[0]: must be weekdays such as sunday or monday:friday: sundy is not a valid weekday`,
		},
		{
			"no day", "{name: a, time_intervals: [{days_of_month: [first]}]}",
			`maintenance[0].time_intervals[0].days_of_month[0]: must be days of the month such as 1, 1:7, or -1 for the last`,
		},
		{
			"no zone", "{name: a, time_intervals: [{weekdays: [sunday], location: Europe/Bonn}]}",
			`maintenance[0].time_intervals[0].location: must be a time zone such as Europe/Berlin: unknown time zone Europe/Bonn`,
		},
		{
			"no time", "{name: a, time_intervals: [{times: [{start_time: '9:00', end_time: '17:00'}]}]}",
			`maintenance[0].time_intervals[0].times[0].start_time: must be a time of the day from 00:00 to 24:00, such as 09:30`,
		},
		{
			"time over midnight", "{name: a, time_intervals: [{times: [{start_time: '22:00', end_time: '02:00'}]}]}",
			`maintenance[0].time_intervals[0].times[0]: end_time must be after start_time; make two of a time over midnight, one until 24:00 and one from 00:00`,
		},
		{
			"half a time", "{name: a, time_intervals: [{times: [{start_time: '22:00'}]}]}",
			`maintenance[0].time_intervals[0].times[0]: must have start_time and end_time, such as {start_time: '22:00', end_time: '24:00'}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, map[string]string{"c.yml": valid + "maintenance: [" + tt.window + "]\n"})
			_, err := Load("c.yml")
			if err == nil {
				t.Fatal("Load returned no error")
			}
			if diff := cmp.Diff("c.yml:12: "+tt.want, err.Error()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMaintenanceNamesAreUnique(t *testing.T) {
	write(t, map[string]string{"c.yml": valid + `maintenance:
  - {name: a, targets: [eu], from: 2030-01-31T22:00:00Z, to: 2030-02-01T02:00:00Z}
  - {name: a, targets: [eu], from: 2030-01-31T22:00:00Z, to: 2030-02-01T02:00:00Z}
`})
	_, err := Load("c.yml")
	if want := `c.yml:14: maintenance[1].name: duplicate window "a", first in line 13; names must be unique`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A target file that cannot be read is the error, not the names of the targets in it.
func TestMaintenanceOfTargetsInABrokenFile(t *testing.T) {
	write(t, map[string]string{
		"c.yml": "target_files: [t.yml]\nmaintenance: [{name: a, targets: [us], from: 2030-01-31T22:00:00Z, to: 2030-02-01T02:00:00Z}]\n",
		"t.yml": "- name: 'us\n",
	})
	_, err := Load("c.yml")
	if err == nil || strings.Contains(err.Error(), "maintenance") {
		t.Errorf("%v, want the error of t.yml alone", err)
	}
}

func TestMaintenanceWarnings(t *testing.T) {
	const everything = `c.yml:15: maintenance[0]: pauses every series for more than a day: nothing is measured then, and no alert can fire`
	tests := []struct {
		name, window string
		want         []string
	}{
		{"a day", "from: 2090-01-31T00:00:00Z, to: 2090-02-01T00:00:00Z", nil},
		{"more than a day", "from: 2090-01-31T00:00:00Z, to: 2090-02-01T00:00:01Z", []string{everything}},
		{"more than a day, of some", "targets: [us], from: 2090-01-31T00:00:00Z, to: 2090-02-03T00:00:00Z", nil},
		{"more than a day, of all by name", "targets: [us, eu], from: 2090-01-31T00:00:00Z, to: 2090-02-03T00:00:00Z", []string{everything}},
		{"every weekend", "time_intervals: [{weekdays: ['saturday:sunday']}]", []string{everything}},
		{"every Sunday", "time_intervals: [{weekdays: [sunday]}]", nil},
		{
			"over", "from: 2020-01-31T00:00:00Z, to: 2020-02-01T00:00:00Z",
			[]string{`c.yml:15: maintenance[0]: is over and will not come again: remove it`},
		},
		{
			"over, of the years", "time_intervals: [{months: [june], years: ['2019:2020']}]",
			[]string{`c.yml:15: maintenance[0]: is over and will not come again: remove it`},
		},
		{
			"of nothing", "targets: [us], scenarios: [chat], time_intervals: [{weekdays: [sunday]}]",
			[]string{`c.yml:15: maintenance[0]: covers no series: none of its targets has one of its scenarios`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, nil)
			cfg := load(t, strings.Replace(valid, "targets:\n", "  other: {prompt: Hello.}\ntargets:\n", 1)+
				"  - {name: us, url: 'http://localhost', model: m, scenarios: [other]}\n\nmaintenance: [{name: a, "+tt.window+"}]\n")
			if diff := cmp.Diff(tt.want, cfg.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
