package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goodput_exporter/config"
)

func conversation(t *testing.T, turns int) *Conversation {
	t.Helper()
	sc := scenarioOf(300, 300)
	sc.Synthetic.SharedPrefixTokens, sc.Synthetic.Turns = 100, turns
	sc.OutputTokens = 40
	return newSource(t, sc, 1).Conversation()
}

func TestEachTurnHasTheAnswersBefore(t *testing.T) {
	c := conversation(t, 3)
	var history []config.Message
	var kept []Prompt
	for turn := range 3 {
		p, ok := c.Next()
		if !ok {
			t.Fatalf("no turn %d", turn+1)
		}
		messages := p.Messages
		if turn == 0 {
			messages = []config.Message{{Role: "user", Content: p.Text}}
		} else if p.Text != "" {
			t.Fatal("a prompt with both text and messages")
		}
		if diff := cmp.Diff(history, messages[:len(messages)-1], cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("turn %d: messages before the new one (-want +got):\n%s", turn+1, diff)
		}
		asked := messages[len(messages)-1]
		if asked.Role != "user" || !strings.Contains(asked.Content, "Write a story of about 40 words") || p.OutputTokens != 40 {
			t.Errorf("turn %d asks %+v with %d output tokens", turn+1, asked, p.OutputTokens)
		}
		answer := fmt.Sprintf("The answer of turn %d.", turn+1)
		history = append(slices.Clone(messages), config.Message{Role: "assistant", Content: answer})
		kept = append(kept, p)
		c.Answered(answer)
	}
	if _, more := c.Next(); more {
		t.Error("a fourth turn of three")
	}
	if n := len(kept[1].Messages); n != 3 {
		t.Errorf("the second turn's prompt has %d messages after the third, want 3", n)
	}
}

func TestOnlyTheFirstTurnHasPrefixAndNonce(t *testing.T) {
	c := conversation(t, 2)
	first, _ := c.Next()
	split(t, first.Text)
	c.Answered("Yes.")
	second, _ := c.Next()
	text := second.Messages[2].Content
	words, _, _ := strings.Cut(text, "\n")
	if strings.Contains(text, "[") {
		t.Errorf("a nonce in %.40q", text)
	}
	// What the input length leaves beside the prefix.
	if got := len(strings.Fields(words)) + taskTokens; got != 200 {
		t.Errorf("the second message has about %d tokens, want 200", got)
	}
}

func TestConversationEndsEarly(t *testing.T) {
	ways := map[string]func(*Conversation){
		"a turn that failed":         func(*Conversation) {},
		"an answer without any text": func(c *Conversation) { c.Answered("") },
	}
	for name, answered := range ways {
		t.Run(name, func(t *testing.T) {
			c := conversation(t, 3)
			if _, ok := c.Next(); !ok {
				t.Fatal("no first turn")
			}
			answered(c)
			for range 2 {
				if _, ok := c.Next(); ok {
					t.Fatal("it went on")
				}
			}
		})
	}
}

func TestOtherPromptsAreConversationsOfOneTurn(t *testing.T) {
	asked := []config.Message{{Role: "user", Content: "Hello"}, {Role: "assistant", Content: "Yes?"}, {Role: "user", Content: "Bye"}}
	s := newSource(t, &config.Scenario{KeepCache: true, Prompts: []config.Prompt{{Messages: asked, Weight: 1}}}, 1)
	c := s.Conversation()
	p, ok := c.Next()
	if diff := cmp.Diff(asked, p.Messages); !ok || diff != "" {
		t.Errorf("first turn %t (-want +got):\n%s", ok, diff)
	}
	c.Answered("Bye.")
	if _, ok := c.Next(); ok {
		t.Error("a second turn")
	}
}

func TestConversationsAreNotTheSame(t *testing.T) {
	sc := scenarioOf(100, 100)
	sc.Synthetic.Turns = 2
	s := newSource(t, sc, 1)
	seen := map[string]bool{}
	for range 50 {
		c := s.Conversation()
		first, _ := c.Next()
		c.Answered("Yes.")
		second, _ := c.Next()
		seen[withoutNonce(t, first.Text)] = true
		seen[second.Messages[2].Content] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different messages in 50 conversations of two turns, want 100", len(seen))
	}
}
