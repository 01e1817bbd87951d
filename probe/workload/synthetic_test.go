package workload

import (
	"math"
	"slices"
	"strings"
	"testing"

	"goodput_exporter/config"
)

func lengths(p50, p95 int) *config.Scenario {
	return &config.Scenario{Synthetic: &config.Synthetic{InputTokens: config.Quantiles{P50: p50, P95: p95}}}
}

func TestLengthsFollowTheQuantiles(t *testing.T) {
	for _, q := range []config.Quantiles{{P50: 3000, P95: 6000}, {P50: 200, P95: 4000}, {P50: 2, P95: 9}} {
		s := newSource(t, lengths(q.P50, q.P95), 1)
		const n = 20000
		under50, under95 := 0.0, 0.0
		for range n {
			tokens, _ := s.synthetic.draw(s.rng)
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
		sc := lengths(700, 700)
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
	s := newSource(t, lengths(1, 1000), 1) // one in 240 would be longer than 4000
	for range 5000 {
		tokens, _ := s.synthetic.draw(s.rng)
		if tokens < 1 || tokens > 4000 {
			t.Fatalf("a length of %d tokens, want 1 to 4000", tokens)
		}
	}
}

func TestShortestPromptStillAsksSomething(t *testing.T) {
	text := withoutNonce(t, newSource(t, lengths(1, 1), 1).Next().Text)
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

func BenchmarkNext(b *testing.B) {
	for name, sc := range map[string]*config.Scenario{
		"6000 tokens": lengths(6000, 6000),
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
