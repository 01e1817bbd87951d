package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// A lint of our own, after the checks of pint that fit here. pint itself cannot be had as a Go module.

var (
	allFiles = append([]string{"production-goodput.rules.yml"}, shipped...)

	// scrapeLabels come with the scrape, not from the exporter.
	scrapeLabels = []string{"job", "instance", "pod", "vantage"}

	// foreign are the metrics of others that rules may use, with their labels.
	foreign = map[string]metric{
		"up":                                {"gauge", nil},
		"vllm:request_success_total":        {"counter", []string{"model_name", "finished_reason"}},
		"sglang:num_requests_total":         {"counter", []string{"model_name"}},
		"sglang_num_requests_total":         {"counter", []string{"model_name"}},
		"tgi_request_success":               {"counter", []string{"model_name"}},
		"inference_objective_request_total": {"counter", []string{"model_name"}},
		"inference_model_request_total":     {"counter", []string{"model_name"}},
	}
)

type metric struct {
	kind   string
	labels []string
}

// catalogue reads what the exporter exposes from the golden file of its collector.
func catalogue(t *testing.T) map[string]metric {
	t.Helper()
	data, err := os.ReadFile("../../../collector/testdata/catalogue.golden")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]metric{}
	for _, line := range regexp.MustCompile(`(?m)^(\w+)\{(.*)\} (\w+)$`).FindAllStringSubmatch(string(data), -1) {
		name, kind := line[1], line[3]
		m := metric{kind, strings.Split(line[2], ",")}
		known[name] = m
		if kind == "histogram" {
			known[name+"_sum"] = metric{"counter", m.labels}
			known[name+"_count"] = metric{"counter", m.labels}
		}
	}
	if len(known) < 30 {
		t.Fatalf("catalogue.golden: read only %d metrics", len(known))
	}
	return known
}

func eachRule(t *testing.T, f func(t *testing.T, file string, group rulefmt.RuleGroup, rule rulefmt.Rule, expr parser.Expr)) {
	t.Helper()
	for _, file := range allFiles {
		for _, group := range loadGroups(t, file) {
			for i, rule := range group.Rules {
				t.Run(fmt.Sprintf("%s/%d_%s", group.Name, i, rule.Record+rule.Alert), func(t *testing.T) {
					f(t, file, group, rule, parse(t, rule.Expr))
				})
			}
		}
	}
}

func recordedNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range allFiles {
		for _, group := range loadGroups(t, file) {
			for _, rule := range group.Rules {
				if rule.Record != "" {
					names[rule.Record] = true
				}
			}
		}
	}
	return names
}

// Every metric that a rule selects is exposed or recorded, and has the labels that the rule matches.
func TestMetricsAndLabelsExist(t *testing.T) {
	known, recorded := catalogue(t), recordedNames(t)
	eachRule(t, func(t *testing.T, _ string, _ rulefmt.RuleGroup, _ rulefmt.Rule, expr parser.Expr) {
		for _, s := range selectors(expr) {
			names := 0
			for name, m := range merged(known, foreign) {
				if !nameMatches(s, name) {
					continue
				}
				names++
				for _, matcher := range s.LabelMatchers {
					if matcher.Name != model.MetricNameLabel && !slices.Contains(slices.Concat(m.labels, scrapeLabels), matcher.Name) {
						t.Errorf("%s has no label %s", name, matcher.Name)
					}
				}
			}
			if names == 0 && !recorded[s.Name] {
				t.Errorf("nobody exposes or records %s", s)
			}
		}
	})
}

// Counters are read through rate or increase, gauges and recorded series never, and ranges hold 4 scrapes of 15 s.
func TestRatesAreOfCounters(t *testing.T) {
	known := merged(catalogue(t), foreign)
	eachRule(t, func(t *testing.T, _ string, _ rulefmt.RuleGroup, _ rulefmt.Rule, expr parser.Expr) {
		parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
			s, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			rated := false
			for _, parent := range path {
				if call, ok := parent.(*parser.Call); ok && (call.Func.Name == "rate" || call.Func.Name == "increase") {
					rated = true
				}
				if m, ok := parent.(*parser.MatrixSelector); ok && m.Range < 4*15*time.Second {
					t.Errorf("%s: the range holds fewer than 4 scrapes", m)
				}
			}
			for name, m := range known {
				if nameMatches(s, name) && rated != (m.kind != "gauge") {
					t.Errorf("%s is a %s; in rate or increase: %t", name, m.kind, rated)
				}
			}
			if strings.HasPrefix(s.Name, "slo:") && rated {
				t.Errorf("a rate of the recorded %s", s.Name)
			}
			return nil
		})
	})
}

// Division by nothing would leave NaN, which compares false and poisons sums: what we divide by is a number, a sum
// with one, held to be > 0, or a gauge that never is 0.
func TestDenominatorsAreNotZero(t *testing.T) {
	positive := []string{"goodput_probe_interval_seconds", "target_scenario:goodput_probes_expected:rate"}
	eachRule(t, func(t *testing.T, _ string, _ rulefmt.RuleGroup, _ rulefmt.Rule, expr parser.Expr) {
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			b, ok := node.(*parser.BinaryExpr)
			if !ok || b.Op != parser.DIV {
				return nil
			}
			safe := false
			if paren, ok := b.RHS.(*parser.ParenExpr); ok {
				if inner, ok := paren.Expr.(*parser.BinaryExpr); ok {
					if number, ok := inner.RHS.(*parser.NumberLiteral); ok {
						safe = inner.Op == parser.GTR && number.Val == 0 || inner.Op == parser.ADD && number.Val > 0
					}
				}
			}
			used := selectors(b.RHS)
			if !safe && (len(used) != 1 || !slices.Contains(positive, used[0].Name)) {
				t.Errorf("may divide by 0: %s", b)
			}
			return nil
		})
	})
}

func TestRecordingRules(t *testing.T) {
	form := regexp.MustCompile(`^(slo|target_scenario|model):[a-z_]+:(ratio|rate|increase|ratio_rate|ratio_|wilson_(lower|upper)9[59]_|ratio|estimate_(lower95_|upper95_)?rate)(\d+[mhd])?$`)
	seen := map[string]bool{}
	eachRule(t, func(t *testing.T, _ string, _ rulefmt.RuleGroup, rule rulefmt.Rule, _ parser.Expr) {
		if rule.Record == "" {
			return
		}
		if !form.MatchString(rule.Record) {
			t.Errorf("%s is not level:metric:operation", rule.Record)
		}
		id := rule.Record + labels.FromMap(rule.Labels).String()
		if seen[id] {
			t.Errorf("recorded twice: %s", id)
		}
		seen[id] = true
	})
}

// A rule stands after those of its group that it reads, for they are evaluated in this order.
func TestRulesStandAfterWhatTheyRead(t *testing.T) {
	for _, file := range allFiles {
		for _, group := range loadGroups(t, file) {
			position := map[string]int{}
			for i, rule := range group.Rules {
				position[rule.Record] = i
			}
			for i, rule := range group.Rules {
				for _, s := range selectors(parse(t, rule.Expr)) {
					if at, ok := position[s.Name]; ok && s.Name != "" && at >= i {
						t.Errorf("%s reads %s, which comes later", rule.Record+rule.Alert, s.Name)
					}
				}
			}
		}
	}
}

func TestAlerts(t *testing.T) {
	windows := map[string]bool{}
	eachRule(t, func(t *testing.T, _ string, _ rulefmt.RuleGroup, rule rulefmt.Rule, expr parser.Expr) {
		if rule.Alert == "" {
			return
		}
		if !regexp.MustCompile(`^Goodput([A-Z][a-z]+)+$`).MatchString(rule.Alert) {
			t.Errorf("%s: not a name in CamelCase that begins with Goodput", rule.Alert)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
			t.Errorf("severity %q", rule.Labels["severity"])
		}
		for name := range rule.Labels {
			if !slices.Contains([]string{"severity", "long_window", "short_window"}, name) {
				t.Errorf("label %s", name)
			}
		}
		if id := rule.Alert + rule.Labels["long_window"]; windows[id] {
			t.Errorf("two alerts %s", id)
		} else {
			windows[id] = true
		}
		if rule.For == 0 && rule.Alert != "GoodputDrop" { // the score waits for evidence by itself
			t.Error("fires at once: no for")
		}
		if !conditional(expr) {
			t.Error("always fires: no comparison, absent or unless")
		}
		a := rule.Annotations
		if a["summary"] == "" || strings.Contains(a["summary"], "{{") || !strings.HasSuffix(a["summary"], ".") {
			t.Errorf("summary %q: a sentence without templates", a["summary"])
		}
		if len(a) != 4 || a["description"] == "" {
			t.Errorf("annotations: want summary, description, runbook_url and dashboard_url, got %v", a)
		}
		if want := defaultAddresses.runbooks + "#" + strings.ToLower(rule.Alert); a["runbook_url"] != want {
			t.Errorf("runbook_url %s, want %s", a["runbook_url"], want)
		}
		uid := regexp.MustCompile(`^` + defaultAddresses.grafana + `/(goodput-\w+)(\?.*)?$`).FindStringSubmatch(a["dashboard_url"])
		if uid == nil {
			t.Fatalf("dashboard_url %s", a["dashboard_url"])
		}
		if !dashboardExists(t, uid[1]) {
			t.Errorf("no dashboard has the uid %s", uid[1])
		}
	})
}

// conditional reports whether an alert's expression can be empty.
func conditional(expr parser.Expr) bool {
	found := false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.BinaryExpr:
			found = found || n.Op.IsComparisonOperator() && !n.ReturnBool || n.Op == parser.LUNLESS
		case *parser.Call:
			found = found || n.Func.Name == "absent"
		}
		return nil
	})
	return found
}

func dashboardExists(t *testing.T, uid string) bool {
	t.Helper()
	paths, err := filepath.Glob("../../../dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`"uid":\s*"` + uid + `"`).Match(data) {
			return true
		}
	}
	return false
}

// Each alert is seen firing with all its labels and annotations, and each recorded series has its values asserted.
func TestEveryRuleHasAUnitTest(t *testing.T) {
	asserted := map[string]bool{}
	for _, s := range loadSuites(t) {
		here := dependencies(s.groups)
		for _, test := range s.Tests {
			for _, a := range test.Alerts {
				for _, alert := range a.Alerts {
					if len(alert.Annotations) > 0 {
						asserted[a.Name+alert.Labels["long_window"]] = true
					}
				}
			}
			for _, x := range test.Exprs {
				if len(x.Samples) == 0 {
					continue
				}
				for _, name := range here.mentioned(parse(t, x.Expr)) {
					asserted[name] = true
				}
			}
		}
	}
	eachRule(t, func(t *testing.T, _ string, _ rulefmt.RuleGroup, rule rulefmt.Rule, _ parser.Expr) {
		if name := rule.Record + rule.Alert + rule.Labels["long_window"]; !asserted[name] {
			t.Errorf("no unit test asserts %s", name)
		}
	})
}

func nameMatches(s *parser.VectorSelector, name string) bool {
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			return m.Matches(name)
		}
	}
	return false
}

func merged(a, b map[string]metric) map[string]metric {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
