package sim

import (
	"math"
	"time"
)

// Alert is one alert of a set of rules, in the order of Evaluator.Alerts.
type Alert struct {
	Name string
	Page bool

	holds         func(at int) bool
	every         int           // scrapes between two evaluations of the condition, which may be recorded
	delay         time.Duration // from the scrape to the evaluation of the alert that sees the condition
	hold          time.Duration
	keepFiringFor time.Duration
	held          bool // by the last evaluation of the condition
	state         alertState
}

type alertState struct {
	active, firing bool
	since          int // the scrape of the evaluation since which it is active
	absentSince    int // while firing and kept: the evaluation since which the condition does not hold; else -1
}

// Evaluator evaluates rules on one stream, evaluation by evaluation, as Prometheus' rule manager would.
type Evaluator struct {
	Alerts []Alert

	stream *Stream
	budget float64
	guard  *Guard
}

// NewEvaluator prepares rules for a stream whose objective is given as a share, 0 to 1.
func NewEvaluator(rules Rules, stream *Stream, objective float64) *Evaluator {
	e := &Evaluator{stream: stream, budget: 1 - objective, guard: rules.Guard}
	recorded := stream.AlertLag // what is recorded now is seen by the next evaluation of the alerts
	if stream.AlertLag < stream.RecordLag {
		recorded += stream.Clock.Scrape
	}
	for _, r := range rules.Burns {
		e.Alerts = append(e.Alerts, Alert{
			Name: r.Name, Page: r.Page, hold: r.For, keepFiringFor: r.KeepFiringFor,
			holds: func(at int) bool { return e.burns(r, at) },
			every: int(stream.Clock.Record / stream.Clock.Scrape), delay: recorded,
		})
	}
	if r := rules.Down; r != nil {
		e.Alerts = append(e.Alerts, Alert{
			Name: r.Name, Page: true, hold: r.For,
			holds: func(at int) bool { return e.down(r, at) },
			every: 1, delay: stream.AlertLag,
		})
	}
	if r := rules.Score; r != nil {
		e.Alerts = append(e.Alerts, Alert{
			Name: "score", Page: true, hold: r.For,
			holds: func(at int) bool { return stream.Score[at] > 1 },
			every: 1, delay: stream.AlertLag,
		})
	}
	return e
}

// Step evaluates the alerts after the scrape with index at. It returns the first page and the first ticket
// that are firing, or -1.
func (e *Evaluator) Step(at int) (page, ticket int) {
	page, ticket = -1, -1
	for i := range e.Alerts {
		a := &e.Alerts[i]
		if at%a.every == 0 {
			a.held = a.holds(at)
		}
		a.state = a.next(at, e.stream.Clock.Scrape)
		switch {
		case !a.state.firing:
		case a.Page && page < 0:
			page = i
		case !a.Page && ticket < 0:
			ticket = i
		}
	}
	return page, ticket
}

// When is the time, since the birth of the series, of the evaluation of an alert that sees the scrape with index at.
func (e *Evaluator) When(alert, at int) time.Duration {
	return time.Duration(at)*e.stream.Clock.Scrape + e.Alerts[alert].delay
}

// Firing says whether the alert was firing after the last step.
func (a *Alert) Firing() bool { return a.state.firing }

// next is rules.AlertingRule.Eval of Prometheus for one series.
func (a *Alert) next(at int, scrape time.Duration) alertState {
	s := a.state
	since := func(then int) time.Duration { return time.Duration(at-then) * scrape }
	if !a.held {
		if !s.firing || a.keepFiringFor == 0 {
			return alertState{}
		}
		if s.absentSince < 0 {
			s.absentSince = at
		}
		if since(s.absentSince) >= a.keepFiringFor {
			return alertState{}
		}
		return s
	}
	if !s.active {
		s = alertState{active: true, since: at}
	}
	s.absentSince = -1
	s.firing = s.firing || since(s.since) >= a.hold
	return s
}

// burns is the condition of a burn alert. It asks the short window first, which most often says no.
func (e *Evaluator) burns(r BurnAlert, at int) bool {
	threshold := r.Factor * e.budget
	if e.guard != nil {
		threshold = min(threshold, e.guard.MaxThreshold)
	}
	s := e.stream
	if bad, all, ok := e.increases(r.Short, s.RecordLag, at); !ok || bad <= threshold*all {
		return false
	}
	bad, all, ok := e.increases(r.Long, s.RecordLag, at)
	if !ok || bad <= threshold*all {
		return false
	}
	g := e.guard
	if g == nil {
		return true
	}
	expected := float64(r.Long) / float64(s.Clock.Interval)
	return bad > g.MinBad && all/expected > g.MinFill && wilsonLower(bad, all, g.Z) > threshold
}

// down is the condition of the down alert, the shortest window first: where it holds a good probe, all do.
func (e *Evaluator) down(r *DownAlert, at int) bool {
	for _, window := range r.Windows {
		bad, all, ok := e.increases(window, e.stream.AlertLag, at)
		if ok && bad < all {
			return false
		}
		if ok && all > r.MinProbes {
			return true
		}
	}
	return false
}

// wilsonLower is the lower bound of Wilson's score interval for bad of n.
func wilsonLower(bad, n, z float64) float64 {
	good := max(n-bad, 0)
	return (bad + z*z/2 - z*math.Sqrt(bad*good/n+z*z/4)) / (n + z*z)
}

// increases is increase() of the bad counter and of both counters together, over the window that ends a lag after a
// scrape. It is not ok where the window holds less than two scrapes or no probe.
func (e *Evaluator) increases(window, lag time.Duration, at int) (bad, all float64, ok bool) {
	s := e.stream
	first := max(at-int(window/s.Clock.Scrape)+1, 0)
	if first >= at {
		return 0, 0, false
	}
	badDelta, goodDelta := s.Bad[at]-s.Bad[first], s.Good[at]-s.Good[first]
	if full := first > 0 && s.Bad[first] >= badDelta && s.Good[first] >= goodDelta; full {
		// No counter was 0 near the window: both are extrapolated to its edges, by the same factor.
		factor := float64(window) / float64(window-s.Clock.Scrape)
		return factor * float64(badDelta), factor * float64(badDelta+goodDelta), badDelta+goodDelta > 0
	}
	bad = s.increase(s.Bad, window, lag, first, at)
	all = bad + s.increase(s.Good, window, lag, first, at)
	return bad, all, all > 0
}

// increase is Prometheus' extrapolation: from the samples that the window holds to the window's edges, but not beyond
// the point where the counter would have been 0.
func (s *Stream) increase(counter []int32, window, lag time.Duration, first, last int) float64 {
	delta := counter[last] - counter[first]
	if delta == 0 {
		return 0
	}
	scrape := s.Clock.Scrape.Seconds()
	sampled := float64(last-first) * scrape
	toEnd := lag.Seconds()
	toStart := window.Seconds() - sampled - toEnd
	if toStart >= 1.1*scrape {
		toStart = scrape / 2
	}
	toStart = min(toStart, sampled*float64(counter[first])/float64(delta))
	return float64(delta) * (sampled + toStart + toEnd) / sampled
}
