package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kingpin/v2"

	"goodput_exporter/probe/load"
)

// mergeFlags are the arguments and flags of `goodputctl merge`.
type mergeFlags struct {
	reportFlags
	files []string
}

// mergeCommand is `goodputctl merge RAW…`: one report of the raw results of several clients.
func mergeCommand(app *kingpin.Application) (string, func(context.Context, io.Writer, io.Writer) int) {
	cmd := app.Command("merge", "Join the raw results of several clients of one load, exactly, and report on them as bench does, with the same exit codes.")
	f := &mergeFlags{}
	cmd.Arg("results", "File of bench --raw.").Required().StringsVar(&f.files)
	f.registerReports(cmd)
	return cmd.FullCommand(), saying(cmd.FullCommand(), f.merge)
}

func (f *mergeFlags) merge(_ context.Context, stdout, stderr io.Writer) (int, error) {
	if err := f.read(); err != nil {
		return 0, err
	}
	runs := make([]*load.Run, len(f.files))
	for i, name := range f.files {
		var err error
		if runs[i], err = readRaw(name); err != nil {
			return 0, err
		}
	}
	merged, err := load.Merge(runs...)
	if err != nil {
		return 0, err
	}
	return f.report(merged.Run, merged.Report(), stdout, stderr)
}

func readRaw(name string) (*load.Run, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	run, err := load.ReadRaw(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return run, nil
}
