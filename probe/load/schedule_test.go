package load

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/probe/workload"
)

func TestPartsTogetherAreTheWholeLoad(t *testing.T) {
	const parts, most = 3, 20
	take := func(next Schedule) (ats []time.Duration) {
		for range most {
			at, _ := next()
			ats = append(ats, at)
		}
		return ats
	}
	schedule := func() Schedule {
		arrivals, err := workload.NewArrivals(workload.Poisson, 5, 0, 42)
		if err != nil {
			t.Fatal(err)
		}
		return Endless(arrivals)
	}
	var together []time.Duration
	requests, concurrency := 0, 0
	for i := range parts {
		p := Part{i, parts}
		together = append(together, take(p.Of(schedule()))...)
		requests += p.Number(100)
		concurrency += p.Number(8)
	}
	slices.Sort(together)
	if diff := cmp.Diff(take(schedule()), together[:most]); diff != "" {
		t.Errorf("arrivals of all parts (-whole +parts):\n%s", diff)
	}
	if requests != 100 || concurrency != 8 {
		t.Errorf("%d requests at concurrency %d, want 100 at 8", requests, concurrency)
	}
}

func TestPartsOfATraceTogetherAreTheTrace(t *testing.T) {
	var all, together []workload.TraceEntry
	for i := range 10 {
		all = append(all, workload.TraceEntry{At: time.Duration(i), InputTokens: i + 1, OutputTokens: 1})
	}
	for i := range 4 {
		together = append(together, Part{i, 4}.Entries(all)...)
	}
	slices.SortFunc(together, func(a, b workload.TraceEntry) int { return int(a.At - b.At) })
	if diff := cmp.Diff(all, together); diff != "" {
		t.Errorf("(-whole +parts):\n%s", diff)
	}
}

func TestNoPartIsTheWhole(t *testing.T) {
	var p Part
	all := []workload.TraceEntry{{InputTokens: 1, OutputTokens: 1}}
	if p.Number(7) != 7 || len(p.Entries(all)) != 1 {
		t.Errorf("%d of 7 requests and %d of 1 entry", p.Number(7), len(p.Entries(all)))
	}
}
