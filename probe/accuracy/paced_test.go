//go:build bench && linux

package accuracy

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"goodput_exporter/probe/probetest"
)

const pacedTokens = 128

var paced = truthSettings{Tokens: pacedTokens, TTFT: [2]float64{0.050, 0.060}, Gap: [2]float64{0.010, 0.012}}

// condition is a load under which clients are compared.
type condition struct {
	name    string
	streams int
	each    int // streams in a row on each connection
	busy    bool
}

var conditions = []condition{
	{name: "4 streams", streams: 4, each: 6},
	{name: "256 streams", streams: 256, each: 3},
	{name: "16 streams, 2 busy loops", streams: 16, each: 4, busy: true},
}

// The clients that are compared.
const (
	plain    = "plain"
	ours     = "ours"
	reading  = "ours, read stamps"
	plainTLS = "plain, TLS"
	oursTLS  = "ours, TLS"
)

var contestants = []struct {
	name string
	tls  bool
	make func(*testing.T, *truthServer) client
}{
	{plain, false, newPlain},
	{ours, false, newOurs},
	{reading, false, newOursReading},
	{plainTLS, true, newPlain},
	{oursTLS, true, newOurs},
}

// figures are how far a client is from the truth, in microseconds, and what it costs.
type figures struct {
	gapP50, gapP99    float64 // |gap between tokens - gap between writes|
	ttftAll, ttftWarm float64 // p99 of |TTFT - (first write - receipt of the request)|; on a new connection it has the dial in it
	lagP99            float64 // arrival by the client - write
	cpu               float64 // seconds per 1,000 streams

	streams        int // in all
	kernel, server int // of them those that the kernel stamped for the client, and for the server
}

// pacedRuns are the figures of each repeat, by condition and client.
type pacedRuns map[string]map[string][]figures

// runPaced measures every client under every condition, one after the other, repeats times.
func runPaced(t *testing.T, out io.Writer, repeats int) pacedRuns {
	t.Helper()
	runs := pacedRuns{}
	for _, cond := range conditions {
		runs[cond.name] = map[string][]figures{}
	}
	secure := paced
	secure.TLS = true
	servers := map[bool]*truthServer{false: startTruthServer(t, paced), true: startTruthServer(t, secure)}
	for i := range repeats {
		for _, cond := range conditions {
			fmt.Fprintf(out, "repeat %d of %d: %s\n", i+1, repeats, cond.name)
			order := slices.Clone(contestants)
			if i%2 == 1 { // so that what drifts favours nobody
				slices.Reverse(order)
			}
			t.Run(cond.name, func(t *testing.T) {
				if cond.busy {
					var ready string
					startChild(t, "busy", nil).read(t, &ready)
				}
				for _, c := range order {
					f := measure(t, servers[c.tls], c.make(t, servers[c.tls]), cond)
					runs[cond.name][c.name] = append(runs[cond.name][c.name], f)
				}
			})
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	return runs
}

// measure runs one client once and compares what it says with the truth.
func measure(t *testing.T, s *truthServer, c client, cond condition) figures {
	t.Helper()
	defer c.close()
	r := follow(t, c, cond.streams, func(done int) bool { return done < cond.each })
	return compare(t, r, s.truths(t))
}

// compare returns how far a run is from the truth.
func compare(t *testing.T, r run, truths map[string]probetest.Truth) figures {
	t.Helper()
	var gaps, lags, all, warm []time.Duration
	f := figures{cpu: r.cpuPer1000(), streams: len(r.streams)}
	for _, st := range r.streams {
		truth, ok := truths[st.id]
		if !ok || len(truth.Writes) != pacedTokens || len(st.tokens) != pacedTokens {
			t.Fatalf("stream %s: %d tokens, in truth %d", st.id, len(st.tokens), len(truth.Writes))
		}
		ttft := (st.tokens[0].Sub(st.start) - truth.Writes[0].Sub(truth.Received)).Abs()
		all = append(all, ttft)
		if st.warm {
			warm = append(warm, ttft)
		}
		for i, w := range truth.Writes {
			lags = append(lags, st.tokens[i].Sub(w))
			if i > 0 {
				gaps = append(gaps, (st.tokens[i].Sub(st.tokens[i-1]) - w.Sub(truth.Writes[i-1])).Abs())
			}
		}
		if st.kernel {
			f.kernel++
		}
		if truth.Kernel {
			f.server++
		}
	}
	f.gapP50, f.gapP99 = micros(quantile(gaps, 0.5)), micros(quantile(gaps, 0.99))
	f.ttftAll, f.ttftWarm = micros(quantile(all, 0.99)), micros(quantile(warm, 0.99))
	f.lagP99 = micros(quantile(lags, 0.99))
	return f
}

// of returns one figure of a client in all repeats.
func (r pacedRuns) of(condition, client string, figure func(figures) float64) []float64 {
	var values []float64
	for _, f := range r[condition][client] {
		values = append(values, figure(f))
	}
	return values
}

// ratio returns one figure of a client as a multiple of another client's in the same repeat.
func (r pacedRuns) ratio(condition, client, to string, figure func(figures) float64) []float64 {
	values := r.of(condition, client, figure)
	for i, v := range r.of(condition, to, figure) {
		values[i] /= v
	}
	return values
}

func gapP99(f figures) float64   { return f.gapP99 }
func ttftWarm(f figures) float64 { return f.ttftWarm }
func cpu(f figures) float64      { return f.cpu }

func (r pacedRuns) goals() []goal {
	const idle, many, busy = "4 streams", "256 streams", "16 streams, 2 busy loops"
	goals := []goal{
		atMost(0.6, "x plain", idle+": gap error p99", r.ratio(idle, ours, plain, gapP99)),
		atMost(0.3, "x plain", idle+": TTFT error p99, warm", r.ratio(idle, ours, plain, ttftWarm)),
		atMost(0.15, "x plain", many+": gap error p99", r.ratio(many, ours, plain, gapP99)),
		atMost(100, "µs", many+": TTFT error p99, warm", r.of(many, ours, ttftWarm)),
		atMost(0.05, "x plain", busy+": gap error p99", r.ratio(busy, ours, plain, gapP99)),
		atMost(100, "µs", busy+": gap error p99", r.of(busy, ours, gapP99)),
	}
	for _, cond := range conditions {
		goals = append(goals, atMost(0.2, "x plain", cond.name+", TLS: gap error p99", r.ratio(cond.name, oursTLS, plainTLS, gapP99)))
	}
	for _, cond := range conditions {
		goals = append(goals, atMost(1.25, "x plain", cond.name+", read stamps: gap error p99", r.ratio(cond.name, reading, plain, gapP99)))
	}
	return append(goals, atMost(1.3, "x plain", many+": CPU per stream", r.ratio(many, ours, plain, cpu)))
}

// print prints the medians of all figures.
func (r pacedRuns) print(w io.Writer) {
	fmt.Fprintln(w, "condition\tclient\tgap p50\tgap p99\tTTFT p99 warm\tTTFT p99 all\tlag p99\tCPU-s/1,000\tkernel stamps")
	for _, cond := range conditions {
		for _, c := range contestants {
			m := func(figure func(figures) float64) string { return spread(r.of(cond.name, c.name, figure)) }
			var streams, kernel, server int
			for _, f := range r[cond.name][c.name] {
				streams, kernel, server = streams+f.streams, kernel+f.kernel, server+f.server
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d, server %d, of %d\n", cond.name, c.name,
				m(func(f figures) float64 { return f.gapP50 }), m(gapP99), m(ttftWarm),
				m(func(f figures) float64 { return f.ttftAll }), m(func(f figures) float64 { return f.lagP99 }), m(cpu),
				kernel, server, streams)
		}
	}
}
