package load

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// leastOverlap is how much of the time from the first to the last start of all clients each of them must have been
// sending, for their loads to add up.
const leastOverlap = 0.9

// Merged is one load that several clients made together.
type Merged struct {
	Run     *Run
	Invalid []string // which of the clients were the bottleneck of their part, and why
	Notes   []string // what to bear in mind when reading its figures
}

// Report makes the report of all clients' records together. It is valid when every client was the master of its part:
// among the others' records the late ones of one would hardly be seen.
func (m *Merged) Report() *Report {
	r := Summarize(m.Run)
	r.Invalid = m.Invalid
	r.Valid = len(r.Invalid) == 0
	r.Notes = append(r.Notes, m.Notes...)
	return r
}

// Merge joins the runs of several clients of one load exactly: their records, not their figures. Instants are brought
// together by the clients' wall clocks. Rates, concurrencies and cores add up; the level of each run is thus what that
// client offered. The error names the first run that does not belong to the first, by its number from 1, and says why.
func Merge(runs ...*Run) (*Merged, error) {
	if len(runs) == 0 {
		return nil, errors.New("no runs to merge")
	}
	for i, run := range runs[1:] {
		if err := belong(runs[0], run); err != nil {
			return nil, fmt.Errorf("run %d does not belong to run 1: %w", i+2, err)
		}
	}
	if err := distinct(runs); err != nil {
		return nil, err
	}
	m := &Merged{Run: &Run{About: runs[0].About, Started: slices.MinFunc(runs, earlier).Started}}
	m.Run.About.MaxInFlight = 0
	for _, run := range runs {
		m.Run.join(run)
	}
	m.Run.About.Target = joinNames(runs, func(a *About) string { return a.Target })
	m.Run.About.URL = joinNames(runs, func(a *About) string { return a.URL })
	m.Run.About.Share = sharesOf(runs)
	if slices.ContainsFunc(runs, func(run *Run) bool { return run.About.MaxInFlight == 0 }) {
		m.Run.About.MaxInFlight = 0 // one had no bound
	}
	slices.SortStableFunc(m.Run.Records, func(a, b Record) int { return cmp.Compare(a.Sent, b.Sent) })
	for i := range m.Run.Records {
		m.Run.Records[i].N = i
	}
	slices.SortStableFunc(m.Run.Records, func(a, b Record) int { return cmp.Compare(a.Ended, b.Ended) })
	m.describe(runs)
	return m, nil
}

func earlier(a, b *Run) int { return a.Started.Compare(b.Started) }

// belong says why two runs are not of one load.
func belong(a, b *Run) error {
	for _, c := range []struct{ what, a, b string }{
		{"model", a.About.Model, b.About.Model},
		{"scenario", a.About.Scenario, b.About.Scenario},
		{"protocol", a.About.Protocol, b.About.Protocol},
		{"workload", a.About.Workload, b.About.Workload},
		{"arrivals", a.About.Arrivals, b.About.Arrivals},
	} {
		if c.a != c.b {
			return fmt.Errorf("its %s is %q, not %q", c.what, c.b, c.a)
		}
	}
	switch {
	case !reflect.DeepEqual(a.About.SLO, b.About.SLO):
		return errors.New("it was judged by another SLO")
	case a.Level.Open() != b.Level.Open():
		return fmt.Errorf("its load is %s, which does not add up with %s", b.Level, a.Level)
	}
	return nil
}

// distinct refuses a part of the load that is there twice.
func distinct(runs []*Run) error {
	type part struct {
		share   string
		started time.Time
	}
	seen := map[part]int{}
	for i, run := range runs {
		p := part{share: run.About.Share}
		if p.share == "" {
			p.started = run.Started.Round(0) // two runs without a share are the same when they began at one instant
		}
		if first, ok := seen[p]; ok {
			which := cmp.Or(p.share, "started "+p.started.UTC().Format(time.RFC3339Nano))
			return fmt.Errorf("run %d is the same part of the load as run %d (%s)", i+1, first, which)
		}
		seen[p] = i + 1
	}
	return nil
}

// join adds another run, whose instants are brought to this run's start.
func (run *Run) join(other *Run) {
	shift := other.Started.Sub(run.Started)
	for _, rec := range other.Records {
		rec.Intended += shift
		rec.Sent += shift
		rec.Ended += shift
		run.Records = append(run.Records, rec)
	}
	if other.Window != (Window{}) {
		w := Window{other.Window.From + shift, other.Window.LastSend + shift, other.Window.To + shift}
		if run.Window != (Window{}) {
			w = Window{min(run.Window.From, w.From), max(run.Window.LastSend, w.LastSend), max(run.Window.To, w.To)}
		}
		run.Window = w
	}
	run.Level.Concurrency += other.Level.Concurrency
	run.Level.Rate += other.Level.Rate
	run.About.MaxInFlight += other.About.MaxInFlight
	run.Gaps.Merge(other.Gaps)
	run.Interrupted = run.Interrupted || other.Interrupted
	run.Hopeless = cmp.Or(run.Hopeless, other.Hopeless)
	run.CPU += other.CPU
	run.Cores += other.Cores
	run.Unsent += other.Unsent
}

// joinNames lists the different names that runs have for something.
func joinNames(runs []*Run, name func(*About) string) string {
	var names []string
	for _, run := range runs {
		if n := name(&run.About); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// sharesOf is "" where the runs make the whole load, and else lists the shares that are there.
func sharesOf(runs []*Run) string {
	var shares []string
	whole := 0
	for _, run := range runs {
		var index, count int
		if n, _ := fmt.Sscanf(run.About.Share, "%d/%d", &index, &count); n == 2 {
			whole = max(whole, count)
			shares = append(shares, run.About.Share)
		}
	}
	if len(shares) == whole {
		return ""
	}
	return strings.Join(shares, ", ")
}

// describe says what the joined records cannot show: that a client was the bottleneck of its part, and that the clients
// did not send at the same time.
func (m *Merged) describe(runs []*Run) {
	m.Notes = append(m.Notes, fmt.Sprintf("joined from %d runs", len(runs)))
	if m.Run.About.Share != "" {
		m.Notes = append(m.Notes, "only a part of the load is here: "+m.Run.About.Share)
	}
	whole := m.Run.Window.LastSend - m.Run.Window.From
	for i, run := range runs {
		for _, reason := range Summarize(run).Invalid {
			m.Invalid = append(m.Invalid, fmt.Sprintf("run %d: %s", i+1, reason))
		}
		if part := run.Window.LastSend - run.Window.From; float64(part) < leastOverlap*float64(whole) {
			m.Notes = append(m.Notes, fmt.Sprintf("run %d sent during %s of the %s of all: the load was not the sum of the levels all the time",
				i+1, short(part), short(whole)))
		}
	}
}
