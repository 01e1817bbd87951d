package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The configuration that the README shows is one that loads, without a warning.
func TestReadmeConfiguration(t *testing.T) {
	_, rest, ok := strings.Cut(readme(t), "```yaml\n")
	if !ok {
		t.Fatal("the README shows no configuration")
	}
	yaml, _, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"goodput.yml":        yaml,
		"prompts/chat.jsonl": `{"prompt":"hello"}`,
		"secrets/llm":        "key",
		"targets/more.yml":   "- {name: more, url: 'http://127.0.0.1:8000', model: m, scenarios: [chat]}",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(filepath.Join(dir, "goodput.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Warnings) > 0 {
		t.Errorf("warnings: %s", strings.Join(cfg.Warnings, "\n"))
	}
}

// The README's tables name every metric, outcome and reason that exists, and no other metric.
func TestReadmeTables(t *testing.T) {
	text := readme(t)
	catalogue, err := os.ReadFile("../../collector/testdata/catalogue.golden")
	if err != nil {
		t.Fatal(err)
	}
	exposed := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^(goodput_[a-z_]+)\{`).FindAllStringSubmatch(string(catalogue), -1) {
		name := match[1]
		exposed[name] = true
		if !strings.Contains(text, name) {
			t.Errorf("the metric %s is missing", name)
		}
	}
	for _, name := range optionalMetrics(t) {
		exposed[name] = true
		if !strings.Contains(text, name) {
			t.Errorf("the metric %s is missing", name)
		}
	}
	notMetrics := []string{"goodput_req_s"} // a key of bench's report
	for _, name := range regexp.MustCompile(`goodput_[a-z_]+`).FindAllString(text, -1) {
		if base := strings.TrimSuffix(name, "_bucket"); strings.Count(name, "_") > 1 && !exposed[base] && !slices.Contains(notMetrics, name) {
			t.Errorf("there is no metric %s", name)
		}
	}
	for _, outcome := range probe.Outcomes {
		row := regexp.MustCompile("(?m)^\\| `" + string(outcome) + "` \\|.*$").FindString(text)
		if row == "" {
			t.Errorf("the outcome %s is missing", outcome)
		}
		for _, reason := range probe.Reasons[outcome] {
			if !strings.HasPrefix(string(reason), "h2_") && !strings.Contains(row, "`"+string(reason)+"`") {
				t.Errorf("the reason %s of %s is missing", reason, outcome)
			}
		}
	}
}

// optionalMetrics returns the names of the metrics that only exist with a journal or an export of spans.
func optionalMetrics(t *testing.T) []string {
	t.Helper()
	f := &flags{otlp: true, journal: journalFlags{path: filepath.Join(t.TempDir(), "results.jsonl")}}
	o, err := f.open(t.Context(), log.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer o.close(log.NewNopLogger())
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(o.metrics()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, family := range families {
		names = append(names, family.GetName())
	}
	return names
}
