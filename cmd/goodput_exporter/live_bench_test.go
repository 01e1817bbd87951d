//go:build bench && linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/go-kit/log"
	dto "github.com/prometheus/client_model/go"

	"goodput_exporter/collector/journal"
	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/probetest"
)

// These tests measure; they fail where nothing could be measured. Run them alone:
//
//	go test -tags bench -run '^TestBench' -count 1 -v ./cmd/goodput_exporter

const (
	benchSeries   = 3000
	benchInterval = 15 * time.Second
	benchPast     = 2 * time.Hour // of made-up probes
	benchRepeats  = 5
)

// TestBenchPage measures the page and the API of 3,000 series: when nobody has asked within the second, and when somebody
// has, since what is rendered is shared for that long.
func TestBenchPage(t *testing.T) {
	f := &flags{telemetryPath: "/metrics"}
	cfg := thousands(t)
	bare := residentMemory(t)
	d := newDaemon(f, func() (*config.Config, error) { return cfg, nil }, log.NewNopLogger(), nothingOutside(t))
	defer d.close()
	if err := d.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	born := residentMemory(t)
	remember(d, cfg)
	full := residentMemory(t)
	handler, err := routes(d, f)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "path\tasked\tfirst byte\twhole\tbytes\tbytes, gzip\t")
	for _, path := range []string{
		"/", "/rows?key=target-0042/chat", "/series?target=target-0042&scenario=chat", "/api/v1/status?brief=1", "/api/v1/status",
	} {
		for _, asked := range []struct {
			name string
			wait time.Duration
		}{{"first", 1100 * time.Millisecond}, {"shared", 0}} {
			var first, whole []float64
			size, zipped := measure(t, server.URL+path, "").bytes, 0
			for range benchRepeats {
				time.Sleep(asked.wait)
				a := measure(t, server.URL+path, "gzip") // as browsers ask
				first, whole, zipped = append(first, a.first.Seconds()), append(whole, a.whole.Seconds()), a.bytes
			}
			fmt.Fprintf(w, "%s\t%s\t%.1f ms\t%.1f ms\t%d\t%d\t\n", path, asked.name, 1e3*middle(first), 1e3*middle(whole), size, zipped)
		}
	}
	_ = w.Flush() // to memory
	t.Logf("%d series, %v of probes every %v; medians of %d\n%s", benchSeries, benchPast, benchInterval, benchRepeats, &text)
	t.Logf("resident memory: %.0f MB before, %.0f MB with the series (metrics and live state, no probe yet), %.0f MB with their probes, %.0f MB after these requests",
		bare, born, full, residentMemory(t))
}

// thousands is a configuration of many series.
func thousands(t *testing.T) *config.Config {
	t.Helper()
	var all []*config.Series
	for i := range benchSeries {
		s := config.NewSeries("http://127.0.0.1:9/v1", "m")
		s.Target.Name = fmt.Sprintf("target-%04d", i)
		s.Target.Labels = map[string]string{"env": "prod", "region": []string{"eu", "us", "ap"}[i%3]}
		s.Scenario.Interval = benchInterval
		all = append(all, s)
	}
	cfg, err := config.New(all...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// remember gives every series a past. One of 20 is bad a third of the time, the others hardly ever.
func remember(d *daemon, cfg *config.Config) {
	duration := func(d time.Duration) *time.Duration { return &d }
	now, probes := time.Now(), int(benchPast/benchInterval)
	for n, sc := range cfg.Series {
		s := d.live.Series(sc.Key())
		for i := range probes {
			r := &probe.Result{
				Target: sc.Target.Name, Scenario: sc.Scenario.Name, Model: "m", Protocol: sc.Target.Protocol,
				Time: now.Add(-time.Duration(probes-i) * benchInterval), Outcome: probe.Good, StatusCode: 200,
				TTFT: duration(200 * time.Millisecond), TPOT: duration(20 * time.Millisecond), E2E: duration(3 * time.Second),
				TraceID: fmt.Sprintf("%032x", n*probes+i), Text: strings.Repeat("answer ", 100),
				ChunkGaps: slices.Repeat([]time.Duration{20 * time.Millisecond}, 100),
			}
			if n%20 == 0 && i%3 == 0 || (n*7+i)%500 == 0 {
				r.Outcome, r.Reason, r.StatusCode, r.Error = probe.ServerError, probe.ReasonOverloaded, 503, "the server is overloaded"
				r.TTFT, r.TPOT = nil, nil
			}
			s.Restore(r)
		}
	}
}

// answer is what came of one request.
type answer struct {
	first, whole time.Duration // until the first byte and the last
	bytes        int           // of the body
}

func measure(t *testing.T, url, encoding string) answer {
	t.Helper()
	var first time.Time
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { first = time.Now() }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Accept-Encoding", encoding)
	begin := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, resp.StatusCode, err)
	}
	return answer{first.Sub(begin), time.Since(begin), int(n)}
}

// residentMemory is that of this process, in MB, without what waits to be given back.
func residentMemory(t *testing.T) float64 {
	t.Helper()
	debug.FreeOSMemory()
	status := readFile(t, "/proc/self/status")
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(status)
	if found == nil {
		t.Fatal("no VmRSS")
	}
	kB, _ := strconv.ParseFloat(found[1], 64)
	return kB / 1e3
}

const (
	streamSeries  = 200 // every second: as many results as 3,000 series every 15 s
	streamClients = 200
	streamPhase   = 20 * time.Second
	streamRounds  = 3
)

// phase is a stretch of time with or without clients of the events.
type phase struct {
	begin, end time.Time
	delays     *dto.Histogram // start delays, as counted at its end less those at its begin
	cpu        float64        // of the daemon, seconds
	events     float64        // of all clients together, a second
	errors     []float64      // TTFT less the endpoint's truth, seconds, absolute
}

// TestBenchStreams measures what many readers of the events do to probing: a daemon of its own is read by none and by 200,
// in turns.
func TestBenchStreams(t *testing.T) {
	var mu sync.Mutex
	truth := map[string]time.Duration{} // TTFT by trace id
	url := simulate(t, probetest.Config{
		Models: []probetest.Model{{Name: "m", TTFT: probetest.Fixed(0.1), Gap: probetest.Fixed(0.02), OutputTokens: probetest.Fixed(8)}}, Seed: 1,
		Observe: func(s probetest.Served) {
			mu.Lock()
			defer mu.Unlock()
			if len(s.Writes) > 0 {
				truth[s.TraceID] = s.Writes[0].Sub(s.Received)
			}
		},
	})
	text, _, _ := strings.Cut(oneTarget(url), "- {name: one")
	for i := range streamSeries {
		text += fmt.Sprintf("- {name: t%d, url: %q, model: m, scenarios: [chat]}\n", i, url)
	}
	path := filepath.Join(t.TempDir(), "results.jsonl")
	p := spawn(t, "--config.file="+configure(t, text), "--journal.path="+path, "--metrics.full")
	eventually(t, "ready", func() bool { return get(t, p.url+"/-/ready").status == http.StatusOK })
	phases := map[int][]*phase{}
	for range streamRounds {
		for _, clients := range []int{0, streamClients} {
			phases[clients] = append(phases[clients], runPhase(t, p, clients))
		}
	}
	p.signal(t, syscall.SIGTERM)
	_ = p.cmd.Wait() // and so the journal is whole

	if _, err := journal.Replay(path, time.Time{}, func(_ string, r *probe.Result) {
		want, known := truth[r.TraceID]
		for _, all := range phases {
			for _, ph := range all {
				if known && r.TTFT != nil && r.ConnectionReused && r.Time.After(ph.begin) && r.Time.Before(ph.end) {
					ph.errors = append(ph.errors, math.Abs((*r.TTFT - want).Seconds()))
				}
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d series every second, in turns of %v\n%s", streamSeries, streamPhase, streamTable(t, phases))
}

// runPhase watches the daemon while some clients read its events.
func runPhase(t *testing.T, p *process, clients int) *phase {
	t.Helper()
	read := startReaders(t, p.url, clients)
	ph := &phase{begin: time.Now()}
	before, cpu := startDelays(t, p.url), processCPU(t, p)
	time.Sleep(streamPhase)
	ph.end, ph.cpu = time.Now(), processCPU(t, p)-cpu
	ph.delays = startDelays(t, p.url)
	*ph.delays.SampleCount -= before.GetSampleCount()
	*ph.delays.SampleSum -= before.GetSampleSum()
	for i, b := range ph.delays.Bucket {
		*b.CumulativeCount -= before.Bucket[i].GetCumulativeCount()
	}
	ph.events = read() / time.Since(ph.begin).Seconds()
	return ph
}

// Of the process of the clients: where they read, and how many they are.
const readURL, readClients = "GOODPUT_BENCH_READ_URL", "GOODPUT_BENCH_READ_CLIENTS"

// startReaders starts a process of clients, and waits until each has an event. The function that it returns ends the process
// and tells how many events they got.
func startReaders(t *testing.T, url string, clients int) (read func() float64) {
	t.Helper()
	if clients == 0 {
		return func() float64 { return 0 }
	}
	said := &output{}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBenchReaders$", "-test.v")
	cmd.Env = append(os.Environ(), readURL+"="+url, fmt.Sprintf("%s=%d", readClients, clients))
	cmd.Stdout = said
	ends, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "every client reads", func() bool { return strings.Contains(said.String(), "reading") })
	return func() float64 {
		ends.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("the clients: %v\n%s", err, said)
		}
		found := regexp.MustCompile(`events: (\d+)`).FindStringSubmatch(said.String())
		if found == nil {
			t.Fatalf("the clients said:\n%s", said)
		}
		n, _ := strconv.ParseFloat(found[1], 64)
		return n
	}
}

// TestBenchReaders is the process of the clients. They take only what nobody else wants of the processor: in truth they sit
// at other machines.
func TestBenchReaders(t *testing.T) {
	clients, err := strconv.Atoi(os.Getenv(readClients))
	if err != nil {
		t.Skip("it is a part of TestBenchStreams")
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var readers, first sync.WaitGroup
	var events atomic.Int64
	first.Add(clients)
	for range clients {
		readers.Go(func() { readEvents(ctx, os.Getenv(readURL), &events, sync.OnceFunc(first.Done)) })
	}
	first.Wait()
	events.Store(0)
	fmt.Println("reading")
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Printf("events: %d\n", events.Load())
	cancel()
	readers.Wait()
}

// readEvents reads events until ctx ends, and counts them.
func readEvents(ctx context.Context, url string, events *atomic.Int64, first func()) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/events", http.NoBody)
	if err != nil {
		return
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buffer)
		if told := bytes.Count(buffer[:n], []byte("event: result")); told > 0 {
			events.Add(int64(told))
			first()
		}
		if err != nil {
			return
		}
	}
}

// startDelays are those of all series together.
func startDelays(t *testing.T, url string) *dto.Histogram {
	t.Helper()
	sum := &dto.Histogram{SampleCount: new(uint64), SampleSum: new(float64)}
	for _, sample := range parse(t, get(t, url+"/metrics").body)["goodput_start_delay_seconds"].GetMetric() {
		h := sample.GetHistogram()
		*sum.SampleCount += h.GetSampleCount()
		*sum.SampleSum += h.GetSampleSum()
		for i, b := range h.GetBucket() {
			if i == len(sum.Bucket) {
				sum.Bucket = append(sum.Bucket, &dto.Bucket{UpperBound: b.UpperBound, CumulativeCount: new(uint64)})
			}
			*sum.Bucket[i].CumulativeCount += b.GetCumulativeCount()
		}
	}
	if len(sum.Bucket) == 0 {
		t.Fatal("no goodput_start_delay_seconds")
	}
	return sum
}

// bucketQuantile is histogram_quantile of PromQL.
func bucketQuantile(h *dto.Histogram, q float64) float64 {
	rank, lower, below := q*float64(h.GetSampleCount()), 0.0, 0.0
	for _, b := range h.GetBucket() {
		n := float64(b.GetCumulativeCount())
		if n >= rank {
			return lower + (b.GetUpperBound()-lower)*(rank-below)/max(n-below, 1)
		}
		lower, below = b.GetUpperBound(), n
	}
	return lower
}

// processCPU is what a process has used, in seconds.
func processCPU(t *testing.T, p *process) float64 {
	t.Helper()
	text := readFile(t, fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // ticks, 100 a second on Linux
}

func streamTable(t *testing.T, phases map[int][]*phase) string {
	t.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "clients\tprobes\tstart delay, mean\tp99\tTTFT error, p50\tp99\tdaemon's CPU\tevents/s\t")
	for _, clients := range []int{0, streamClients} {
		for _, ph := range phases[clients] {
			if len(ph.errors) == 0 {
				t.Fatalf("nothing was measured with %d clients", clients)
			}
			slices.Sort(ph.errors)
			at := func(q float64) float64 { return 1e3 * ph.errors[int(q*float64(len(ph.errors)-1))] }
			took := ph.end.Sub(ph.begin).Seconds()
			fmt.Fprintf(w, "%d\t%d\t%.2f ms\t%.2f ms\t%.3f ms\t%.2f ms\t%.0f %%\t%.0f\t\n", clients, ph.delays.GetSampleCount(),
				1e3*ph.delays.GetSampleSum()/float64(ph.delays.GetSampleCount()), 1e3*bucketQuantile(ph.delays, 0.99),
				at(0.5), at(0.99), 100*ph.cpu/took, ph.events)
		}
	}
	_ = w.Flush() // to memory
	return text.String()
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
