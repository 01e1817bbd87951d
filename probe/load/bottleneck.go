package load

import (
	"fmt"
	"slices"
	"time"

	"goodput_exporter/probe"
)

// From here on a run tells of the client, not of the endpoint.
const (
	// An open loop must offer its load within the 1 % to which rates are promised.
	leastAchieved = 0.99
	// Starts that are later than this are no longer small beside a TTFT of a few hundred milliseconds.
	mostStartLag = 10 * time.Millisecond
	// The same of reads. They move no figure, which rests on the kernel's stamps, but the next request of a closed loop
	// starts so much later: small beside slow tokens or a long answer is small enough.
	mostOwnLag      = 10 * time.Millisecond
	mostOwnLagOfGap = 0.1
	mostOwnLagOfE2E = 0.05
	// Above this, goroutines wait for a core at every peak, and so do the reads.
	mostCPUShare = 0.9
)

// clientBound says in words why the client was the bottleneck of a run. Nil: it was not.
func clientBound(run *Run, r *Report) []string {
	var reasons []string
	add := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }

	l := r.Load
	if run.Queued() == 0 && l.OfferedRate != nil && l.AchievedRate != nil && *l.AchievedRate < leastAchieved**l.OfferedRate {
		add("the client sent %.2f requests a second of the %.2f offered, less than %s", *l.AchievedRate, *l.OfferedRate, percent(leastAchieved))
	}
	if lag, ok := startLagP99(run); ok && lag > mostStartLag {
		add("the client sent 1 in 100 requests more than %s late (at most %s)", short(lag), short(mostStartLag))
	}
	limit := mostOwnLag
	if gap := r.Latencies.ChunkGap; gap != nil {
		limit = max(limit, time.Duration(mostOwnLagOfGap*float64(gap.P50)*float64(time.Second)))
	}
	if e2e := r.Latencies.E2E; e2e != nil && e2e.Successes != nil {
		limit = max(limit, time.Duration(mostOwnLagOfE2E*float64(toDuration(e2e.Successes.P50))))
	}
	if d := r.Client.OwnLag; d != nil && toDuration(d.P99) > limit {
		add("the client read 1 in 100 answers more than %s late (at most %s)", short(toDuration(d.P99)), short(limit))
	}
	if share := r.Client.CPUShare; share != nil && *share > mostCPUShare {
		add("the client used %s of its %d cores (at most %s)", percent(*share), run.Cores, percent(mostCPUShare))
	}
	if run.Unsent > 0 {
		add("%s due but never sent: how long it takes is missing from the figures", requests(run.Unsent))
	}
	if n := r.Counts.LocalErrors; n > 0 {
		add("%s failed in the client itself: %s", requests(n), firstLocalError(run))
	}
	return reasons
}

// startLagP99 is the p99 of how late the client sent its measured requests. Waits for MaxInFlight were asked for and are
// not the client's doing.
func startLagP99(run *Run) (time.Duration, bool) {
	var lags []time.Duration
	for i := range run.Records {
		if rec := &run.Records[i]; !rec.Warmup && !rec.Queued {
			lags = append(lags, rec.Lag())
		}
	}
	if len(lags) == 0 {
		return 0, false
	}
	slices.Sort(lags)
	return lags[nearestRank(0.99, len(lags))-1], true
}

func firstLocalError(run *Run) string {
	for i := range run.Records {
		if rec := &run.Records[i]; !rec.Warmup && !rec.GivenUp && rec.Outcome == probe.LocalError {
			return rec.Error
		}
	}
	return ""
}

func toDuration(seconds Value) time.Duration {
	return time.Duration(float64(seconds) * float64(time.Second))
}

// short rounds a duration to what a person reads.
func short(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
