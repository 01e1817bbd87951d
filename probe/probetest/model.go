package probetest

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
	"time"
)

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

// plan is what one request will get.
type plan struct {
	fault  Fault
	ttft   time.Duration // from the beginning of service, with prefill
	tokens int           // of the answer; faults cut it half-way
	finish string
	rng    *rand.Rand // draws the gaps
}

// What an answer can end with. Each API has words of its own for them.
const (
	finishStop    = "stop"
	finishLength  = "length"
	finishFilter  = "content_filter"
	finishRefusal = "refusal"
)

// stuckTokens is how long a stuck model goes on where the client has no limit.
const stuckTokens = 256

// plan decides about the n-th request of its kind, from 1. Equal arguments give equal plans.
func (m *Model) plan(seed uint64, q *query, n int) plan {
	rng := rand.New(rand.NewPCG(seed, m.stream(q.kind(), n)))
	p := plan{rng: rng, finish: finishStop}
	p.fault = m.fault(rng.Float64(), n)
	p.ttft = seconds(draw(m.TTFT, rng, 0)) + time.Duration(q.inputTokens)*m.Prefill
	p.tokens = max(1, q.minTokens, int(draw(m.OutputTokens, rng, 16)))
	if p.fault.Kind == FaultSlowFirstToken {
		p.ttft += p.fault.Delay
	}
	if q.tokenless {
		p.tokens = 0
		return p
	}
	if p.fault.Kind == FaultStuck {
		p.tokens = stuckTokens
	}
	unbounded := q.ignoreEOS || p.fault.Kind == FaultLengthLimited || p.fault.Kind == FaultStuck
	if q.limit > 0 && (p.tokens >= q.limit || unbounded) {
		p.tokens, p.finish = q.limit, finishLength
	}
	switch p.fault.Kind {
	case FaultEmpty:
		p.tokens = 0
	case FaultContentFilter:
		p.tokens, p.finish = half(p.tokens), finishFilter
	case FaultRefusal:
		p.finish = finishRefusal
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
	protocol  string
	stream    bool
	magnitude int // bits of the limit
}

func (q *query) kind() kind {
	return kind{protocol: q.protocol, stream: q.stream, magnitude: bits.Len(uint(q.limit))}
}

// stream numbers the random stream of a request.
func (m *Model) stream(k kind, n int) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %+v %d", m.Name, k, n)
	return h.Sum64()
}

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
