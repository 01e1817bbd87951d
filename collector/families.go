package collector

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// families are the metrics of all series and targets, made for one set of label names, in a registry of their own.
// A registry remembers the label names of a metric for its whole life: other names need another one.
//
// It is the prometheus.Collector of the series in it.
type families struct {
	registry   *prometheus.Registry
	opts       Options
	labelNames []string // of the configuration; sorted
	targets    *targetCollector
	all        []*family

	series []*Series // those that a scrape shows; Collector.mu guards it

	pairsMu sync.Mutex
	pairs   map[[2]string]*dto.LabelPair

	sloEvents, sloUnmeasurable     *family
	sloObjective, sloThreshold     *family
	dropScore                      *family
	probes, failures, aborted      *family
	lastProbe, lastGood, inFlight  *family
	ttft, firstAnswer, tpot        *family
	gap, stall, duration, phase    *family
	server                         *family
	inputTokens, outputTokens      *family
	goodOutputTokens, usageMissing *family
	cachedTokens, reasoningTokens  *family
	inputLength, outputLength      *family
	cost, staleRetries             *family
	interval, slots, skipped       *family
	paused                         *family
	startDelay, ownLag             *family
}

// newFamilies registers everything anew, and the collectors of the process beside it. It panics on label names
// that cannot be: config refuses those.
func newFamilies(labelNames []string, opts Options, process []prometheus.Collector) *families {
	f := &families{
		registry:   prometheus.NewRegistry(),
		opts:       opts,
		labelNames: slices.Clone(labelNames),
		targets:    newTargetCollector(labelNames, opts.BudgetRemaining),
		pairs:      map[[2]string]*dto.LabelPair{},
	}
	f.addVerdicts()
	f.addFigures()
	f.addTokens()
	f.addSchedule()
	f.registry.MustRegister(process...)
	f.registry.MustRegister(f.targets, f)
	return f
}

// Describe implements prometheus.Collector.
func (f *families) Describe(ch chan<- *prometheus.Desc) {
	for _, fam := range f.all {
		ch <- fam.desc
	}
}

// Collect implements prometheus.Collector.
func (f *families) Collect(ch chan<- prometheus.Metric) {
	for _, s := range f.series {
		snapshots := s.snapshots()
		for i := range snapshots {
			ch <- &snapshots[i]
		}
	}
}

func (f *families) addVerdicts() {
	f.sloEvents = f.counter("goodput_slo_events_total",
		"Attempts by what the SLO says of them. goodput: succeeded and met every criterion that applies; availability: succeeded.", "slo", "result")
	f.sloUnmeasurable = f.counter("goodput_slo_unmeasurable_total",
		"Attempts that are bad by a criterion because the figure that it needs does not exist.", "slo")
	f.dropScore = f.gauge("goodput_drop_score",
		"Whether goodput has dropped, by a sequential test of good and bad attempts that knows bursts: above 1 it has.")
	f.sloObjective = f.gauge("goodput_slo_objective_ratio",
		"The share of attempts that must be good.", "slo")
	f.sloThreshold = f.gauge("goodput_slo_threshold_seconds",
		"The limit of a criterion.", "slo")
	f.probes = f.counter("goodput_probes_total",
		"Attempts, by outcome.", "outcome")
	f.failures = f.counter("goodput_probe_failures_total",
		"Attempts that failed, by outcome and reason.", "outcome", "reason")
	f.aborted = f.counter("goodput_aborted_probes_total",
		"Probes that ended by the exporter's own doing or failure. They are no attempts.", "reason")
	f.lastProbe = f.gauge("goodput_last_probe_timestamp_seconds",
		"When the last completed attempt was sent.")
	f.lastGood = f.gauge("goodput_last_good_timestamp_seconds",
		"When the last good attempt was sent.")
	f.staleRetries = f.counter("goodput_stale_connection_retries_total",
		"Attempts sent again on a new connection because the kept one was dead.")
}

func (f *families) addFigures() {
	f.ttft = f.histogram("goodput_time_to_first_token_seconds",
		"From the send to the first token of any kind.", ttftBuckets)
	f.firstAnswer = f.histogram("goodput_time_to_first_answer_seconds",
		"From the send to the first token that is not reasoning.", firstAnswerBuckets)
	f.tpot = f.histogram("goodput_time_per_output_token_seconds",
		"Mean time per output token after the first, one observation an attempt.", tpotBuckets)
	f.gap = f.histogram("goodput_chunk_gap_seconds",
		"Time between consecutive token events. It is no token latency where events hold several tokens.", gapBuckets)
	f.stall = f.histogram("goodput_stall_seconds",
		"The longest chunk gap of an attempt.", gapBuckets)
	f.duration = f.histogram("goodput_request_duration_seconds",
		"From the send to the end of the answer, or to the failure.", durationBuckets, "result")
	f.server = f.histogram("goodput_server_duration_seconds",
		"What the server says of its own times, where it does: beside the figures, network time and server time can be told apart.", phaseBuckets, "kind")
	f.phase = f.histogram("goodput_phase_duration_seconds",
		"The parts of the way to the first byte of the response. A reused connection has no dns, connect and tls.", phaseBuckets, "phase")
}

func (f *families) addTokens() {
	f.inputTokens = f.counter("goodput_input_tokens_total",
		"Input tokens, as the server reported them.")
	f.outputTokens = f.counter("goodput_output_tokens_total",
		"Output tokens, as the server reported them, else counted.")
	f.goodOutputTokens = f.counter("goodput_good_output_tokens_total",
		"Output tokens of good attempts.")
	f.cachedTokens = f.counter("goodput_cached_input_tokens_total",
		"Input tokens that came from the server's prefix cache, as it reported them.")
	f.reasoningTokens = f.counter("goodput_reasoning_tokens_total",
		"Output tokens spent on reasoning, as the server reported them.")
	f.usageMissing = f.counter("goodput_usage_missing_total",
		"Successful attempts without a report of output tokens.")
	f.inputLength = f.histogram("goodput_request_input_tokens",
		"Input tokens of a successful attempt.", lengthBuckets)
	f.outputLength = f.histogram("goodput_request_output_tokens",
		"Output tokens of a successful attempt.", lengthBuckets)
	f.cost = f.counter("goodput_cost_dollars_total",
		"What the attempts cost by the configured price.")
}

func (f *families) addSchedule() {
	f.interval = f.gauge("goodput_probe_interval_seconds",
		"The configured time between two slots.")
	f.slots = f.counter("goodput_slots_total",
		"Slots that came, skipped ones among them.")
	f.skipped = f.counter("goodput_slots_skipped_total",
		"Slots in which no probe was started, by reason.", "reason")
	f.paused = f.gauge("goodput_paused",
		"Whether the series is not probed now, on purpose: maintenance, or a silence.")
	f.inFlight = f.gauge("goodput_probes_in_flight",
		"Probes that were started and have not ended.")
	f.startDelay = f.histogram("goodput_start_delay_seconds",
		"How late the exporter started a probe in its slot.", startDelayBuckets)
	f.ownLag = f.histogram("goodput_own_lag_seconds",
		"How late the exporter read what had arrived, the worst read of an attempt.", ownLagBuckets)
}

func (f *families) counter(name, help string, labels ...string) *family {
	return f.add(dto.MetricType_COUNTER, name, help, nil, labels)
}

func (f *families) gauge(name, help string, labels ...string) *family {
	return f.add(dto.MetricType_GAUGE, name, help, nil, labels)
}

func (f *families) histogram(name, help string, b boundaries, labels ...string) *family {
	bounds := b.lean
	if f.opts.Full {
		bounds = b.full
	}
	return f.add(dto.MetricType_HISTOGRAM, name, help, bounds, labels)
}

func (f *families) add(kind dto.MetricType, name, help string, bounds []float64, labels []string) *family {
	names := slices.Concat([]string{"target", "model", "scenario"}, f.labelNames, labels)
	fam := &family{desc: prometheus.NewDesc(name, help, names, nil), labels: labels, kind: kind, bounds: bounds}
	f.all = append(f.all, fam)
	return fam
}
