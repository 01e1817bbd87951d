package collector

import (
	"github.com/prometheus/client_golang/prometheus"

	"goodput_exporter/probe"
)

// What a series may cost at a scrape.
//
// A target with one scenario is to stay within 130 lines of text, which is what it costs a server that scrapes no
// native histograms. With a streamed scenario, the criteria ttft, tpot, e2e and complete, a budget and a price:
//
//	12  events: 6 slos × 2 results
//	 4  unmeasurable
//	 7  objectives (goodput, availability), limits (ttft, tpot, e2e), interval, drop score
//	11  probes, by outcome
//	 3  aborted probes, by reason; retries on stale connections
//	 4  last probe, last good, in flight, paused
//	 6  slots; those skipped, by 5 reasons
//	 6  tokens, by kind; missing usages
//	 4  target info, budget (2 units), cost
//	48  16 histograms with _sum, _count and the bucket of +Inf
//	---
//	105, and 25 are left.
//
// 17 of them are classic buckets: of TTFT, TPOT and duration, which people draw as quantiles and heat maps. Of the
// others a server without native histograms sees the mean. 7 are reasons of failures: all 42 do not fit, so that the
// commonest one of an outcome is born at 0, and each other one adds its line when it first happens. What pages
// does not depend on reasons: goodput_probes_total has every outcome from birth. It says all of truncated, which has
// one reason only, and of content_filtered, which hardly befalls prompts of one's own: neither has a reason from birth.
//
// Options.Full lifts the limit.

// bornCauses are the failures that exist from birth without Options.Full.
var bornCauses = []cause{
	{probe.Interrupted, probe.ReasonUnexpectedEOF},
	{probe.Timeout, probe.ReasonFirstToken},
	{probe.RateLimited, probe.ReasonLimit},
	{probe.ServerError, probe.ReasonInternal},
	{probe.ClientError, probe.ReasonRequest},
	{probe.ConnectionError, probe.ReasonRefused},
	{probe.InvalidResponse, probe.ReasonEmpty},
}

// boundaries are the upper bounds of a histogram's classic buckets. They are the same for every series, whatever
// its SLO, so that sums over series are sound; what happens exactly at an SLO's limit is in goodput_slo_events_total.
type boundaries struct {
	lean, full []float64
}

// The full lists hold the edges that vLLM and OpenTelemetry use for the same figures, so that the server's panels
// and ours line up. In seconds; lengths in tokens.
var (
	ttftBuckets = boundaries{
		lean: []float64{.1, .25, .5, 1, 2.5, 10},
		full: []float64{.01, .02, .04, .06, .08, .1, .15, .2, .25, .3, .4, .5, .75, 1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 15, 20, 30, 60},
	}
	tpotBuckets = boundaries{
		lean: []float64{.02, .05, .1},
		full: []float64{.002, .005, .0075, .01, .015, .02, .025, .03, .04, .05, .06, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5},
	}
	durationBuckets = boundaries{ // twice a series: ok and failed
		lean: []float64{1, 4, 10, 30},
		full: []float64{.1, .2, .3, .5, .8, 1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 300},
	}
	gapBuckets = boundaries{ // the first two show tokens that came in one piece
		full: []float64{.0005, .001, .0025, .005, .01, .015, .02, .025, .03, .04, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 10},
	}
	firstAnswerBuckets = boundaries{full: ttftBuckets.full}
	phaseBuckets       = boundaries{full: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 60}}
	lengthBuckets      = boundaries{full: prometheus.ExponentialBuckets(1, 4, 10)}
	startDelayBuckets  = boundaries{full: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}
	ownLagBuckets      = boundaries{full: []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, 1}}
)
