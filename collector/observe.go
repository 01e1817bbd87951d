package collector

import (
	"time"

	"goodput_exporter/probe"
)

// observe counts one result everywhere.
func (m *seriesMetrics) observe(r *probe.Result) {
	if !r.Outcome.Attempt() {
		m.aborted.get(m, string(r.Outcome)).inc()
		return
	}
	m.countOutcome(r)
	m.countVerdicts(r)
	m.countTokens(r)
	m.observeFigures(r)
}

func (m *seriesMetrics) countOutcome(r *probe.Result) {
	m.probes.get(m, string(r.Outcome)).inc()
	if !r.Outcome.Success() {
		m.failure(cause{r.Outcome, r.Reason}).inc()
	}
	if r.Has(probe.FlagStaleRetry) {
		m.staleRetries.inc()
	}

	sent := unixSeconds(r.Time)
	if m.lastProbe == nil {
		m.lastProbe = m.scalar(m.families.lastProbe)
	}
	m.lastProbe.set(sent)
	if r.Outcome == probe.Good {
		if m.lastGood == nil {
			m.lastGood = m.scalar(m.families.lastGood)
		}
		m.lastGood.set(sent)
	}
}

// countVerdicts takes goodput and availability from the outcome, which every attempt has exactly one of: their
// events sum to the attempts whatever the judgments hold.
func (m *seriesMetrics) countVerdicts(r *probe.Result) {
	m.goodput.count(r.Outcome == probe.Good)
	if m.drop != nil {
		m.drop.Observe(r.Outcome == probe.Good)
		m.dropScore.set(m.drop.Score())
	}
	m.availability.count(r.Outcome.Success())
	for _, j := range r.Judgments {
		for i := range m.criteria {
			if m.criteria[i].name == j.SLO {
				m.criteria[i].judge(j.Verdict)
			}
		}
	}
}

func (c *sloCounters) count(good bool) {
	if good {
		c.good.inc()
	} else {
		c.bad.inc()
	}
}

func (c *sloCounters) judge(v probe.Verdict) {
	switch v {
	case probe.Met:
		c.good.inc()
	case probe.Missed:
		c.bad.inc()
	case probe.Unmeasurable:
		c.bad.inc()
		c.unmeasurable.inc()
	case probe.NotApplicable:
	}
}

func (m *seriesMetrics) countTokens(r *probe.Result) {
	addTokens(m.inputTokens, r.InputTokens)
	addTokens(m.outputTokens, r.OutputTokens)
	addTokens(m.cachedTokens, r.CachedInputTokens)
	addTokens(m.reasoningTokens, r.ReasoningTokens)
	if r.Outcome == probe.Good {
		addTokens(m.goodOutputTokens, r.OutputTokens)
	}
	if m.cost != nil {
		m.cost.add(perMillion(m.price.Input, r.InputTokens) + perMillion(m.price.Output, r.OutputTokens))
	}
	if !r.Outcome.Success() {
		return // half an answer says nothing about the length of answers
	}
	if r.Has(probe.FlagUsageMissing) {
		m.usageMissing.inc()
	}
	if r.InputTokens != nil {
		m.inputLength.observe(float64(*r.InputTokens))
	}
	if r.OutputTokens != nil {
		m.outputLength.observe(float64(*r.OutputTokens))
	}
}

// observeFigures gives the latency of whole requests an exemplar. Chunk gaps have none: there are hundreds a
// request, and the one worth a look, the longest, is in the stall.
func (m *seriesMetrics) observeFigures(r *probe.Result) {
	if m.ttft != nil {
		m.ttft.observeFigure(r.TTFT, r)
		m.firstAnswer.observeFigure(r.FirstAnswer, r)
		m.tpot.observeFigure(r.TPOT, r)
		if !r.Has(probe.FlagOwnLag) { // else the gaps are the exporter's, not the endpoint's
			m.stall.observeFigure(r.Stall, r)
			for _, gap := range r.ChunkGaps {
				m.gap.observe(gap.Seconds())
			}
		}
	}
	if r.Outcome.Success() {
		m.durationOK.observeFigure(r.E2E, r)
	} else {
		m.durationFailed.observeFigure(r.E2E, r)
	}
	for _, p := range r.Phases {
		if phase, ok := m.phases[p.Name]; ok {
			phase.observe(p.Duration.Seconds())
		}
	}
	for _, t := range r.ServerTimes {
		h, ok := m.server[t.Kind]
		if !ok {
			h = m.histogram(m.families.server, string(t.Kind))
			m.server[t.Kind] = h
		}
		h.observe(t.Took.Seconds())
	}
	if r.OwnLag != nil {
		m.ownLag.observe(r.OwnLag.Seconds())
	}
}

// observeFigure records a figure of r where it exists, with r's trace where it has one.
func (h *histogram) observeFigure(figure *time.Duration, r *probe.Result) {
	switch {
	case figure == nil:
	case r.TraceID == "":
		h.observe(figure.Seconds())
	default:
		h.observeWithExemplar(figure.Seconds(), r.TraceID, r.Time)
	}
}

func addTokens(c *scalar, tokens *int) {
	if tokens != nil {
		c.add(float64(*tokens))
	}
}

// perMillion returns what the tokens cost at a price per million of them, 0 where their number is not known.
func perMillion(price float64, tokens *int) float64 {
	if tokens == nil {
		return 0
	}
	return price * float64(*tokens) / 1e6
}
