package load

import (
	"cmp"
	"math"
	"slices"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// Summarize makes the report of a run: exact figures of its measured records.
func Summarize(run *Run) *Report {
	s := newSummary(run)
	for i := range run.Records {
		s.add(&run.Records[i])
	}
	r := s.report
	s.setCounts() // which the others divide
	s.setRates()
	s.setLoad()
	s.setSLO()
	s.setLatencies()
	s.setClient()
	r.Invalid = clientBound(run, r)
	r.Valid = len(r.Invalid) == 0
	r.Notes = notes(run, r)
	return r
}

// summary is a report in the making.
type summary struct {
	run      *Run
	report   *Report
	criteria []criterionTally
	reasons  map[ReasonCount]int // by outcome and reason, with no count in the key

	ttft, firstAnswer, tpot, stall, e2e, intended tally
	input, output, startLag, ownLag               []float64

	// What was sent in each part of the window came to: attempts, good requests, output tokens.
	completedIn, goodIn, tokensIn [batches]float64

	due, sent span // of all measured requests
}

type criterionTally struct {
	met, missed, unmeasurable, notApplicable int
}

// tally collects one figure.
type tally struct {
	successes, withFailures []float64
	known                   bool // of some attempt
}

func (t *tally) add(figure *time.Duration, success bool) {
	t.known = t.known || figure != nil
	switch {
	case !success:
		t.withFailures = append(t.withFailures, math.Inf(1))
	case figure != nil:
		t.successes = append(t.successes, figure.Seconds())
		t.withFailures = append(t.withFailures, figure.Seconds())
	}
}

// latency is nil where no attempt has the figure.
func (t *tally) latency() *Latency {
	if !t.known {
		return nil
	}
	return &Latency{Successes: distribution(t.successes), WithFailures: distribution(t.withFailures)}
}

// span is the first and the last of n instants.
type span struct {
	n           int
	first, last time.Duration
}

func (s *span) add(at time.Duration) {
	if s.n == 0 {
		s.first, s.last = at, at
	}
	s.n++
	s.first, s.last = min(s.first, at), max(s.last, at)
}

// rate is events per second: n events have n − 1 gaps. Nil where there is no gap.
func (s *span) rate() *float64 {
	if s.last <= s.first {
		return nil
	}
	return new(float64(s.n-1) / (s.last - s.first).Seconds())
}

func newSummary(run *Run) *summary {
	a := run.About
	r := &Report{
		Version: ReportVersion, Started: run.Started, Interrupted: run.Interrupted, Hopeless: run.Hopeless,
		About: Subject{Target: a.Target, Scenario: a.Scenario, Model: a.Model, Protocol: a.Protocol, URL: a.URL, Workload: a.Workload},
	}
	r.Counts.Outcomes = make(map[probe.Outcome]int, len(probe.Outcomes))
	for _, o := range probe.Outcomes {
		r.Counts.Outcomes[o] = 0
	}
	r.Counts.Flags = map[probe.Flag]int{}
	return &summary{run: run, report: r, criteria: make([]criterionTally, len(a.SLO.Criteria)), reasons: map[ReasonCount]int{}}
}

// add counts one record.
func (s *summary) add(rec *Record) {
	c := &s.report.Counts
	if rec.Warmup {
		c.WarmupRequests++
		return
	}
	c.Requests++
	s.due.add(rec.Intended)
	s.sent.add(rec.Sent)
	s.startLag = append(s.startLag, rec.Lag().Seconds())
	switch {
	case rec.Attempt():
		s.addAttempt(rec)
	case rec.GivenUp:
		c.GivenUp++
	case rec.Outcome == probe.Canceled:
		c.Canceled++
	default:
		c.LocalErrors++
	}
}

func (s *summary) addAttempt(rec *Record) {
	c := &s.report.Counts
	c.Attempts++
	c.Outcomes[rec.Outcome]++
	for _, f := range rec.Flags {
		c.Flags[f]++
	}
	if !rec.Outcome.Success() {
		s.reasons[ReasonCount{Outcome: rec.Outcome, Reason: rec.Reason}]++
		if rec.InBand {
			c.InBand++
		}
	}
	s.addVerdicts(rec)
	s.addTokens(rec)
	s.addFigures(rec)
	batch := s.batch(rec.Sent)
	s.completedIn[batch]++
	if rec.Outcome == probe.Good {
		s.goodIn[batch]++
	}
	if rec.OutputTokens != nil {
		s.tokensIn[batch] += float64(*rec.OutputTokens)
	}
}

func (s *summary) addVerdicts(rec *Record) {
	for i, criterion := range s.run.About.SLO.Criteria {
		t := &s.criteria[i]
		for _, j := range rec.Judgments {
			if j.SLO != criterion.Name {
				continue
			}
			switch j.Verdict {
			case probe.Met:
				t.met++
			case probe.Missed:
				t.missed++
			case probe.Unmeasurable:
				t.unmeasurable++
			case probe.NotApplicable:
				t.notApplicable++
			}
		}
	}
}

func (s *summary) addTokens(rec *Record) {
	c := &s.report.Counts
	success := rec.Outcome.Success()
	if rec.InputTokens != nil {
		c.InputTokens += *rec.InputTokens
		if success {
			s.input = append(s.input, float64(*rec.InputTokens))
		}
	}
	if success && rec.OutputTokensSource == probe.TokensCounted {
		c.TokensCounted++
	}
	if rec.OutputTokens == nil {
		return
	}
	c.OutputTokens += *rec.OutputTokens
	if rec.Outcome == probe.Good {
		c.GoodOutputTokens += *rec.OutputTokens
	}
	if success {
		s.output = append(s.output, float64(*rec.OutputTokens))
	}
}

func (s *summary) addFigures(rec *Record) {
	success := rec.Outcome.Success()
	s.ttft.add(rec.TTFT, success)
	s.firstAnswer.add(rec.FirstAnswer, success)
	s.tpot.add(rec.TPOT, success)
	if !slices.Contains(rec.Flags, probe.FlagOwnLag) { // else the gaps are the client's, not the endpoint's
		s.stall.add(rec.Stall, success)
	}
	s.e2e.add(rec.E2E, success)
	if s.run.Level.Open() {
		fromIntended := rec.E2E
		if fromIntended != nil {
			fromIntended = new(*rec.E2E + rec.Lag())
		}
		s.intended.add(fromIntended, success)
	}
	if rec.OwnLag != nil {
		s.ownLag = append(s.ownLag, rec.OwnLag.Seconds())
	}
}

// batch is the part of the window in which a request was sent.
func (s *summary) batch(sent time.Duration) int {
	w := s.run.Window
	if w.LastSend <= w.From {
		return 0
	}
	share := float64(sent-w.From) / float64(w.LastSend-w.From)
	return min(max(int(share*batches), 0), batches-1)
}

// setCounts adds what the outcomes add up to.
func (s *summary) setCounts() {
	c := &s.report.Counts
	c.Good = c.Outcomes[probe.Good]
	c.Successes = c.Good + c.Outcomes[probe.SLOViolation]
	c.Failures = c.Attempts - c.Successes
	c.Timeouts, c.RateLimited = c.Outcomes[probe.Timeout], c.Outcomes[probe.RateLimited]
	c.Reasons = make([]ReasonCount, 0, len(s.reasons))
	for key, n := range s.reasons {
		key.Count = n
		c.Reasons = append(c.Reasons, key)
	}
	slices.SortFunc(c.Reasons, func(a, b ReasonCount) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Reason, b.Reason))
	})
}

// setRates divides what was done by the duration. A run that measured nothing has no rates.
func (s *summary) setRates() {
	r, w, c := s.report, s.run.Window, &s.report.Counts
	if w.To <= w.From {
		return
	}
	r.Duration = new((w.To - w.From).Seconds())
	r.Drain = new((w.To - w.LastSend).Seconds())
	per := func(n int) *float64 { return new(float64(n) / *r.Duration) }
	r.Throughput, r.Successful, r.Goodput = per(c.Attempts), per(c.Successes), per(c.Good)
	r.OutputTokenRate, r.GoodTokenRate, r.InputTokenRate = per(c.OutputTokens), per(c.GoodOutputTokens), per(c.InputTokens)
	if c.Attempts < batches*batchRequests {
		return
	}
	drain := *r.Drain / *r.Duration
	r.RateIntervals = RateIntervals{
		Throughput:      batchMeans(&s.completedIn, r.Throughput, drain),
		Goodput:         batchMeans(&s.goodIn, r.Goodput, drain),
		OutputTokenRate: batchMeans(&s.tokensIn, r.OutputTokenRate, drain),
	}
}

func (s *summary) setSLO() {
	slo, c := &s.run.About.SLO, &s.report.Counts
	out := SLOReport{
		Objective: optional(slo.Objective), AvailabilityObjective: optional(slo.Availability),
		Attainment:   newShare(c.Good, c.Attempts),
		Availability: newShare(c.Successes, c.Attempts),
		Criteria:     make([]CriterionReport, len(slo.Criteria)),
	}
	for i, criterion := range slo.Criteria {
		t := s.criteria[i]
		out.Criteria[i] = CriterionReport{
			Name: criterion.Name, Objective: optional(criterion.Objective),
			Attainment: newShare(t.met, t.met+t.missed+t.unmeasurable), Unmeasurable: t.unmeasurable, NotApplicable: t.notApplicable,
		}
		if criterion.Name != config.CriterionComplete {
			out.Criteria[i].Limit = new(criterion.Limit.Seconds())
		}
	}
	s.report.SLO = out
	s.report.Attainment = out.Attainment.Ratio
}

func (s *summary) setLatencies() {
	r := s.report
	r.Latencies = Latencies{
		TTFT: s.ttft.latency(), FirstAnswer: s.firstAnswer.latency(), TPOT: s.tpot.latency(), Stall: s.stall.latency(),
		E2E: s.e2e.latency(), E2EFromIntended: s.intended.latency(), ChunkGap: s.run.Gaps.distribution(),
	}
	r.Lengths = Lengths{Input: distribution(s.input), Output: distribution(s.output)}
	if e2e := r.Latencies.E2E; e2e != nil && e2e.Successes != nil {
		d := *e2e.Successes
		r.LatencyMean, r.LatencyP50 = new(float64(d.Mean)), new(float64(d.P50))
		r.LatencyP95, r.LatencyP99 = new(float64(d.P95)), new(float64(d.P99))
	}
}

func (s *summary) setLoad() {
	a, l := &s.run.About, &s.report.Load
	level := s.run.Level
	*l = Load{
		Arrivals: a.Arrivals, Burstiness: optional(a.Burstiness), Share: a.Share,
		CancelShare: optional(a.CancelShare), AchievedRate: s.sent.rate(),
	}
	if a.MaxInFlight > 0 {
		l.MaxInFlight = &a.MaxInFlight
	}
	if a.CancelShare > 0 {
		l.CancelAfter = new(a.CancelAfter.Seconds())
	}
	l.AchievedConcurrency, l.PeakConcurrency = inFlight(s.run)
	if level.Open() {
		l.Rate, l.OfferedRate = &level.Rate, s.due.rate()
		return
	}
	l.Concurrency = &level.Concurrency
}

func (s *summary) setClient() {
	run, c := s.run, &s.report.Client
	*c = Client{
		StartLag: distribution(s.startLag), OwnLag: distribution(s.ownLag),
		CPU: run.CPU.Seconds(), Cores: run.Cores, Queued: run.Queued(), Unsent: run.Unsent,
	}
	if run.Cores > 0 && run.Window.To > 0 {
		c.CPUShare = new(run.CPU.Seconds() / (float64(run.Cores) * run.Window.To.Seconds()))
	}
}

// inFlight returns the mean over time of the requests in flight from the first to the last measured start, and the most
// of them at one instant. Requests of the warm-up that were still under way are among them. Nil where the window has no
// length.
func inFlight(run *Run) (mean *float64, peak *int) {
	from, to := run.Window.From, run.Window.LastSend
	if to <= from {
		return nil, nil
	}
	type change struct {
		at time.Duration
		by int
	}
	changes := make([]change, 0, 2*len(run.Records))
	var busy float64
	for i := range run.Records {
		rec := &run.Records[i]
		begin, end := max(rec.Sent, from), min(rec.Ended, to)
		if rec.Sent > to || rec.Ended < from {
			continue
		}
		busy += (end - begin).Seconds()
		changes = append(changes, change{begin, 1}, change{rec.Ended, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.by-b.by) })
	now, most := 0, 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return new(busy / (to - from).Seconds()), &most
}

// optional is nil for 0, where 0 stands for none.
func optional(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}
