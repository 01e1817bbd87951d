package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"goodput_exporter/config"
)

// synthetic makes up prompts of stated lengths. A length is an estimate, good to some per cent: what the server
// reports as its usage is the truth.
type synthetic struct {
	mu, sigma float64 // of the logarithm of the length in tokens
	longest   int     // in tokens; a bound on the lognormal's tail
	task      string  // what is asked about the words, at their end
	frame     int     // tokens of a prompt that are not words: the task and the nonce
	seed      uint64  // of the words, where all prompts are to begin with the same ones
	keepCache bool
}

// z95 is the 95 % quantile of the standard normal distribution.
const z95 = 1.6448536269514722

// taskTokens is about the length of the task in tokens.
const taskTokens = 18

func newSynthetic(sc *config.Scenario, seed uint64) *synthetic {
	q := sc.Synthetic.InputTokens
	s := &synthetic{
		mu:        math.Log(float64(q.P50)),
		sigma:     math.Log(float64(q.P95)/float64(q.P50)) / z95,
		longest:   4 * q.P95,
		task:      fmt.Sprintf("\n\nWrite a story of about %d words that uses some of the words above.\n", answerWords(sc)),
		frame:     taskTokens,
		seed:      seed,
		keepCache: sc.KeepCache,
	}
	if !sc.KeepCache {
		s.frame += nonceTokens
	}
	return s
}

// answerWords returns how long an answer to ask for, at about 4 tokens to 3 words: one that stays clear of a
// ceiling, one that does not end before a pinned length.
func answerWords(sc *config.Scenario) int {
	switch {
	case sc.OutputTokens > 0:
		return sc.OutputTokens
	case sc.MaxTokens > 0:
		return max(1, sc.MaxTokens/3)
	}
	return 200
}

// draw draws the length of a prompt in tokens, and the seed of its words.
func (s *synthetic) draw(rng *rand.Rand) (tokens int, seed uint64) {
	length := math.Round(math.Exp(s.mu + s.sigma*rng.NormFloat64()))
	seed = rng.Uint64()
	if s.keepCache {
		seed = s.seed
	}
	return int(min(max(length, 1), float64(s.longest))), seed
}

// text returns a prompt of about so many tokens: the nonce, the words that the seed gives, and what to do with
// them. It has at least one word, so the shortest prompts are a little longer than asked for.
func (s *synthetic) text(mark string, tokens int, seed uint64) string {
	n := max(1, tokens-s.frame)
	var b strings.Builder
	b.Grow(len(mark) + n*wordBytes + len(s.task))
	b.WriteString(mark)
	rng := rand.NewPCG(seed, 0)
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[rng.Uint64()%uint64(len(words))])
	}
	b.WriteString(s.task)
	return b.String()
}

// wordBytes is a little more than the mean length of a word and a blank.
const wordBytes = 7

// words are common English ones. Each is one token, with the blank before it, in the tokenizers of GPT-2, GPT-4
// and GPT-4o, Llama 2 and Llama 3, so a text of them has as many tokens as words.
var words = strings.Fields(`
	water house school street garden table window door paper letter story number music color light morning
	evening summer winter spring family mother father brother sister child friend teacher doctor river mountain
	forest field road bridge city village island ocean beach stone metal glass wood cloud rain snow wind earth
	moon star sun sky bird horse fish sheep apple bread milk sugar coffee kitchen market office station train
	boat ship wheel engine machine clock bell picture book page circle corner center north south east west large
	small young old early late warm cold bright dark quiet strong simple green blue white black yellow silver
	gold wide deep high short long round open clean fresh happy gentle busy careful walk carry build write read
	watch listen follow gather travel return begin finish answer question change plant grow turn hold bring keep`)
