package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kingpin/v2"

	"goodput_exporter/dashboards/report"
	"goodput_exporter/probe/load"
)

// reportFlags say in which forms a run is reported, and what is to be said of it.
type reportFlags struct {
	output               string
	json, csv, html, raw string
	failIf               []string
	baseline             string

	gates  []load.Gate
	before *load.Report // of the baseline; nil where there is none
}

// registerReports adds the flags to a command.
func (f *reportFlags) registerReports(cmd *kingpin.CmdClause) {
	cmd.Flag("output", "On stdout: the report as text or json, or instead of it what --raw would write.").Default("text").EnumVar(&f.output, "text", "json", "raw")
	cmd.Flag("json", "File for the report as JSON, which --baseline and compare read.").StringVar(&f.json)
	cmd.Flag("html", "File for the report as a page with plots.").StringVar(&f.html)
	cmd.Flag("csv", "File for one line a request.").StringVar(&f.csv)
	cmd.Flag("raw", "File for all that merge needs, as JSON lines.").StringVar(&f.raw)
	cmd.Flag("fail-if", "Exit with 1 if this holds, such as 'attainment<99%' or 'ttft_p95>800ms'. Repeatable.").StringsVar(&f.failIf)
	cmd.Flag("baseline", "JSON of an earlier report: exit with 1 if this one is significantly worse.").StringVar(&f.baseline)
}

// read reads what the run is to be held against. Whatever is wrong with that must be known before the first request.
func (f *reportFlags) read() (err error) {
	for _, text := range f.failIf {
		g, err := load.ParseGate(text)
		if err != nil {
			return fmt.Errorf("--fail-if=%q: %w", text, err)
		}
		f.gates = append(f.gates, g)
	}
	if f.baseline == "" {
		return nil
	}
	if f.before, err = readReport(f.baseline); err != nil {
		return fmt.Errorf("--baseline: %w", err)
	}
	return nil
}

// report writes the report of a run in every form that was asked for, says on stderr what speaks against it, and returns
// the exit code.
func (f *reportFlags) report(run *load.Run, r *load.Report, stdout, stderr io.Writer) (int, error) {
	if err := f.write(run, r, stdout); err != nil {
		return 0, err
	}
	code, err := f.judge(r, stderr)
	switch {
	case err != nil:
		return 0, err
	case r.Hopeless != "":
		return 0, errors.New(r.Hopeless)
	case !r.Valid:
		return exitUsage, nil // the report says why
	case r.Interrupted:
		return exitInterrupted, nil
	}
	return code, nil
}

func (f *reportFlags) write(run *load.Run, r *load.Report, stdout io.Writer) error {
	for _, file := range []struct {
		name  string
		write func(*os.File) error
	}{
		{f.json, func(w *os.File) error { return r.WriteJSON(w) }},
		{f.html, func(w *os.File) error { return report.Bench(w, r, run.Records) }},
		{f.csv, func(w *os.File) error { return writeCSV(w, run) }},
		{f.raw, func(w *os.File) error { return load.WriteRaw(w, run) }},
	} {
		if err := writeFile(file.name, file.write); err != nil {
			return err
		}
	}
	switch f.output {
	case "json":
		return r.WriteJSON(stdout)
	case "raw":
		return load.WriteRaw(stdout, run)
	}
	_, err := io.WriteString(stdout, describeReport(r))
	return err
}

func writeCSV(w io.Writer, run *load.Run) error {
	c := load.NewCSV(w, run.About.SLO)
	for i := range run.Records {
		if err := c.Write(&run.Records[i]); err != nil {
			return err
		}
	}
	return c.Flush()
}

// judge says what speaks against a report.
func (f *reportFlags) judge(r *load.Report, stderr io.Writer) (code int, err error) {
	for _, g := range f.gates {
		if failed, why := g.Fails(r); failed {
			fmt.Fprintln(stderr, "goodputctl: "+why)
			code = exitNotGood
		}
	}
	if f.before == nil {
		return code, nil
	}
	c, err := load.Compare(f.before, r)
	if err != nil {
		return 0, fmt.Errorf("--baseline: %w", err)
	}
	if c.Worse() {
		fmt.Fprint(stderr, describeComparison(c))
		code = exitNotGood
	}
	return code, nil
}
