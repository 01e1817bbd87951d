package live

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goodput_exporter/collector"
	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// reference counts windows the plain way: over all results, as goodput_slo_events_total counts them.
type reference struct {
	ended   []time.Time
	results []*probe.Result
}

func (ref *reference) observe(r *probe.Result) {
	ref.ended = append(ref.ended, r.Time.Add(*r.E2E))
	ref.results = append(ref.results, r)
}

// count counts the attempts after from.
func (ref *reference) count(slo string, from time.Time) count {
	var c count
	add := func(good bool) {
		if good {
			c.good++
		} else {
			c.bad++
		}
	}
	for i, r := range ref.results {
		switch {
		case !r.Outcome.Attempt() || !ref.ended[i].After(from):
		case slo == probe.SLOGoodput:
			add(r.Outcome == probe.Good)
		case slo == probe.SLOAvailability:
			add(r.Outcome.Success())
		default:
			for _, j := range r.Judgments {
				if j.SLO == slo && j.Verdict != probe.NotApplicable {
					add(j.Verdict == probe.Met)
				}
			}
		}
	}
	return c
}

// begin is where a window begins: exactly, up to an hour, else at the nearest edge of a bucket.
func begin(now time.Time, window int) time.Time {
	from := now.Add(-spans[window])
	width := time.Hour
	switch {
	case window < h2:
		return from
	case window < d3:
		width = bucketWidth
	}
	edge := (from.UnixNano() + int64(width)/2) / int64(width) * int64(width)
	return time.Unix(0, edge-1) // what ends on the edge is in the bucket after it
}

// randomResult is any that can be.
func randomResult(rng *rand.Rand, ended time.Time) *probe.Result {
	outcome := probe.Good
	if rng.Float64() < 0.3 {
		outcome = outcomes[rng.IntN(len(outcomes))]
	}
	r := result(ended, outcome, "")
	for i := range r.Judgments {
		if i >= firstCriterion {
			r.Judgments[i].Verdict = []probe.Verdict{
				probe.Met, probe.Missed, probe.Unmeasurable, probe.NotApplicable,
			}[rng.IntN(4)]
		}
	}
	return r
}

func TestWindowsAreThoseOfAPlainCount(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			l, s := newLive(t, Options{})
			mean := []time.Duration{time.Second, 15 * time.Second, 2 * time.Minute, 20 * time.Minute}[seed%4]
			ref, now := &reference{}, l.start
			for range 2000 {
				now = now.Add(time.Duration(rng.ExpFloat64() * float64(mean)))
				if rng.Float64() < 0.002 {
					now = now.Add(time.Duration(rng.Int64N(int64(100 * time.Hour)))) // a prober that stood still
				}
				r := randomResult(rng, now)
				s.Observe(r)
				ref.observe(r)
				if rng.Float64() > 0.01 {
					continue
				}
				now = now.Add(time.Duration(rng.Int64N(int64(mean))))
				l.Status(now, StatusOptions{})
				for window := range windowCount {
					for slo, o := range s.slos {
						got, want := s.memory.count(window, slo), ref.count(o.name, begin(now, window))
						if got != want {
							t.Fatalf("%s of %s at %s: %v, want %v", o.name, windowNames[window], now.Sub(l.start), got, want)
						}
					}
				}
			}
		})
	}
}

// What the windows count is what goodput_slo_events_total counts.
func TestVerdictsAreCountedAsByTheMetrics(t *testing.T) {
	l, s := newLive(t, Options{})
	metrics := collector.New(collector.Options{})
	metrics.Update(testConfig(s.config))
	rng, now := rand.New(rand.NewPCG(3, 3)), l.start
	for range 1000 {
		now = now.Add(15 * time.Second)
		r := randomResult(rng, now)
		s.Observe(r)
		metrics.Series(s.key).Observe(r)
	}

	want := map[string]count{}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != "goodput_slo_events_total" {
				continue
			}
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			c, n := want[labels["slo"]], uint32(m.GetCounter().GetValue())
			if labels["result"] == "good" {
				c.good = n
			} else {
				c.bad = n
			}
			want[labels["slo"]] = c
		}
	}
	got := map[string]count{}
	for slo, o := range s.slos {
		got[o.name] = s.memory.count(d1, slo)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(count{})); diff != "" {
		t.Error(diff)
	}
}

func TestWindowsBeginAtMostHalfABucketOff(t *testing.T) {
	l, s := newLive(t, Options{})
	now := l.start
	for range 6000 {
		now = now.Add(15 * time.Second)
		s.Observe(good(now))
	}
	s.memory.slide(l.instant(now))
	for window := range windowCount {
		want := min(float64(spans[window]/(15*time.Second)), 6000)
		got, off := float64(s.memory.count(window, goodput).good), 0.0
		if window >= h2 {
			off = 10 // 150 s
		}
		if math.Abs(got-want) > off {
			t.Errorf("%v attempts in %s, want %v ± %v", got, windowNames[window], want, off)
		}
	}
}

func TestWindowsAreTheSameAfterARestart(t *testing.T) {
	before, s := newLive(t, Options{})
	before.start = before.start.Add(-36 * time.Hour)
	var journal []*probe.Result
	rng := rand.New(rand.NewPCG(7, 7))
	for at := before.start; !at.After(time.Now()); at = at.Add(30 * time.Second) {
		r := randomResult(rng, at)
		s.Observe(r)
		journal = append(journal, r)
	}
	after, restored := newLive(t, Options{})
	for _, r := range journal {
		read := *r
		read.Time = r.Time.Round(0) // without the monotonic reading
		restored.Restore(&read)
	}

	now := time.Now()
	ignore := []cmp.Option{
		cmpopts.IgnoreFields(Status{}, "Started"), cmpopts.IgnoreFields(SeriesStatus{}, "Since"), cmpopts.IgnoreFields(Probe{}, "ID"),
	}
	all := StatusOptions{Probes: Strip}
	if diff := cmp.Diff(before.Status(now, all), after.Status(now, all), ignore...); diff != "" {
		t.Errorf("before and after the restart:\n%s", diff)
	}
}

func TestRestoreLeavesOutTheFuture(t *testing.T) {
	l, s := newLive(t, Options{})
	s.Restore(failed(time.Now().Add(time.Hour)))
	s.Restore(good(time.Now()))
	st := l.Status(time.Now(), StatusOptions{Key: s.key}).Series[0]
	if diff := cmp.Diff([]OutcomeCount{{Outcome: "good", Count: 1}}, st.Outcomes); diff != "" {
		t.Error(diff)
	}
}

func TestWilsonIntervalsAreThoseOfTheRules(t *testing.T) {
	for _, tt := range []struct {
		k, n, z, lower, upper float64
	}{
		{0, 20, z95, 0, 0.1611},
		{1, 20, z95, 0.0089, 0.2361},
		{35, 240, z99, 0.1007, 0.2066},
		{5, 5, z99, 0.4802, 1},
	} {
		lower, upper := wilson(tt.k, tt.n, tt.z)
		if math.Abs(lower-tt.lower) > 1e-4 || math.Abs(upper-tt.upper) > 1e-4 {
			t.Errorf("%v of %v: %.4f to %.4f, want %.4f to %.4f", tt.k, tt.n, lower, upper, tt.lower, tt.upper)
		}
	}
}

func TestASLOWithoutEventsHasNoRatio(t *testing.T) {
	l, s := newLive(t, Options{})
	r := good(l.start)
	r.Judgments[3].Verdict = probe.NotApplicable // tpot of a one-token answer
	s.Observe(r)
	for _, o := range l.Status(l.start, StatusOptions{}).Series[0].SLOs {
		w := o.Windows[0]
		applies := o.Name != config.CriterionTPOT
		if (w.Ratio != nil) != applies || (w.Good == 1) != applies || w.Bad != 0 {
			t.Errorf("%s: %+v", o.Name, w)
		}
	}
}
