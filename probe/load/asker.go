package load

import (
	"context"
	"sync"
	"time"

	"goodput_exporter/probe"
	"goodput_exporter/probe/workload"
)

// NewAsker returns what asks the prompts of a source, each conversation turn by turn. A request takes up a
// conversation whose last answer is there, where one waits, and else begins a new one; so a turn is one request of the
// level, and each waits for the answer before it.
func NewAsker(prober *probe.Prober, source *workload.Source) Asker {
	return &conversations{prober: prober, source: source}
}

type conversations struct {
	prober *probe.Prober
	source *workload.Source

	mu      sync.Mutex
	waiting []*workload.Conversation // the longest waiting first; some may have had their last turn
}

// Ask implements Asker.
func (c *conversations) Ask(ctx context.Context, _ int) *probe.Result {
	conversation, prompt := c.next()
	r := c.prober.Ask(ctx, prompt)
	if r.Outcome.Success() {
		conversation.Answered(r.Text)
		c.mu.Lock()
		c.waiting = append(c.waiting, conversation)
		c.mu.Unlock()
	}
	return r
}

// next returns a conversation and its next prompt. Long prompts take a while to write, so nobody waits for that.
func (c *conversations) next() (*workload.Conversation, workload.Prompt) {
	for {
		conversation := c.take()
		if prompt, ok := conversation.Next(); ok {
			return conversation, prompt
		}
	}
}

// take returns the conversation that waits longest, or else a new one.
func (c *conversations) take() *workload.Conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return c.source.Conversation()
	}
	conversation := c.waiting[0]
	c.waiting = c.waiting[1:]
	return conversation
}

// NewReplay returns what asks for the lengths of recorded requests, and the schedule of their arrivals.
func NewReplay(prober *probe.Prober, source *workload.Source, entries []workload.TraceEntry) (Asker, Schedule) {
	n := 0
	next := func() (time.Duration, bool) {
		if n == len(entries) {
			return 0, false
		}
		n++
		return entries[n-1].At, true
	}
	return &replay{prober, source, entries}, next
}

type replay struct {
	prober  *probe.Prober
	source  *workload.Source
	entries []workload.TraceEntry
}

// Ask implements Asker.
func (r *replay) Ask(ctx context.Context, n int) *probe.Result {
	return r.prober.Ask(ctx, r.source.Recorded(r.entries[n]))
}
