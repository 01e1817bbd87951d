package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

const (
	rulesDir     = "../../rules"
	alertmanager = "../../alertmanager/alertmanager.yml"

	// pace is how often this test's Prometheus scrapes and evaluates.
	pace = time.Second
	// shortest is the shortest window: 4 scrapes, like the 1m that 15 s ask for.
	shortest = 4 * pace
)

// scale holds the factors by which durations are divided: those of the SLOs' alerts, and those of the prober's. In the
// latter, windows must hold some probes of the demo.
type scale struct{ slo, prober float64 }

// copyRules writes the shipped rules into a directory, scaled. The names of recorded series keep the windows of the
// original.
func (s scale) copyRules(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"goodput.rules.yml", "goodput.alerts.yml"} {
		file, errs := rulefmt.ParseFile(filepath.Join(rulesDir, name), false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
		if errs != nil {
			t.Fatal(errs)
		}
		for g := range file.Groups {
			group, factor := &file.Groups[g], s.slo
			if strings.HasPrefix(group.Name, "goodput.prober") {
				factor = s.prober
			}
			group.Interval = max(divided(group.Interval, factor), model.Duration(pace))
			for r := range group.Rules {
				rule := &group.Rules[r]
				rule.For, rule.KeepFiringFor = divided(rule.For, factor), divided(rule.KeepFiringFor, factor)
				rule.Expr = scaled(t, rule.Expr, factor)
			}
		}
		out, err := yaml.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(out))
	}
}

// scaled divides the ranges, steps and offsets of an expression, and the numbers that are windows in seconds.
func scaled(t *testing.T, expr string, factor float64) string {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	window := func(d time.Duration) time.Duration {
		return max(time.Duration(float64(d)/factor), shortest).Truncate(time.Millisecond)
	}
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.NumberLiteral:
			if n.Val >= (30 * time.Minute).Seconds() { // no other number is that large
				n.Val /= factor
			}
		case *parser.MatrixSelector:
			n.Range = window(n.Range)
		case *parser.SubqueryExpr:
			n.Range, n.Step = window(n.Range), window(n.Step)
		case *parser.VectorSelector:
			n.OriginalOffset = time.Duration(divided(model.Duration(n.OriginalOffset), factor))
		}
		return nil
	})
	return e.String()
}

// copyAlertmanager writes the example configuration, with the test's receiver in the place of its own, and waits that are
// divided like the SLOs' windows.
func (s scale) copyAlertmanager(t *testing.T, path, receiver string) {
	t.Helper()
	const example = "http://127.0.0.1:9095/"
	config := read(t, alertmanager)
	if n := strings.Count(config, example); n != 3 {
		t.Fatalf("%s has %d receivers at %s, want 3", alertmanager, n, example)
	}
	config = strings.ReplaceAll(config, example, receiver+"/")
	config = regexp.MustCompile(`(group_wait|group_interval|repeat_interval): \w+`).ReplaceAllStringFunc(config, func(setting string) string {
		name, value, _ := strings.Cut(setting, ": ")
		d, err := model.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		return name + ": " + divided(d, s.slo).String()
	})
	write(t, path, config)
}

func divided(d model.Duration, factor float64) model.Duration {
	return model.Duration(time.Duration(float64(d) / factor).Truncate(time.Millisecond))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
