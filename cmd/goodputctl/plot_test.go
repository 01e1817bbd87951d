package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/load"
)

// sweptLevels are the levels of a sweep in which throughput rises on while goodput falls.
func sweptLevels() []*load.Report {
	var levels []*load.Report
	for i, c := range []int{1, 2, 4, 8, 16} {
		throughput, goodput := float64(c)/(1+float64(c)/16), []float64{0.93, 1.76, 3.1, 5.2, 2}[i]
		attainment, attempts := goodput/throughput, 200
		good := int(attainment * float64(attempts))
		latency := func(p50 float64) *load.Latency {
			v := load.Value(p50 * (1 + float64(i)))
			return &load.Latency{Successes: &load.Distribution{Count: attempts, Mean: v, P50: v, P95: 1.5 * v, P99: 2 * v}}
		}
		levels = append(levels, &load.Report{
			Valid: true, Load: load.Load{Concurrency: &c}, Duration: new(100.0), Throughput: &throughput, Goodput: &goodput, Attainment: &attainment,
			SLO: load.SLOReport{
				Objective:  new(0.95),
				Attainment: load.Share{Met: good, Of: attempts, Ratio: &attainment, Interval: &load.Interval{Low: load.Value(attainment - 0.02), High: load.Value(min(1, attainment+0.02))}},
				Criteria:   []load.CriterionReport{{Name: config.CriterionTTFT, Limit: new(0.8)}, {Name: config.CriterionE2E, Limit: new(60.0)}},
			},
			Counts:    load.Counts{Attempts: attempts, Good: good, Outcomes: map[probe.Outcome]int{probe.Good: good, probe.SLOViolation: attempts - good - 1, probe.Timeout: 1}},
			Latencies: load.Latencies{TTFT: latency(0.1), E2E: latency(2)},
			Notes:     []string{"in no figure: the warm-up of 20 requests"},
		})
	}
	return levels
}

func TestSweepTable(t *testing.T) {
	levels := sweptLevels()
	levels[4].Valid, levels[4].Invalid = false, []string{"the client used 99 % of its CPU"}
	levels = append(levels, &load.Report{Load: load.Load{Concurrency: new(32)}, Valid: true})
	var b bytes.Buffer
	table := newSweepTable(&b)
	for _, r := range levels {
		table.level(r)
	}
	want := `
            throughput   goodput  attainment                    TTFT      TTFT       E2E       E2E       E2E
concurrency         /s        /s  [95 % interval]                p50       p95       p50       p95       p99  not good
          1       0.94      0.93  98.81 % [96.81, 100]      100.0 ms  150.0 ms    2.00 s    3.00 s    4.00 s  slo_violation 2, timeout 1
          2       1.78      1.76  99 % [97, 100]            200.0 ms  300.0 ms    4.00 s    6.00 s    8.00 s  slo_violation 1, timeout 1
          4       3.20      3.10  96.88 % [94.88, 98.88]    300.0 ms  450.0 ms    6.00 s    9.00 s   12.00 s  slo_violation 6, timeout 1
          8       5.33      5.20  97.5 % [95.5, 99.5]       400.0 ms  600.0 ms    8.00 s   12.00 s   16.00 s  slo_violation 4, timeout 1
         16       8.00      2.00  25 % [23, 27]             500.0 ms  750.0 ms   10.00 s   15.00 s   20.00 s  slo_violation 149, timeout 1
            not valid: the client used 99 % of its CPU
         32          -         -  -                                -         -         -         -         -
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSweepDescription(t *testing.T) {
	levels := sweptLevels()
	levels[0].Notes = append(levels[0].Notes, "few requests")
	s := &load.SweepReport{Levels: levels, Stopped: "interrupted in concurrency 32, which is left out", Answers: load.Answers{
		GoodputPeak: load.Answer{Level: new(8.0), Reason: "5.2 good requests a second at concurrency 8"},
		Saturation:  load.Answer{Reason: "no knee in this range"},
	}}
	t.Setenv("LC_ALL", "C")
	got := describeSweep(s, &bytes.Buffer{})
	for _, part := range []string{
		"requests a second against concurrency: throughput (t), goodput (g)\n", "\n 8.00 |", "\n 100 % +", "TTFT of successes", "limit (-), p99 (#)",
		"E2E of successes against concurrency: p99 (#)", // its limit is far above
		"\nended before its last level: interrupted in concurrency 32, which is left out\n",
		"\ngoodput peak         8  5.2 good requests a second at concurrency 8\n",
		"\nsaturation           -  no knee in this range\n",
		"\nnote on all levels: in no figure: the warm-up of 20 requests\nnote on level 1: few requests\n",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in:\n%s", part, got)
		}
	}
}

func TestPlotsFitTheirCanvas(t *testing.T) {
	s := &load.SweepReport{Levels: sweptLevels()}
	for _, tt := range []struct {
		name          string
		c             canvas
		ascii, colour bool
	}{
		{"plain terminal", canvas{width: 60}, true, false},
		{"UTF-8, no colour", canvas{width: 100, utf8: true}, false, false},
		{"UTF-8 and colour", canvas{width: 100, utf8: true, colour: true}, false, true},
		{"colour, but not UTF-8", canvas{width: 80, colour: true}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plots := plotSweep(s, tt.c)
			if got := strings.IndexFunc(plots, func(r rune) bool { return r > 127 }) < 0; got != tt.ascii {
				t.Errorf("ASCII only: %t, want %t:\n%s", got, tt.ascii, plots)
			}
			if got := strings.Contains(plots, "\x1b["); got != tt.colour {
				t.Errorf("colour: %t, want %t", got, tt.colour)
			}
			for line := range strings.Lines(plots) {
				if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); strings.HasPrefix(line, " ") && !tt.colour && width > tt.c.width {
					t.Errorf("a line of %d columns on a canvas of %d: %q", width, tt.c.width, line)
				}
			}
		})
	}
}

func TestNothingToPlot(t *testing.T) {
	levels := sweptLevels()
	for name, levels := range map[string][]*load.Report{"no level": nil, "one level": levels[:1], "no figures": {{}, {}}} {
		if got := plotSweep(&load.SweepReport{Levels: levels}, canvas{width: 80}); got != "" {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	for _, r := range levels {
		r.Latencies, r.SLO.Objective = load.Latencies{}, nil
	}
	if got := plotSweep(&load.SweepReport{Levels: levels}, canvas{width: 80}); strings.Contains(got, "TTFT") || strings.Contains(got, "objective") {
		t.Errorf("plots of what does not exist:\n%s", got)
	}
}

func TestResample(t *testing.T) {
	levels := sweptLevels()[:3] // concurrency 1, 2, 4: 1 to 4 is linear
	value := func(r *load.Report) (float64, bool) {
		c := r.Load.Level().Concurrency
		return float64(c), c > 1
	}
	got := xAxis(levels).resample(levels, value, 4)
	if diff := cmp.Diff([]float64{math.NaN(), 2, 3, 4}, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLocale(t *testing.T) {
	for _, tt := range []struct {
		all, lang string
		want      bool
	}{{"", "en_US.UTF-8", true}, {"", "C.utf8", true}, {"C", "en_US.UTF-8", false}, {"", "", false}} {
		t.Setenv("LC_ALL", tt.all)
		t.Setenv("LC_CTYPE", "")
		t.Setenv("LANG", tt.lang)
		if got := utf8Locale(); got != tt.want {
			t.Errorf("LC_ALL=%q LANG=%q: %t, want %t", tt.all, tt.lang, got, tt.want)
		}
	}
}
