package live

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"time"
)

// APIVersion is the version of the documents that Status, Story and Event are as JSON. Keys may be added within a
// version; none changes its meaning or goes.
const APIVersion = "v1"

// Status is the state of all series at one instant. As JSON its keys are snake_case, durations are in seconds, times are
// RFC 3339 in UTC, and what does not exist is absent, never 0.
type Status struct {
	Version string         `json:"version"` // APIVersion
	Now     time.Time      `json:"now"`
	Started time.Time      `json:"started"` // of the process
	Summary map[State]int  `json:"summary"` // how many series are in each state; every state is there
	Series  []SeriesStatus `json:"series"`  // in the order of the configuration
}

// StatusOptions say what a Status holds. The zero value is all series, without their last probes.
type StatusOptions struct {
	Key    string // only this series; "" for all
	Probes int    // how many of the last probes of each series; those of the last hour are known, and Strip at least
	Brief  bool   // of the SLOs only goodput, and no figures: a third of the size
}

// Strip is how many of its last probes every series knows at least, whatever its interval.
const Strip = 60

// SeriesStatus is the state of one series.
type SeriesStatus struct {
	Key      string            `json:"key"` // config.Series.Key: target/scenario
	Target   string            `json:"target"`
	Model    string            `json:"model"`
	Scenario string            `json:"scenario"`
	Protocol string            `json:"protocol"`
	URLHost  string            `json:"url_host"` // with the port, where the URL has one
	Stream   bool              `json:"stream"`
	Labels   map[string]string `json:"labels,omitempty"`

	State    State     `json:"state"`
	Since    time.Time `json:"since"`              // when the state began; of down, when the first probe without an answer was sent
	Reason   string    `json:"reason"`             // in words
	Severity Severity  `json:"severity,omitempty"` // of the alert that says so; absent where none does
	Pause    *Pause    `json:"pause,omitempty"`

	Interval  float64    `json:"interval_seconds"`
	Timeout   float64    `json:"timeout_seconds"`
	NextSlot  *time.Time `json:"next_slot,omitempty"`
	InFlight  int        `json:"in_flight"`
	LastProbe *time.Time `json:"last_probe,omitempty"` // t_send of the last attempt
	LastGood  *time.Time `json:"last_good,omitempty"`

	DropScore *float64    `json:"drop_score,omitempty"` // above 1: goodput has dropped; absent without an objective above 50 %
	SLOs      []SLOStatus `json:"slos"`                 // goodput, availability, and each criterion
	Figures   []Figure    `json:"figures,omitempty"`    // ttft, tpot and e2e; e2e alone where answers are not streamed

	Outcomes []OutcomeCount `json:"outcomes"`      // of the last hour, the most frequent first
	Skipped  map[string]int `json:"skipped_slots"` // of the last hour, by reason, to within 5 minutes

	Probes []Probe `json:"probes,omitempty"` // the last ones, the oldest first: see StatusOptions
}

// SLOStatus is one SLO of a series: goodput, availability or a criterion.
type SLOStatus struct {
	Name      string   `json:"slo"`
	Objective *float64 `json:"objective,omitempty"`     // ratio
	Limit     *float64 `json:"limit_seconds,omitempty"` // of a criterion that has one
	Windows   []Window `json:"windows"`                 // 5m, 1h, 6h, 1d

	// BudgetUsed is the bad attempts of the last day over those that the objective allows among as many attempts:
	// bad / (attempts × (1 - objective)). 1 is all of the day's error budget. Absent without objective or attempts.
	BudgetUsed *float64 `json:"budget_used,omitempty"`
}

// Window counts the attempts of a time that ends now. What the criterion did not apply to is in neither count.
type Window struct {
	Name string `json:"window"` // "5m"
	Good int    `json:"good"`
	Bad  int    `json:"bad"`

	*Ratio // nil without attempts

	// BurnRate is the share of bad attempts over the share that the objective allows. Absent without either.
	BurnRate *float64 `json:"burn_rate,omitempty"`
}

// Ratio is a share of good attempts, with the interval in which the true one lies with 95 % (Wilson score).
type Ratio struct {
	Attainment float64 `json:"attainment"`
	Low        float64 `json:"attainment_low"`
	High       float64 `json:"attainment_high"`
}

// Figure is one latency of a series, now against the last day. TTFT is that of all probes which got a token, TPOT and E2E
// are those of complete answers.
type Figure struct {
	Name  string       `json:"figure"`                  // "ttft"
	Limit *float64     `json:"limit_seconds,omitempty"` // of the criterion of this name
	Now   Distribution `json:"now"`                     // of the last 15 minutes, or the last 20 probes where these go further back
	Day   Distribution `json:"day"`                     // of the last 24 hours, to within one hour
}

// Distribution is that of a figure. Quantiles of Now are exact (nearest rank), those of Day within 5 %.
type Distribution struct {
	Count int      `json:"count"`
	P50   *float64 `json:"p50_seconds,omitempty"`
	P95   *float64 `json:"p95_seconds,omitempty"`
}

// OutcomeCount counts the probes of one outcome and reason.
type OutcomeCount struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	Count   int    `json:"count"`
}

// Probe is one probe in short.
type Probe struct {
	ID      string    `json:"id"`   // for Live.Story, which may have forgotten it
	Time    time.Time `json:"time"` // t_send
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason,omitempty"`
	Missed  []string  `json:"missed,omitempty"` // criteria that were missed or could not be measured

	TTFT *float64 `json:"ttft_seconds,omitempty"`
	TPOT *float64 `json:"tpot_seconds,omitempty"`
	E2E  *float64 `json:"e2e_seconds,omitempty"`
}

// Status returns the state of all series at the time now. Where a state changed since the last result, subscribers are
// told.
func (l *Live) Status(now time.Time, o StatusOptions) *Status {
	st := &Status{
		Version: APIVersion, Now: now.UTC(), Started: l.start.UTC(), Summary: make(map[State]int, len(States)), Series: []SeriesStatus{},
	}
	for _, state := range States {
		st.Summary[state] = 0
	}
	for _, s := range l.all() {
		if o.Key != "" && o.Key != s.key {
			continue
		}
		status := s.status(now, o)
		st.Summary[status.State]++
		st.Series = append(st.Series, status)
	}
	return st
}

func (s *Series) status(now time.Time, o StatusOptions) SeriesStatus {
	t, sc := s.config.Target, s.config.Scenario
	st := SeriesStatus{
		Key: s.key, Target: t.Name, Model: t.Model, Scenario: sc.Name, Protocol: t.Protocol, URLHost: urlHost(t.URL), Stream: sc.Stream,
		Labels: t.Labels, Interval: sc.Interval.Seconds(), Timeout: sc.Timeout.Seconds(),
	}
	if s.live.opts.Next != nil {
		if next, ok := s.live.opts.Next(s.key); ok {
			st.NextSlot = existing(next)
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.update(now)
	at := s.live.instant(now)
	st.State, st.Severity, st.Since, st.Reason = s.diagnosis.state, s.diagnosis.severity, s.since.UTC(), s.explain(s.diagnosis, now)
	st.Pause = s.diagnosis.pause
	st.InFlight, st.LastProbe, st.LastGood = s.inFlight, existing(s.lastProbe), existing(s.lastGood)
	if s.drop != nil {
		st.DropScore = new(round(s.drop.Score()))
	}
	if o.Brief {
		st.SLOs = s.sloStatus(s.slos[:goodput+1])
	} else {
		st.SLOs, st.Figures = s.sloStatus(s.slos), s.figures(at)
	}
	st.Outcomes, st.Skipped = s.outcomes(at), s.skipped(at)
	if n := min(o.Probes, s.memory.records.len()); n > 0 {
		st.Probes = make([]Probe, 0, n)
		for i := n - 1; i >= 0; i-- {
			st.Probes = append(st.Probes, s.probe(*s.memory.records.back(i)))
		}
	}
	return st
}

// existing returns a time in UTC, nil where there is none.
func existing(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// urlHost returns the host of a URL. Path and query may hold what nobody should read on a page.
func urlHost(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// sloStatus allocates once for all windows: there are thousands of series.
func (s *Series) sloStatus(slos []slo) []SLOStatus {
	list := make([]SLOStatus, len(slos))
	all := make([]Window, len(slos)*len(shown))
	ratios := make([]Ratio, len(all))
	rates := make([]float64, len(all))
	for i, o := range slos {
		list[i] = SLOStatus{Name: o.name, Windows: all[i*len(shown) : (i+1)*len(shown)]}
		if o.objective != 0 {
			list[i].Objective = &o.objective
		}
		if o.limit != 0 {
			list[i].Limit = new(o.limit.Seconds())
		}
		for j, window := range shown {
			k := i*len(shown) + j
			c := s.memory.count(window, i)
			all[k] = Window{Name: windowNames[window], Good: int(c.good), Bad: int(c.bad)}
			if c.all() == 0 {
				continue
			}
			ratios[k] = ratio(c)
			all[k].Ratio = &ratios[k]
			if o.objective != 0 {
				rates[k] = round(float64(c.bad) / float64(c.all()) / (1 - o.objective))
				all[k].BurnRate = &rates[k]
			}
		}
		list[i].BudgetUsed = list[i].Windows[len(shown)-1].BurnRate
	}
	return list
}

// ratio returns the attainment of a count that is not 0.
func ratio(c count) Ratio {
	lower, upper := wilson(float64(c.bad), float64(c.all()), z95)
	return Ratio{
		Attainment: round(float64(c.good) / float64(c.all())), Low: round(max(1-upper, 0)), High: round(min(1-lower, 1)),
	}
}

// round leaves six decimals: more say nothing, and are half of the bytes.
func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }

func (s *Series) figures(now instant) []Figure {
	figures := make([]Figure, 0, figureCount)
	for f, name := range figureNames {
		if f != e2e && !s.config.Scenario.Stream {
			continue
		}
		figure := Figure{Name: name, Now: s.memory.records.distribution(f, now), Day: s.memory.day.distribution(f, now)}
		for _, o := range s.slos {
			if o.name == name {
				figure.Limit = new(o.limit.Seconds())
			}
		}
		figures = append(figures, figure)
	}
	return figures
}

// outcomes counts the probes of the last hour.
func (s *Series) outcomes(now instant) []OutcomeCount {
	type kind struct{ outcome, reason uint8 }
	counts, kinds := []OutcomeCount{}, make([]kind, 0, 8)
	for rec := range s.memory.records.since(now - instant(time.Hour)) {
		k := kind{rec.outcome, rec.reason}
		i := slices.Index(kinds, k)
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, k)
			counts = append(counts, OutcomeCount{Outcome: string(outcomes[k.outcome]), Reason: string(reasons[k.reason])})
		}
		counts[i].Count++
	}
	slices.SortStableFunc(counts, func(a, b OutcomeCount) int { return cmp.Compare(b.Count, a.Count) })
	return counts
}

// probe tells of a record.
func (s *Series) probe(rec record) Probe {
	p := Probe{
		ID: s.live.id(rec.number), Time: time.Unix(0, rec.sent).UTC(),
		Outcome: string(outcomes[rec.outcome]), Reason: string(reasons[rec.reason]), Missed: s.missed(&rec),
	}
	var seconds [figureCount]float64 // one allocation for all: a Status may have very many probes
	for f, to := range [figureCount]**float64{&p.TTFT, &p.TPOT, &p.E2E} {
		if rec.figures[f] > 0 {
			seconds[f] = float64(rec.figures[f]) / 1e6
			*to = &seconds[f]
		}
	}
	return p
}
