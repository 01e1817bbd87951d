package live

import (
	"maps"
	"math"
	"slices"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// record is what is remembered of every probe of the last hour, in 40 bytes.
type record struct {
	at     instant // when the result was there
	sent   int64   // t_send by the wall clock, Unix nanoseconds
	number uint64  // of the result

	figures [figureCount]uint32 // in microseconds; 0 where there is none: none is that short

	good, bad       uint8 // verdicts by SLO, a bit each; neither: it does not apply
	outcome, reason uint8 // indexes into outcomes and reasons
}

// The figures of a record.
const (
	ttft = iota
	tpot
	e2e
	figureCount
)

var figureNames = [figureCount]string{config.CriterionTTFT, config.CriterionTPOT, config.CriterionE2E}

// Outcomes and reasons are closed sets, so that an index stands for each.
var (
	outcomes = slices.Concat(probe.Outcomes, probe.AbortedOutcomes)
	reasons  = func() []probe.Reason {
		set := map[probe.Reason]bool{"": true}
		for _, list := range probe.Reasons {
			for _, reason := range list {
				set[reason] = true
			}
		}
		return slices.Sorted(maps.Keys(set))
	}()
	outcomeIndex = indexOf(outcomes)
	reasonIndex  = indexOf(reasons)
)

func indexOf[T comparable](list []T) map[T]uint8 {
	index := make(map[T]uint8, len(list))
	for i, v := range list {
		index[v] = uint8(i)
	}
	return index
}

func newRecord(r *probe.Result, slos []slo) record {
	rec := record{
		figures: [figureCount]uint32{microseconds(r.TTFT), microseconds(r.TPOT), microseconds(r.E2E)},
		outcome: outcomeIndex[r.Outcome], reason: reasonIndex[r.Reason],
	}
	if r.Outcome.Attempt() {
		rec.judge(r, slos)
	}
	return rec
}

// judge sets the verdicts as goodput_slo_events_total counts them: those of goodput and availability come from the
// outcome, which every attempt has exactly one of.
func (rec *record) judge(r *probe.Result, slos []slo) {
	rec.set(goodput, r.Outcome == probe.Good)
	rec.set(availability, r.Outcome.Success())
	for _, j := range r.Judgments {
		for i := firstCriterion; i < len(slos); i++ {
			if slos[i].name == j.SLO && j.Verdict != probe.NotApplicable {
				rec.set(i, j.Verdict == probe.Met)
			}
		}
	}
}

func (rec *record) set(slo int, good bool) {
	if good {
		rec.good |= 1 << slo
	} else {
		rec.bad |= 1 << slo
	}
}

func (rec *record) is(o probe.Outcome) bool { return outcomes[rec.outcome] == o }
func (rec *record) attempt() bool           { return outcomes[rec.outcome].Attempt() }

// figure returns a figure in seconds, and false where the probe has none that counts: how long a failure took is no
// latency.
func (rec *record) figure(f int) (float64, bool) {
	if f == e2e && !outcomes[rec.outcome].Success() {
		return 0, false
	}
	return float64(rec.figures[f]) / 1e6, rec.figures[f] > 0
}

func microseconds(d *time.Duration) uint32 {
	if d == nil {
		return 0
	}
	return uint32(min(max(d.Microseconds(), 1), math.MaxUint32))
}

// records are those of at least the last hour and of the last minRecords probes, in order of time.
type records struct {
	ring    []record
	head    int // where the oldest stands once the ring is full
	windows [h2]recordWindow
}

// recordWindow sums the newest n records.
type recordWindow struct {
	n     int
	tally tally
}

const (
	minRecords = 64   // a power of two, since the ring doubles; at least Strip
	maxRecords = 8192 // more than an hour of the shortest interval
)

// add remembers a record.
func (r *records) add(rec record) {
	r.push(rec)
	for i := range r.windows {
		r.windows[i].n++
		r.windows[i].tally.add(&rec)
	}
}

// push puts a record in the ring, which grows only while it holds less than an hour.
func (r *records) push(rec record) {
	switch n := len(r.ring); {
	case n < cap(r.ring):
		r.ring = append(r.ring, rec)
	case n == 0:
		r.ring = append(make([]record, 0, minRecords), rec)
	case n < maxRecords && r.ring[r.head].at > rec.at-instant(time.Hour):
		grown := append(make([]record, 0, 2*n), r.ring[r.head:]...)
		grown = append(grown, r.ring[:r.head]...)
		grown = append(grown, rec)
		r.ring, r.head = grown, 0
	default:
		for i := range r.windows {
			if r.windows[i].n == n {
				r.windows[i].shrink(r)
			}
		}
		r.ring[r.head] = rec
		r.head = (r.head + 1) % n
	}
}

// slide lets go of the records that are not later than the begin of a window which ends now.
func (r *records) slide(now instant) {
	for i := range r.windows {
		w := &r.windows[i]
		for w.n > 0 && r.back(w.n-1).at <= now-instant(spans[i]) {
			w.shrink(r)
		}
	}
}

// shrink lets go of the oldest record of the window.
func (w *recordWindow) shrink(r *records) {
	w.n--
	w.tally.remove(r.back(w.n))
}

func (r *records) len() int { return len(r.ring) }

// back returns the i-th record counted from the newest, which is 0.
func (r *records) back(i int) *record {
	at := r.head - 1 - i
	if at < 0 {
		at += len(r.ring)
	}
	return &r.ring[at]
}

// since iterates from the newest record to the oldest one that is later than from.
func (r *records) since(from instant) func(yield func(*record) bool) {
	return func(yield func(*record) bool) {
		for i := range r.len() {
			if rec := r.back(i); rec.at <= from || !yield(rec) {
				return
			}
		}
	}
}
