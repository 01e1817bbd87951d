package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"goodput_exporter/dashboards/report"
	"goodput_exporter/probe/load"
)

// sweepFlags are the flags of `goodputctl sweep`.
type sweepFlags struct {
	loadFlags
	concurrency, rate levelsFlag
	search            bool
	searchMax         float64
	precision         float64
	requests          int
	duration, pause   time.Duration
	headroom          float64
	output            string
	json, html, svg   string
}

// sweepCommand is `goodputctl sweep`: several levels of load.
func sweepCommand(app *kingpin.Application) (string, func(context.Context, io.Writer, io.Writer) int) {
	cmd := app.Command("sweep", "Measure levels of load one after the other, and say where goodput peaks, which level the SLO still holds at, and where throughput stops growing. "+
		"Exits 0 when at least one level was measured without the client being the bottleneck, 2 otherwise or on bad usage.")
	f := &sweepFlags{}
	f.registerLoad(cmd, "2s")
	cmd.Flag("concurrency", "Closed loop: levels such as 1,2,4,8.").SetValue(&f.concurrency)
	cmd.Flag("rate", "Open loop: levels in requests a second, such as 0.5,1,2,4.").SetValue(&f.rate)
	cmd.Flag("search", "Find the SLO capacity: double the one level given until it misses the objective, then bisect.").BoolVar(&f.search)
	cmd.Flag("search-max", "Highest level that a search tries; 0 is no bound.").Float64Var(&f.searchMax)
	cmd.Flag("precision", "When a search ends: the interval left, as a share of the level.").Default("0.1").Float64Var(&f.precision)
	cmd.Flag("requests", "Requests that each level measures at least.").Default("100").IntVar(&f.requests)
	cmd.Flag("duration", "Time that each level measures at least.").Default("10s").DurationVar(&f.duration)
	cmd.Flag("pause", "Rest between two levels, beside the wait for the last request.").Default("0s").DurationVar(&f.pause)
	cmd.Flag("headroom", "How far the recommended level stays below the limit.").Default(fmt.Sprint(load.DefaultHeadroom)).Float64Var(&f.headroom)
	cmd.Flag("output", "Report on stdout: text or json.").Default("text").EnumVar(&f.output, "text", "json")
	cmd.Flag("json", "File for the report as JSON.").StringVar(&f.json)
	cmd.Flag("html", "File for the report as a page with plots.").StringVar(&f.html)
	cmd.Flag("svg", "File for the plots alone.").StringVar(&f.svg)
	return cmd.FullCommand(), saying(cmd.FullCommand(), f.sweep)
}

func (f *sweepFlags) sweep(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	o, err := f.sweepOptions()
	if err != nil {
		return 0, err
	}
	l, err := f.start(ctx)
	if err != nil {
		return 0, err
	}
	defer l.close()
	o.Measure = func(ctx context.Context, level load.Level) (*load.Report, error) {
		return f.measure(ctx, l, level, stderr)
	}
	table := newSweepTable(stdout)
	if f.output == "text" {
		o.OnLevel = table.level
	}
	s, err := load.Sweep(ctx, o)
	if s == nil {
		return 0, err
	}
	if written := f.write(stdout, s); written != nil {
		return 0, written
	}
	switch {
	case err != nil:
		return 0, err
	case ctx.Err() != nil:
		return exitInterrupted, nil
	case !slices.ContainsFunc(s.Levels, func(r *load.Report) bool { return r.Valid }):
		return exitUsage, nil // the report says why
	}
	return exitGood, nil
}

// sweepOptions returns what the flags ask for.
func (f *sweepFlags) sweepOptions() (load.SweepOptions, error) {
	o := load.SweepOptions{Pause: f.pause, Headroom: f.headroom}
	switch {
	case len(f.concurrency) > 0 && len(f.rate) > 0:
		return o, errors.New("--rate is an open loop and --concurrency a closed one: give one of them")
	case len(f.concurrency)+len(f.rate) == 0:
		return o, errors.New("no levels: give --concurrency=1,2,4,8 or --rate=1,2,4,8, or one of them and --search")
	case f.requests < 1:
		return o, fmt.Errorf("--requests=%d: it must be at least 1", f.requests)
	case f.duration < 0:
		return o, fmt.Errorf("--duration=%s: it must not be negative", f.duration)
	}
	var levels []load.Level
	for _, c := range f.concurrency {
		if c != float64(int(c)) {
			return o, fmt.Errorf("--concurrency=%g: it must be a whole number", c)
		}
		levels = append(levels, load.Level{Concurrency: int(c)})
	}
	for _, r := range f.rate {
		levels = append(levels, load.Level{Rate: r})
	}
	switch {
	case f.search && len(levels) > 1:
		return o, errors.New("--search starts at one level: give one")
	case f.search:
		o.Search = &load.Search{Start: levels[0], Max: f.searchMax, Precision: f.precision}
	default:
		o.Levels = levels
	}
	return o, nil
}

// measure runs one level, and reports on it.
func (f *sweepFlags) measure(ctx context.Context, l *loader, level load.Level, stderr io.Writer) (*load.Report, error) {
	asker, err := l.asker()
	if err != nil {
		return nil, err
	}
	o, err := l.options(level)
	if err != nil {
		return nil, err
	}
	o.Requests, o.Duration = f.requests, f.duration
	run, err := l.do(ctx, asker, o, stderr)
	if err != nil {
		return nil, err
	}
	return load.Summarize(run), nil
}

// write writes the report in every form that was asked for.
func (f *sweepFlags) write(stdout io.Writer, s *load.SweepReport) error {
	for _, file := range []struct {
		name  string
		write func(*os.File) error
	}{
		{f.json, func(w *os.File) error { return s.WriteJSON(w) }},
		{f.html, func(w *os.File) error { return report.Sweep(w, s) }},
		{f.svg, func(w *os.File) error { return report.SweepSVG(w, s) }},
	} {
		if err := writeFile(file.name, file.write); err != nil {
			return err
		}
	}
	if f.output == "json" {
		return s.WriteJSON(stdout)
	}
	_, err := io.WriteString(stdout, describeSweep(s, stdout))
	return err
}
