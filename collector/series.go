package collector

import (
	"maps"
	"slices"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// Series is told what happens in one series. When the series is gone, what it is told is seen nowhere: a probe may
// still be on its way then. It is safe for concurrent use.
type Series struct {
	settings settings

	mu       sync.Mutex
	metrics  *seriesMetrics
	inFlight int
}

var _ probe.Observer = (*Series)(nil)

// Observe counts a result. It implements probe.Observer.
func (s *Series) Observe(r *probe.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics.observe(r)
}

// SlotStarted counts a slot in which a probe was started, delay after the slot's instant.
func (s *Series) SlotStarted(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics.slots.inc()
	s.metrics.startDelay.observe(delay.Seconds())
}

// SlotsSkipped counts slots in which no probe was started. The reasons are a closed set: see Options.SkipReasons. Slots
// skipped for SkipPaused begin the drop score anew: what was before a maintenance is no evidence of what is after it.
func (s *Series) SlotsSkipped(reason string, slots int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics.slots.add(float64(slots))
	s.metrics.skipped.get(s.metrics, reason).add(float64(slots))
	if reason == SkipPaused && s.metrics.drop != nil {
		s.metrics.drop.Reset()
		s.metrics.dropScore.set(0)
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
	s.metrics.inFlight.set(float64(s.inFlight))
}

// born gives the series new metrics, those of f.
func (s *Series) born(f *families) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics = newSeriesMetrics(f, s.settings)
	s.metrics.inFlight.set(float64(s.inFlight))
}

// snapshots returns all metrics of the series as they are at one instant.
func (s *Series) snapshots() []snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.metrics
	m.paused.set(0)
	if paused := m.families.opts.Paused; paused != nil && paused(s.settings.target, s.settings.scenario) {
		m.paused.set(1)
	}
	snapshots := make([]snapshot, 0, len(m.scalars)+len(m.histograms))
	for _, c := range m.scalars {
		snapshots = append(snapshots, c.snapshot(m.created))
	}
	for _, h := range m.histograms {
		snapshots = append(snapshots, h.snapshot(m.created))
	}
	return snapshots
}

// settings are all of a series' configuration that its metrics depend on.
type settings struct {
	target, model, scenario string
	labels                  map[string]string
	interval                time.Duration
	stream                  bool
	slo                     config.SLO
	price                   *config.Price
}

func settingsOf(s *config.Series) settings {
	return settings{
		target:   s.Target.Name,
		model:    s.Target.Model,
		scenario: s.Scenario.Name,
		labels:   s.Target.Labels,
		interval: s.Scenario.Interval,
		stream:   s.Scenario.Stream,
		slo:      s.Scenario.SLO,
		price:    s.Target.Price,
	}
}

func (a settings) equal(b settings) bool {
	samePrice := a.price == b.price || a.price != nil && b.price != nil && *a.price == *b.price
	return samePrice &&
		a.target == b.target && a.model == b.model && a.scenario == b.scenario &&
		maps.Equal(a.labels, b.labels) &&
		a.interval == b.interval && a.stream == b.stream &&
		a.slo.Objective == b.slo.Objective && a.slo.Availability == b.slo.Availability &&
		slices.Equal(a.slo.Criteria, b.slo.Criteria)
}

// seriesMetrics are the metrics of one series. Each is made once, with its labels: nothing on the way of a result
// builds or hashes a set of labels. Series.mu guards them.
type seriesMetrics struct {
	families *families
	labels   []*dto.LabelPair // that all metrics of the series have; sorted
	created  *timestamppb.Timestamp
	price    *config.Price

	scalars    []*scalar    // all that exist, in order of creation
	histograms []*histogram // all that exist, in order of creation

	goodput, availability sloCounters
	drop                  *DropScore // nil without an objective that it can be held against
	dropScore             *scalar
	criteria              []sloCounters

	probes, aborted, skipped tally // by outcome, reason, reason
	failures                 map[cause]*scalar
	lastProbe, lastGood      *scalar // nil until there is one
	inFlight, paused         *scalar

	ttft, firstAnswer, tpot, gap, stall *histogram // nil where answers are not streamed
	durationOK, durationFailed          *histogram
	phases                              map[probe.PhaseName]*histogram
	server                              map[probe.ServerKind]*histogram // those that the server has told

	inputTokens, outputTokens, goodOutputTokens *scalar
	cachedTokens, reasoningTokens, usageMissing *scalar
	inputLength, outputLength                   *histogram
	cost                                        *scalar // nil without a price

	slots, staleRetries *scalar
	startDelay, ownLag  *histogram
}

// cause is why an attempt failed.
type cause struct {
	outcome probe.Outcome
	reason  probe.Reason
}

// sloCounters count the verdicts on one SLO.
type sloCounters struct {
	name         string
	good, bad    *scalar
	unmeasurable *scalar // of a criterion only
}

// tally is a family of counters with one label of its own.
type tally struct {
	family   *family
	counters map[string]*scalar
}

// get returns the counter of a value, and creates it where it was not born.
func (t *tally) get(m *seriesMetrics, value string) *scalar {
	c, ok := t.counters[value]
	if !ok {
		c = m.scalar(t.family, value)
		t.counters[value] = c
	}
	return c
}

// failure returns the counter of a cause, and creates it where it was not born.
func (m *seriesMetrics) failure(c cause) *scalar {
	counter, ok := m.failures[c]
	if !ok {
		counter = m.scalar(m.families.failures, string(c.outcome), string(c.reason))
		m.failures[c] = counter
	}
	return counter
}

// scalar creates a counter or gauge. values are those of the family's own labels.
func (m *seriesMetrics) scalar(f *family, values ...string) *scalar {
	s := &scalar{family: f, labels: m.labelsOf(f, values)}
	m.scalars = append(m.scalars, s)
	return s
}

// histogram creates a histogram. values are those of the family's own labels.
func (m *seriesMetrics) histogram(f *family, values ...string) *histogram {
	h := &histogram{family: f, labels: m.labelsOf(f, values), classic: make([]uint64, len(f.bounds))}
	m.histograms = append(m.histograms, h)
	return h
}

func (m *seriesMetrics) labelsOf(f *family, values []string) []*dto.LabelPair {
	if len(values) == 0 {
		return m.labels
	}
	labels := make([]*dto.LabelPair, 0, len(m.labels)+len(values))
	labels = append(labels, m.labels...)
	for i, value := range values {
		labels = append(labels, m.families.pair(f.labels[i], value))
	}
	sortLabels(labels)
	return labels
}
