package sim

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// The model holds the very numbers of the rule files: no threshold, guard, window or duration can change in one place.
func TestModelHasTheNumbersOfTheShippedRules(t *testing.T) {
	alerts := load(t, "goodput.alerts.yml", "goodput.slo.alerts")
	records := load(t, "goodput.rules.yml", "goodput.slo")
	shipped := Shipped()

	if time.Duration(alerts.Interval) != everyProbe.Scrape || time.Duration(records.Interval) != everyProbe.Record {
		t.Errorf("the groups are evaluated every %v and %v, the model's every %v and %v",
			alerts.Interval, records.Interval, everyProbe.Scrape, everyProbe.Record)
	}

	var burns []BurnAlert
	dropped := false
	for _, rule := range alerts.Rules {
		switch rule.Alert {
		case "GoodputErrorBudgetBurn":
			long, short := duration(t, rule.Labels["long_window"]), duration(t, rule.Labels["short_window"])
			want := BurnAlert{
				Long: long, Short: short, For: time.Duration(rule.For),
				KeepFiringFor: time.Duration(rule.KeepFiringFor), Page: rule.Labels["severity"] == "critical",
			}
			i := slices.IndexFunc(shipped.Burns, func(b BurnAlert) bool { return b.Long == long })
			if i < 0 {
				t.Errorf("the model has no burn alert over %v", long)
				continue
			}
			want.Name, want.Factor = shipped.Burns[i].Name, shipped.Burns[i].Factor
			burns = append(burns, want)

			g := shipped.Guard
			numbers := []float64{want.Factor, g.MaxThreshold, want.Factor, g.MaxThreshold, g.MinBad, g.MinFill}
			if want.Factor == 1 { // nothing to multiply with, and nothing to clamp
				numbers = []float64{g.MinBad, g.MinFill}
			}
			if diff := cmp.Diff(numbers, literals(t, rule.Expr)); diff != "" {
				t.Errorf("%s: numbers of the expression (-model +file):\n%s", want.Name, diff)
			}
		case "GoodputTargetDown":
			if time.Duration(rule.For) != shipped.Down.For {
				t.Errorf("GoodputTargetDown has for: %v, the model %v", rule.For, shipped.Down.For)
			}
			var numbers []float64
			for range shipped.Down.Windows {
				numbers = append(numbers, shipped.Down.MinProbes, 0)
			}
			if diff := cmp.Diff(numbers, literals(t, rule.Expr)); diff != "" {
				t.Errorf("GoodputTargetDown: numbers of the expression (-model +file):\n%s", diff)
			}
			var windows []time.Duration
			for _, w := range shipped.Down.Windows {
				windows = append(windows, w, w)
			}
			if diff := cmp.Diff(windows, ranges(t, rule.Expr)); diff != "" {
				t.Errorf("GoodputTargetDown: windows (-model +file):\n%s", diff)
			}
		case "GoodputDrop":
			dropped = true
			if time.Duration(rule.For) != shipped.Score.For {
				t.Errorf("GoodputDrop has for: %v, the model %v", rule.For, shipped.Score.For)
			}
			if diff := cmp.Diff([]float64{1}, literals(t, rule.Expr)); diff != "" {
				t.Errorf("GoodputDrop: numbers of the expression (-model +file):\n%s", diff)
			}
		}
	}
	if diff := cmp.Diff(shipped.Burns, burns); diff != "" {
		t.Errorf("burn alerts (-model +file):\n%s", diff)
	}

	if !dropped {
		t.Error("goodput.alerts.yml lacks GoodputDrop")
	}

	z := shipped.Guard.Z
	wilson := []float64{z * z / 2, z, 0, 0, z * z / 4, z * z}
	for _, window := range []string{"1h", "6h", "1d", "3d"} {
		name := "slo:goodput_slo_bad_events_per_events:wilson_lower99_" + window
		i := slices.IndexFunc(records.Rules, func(r rulefmt.Rule) bool { return r.Record == name })
		if i < 0 {
			t.Errorf("goodput.rules.yml does not record %s", name)
			continue
		}
		if diff := cmp.Diff(wilson, literals(t, records.Rules[i].Expr), cmpopts.EquateApprox(0, 1e-5)); diff != "" {
			t.Errorf("%s: numbers of the expression (-model +file):\n%s", name, diff)
		}
	}
}

func load(t *testing.T, file, group string) rulefmt.RuleGroup {
	t.Helper()
	groups, errs := rulefmt.ParseFile(
		filepath.Join(rulesDir, file), false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
	if errs != nil {
		t.Fatal(errs)
	}
	i := slices.IndexFunc(groups.Groups, func(g rulefmt.RuleGroup) bool { return g.Name == group })
	if i < 0 {
		t.Fatalf("%s has no group %s", file, group)
	}
	return groups.Groups[i]
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := model.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(d)
}

// literals returns the numbers of an expression in the order in which they are written, but for those that ask whether a
// series is paused.
func literals(t *testing.T, expr string) []float64 {
	t.Helper()
	type literal struct {
		pos   int
		value float64
	}
	var found []literal
	paused := map[parser.Node]bool{} // what goodput_paused is compared with
	inspect(t, expr, func(node parser.Node) {
		if b, ok := node.(*parser.BinaryExpr); ok && b.Op.IsComparisonOperator() && slices.Equal(metrics(b.LHS), []string{"goodput_paused"}) {
			paused[b.RHS] = true
		}
		if n, ok := node.(*parser.NumberLiteral); ok && !math.IsNaN(n.Val) && !paused[node] {
			found = append(found, literal{int(n.PosRange.Start), n.Val})
		}
	})
	slices.SortFunc(found, func(a, b literal) int { return a.pos - b.pos })
	var values []float64
	for _, l := range found {
		values = append(values, l.value)
	}
	return values
}

// metrics returns the names of the metrics in an expression.
func metrics(e parser.Expr) []string {
	var names []string
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			names = append(names, v.Name)
		}
		return nil
	})
	return names
}

// ranges returns the windows of an expression's range selectors.
func ranges(t *testing.T, expr string) []time.Duration {
	t.Helper()
	var found []time.Duration
	inspect(t, expr, func(node parser.Node) {
		if m, ok := node.(*parser.MatrixSelector); ok {
			found = append(found, m.Range)
		}
	})
	slices.Sort(found)
	return found
}

func inspect(t *testing.T, expr string, f func(parser.Node)) {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		f(node)
		return nil
	})
}
