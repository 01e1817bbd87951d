package load

import (
	"fmt"

	"goodput_exporter/probe"
)

// beyond is how many requests must lie beyond a quantile for it to be more than the luck of the few slowest: a p99
// needs 1,000 requests, a p95 200.
const beyond = 10

// notes says in words what to bear in mind when reading a report.
func notes(run *Run, r *Report) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }

	if run.Hopeless != "" {
		add("the run was given up: %s", run.Hopeless)
	} else if run.Interrupted {
		add("the run was interrupted: these are the figures so far")
	}
	c := r.Counts
	if c.Attempts == 0 {
		add("no measured request was an attempt: there are no figures")
		return all
	}
	if n := c.WarmupRequests; n > 0 {
		add("in no figure: the warm-up of %s", requests(n))
	}
	for _, q := range []struct {
		name  string
		share float64 // beyond it
	}{{"p99", 0.01}, {"p95", 0.05}} {
		if float64(c.Successes)*q.share < beyond && c.Successes > 0 {
			add("a %s of %d successes rests on the slowest few: %d would be needed for %d beyond it",
				q.name, c.Successes, int(beyond/q.share+0.5), beyond)
		}
	}
	all = append(all, objectiveNotes(r)...)
	if queued := run.Queued(); queued > 0 {
		add("%s waited because %d were in flight: the waits are in the latency from the intended start",
			requests(queued), run.About.MaxInFlight)
	}
	if n := c.Flags[probe.FlagOwnLag]; n > 0 {
		add("stalls are without those of %s whose answer the client read too late: their chunk gaps are its own", requests(n))
	}
	if n := c.TokensCounted; n > 0 {
		add("output tokens are counted chunks, of at least one token each, where the server reported no usage: in %s", requests(n))
	}
	if n := c.GivenUp; n > 0 {
		add("given up on purpose, load but no attempts: %s", requests(n))
	}
	return all
}

// objectiveNotes says which objectives so few requests cannot decide.
func objectiveNotes(r *Report) []string {
	if r.SLO.Objective == nil && len(r.SLO.Criteria) == 0 {
		return []string{"no SLO was given: every request that was answered in full is good"}
	}
	var all []string
	undecided := func(name string, s Share, objective *float64) {
		if objective == nil || s.Interval == nil || *objective < float64(s.Interval.Low) || *objective > float64(s.Interval.High) {
			return
		}
		all = append(all, fmt.Sprintf("%s cannot tell whether %s meets its objective of %s: the true share lies between %s and %s",
			requests(s.Of), name, percent(*objective), percent(float64(s.Interval.Low)), percent(float64(s.Interval.High))))
	}
	undecided("attainment", r.SLO.Attainment, r.SLO.Objective)
	undecided("availability", r.SLO.Availability, r.SLO.AvailabilityObjective)
	for _, c := range r.SLO.Criteria {
		undecided(c.Name, c.Attainment, c.Objective)
		if c.Unmeasurable > 0 {
			all = append(all, fmt.Sprintf("%s could not be measured, which counts as bad, of %s", c.Name, requests(c.Unmeasurable)))
		}
	}
	return all
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}
