package live

import (
	"time"
)

// State says how a series is doing. It says what the shipped alerts say, before their `for` has passed; and Burning also
// says, without a Severity, that the last 5 minutes alone leave no doubt, when no alert does so yet.
type State string

// The states, the most pressing first.
const (
	Down    State = "down"    // no answer at all: GoodputTargetDown
	Burning State = "burning" // misses its objective: GoodputDrop or one of GoodputErrorBudgetBurn
	NoData  State = "no_data" // no attempt lately, be it good or bad
	Paused  State = "paused"  // not probed on purpose
	OK      State = "ok"
)

// States lists the states, the most pressing first.
var States = []State{Down, Burning, NoData, Paused, OK}

// Severity is that of the alert that a state stands for.
type Severity string

// The severities.
const (
	Critical Severity = "critical" // wakes somebody
	Warning  Severity = "warning"  // is for working hours
)

// Pause says that a series is not probed on purpose.
type Pause struct {
	Reason string     `json:"reason,omitempty"`
	By     string     `json:"by,omitempty"`
	Until  *time.Time `json:"until,omitempty"` // nil: until somebody ends it
}

// diagnosis is a state with what it rests on.
type diagnosis struct {
	pause    *Pause // of Paused
	state    State
	severity Severity // "" where no alert says so
	window   int      // of Down: the shortest that is long enough
	burn     *burn    // of Burning, unless it is a drop
	slo      int      // of burn
}

// burn is one pair of windows of GoodputErrorBudgetBurn.
type burn struct {
	factor      float64 // of the error budget
	limit       float64 // where the share of bad attempts need not exceed more
	long, short int
	severity    Severity
	least       float64 // of the error budget: more than limit, where that is nothing out of the ordinary
}

// burns are the pairs of windows of the shipped rules, the most pressing first, and the one window that is no alert: who
// looks at a page wants to see at once what would wake nobody for a quarter of an hour.
var burns = []burn{
	{14.4, 0.6, h1, m5, Critical, 0},
	{6, 0.6, h6, m30, Critical, 0},
	{3, 0.6, d1, h2, Warning, 0},
	{1, 1, d3, h6, Warning, 0},
	{14.4, 0.144, m5, m5, "", 2},
}

// What the shipped rules ask for before they say anything.
const (
	fewestFailures = 6    // of GoodputTargetDown
	fewestBad      = 5    // in the long window of a burn
	leastFill      = 0.25 // of the long window, by the interval
)

// diagnose says how the series is doing, by windows that have slid to now. It must be quick: it runs at every result.
func (s *Series) diagnose(now time.Time) diagnosis {
	if pause := s.paused(now); pause != nil {
		return diagnosis{state: Paused, pause: pause}
	}
	if s.lastJudged.IsZero() || now.Sub(s.lastJudged) > s.patience() {
		return diagnosis{state: NoData}
	}
	for _, window := range [...]int{m2, m4, m8, m40} {
		if c := s.memory.count(window, availability); c.good == 0 && c.bad >= fewestFailures {
			return diagnosis{state: Down, severity: Critical, window: window}
		}
	}
	if s.drop != nil && s.drop.Score() > 1 {
		return diagnosis{state: Burning, severity: Critical}
	}
	for i := range burns {
		for slo := range s.slos {
			if s.burns(&burns[i], slo) {
				return diagnosis{state: Burning, severity: burns[i].severity, burn: &burns[i], slo: slo}
			}
		}
	}
	return diagnosis{state: OK}
}

// burns says what the alert's expression says.
func (s *Series) burns(b *burn, slo int) bool {
	long, short := s.memory.count(b.long, slo), s.memory.count(b.short, slo)
	if s.slos[slo].objective == 0 || long.bad < fewestBad || short.bad == 0 {
		return false
	}
	allowed := 1 - s.slos[slo].objective
	limit := max(min(b.factor*allowed, b.limit), b.least*allowed)
	promised := float64(spans[b.long]) / float64(s.config.Scenario.Interval)
	lower, _ := wilson(float64(long.bad), float64(long.all()), z99)
	return lower > limit &&
		float64(short.bad)/float64(short.all()) > limit &&
		float64(long.all()) > leastFill*promised
}

// paused returns the pause that the series is in; nil where it is in none.
func (s *Series) paused(now time.Time) *Pause {
	if s.live.opts.Paused == nil {
		return nil
	}
	p, ok := s.live.opts.Paused(s.config.Target.Name, s.config.Scenario.Name, now)
	if !ok {
		return nil
	}
	return &p
}

// patience is how long a series may go without a judged attempt: three intervals, and longer where a probe may take
// longer than that.
func (s *Series) patience() time.Duration {
	sc := s.config.Scenario
	return max(3*sc.Interval, sc.Timeout+2*sc.Interval) + sc.Jitter
}

// update brings the windows and the state to what they are now.
func (s *Series) update(now time.Time) {
	s.memory.slide(s.live.instant(now))
	d := s.diagnose(now)
	since := now
	switch d.state {
	case Down:
		since = s.failing
	case NoData:
		if !s.lastJudged.IsZero() {
			since = s.lastJudged.Add(s.patience())
		}
	}
	s.turn(d, since, now)
}

// turn makes d the diagnosis, and tells the subscribers where that is news.
func (s *Series) turn(d diagnosis, since, now time.Time) {
	before := s.diagnosis
	s.diagnosis = d
	if d.state != before.state {
		s.since = since
	}
	if (d.state == before.state && d.severity == before.severity) || s.dead || !s.live.hub.heard() {
		return
	}
	s.live.hub.publish(StateEvent, &StateData{
		Key: s.key, Target: s.config.Target.Name, Scenario: s.config.Scenario.Name,
		Before: before.state, State: d.state, Severity: d.severity, Since: s.since.UTC(), Reason: s.explain(d, now),
	})
}
