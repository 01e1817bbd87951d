package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/alecthomas/kingpin/v2"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// probeFlags are the flags of `goodputctl probe`.
type probeFlags struct {
	seriesFlags
	output string
	count  int
}

// probeCommand is `goodputctl probe`: one probe, or a few in a row.
func probeCommand(app *kingpin.Application) (string, func(context.Context, io.Writer, io.Writer) int) {
	cmd := app.Command("probe", "Send one request and say what became of it. Exits 0 when it was good, 1 when not, 2 on bad usage or a failure of its own.")
	f := &probeFlags{}
	f.register(cmd)
	cmd.Flag("output", "Output: text, or json with one object a line.").Default("text").EnumVar(&f.output, "text", "json")
	cmd.Flag("count", "Number of probes, one after the other.").Default("1").IntVar(&f.count)
	return cmd.FullCommand(), saying(cmd.FullCommand(), f.probe)
}

func (f *probeFlags) probe(ctx context.Context, stdout, _ io.Writer) (int, error) {
	if f.count < 1 {
		return 0, fmt.Errorf("--count=%d: it must be at least 1", f.count)
	}
	series, err := f.series()
	if err != nil {
		return 0, err
	}
	prober, done, err := newProber(series)
	if err != nil {
		return 0, err
	}
	defer done()
	code := exitGood
	for range f.count {
		r := prober.Probe(ctx)
		if err := f.print(stdout, r, series.Scenario.SLO); err != nil {
			return 0, err
		}
		code = max(code, exitCode(r.Outcome))
		if ctx.Err() != nil {
			break
		}
	}
	return code, nil
}

// newProber returns a prober of a series with connections of its own, and what gives them back.
func newProber(s *config.Series) (*probe.Prober, func(), error) {
	clients := probe.NewClients()
	client, err := clients.Get(s.Target)
	if err != nil {
		clients.Close()
		return nil, nil, err
	}
	done := func() {
		client.Release()
		clients.Close()
	}
	prober, err := probe.New(s, client, probe.UserAgent("goodputctl"))
	if err != nil {
		done()
		return nil, nil, err
	}
	return prober, done, nil
}

func exitCode(o probe.Outcome) int {
	switch {
	case o == probe.Good:
		return exitGood
	case o.Attempt():
		return exitNotGood
	}
	return exitUsage
}

func (f *probeFlags) print(w io.Writer, r *probe.Result, slo config.SLO) error {
	if f.output == "json" {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := io.WriteString(w, describe(r, slo))
	return err
}
