//go:build bench && linux

package accuracy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"goodput_exporter/probe"
	"goodput_exporter/probe/load"
	"goodput_exporter/probe/probetest"
	"goodput_exporter/probe/workload"
)

const (
	loadStreams = 256                  // at once, paced
	loadEach    = 3                    // of each, in a row
	loadRamp    = 2 * time.Millisecond // between the first requests, as goodputctl has it
	loadMany    = 20_000               // requests of the run whose memory is watched
)

// loadRuns are the figures of load.Do in each repeat, beside those of the plain client and of other load generators.
type loadRuns struct {
	plainRate, rate []float64 // streams a second, each of one write, on one core
	plainCPU, cpu   []float64 // seconds per 1,000 paced streams
	plainLag, lag   []float64 // event lag p99 of paced streams, in ms
	e2e             []float64 // median of |E2E - truth| of paced streams, in ms
	most            []float64 // paced streams that the endpoint saw at once

	whole  wholeRuns
	memory memoryOfLoad
}

func runLoad(t *testing.T, out io.Writer, repeats int) *loadRuns {
	t.Helper()
	l := &loadRuns{whole: runWhole(t, out, repeats)}
	l.catchUp(t, out, repeats)
	l.paced(t, out, repeats)
	server := startTruthServer(t, truthSettings{Mode: "batch", Tokens: pacedTokens})
	startChild(t, "load", loadSettings{URL: server.URL, Requests: loadMany, Concurrency: catchUpStreams}).read(t, &l.memory)
	return l
}

// catchUp lets load.Do and the plain client take whole streams, each of one write, in turns. The client has one core, the
// server another.
func (l *loadRuns) catchUp(t *testing.T, out io.Writer, repeats int) {
	t.Helper()
	server := startTruthServer(t, truthSettings{Mode: "batch", Tokens: pacedTokens}, "GOMAXPROCS=1")
	defer apart(t, out, server)()
	rate := func(r run) float64 { return float64(len(r.streams)) / r.took.Seconds() }
	for i := range repeats {
		fmt.Fprintf(out, "repeat %d of %d: load, streams in one write\n", i+1, repeats)
		c := newPlain(t, server)
		end := time.Now().Add(catchUpTime)
		l.plainRate = append(l.plainRate, rate(follow(t, c, catchUpStreams, func(int) bool { return time.Now().Before(end) })))
		c.close()
		r := followLoad(t, server, load.Options{Level: load.Level{Concurrency: catchUpStreams}, Duration: catchUpTime})
		l.rate = append(l.rate, rate(r))
	}
}

// paced lets both take paced streams, which share the cores with their server.
func (l *loadRuns) paced(t *testing.T, out io.Writer, repeats int) {
	t.Helper()
	server := startTruthServer(t, paced)
	const ms = 1000 // µs
	for i := range repeats {
		fmt.Fprintf(out, "repeat %d of %d: load, %d paced streams\n", i+1, repeats, loadStreams)
		c := newPlain(t, server)
		f := measure(t, server, c, condition{streams: loadStreams, each: loadEach})
		l.plainCPU, l.plainLag = append(l.plainCPU, f.cpu), append(l.plainLag, f.lagP99/ms)

		r := followLoad(t, server, load.Options{
			Level: load.Level{Concurrency: loadStreams}, Ramp: loadStreams * loadRamp, Requests: loadStreams * loadEach,
		})
		truths := server.truths(t)
		f = compare(t, r, truths)
		l.cpu, l.lag = append(l.cpu, f.cpu), append(l.lag, f.lagP99/ms)
		l.e2e = append(l.e2e, micros(quantile(errorsOfE2E(r, truths), 0.5))/ms)
		l.most = append(l.most, float64(mostAtOnce(r, truths)))
	}
}

// followLoad runs load.Do, and returns of it what follow returns of a client.
func followLoad(t *testing.T, s *truthServer, o load.Options) run {
	t.Helper()
	var streams []streamed
	o.Observe = func(rec load.Record, r *probe.Result) {
		st, err := streamOf(r)
		if err != nil {
			t.Error(err)
			return
		}
		st.warm = rec.ConnectionReused
		streams = append(streams, st)
	}
	w, asker, err := wireLoad(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	r := weigh(func() {
		if _, err := load.Do(t.Context(), asker, o); err != nil {
			t.Error(err)
		}
	})
	r.streams = streams
	if t.Failed() {
		t.FailNow()
	}
	return r
}

// wireLoad returns a prober of a truth server, and what asks the prompts of its scenario.
func wireLoad(url string) (wired, load.Asker, error) {
	w, err := wire(url, "", probe.NewClients())
	if err != nil {
		return w, nil, err
	}
	source, err := workload.New(w.series.Scenario, 1)
	return w, load.NewAsker(w.prober, source), err
}

// errorsOfE2E returns |E2E - (last write - receipt of the request)| of each stream.
func errorsOfE2E(r run, truths map[string]probetest.Truth) []time.Duration {
	var errs []time.Duration
	for _, st := range r.streams {
		truth := truths[st.id]
		e2e, is := st.tokens[len(st.tokens)-1].Sub(st.start), truth.Writes[len(truth.Writes)-1].Sub(truth.Received)
		errs = append(errs, (e2e - is).Abs())
	}
	return errs
}

// mostAtOnce returns how many of the streams the server had received and not ended at one instant, at most.
func mostAtOnce(r run, truths map[string]probetest.Truth) int {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, st := range r.streams {
		truth := truths[st.id]
		changes = append(changes, change{truth.Received, 1}, change{truth.Writes[len(truth.Writes)-1], -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	most, now := 0, 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}

// loadSettings are those of a process that runs a load and watches its own memory.
type loadSettings struct {
	URL                   string
	Requests, Concurrency int
}

// memoryOfLoad is what such a process says of itself.
type memoryOfLoad struct {
	Record  float64 // bytes of heap that each record is worth, after the run
	PeakRSS float64 // MB
}

// makeLoad is the role of that process.
func makeLoad(encoded []byte, out *json.Encoder) error {
	var settings loadSettings
	if err := json.Unmarshal(encoded, &settings); err != nil {
		return err
	}
	w, asker, err := wireLoad(settings.URL)
	if err != nil {
		return err
	}
	defer w.close()
	o := load.Options{Level: load.Level{Concurrency: settings.Concurrency}, Requests: settings.Concurrency}
	if _, err := load.Do(context.Background(), asker, o); err != nil { // what is there once is no record's
		return err
	}
	before := heapInUse()
	o.Requests = settings.Requests
	r, err := load.Do(context.Background(), asker, o)
	if err != nil {
		return err
	}
	m := memoryOfLoad{Record: (heapInUse() - before) / float64(len(r.Records)), PeakRSS: memory("VmHWM")}
	if report := load.Summarize(r); report.Counts.Successes != settings.Requests {
		return fmt.Errorf("%d of %d requests succeeded", report.Counts.Successes, settings.Requests)
	}
	if err := out.Encode(m); err != nil {
		return err
	}
	untilEnd()
	return nil
}

// heapInUse returns the bytes of heap that are reachable.
func heapInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func (l *loadRuns) goals() []goal {
	return append([]goal{
		atLeast(0.8, "x plain", "load: streams a second in catch-up on one core", ratios(l.rate, l.plainRate)),
		atMost(1.3, "x plain", "load: CPU per paced stream, 256 at once", ratios(l.cpu, l.plainCPU)),
		atMost(1, "ms", "load: event lag p99, 256 at once", l.lag),
		atMost(5, "ms", "load: E2E error p50, 256 at once", l.e2e),
		atLeast(loadStreams, "streams", "load: at once by the endpoint's word", l.most),
		atMost(1, "kB", "load: memory of a record", []float64{l.memory.Record / 1000}),
		atMost(96, "MB", "load: RSS, peak, of 20,000 requests", []float64{l.memory.PeakRSS}),
	}, l.whole.goals()...)
}

// ratios returns values as multiples of others of the same repeat.
func ratios(values, others []float64) []float64 {
	var out []float64
	for i, v := range others {
		out = append(out, values[i]/v)
	}
	return out
}

func (l *loadRuns) print(w io.Writer) {
	fmt.Fprintln(w, "load\tplain\tours\tours / plain")
	for _, row := range []struct {
		name        string
		plain, ours []float64
	}{
		{"streams/s in one write, one core", l.plainRate, l.rate},
		{"CPU-s/1,000, 256 paced", l.plainCPU, l.cpu},
		{"event lag p99 ms, 256 paced", l.plainLag, l.lag},
	} {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", row.name, spread(row.plain), spread(row.ours), spread(ratios(row.ours, row.plain)))
	}
	fmt.Fprintf(w, "E2E error p50 ms, 256 paced\t\t%s\n", spread(l.e2e))
	fmt.Fprintf(w, "streams at once\t\t%s\n", spread(l.most))
	fmt.Fprintf(w, "%d requests\t\t%.0f bytes of heap a record, RSS at most %.0f MB\n", loadMany, l.memory.Record, l.memory.PeakRSS)
	l.whole.print(w)
}
