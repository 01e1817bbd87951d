package collector

import (
	"cmp"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// newSeriesMetrics creates the metrics of a series: all counters at 0, so that increase() sees even the first
// event, and what the series' rules read from its configuration.
func newSeriesMetrics(f *families, s settings) *seriesMetrics {
	m := &seriesMetrics{families: f, created: timestamppb.Now(), price: s.price}
	names := slices.Concat([]string{"target", "model", "scenario"}, f.labelNames)
	values := slices.Concat([]string{s.target, s.model, s.scenario}, labelValues(s.labels, f.labelNames))
	for i := range names {
		m.labels = append(m.labels, &dto.LabelPair{Name: &names[i], Value: new(valid(values[i]))})
	}
	sortLabels(m.labels)
	m.createVerdicts(s.slo)
	if s.slo.Objective > 0.5 {
		m.drop, m.dropScore = NewDropScore(s.slo.Objective, s.interval), m.scalar(f.dropScore)
	}
	m.createOutcomes()
	m.createFigures(s.stream)
	m.createTokens()
	m.createSchedule()
	m.scalar(f.interval).set(s.interval.Seconds())
	return m
}

func (m *seriesMetrics) createVerdicts(slo config.SLO) {
	f := m.families
	m.goodput = m.slo(probe.SLOGoodput)
	m.availability = m.slo(probe.SLOAvailability)
	if slo.Objective != 0 {
		m.scalar(f.sloObjective, probe.SLOGoodput).set(slo.Objective)
	}
	if availability := cmp.Or(slo.Availability, slo.Objective); availability != 0 {
		m.scalar(f.sloObjective, probe.SLOAvailability).set(availability)
	}
	for _, c := range slo.Criteria {
		counters := m.slo(c.Name)
		counters.unmeasurable = m.scalar(f.sloUnmeasurable, c.Name)
		m.criteria = append(m.criteria, counters)
		if c.Objective != 0 {
			m.scalar(f.sloObjective, c.Name).set(c.Objective)
		}
		if c.Limit != 0 {
			m.scalar(f.sloThreshold, c.Name).set(c.Limit.Seconds())
		}
	}
}

func (m *seriesMetrics) slo(name string) sloCounters {
	return sloCounters{
		name: name,
		good: m.scalar(m.families.sloEvents, name, "good"),
		bad:  m.scalar(m.families.sloEvents, name, "bad"),
	}
}

func (m *seriesMetrics) createOutcomes() {
	f := m.families
	m.probes = tally{f.probes, map[string]*scalar{}}
	for _, o := range probe.Outcomes {
		m.probes.get(m, string(o))
	}
	m.aborted = tally{f.aborted, map[string]*scalar{}}
	for _, o := range probe.AbortedOutcomes {
		m.aborted.get(m, string(o))
	}
	m.failures = map[cause]*scalar{}
	for _, c := range bornCauses {
		m.failure(c)
	}
	if f.opts.Full {
		for outcome, reasons := range probe.Reasons {
			for _, reason := range reasons {
				m.failure(cause{outcome, reason})
			}
		}
	}
	m.staleRetries = m.scalar(f.staleRetries)
}

func (m *seriesMetrics) createFigures(stream bool) {
	f := m.families
	if stream {
		m.ttft = m.histogram(f.ttft)
		m.firstAnswer = m.histogram(f.firstAnswer)
		m.tpot = m.histogram(f.tpot)
		m.gap = m.histogram(f.gap)
		m.stall = m.histogram(f.stall)
	}
	m.durationOK = m.histogram(f.duration, "ok")
	m.durationFailed = m.histogram(f.duration, "failed")
	m.phases = map[probe.PhaseName]*histogram{}
	for _, name := range probe.PhaseNames {
		m.phases[name] = m.histogram(f.phase, string(name))
	}
	m.server = map[probe.ServerKind]*histogram{}
	m.ownLag = m.histogram(f.ownLag)
}

func (m *seriesMetrics) createTokens() {
	f := m.families
	m.inputTokens = m.scalar(f.inputTokens)
	m.outputTokens = m.scalar(f.outputTokens)
	m.goodOutputTokens = m.scalar(f.goodOutputTokens)
	m.cachedTokens = m.scalar(f.cachedTokens)
	m.reasoningTokens = m.scalar(f.reasoningTokens)
	m.usageMissing = m.scalar(f.usageMissing)
	m.inputLength = m.histogram(f.inputLength)
	m.outputLength = m.histogram(f.outputLength)
	if m.price != nil {
		m.cost = m.scalar(f.cost)
	}
}

func (m *seriesMetrics) createSchedule() {
	f := m.families
	m.slots = m.scalar(f.slots)
	m.skipped = tally{f.skipped, map[string]*scalar{}}
	for _, reason := range f.opts.SkipReasons {
		m.skipped.get(m, reason)
	}
	m.paused = m.scalar(f.paused)
	m.inFlight = m.scalar(f.inFlight)
	m.startDelay = m.histogram(f.startDelay)
}
