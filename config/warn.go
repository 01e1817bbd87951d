package config

import (
	"math"
	"strconv"
	"time"
)

// warnSeries says what is valid but will disappoint.
func warnSeries(s *Scenario, r report) {
	warnObjective("slo.objective", s.SLO.Objective, s.Interval, r)
	warnObjective("slo.availability", s.SLO.Availability, s.Interval, r)
	for _, c := range s.SLO.Criteria {
		warnObjective("slo."+c.Name+".objective", c.Objective, s.Interval, r)
		if c.Name == CriterionE2E && c.Limit > s.Interval {
			r.warnf("slo.e2e", "an answer may take %s and be good, but probes start every %s: slots that fall into a running probe are skipped; use an interval of %s or more",
				span(c.Limit), span(s.Interval), span(c.Limit))
		}
	}
	if s.Synthetic != nil && s.Synthetic.Turns > 1 {
		r.warnf("synthetic.turns", "the daemon asks only the first turn of %d; goodputctl bench holds the whole conversation", s.Synthetic.Turns)
	}
	// The defaults themselves overlap while an endpoint hangs; only a choice deserves a warning.
	chosen := s.Timeout != DefaultTimeout || s.Interval != DefaultInterval
	if chosen && s.Timeout > s.Interval {
		r.warnf("timeout", "%s is longer than the interval of %s: while the endpoint hangs, slots that fall into a running probe are skipped (overlap)",
			span(s.Timeout), span(s.Interval))
	}
}

// warnObjective compares an objective with the number of probes in an hour, the long window of the fastest burn rate
// alert: where less than one bad probe is allowed in it, one failure is an alarm.
func warnObjective(key string, objective float64, interval time.Duration, r report) {
	perHour := float64(time.Hour) / float64(interval)
	allowed := perHour * (1 - objective)
	if objective <= 0 || objective >= 1 || allowed >= 1-1e-9 {
		return
	}
	reachable := math.Floor((1-1/perHour)*1e4) / 1e4
	advice := "use a shorter interval"
	if reachable > 0 {
		advice = "use an objective of at most " + percent(reachable)
		if needed := time.Duration(float64(time.Hour) * (1 - objective)).Truncate(100 * time.Millisecond); needed >= MinInterval {
			advice += ", or an interval of at most " + span(needed)
		}
	}
	r.warnf(key, "%s cannot be judged at one probe in %s: it allows %.2g bad of the %.4g in an hour; %s",
		percent(objective), span(interval), allowed, perHour, advice)
}

// warnBudget compares a target's budget with what the schedules of its series need.
func warnBudget(t *Target, all []*Series, r report) {
	const day = 24 * time.Hour
	var requests, tokens float64
	series, capped := 0, true
	for _, s := range all {
		if s.Target != t {
			continue
		}
		series++
		perDay := float64(day) / float64(s.Scenario.Interval)
		requests += perDay
		length := s.Scenario.LongestAnswer()
		capped = capped && length > 0
		tokens += perDay * float64(length)
	}
	if budget := float64(t.Budget.RequestsPerDay); budget > 0 && requests > budget+0.5 {
		r.warnf("budget.requests_per_day", "the schedule needs %.0f requests a day, the budget ends after %.0f: it suffices for an interval of %s",
			requests, budget, sufficient(float64(series)*float64(day)/budget))
	}
	if budget := float64(t.Budget.OutputTokensPerDay); budget > 0 && capped && tokens > budget+0.5 {
		mean := float64(day) * float64(series) / requests
		r.warnf("budget.output_tokens_per_day", "answers may need up to %.0f output tokens a day, the budget ends after %.0f: it suffices for an interval of %s",
			tokens, budget, sufficient(mean*tokens/budget))
	}
}

// LongestAnswer is the bound of an answer in tokens, 0 where there is none.
func (s *Scenario) LongestAnswer() int {
	if s.Synthetic != nil && s.Synthetic.OutputTokens != nil {
		return s.Synthetic.OutputTokens.Longest()
	}
	if s.OutputTokens > 0 {
		return s.OutputTokens
	}
	longest := 0
	for _, p := range s.Prompts {
		n := p.MaxTokens
		if n == 0 {
			n = s.MaxTokens
		}
		if n == 0 {
			return 0
		}
		longest = max(longest, n)
	}
	return max(longest, s.MaxTokens)
}

// sufficient rounds an interval up to a tenth of a second.
func sufficient(ns float64) string {
	return span(time.Duration(math.Ceil(ns/1e8) * 1e8))
}

// percent writes a ratio as the YAML does.
func percent(ratio float64) string {
	return strconv.FormatFloat(ratio*100, 'g', 6, 64) + "%"
}
