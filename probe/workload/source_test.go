package workload

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
)

func newSource(t testing.TB, sc *config.Scenario, seed uint64) *Source {
	t.Helper()
	s, err := New(sc, seed)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}

// withoutNonce cuts the nonce off a text, and fails if there is none.
func withoutNonce(t testing.TB, text string) string {
	t.Helper()
	nonce := regexp.MustCompile(`^\[[bcdfghjklmnpqrstvwxz]{12}\] `).FindString(text)
	if nonce == "" {
		t.Fatalf("no nonce at the start of %.40q", text)
	}
	return text[len(nonce):]
}

func TestPromptsAreDrawnByWeight(t *testing.T) {
	sc := &config.Scenario{Prompts: []config.Prompt{
		{Text: "often", Weight: 7}, {Text: "seldom", Weight: 1}, {Text: "sometimes", Weight: 2},
	}}
	s := newSource(t, sc, 1)
	const n = 10000
	drawn := map[string]int{}
	for range n {
		drawn[withoutNonce(t, s.Next().Text)]++
	}
	for text, share := range map[string]float64{"often": 0.7, "seldom": 0.1, "sometimes": 0.2} {
		if got := float64(drawn[text]) / n; math.Abs(got-share) > 0.02 {
			t.Errorf("%q was drawn with a share of %.3f, want %.1f", text, got, share)
		}
	}
}

func TestSeedDecidesPromptsButNotNonces(t *testing.T) {
	scenarios := map[string]*config.Scenario{
		"prompts": {Prompts: []config.Prompt{
			{Text: "one", Weight: 1}, {Text: "two", Weight: 1}, {Text: "three", Weight: 1},
		}},
		"synthetic": {Synthetic: &config.Synthetic{InputTokens: config.Quantiles{P50: 100, P95: 300}}},
	}
	for name, sc := range scenarios {
		t.Run(name, func(t *testing.T) {
			draw := func(seed uint64) (texts []string) {
				s := newSource(t, sc, seed)
				for range 20 {
					texts = append(texts, s.Next().Text)
				}
				return texts
			}
			bare := func(texts []string) (bare []string) {
				for _, text := range texts {
					bare = append(bare, withoutNonce(t, text))
				}
				return bare
			}
			one, again, other := draw(1), draw(1), draw(2)
			if diff := cmp.Diff(bare(one), bare(again)); diff != "" {
				t.Errorf("one seed gave two sequences (-first +second):\n%s", diff)
			}
			if slices.Equal(bare(one), bare(other)) {
				t.Error("two seeds gave the same sequence")
			}
			for i := range one {
				if one[i] == again[i] {
					t.Errorf("a restart with the same seed asks again what may be cached: %.40q", one[i])
				}
			}
		})
	}
}

func TestNonceStandsBeforeTheFirstContent(t *testing.T) {
	tests := []struct {
		name     string
		messages []config.Message
		at       int
	}{
		{"a user's message", []config.Message{{Role: "user", Content: "Hello"}}, 0},
		{"a system message first", []config.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Hello"}}, 0},
		{"an empty message first", []config.Message{{Role: "system"}, {Role: "user", Content: "Hello"}, {Role: "user", Content: "You?"}}, 1},
		{"no content at all", []config.Message{{Role: "user"}}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.messages)
			s := newSource(t, &config.Scenario{Prompts: []config.Prompt{{Messages: tt.messages, Weight: 1}}}, 1)
			got := s.Next().Messages
			if diff := cmp.Diff(before, tt.messages); diff != "" {
				t.Fatalf("the scenario's own messages were changed:\n%s", diff)
			}
			got[tt.at].Content = withoutNonce(t, got[tt.at].Content)
			if diff := cmp.Diff(before, got); diff != "" {
				t.Errorf("messages without the nonce (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoNonceWhereTheCacheMayAnswer(t *testing.T) {
	sc := &config.Scenario{KeepCache: true, Prompts: []config.Prompt{{Text: "Hello", Weight: 1}}}
	if got := newSource(t, sc, 1).Next().Text; got != "Hello" {
		t.Errorf("asked %q, want the prompt as it is", got)
	}

	sc = &config.Scenario{KeepCache: true, Synthetic: &config.Synthetic{InputTokens: config.Quantiles{P50: 500, P95: 1000}}}
	s := newSource(t, sc, 1)
	first := s.Next().Text
	for range 100 {
		text := s.Next().Text
		shorter := min(strings.Index(first, "\n"), strings.Index(text, "\n"))
		if first[:shorter] != text[:shorter] {
			t.Fatalf("two synthetic prompts share no prefix: %.40q, %.40q", first, text)
		}
	}
}

func TestConcurrentPromptsShareNoPrefix(t *testing.T) {
	s := newSource(t, &config.Scenario{Prompts: []config.Prompt{{Text: "Hello", Weight: 1}}}, 1)
	const each = 5000
	var wg sync.WaitGroup
	texts := make([]string, 4*each)
	for w := range 4 {
		wg.Go(func() {
			for i := range each {
				texts[w*each+i] = s.Next().Text
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, text := range texts {
		// Less than the whole nonce, but enough letters that chance alone makes two equal in a millionth of the runs.
		prefix := text[:12]
		if seen[prefix] {
			t.Fatalf("two prompts begin with %q", prefix)
		}
		seen[prefix] = true
	}
}

func TestPromptCarriesItsOwnLimitAndExpectation(t *testing.T) {
	expect := regexp.MustCompile("4")
	tests := []struct {
		name            string
		prompt, ceiling int
		want            int
	}{
		{"its own before the scenario's", 8, 256, 8},
		{"the scenario's", 0, 256, 256},
		{"none", 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := config.Prompt{Text: "2+2?", Weight: 1, MaxTokens: tt.prompt, Expect: expect}
			got := newSource(t, &config.Scenario{MaxTokens: tt.ceiling, Prompts: []config.Prompt{p}}, 1).Next()
			if got.MaxTokens != tt.want || got.Expect != expect {
				t.Errorf("max tokens %d, expect %v; want %d, %v", got.MaxTokens, got.Expect, tt.want, expect)
			}
		})
	}
}

func TestNothingToAskIsAnError(t *testing.T) {
	tests := []struct {
		scenario config.Scenario
		want     string
	}{
		{config.Scenario{}, "nothing to ask: it has neither prompts nor lengths of synthetic ones"},
		{config.Scenario{Prompts: []config.Prompt{{Text: "a", Weight: 1}, {Text: "b"}}}, "weight 0 of prompt 2 is not positive"},
	}
	for _, tt := range tests {
		if _, err := New(&tt.scenario, 1); fmt.Sprint(err) != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}
