// Package workload decides what probes ask, and when a load asks it.
//
// What: a Source draws the prompts of a scenario, or makes them up, and marks each so that no cache can have seen it
// before. When: Arrivals is a random or constant process, ReadTrace the recorded traffic of others, with its lengths.
package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sort"
	"sync"

	"goodput_exporter/config"
)

// Prompt is what one probe asks. Either Text or Messages is set.
type Prompt struct {
	Text         string
	Messages     []config.Message
	MaxTokens    int            // ceiling of the answer: the prompt's own, else the scenario's; 0 is none
	OutputTokens int            // pinned length of the answer: the prompt's own, else the scenario's; 0 is none
	Expect       *regexp.Regexp // the visible text of the answer must match; nil: anything will do
}

// Source yields the prompts of one scenario. It is safe for concurrent use.
type Source struct {
	prompts   []config.Prompt
	upTo      []float64  // of each prompt, the sum of the weights up to its own
	synthetic *synthetic // nil: prompts are drawn from prompts
	turns     int        // of a conversation
	writer    writer     // of made-up text
	length    answerLength
	keepCache bool

	mu  sync.Mutex
	rng *rand.Rand
}

// New returns a source of a scenario's prompts. The seed decides which prompts it draws and makes up, in which
// order; nonces are new all the same, since those of an earlier process may still be cached. It returns an error
// if the scenario has nothing to ask; one from a validated configuration always has.
func New(sc *config.Scenario, seed uint64) (*Source, error) {
	s := &Source{
		prompts:   sc.Prompts,
		turns:     1,
		writer:    newWriter(seed, sc.KeepCache),
		length:    answerLength{ceiling: sc.MaxTokens, pinned: sc.OutputTokens},
		keepCache: sc.KeepCache,
		rng:       rand.New(rand.NewPCG(seed, 0)),
	}
	if sc.Synthetic != nil {
		s.synthetic = newSynthetic(sc.Synthetic)
		s.turns = max(1, sc.Synthetic.Turns)
		return s, nil
	}
	if len(sc.Prompts) == 0 {
		return nil, errors.New("nothing to ask: it has neither prompts nor lengths of synthetic ones")
	}
	total := 0.0
	for i, p := range sc.Prompts {
		if !(p.Weight > 0) {
			return nil, fmt.Errorf("weight %v of prompt %d is not positive", p.Weight, i+1)
		}
		total += p.Weight
		s.upTo = append(s.upTo, total)
	}
	return s, nil
}

// Next returns the next prompt, with a nonce of its own unless the scenario keeps caches.
func (s *Source) Next() Prompt {
	if s.synthetic != nil {
		return s.makeUp(s.writer.first)
	}
	s.mu.Lock()
	x := s.rng.Float64() * s.upTo[len(s.upTo)-1]
	s.mu.Unlock()
	// The product may be rounded up to the total; the last prompt has that, too.
	i := min(sort.Search(len(s.upTo), func(i int) bool { return x < s.upTo[i] }), len(s.upTo)-1)
	return s.prompt(&s.prompts[i])
}

// prompt makes a Prompt of one of the scenario's.
func (s *Source) prompt(p *config.Prompt) Prompt {
	next := Prompt{
		Text: p.Text, Messages: p.Messages, Expect: p.Expect,
		MaxTokens: cmp.Or(p.MaxTokens, s.length.ceiling), OutputTokens: s.length.pinned,
	}
	switch {
	case s.keepCache:
	case len(p.Messages) == 0:
		next.Text = nonce() + p.Text
	default:
		next.Messages = slices.Clone(p.Messages)
		// An empty message has no prefix to share.
		first := max(0, slices.IndexFunc(p.Messages, func(m config.Message) bool { return m.Content != "" }))
		next.Messages[first].Content = nonce() + next.Messages[first].Content
	}
	return next
}

// makeUp draws a made-up message, and writes it.
func (s *Source) makeUp(write func(draft, answerLength) string) Prompt {
	s.mu.Lock()
	d := s.synthetic.draw(s.rng)
	s.mu.Unlock()
	length := s.length.or(d.output)
	return Prompt{Text: write(d, length), MaxTokens: length.ceiling, OutputTokens: length.pinned}
}

// A nonce is 52 bits of consonants: enough that no two prompts of a cache's lifetime share one, in the first few
// tokens, where prefix caches look. It spells no word and no number, so it neither changes what is asked nor
// looks like an answer that a prompt may expect.
const (
	nonceLetters = "bcdfghjklmnpqrstvwxz"
	nonceLength  = 12
	nonceTokens  = 12 // about: 9 to 14 in the tokenizers of OpenAI and Llama, brackets included
)

// nonce returns a new nonce, with what separates it from the prompt: "[kqzwbxnmrtfp] ".
func nonce() string {
	b := make([]byte, 0, nonceLength+3)
	b = append(b, '[')
	for range nonceLength {
		b = append(b, nonceLetters[rand.IntN(len(nonceLetters))])
	}
	return string(append(b, "] "...))
}
