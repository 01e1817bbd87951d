package load

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// slotted is a service whose answers are computed and take no time: requests wait for one of its slots in the order in
// which they came, and hold it for the prefill and the decode.
type slotted struct {
	slots   int
	prefill float64                                       // seconds to the first token
	decode  func(random *rand.Rand, inFlight int) float64 // seconds from it to the last
	slo     config.SLO
	seed    uint64
}

// run answers n measured requests at a level: those of Poisson arrivals, or of users who ask again at once.
func (s slotted) run(level Level, n int) *Run {
	random := rand.New(rand.NewPCG(s.seed, math.Float64bits(level.Value())))
	free := times(make([]float64, s.slots))
	ready, at := times(make([]float64, level.Concurrency)), 0.0
	run := &Run{Level: level, Cores: 1, Window: Window{From: time.Hour}, About: About{SLO: s.slo}}
	warmup := n / 10
	for i := range warmup + n {
		if level.Open() {
			at += random.ExpFloat64() / level.Rate
		} else {
			at = heap.Pop(&ready).(float64)
		}
		first := max(at, heap.Pop(&free).(float64)) + s.prefill
		last := first + s.decode(random, level.Concurrency)
		heap.Push(&free, last)
		if !level.Open() {
			heap.Push(&ready, last)
		}
		rec := Record{
			N: i, Warmup: i < warmup, Intended: seconds64(at), Sent: seconds64(at), Ended: seconds64(last), TTFT: new(seconds64(first - at)),
			E2E: new(seconds64(last - at)),
		}
		s.judge(&rec)
		run.Records = append(run.Records, rec)
		if !rec.Warmup {
			run.Window.From = min(run.Window.From, rec.Sent)
			run.Window.LastSend, run.Window.To = max(run.Window.LastSend, rec.Sent), max(run.Window.To, rec.Ended)
		}
	}
	return run
}

func (s slotted) judge(rec *Record) {
	rec.Outcome = probe.Good
	all := probe.Met
	for _, c := range s.slo.Criteria {
		figure, v := map[string]*time.Duration{config.CriterionTTFT: rec.TTFT, config.CriterionE2E: rec.E2E}[c.Name], probe.Met
		if *figure > c.Limit {
			v, all, rec.Outcome = probe.Missed, probe.Missed, probe.SLOViolation
		}
		rec.Judgments = append(rec.Judgments, probe.Judgment{SLO: c.Name, Verdict: v})
	}
	rec.Judgments = append(rec.Judgments, probe.Judgment{SLO: probe.SLOGoodput, Verdict: all},
		probe.Judgment{SLO: probe.SLOAvailability, Verdict: probe.Met})
}

func seconds64(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// times is a heap of instants.
type times []float64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(float64)) }
func (t *times) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// erlangC is the chance that a request waits in a queue M/M/c with an offered load of a = λ/μ.
func erlangC(c int, a float64) float64 {
	b := 1.0 // Erlang B by its recursion
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b / (1 - a/float64(c)*(1-b))
}
