//go:build bench && linux

package accuracy

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	repeats = flag.Int("repeats", 5, "how often each client is measured")
	parts   = flag.String("parts", "paced,catchup,load,footprint,scrape", "what is measured")
	series  = flag.Int("series", 1000, "series of the footprint")
	settle  = flag.Duration("settle", 32*time.Second, "what the footprint's process is given before it is watched")
	watch   = flag.Duration("watch", 46*time.Second, "how long the footprint's process is watched")
)

// TestGoals measures how right the prober is and what it costs, beside a plain client and against the truth of a
// server in a process of its own. It prints what it finds, and whether that reaches the goals: a machine may be
// busy, so goals that are missed are no failure. Wrong results are.
func TestGoals(t *testing.T) {
	out := os.Stdout
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var goals []goal
	measured := func(name string, part interface {
		goals() []goal
		print(io.Writer)
	},
	) {
		goals = append(goals, part.goals()...)
		fmt.Fprintf(table, "\n%s\n", name)
		part.print(table)
	}
	wanted := strings.Split(*parts, ",")
	if slices.Contains(wanted, "paced") {
		measured("Errors against the truth, in µs: median [min-max] of the repeats", runPaced(t, out, *repeats))
	}
	if slices.Contains(wanted, "catchup") {
		measured("Whole streams in one write, client on one core", runCatchUp(t, out, *repeats))
	}
	if slices.Contains(wanted, "load") {
		measured("A level of load, beside the plain client and other load generators", runLoad(t, out, *repeats))
	}
	if slices.Contains(wanted, "footprint") {
		measured("Footprint", runFootprint(t, out, footprintSettings{Series: *series, Settle: *settle, Watch: *watch}))
	}
	if slices.Contains(wanted, "scrape") {
		measured("Scrape of 1,000 series", runScrape(t, out, *repeats))
	}
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(table, "\nGoals (%s, %d cores, load average %s, %d repeats)\n", runtime.Version(), runtime.NumCPU(), strings.TrimSpace(string(load)), *repeats)
	fmt.Fprintln(table, "goal\tlimit\tmeasured\t")
	for _, g := range goals {
		fmt.Fprintln(table, g)
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
}

// goal is a figure with a limit, which its median must keep.
type goal struct {
	name, unit string
	limit      float64
	floor      bool // the limit is the least, not the most
	values     []float64
}

func atMost(limit float64, unit, name string, values []float64) goal {
	return goal{name: name, unit: unit, limit: limit, values: values}
}

func atLeast(limit float64, unit, name string, values []float64) goal {
	return goal{name: name, unit: unit, limit: limit, floor: true, values: values}
}

// String is a row of the table.
func (g goal) String() string {
	sign, met := "<=", median(g.values) <= g.limit
	if g.floor {
		sign, met = ">=", median(g.values) >= g.limit
	}
	verdict := "missed"
	switch {
	case len(g.values) == 0:
		verdict = "not measured"
	case met:
		verdict = "met"
	}
	return fmt.Sprintf("%s\t%s %s %s\t%s\t%s", g.name, sign, round(g.limit), g.unit, spread(g.values), verdict)
}

// spread returns the median of values and their range.
func spread(values []float64) string {
	switch len(values) {
	case 0:
		return "-"
	case 1:
		return round(values[0])
	}
	return fmt.Sprintf("%s [%s-%s]", round(median(values)), round(slices.Min(values)), round(slices.Max(values)))
}

// round returns a number with three digits that count.
func round(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// quantile returns the least of the durations that is no less than the share q of them.
func quantile(durations []time.Duration, q float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	return durations[max(0, int(math.Ceil(q*float64(len(durations))))-1)]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
