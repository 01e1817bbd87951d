package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/deploy/tools/curve/sim"
)

func TestTheSameSeedPrintsTheSameRows(t *testing.T) {
	rows := func(seed uint64) string {
		var out bytes.Buffer
		setup := sim.Setup{
			Clock: clock(15 * time.Second), Objective: 0.99, Rules: []sim.Rules{sim.Windows(), sim.Plain()}, Seed: seed,
		}
		size := effort{months: 1, drops: 5, seed: seed}
		for _, write := range []func(io.Writer, sim.Setup, effort) error{falseAlarms, births, drops} {
			if err := write(&out, setup, size); err != nil {
				t.Fatal(err)
			}
		}
		return out.String()
	}
	first := rows(1)
	if diff := cmp.Diff(first, rows(1)); diff != "" {
		t.Errorf("rows (-first +second):\n%s", diff)
	}
	if first == rows(2) {
		t.Error("another seed prints the same rows")
	}
	if got, want := strings.Count(first, "\n"), 5+1+6; got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
}

func TestCellsSayWhatIsNotKnown(t *testing.T) {
	never := sim.Delays{Page: []time.Duration{sim.Never, sim.Never}}
	late := sim.Delays{
		Page:   []time.Duration{time.Hour, time.Hour, time.Hour, sim.Never},
		Probes: []time.Duration{240, 240, 240, sim.Never},
		First:  map[string]float64{"6x 6h/30m": 0.75},
	}
	for _, tt := range []struct{ name, got, want string }{
		{"a rate of nothing has a bound", rate(sim.Rate{Err: 0.075}), "0 (< 0.07)"},
		{"a rate has an error", rate(sim.Rate{Mean: 11.56, Err: 0.4}), "11.6 ± 0.40"},
		{"a drop that nobody notices", delay(never), "no page (0 % paged within 12 h)"},
		{"a drop that some never notice", strings.Join(strings.Fields(delay(late)), " "), "60.0 ± 0.01 > 720 240/- 6x 6h/30m"},
		{"an objective", share(0.995), "99.5%"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}
