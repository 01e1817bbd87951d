package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"goodput_exporter/deploy/tools/curve/sim"
)

// rowOfAlerts holds the objective, the interval, the situation, and pages and tickets of both sets of rules.
const rowOfAlerts = "%-6s %3.0fs  %-27s  %-27s %-36s %-27s %s\n"

// curve prints the table of the shipped rules, without the drop score, and of the plain ones: what windows can do.
func curve(w io.Writer, size effort) error {
	if _, err := fmt.Fprintf(w, heading, size.months, size.drops); err != nil {
		return err
	}
	return size.each(w, func(objective float64, interval time.Duration) error {
		setup := sim.Setup{
			Clock: clock(interval), Objective: objective, Rules: []sim.Rules{sim.Windows(), sim.Plain()}, Seed: size.seed,
		}
		if err := falseAlarms(w, setup, size); err != nil {
			return err
		}
		if err := births(w, setup, size); err != nil {
			return err
		}
		return drops(w, setup, size)
	})
}

const heading = `Simulated: %d streams of 30 days for each rate of alerts, %d drops for each delay. ± is the standard error of the
simulation. Every stream is one SLO of one series, and both sets of rules see the same streams.
Rows of alerts: false pages / 30 days, then tickets / 30 days in [brackets]. Births: false pages in the first 6 hours of a
new series at 1x budget, independent. Rows of drops: from the onset to the page, median and 90th percentile in minutes, in
probes (median/p90), and the alert that paged first most often.

SLO   int.  situation                    shipped rules over windows (all but GoodputDrop)                plain multiwindow burn-rate rules
`

func falseAlarms(w io.Writer, setup sim.Setup, size effort) error {
	budget := 1 - setup.Objective
	bursty := func(rate float64) sim.FailuresFunc {
		return func(rng *rand.Rand) sim.Failures { return sim.NewBursty(rng, rate, usual) }
	}
	for _, row := range []struct {
		name     string
		failures sim.FailuresFunc
		answered bool
	}{
		{"0.5x budget, independent", failing(budget / 2), false},
		{"1x budget, independent", failing(budget), false},
		{"0.5x budget, bursty", bursty(budget / 2), false},
		{"1x budget, bursty", bursty(budget), false},
		{"1x budget, bursty, answered", bursty(budget), true},
	} {
		counts := answered(setup, row.answered).FalseAlarms(row.failures, size.months)
		_, err := fmt.Fprintf(w, rowOfAlerts,
			share(setup.Objective), setup.Clock.Interval.Seconds(), row.name,
			rate(counts[0].Pages), "["+rate(counts[0].Tickets)+"]", rate(counts[1].Pages), "["+rate(counts[1].Tickets)+"]")
		if err != nil {
			return err
		}
	}
	return nil
}

// births writes the pages of series that have just been born, per thousand of them.
func births(w io.Writer, setup sim.Setup, size effort) error {
	counts := setup.ColdStarts(failing(1-setup.Objective), 25*size.months)
	_, err := fmt.Fprintf(w, rowOfAlerts, share(setup.Objective), setup.Clock.Interval.Seconds(), "pages / 1000 births",
		rate(counts[0].Pages.Times(1000)), "", rate(counts[1].Pages.Times(1000)), "")
	return err
}

func drops(w io.Writer, setup sim.Setup, size effort) error {
	for _, row := range []struct {
		name     string
		bad      float64
		answered bool
	}{
		{"100 % bad: no answers", 1, false},
		{"100 % bad, answered", 1, true},
		{"50 % bad", 0.5, false},
		{"30 % bad", 0.3, false},
		{"20 % bad", 0.2, false},
		{"10 % bad", 0.1, false},
	} {
		delays := answered(setup, row.answered).Drop(failing(row.bad), size.drops, horizon)
		_, err := fmt.Fprintf(w, "%-6s %3.0fs  %-27s  %-64s %s\n",
			share(setup.Objective), setup.Clock.Interval.Seconds(), row.name, delay(delays[0]), delay(delays[1]))
		if err != nil {
			return err
		}
	}
	return nil
}

// failing fails each probe by itself, with the same probability.
func failing(bad float64) sim.FailuresFunc {
	return func(rng *rand.Rand) sim.Failures { return sim.NewIndependent(rng, bad) }
}

// answered gives the set-up as it is where bad probes are bad answers rather than none.
func answered(setup sim.Setup, yes bool) sim.Setup {
	if !yes {
		return setup
	}
	rules := make([]sim.Rules, len(setup.Rules))
	for i, r := range setup.Rules {
		rules[i] = r.Answered()
	}
	setup.Rules = rules
	return setup
}

// rate writes a rate with its error; a count of zero has the 95 % upper bound of three.
func rate(r sim.Rate) string {
	if r.Mean == 0 {
		return fmt.Sprintf("0 (< %s)", digits(r.Err))
	}
	return digits(r.Mean) + " ± " + digits(r.Err)
}

// delay writes the columns of one set of rules in a row of drops.
func delay(d sim.Delays) string {
	paged := sim.Share(d.Page)
	if paged < 0.5 {
		return fmt.Sprintf("no page (%.0f %% paged within %.0f h)", 100*paged, horizon.Hours())
	}
	return fmt.Sprintf("%-12s %-13s %-11s %s",
		minutes(d.Page, 0.5), minutes(d.Page, 0.9), probes(d.Probes, 0.5)+"/"+probes(d.Probes, 0.9), most(d.First))
}

func minutes(delays []time.Duration, q float64) string {
	value, err, ok := sim.Quantile(delays, q)
	if !ok {
		return fmt.Sprintf("> %.0f", horizon.Minutes())
	}
	return fmt.Sprintf("%s ± %s", digits(value.Minutes()), digits(max(err.Minutes(), 0.01)))
}

func probes(counts []time.Duration, q float64) string {
	value, _, ok := sim.Quantile(counts, q)
	if !ok {
		return "-"
	}
	return fmt.Sprint(int64(value))
}

// most names the alert that paged first most often.
func most(first map[string]float64) string {
	best := ""
	for name, share := range first {
		if share > first[best] || (share == first[best] && name < best) {
			best = name
		}
	}
	return best
}

func share(objective float64) string { return fmt.Sprintf("%g%%", math.Round(1000*objective)/10) }

// digits writes a number with the digits that a reader needs.
func digits(x float64) string {
	switch {
	case x >= 99.5:
		return fmt.Sprintf("%.0f", x)
	case x >= 9.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
