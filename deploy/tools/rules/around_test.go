package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// What stands around the rules: runbooks, Alertmanager's configuration, and the word of promtool and amtool.

// Each alert has a section, and each section an alert.
func TestRunbooks(t *testing.T) {
	data, err := os.ReadFile("../../runbooks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections, alerts []string
	for _, heading := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(data), -1) {
		sections = append(sections, heading[1])
	}
	for _, group := range loadGroups(t, "goodput.alerts.yml") {
		for _, rule := range group.Rules {
			if !slices.Contains(alerts, rule.Alert) {
				alerts = append(alerts, rule.Alert)
			}
		}
	}
	slices.Sort(sections)
	slices.Sort(alerts)
	if !slices.Equal(sections, alerts) {
		t.Errorf("sections %v\nalerts   %v", sections, alerts)
	}
	for _, link := range regexp.MustCompile(`\(#(\w+)\)`).FindAllStringSubmatch(string(data), -1) {
		if !slices.ContainsFunc(sections, func(s string) bool { return strings.ToLower(s) == link[1] }) {
			t.Errorf("link to #%s, which is no section", link[1])
		}
	}
}

// The queries of the runbooks parse, and select what exists.
func TestRunbookQueries(t *testing.T) {
	data, err := os.ReadFile("../../runbooks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		queries = append(queries, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	for _, inline := range regexp.MustCompile("`([^`]*(?:\\(|\\{)[^`]*)`").FindAllStringSubmatch(string(data), -1) {
		if regexp.MustCompile(`^(sum|rate|count|up\{|goodput_|slo:)`).MatchString(inline[1]) {
			queries = append(queries, inline[1])
		}
	}
	if len(queries) < 10 {
		t.Fatalf("found only %d queries", len(queries))
	}
	known, recorded := merged(catalogue(t), foreign), recordedNames(t)
	for _, query := range queries {
		query = strings.TrimSpace(query)
		for _, s := range selectors(parse(t, query)) {
			if _, ok := known[s.Name]; !ok && !recorded[s.Name] && !strings.HasPrefix(s.Name, "process_") {
				t.Errorf("%s: nobody exposes or records %s", query, s.Name)
			}
		}
	}
}

// A label in `equal` that one side lacks counts as equal when both lack it: an inhibition would reach too far. So the
// labels of `equal` must be on the alerts of both sides, as the unit tests see them.
func TestInhibitionsCompareLabelsThatExist(t *testing.T) {
	data, err := os.ReadFile("../../alertmanager/alertmanager.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Inhibit []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
			Equal  []string `yaml:"equal"`
		} `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	seen := map[string]map[string]string{} // alert -> labels with which a unit test saw it fire
	for _, s := range loadSuites(t) {
		for _, test := range s.Tests {
			for _, a := range test.Alerts {
				for _, alert := range a.Alerts {
					seen[a.Name] = alert.Labels
				}
			}
		}
	}
	names := func(matchers []string) []string {
		for _, m := range matchers {
			if found := regexp.MustCompile(`^alertname=~?"(.*)"$`).FindStringSubmatch(m); found != nil {
				return strings.Split(found[1], "|")
			}
		}
		return []string{"no alertname"}
	}
	for _, rule := range config.Inhibit {
		for _, name := range slices.Concat(names(rule.Source), names(rule.Target)) {
			for _, label := range rule.Equal {
				if seen[name][label] == "" {
					t.Errorf("inhibition %v -> %v compares %s, which %s lacks", rule.Source, rule.Target, label, name)
				}
			}
		}
	}
}

// tool returns a program named by an environment variable; `make check` sets them.
func tool(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("set %s to the program", variable)
	}
	return path
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestPromtool(t *testing.T) {
	promtool := tool(t, "PROMTOOL")
	for _, kind := range []struct{ pattern, command string }{
		{"*.yml", "check rules --lint=all --lint-fatal"},
		{"tests/*.test.yml", "test rules"},
	} {
		paths, err := filepath.Glob(filepath.Join(rulesDir, kind.pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s: %v", kind.pattern, err)
		}
		for _, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				command(t, promtool, append(strings.Fields(kind.command), path)...)
			})
		}
	}
}

func TestAmtool(t *testing.T) {
	amtool := tool(t, "AMTOOL")
	const config = "../../alertmanager/alertmanager.yml"
	command(t, amtool, "check-config", config)
	for severity, receiver := range map[string]string{"critical": "page", "warning": "ticket", "info": "info"} {
		command(t, amtool, "config", "routes", "test", "--config.file="+config, "--verify.receivers="+receiver,
			"alertname=GoodputErrorBudgetBurn", "severity="+severity)
	}
}
