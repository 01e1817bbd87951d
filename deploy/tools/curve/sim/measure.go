package sim

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Month is the time to which rates of false pages refer.
const Month = 30 * day

// warmUp fills the longest window before anything is counted.
const warmUp = 3 * day

// Setup is what is simulated: one series of probes and the rules that watch it.
type Setup struct {
	Clock     Clock
	Objective float64 // share of good probes, 0 to 1
	Rules     []Rules
	Detector  func() Detector // nil where no rules read a score
	Seed      uint64
}

// FailuresFunc makes the failures of one stream.
type FailuresFunc func(*rand.Rand) Failures

// Rate is a mean count per stream with the standard error of its simulation. Where nothing was counted, Err is the 95 %
// upper bound of the rate.
type Rate struct {
	Mean, Err float64
}

// Times scales a rate to another number of streams.
func (r Rate) Times(n float64) Rate { return Rate{Mean: n * r.Mean, Err: n * r.Err} }

// Counts is how often rules fired.
type Counts struct {
	Pages   Rate // onsets of "some page is firing"
	Tickets Rate // the same of tickets
	// First is the share of pages that each alert began, by name.
	First map[string]float64
}

// FalseAlarms counts alerts on streams of one month each whose windows were full at their beginning, for each of the
// set-up's rules.
func (s Setup) FalseAlarms(failures FailuresFunc, streams int) []Counts {
	return s.count(failures, streams, warmUp, Month)
}

// ColdStarts counts alerts in the first hours of series that have just been born. Its rates are per stream.
func (s Setup) ColdStarts(failures FailuresFunc, streams int) []Counts {
	return s.count(failures, streams, 0, 6*time.Hour)
}

func (s Setup) count(failures FailuresFunc, streams int, before, during time.Duration) []Counts {
	type tally struct {
		pages, tickets float64
		first          []int
	}
	tallies := make([][]tally, streams)
	parallel(streams, func(i int) {
		rng := s.rng(i)
		stream := s.stream(rng, before+during)
		source := failures(rng)
		stream.Run(source, before)
		begin := stream.Scrapes() - 1
		stream.Run(source, during)
		tallies[i] = make([]tally, len(s.Rules))
		for r, rules := range s.Rules {
			e := NewEvaluator(rules, stream, s.Objective)
			t := &tallies[i][r]
			t.first = make([]int, len(e.Alerts))
			paged, ticketed := false, false
			for at := begin; at < stream.Scrapes(); at++ {
				page, ticket := e.Step(at)
				if page >= 0 && !paged {
					t.pages++
					t.first[page]++
				}
				paged = page >= 0
				if ticket >= 0 && !ticketed {
					t.tickets++
				}
				ticketed = ticket >= 0
			}
		}
	})

	counts := make([]Counts, len(s.Rules))
	for r, rules := range s.Rules {
		pages, tickets := make([]float64, streams), make([]float64, streams)
		first := map[string]float64{}
		names := NewEvaluator(rules, &Stream{Clock: s.Clock}, s.Objective).Alerts
		for i := range tallies {
			pages[i], tickets[i] = tallies[i][r].pages, tallies[i][r].tickets
			for a, n := range tallies[i][r].first {
				first[names[a].Name] += float64(n)
			}
		}
		counts[r] = Counts{Pages: meanOf(pages), Tickets: meanOf(tickets), First: first}
		for name := range first {
			first[name] /= max(1, counts[r].Pages.Mean*float64(streams))
		}
	}
	return counts
}

// Delays is how long it took from the onset of a drop until rules fired, in each of the simulated drops.
type Delays struct {
	Page, Ticket []time.Duration // sorted; Never where the horizon came first
	Probes       []time.Duration // probes of the drop until the page, sorted; as Durations for the same functions
	// First is the share of drops that each alert paged first, by name.
	First map[string]float64
}

// Never stands for an alert that did not fire within the horizon.
const Never = time.Duration(math.MaxInt64)

// Drop measures the delay of each of the set-up's rules on series that were healthy for days, with half of the error
// budget's share bad, and then fail a share of their probes. The onset has a random phase to probes, scrapes and
// evaluations.
func (s Setup) Drop(failures FailuresFunc, drops int, horizon time.Duration) []Delays {
	type found struct {
		page, ticket time.Duration
		probes       time.Duration
		first        string
	}
	all := make([][]found, drops)
	parallel(drops, func(i int) {
		rng := s.rng(i)
		stream := s.stream(rng, warmUp+horizon+time.Hour)
		healthy := NewIndependent(rng, (1-s.Objective)/2)
		stream.Run(healthy, warmUp)
		turn := &turning{left: rng.IntN(60), before: healthy, after: failures(rng)}
		firstBad := time.Duration(stream.Scrapes()-1)*s.Clock.Scrape + stream.due + time.Duration(turn.left)*s.Clock.Interval
		onset := firstBad - time.Duration(rng.Int64N(int64(s.Clock.Interval)))
		begin := stream.Scrapes() - 1
		stream.Run(turn, onset+horizon-time.Duration(begin)*s.Clock.Scrape)

		all[i] = make([]found, len(s.Rules))
		for r, rules := range s.Rules {
			e := NewEvaluator(rules, stream, s.Objective)
			f := found{page: Never, ticket: Never, probes: Never}
			for at := begin; at < stream.Scrapes() && (f.page == Never || f.ticket == Never); at++ {
				page, ticket := e.Step(at)
				if page >= 0 && f.page == Never && e.When(page, at) > onset {
					f.page, f.first = e.When(page, at)-onset, e.Alerts[page].Name
					f.probes = (f.page + onset - firstBad + s.Clock.Interval) / s.Clock.Interval
				}
				if ticket >= 0 && f.ticket == Never && e.When(ticket, at) > onset {
					f.ticket = e.When(ticket, at) - onset
				}
			}
			all[i][r] = f
		}
	})

	delays := make([]Delays, len(s.Rules))
	for r := range s.Rules {
		d := Delays{First: map[string]float64{}}
		for _, f := range all {
			d.Page = append(d.Page, f[r].page)
			d.Ticket = append(d.Ticket, f[r].ticket)
			d.Probes = append(d.Probes, f[r].probes)
			if f[r].first != "" {
				d.First[f[r].first] += 1 / float64(drops)
			}
		}
		slices.Sort(d.Page)
		slices.Sort(d.Ticket)
		slices.Sort(d.Probes)
		delays[r] = d
	}
	return delays
}

// Quantile returns a quantile of sorted delays and half the width of its interval of about 68 %, which is its simulation
// error; ok is false where the quantile is Never.
func Quantile(sorted []time.Duration, q float64) (value, err time.Duration, ok bool) {
	n := float64(len(sorted))
	at := func(rank float64) time.Duration {
		return sorted[int(min(max(rank, 0), n-1))]
	}
	value = at(q * n)
	if value == Never {
		return 0, 0, false
	}
	sigma := math.Sqrt(n * q * (1 - q))
	low, high := at(q*n-sigma), at(q*n+sigma)
	if high == Never {
		return value, value - low, true
	}
	return value, (high - low) / 2, true
}

// Share is the share of delays that are not Never.
func Share(sorted []time.Duration) float64 {
	n, _ := slices.BinarySearch(sorted, Never)
	return float64(n) / float64(len(sorted))
}

// turning is the onset of a drop after some probes.
type turning struct {
	left          int
	before, after Failures
}

func (t *turning) Bad() bool {
	if t.left > 0 {
		t.left--
		return t.before.Bad()
	}
	return t.after.Bad()
}

func (s Setup) rng(stream int) *rand.Rand {
	return rand.New(rand.NewPCG(s.Seed, uint64(stream)))
}

func (s Setup) stream(rng *rand.Rand, length time.Duration) *Stream {
	var d Detector
	if s.Detector != nil {
		d = s.Detector()
	}
	stream := NewStream(rng, s.Clock, d)
	stream.grow(int(length / s.Clock.Scrape))
	return stream
}

// meanOf estimates the mean of the streams' counts.
func meanOf(values []float64) Rate {
	var sum, squares float64
	for _, v := range values {
		sum += v
		squares += v * v
	}
	n := float64(len(values))
	mean := sum / n
	if sum == 0 {
		return Rate{Err: 3 / n}
	}
	return Rate{Mean: mean, Err: math.Sqrt(max(0, squares/n-mean*mean) / n)}
}

// parallel calls f for 0 to n−1 on all processors.
func parallel(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
