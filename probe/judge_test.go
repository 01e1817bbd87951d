package probe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
)

func TestJudge(t *testing.T) {
	const limit = 100 * time.Millisecond
	ms := func(n int) *time.Duration { d := time.Duration(n) * time.Millisecond; return &d }
	count := func(n int) *int { return &n }
	ttft := config.Criterion{Name: config.CriterionTTFT, Limit: limit}
	firstAnswer := config.Criterion{Name: config.CriterionFirstAnswer, Limit: limit}
	tpot := config.Criterion{Name: config.CriterionTPOT, Limit: limit}
	stall := config.Criterion{Name: config.CriterionStall, Limit: limit}
	e2e := config.Criterion{Name: config.CriterionE2E, Limit: limit}
	complete := config.Criterion{Name: config.CriterionComplete}

	for _, tc := range []struct {
		name     string
		result   Result // its outcome is Good unless it says otherwise
		criteria []config.Criterion
		spoilt   time.Duration
		outcome  Outcome // Good unless it says otherwise
		verdicts []Verdict
	}{
		{name: "no criteria", result: Result{}},
		{name: "below the limit", result: Result{TTFT: ms(99)}, criteria: []config.Criterion{ttft}, verdicts: []Verdict{Met}},
		{name: "at the limit", result: Result{TTFT: ms(100)}, criteria: []config.Criterion{ttft}, verdicts: []Verdict{Met}},
		{name: "over the limit", result: Result{TTFT: ms(101)}, criteria: []config.Criterion{ttft}, outcome: SLOViolation, verdicts: []Verdict{Missed}},
		{name: "one of several missed", result: Result{TTFT: ms(50), E2E: ms(200), Stall: ms(10)}, criteria: []config.Criterion{ttft, e2e, stall}, outcome: SLOViolation, verdicts: []Verdict{Met, Missed, Met}},
		{name: "unmeasurable", result: Result{}, criteria: []config.Criterion{ttft}, outcome: SLOViolation, verdicts: []Verdict{Unmeasurable}},
		{name: "no answer but reasoning", result: Result{TTFT: ms(50)}, criteria: []config.Criterion{ttft, firstAnswer}, outcome: SLOViolation, verdicts: []Verdict{Met, Unmeasurable}},
		{name: "no time per token of one token", result: Result{OutputTokens: count(1), TokenEvents: 1}, criteria: []config.Criterion{tpot, stall}, verdicts: []Verdict{NotApplicable, NotApplicable}},
		{name: "no time per token of many", result: Result{OutputTokens: count(5), TokenEvents: 5}, criteria: []config.Criterion{tpot}, outcome: SLOViolation, verdicts: []Verdict{Unmeasurable}},
		{name: "no time per token, number unknown", result: Result{}, criteria: []config.Criterion{tpot}, outcome: SLOViolation, verdicts: []Verdict{Unmeasurable}},
		{name: "many tokens in one event", result: Result{OutputTokens: count(5), TokenEvents: 1}, criteria: []config.Criterion{tpot, stall}, outcome: SLOViolation, verdicts: []Verdict{Unmeasurable, NotApplicable}},
		{name: "complete", result: Result{}, criteria: []config.Criterion{complete}, verdicts: []Verdict{Met}},
		{name: "cut by the token limit", result: Result{Flags: []Flag{FlagLengthLimited}}, criteria: []config.Criterion{complete}, outcome: SLOViolation, verdicts: []Verdict{Missed}},
		{name: "cut by the token limit, which may be", result: Result{Flags: []Flag{FlagLengthLimited}}},
		{name: "failed early", result: Result{Outcome: ServerError, E2E: ms(1)}, criteria: []config.Criterion{ttft, firstAnswer, tpot, stall, e2e, complete}, outcome: ServerError, verdicts: []Verdict{Missed, Missed, Missed, Missed, Missed, Missed}},
		{name: "failed after the first token", result: Result{Outcome: Interrupted, TTFT: ms(50), FirstAnswer: ms(150), Stall: ms(1), E2E: ms(60)}, criteria: []config.Criterion{ttft, firstAnswer, stall, e2e, complete}, outcome: Interrupted, verdicts: []Verdict{Met, Missed, Missed, Missed, Missed}},
		{name: "spoilt by the prober", result: Result{Stall: ms(120)}, criteria: []config.Criterion{stall}, spoilt: 30 * time.Millisecond, verdicts: []Verdict{NotApplicable}},
		{name: "spoilt to the limit", result: Result{Stall: ms(120)}, criteria: []config.Criterion{stall}, spoilt: 20 * time.Millisecond, verdicts: []Verdict{NotApplicable}},
		{name: "bad in spite of the prober", result: Result{Stall: ms(120)}, criteria: []config.Criterion{stall}, spoilt: 10 * time.Millisecond, outcome: SLOViolation, verdicts: []Verdict{Missed}},
		{name: "good in spite of the prober", result: Result{Stall: ms(90)}, criteria: []config.Criterion{stall}, spoilt: 30 * time.Millisecond, verdicts: []Verdict{Met}},
		{name: "spoilt, so that there is no figure", result: Result{OutputTokens: count(5), TokenEvents: 5}, criteria: []config.Criterion{tpot}, spoilt: 30 * time.Millisecond, verdicts: []Verdict{NotApplicable}},
		{name: "canceled", result: Result{Outcome: Canceled}, criteria: []config.Criterion{ttft}, outcome: Canceled},
		{name: "the prober's own failure", result: Result{Outcome: LocalError}, criteria: []config.Criterion{ttft}, outcome: LocalError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tc.result
			if r.Outcome == "" {
				r.Outcome = Good
			}
			if tc.outcome == "" {
				tc.outcome = Good
			}
			r.judge(config.SLO{Objective: 0.99, Criteria: tc.criteria}, tc.spoilt)
			var want []Judgment
			if tc.outcome.Attempt() {
				want = []Judgment{{SLOGoodput, verdict(tc.outcome == Good)}, {SLOAvailability, verdict(tc.outcome.Success())}}
				for i, c := range tc.criteria {
					want = append(want, Judgment{c.Name, tc.verdicts[i]})
				}
			}
			if diff := cmp.Diff(want, r.Judgments); diff != "" {
				t.Errorf("judgments (-want +got):\n%s", diff)
			}
			if r.Outcome != tc.outcome {
				t.Errorf("outcome: got %s, want %s", r.Outcome, tc.outcome)
			}
		})
	}
}

// A criterion that the configuration knows has an entry in the verdict.
func TestEveryCriterionIsJudged(t *testing.T) {
	for _, name := range config.Criteria {
		if name != config.CriterionComplete && figures[name] == nil {
			t.Errorf("no figure for the criterion %s", name)
		}
	}
}
