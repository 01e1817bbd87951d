package live

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"goodput_exporter/collector"
	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// Series is told what happens in one series. When the series is gone, what it is told is seen nowhere: a probe may still
// be on its way then. It is safe for concurrent use.
type Series struct {
	live   *Live
	config *config.Series
	key    string
	slos   []slo

	mu       sync.Mutex
	dead     bool
	memory   memory
	drop     *collector.DropScore // nil without an objective that it can be held against
	skips    []skips              // of the last hour, in order of time
	inFlight int
	stories  stories

	last                instant // of the last record: they are in order
	lastJudged          time.Time
	lastProbe, lastGood time.Time // t_send; zero: there was none
	failing             time.Time // t_send of the first of the failures in a row that the last attempt ends; zero: it is none

	diagnosis diagnosis
	since     time.Time // when the state of the diagnosis began
}

var _ probe.Observer = (*Series)(nil)

// slo is one SLO of a series.
type slo struct {
	name      string
	objective float64       // ratio; 0: none
	limit     time.Duration // 0: none
}

// skips counts slots of one reason that were skipped in one bucket of time.
type skips struct {
	bucket instant
	reason string
	slots  int
}

func newSeries(l *Live, sc *config.Series, now time.Time) *Series {
	wanted := &sc.Scenario.SLO
	s := &Series{
		live: l, config: sc, key: sc.Key(),
		slos: []slo{
			goodput:      {name: probe.SLOGoodput, objective: wanted.Objective},
			availability: {name: probe.SLOAvailability, objective: cmp.Or(wanted.Availability, wanted.Objective)},
		},
		diagnosis: diagnosis{state: NoData}, since: now,
	}
	for _, c := range wanted.Criteria {
		s.slos = append(s.slos, slo{c.Name, c.Objective, c.Limit})
	}
	s.memory = newMemory(len(s.slos))
	if wanted.Objective > 0.5 {
		s.drop = collector.NewDropScore(wanted.Objective, sc.Scenario.Interval)
	}
	return s
}

func (s *Series) die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

// Observe takes a result in, and tells the subscribers. It implements probe.Observer.
func (s *Series) Observe(r *probe.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return
	}
	rec, ended := s.add(r)
	if s.live.hub.heard() {
		s.live.hub.publish(ResultEvent, &ResultData{
			Key: s.key, Target: s.config.Target.Name, Scenario: s.config.Scenario.Name, Probe: s.probe(rec),
		})
	}
	s.update(ended)
}

// Restore takes in a result that an earlier process journaled. The results of a series must come in order of time,
// before any that is observed. Those from the future, by a wall clock that was wrong then or is now, are left out.
func (s *Series) Restore(r *probe.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || completed(r).After(time.Now()) {
		return
	}
	_, ended := s.add(r)
	s.update(ended)
}

// completed is when a result was there: what a server kept open beyond its answer does not count.
func completed(r *probe.Result) time.Time {
	switch {
	case r.Time.IsZero():
		return time.Now()
	case r.E2E == nil:
		return r.Time
	}
	return r.Time.Add(*r.E2E)
}

// add remembers a result and returns when it was there.
func (s *Series) add(r *probe.Result) (record, time.Time) {
	ended := completed(r)
	sent := r.Time
	if sent.IsZero() {
		sent = ended
	}
	rec := newRecord(r, s.slos)
	rec.at = max(s.live.instant(ended), s.last)
	rec.sent = sent.UnixNano()
	rec.number = s.live.number.Add(1)
	s.last = rec.at

	if rec.attempt() {
		s.judged(r.Outcome, sent, ended)
	}
	s.memory.add(rec)
	s.stories.add(s.live, story{number: rec.number, result: r})
	return rec, ended
}

// judged notes an attempt.
func (s *Series) judged(o probe.Outcome, sent, ended time.Time) {
	if !s.lastJudged.IsZero() && ended.Sub(s.lastJudged) > s.patience() {
		// Nobody may have looked in between.
		s.turn(diagnosis{state: NoData}, s.lastJudged.Add(s.patience()), ended)
	}
	s.lastJudged, s.lastProbe = ended, sent
	switch {
	case o.Success():
		s.failing = time.Time{}
	case s.failing.IsZero():
		s.failing = sent
	}
	if o == probe.Good {
		s.lastGood = sent
	}
	if s.drop != nil {
		s.drop.Observe(o == probe.Good)
	}
}

// ProbeStarted counts a probe in flight. ProbeEnded must follow.
func (s *Series) ProbeStarted() { s.addInFlight(1) }

// ProbeEnded ends what ProbeStarted began.
func (s *Series) ProbeEnded() { s.addInFlight(-1) }

func (s *Series) addInFlight(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight += n
}

// SlotsSkipped counts slots in which no probe was started, now. Those skipped for collector.SkipPaused begin the drop
// score anew, as they do that of the metrics.
func (s *Series) SlotsSkipped(reason string, slots int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason == collector.SkipPaused && s.drop != nil {
		s.drop.Reset()
	}
	now := s.live.instant(time.Now())
	bucket := now / instant(bucketWidth)
	s.skips = slices.DeleteFunc(s.skips, func(k skips) bool { return !k.lately(now) })
	for i := range s.skips {
		if k := &s.skips[i]; k.bucket == bucket && k.reason == reason {
			k.slots += slots
			return
		}
	}
	s.skips = append(s.skips, skips{bucket, reason, slots})
}

// lately reports whether the slots were skipped in the last hour, which begins at the nearest edge of a bucket.
func (k skips) lately(now instant) bool {
	width := instant(bucketWidth)
	return k.bucket >= (now-instant(time.Hour)+width/2)/width
}

// skipped counts the slots that were skipped in the last hour, by reason.
func (s *Series) skipped(now instant) map[string]int {
	counts := map[string]int{}
	for _, k := range s.skips {
		if k.lately(now) {
			counts[k.reason] += k.slots
		}
	}
	return counts
}
