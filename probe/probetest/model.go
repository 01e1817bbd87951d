package probetest

import (
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// Distribution draws one value.
type Distribution func(*rand.Rand) float64

// Fixed always draws v.
func Fixed(v float64) Distribution { return func(*rand.Rand) float64 { return v } }

// Uniform draws from low to high.
func Uniform(low, high float64) Distribution {
	return func(r *rand.Rand) float64 { return low + (high-low)*r.Float64() }
}

// Lognormal draws from the lognormal distribution with these quantiles.
func Lognormal(p50, p95 float64) Distribution {
	const z95 = 1.6448536269514722 // the 0.95 quantile of the normal distribution
	sigma := math.Log(p95/p50) / z95
	return func(r *rand.Rand) float64 { return p50 * math.Exp(sigma*r.NormFloat64()) }
}

// Model is one model of an [Endpoint].
type Model struct {
	Name         string
	TTFT         Distribution  // seconds until the first token, without queue and prefill; nil is 0
	Gap          Distribution  // seconds between tokens; nil is 0
	Prefill      time.Duration // per input token, before the first token
	OutputTokens Distribution  // length of an answer that no limit cuts; nil is 16
	Concurrency  int           // requests served at a time, the others wait; 0 is no limit
	MaxQueue     int           // requests that may wait, more of them get a 429; 0 is no limit
	Faults       []Fault       // the first one that applies to a request is it
}

// Fault is something that goes wrong with some requests. Requests are counted apart for each kind of request
// (API, streamed or not, order of magnitude of the limit), from 1.
type Fault struct {
	Kind       FaultKind
	Rate       float64       // share of requests, at random
	First      int           // this request has it for certain, so that a short run shows it; 0 is none
	Every      int           // and each Every-th one after First; 0 is none
	Delay      time.Duration // of FaultSlowFirstToken
	RetryAfter time.Duration // of faults with an error status, in whole seconds; 0 is no header
}

// FaultKind is what goes wrong.
type FaultKind string

// The faults.
const (
	FaultNone           FaultKind = ""
	FaultRateLimited    FaultKind = "rate_limited"     // 429
	FaultInternal       FaultKind = "internal"         // 500
	FaultUnavailable    FaultKind = "unavailable"      // 503
	FaultInBand         FaultKind = "in_band"          // an error object inside a 200, half-way
	FaultTruncated      FaultKind = "truncated"        // a clean end half-way
	FaultReset          FaultKind = "reset"            // a TCP reset half-way
	FaultStall          FaultKind = "stall"            // silence from half-way on
	FaultNoFirstToken   FaultKind = "no_first_token"   // the head, then silence
	FaultSlowFirstToken FaultKind = "slow_first_token" // Delay more until the first token
	FaultLengthLimited  FaultKind = "length_limited"   // an answer as long as the limit allows
	FaultEmpty          FaultKind = "empty"            // an answer of no tokens
	FaultContentFilter  FaultKind = "content_filter"   // cut by a filter, half-way
)

// plan is what one request will get.
type plan struct {
	fault  Fault
	ttft   time.Duration // from the beginning of service, with prefill
	tokens int           // of the answer; faults cut it half-way
	finish string
	rng    *rand.Rand // draws the gaps
}

// plan decides about the n-th request of its kind, from 1. Equal arguments give equal plans.
func (m *Model) plan(seed uint64, q *query, n int) plan {
	rng := rand.New(rand.NewPCG(seed, m.stream(q.kind(), n)))
	p := plan{rng: rng, finish: "stop"}
	p.fault = m.fault(rng.Float64(), n)
	p.ttft = seconds(draw(m.TTFT, rng, 0)) + time.Duration(q.inputTokens)*m.Prefill
	p.tokens = max(1, q.MinTokens, int(draw(m.OutputTokens, rng, 16)))
	limit := q.limit()
	unbounded := q.IgnoreEOS || p.fault.Kind == FaultLengthLimited
	if limit > 0 && (p.tokens >= limit || unbounded) {
		p.tokens, p.finish = limit, "length"
	}
	switch p.fault.Kind {
	case FaultSlowFirstToken:
		p.ttft += p.fault.Delay
	case FaultEmpty:
		p.tokens = 0
	case FaultContentFilter:
		p.tokens, p.finish = half(p.tokens), "content_filter"
	}
	return p
}

// half of the tokens, and at least one.
func half(tokens int) int { return max(1, tokens/2) }

// fault chooses by a uniform draw, so that the rates add up.
func (m *Model) fault(draw float64, n int) Fault {
	for _, f := range m.Faults {
		certain := n == f.First || f.Every > 0 && n > f.First && (n-f.First)%f.Every == 0
		if certain || draw < f.Rate {
			return f
		}
		draw -= f.Rate
	}
	return Fault{}
}

// kind is what a server can tell requests apart by.
type kind struct {
	chat, stream bool
	magnitude    int // bits of the limit
}

func (q *query) kind() kind {
	return kind{chat: q.chat, stream: q.Stream, magnitude: bits.Len(uint(q.limit()))}
}

// stream numbers the random stream of a request.
func (m *Model) stream(k kind, n int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.Name))
	x := h.Sum64() ^ uint64(n)<<8 ^ uint64(k.magnitude)<<2
	if k.chat {
		x ^= 1
	}
	if k.stream {
		x ^= 2
	}
	return x
}

func draw(d Distribution, r *rand.Rand, absent float64) float64 {
	if d == nil {
		return absent
	}
	return d(r)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Demo returns the models of the demo: one that is good nearly always, and one that fails in many ways. Both
// show a failure early, in every kind of request.
func Demo() []Model {
	return []Model{
		{
			Name:         "healthy",
			TTFT:         Lognormal(0.105, 0.140),
			Gap:          Uniform(0.008, 0.015),
			Prefill:      10 * time.Microsecond,
			OutputTokens: Uniform(20, 48),
			Faults:       []Fault{{Kind: FaultUnavailable, Rate: 0.01, First: 3, RetryAfter: time.Second}},
		},
		{
			Name:         "degraded",
			TTFT:         Lognormal(0.180, 0.350),
			Gap:          Uniform(0.012, 0.028),
			Prefill:      30 * time.Microsecond,
			OutputTokens: Uniform(20, 48),
			Faults: []Fault{
				{Kind: FaultRateLimited, Rate: 0.05, First: 2, RetryAfter: 2 * time.Second},
				{Kind: FaultUnavailable, Rate: 0.03, First: 8},
				{Kind: FaultInternal, Rate: 0.02},
				{Kind: FaultSlowFirstToken, Rate: 0.05, First: 5, Delay: 2 * time.Second},
				{Kind: FaultInBand, Rate: 0.03, First: 11},
				{Kind: FaultTruncated, Rate: 0.03, First: 14},
				{Kind: FaultReset, Rate: 0.02},
				{Kind: FaultContentFilter, Rate: 0.01},
				{Kind: FaultStall, Rate: 0.01},
			},
		},
	}
}
