package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withSynthetic replaces the prompt and the length of the valid configuration.
func withSynthetic(scenario string) string {
	return strings.Replace(valid, "    prompt: Say hello.\n    max_tokens: 64\n", "    "+scenario+"\n", 1)
}

func TestSyntheticPromptsLoad(t *testing.T) {
	tests := []struct {
		name, scenario string
		want           Synthetic
		longest        int
	}{
		{
			"everything",
			"synthetic: {input_tokens: {p50: 3000, p95: 6000}, output_tokens: {p50: 200, p95: 800}, shared_prefix_tokens: 2000, prefixes: 4, turns: 3}",
			Synthetic{
				InputTokens: Quantiles{P50: 3000, P95: 6000}, OutputTokens: &Quantiles{P50: 200, P95: 800},
				SharedPrefixTokens: 2000, Prefixes: 4, Turns: 3,
			},
			3200,
		},
		{
			"one length of answers",
			"synthetic: {input_tokens: 500, output_tokens: 200}",
			Synthetic{InputTokens: Quantiles{P50: 500, P95: 500}, OutputTokens: &Quantiles{P50: 200, P95: 200}},
			200,
		},
		{
			"a length without a p95",
			"synthetic: {input_tokens: {p50: 500}, output_tokens: {p50: 200}}",
			Synthetic{InputTokens: Quantiles{P50: 500, P95: 500}, OutputTokens: &Quantiles{P50: 200, P95: 200}},
			200,
		},
		{
			"answers up to a ceiling",
			"synthetic: {input_tokens: 500}\n    max_tokens: 90",
			Synthetic{InputTokens: Quantiles{P50: 500, P95: 500}},
			90,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, nil)
			sc := load(t, withSynthetic(tt.scenario)).Series[0].Scenario
			if diff := cmp.Diff(&tt.want, sc.Synthetic); diff != "" {
				t.Errorf("synthetic (-want +got):\n%s", diff)
			}
			if got := sc.LongestAnswer(); got != tt.longest {
				t.Errorf("the longest answer has %d tokens, want %d", got, tt.longest)
			}
		})
	}
}

func TestSyntheticPromptsThatContradict(t *testing.T) {
	const key = "c.yml:4: scenarios.chat.synthetic."
	tests := []struct{ name, scenario, want string }{
		{
			"a pinned length beside one drawn", "synthetic: {input_tokens: 500, output_tokens: 200}\n    output_tokens: 64",
			key + "output_tokens: contradicts output_tokens: both pin the length, one for all answers, one drawn for each; remove one",
		},
		{
			"a ceiling beside a length that is drawn", "synthetic: {input_tokens: 500, output_tokens: 200}\n    max_tokens: 64",
			key + "output_tokens: contradicts max_tokens: max_tokens is a ceiling, synthetic.output_tokens pins the length; remove one",
		},
		{
			"lengths of answers in the wrong order", "synthetic: {input_tokens: 500, output_tokens: {p50: 90, p95: 60}}",
			key + "output_tokens: must have a p50 of at least 1 and a p95 of at least the p50, such as {p50: 3000, p95: 6000}",
		},
		{
			"a digit too many", "synthetic: {input_tokens: 50000000}",
			key + "input_tokens: must have a p95 of at most 10000000 tokens",
		},
		{
			"a prefix as long as the prompts", "synthetic: {input_tokens: 500, shared_prefix_tokens: 500}",
			key + "shared_prefix_tokens: must be less than the p95 of input_tokens: the prefix is a part of the prompt",
		},
		{
			"a prefix where all is shared", "synthetic: {input_tokens: 500, shared_prefix_tokens: 100}\n    cache: keep",
			key + "shared_prefix_tokens: contradicts cache: keep, where prompts share everything: remove one",
		},
		{
			"prefixes without a length", "synthetic: {input_tokens: 500, prefixes: 3}",
			key + "prefixes: prefixes of what length? Give synthetic.shared_prefix_tokens too",
		},
		{
			"negative numbers", "synthetic: {input_tokens: 500, shared_prefix_tokens: -1, prefixes: -1, turns: -1}",
			key + "shared_prefix_tokens: must not be negative; leave it out for prompts that share nothing\n" +
				key + "prefixes: must not be negative; leave it out for one prefix\n" +
				key + "turns: must not be negative; leave it out for single prompts",
		},
		{
			"an unknown key", "synthetic: {input_tokens: 500, turn: 3}",
			key + `turn: unknown key; did you mean "turns"?`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, map[string]string{"c.yml": withSynthetic(tt.scenario)})
			_, err := Load("c.yml")
			if err == nil {
				t.Fatal("Load returned no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDrawnLengthIsPinned(t *testing.T) {
	write(t, nil)
	sc := load(t, withSynthetic("synthetic: {input_tokens: 500, output_tokens: {p50: 20, p95: 60}}")).Series[0].Scenario
	for _, c := range sc.SLO.Criteria {
		if c.Name == CriterionComplete {
			t.Error("an answer of its pinned length is bad: the criterion complete is on")
		}
	}
}

func TestDaemonSaysThatItAsksOnlyFirstTurns(t *testing.T) {
	write(t, nil)
	want := []string{"c.yml:4: scenarios.chat.synthetic.turns: the daemon asks only the first turn of 3; goodputctl bench holds the whole conversation"}
	if diff := cmp.Diff(want, load(t, withSynthetic("synthetic: {input_tokens: 500, turns: 3}")).Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestMaskedShowsSyntheticPrompts(t *testing.T) {
	write(t, nil)
	b, err := load(t, withSynthetic("synthetic: {input_tokens: 500, output_tokens: 20, shared_prefix_tokens: 100, prefixes: 2, turns: 3}")).Masked()
	if err != nil {
		t.Fatal(err)
	}
	const want = `
        synthetic:
          input_tokens:
            p50: 500
            p95: 500
          output_tokens:
            p50: 20
            p95: 20
          shared_prefix_tokens: 100
          prefixes: 2
          turns: 3
`
	if !strings.Contains(string(b), want) {
		t.Errorf("the configuration as it is shown lacks%sin\n%s", want, b)
	}
}
