package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// writer makes up text of stated lengths. A length is an estimate, good to some per cent: what the server reports as
// its usage is the truth.
type writer struct {
	seed      uint64 // of the words that several prompts share
	run       string // stands before these, so that no cache has them from an earlier run; empty where caches are kept
	keepCache bool
}

func newWriter(seed uint64, keepCache bool) writer {
	w := writer{seed: seed, keepCache: keepCache}
	if !keepCache {
		w.run = nonce()
	}
	return w
}

// first writes a single prompt, or the first message of a conversation: the shared prefix, the nonce, words of its
// own, and what to do with them. It has at least one word, so the shortest prompts are a little longer than asked for.
func (w writer) first(d draft, answer answerLength) string {
	t := newText(d.input)
	if d.shared > 0 {
		t.mark(w.run)
		t.words(d.shared-nonceTokens, w.common(commonPrefix, d.prefix))
		t.WriteString("\n\n")
	}
	if !w.keepCache {
		t.mark(nonce())
	}
	t.words(max(1, t.left), w.own(d.seed, 0))
	return t.finish(answer)
}

// later writes the message of a later turn, which has neither prefix nor nonce: those of the first stand before it.
func (w writer) later(d draft, turn int, answer answerLength) string {
	t := newText(d.input - d.shared)
	t.words(max(1, t.left), w.own(d.seed, turn))
	return t.finish(answer)
}

// recorded writes a prompt that begins with recorded blocks. The last of them may be cut; tokens beyond them are
// words of the prompt's own.
func (w writer) recorded(d draft, blocks []int, answer answerLength) string {
	t := newText(d.input)
	t.mark(w.run)
	t.left = max(1, t.left)
	for _, id := range blocks {
		t.words(min(blockTokens, t.left), w.common(commonBlock, uint64(id)))
	}
	t.words(t.left, w.own(d.seed, 0))
	return t.finish(answer)
}

// blockTokens is the length of a recorded block in tokens. All blocks of a trace have it, but for the last of a prompt.
const blockTokens = 512

// The kinds of text that prompts have in common. Those of one kind are told apart by a number.
const (
	commonWords  = iota // where caches are kept, by the turn
	commonPrefix        // by its index
	commonBlock         // by its hash
)

// common returns the source of words that are the same in all prompts that ask for them.
func (w writer) common(kind, number uint64) *rand.PCG {
	return rand.NewPCG(w.seed^kind<<62, number)
}

// own returns the source of words that only one message has; of those of every message of that turn where caches are
// kept.
func (w writer) own(seed uint64, turn int) *rand.PCG {
	if w.keepCache {
		return w.common(commonWords, uint64(turn))
	}
	return rand.NewPCG(seed, 0)
}

// answerLength is how long an answer may be, in tokens: up to a ceiling, or exactly so long. 0 is neither.
type answerLength struct {
	ceiling, pinned int
}

// or returns the length that a prompt pins, l where it pins none.
func (l answerLength) or(pinned int) answerLength {
	if pinned > 0 {
		return answerLength{pinned: pinned}
	}
	return l
}

// words returns how long an answer to ask for, at about 4 tokens to 3 words: one that stays clear of a ceiling, one
// that does not end before a pinned length.
func (l answerLength) words() int {
	switch {
	case l.pinned > 0:
		return l.pinned
	case l.ceiling > 0:
		return max(1, l.ceiling/3)
	}
	return 200
}

// text is a message that is being written.
type text struct {
	strings.Builder
	left int // tokens that it lacks, the task at its end apart; less than 0 where it has more than were asked for
}

// taskTokens is about the length of the task in tokens.
const taskTokens = 18

func newText(tokens int) *text {
	t := &text{left: tokens - taskTokens}
	t.Grow(max(0, t.left)*wordBytes + 128)
	return t
}

func (t *text) mark(nonce string) {
	if nonce != "" {
		t.WriteString(nonce)
		t.left -= nonceTokens
	}
}

// words writes n words.
func (t *text) words(n int, source *rand.PCG) {
	inWord := t.Len() > 0 && !strings.HasSuffix(t.String(), " ") && !strings.HasSuffix(t.String(), "\n")
	for i := range n {
		if i > 0 || inWord {
			t.WriteByte(' ')
		}
		t.WriteString(words[source.Uint64()%uint64(len(words))])
		t.left--
	}
}

// finish writes the task, and returns the whole.
func (t *text) finish(answer answerLength) string {
	fmt.Fprintf(t, "\n\nWrite a story of about %d words that uses some of the words above.\n", answer.words())
	return t.String()
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
