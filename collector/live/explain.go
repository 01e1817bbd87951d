package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"goodput_exporter/probe"
)

// explain says in words what a diagnosis of now rests on.
func (s *Series) explain(d diagnosis, now time.Time) string {
	switch d.state {
	case Paused:
		return d.pause.explain()
	case NoData:
		return s.explainNoData(now)
	}
	switch {
	case d.state == Down:
		return fmt.Sprintf("no answer to any of %d probes in %s: %s",
			s.memory.count(d.window, availability).bad, windowNames[d.window], s.causes(availability, d.window, now))
	case d.burn != nil:
		return s.explainBurn(d, now)
	}
	// The shortest window that says something.
	window := m5
	for _, longer := range []int{m30, h1} {
		if s.memory.count(window, goodput).all() < fewestFailures {
			window = longer
		}
	}
	c := s.memory.count(window, goodput)
	text := fmt.Sprintf("%d of %d good in %s", c.good, c.all(), windowNames[window])
	if d.state == Burning {
		text = fmt.Sprintf("goodput has dropped, by a drop score of %.2f: %s", s.drop.Score(), text)
	}
	if c.bad > 0 {
		text += ": " + s.causes(goodput, window, now)
	}
	return text
}

func (p *Pause) explain() string {
	text := "paused"
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Until != nil {
		text += " until " + p.Until.UTC().Format(time.RFC3339)
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// explainNoData also says what became of the probes that should have been.
func (s *Series) explainNoData(now time.Time) string {
	text := "no probe was judged yet"
	if !s.lastJudged.IsZero() {
		text = "no probe was judged for " + now.Sub(s.lastJudged).Round(time.Second).String()
	}
	var instead []string
	at := s.live.instant(now)
	for _, o := range s.outcomes(at) {
		if !probe.Outcome(o.Outcome).Attempt() {
			instead = append(instead, fmt.Sprintf("%d %s", o.Count, o.Outcome))
		}
	}
	skipped := s.skipped(at)
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		instead = append(instead, fmt.Sprintf("%d skipped (%s)", skipped[reason], reason))
	}
	if instead != nil {
		text += "; in the last hour: " + strings.Join(instead, ", ")
	}
	return text
}

func (s *Series) explainBurn(d diagnosis, now time.Time) string {
	long, short := s.memory.count(d.burn.long, d.slo), s.memory.count(d.burn.short, d.slo)
	rate := float64(long.bad) / float64(long.all()) / (1 - s.slos[d.slo].objective)
	text := fmt.Sprintf("%s burns its error budget %.3g times too fast: %d of %d bad in %s",
		s.slos[d.slo].name, rate, long.bad, long.all(), windowNames[d.burn.long])
	if d.burn.short != d.burn.long {
		text += fmt.Sprintf(", %d of %d in %s", short.bad, short.all(), windowNames[d.burn.short])
	}
	return text + ": " + s.causes(d.slo, d.burn.short, now)
}

// mostCauses is how many causes are told one by one.
const mostCauses = 3

// causes lists why attempts were bad by an SLO, the most frequent cause first: "10 ttft missed, 2 timeout (idle)". It
// looks back a window, but no further than records are kept.
func (s *Series) causes(slo, window int, now time.Time) string {
	counts := map[string]int{}
	for rec := range s.memory.records.since(s.live.instant(now) - instant(spans[window])) {
		if rec.bad>>slo&1 == 1 {
			counts[s.cause(rec)]++
		}
	}
	causes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	var list []string
	others := 0
	for i, cause := range causes {
		if i < mostCauses {
			list = append(list, fmt.Sprintf("%d %s", counts[cause], cause))
		} else {
			others += counts[cause]
		}
	}
	if others > 0 {
		list = append(list, fmt.Sprintf("%d others", others))
	}
	return strings.Join(list, ", ")
}

// cause says why an attempt was bad.
func (s *Series) cause(rec *record) string {
	if !rec.is(probe.SLOViolation) {
		return fmt.Sprintf("%s (%s)", outcomes[rec.outcome], reasons[rec.reason])
	}
	return strings.Join(s.missed(rec), " and ") + " missed"
}

// missed lists the criteria that a record did not meet.
func (s *Series) missed(rec *record) []string {
	var names []string
	for i := firstCriterion; i < len(s.slos); i++ {
		if rec.bad>>i&1 == 1 {
			names = append(names, s.slos[i].name)
		}
	}
	return names
}
