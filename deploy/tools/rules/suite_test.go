package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

// The unit tests of deploy/rules/tests are promtool's. This file runs them within the process, so that the mutation
// check can run them a thousand times: promtool is a program, not a package.

// promParser parses what Prometheus 3 parses without feature flags.
var promParser = parser.NewParser(parser.Options{})

type suite struct {
	Name           string         `yaml:"-"`
	RuleFiles      []string       `yaml:"rule_files"`
	Interval       model.Duration `yaml:"evaluation_interval"`
	GroupEvalOrder []string       `yaml:"group_eval_order"`
	Tests          []*testCase    `yaml:"tests"`
	groups         []*rulefmt.RuleGroup
}

type testCase struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval"`
	Series   []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Alerts []alertAssertion `yaml:"alert_rule_test"`
	Exprs  []exprAssertion  `yaml:"promql_expr_test"`
}

type alertAssertion struct {
	At     model.Duration `yaml:"eval_time"`
	Name   string         `yaml:"alertname"`
	Alerts []struct {
		Labels      map[string]string `yaml:"exp_labels"`
		Annotations map[string]string `yaml:"exp_annotations"`
	} `yaml:"exp_alerts"`
}

type exprAssertion struct {
	Expr    string         `yaml:"expr"`
	At      model.Duration `yaml:"eval_time"`
	Samples []struct {
		Labels string  `yaml:"labels"`
		Value  float64 `yaml:"value"`
	} `yaml:"exp_samples"`
}

// loadGroups reads a rule file of deploy/rules as Prometheus does.
func loadGroups(t *testing.T, name string) []rulefmt.RuleGroup {
	t.Helper()
	file, errs := rulefmt.ParseFile(filepath.Join(rulesDir, name), false, model.UTF8Validation, promParser, promslog.NewNopLogger())
	if errs != nil {
		t.Fatalf("%s: %v", name, errs)
	}
	return file.Groups
}

// loadSuites reads all unit tests with the rules that they load, the quick suites first.
func loadSuites(t *testing.T) []*suite {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(rulesDir, "tests", "*.test.yml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no unit tests in %s: %v", rulesDir, err)
	}
	var suites []*suite
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := &suite{Name: filepath.Base(path)}
		decoder := yaml.NewDecoder(bytes.NewReader(data))
		decoder.KnownFields(true)
		if err := decoder.Decode(s); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, file := range s.RuleFiles {
			for _, group := range loadGroups(t, filepath.Base(file)) {
				s.groups = append(s.groups, &group)
			}
		}
		slices.SortStableFunc(s.groups, func(a, b *rulefmt.RuleGroup) int {
			return slices.Index(s.GroupEvalOrder, a.Name) - slices.Index(s.GroupEvalOrder, b.Name)
		})
		suites = append(suites, s)
	}
	// A month of samples, and the two that run everything together, take longest.
	slow := []string{"budget.test.yml", "topology.test.yml", "streams.test.yml"}
	slices.SortStableFunc(suites, func(a, b *suite) int { return slices.Index(slow, a.Name) - slices.Index(slow, b.Name) })
	return suites
}

// memory hands rule groups to Prometheus' rule manager that are in no file.
type memory []rulefmt.RuleGroup

func (m memory) Load(string, bool, model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	return &rulefmt.RuleGroups{Groups: m}, nil
}

func (m memory) Parse(expr string) (parser.Expr, error) { return promParser.ParseExpr(expr) }

// evaluation is one test case with the rules and the assertions that it shall run.
type evaluation struct {
	interval time.Duration
	test     *testCase
	groups   []rulefmt.RuleGroup // in the order of evaluation
	alerts   []alertAssertion
	exprs    []exprAssertion
}

// run evaluates until the first assertion fails, and says which; it returns "" if all hold.
func (e *evaluation) run() (failure string, err error) {
	loader, err := promqltest.NewLazyLoader(e.load(), promqltest.LazyLoaderOpts{
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: promParser,
	})
	if err != nil {
		return "", err
	}
	defer loader.Close()
	loader.SubqueryInterval = e.interval
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:    rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()),
		AppendableV2: loader.Storage(),
		Context:      context.Background(),
		NotifyFunc:   func(context.Context, string, ...*rules.Alert) {},
		Logger:       promslog.NewNopLogger(),
		GroupLoader:  memory(e.groups),
		Parser:       promParser,
	})
	loaded, errs := manager.LoadGroups(e.interval, labels.EmptyLabels(), "", nil, false, "memory")
	if errs != nil {
		return "", errs[0]
	}
	var groups []*rules.Group
	for _, g := range e.groups {
		group := loaded[rules.GroupKey("memory", g.Name)]
		for _, r := range group.AlertingRules() {
			r.SetRestored(true) // else there is no ALERTS
		}
		groups = append(groups, group)
	}

	var end time.Duration
	for _, a := range e.alerts {
		end = max(end, time.Duration(a.At))
	}
	for _, x := range e.exprs {
		end = max(end, time.Duration(x.At))
	}
	for at := time.Duration(0); at <= end; at += e.interval {
		now := time.UnixMilli(0).UTC().Add(at)
		loader.WithSamplesTill(now, func(loadErr error) {
			err = loadErr
			for _, group := range groups {
				group.Eval(loader.Context(), now)
				for _, r := range group.Rules() {
					if r.LastError() != nil {
						err = fmt.Errorf("%s at %s: %w", r.Name(), at, r.LastError())
					}
				}
			}
		})
		if err != nil {
			return "", err
		}
		due := func(t model.Duration) bool { return at <= time.Duration(t) && time.Duration(t) < at+e.interval }
		for _, a := range e.alerts {
			if due(a.At) {
				if diff := a.check(groups); diff != "" {
					return fmt.Sprintf("%s at %s: %s", a.Name, a.At, diff), nil
				}
			}
		}
		for _, x := range e.exprs {
			if due(x.At) {
				if diff, err := x.check(loader); diff != "" || err != nil {
					return fmt.Sprintf("%s at %s: %s", x.Expr, x.At, diff), err
				}
			}
		}
	}
	return "", nil
}

// load returns the input series in the language of promqltest.
func (e *evaluation) load() string {
	interval := e.test.Interval
	if interval == 0 {
		interval = model.Duration(e.interval)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "load %s\n", interval)
	for _, s := range e.test.Series {
		fmt.Fprintf(&b, "  %s %s\n", s.Series, s.Values)
	}
	return b.String()
}

func (a *alertAssertion) check(groups []*rules.Group) string {
	var want, got []string
	for _, alert := range a.Alerts {
		all := map[string]string{labels.AlertName: a.Name}
		maps.Copy(all, alert.Labels)
		want = append(want, fmt.Sprint(labels.FromMap(all), labels.FromMap(alert.Annotations)))
	}
	for _, group := range groups {
		for _, r := range group.AlertingRules() {
			if r.Name() != a.Name {
				continue
			}
			for _, alert := range r.ActiveAlerts() {
				if alert.State == rules.StateFiring {
					got = append(got, fmt.Sprint(alert.Labels, alert.Annotations))
				}
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	return cmp.Diff(want, got)
}

func (x *exprAssertion) check(loader *promqltest.LazyLoader) (string, error) {
	var want, got []string
	for _, s := range x.Samples {
		metric, err := promParser.ParseMetric(s.Labels)
		if err != nil {
			return "", err
		}
		want = append(want, fmt.Sprint(metric, s.Value))
	}
	query, err := loader.QueryEngine().NewInstantQuery(context.Background(), loader.Queryable(), nil, x.Expr, time.UnixMilli(0).Add(time.Duration(x.At)))
	if err != nil {
		return "", err
	}
	defer query.Close()
	result := query.Exec(context.Background())
	if result.Err != nil {
		return "", result.Err
	}
	vector, ok := result.Value.(promql.Vector)
	if !ok {
		return "", fmt.Errorf("%s: not a vector", x.Expr)
	}
	for _, s := range vector {
		got = append(got, fmt.Sprint(s.Metric, s.F))
	}
	slices.Sort(want)
	slices.Sort(got)
	return cmp.Diff(want, got), nil
}

// The runner agrees with promtool on the rules as they are; TestPromtool is promtool's own word.
func TestRules(t *testing.T) {
	for _, s := range loadSuites(t) {
		for _, test := range s.Tests {
			t.Run(strings.TrimSuffix(s.Name, ".test.yml")+"/"+test.Name, func(t *testing.T) {
				t.Parallel()
				e := evaluation{interval: time.Duration(s.Interval), test: test, alerts: test.Alerts, exprs: test.Exprs}
				for _, g := range s.groups {
					e.groups = append(e.groups, *g)
				}
				if failure, err := e.run(); failure != "" || err != nil {
					t.Error(failure, err)
				}
			})
		}
	}
}
