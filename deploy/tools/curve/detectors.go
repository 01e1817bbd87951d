package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"goodput_exporter/deploy/tools/curve/sim"
)

// candidate is a detector and the sets of rules to hold against drops on its streams.
type candidate struct {
	detector func() sim.Detector
	rules    []sim.Rules
}

// candidates are the detectors, each as the only alert, and the one that ships beside the other rules too.
func candidates(objective float64, interval time.Duration) []candidate {
	budget := 1 - objective
	alone := func(name string) sim.Rules { return sim.Rules{Name: name, Score: &sim.ScoreAlert{}} }
	bernoulli := func(threshold float64) func() sim.Detector {
		return func() sim.Detector { return sim.NewBernoulliCUSUM(budget, min(14.4*budget, 0.5), threshold) }
	}
	markov := func() sim.Detector {
		return sim.NewMarkovCUSUM(budget, []sim.Burst{{Length: 8, Severity: 0.9}}, []float64{0.3, 0.6, 0.95}, 18)
	}
	score := func() sim.Detector { return sim.NewDropScore(objective, interval) }
	return []candidate{
		{score, []sim.Rules{sim.Windows(), alone("drop score"), sim.Shipped()}},
		{bernoulli(12), []sim.Rules{alone("Bernoulli CUSUM, h=12")}},
		{bernoulli(60), []sim.Rules{alone("Bernoulli CUSUM, h=60")}},
		{markov, []sim.Rules{alone("Markov CUSUM, one null")}},
	}
}

const detectorsHeading = `Pages / 30 days on %d months of each kind of failure, all at 1x budget but the last (2x budget, independent: no false
pages, but a burn that is a ticket's); b8/.5 is bursts of 8 probes in the mean, in which half of the probes fail. Then
the median / 90th percentile of the minutes from the onset of a drop to the page, of %d drops; "-" is not within 12 h.

SLO    int.  detector                 indep.  b2/.9  b4/.9  b8/.9 b16/.9  b2/.5  b4/.5  b8/.5 b16/.5     2x   no answers  100%%, answ.     50 %%          30 %%          20 %%          10 %%
`

// compare prints the table of detectors.
func compare(w io.Writer, size effort) error {
	months, count := max(2, size.months/6), max(20, size.drops/5)
	if _, err := fmt.Fprintf(w, detectorsHeading, months, count); err != nil {
		return err
	}
	return size.each(w, func(objective float64, interval time.Duration) error {
		for _, c := range candidates(objective, interval) {
			setup := sim.Setup{
				Clock: clock(interval), Objective: objective, Rules: c.rules, Detector: c.detector, Seed: size.seed,
			}
			if err := compareOne(w, setup, months, count); err != nil {
				return err
			}
		}
		return nil
	})
}

// compareOne writes a row for each of the set-up's rules.
func compareOne(w io.Writer, setup sim.Setup, months, count int) error {
	budget := 1 - setup.Objective
	rows := make([]strings.Builder, len(setup.Rules))
	for i, r := range setup.Rules {
		fmt.Fprintf(&rows[i], "%-6s %3.0fs  %-23s", share(setup.Objective), setup.Clock.Interval.Seconds(), r.Name)
	}
	pages := func(failures sim.FailuresFunc) {
		for i, c := range setup.FalseAlarms(failures, months) {
			fmt.Fprintf(&rows[i], " %6s", digits(c.Pages.Mean))
		}
	}
	drop := func(setup sim.Setup, bad float64) {
		for i, d := range setup.Drop(failing(bad), count, horizon) {
			fmt.Fprintf(&rows[i], "  %12s", short(d.Page, 0.5)+" / "+short(d.Page, 0.9))
		}
	}

	pages(failing(budget))
	for _, severity := range []float64{0.9, 0.5} {
		for _, length := range []float64{2, 4, 8, 16} {
			pages(func(rng *rand.Rand) sim.Failures {
				return sim.NewBursty(rng, budget, sim.Burst{Length: length, Severity: severity})
			})
		}
	}
	pages(failing(2 * budget))
	drop(setup, 1)
	drop(answered(setup, true), 1)
	for _, bad := range []float64{0.5, 0.3, 0.2, 0.1} {
		drop(setup, bad)
	}
	for i := range rows {
		if _, err := fmt.Fprintln(w, rows[i].String()); err != nil {
			return err
		}
	}
	return nil
}

func short(delays []time.Duration, q float64) string {
	value, _, ok := sim.Quantile(delays, q)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f", value.Minutes())
}
