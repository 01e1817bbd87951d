package workload

import (
	"slices"

	"goodput_exporter/config"
)

// Conversation is a sequence of prompts that one user sends, each with the messages and answers before it. It is for
// one goroutine: a turn begins when the answer to the last one is there.
type Conversation struct {
	source   *Source
	asked    int // turns so far
	open     bool
	messages []config.Message
}

// Conversation returns a new conversation of the scenario's. Only synthetic prompts go on for several turns: any other
// conversation ends after one.
func (s *Source) Conversation() *Conversation {
	return &Conversation{source: s, open: true}
}

// Next returns the prompt of the next turn. It returns false when the conversation has ended: after its last turn, or
// when the turn before was not Answered, as one that failed.
func (c *Conversation) Next() (Prompt, bool) {
	if !c.open {
		return Prompt{}, false
	}
	c.open = false
	turn := c.asked
	c.asked++
	if turn == 0 {
		p := c.source.Next()
		c.messages = append(c.messages, config.Message{Role: "user", Content: p.Text})
		return p, true
	}
	p := c.source.makeUp(func(d draft, answer answerLength) string { return c.source.writer.later(d, turn, answer) })
	c.messages = append(c.messages, config.Message{Role: "user", Content: p.Text})
	p.Text, p.Messages = "", slices.Clip(c.messages)
	return p, true
}

// Answered takes the visible text of the answer to the last prompt, from which the conversation goes on. One without
// text ends it: there is nothing to go on from, and many servers refuse empty messages.
func (c *Conversation) Answered(text string) {
	if text == "" || c.open || c.asked == c.source.turns {
		return
	}
	c.messages = append(c.messages, config.Message{Role: "assistant", Content: text})
	c.open = true
}
