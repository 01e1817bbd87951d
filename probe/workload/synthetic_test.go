package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"goodput_exporter/config"
)

// scenarioOf returns one of made-up prompts of such lengths.
func scenarioOf(p50, p95 int) *config.Scenario {
	return &config.Scenario{Synthetic: &config.Synthetic{InputTokens: config.Quantiles{P50: p50, P95: p95}}}
}

func TestLengthsFollowTheQuantiles(t *testing.T) {
	for _, q := range []config.Quantiles{{P50: 3000, P95: 6000}, {P50: 200, P95: 4000}, {P50: 2, P95: 9}} {
		s := newSource(t, scenarioOf(q.P50, q.P95), 1)
		const n = 20000
		under50, under95 := 0.0, 0.0
		for range n {
			tokens := s.synthetic.draw(s.rng).input
			switch {
			case tokens < q.P50:
				under50++
			case tokens == q.P50: // short lengths are coarse
				under50 += 0.5
			}
			switch {
			case tokens < q.P95:
				under95++
			case tokens == q.P95:
				under95 += 0.5
			}
		}
		if math.Abs(under50/n-0.5) > 0.02 || math.Abs(under95/n-0.95) > 0.01 {
			t.Errorf("%+v: %.3f of the lengths are under the p50, %.3f under the p95", q, under50/n, under95/n)
		}
	}
}

func TestTextHasTheLengthThatWasDrawn(t *testing.T) {
	for _, keepCache := range []bool{false, true} {
		sc := scenarioOf(700, 700)
		sc.KeepCache = keepCache
		text := newSource(t, sc, 1).Next().Text
		// The ratio for the task and the nonce: that of English prose, and letters that form no words.
		tokens := len(strings.Fields(text))
		if !keepCache {
			tokens += nonceTokens - 1
		}
		if tokens < 690 || tokens > 710 {
			t.Errorf("cache kept: %t: about %d tokens, want 700", keepCache, tokens)
		}
	}
}

func TestTailIsBounded(t *testing.T) {
	s := newSource(t, scenarioOf(1, 1000), 1) // one in 240 would be longer than 4000
	for range 5000 {
		tokens := s.synthetic.draw(s.rng).input
		if tokens < 1 || tokens > 4000 {
			t.Fatalf("a length of %d tokens, want 1 to 4000", tokens)
		}
	}
}

func TestShortestPromptStillAsksSomething(t *testing.T) {
	text := withoutNonce(t, newSource(t, scenarioOf(1, 1), 1).Next().Text)
	word, task, _ := strings.Cut(text, "\n\n")
	if !slices.Contains(words, word) || !strings.Contains(task, "Write a story") {
		t.Errorf("asked %q", text)
	}
}

func TestAnswerIsAskedForByLength(t *testing.T) {
	tests := []struct {
		name     string
		scenario config.Scenario
		want     string
	}{
		{"clear of a ceiling", config.Scenario{MaxTokens: 300}, "about 100 words"},
		{"beyond a pinned length", config.Scenario{OutputTokens: 400}, "about 400 words"},
		{"neither", config.Scenario{}, "about 200 words"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sc := tt.scenario
			sc.Synthetic = &config.Synthetic{InputTokens: config.Quantiles{P50: 50, P95: 50}}
			if text := newSource(t, &sc, 1).Next().Text; !strings.Contains(text, tt.want) {
				t.Errorf("asked %q, want %q in it", text, tt.want)
			}
		})
	}
}

func TestAnswersAreDrawnAndPinned(t *testing.T) {
	sc := scenarioOf(50, 50)
	sc.Synthetic.OutputTokens = &config.Quantiles{P50: 200, P95: 800}
	s := newSource(t, sc, 1)
	const n = 5000
	under50, under95 := 0.0, 0.0
	for range n {
		p := s.Next()
		if p.MaxTokens != 0 {
			t.Fatalf("a ceiling of %d beside a pinned length", p.MaxTokens)
		}
		if want := fmt.Sprintf("about %d words", p.OutputTokens); !strings.Contains(p.Text, want) {
			t.Fatalf("asked %q, want %q in it", p.Text, want)
		}
		if p.OutputTokens < 200 {
			under50++
		}
		if p.OutputTokens < 800 {
			under95++
		}
	}
	if math.Abs(under50/n-0.5) > 0.03 || math.Abs(under95/n-0.95) > 0.015 {
		t.Errorf("%.3f of the pinned lengths are under the p50, %.3f under the p95", under50/n, under95/n)
	}
}

// split takes a prompt with a shared prefix apart.
func split(t *testing.T, text string) (prefix, rest string) {
	t.Helper()
	prefix, rest, ok := strings.Cut(text, "\n\n")
	if !ok {
		t.Fatalf("no prefix at the start of %.40q", text)
	}
	return prefix, withoutNonce(t, rest)
}

func TestPrefixesAreShared(t *testing.T) {
	sc := scenarioOf(500, 500)
	sc.Synthetic.SharedPrefixTokens, sc.Synthetic.Prefixes = 200, 3
	s := newSource(t, sc, 1)
	drawn := map[string]int{}
	rests := map[string]bool{}
	const n = 600
	for range n {
		prefix, rest := split(t, s.Next().Text)
		drawn[prefix]++
		rests[rest] = true
		// The ratios for the task and the nonces are those of the constants.
		if got := len(strings.Fields(prefix)) - 1 + nonceTokens; got != 200 {
			t.Fatalf("a prefix of about %d tokens, want 200", got)
		}
		words, _, _ := strings.Cut(rest, "\n")
		if got := len(strings.Fields(words)) + nonceTokens + taskTokens; got != 300 {
			t.Fatalf("about %d tokens after the prefix, want 300", got)
		}
	}
	if len(drawn) != 3 || len(rests) != n {
		t.Fatalf("%d prefixes and %d texts after them, want 3 and %d", len(drawn), len(rests), n)
	}
	for prefix, times := range drawn {
		if times < n/3-80 || times > n/3+80 {
			t.Errorf("the prefix %.40q was drawn %d times of %d, want a third", prefix, times, n)
		}
	}
}

func TestPrefixIsNewInEachRun(t *testing.T) {
	sc := scenarioOf(500, 500)
	sc.Synthetic.SharedPrefixTokens = 200
	one, _ := split(t, newSource(t, sc, 1).Next().Text)
	again, _ := split(t, newSource(t, sc, 1).Next().Text)
	if one[:12] == again[:12] {
		t.Errorf("a second run asks what a cache may still have: both begin with %.40q", one)
	}
	if withoutNonce(t, one) != withoutNonce(t, again) {
		t.Error("one seed gave two prefixes")
	}
}

func TestPrefixLongerThanThePromptStaysWhole(t *testing.T) {
	sc := scenarioOf(20, 400)
	sc.Synthetic.SharedPrefixTokens = 300
	s := newSource(t, sc, 1)
	short := 0
	for range 200 {
		prefix, rest := split(t, s.Next().Text)
		if got := len(strings.Fields(prefix)) - 1 + nonceTokens; got != 300 {
			t.Fatalf("a prefix of about %d tokens, want 300", got)
		}
		if words, _, _ := strings.Cut(rest, "\n"); len(strings.Fields(words)) == 1 {
			short++
		}
	}
	if short < 150 {
		t.Errorf("%d of 200 prompts are the prefix and its task alone, want most", short)
	}
}

func BenchmarkNext(b *testing.B) {
	for name, sc := range map[string]*config.Scenario{
		"6000 tokens": scenarioOf(6000, 6000),
		"text":        {Prompts: []config.Prompt{{Text: "Hello", Weight: 1}}},
	} {
		b.Run(name, func(b *testing.B) {
			s := newSource(b, sc, 1)
			b.ReportAllocs()
			for b.Loop() {
				s.Next()
			}
		})
	}
}
