package probe

import (
	"slices"
	"time"

	"goodput_exporter/probe/arrival"
	"goodput_exporter/probe/stream"
	"goodput_exporter/probe/wire"
)

// MaxText is how much of an answer's visible text is kept, in bytes.
const MaxText = 1 << 20

const (
	// burst is the longest time in which token events that were held back and let go together can arrive, or
	// burstGap for each of them where they are many. No model makes tokens that fast.
	burst    = time.Millisecond
	burstGap = 50 * time.Microsecond
	// noticeable is the least lateness of a read that may have merged what arrived apart.
	noticeable = 5 * time.Millisecond
)

// answer is what the events of one response add up to.
type answer struct {
	text     []byte
	clipped  bool // the text is longer than what is kept of it
	channels wire.Channel
	tokens   int // token events

	first, firstAnswer, last time.Time
	gaps                     []time.Duration

	kind      stream.Kind
	finish    string
	finishAt  time.Time
	finishes  int
	limited   bool // by the token limit
	filtered  bool
	refused   bool // by the finish
	done      bool
	doneAt    time.Time
	whole     bool // an answer that is no stream
	tokenless bool // one that has no tokens by its nature
	server    []wire.ServerTime
	cut       bool       // a whole answer that ends in the midst
	usage     wire.Usage // of each count the last report
	err       *wire.Error
	errAt     time.Time

	read      int // number of the read that the last token event came in
	kernel    bool
	ownLag    time.Duration // the greatest of any read with a token event
	coalesced time.Duration // the greatest of any read with several, where it is noticeable
}

// add takes one event, which came in the read of that number.
func (a *answer) add(ev *wire.Event, at arrival.Stamp, read int) {
	if ev.Channels != 0 {
		a.addToken(ev, at, read)
	}
	if ev.Finish != "" {
		a.finishes++
		if a.finish == "" {
			a.finish, a.finishAt = ev.Finish, at.At
		}
		a.limited = a.limited || ev.Limited
		a.filtered = a.filtered || ev.Filtered
		a.refused = a.refused || ev.Refused
	}
	if ev.Done && !a.done {
		a.done, a.doneAt = true, at.At
	}
	a.whole = a.whole || ev.Answer
	a.tokenless = a.tokenless || ev.Tokenless
	a.server = latest(a.server, ev.Server)
	if ev.Usage != nil {
		a.addUsage(ev.Usage)
	}
	if ev.Error != nil && a.err == nil {
		a.err, a.errAt = ev.Error, at.At
	}
}

// addUsage takes a report of usage. The last one wins, since usage is cumulative; but one that leaves a count out does
// not take back what was reported of it before.
func (a *answer) addUsage(u *wire.Usage) {
	for _, c := range []struct {
		from *int
		to   **int
	}{
		{u.Input, &a.usage.Input},
		{u.Output, &a.usage.Output},
		{u.CachedInput, &a.usage.CachedInput},
		{u.Reasoning, &a.usage.Reasoning},
	} {
		if c.from != nil {
			n := *c.from // which the decoder may use again
			*c.to = &n
		}
	}
}

func (a *answer) addToken(ev *wire.Event, at arrival.Stamp, read int) {
	a.tokens++
	a.channels |= ev.Channels
	if len(a.text)+len(ev.Text) <= MaxText {
		a.text = append(a.text, ev.Text...)
	} else {
		a.clipped = true
	}
	if a.tokens == 1 {
		a.first = at.At
	} else {
		a.gaps = append(a.gaps, at.At.Sub(a.last))
	}
	if a.firstAnswer.IsZero() && ev.Channels&^wire.Reasoning != 0 {
		a.firstAnswer = at.At
	}
	a.last = at.At
	a.kernel = at.Kernel
	a.ownLag = max(a.ownLag, at.Lag)
	if read == a.read && at.Lag >= noticeable {
		a.coalesced = max(a.coalesced, at.Lag)
	}
	a.read = read
}

// over reports whether the protocol's terminal signal came.
func (a *answer) over() bool { return a.finish != "" || a.done }

// buffered reports whether token events that belong apart all arrived at once.
func (a *answer) buffered() bool {
	return a.tokens > 1 && a.last.Sub(a.first) < max(burst, time.Duration(a.tokens)*burstGap)
}

// report writes what the answer tells into a result. maxTokens is the limit that was asked for; 0 is none.
func (a *answer) report(r *Result, start time.Time, maxTokens int) {
	r.Text = string(a.text)
	r.FinishReason = a.finish
	r.TokenEvents = a.tokens
	r.ServerTimes = latest(r.ServerTimes, a.server)
	a.reportTokens(r, maxTokens)
	if a.tokens == 0 {
		return
	}
	if !a.whole {
		r.TTFT = since(start, a.first)
		if !a.firstAnswer.IsZero() {
			r.FirstAnswer = since(start, a.firstAnswer)
		}
		if !a.buffered() && len(a.gaps) > 0 {
			r.ChunkGaps = a.gaps
			longest := a.gaps[0]
			for _, g := range a.gaps {
				longest = max(longest, g)
			}
			r.Stall = &longest
		}
	}
	r.StampSource = "read"
	if a.kernel {
		r.StampSource = "kernel"
		r.OwnLag = &a.ownLag
	}
}

// reportTokens writes the counts of tokens: the server's, unless they cannot be.
func (a *answer) reportTokens(r *Result, maxTokens int) {
	r.OutputTokensSource = TokensNone
	if a.tokens > 0 {
		n := a.tokens
		r.OutputTokens, r.OutputTokensSource = &n, TokensCounted
	}
	u := a.usage
	r.InputTokens, r.CachedInputTokens, r.ReasoningTokens = notNegative(u.Input), notNegative(u.CachedInput), notNegative(u.Reasoning)
	if u.Output == nil {
		return
	}
	if a.implausible(*u.Output, r.ReasoningTokens, maxTokens) {
		r.Flags = append(r.Flags, FlagUsageImplausible)
		return
	}
	if *u.Output > 0 {
		r.OutputTokens, r.OutputTokensSource = u.Output, TokensUsage
	}
}

// implausible reports whether n output tokens contradict what arrived: none or less although tokens came; or more
// than were allowed and more than twice the token events, which would flatter the time per token.
func (a *answer) implausible(n int, reasoning *int, maxTokens int) bool {
	if n < 0 || n == 0 && a.tokens > 0 {
		return true
	}
	allowed := maxTokens
	if reasoning != nil {
		allowed += *reasoning
	}
	return maxTokens > 0 && n > allowed && n > 2*a.tokens
}

// tpot returns the time per output token of a complete streamed answer, or nil where it is not defined.
func (a *answer) tpot(n *int) *time.Duration {
	if a.whole || n == nil || *n < 2 || a.tokens < 2 || a.buffered() {
		return nil
	}
	d := a.last.Sub(a.first) / time.Duration(*n-1)
	return &d
}

// end returns the instant at which an answer was complete: its last token or its finish, whichever is later; of an
// answer without either, its end.
func (a *answer) end() time.Time {
	if a.tokenless {
		return a.doneAt
	}
	if a.finishAt.After(a.last) {
		return a.finishAt
	}
	return a.last
}

// latest adds server times to a list that has each kind once: what is said with every chunk grows, and the body, which
// ends later, knows better than the head.
func latest(list, told []wire.ServerTime) []wire.ServerTime {
	for _, t := range told {
		same := func(have wire.ServerTime) bool { return have.Kind == t.Kind }
		if i := slices.IndexFunc(list, same); i >= 0 {
			list[i] = t
		} else {
			list = append(list, t)
		}
	}
	return list
}

func since(start, t time.Time) *time.Duration {
	d := t.Sub(start)
	return &d
}

func notNegative(n *int) *int {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}

// hidTokens reports whether the server made tokens that it does not show: reasoning by its own account, or what the
// token limit cut before there was anything to show. A count alone says nothing: many servers count the end as a token.
func (a *answer) hidTokens() bool {
	u := a.usage
	return u.Output != nil && *u.Output > 0 && (a.limited || u.Reasoning != nil && *u.Reasoning > 0)
}

// onlyReasoning reports whether the answer shows nothing but reasoning, or hides even that.
func (a *answer) onlyReasoning() bool {
	return a.tokens > 0 && a.channels == wire.Reasoning || a.tokens == 0 && a.hidTokens()
}
