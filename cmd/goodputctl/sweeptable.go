package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"goodput_exporter/probe"
	"goodput_exporter/probe/load"
)

// sweepTable writes a sweep's levels as they are measured: a header once, then a row a level.
type sweepTable struct {
	w      io.Writer
	headed bool
}

func newSweepTable(w io.Writer) *sweepTable { return &sweepTable{w: w} }

// sweepColumns are the widths of the table; the last column has none.
const sweepColumns = "%11s %10s %9s  %-24s %9s %9s %9s %9s %9s  %s\n"

// level writes the row of a level.
func (t *sweepTable) level(r *load.Report) {
	if !t.headed {
		t.headed = true
		name := "concurrency"
		if r.Load.Level().Open() {
			name = "rate /s"
		}
		t.row("", "throughput", "goodput", "attainment", "TTFT", "TTFT", "E2E", "E2E", "E2E", "")
		t.row(name, "/s", "/s", "[95 % interval]", "p50", "p95", "p50", "p95", "p99", "not good")
	}
	ttft, e2e := quantiles(successesOf(r.Latencies.TTFT), false), quantiles(successesOf(r.Latencies.E2E), false)
	t.row(fmt.Sprintf("%g", r.Load.Level().Value()), orDash(r.Throughput, decimals), orDash(r.Goodput, decimals), shareAndInterval(r.SLO.Attainment),
		ttft[0], ttft[1], e2e[0], e2e[1], e2e[2], notGood(r))
	for _, reason := range r.Invalid {
		fmt.Fprintf(t.w, "%11s not valid: %s\n", "", reason)
	}
}

// row writes one line without spaces at its end.
func (t *sweepTable) row(cells ...any) {
	fmt.Fprintln(t.w, strings.TrimRight(fmt.Sprintf(sweepColumns, cells...), " \n"))
}

func successesOf(l *load.Latency) *load.Distribution {
	if l == nil {
		return nil
	}
	return l.Successes
}

func orDash(v *float64, format func(float64) string) string {
	if v == nil {
		return "-"
	}
	return format(*v)
}

func shareAndInterval(s load.Share) string {
	if s.Ratio == nil || s.Interval == nil {
		return "-"
	}
	bounds := func(v load.Value) string { return strings.TrimSuffix(percent(float64(v)), " %") }
	return fmt.Sprintf("%s [%s, %s]", percent(*s.Ratio), bounds(s.Interval.Low), bounds(s.Interval.High))
}

// notGood lists the outcomes of attempts that were not good, the most frequent first.
func notGood(r *load.Report) string {
	counts := r.Counts.Outcomes
	outcomes := slices.DeleteFunc(slices.Clone(probe.Outcomes), func(o probe.Outcome) bool { return o == probe.Good || counts[o] == 0 })
	slices.SortStableFunc(outcomes, func(a, b probe.Outcome) int { return counts[b] - counts[a] })
	parts := make([]string, len(outcomes))
	for i, o := range outcomes {
		parts[i] = fmt.Sprintf("%s %d", o, counts[o])
	}
	return strings.Join(parts, ", ")
}

// describeSweep tells what a sweep found, beside its table: plots for what w can show, the answers, and what to bear in
// mind.
func describeSweep(s *load.SweepReport, w io.Writer) string {
	var b strings.Builder
	if plots := plotSweep(s, newCanvas(w)); plots != "" {
		b.WriteString("\n" + plots)
	}
	if s.Stopped != "" {
		fmt.Fprintf(&b, "\nended before its last level: %s\n", s.Stopped)
	}
	b.WriteString("\n")
	for _, a := range []struct {
		name   string
		answer load.Answer
	}{
		{"goodput peak", s.Answers.GoodputPeak},
		{"SLO capacity", s.Answers.SLOCapacity},
		{"saturation", s.Answers.Saturation},
		{"recommended", s.Answers.Recommended},
	} {
		level := "-"
		if a.answer.Level != nil {
			level = fmt.Sprintf("%g", *a.answer.Level)
		}
		fmt.Fprintf(&b, "%-13s %8s  %s\n", a.name, level, a.answer.Reason)
	}
	describeSweepNotes(&b, s)
	return b.String()
}

// describeSweepNotes writes each note once, with the levels that it is about.
func describeSweepNotes(b *strings.Builder, s *load.SweepReport) {
	var notes []string
	levels := map[string][]string{}
	for _, r := range s.Levels {
		for _, note := range r.Notes {
			if levels[note] == nil {
				notes = append(notes, note)
			}
			levels[note] = append(levels[note], fmt.Sprintf("%g", r.Load.Level().Value()))
		}
	}
	for i, note := range notes {
		if i == 0 {
			b.WriteString("\n")
		}
		of := "level " + strings.Join(levels[note], ", ")
		if len(levels[note]) == len(s.Levels) {
			of = "all levels"
		}
		fmt.Fprintf(b, "note on %s: %s\n", of, note)
	}
}
