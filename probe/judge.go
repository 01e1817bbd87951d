package probe

import (
	"time"

	"goodput_exporter/config"
)

// figures gives the figure that a criterion with a limit bounds. A new criterion is one entry here.
var figures = map[string]func(*Result) *time.Duration{
	config.CriterionTTFT:        func(r *Result) *time.Duration { return r.TTFT },
	config.CriterionFirstAnswer: func(r *Result) *time.Duration { return r.FirstAnswer },
	config.CriterionTPOT:        func(r *Result) *time.Duration { return r.TPOT },
	config.CriterionStall:       func(r *Result) *time.Duration { return r.Stall },
	config.CriterionE2E:         func(r *Result) *time.Duration { return r.E2E },
}

// earlyFigures are those of a failed request that a user had all the same, if they were reached.
var earlyFigures = map[string]bool{config.CriterionTTFT: true, config.CriterionFirstAnswer: true}

// judge sets the judgments of an attempt, and makes its outcome slo_violation where it succeeded but missed a
// criterion. spoilt is by how much the prober's own lateness may have lengthened the figures: a criterion that
// would have been met without it is not held against the endpoint.
func (r *Result) judge(slo config.SLO, spoilt time.Duration) {
	if !r.Outcome.Attempt() {
		return
	}
	r.Judgments = make([]Judgment, 2, 2+len(slo.Criteria))
	met := r.Outcome.Success()
	r.Judgments[1] = Judgment{SLOAvailability, verdict(met)}
	for _, c := range slo.Criteria {
		v := r.judgeOne(c, spoilt)
		if v == Missed || v == Unmeasurable {
			met = false
		}
		r.Judgments = append(r.Judgments, Judgment{c.Name, v})
	}
	r.Judgments[0] = Judgment{SLOGoodput, verdict(met)}
	if r.Outcome.Success() && !met {
		r.Outcome = SLOViolation
	}
}

func verdict(met bool) Verdict {
	if met {
		return Met
	}
	return Missed
}

func (r *Result) judgeOne(c config.Criterion, spoilt time.Duration) Verdict {
	if c.Name == config.CriterionComplete {
		return verdict(r.Outcome.Success() && !r.Has(FlagLengthLimited))
	}
	figure := figures[c.Name](r)
	switch {
	case !r.Outcome.Success() && !earlyFigures[c.Name]:
		return Missed
	case figure == nil && !r.Outcome.Success():
		return Missed
	case figure == nil && r.notApplicable(c.Name):
		return NotApplicable
	case figure == nil && spoilt > 0:
		return NotApplicable
	case figure == nil:
		return Unmeasurable
	case *figure > c.Limit && *figure-spoilt <= c.Limit:
		return NotApplicable
	}
	return verdict(*figure <= c.Limit)
}

// notApplicable reports whether a complete answer can have no such figure: there is no time between tokens where
// there is only one, and no gap between chunks.
func (r *Result) notApplicable(criterion string) bool {
	switch criterion {
	case config.CriterionTPOT:
		return r.OutputTokens != nil && *r.OutputTokens == 1
	case config.CriterionStall:
		return r.TokenEvents == 1
	}
	return false
}
