package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// SweepOptions say which levels are measured, and how. Levels or Search must be set, not both.
type SweepOptions struct {
	// Levels are all of one kind. They are measured in ascending order.
	Levels []Level
	Search *Search

	// Measure runs one level and reports on it. It must not return before every request of the level has ended: the
	// next level begins right after, or after Pause.
	Measure func(context.Context, Level) (*Report, error)
	Pause   time.Duration // between two levels, for a server that still works on what was canceled
	OnLevel func(*Report) // is told of each level as it is measured; may be nil

	Headroom float64 // of the recommended level below the limit, in [0, 1); DefaultHeadroom is a good one
}

// Search looks for the SLO capacity by itself: it doubles the load until a level misses an objective, then halves the
// interval between the highest level that holds and the lowest that does not.
type Search struct {
	Start     Level   // the first level
	Max       float64 // no level above it is tried; 0 is no bound
	Precision float64 // the interval's greatest width as a ratio of its lower end, such as 0.1
}

// halvings is how often a search halves a first level that does not hold, before it gives up.
const halvings = 6

// hopelessAttainment is the attainment at or below which more load cannot help, once throughput does not grow either.
const hopelessAttainment = 0.01

// SweepReport is what a sweep found. Levels are in ascending order of the load.
type SweepReport struct {
	Version int       `json:"version"`
	About   Subject   `json:"about"`
	Unit    string    `json:"unit"` // of the levels: "concurrency" or "requests_per_second"
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Levels  []*Report `json:"levels"`
	Stopped string    `json:"stopped,omitempty"` // why it ended before its last level
	Answers Answers   `json:"answers"`
}

// Sweep measures one level after the other. When ctx ends, it returns the levels so far, without the one under way.
// The error is of the options or of Measure; with the latter, the report of the levels so far comes too.
func Sweep(ctx context.Context, o SweepOptions) (*SweepReport, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &sweep{SweepOptions: o, report: &SweepReport{Version: ReportVersion, Started: time.Now(), Unit: string(o.unit())}}
	var err error
	if o.Search != nil {
		err = s.search(ctx)
	} else {
		err = s.list(ctx)
	}
	s.report.Ended = time.Now()
	slices.SortStableFunc(s.report.Levels, func(a, b *Report) int {
		return cmp.Compare(a.Load.Level().Value(), b.Load.Level().Value())
	})
	s.report.Answers = answer(s.points(), o.unit(), o.Headroom)
	if errors.Is(err, errStopped) {
		return s.report, nil
	}
	return s.report, err
}

func (o *SweepOptions) check() error {
	if (len(o.Levels) > 0) == (o.Search != nil) {
		return errors.New("a sweep needs either a list of levels or a search")
	}
	if o.Measure == nil {
		return errors.New("a sweep needs a way to measure a level")
	}
	if o.Headroom < 0 || o.Headroom >= 1 {
		return fmt.Errorf("headroom %v is not at least 0 and below 1", o.Headroom)
	}
	levels := o.Levels
	if o.Search != nil {
		if o.Search.Precision <= 0 {
			return fmt.Errorf("precision %v of the search: it must be positive, such as 0.1", o.Search.Precision)
		}
		if o.Search.Max != 0 && o.Search.Max < o.Search.Start.Value() {
			return fmt.Errorf("the search starts at %s, above its greatest level %v", o.Search.Start, o.Search.Max)
		}
		levels = []Level{o.Search.Start}
	}
	seen := map[Level]bool{}
	for _, l := range levels {
		switch {
		case (l.Concurrency > 0) == (l.Rate > 0) || l.Concurrency < 0 || l.Rate < 0:
			return fmt.Errorf("%s: a level has either a concurrency or a rate, and it must be positive", l)
		case l.Open() != levels[0].Open():
			return errors.New("the levels of a sweep are either all concurrencies or all rates")
		case seen[l]:
			return fmt.Errorf("%s is listed twice", l)
		}
		seen[l] = true
	}
	return nil
}

func (o *SweepOptions) unit() unit {
	if o.Search != nil && o.Search.Start.Open() || o.Search == nil && o.Levels[0].Open() {
		return unitRate
	}
	return unitConcurrency
}

// errStopped ends a sweep that has said in its report why.
var errStopped = errors.New("stopped")

// sweep is a sweep under way.
type sweep struct {
	SweepOptions
	report *SweepReport // its levels are in the order in which they were measured
}

func (s *sweep) list(ctx context.Context) error {
	levels := slices.SortedFunc(slices.Values(s.Levels), func(a, b Level) int {
		return cmp.Compare(a.Value(), b.Value())
	})
	var before *Report
	for i, l := range levels {
		r, err := s.measure(ctx, l)
		if err != nil {
			return err
		}
		if reason := futile(before, r); reason != "" && i < len(levels)-1 {
			return s.stop("%s: %s; higher levels were left out", l, reason)
		}
		before = r
	}
	return nil
}

// search doubles and bisects.
func (s *sweep) search(ctx context.Context) error {
	low, high, err := s.bracket(ctx)
	for err == nil && low > 0 && high > 0 {
		middle := s.between(low, high)
		if high/low-1 <= s.Search.Precision || middle <= low || middle >= high {
			return nil
		}
		var held bool
		if held, err = s.try(ctx, middle); held {
			low = middle
		} else {
			high = middle
		}
	}
	return err
}

// bracket returns a level that holds and a higher one that does not, as near to each other as doubling finds them.
// One of them is 0 where there is none.
func (s *sweep) bracket(ctx context.Context) (low, high float64, err error) {
	load := s.Search.Start.Value()
	held, err := s.try(ctx, load)
	if err != nil {
		return 0, 0, err
	}
	for i := 0; !held; i++ {
		next := s.round(load / 2)
		if i == halvings || next == load || next == 0 {
			return 0, load, nil
		}
		high, load = load, next
		if held, err = s.try(ctx, load); err != nil {
			return 0, high, err
		}
	}
	low = load
	for high == 0 {
		next := 2 * low
		if s.Search.Max > 0 {
			next = min(next, s.round(s.Search.Max))
		}
		if next <= low {
			return low, 0, s.stop("%s, the greatest level of the search, still holds the objective", s.level(low))
		}
		if held, err = s.try(ctx, next); err != nil || !held {
			return low, next, err
		}
		low = next
	}
	return low, high, nil
}

// try measures a level and reports whether it holds every objective.
func (s *sweep) try(ctx context.Context, load float64) (held bool, err error) {
	l := s.level(load)
	r, err := s.measure(ctx, l)
	if err != nil {
		return false, err
	}
	c, first := r.Confidence(), len(s.report.Levels) == 1
	switch reason := unfit(r); {
	case !r.Valid, reason != "" && first:
		return false, s.stop("%s: %s", l, reason)
	case c == "" && first:
		return false, errors.New("a search needs an objective that a level can hold or miss")
	}
	return c.Holds(), nil
}

func (s *sweep) level(load float64) Level {
	if s.unit() == unitRate {
		return Level{Rate: load}
	}
	return Level{Concurrency: int(load)}
}

func (s *sweep) between(low, high float64) float64 { return s.round((low + high) / 2) }

// round brings a load to one that can be offered and read.
func (s *sweep) round(load float64) float64 {
	if s.unit() == unitRate {
		return significant(load, 3)
	}
	return math.Floor(load)
}

// measure measures one level and keeps its report.
func (s *sweep) measure(ctx context.Context, l Level) (*Report, error) {
	if len(s.report.Levels) > 0 && s.Pause > 0 {
		select {
		case <-time.After(s.Pause):
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return nil, s.stop("interrupted before %s", l)
	}
	r, err := s.Measure(ctx, l)
	if err == nil && !r.Valid && ctx.Err() == nil {
		r, err = s.Measure(ctx, l) // a hiccup of the client's machine must not end the sweep; a second one does
	}
	if ctx.Err() != nil {
		return nil, s.stop("interrupted in %s, which is left out", l)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l, err)
	}
	s.report.About = r.About
	s.report.Levels = append(s.report.Levels, r)
	if s.OnLevel != nil {
		s.OnLevel(r)
	}
	return r, nil
}

func (s *sweep) stop(format string, args ...any) error {
	s.report.Stopped = fmt.Sprintf(format, args...)
	return errStopped
}

// futile says why it makes no sense to go on to higher levels after r, "" where it does. before is the level below.
func futile(before, r *Report) string {
	switch {
	case unfit(r) != "":
		return unfit(r)
	case before == nil || *r.Attainment > hopelessAttainment:
		return ""
	case gain(pointOf(before), pointOf(r)) < growth:
		return fmt.Sprintf("attainment is %s and throughput no longer grows", percent(*r.Attainment))
	}
	return ""
}

// unfit says why the figures of a level tell nothing of higher or lower ones, "" where they do.
func unfit(r *Report) string {
	switch {
	case !r.Valid:
		return "not valid: " + strings.Join(r.Invalid, "; ")
	case r.Counts.Successes == 0:
		return "no request was answered" + why(r)
	}
	return ""
}

// why says more of a level at which all requests failed.
func why(r *Report) string {
	switch reasons := r.Counts.Reasons; {
	case r.Hopeless != "":
		return ": " + r.Hopeless
	case len(reasons) > 0:
		return fmt.Sprintf(" (most frequent: %s, %s)", reasons[0].Outcome, reasons[0].Reason)
	}
	return ""
}

// WriteJSON writes the report as indented JSON.
func (s *SweepReport) WriteJSON(w io.Writer) error { return writeDocument(w, s) }

// ReadSweep reads a report as WriteJSON wrote it.
func ReadSweep(r io.Reader) (*SweepReport, error) {
	var report SweepReport
	if err := readDocument(r, &report, &report.Version); err != nil {
		return nil, fmt.Errorf("not the JSON of a sweep, as goodputctl sweep --output=json prints it: %w", err)
	}
	return &report, nil
}
