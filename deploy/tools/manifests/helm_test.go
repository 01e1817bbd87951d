package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestHelm(t *testing.T) {
	helm := tool(t, "HELM", "helm")
	for _, test := range []struct {
		values  string
		secrets map[string][]string
		config  bool
		check   func(*testing.T, *objects)
	}{
		{"demo", nil, false, func(t *testing.T, o *objects) {
			if len(o.configMaps)+len(o.monitors)+len(o.rules)+len(o.policies) > 0 {
				t.Error("what nobody asked for")
			}
		}},
		{"annotations", nil, true, func(t *testing.T, o *objects) {
			if port := o.workload.template.Annotations["prometheus.io/port"]; port != "10042" {
				t.Errorf("annotations lead to port %q", port)
			}
			if text := o.files(t, nil)["/etc/goodput_exporter/goodput.yml"]; !strings.Contains(text, "output_tokens_per_day: 1700000\n") {
				t.Errorf("a large number is not what it was:\n%s", text)
			}
		}},
		{"full", map[string][]string{"llm-credentials": {"llm"}}, true, func(t *testing.T, o *objects) {
			for _, rule := range o.rules {
				for _, group := range rule.Spec.Groups {
					for i, r := range group.Rules {
						if url := r.Annotations["runbook_url"]; url != "" && !strings.HasPrefix(url, "https://wiki.example.org/goodput#") {
							t.Errorf("%s[%d]: runbook at %s", group.Name, i, url)
						}
						if url := r.Annotations["dashboard_url"]; url != "" && !strings.HasPrefix(url, "https://grafana.example.org/d/") {
							t.Errorf("%s[%d]: dashboard at %s", group.Name, i, url)
						}
					}
				}
			}
			if o.claim() != "probes-journal" {
				t.Errorf("claim %q", o.claim())
			}
			if !slices.Contains(o.container().Args, "--probe.vantage=eu-west") {
				t.Errorf("flags %v name no vantage", o.container().Args)
			}
		}},
		{"rules", nil, true, func(t *testing.T, o *objects) { o.checkSynced(t) }},
		{"sharded", nil, true, func(t *testing.T, o *objects) { checkShards(t, o, 3) }},
	} {
		t.Run(test.values, func(t *testing.T) {
			values := "--values=" + filepath.Join(root, chart, "ci", test.values+"-values.yaml")
			output(t, helm, "lint", "--strict", values, filepath.Join(root, chart))
			o := decode(t, []byte(output(t, helm, "template", "probes", values, filepath.Join(root, chart))))
			o.check(t)
			test.check(t, o)
			if test.config {
				o.checkConfig(t, test.secrets)
			}
		})
	}
}

// Values that cannot be meant are refused, and the message tells which.
func TestHelmRefuses(t *testing.T) {
	helm := tool(t, "HELM", "helm")
	for _, test := range []struct{ name, set, want string }{
		{"nothing to probe", "shards=1", "set config and targets, or demo=true"},
		{"unknown key", "demo=true,replicas=2", "replicas"},
		{"no shards", "demo=true,shards=0", "shards"},
		{"one claim for several", "demo=true,shards=2,journal.enabled=true,journal.existingClaim=a", "journal.existingClaim"},
		{"floating image", "demo=true,image.tag=latest", "tag"},
		{"target without a url", "targets[0].name=a", "url"},
		{"unknown key of the configuration", "config.target=a", "target"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), helm, "template", "probes", "--set="+test.set, filepath.Join(root, chart)).CombinedOutput()
			if err == nil || !strings.Contains(string(out), test.want) {
				t.Errorf("%v\n%s\nwant an error with %q", err, out, test.want)
			}
		})
	}
}

// What helm prints after an installation leads to what was installed.
func TestHelmNotes(t *testing.T) {
	helm := tool(t, "HELM", "helm")
	out := output(t, helm, "install", "probes", "--dry-run=client", "--set=demo=true", filepath.Join(root, chart))
	for _, want := range []string{"deployment/probes-goodput-exporter 10042", "set serviceMonitor.enabled=true", "set prometheusRule.enabled=true"} {
		if !strings.Contains(out, want) {
			t.Errorf("the notes lack %q:\n%s", want, out)
		}
	}
}

// The copies within the chart are those of deploy/rules and dashboards, and there are no others.
func TestChartIsSynced(t *testing.T) {
	want, err := copies(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, chart, "files")
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if data := readFile(t, path); data != string(want[name]) {
			t.Errorf("%s is stale: go generate ./manifests", name)
		}
		delete(want, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		t.Errorf("%s is missing: go generate ./manifests", name)
	}
}
