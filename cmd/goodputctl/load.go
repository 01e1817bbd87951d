package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"goodput_exporter/collector"
	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/load"
	"goodput_exporter/probe/workload"
)

// loadFlags are what bench and sweep have in common: the series, and how it is loaded.
type loadFlags struct {
	seriesFlags
	arrivals       string
	burstiness     float64
	maxInFlight    int
	warmupRequests int
	warmup         time.Duration
	ramp           time.Duration
	turns          int
	cancelShare    float64
	cancelAfter    time.Duration
	seed           uint64
	part           config.Shard
	startAt        string
	metricsListen  string
	progress       bool
}

// Where the user does not say.
const (
	eachConnection = -1                   // warm-up requests: the first one of each connection
	rampStep       = 2 * time.Millisecond // between the first requests of a closed loop
	reachTimeout   = 5 * time.Second      // to find out that there is nothing at the URL
)

// registerLoad adds the flags to a command. warmup is the default of --warmup.
func (f *loadFlags) registerLoad(cmd *kingpin.CmdClause, warmup string) {
	f.register(cmd)
	cmd.Flag("arrivals", "Arrivals of an open loop: constant, poisson or gamma.").Default(workload.Poisson).EnumVar(&f.arrivals, workload.ArrivalKinds...)
	cmd.Flag("burstiness", "Shape of gamma arrivals: 1 is poisson, less is burstier.").Float64Var(&f.burstiness)
	cmd.Flag("max-in-flight", "Most requests of an open loop in flight; later ones wait, and their wait counts. 0 is no bound.").IntVar(&f.maxInFlight)
	cmd.Flag("warmup-requests", "Requests at the start that are not measured. Default: as many as --concurrency, none in an open loop.").
		Default(fmt.Sprint(eachConnection)).IntVar(&f.warmupRequests)
	cmd.Flag("warmup", "Time at the start whose requests are not measured.").Default(warmup).DurationVar(&f.warmup)
	cmd.Flag("ramp", "Time over which a closed loop starts. Default: 2ms for each of --concurrency.").Default("-1s").DurationVar(&f.ramp)
	cmd.Flag("turns", "Turns of a conversation of made-up prompts, each with the answers before it.").Default("1").IntVar(&f.turns)
	cmd.Flag("cancel-share", "Share of requests that are given up, as impatient users do: 0 to 1.").Float64Var(&f.cancelShare)
	cmd.Flag("cancel-after", "When they are given up.").Default("0s").DurationVar(&f.cancelAfter)
	cmd.Flag("seed", "Of everything that is drawn: equal seeds give equal arrivals and lengths.").Default("1").Uint64Var(&f.seed)
	cmd.Flag("part", "Make only a part of the load, as i/n: part i, from 0, of n. Join the --raw results by goodputctl merge.").SetValue(&f.part)
	cmd.Flag("start-at", "Wait until this time (RFC 3339), so that all parts start together.").StringVar(&f.startAt)
	cmd.Flag("metrics-listen", "Address on which to expose the daemon's metrics meanwhile, such as :10043.").StringVar(&f.metricsListen)
	cmd.Flag("progress", "Say on stderr how it goes.").Default("true").BoolVar(&f.progress)
}

// loader loads one series.
type loader struct {
	*loadFlags
	series  *config.Series
	prober  *probe.Prober
	metrics *collector.Series // nil: nobody listens
	stop    []func()          // in the order of their making
}

// start makes ready for the first level. The loader must be closed.
func (f *loadFlags) start(ctx context.Context) (*loader, error) {
	series, err := f.loadSeries()
	if err != nil {
		return nil, err
	}
	l := &loader{loadFlags: f, series: series}
	prober, done, err := newProber(series)
	if err != nil {
		return nil, err
	}
	l.prober, l.stop = prober, append(l.stop, done)
	for _, step := range []func() error{
		func() error { return l.reach(ctx) },
		l.listen,
		func() error { return f.await(ctx) },
	} {
		if err := step(); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *loader) close() {
	for _, stop := range l.stop {
		stop()
	}
}

// loadSeries returns the series with what only a load has.
func (f *loadFlags) loadSeries() (*config.Series, error) {
	series, err := f.series()
	if err != nil {
		return nil, err
	}
	switch {
	case f.warmup < 0:
		return nil, fmt.Errorf("--warmup=%s: it must not be negative", f.warmup)
	case f.maxInFlight < 0:
		return nil, fmt.Errorf("--max-in-flight=%d: it must not be negative", f.maxInFlight)
	case f.turns < 1:
		return nil, fmt.Errorf("--turns=%d: it must be at least 1", f.turns)
	case f.turns > 1 && series.Scenario.Synthetic == nil:
		return nil, errors.New("--turns is of made-up prompts: it needs --input-tokens")
	case f.turns > 1:
		series.Scenario.Synthetic.Turns = f.turns
	}
	return series, nil
}

// reach finds out at once that nothing is there, instead of by so many timeouts. Through a proxy only requests can.
func (l *loader) reach(ctx context.Context) error {
	u, err := url.Parse(l.series.Target.URL)
	if err != nil {
		return err
	}
	proxied := l.series.Target.HTTP.ProxyURL.URL != nil
	if l.series.Target.HTTP.ProxyFromEnvironment {
		proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: u})
		proxied = proxied || proxy != nil
	}
	if proxied {
		return nil
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	conn, err := (&net.Dialer{Timeout: reachTimeout}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return fmt.Errorf("cannot reach %s: %w", l.series.Target.URL, err)
	}
	return conn.Close()
}

// listen exposes the metrics.
func (l *loader) listen() error {
	if l.metricsListen == "" {
		return nil
	}
	cfg, err := config.New(l.series)
	if err != nil {
		return err
	}
	metrics := collector.New(collector.Options{})
	metrics.Update(cfg)
	l.metrics = metrics.Series(l.series.Key())
	listener, err := net.Listen("tcp", l.metricsListen)
	if err != nil {
		return fmt.Errorf("--metrics-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: reachTimeout}
	go func() { _ = server.Serve(listener) }() // ends with Close
	l.stop = append(l.stop, func() { _ = server.Close() })
	return nil
}

// await waits until the time at which all parts start.
func (f *loadFlags) await(ctx context.Context) error {
	if f.startAt == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, f.startAt)
	if err != nil {
		return fmt.Errorf("--start-at=%q: it must be a time such as 2026-11-29T15:04:05Z", f.startAt)
	}
	if late := time.Since(at); late > time.Second {
		return fmt.Errorf("--start-at=%s was %s ago: the parts would not run together", f.startAt, late.Round(time.Second))
	}
	select {
	case <-time.After(time.Until(at)):
		return nil
	case <-ctx.Done():
		return errors.New("interrupted before the start")
	}
}

// options returns how a level is run: this client's part of it.
func (l *loader) options(level load.Level) (load.Options, error) {
	o := load.Options{
		Level: level, WarmupRequests: l.warmupRequests, WarmupDuration: l.warmup, MaxInFlight: l.maxInFlight,
		CancelShare: l.cancelShare, CancelAfter: l.cancelAfter, Seed: l.seed, Ramp: l.ramp,
	}
	part := l.loadPart()
	if level.Open() {
		arrivals, err := workload.NewArrivals(l.arrivals, level.Rate, l.burstiness, l.seed)
		if err != nil {
			return o, err
		}
		o.Next = part.Of(load.Endless(arrivals))
		o.Level.Rate /= float64(max(1, part.Count))
		o.WarmupRequests = max(0, o.WarmupRequests)
	} else {
		o.Level.Concurrency = part.Number(level.Concurrency)
		if o.WarmupRequests == eachConnection {
			o.WarmupRequests = o.Level.Concurrency
		}
		if l.ramp < 0 {
			o.Ramp = rampStep * time.Duration(o.Level.Concurrency)
		}
	}
	return o, enoughFiles(max(o.Level.Concurrency, l.maxInFlight))
}

func (f *loadFlags) loadPart() load.Part { return load.Part{Index: f.part.Index, Count: f.part.Count} }

// asker returns what asks the prompts of the scenario. Each level draws the same ones.
func (l *loader) asker() (load.Asker, error) {
	source, err := workload.New(l.series.Scenario, l.seed+uint64(l.part.Index))
	if err != nil {
		return nil, err
	}
	return load.NewAsker(l.prober, source), nil
}

// do runs a level, tells on stderr how it goes, and says of whom and of what it was.
func (l *loader) do(ctx context.Context, asker load.Asker, o load.Options, stderr io.Writer) (*load.Run, error) {
	var p *progress
	if l.progress {
		p = startProgress(stderr, o)
	}
	defer p.stop()
	o.Observe = func(rec load.Record, r *probe.Result) {
		p.observe(rec)
		if l.metrics != nil {
			l.metrics.Observe(r)
		}
	}
	if l.metrics != nil {
		asker = observed{asker, l.metrics}
	}
	run, err := load.Do(ctx, asker, o)
	if err != nil {
		return nil, err
	}
	t, sc := l.series.Target, l.series.Scenario
	run.About = load.About{
		Target: t.Name, Scenario: sc.Name, Model: t.Model, Protocol: t.Protocol, URL: t.URL, SLO: sc.SLO,
		Workload: describeWorkload(sc), CancelShare: l.cancelShare, CancelAfter: l.cancelAfter,
		MaxInFlight: l.maxInFlight, Share: l.part.String(),
	}
	if o.Level.Open() {
		run.About.Arrivals, run.About.Burstiness = l.arrivals, l.burstiness
	}
	return run, nil
}

// observed counts the requests in flight for the metrics.
type observed struct {
	load.Asker
	metrics *collector.Series
}

// Ask implements load.Asker.
func (o observed) Ask(ctx context.Context, n int) *probe.Result {
	o.metrics.ProbeStarted()
	defer o.metrics.ProbeEnded()
	return o.Asker.Ask(ctx, n)
}

// describeWorkload tells in words what is asked.
func describeWorkload(sc *config.Scenario) string {
	text := fmt.Sprintf("%d prompts", len(sc.Prompts))
	if s := sc.Synthetic; s != nil {
		text = "made-up prompts of " + describeLength(s.InputTokens)
		if s.SharedPrefixTokens > 0 {
			text += fmt.Sprintf(", %d of them shared by one of %d", s.SharedPrefixTokens, max(1, s.Prefixes))
		}
		if s.Turns > 1 {
			text += fmt.Sprintf(", %d turns", s.Turns)
		}
		if s.OutputTokens != nil {
			text += "; answers pinned to " + describeLength(*s.OutputTokens)
		}
	}
	switch {
	case sc.OutputTokens > 0:
		text += fmt.Sprintf("; answers pinned to %d tokens", sc.OutputTokens)
	case sc.MaxTokens > 0:
		text += fmt.Sprintf("; answers of at most %d tokens", sc.MaxTokens)
	}
	if !sc.Stream {
		text += "; not streamed"
	}
	if sc.KeepCache {
		text += "; prefix caches may answer"
	}
	return text
}

func describeLength(q config.Quantiles) string {
	if q.P50 == q.P95 {
		return fmt.Sprintf("%d tokens", q.P50)
	}
	return fmt.Sprintf("%d tokens (p95 %d)", q.P50, q.P95)
}

// writeFile writes a file by a function, and says which one where that fails. No name: nothing is written.
func writeFile(name string, write func(*os.File) error) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	err = write(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
