package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"golang.org/x/sync/errgroup"
)

// equivalent lists mutants that cannot be told from the rule, with the reason. It should stay empty.
var equivalent = map[string]string{}

// Each number in each rule matters: thresholds, guards, clamps, constants, windows, steps, offsets, for and
// keep_firing_for. A fifth more or less makes a unit test fail.
func TestNumbersMatter(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the unit tests some hundred times")
	}
	suites := loadSuites(t)
	var mutants []mutant
	for _, file := range append([]string{"production-goodput.rules.yml"}, shipped...) {
		mutants = append(mutants, mutantsOf(t, loadGroups(t, file))...)
	}
	survivors := make([]bool, len(mutants))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, m := range mutants {
		g.Go(func() error {
			killed, err := m.killed(suites)
			survivors[i] = !killed
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, m := range mutants {
		reason, known := equivalent[m.String()]
		switch {
		case survivors[i] && !known:
			t.Errorf("no unit test notices: %s", m)
		case !survivors[i] && known:
			t.Errorf("%s is listed as equivalent (%s), but a unit test notices it", m, reason)
		}
	}
	t.Logf("%d mutants", len(mutants))
}

// mutant is a rule with one number changed.
type mutant struct {
	group string
	index int // in its group
	rule  rulefmt.Rule
	what  string
}

func (m mutant) name() string { return m.rule.Record + m.rule.Alert }

func (m mutant) String() string {
	name := m.name()
	if window, ok := m.rule.Labels["long_window"]; ok {
		name += " " + window
	}
	return name + ": " + m.what
}

func mutantsOf(t *testing.T, groups []rulefmt.RuleGroup) []mutant {
	t.Helper()
	var all []mutant
	for _, group := range groups {
		for i, rule := range group.Rules {
			add := func(what string, factor float64, changed rulefmt.Rule) {
				all = append(all, mutant{group.Name, i, changed, fmt.Sprintf("%s, times %g", what, factor)})
			}
			for _, factor := range []float64{0.8, 1.2} {
				for n, number := range numbers(parse(t, rule.Expr)) {
					expr, changed := parse(t, rule.Expr), rule
					numbers(expr)[n].scale(factor)
					changed.Expr = expr.String()
					add(fmt.Sprintf("number %d, %s", n+1, number.what), factor, changed)
				}
				if rule.For != 0 {
					changed := rule
					changed.For = model.Duration(float64(rule.For) * factor)
					add("for", factor, changed)
				}
				if rule.KeepFiringFor != 0 {
					changed := rule
					changed.KeepFiringFor = model.Duration(float64(rule.KeepFiringFor) * factor)
					add("keep_firing_for", factor, changed)
				}
			}
		}
	}
	return all
}

func parse(t *testing.T, expr string) parser.Expr {
	t.Helper()
	e, err := promParser.ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// number is a number in an expression that can be changed in place.
type number struct {
	what  string
	scale func(factor float64)
}

// numbers finds the literals and durations of an expression. A zero stays zero however it is scaled, and is left out.
func numbers(expr parser.Expr) []number {
	var found []number
	duration := func(what string, d *time.Duration) {
		if *d != 0 {
			found = append(found, number{what + " " + model.Duration(*d).String(), func(f float64) {
				*d = time.Duration(float64(*d) * f)
			}})
		}
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.NumberLiteral:
			if n.Val != 0 {
				found = append(found, number{n.String(), func(f float64) { n.Val *= f }})
			}
		case *parser.MatrixSelector:
			duration("range", &n.Range)
		case *parser.SubqueryExpr:
			duration("range", &n.Range)
			duration("step", &n.Step)
			duration("offset", &n.OriginalOffset)
		case *parser.VectorSelector:
			duration("offset", &n.OriginalOffset)
		}
		return nil
	})
	return found
}

// killed reports whether a unit test fails with the mutant in the place of its rule. It runs only the assertions that the
// rule has a part in, with only the rules that those need.
func (m mutant) killed(suites []*suite) (bool, error) {
	for _, s := range suites {
		deps := dependencies(s.groups)
		if !deps.has(m.name()) {
			continue
		}
		for _, test := range s.Tests {
			e := evaluation{interval: time.Duration(s.Interval), test: test}
			need := map[string]bool{}
			for _, a := range test.Alerts {
				if names := deps.closure([]string{a.Name}); names[m.name()] {
					e.alerts = append(e.alerts, a)
					maps.Copy(need, names)
				}
			}
			for _, x := range test.Exprs {
				expr, err := promParser.ParseExpr(x.Expr)
				if err != nil {
					return false, err
				}
				if names := deps.closure(deps.mentioned(expr)); names[m.name()] {
					e.exprs = append(e.exprs, x)
					maps.Copy(need, names)
				}
			}
			if len(need) == 0 {
				continue
			}
			e.groups = m.reduced(s.groups, need)
			if failure, err := e.run(); err != nil || failure != "" {
				return failure != "", err
			}
		}
	}
	return false, nil
}

// reduced returns the groups with the mutant in its place and only the rules that are needed.
func (m mutant) reduced(groups []*rulefmt.RuleGroup, need map[string]bool) []rulefmt.RuleGroup {
	var out []rulefmt.RuleGroup
	for _, g := range groups {
		group := rulefmt.RuleGroup{Name: g.Name, Interval: g.Interval}
		for i, r := range g.Rules {
			if g.Name == m.group && i == m.index {
				r = m.rule
			}
			if need[r.Record+r.Alert] {
				group.Rules = append(group.Rules, r)
			}
		}
		if len(group.Rules) > 0 {
			out = append(out, group)
		}
	}
	return out
}

// graph is what each rule of a suite mentions, by name.
type graph map[string][]string

func dependencies(groups []*rulefmt.RuleGroup) graph {
	g := graph{}
	for _, group := range groups {
		for _, r := range group.Rules {
			g[r.Record+r.Alert] = nil
		}
	}
	for _, group := range groups {
		for _, r := range group.Rules {
			if expr, err := promParser.ParseExpr(r.Expr); err == nil {
				g[r.Record+r.Alert] = append(g[r.Record+r.Alert], g.mentioned(expr)...)
			}
		}
	}
	return g
}

func (g graph) has(name string) bool {
	_, ok := g[name]
	return ok
}

// mentioned returns the rules whose series an expression selects; ALERTS selects alerts.
func (g graph) mentioned(expr parser.Expr) []string {
	var names []string
	for _, selector := range selectors(expr) {
		if selector.Name != "ALERTS" {
			if g.has(selector.Name) {
				names = append(names, selector.Name)
			}
			continue
		}
		for name := range g {
			if !strings.Contains(name, ":") && slices.IndexFunc(selector.LabelMatchers, func(m *labels.Matcher) bool {
				return m.Name == labels.AlertName && !m.Matches(name)
			}) < 0 {
				names = append(names, name)
			}
		}
	}
	return names
}

func (g graph) closure(names []string) map[string]bool {
	all := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if !all[name] {
			all[name] = true
			names = append(names, g[name]...)
		}
	}
	return all
}

// selectors returns every vector selector of an expression.
func selectors(expr parser.Expr) []*parser.VectorSelector {
	var found []*parser.VectorSelector
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			found = append(found, s)
		}
		return nil
	})
	return found
}
