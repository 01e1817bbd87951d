package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
	for _, name := range regexp.MustCompile(`goodput_[a-z_]+`).FindAllString(text, -1) {
		if base := strings.TrimSuffix(name, "_bucket"); strings.Count(name, "_") > 1 && !exposed[base] {
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
