//go:build bench && linux

package accuracy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"goodput_exporter/collector"
	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/schedule"
)

// footprintSettings are those of a process that probes many series.
type footprintSettings struct {
	URL           string
	Series        int
	Settle, Watch time.Duration
}

// footprint is what such a process says of itself, and its scraper of it.
type footprint struct {
	Probes, NotGood int
	FirstBad        string
	CPU             float64 // share of a core
	RSS, PeakRSS    float64 // MB
	IntervalP50     float64 // ms; |start to start - interval|
	IntervalP99     float64
	Drift           float64 // ms; how much later than scheduled the last starts are than the first
	In100ms, In1s   int     // the most starts in any

	scrapes         []float64 // ms, each with gzip
	text, zipped    int       // bytes
	samples         int       // lines
	samplesATarget  float64
	series          int
	settled, probed time.Duration
}

// runFootprint probes many series in a process of its own, which is scraped as Prometheus does it.
func runFootprint(t *testing.T, out io.Writer, settings footprintSettings) *footprint {
	t.Helper()
	fmt.Fprintf(out, "footprint: %d series, %s after %s of settling\n", settings.Series, settings.Watch, settings.Settle)
	settings.URL = startTruthServer(t, truthSettings{Tokens: 16, TTFT: paced.TTFT, Gap: paced.Gap}).URL
	c := startChild(t, "footprint", settings)
	var metrics string
	c.read(t, &metrics)
	f := &footprint{series: settings.Series, settled: settings.Settle, probed: settings.Watch}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { f.scrape(t, metrics, done) })
	c.read(t, f)
	close(done)
	wg.Wait()
	if f.NotGood > 0 || f.Probes == 0 {
		t.Fatalf("%d of %d probes were not good; the first: %s", f.NotGood, f.Probes, f.FirstBad)
	}
	return f
}

// scrape scrapes until done, and once more to see how much it is.
func (f *footprint) scrape(t *testing.T, url string, done <-chan struct{}) {
	tick := time.NewTicker(config.DefaultInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_, took := get(t, url, "gzip")
			f.scrapes = append(f.scrapes, took.Seconds()*1000)
		case <-done:
			body, _ := get(t, url, "identity")
			zipped, _ := get(t, url, "gzip")
			f.text, f.zipped = len(body), len(zipped)
			ofTargets := 0
			for line := range strings.Lines(string(body)) {
				if line[0] != '#' {
					f.samples++
				}
				if line[0] != '#' && strings.Contains(line, `target="`) {
					ofTargets++
				}
			}
			f.samplesATarget = float64(ofTargets) / float64(f.series)
			return
		}
	}
}

// get returns a body as it was sent, and how long that took.
func get(t *testing.T, url, encoding string) ([]byte, time.Duration) {
	req, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Error(err)
		return nil, 0
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	req.Header.Set("Accept-Encoding", encoding)
	start := time.Now()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return nil, 0
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	if encoding == "gzip" {
		if _, err := gzip.NewReader(bytes.NewReader(body)); err != nil {
			t.Errorf("the scrape is not compressed: %v", err)
		}
	}
	return body, time.Since(start)
}

func (f *footprint) goals() []goal {
	name := fmt.Sprintf("%d series: ", f.series)
	one := func(v float64) []float64 { return []float64{v} }
	return []goal{
		atMost(8, "% of a core", name+"CPU", one(f.CPU*100)),
		atMost(96, "MB", name+"RSS, peak", one(f.PeakRSS)),
		atMost(2, "ms", name+"interval error p99", one(f.IntervalP99)),
		atMost(0.1, "ms", name+"drift", one(math.Abs(f.Drift))),
		atMost(10, "starts", name+"in any 100 ms", one(float64(f.In100ms))),
		atMost(75, "starts", name+"in any second", one(float64(f.In1s))),
		atMost(130, "series", name+"scraped per target", one(f.samplesATarget)),
	}
}

func (f *footprint) print(w io.Writer) {
	fmt.Fprintf(w, "%d series, every %s\t\n", f.series, config.DefaultInterval)
	fmt.Fprintf(w, "probes\t%d, all good\n", f.Probes)
	fmt.Fprintf(w, "CPU, scrapes included\t%.1f %% of a core, %.2f ms a probe\n", f.CPU*100, f.CPU*1000*f.probed.Seconds()/float64(f.Probes))
	fmt.Fprintf(w, "RSS, peak\t%.0f MB, %.0f MB\n", f.RSS, f.PeakRSS)
	fmt.Fprintf(w, "interval error p50, p99\t%.2f ms, %.2f ms\n", f.IntervalP50, f.IntervalP99)
	fmt.Fprintf(w, "drift\t%+.3f ms\n", f.Drift)
	fmt.Fprintf(w, "most starts in 100 ms, 1 s\t%d, %d\n", f.In100ms, f.In1s)
	fmt.Fprintf(w, "scrape with gzip, reading included\t%s ms\n", spread(f.scrapes))
	fmt.Fprintf(w, "scrape\t%d samples, %.2f MB, with gzip %.2f MB\n", f.samples, float64(f.text)/1e6, float64(f.zipped)/1e6)
}

// leaveFootprint is the role of a daemon with many targets.
func leaveFootprint(encoded []byte, out *json.Encoder) error {
	var settings footprintSettings
	if err := json.Unmarshal(encoded, &settings); err != nil {
		return err
	}
	d, err := newDaemon(settings)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go func() { _ = http.Serve(l, d.collector.Handler()) }()
	if err := out.Encode("http://" + l.Addr().String()); err != nil {
		return err
	}

	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { d.scheduler.Run(ctx) })
	time.Sleep(settings.Settle)
	from, cpu := time.Now(), cpuTime()
	time.Sleep(settings.Watch)
	f := footprint{CPU: (cpuTime() - cpu).Seconds() / time.Since(from).Seconds()}
	f.RSS, f.PeakRSS = memory("VmRSS"), memory("VmHWM")
	d.report(&f, from, time.Now())
	if err := out.Encode(f); err != nil {
		return err
	}
	untilEnd()
	return nil
}

// daemon is a scheduler, its probers and a collector, and remembers each start.
type daemon struct {
	scheduler *schedule.Scheduler
	collector *collector.Collector
	clients   *probe.Clients

	mu       sync.Mutex
	starts   [][]start // by series
	probes   int
	notGood  int
	firstBad string
}

type start struct{ sent, scheduled time.Time }

func newDaemon(settings footprintSettings) (*daemon, error) {
	var series []*config.Series
	for i := range settings.Series {
		s := config.NewSeries(settings.URL, "truth")
		s.Target.Name = fmt.Sprintf("target-%04d", i)
		series = append(series, s)
	}
	cfg, err := config.New(series...)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, r := range schedule.Reasons {
		reasons = append(reasons, string(r))
	}
	d := &daemon{
		scheduler: schedule.New(schedule.Options{Vantage: "bench"}),
		collector: collector.New(collector.Options{SkipReasons: reasons}),
		clients:   probe.NewClients(),
		starts:    make([][]start, len(cfg.Series)),
	}
	d.collector.Update(cfg)
	var tasks []*schedule.Task
	for i, s := range cfg.Series {
		task, err := d.task(i, s)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, task)
	}
	return d, d.scheduler.Update(context.Background(), tasks)
}

func (d *daemon) task(i int, s *config.Series) (*schedule.Task, error) {
	client, err := d.clients.Get(s.Target)
	if err != nil {
		return nil, err
	}
	prober, err := probe.New(s, client, "goodput_exporter/bench")
	if err != nil {
		return nil, err
	}
	metrics := d.collector.Series(s.Key())
	return &schedule.Task{
		Key: s.Key(), Interval: s.Scenario.Interval,
		Run: func(ctx context.Context, slot schedule.Slot) int {
			metrics.SlotStarted(slot.Delay)
			metrics.ProbeStarted()
			defer metrics.ProbeEnded()
			r := prober.Probe(ctx)
			metrics.Observe(r)
			d.remember(i, r, slot)
			return 0
		},
		Skipped: func(reason schedule.Reason, slots int) { metrics.SlotsSkipped(string(reason), slots) },
	}, nil
}

func (d *daemon) remember(i int, r *probe.Result, slot schedule.Slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.starts[i] = append(d.starts[i], start{r.Time, slot.Scheduled})
	d.probes++
	if r.Outcome != probe.Good && r.Outcome != probe.Canceled {
		d.notGood++
		if d.firstBad == "" {
			d.firstBad = fmt.Sprintf("%s (%s) %s", r.Outcome, r.Reason, r.Error)
		}
	}
}

// report writes what happened in a period.
func (d *daemon) report(f *footprint, from, to time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []time.Time
	var intervals, first, last []time.Duration
	for _, starts := range d.starts {
		starts = slices.DeleteFunc(slices.Clone(starts), func(s start) bool { return s.sent.Before(from) || s.sent.After(to) })
		for i, s := range starts {
			all = append(all, s.sent)
			if i > 0 {
				intervals = append(intervals, (s.sent.Sub(starts[i-1].sent) - config.DefaultInterval).Abs())
			}
		}
		if n := len(starts); n > 1 {
			first = append(first, starts[0].sent.Sub(starts[0].scheduled))
			last = append(last, starts[n-1].sent.Sub(starts[n-1].scheduled))
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	f.Probes, f.NotGood, f.FirstBad = len(all), d.notGood, d.firstBad
	f.IntervalP50, f.IntervalP99 = micros(quantile(intervals, 0.5))/1000, micros(quantile(intervals, 0.99))/1000
	f.Drift = micros(quantile(last, 0.5)-quantile(first, 0.5)) / 1000
	f.In100ms, f.In1s = mostWithin(all, 100*time.Millisecond), mostWithin(all, time.Second)
}

// mostWithin returns the most of the sorted instants that lie in any span of length d.
func mostWithin(sorted []time.Time, d time.Duration) int {
	most, first := 0, 0
	for i, t := range sorted {
		for t.Sub(sorted[first]) >= d {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// memory returns a figure of /proc/self/status in MB.
func memory(name string) float64 {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		var kB float64
		if _, err := fmt.Sscanf(lines.Text(), name+": %f kB", &kB); err == nil {
			return kB * 1024 / 1e6
		}
	}
	return 0
}
