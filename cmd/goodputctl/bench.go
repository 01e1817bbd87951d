package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"goodput_exporter/probe/load"
	"goodput_exporter/probe/workload"
)

// benchFlags are the flags of `goodputctl bench`.
type benchFlags struct {
	loadFlags
	reportFlags
	requests                int
	duration                time.Duration
	concurrency             int
	concurrencySet, rateSet bool
	rate                    float64
	replay, replayFormat    string
	replaySpeed             float64
}

// replayed is the arrivals of a trace, in reports.
const replayed = "replay"

// defaultRequests are measured where neither --requests nor --duration says more.
const defaultRequests = 200

// benchCommand is `goodputctl bench`: one level of load.
func benchCommand(app *kingpin.Application) (string, func(context.Context, io.Writer, io.Writer) int) {
	cmd := app.Command("bench", "Send many requests at one level of load and report throughput beside goodput. "+
		"Exits 0 when all is well, 1 when --fail-if or --baseline says no, 2 on bad usage, or when nothing was measured or the client itself was the bottleneck.")
	f := &benchFlags{}
	f.registerLoad(cmd, "0s")
	cmd.Flag("requests", fmt.Sprintf("Requests to measure. Default: %d, unless --duration is given.", defaultRequests)).IntVar(&f.requests)
	cmd.Flag("duration", "Time for which to start measured requests.").DurationVar(&f.duration)
	cmd.Flag("concurrency", "Closed loop: so many requests in flight at all times.").Default("1").IsSetByUser(&f.concurrencySet).IntVar(&f.concurrency)
	cmd.Flag("rate", "Open loop: so many requests a second on a fixed schedule, however slow the answers.").IsSetByUser(&f.rateSet).Float64Var(&f.rate)
	cmd.Flag("replay", "Open loop of recorded arrivals and lengths: a file in one of the public forms.").StringVar(&f.replay)
	cmd.Flag("replay-format", "Form of the trace. Default: told by its first line.").EnumVar(&f.replayFormat, append(workload.TraceFormats(), "")...)
	cmd.Flag("replay-speed", "How much faster than recorded.").Default("1").Float64Var(&f.replaySpeed)
	f.registerReports(cmd)
	return cmd.FullCommand(), saying(cmd.FullCommand(), f.bench)
}

func (f *benchFlags) bench(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	// Whatever is wrong with the flags must be known before the first request.
	level, err := f.level()
	if err != nil {
		return 0, err
	}
	if err := f.read(); err != nil {
		return 0, err
	}
	trace, err := f.trace()
	if err != nil {
		return 0, err
	}
	l, err := f.start(ctx)
	if err != nil {
		return 0, err
	}
	defer l.close()
	run, err := f.measure(ctx, l, level, trace, stderr)
	if err != nil {
		return 0, err
	}
	return f.report(run, load.Summarize(run), stdout, stderr)
}

// level returns the level that the flags ask for. That of a replay is told by the trace.
func (f *benchFlags) level() (load.Level, error) {
	switch {
	case f.requests < 0:
		return load.Level{}, fmt.Errorf("--requests=%d: it must be positive", f.requests)
	case f.duration < 0:
		return load.Level{}, fmt.Errorf("--duration=%s: it must be positive", f.duration)
	case f.replay != "" && (f.rateSet || f.concurrencySet):
		return load.Level{}, errors.New("--replay has its own arrivals: give neither --rate nor --concurrency, but --replay-speed")
	case f.replay != "":
		return load.Level{}, nil
	case f.rateSet && f.concurrencySet:
		return load.Level{}, errors.New("--rate is an open loop and --concurrency a closed one: give one of them (an open loop is bounded by --max-in-flight)")
	case f.rateSet && !(f.rate > 0):
		return load.Level{}, fmt.Errorf("--rate=%v: it must be positive", f.rate)
	case f.rateSet:
		return load.Level{Rate: f.rate}, nil
	case f.concurrency < 1:
		return load.Level{}, fmt.Errorf("--concurrency=%d: it must be at least 1", f.concurrency)
	}
	return load.Level{Concurrency: f.concurrency}, nil
}

// trace reads the trace of a replay, nil where there is none.
func (f *benchFlags) trace() (*workload.Trace, error) {
	if f.replay == "" {
		return nil, nil
	}
	file, err := os.Open(f.replay)
	if err != nil {
		return nil, fmt.Errorf("--replay: %w", err)
	}
	defer file.Close()
	trace, err := workload.ReadTrace(file, f.replayFormat)
	if err != nil {
		return nil, fmt.Errorf("--replay=%s: %w", f.replay, err)
	}
	if err := workload.Scale(trace.Entries, f.replaySpeed); err != nil {
		return nil, fmt.Errorf("--replay-speed: %w", err)
	}
	return trace, nil
}

// measure runs the level, or replays the trace.
func (f *benchFlags) measure(ctx context.Context, l *loader, level load.Level, trace *workload.Trace, stderr io.Writer) (*load.Run, error) {
	var (
		asker load.Asker
		o     load.Options
		err   error
	)
	if trace != nil {
		asker, o, err = f.replayOptions(l, trace)
	} else if o, err = l.options(level); err == nil {
		asker, err = l.asker()
	}
	if err != nil {
		return nil, err
	}
	f.setLength(&o)
	run, err := l.do(ctx, asker, o, stderr)
	if err == nil && trace != nil {
		run.About.Arrivals = replayed
		run.About.Workload = f.describeReplay(trace)
	}
	return run, err
}

// describeReplay tells in words what is asked.
func (f *benchFlags) describeReplay(trace *workload.Trace) string {
	text := fmt.Sprintf("%d requests of %s (%s) at %g times the recorded speed", len(trace.Entries), f.replay, trace.Format, f.replaySpeed)
	if trace.LeftOut > 0 {
		text += fmt.Sprintf("; %d recorded without tokens left out", trace.LeftOut)
	}
	return text
}

func (f *benchFlags) setLength(o *load.Options) {
	o.Requests, o.Duration = f.loadPart().Number(f.requests), f.duration
	if f.requests == 0 && f.duration == 0 {
		o.Requests = f.loadPart().Number(defaultRequests)
		if f.replay != "" {
			o.Requests = endless
		}
	}
}

// endless is more requests than any schedule has.
const endless = 1 << 62

// replayOptions returns what replays this client's part of a trace.
func (f *benchFlags) replayOptions(l *loader, trace *workload.Trace) (load.Asker, load.Options, error) {
	entries := f.loadPart().Entries(trace.Entries)
	if len(entries) == 0 {
		return nil, load.Options{}, fmt.Errorf("--part=%s: the trace has only %d requests", &f.part, len(trace.Entries))
	}
	last := entries[len(entries)-1].At
	rate := float64(len(entries))
	if last > 0 {
		rate = float64(len(entries)-1) / last.Seconds()
	}
	source, err := workload.New(l.series.Scenario, l.seed)
	if err != nil {
		return nil, load.Options{}, err
	}
	asker, next := load.NewReplay(l.prober, source, entries)
	o, err := l.options(load.Level{Rate: rate})
	o.Level.Rate, o.Next = rate, next
	return asker, o, err
}
