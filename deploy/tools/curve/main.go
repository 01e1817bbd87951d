// Command curve prints the operating curve of the shipped alerts: how many false pages they cost a month against how long
// a drop of goodput lasts before they page, beside plain multiwindow burn-rate rules. It simulates; no Prometheus runs.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"goodput_exporter/deploy/tools/curve/sim"
)

func main() {
	quick := flag.Bool("quick", false, "simulate a tenth: less than a minute, with wider errors")
	detectors := flag.Bool("detectors", false, "compare sequential detectors with the rules instead")
	objective := flag.Float64("objective", 0, "simulate this objective only, a share such as 0.999")
	seed := flag.Uint64("seed", 1, "seed of the simulation; the same seed prints the same table")
	flag.Parse()

	size := effort{months: 40, drops: 300, objectives: []float64{0.95, 0.99, 0.995}, seed: *seed}
	if *quick {
		size.months, size.drops = 4, 40
	}
	if *objective > 0 {
		size.objectives = []float64{*objective}
	}
	table := curve
	if *detectors {
		table = compare
	}
	if err := table(os.Stdout, size); err != nil {
		fmt.Fprintln(os.Stderr, "curve:", err)
		os.Exit(1)
	}
}

// effort is how much is simulated.
type effort struct {
	months, drops int
	objectives    []float64
	seed          uint64
}

// intervals are the probe intervals of the table.
var intervals = []time.Duration{5 * time.Second, 15 * time.Second, 60 * time.Second}

// usual is the burst of the table: 4 probes in the mean, of which 9 in 10 fail.
var usual = sim.Burst{Length: 4, Severity: 0.9}

// horizon is when a drop that has not paged counts as unnoticed.
const horizon = 12 * time.Hour

// clock is the shipped one: scrapes and alerts every 15 s, recording rules every 30 s.
func clock(interval time.Duration) sim.Clock {
	return sim.Clock{Interval: interval, Scrape: 15 * time.Second, Record: 30 * time.Second}
}

// each calls f for every objective and interval, until the writer fails.
func (size effort) each(w io.Writer, f func(objective float64, interval time.Duration) error) error {
	for _, objective := range size.objectives {
		for _, interval := range intervals {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
			if err := f(objective, interval); err != nil {
				return err
			}
		}
	}
	return nil
}
