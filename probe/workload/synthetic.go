package workload

import (
	"math"
	"math/rand/v2"

	"goodput_exporter/config"
)

// synthetic draws the lengths of made-up prompts and of their answers.
type synthetic struct {
	input    lengths
	output   *lengths // nil: the scenario says
	prefix   int      // tokens of the shared prefix; 0: there is none
	prefixes int      // how many different ones there are
}

// draft is what a made-up message is to be. It is small, so that many can be drawn one after the other before their
// texts are written beside one another.
type draft struct {
	input  int    // tokens of the message, everything included
	output int    // pinned length of the answer in tokens; 0: the scenario says
	shared int    // tokens of the shared prefix, which the first message of a conversation begins with
	prefix uint64 // which of the shared prefixes
	seed   uint64 // of the words that it shares with no other
}

func newSynthetic(c *config.Synthetic) *synthetic {
	s := &synthetic{input: newLengths(c.InputTokens), prefix: c.SharedPrefixTokens, prefixes: max(1, c.Prefixes)}
	if c.OutputTokens != nil {
		output := newLengths(*c.OutputTokens)
		s.output = &output
	}
	return s
}

func (s *synthetic) draw(rng *rand.Rand) draft {
	d := draft{input: s.input.draw(rng), shared: s.prefix, seed: rng.Uint64()}
	if s.output != nil {
		d.output = s.output.draw(rng)
	}
	if s.prefixes > 1 {
		d.prefix = rng.Uint64N(uint64(s.prefixes))
	}
	return d
}

// lengths is a lognormal distribution of lengths in tokens, bounded.
type lengths struct {
	mu, sigma float64 // of the logarithm
	longest   int
}

// z95 is the 95 % quantile of the standard normal distribution.
const z95 = 1.6448536269514722

func newLengths(q config.Quantiles) lengths {
	return lengths{
		mu:      math.Log(float64(q.P50)),
		sigma:   math.Log(float64(q.P95)/float64(q.P50)) / z95,
		longest: q.Longest(),
	}
}

func (l lengths) draw(rng *rand.Rand) int {
	length := math.Round(math.Exp(l.mu + l.sigma*rng.NormFloat64()))
	return int(min(max(length, 1), float64(l.longest)))
}
