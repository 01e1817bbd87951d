// Package load sends many probes on purpose: one level of load (bench), several (sweep), or a recorded trace. It
// judges each by the same verdict as the daemon, and keeps throughput and goodput side by side.
//
// The road of a run: Do starts requests in a closed loop (so many at once) or in an open one (at the instants of
// a schedule, whatever the endpoint does) and keeps one Record of each. Summarize makes the Report of the records; a
// report of merged runs is made of their records together, never of their percentiles.
package load

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// Level is how much load a run offers: either Concurrency or Rate is set.
type Level struct {
	Concurrency int     // closed loop: requests in flight at all times
	Rate        float64 // open loop: requests a second on an absolute schedule
}

// Open reports whether the level is an open loop.
func (l Level) Open() bool { return l.Rate > 0 }

// Value returns the level as a number, for axes and tables.
func (l Level) Value() float64 {
	if l.Open() {
		return l.Rate
	}
	return float64(l.Concurrency)
}

// String returns "concurrency 16" or "rate 2.5/s".
func (l Level) String() string {
	if l.Open() {
		return "rate " + strconv.FormatFloat(l.Rate, 'g', -1, 64) + "/s"
	}
	return fmt.Sprintf("concurrency %d", l.Concurrency)
}

// Asker sends the requests of a run. Ask is called from many goroutines, once for each n from 0, and returns soon
// after ctx has ended.
type Asker interface {
	Ask(ctx context.Context, n int) *probe.Result
}

// Options say how a level is run. Requests or Duration must be set. At the end, requests in flight are waited for: their
// own limits bound that, and to cut them would hide the slowest.
type Options struct {
	Level Level
	Next  Schedule // of an open loop; nil in a closed one

	Requests int           // measured requests, beside those of the warm-up
	Duration time.Duration // for which measured requests are started
	// Both may be set for the level of a sweep: it lasts until both are reached.

	WarmupRequests int           // the first so many requests are not measured
	WarmupDuration time.Duration // nor are those that start before
	Ramp           time.Duration // over which the requests of a closed loop first start, one after the other
	MaxInFlight    int           // bound of an open loop; a request beyond it waits, and its wait counts. 0 is none

	CancelShare float64       // of the requests that are given up, as impatient users do, in [0, 1]
	CancelAfter time.Duration // from the start of such a request
	Seed        uint64        // of the draw of requests that are given up

	// Observe is told of each request when it has ended, those of the warm-up included. It is called from one
	// goroutine and must not block.
	Observe func(Record, *probe.Result)
}

// Run is what a level's requests did.
type Run struct {
	About       About
	Level       Level
	Started     time.Time     // instant 0 of the records
	Window      Window        // of the measured requests
	Records     []Record      // in the order in which they ended, warm-up included
	Gaps        Gaps          // chunk gaps of the measured successes
	Interrupted bool          // ended before its time by the context; requests in flight were canceled
	Hopeless    string        // why it ended before its time by itself, in words; "" where it did not
	CPU         time.Duration // that this process used from Started to the last end, on all cores
	Cores       int           // that it may use
	Unsent      int           // requests of an open loop that were due but not sent when the run ended
}

// Queued counts the measured requests of an open loop that waited for MaxInFlight.
func (r *Run) Queued() int {
	n := 0
	for i := range r.Records {
		if rec := &r.Records[i]; rec.Queued && !rec.Warmup {
			n++
		}
	}
	return n
}

// Window is when measured requests started and ended, since the start of the run.
type Window struct {
	From     time.Duration // the first start
	LastSend time.Duration // the last start
	To       time.Duration // the last end: the drain lies between LastSend and To
}

// About says what was asked of whom. It stands in every report, so that a figure can be read by itself.
type About struct {
	Target   string
	Scenario string
	Model    string
	Protocol string
	URL      string // without user information
	SLO      config.SLO

	Arrivals    string // process of an open loop: "constant", "poisson", "gamma", "replay"; "" in a closed loop
	Burstiness  float64
	Workload    string // in words: prompts, lengths
	CancelShare float64
	CancelAfter time.Duration
	MaxInFlight int
	Share       string // "2/8" where the run is one of several that make the load together
}
