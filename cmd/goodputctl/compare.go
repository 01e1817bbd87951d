package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kingpin/v2"

	"goodput_exporter/probe/load"
)

// compareFlags are the arguments and flags of `goodputctl compare`.
type compareFlags struct {
	old, recent string
	force       bool
	output      string
}

// compareCommand is `goodputctl compare OLD NEW`: what changed between two reports, beyond chance.
func compareCommand(app *kingpin.Application) (string, func(context.Context, io.Writer, io.Writer) int) {
	cmd := app.Command("compare", "Compare two reports of bench. Exits 0 when nothing is significantly worse, 1 when something is, "+
		"2 on bad usage or reports of different things.")
	f := &compareFlags{}
	cmd.Arg("old", "JSON of the earlier report.").Required().StringVar(&f.old)
	cmd.Arg("new", "JSON of the later report.").Required().StringVar(&f.recent)
	cmd.Flag("force", "Compare reports of different models, scenarios, workloads or SLOs all the same.").BoolVar(&f.force)
	cmd.Flag("output", "Output: text or json.").Default("text").EnumVar(&f.output, "text", "json")
	return cmd.FullCommand(), f.run
}

func (f *compareFlags) run(_ context.Context, stdout, stderr io.Writer) int {
	c, err := f.compare()
	if err == nil {
		err = f.print(stdout, c)
	}
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "goodputctl compare: %v\n", err)
		return exitUsage
	case c.Worse():
		return exitNotGood
	}
	return exitGood
}

func (f *compareFlags) compare() (*load.Comparison, error) {
	old, err := readReport(f.old)
	if err != nil {
		return nil, err
	}
	recent, err := readReport(f.recent)
	if err != nil {
		return nil, err
	}
	if f.force {
		return load.CompareAnyway(old, recent), nil
	}
	c, err := load.Compare(old, recent)
	if err != nil {
		return nil, fmt.Errorf("%w; --force compares them all the same", err)
	}
	return c, nil
}

func readReport(name string) (*load.Report, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := load.ReadReport(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

func (f *compareFlags) print(w io.Writer, c *load.Comparison) error {
	if f.output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(c)
	}
	_, err := io.WriteString(w, describeComparison(c))
	return err
}

// describeComparison tells a comparison to a person: one line a figure.
func describeComparison(c *load.Comparison) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\told\tnew\tchange\t95 % interval of it\tp\tverdict")
	for i := range c.Changes {
		fmt.Fprintln(w, strings.Join(changeCells(&c.Changes[i]), "\t"))
	}
	_ = w.Flush() // to a strings.Builder
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	return b.String()
}

func changeCells(c *load.Change) []string {
	p, verdict := "-", strings.ReplaceAll(string(c.Verdict), "_", " ")
	switch {
	case c.P == nil:
	case *c.P < 0.0001:
		p = "<0.0001"
	default:
		p = fmt.Sprintf("%.2g", *c.P)
	}
	if c.Why != "" {
		verdict += ": " + c.Why
	}
	return []string{c.Figure, c.Format(c.Old), c.Format(c.New), c.Amount(), c.Range(), p, verdict}
}
