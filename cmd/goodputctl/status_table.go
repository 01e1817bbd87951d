package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// burnWindow is the window of the burn rate that is shown.
const burnWindow = "1h"

// statusWindows are those of the attainment.
var statusWindows = []string{"5m", "1h", "6h", "1d"}

// describeStatus tells a status to people: how many series are in each state, and a row for each with the reason below.
func describeStatus(s *live.Status, c canvas) string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	// The windows are wide and last: a narrow terminal that is watched cuts them off, and the reason has their counts.
	header := append([]string{"STATE", "TARGET", "SCENARIO", "MODEL", "SINCE", "BURN " + burnWindow, "TTFT", "E2E"}, statusWindows...)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for i := range s.Series {
		fmt.Fprintln(w, strings.Join(statusRow(&s.Series[i], s.Now), "\t"))
	}
	_ = w.Flush() // to a strings.Builder
	lines := strings.Split(table.String(), "\n")

	var b strings.Builder
	b.WriteString(summarize(s) + "\n")
	if len(s.Series) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "\nGood of all attempts, with the 95 %% interval; latencies: p95 now/limit.\n%s\n", strings.TrimRight(lines[0], " "))
	for i := range s.Series {
		row, state := strings.TrimRight(lines[i+1], " "), string(s.Series[i].State)
		fmt.Fprintf(&b, "%s%s\n  %s\n", c.paint(state, s.Series[i].State), strings.TrimPrefix(row, state), printable(s.Series[i].Reason))
	}
	return b.String()
}

// summarize says on one line how many series are in each state.
func summarize(s *live.Status) string {
	counts := map[live.State]int{}
	for i := range s.Series {
		counts[s.Series[i].State]++
	}
	var parts []string
	for _, state := range live.States {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	text := "no series"
	if parts != nil {
		text = strings.Join(parts, ", ")
	}
	if counts[live.Paused] > 0 {
		text += " (paused counts as ok)"
	}
	return fmt.Sprintf("%s at %s", text, s.Now.UTC().Format(time.DateTime+" UTC"))
}

// statusRow returns the cells of a series.
func statusRow(s *live.SeriesStatus, now time.Time) []string {
	since := now.Sub(s.Since).Round(time.Second).String()
	if s.Severity != "" {
		since += " " + string(s.Severity)
	}
	burn := "-"
	if w := windowOf(s, burnWindow); w != nil && w.BurnRate != nil {
		burn = fmt.Sprintf("%.3gx", *w.BurnRate)
	}
	cells := []string{
		string(s.State), s.Target, s.Scenario, s.Model, since, burn,
		figureCell(s, config.CriterionTTFT), figureCell(s, config.CriterionE2E),
	}
	for _, name := range statusWindows {
		cells = append(cells, attainmentCell(windowOf(s, name)))
	}
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	return cells
}

// windowOf returns a window of the goodput of a series; nil where there is none.
func windowOf(s *live.SeriesStatus, name string) *live.Window {
	for i := range s.SLOs {
		if s.SLOs[i].Name != probe.SLOGoodput {
			continue
		}
		windows := s.SLOs[i].Windows
		if at := slices.IndexFunc(windows, func(w live.Window) bool { return w.Name == name }); at >= 0 {
			return &windows[at]
		}
	}
	return nil
}

func attainmentCell(w *live.Window) string {
	if w == nil || w.Ratio == nil {
		return "-"
	}
	bound := func(v float64) string { return strings.TrimSuffix(percent(math.Round(v*1e3)/1e3), " %") }
	return fmt.Sprintf("%d/%d %s [%s, %s]", w.Good, w.Good+w.Bad, percent(w.Attainment), bound(w.Low), bound(w.High))
}

// figureCell writes a latency and its limit, to a tenth of a millisecond.
func figureCell(s *live.SeriesStatus, name string) string {
	inShort := func(seconds float64) string {
		return time.Duration(seconds * float64(time.Second)).Round(100 * time.Microsecond).String()
	}
	for _, f := range s.Figures {
		switch {
		case f.Name != name || f.Now.P95 == nil:
		case f.Limit == nil:
			return inShort(*f.Now.P95)
		default:
			return inShort(*f.Now.P95) + "/" + inShort(*f.Limit)
		}
	}
	return "-"
}

// paint colours the text of a state.
func (c canvas) paint(text string, state live.State) string {
	colour := map[live.State]string{live.Down: "1;31", live.Burning: "31", live.OK: "32", live.Paused: "2"}[state]
	if !c.colour {
		return text
	}
	if colour == "" {
		colour = "33" // unknown
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
