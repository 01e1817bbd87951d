package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"
)

const rulesDir = "../../rules"

func TestPrometheusRuleIsUpToDate(t *testing.T) {
	want, err := prometheusRule(rulesDir, defaultAddresses)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(rulesDir, "prometheusrule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("prometheusrule.yaml is stale, run go generate ./rules (-want +got):\n%s", diff)
	}
}

// The manifest says the same as the rule files, read with Prometheus' own types.
func TestPrometheusRuleHasEveryRule(t *testing.T) {
	manifest, err := prometheusRule(rulesDir, defaultAddresses)
	if err != nil {
		t.Fatal(err)
	}
	var resource monitoringv1.PrometheusRule
	if err := yaml.UnmarshalStrict(manifest, &resource); err != nil {
		t.Fatal(err)
	}
	type rule struct {
		Group, Record, Alert, Expr, For, KeepFiringFor string
		Labels, Annotations                            map[string]string
	}
	var want, got []rule
	for _, name := range shipped {
		for _, group := range loadGroups(t, name) {
			for _, r := range group.Rules {
				want = append(want, rule{group.Name, r.Record, r.Alert, r.Expr, duration(r.For), duration(r.KeepFiringFor), r.Labels, r.Annotations})
			}
		}
	}
	for _, group := range resource.Spec.Groups {
		for _, r := range group.Rules {
			var pending, keep string
			if r.For != nil {
				pending = string(*r.For)
			}
			if r.KeepFiringFor != nil {
				keep = string(*r.KeepFiringFor)
			}
			got = append(got, rule{group.Name, r.Record, r.Alert, r.Expr.String(), pending, keep, r.Labels, r.Annotations})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-files +manifest):\n%s", diff)
	}
}

func TestPrometheusRuleTakesAddresses(t *testing.T) {
	manifest, err := prometheusRule(rulesDir, addresses{runbooks: "https://wiki.example.org/x", grafana: "https://g.example.org/d"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(manifest), "example.net") {
		t.Error("an address of the rule files is left")
	}
	for _, want := range []string{"https://wiki.example.org/x#goodputtargetdown", "https://g.example.org/d/goodput-target?"} {
		if !strings.Contains(string(manifest), want) {
			t.Errorf("no %s", want)
		}
	}
}

// duration is how the custom resource writes a duration; a zero is left out.
func duration(d model.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
