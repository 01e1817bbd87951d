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

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const manifests = root + "/deploy/kubernetes/"

// kustomize returns what `kubectl kustomize` prints for a directory.
func kustomize(t *testing.T, dir string) *objects {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func TestKustomize(t *testing.T) {
	secrets := map[string][]string{"goodput-exporter-credentials": {"llm"}}
	for _, test := range []struct {
		dir    string
		synced bool
		check  func(*testing.T, *objects)
	}{
		{"base", false, func(t *testing.T, o *objects) {
			if len(o.monitors)+len(o.rules) > 0 {
				t.Error("the base needs custom resource definitions")
			}
		}},
		{"overlays/default", true, nil},
		{"overlays/vantage", true, func(t *testing.T, o *objects) {
			label := o.monitors["goodput-exporter"].Spec.Endpoints[0].RelabelConfigs[0]
			if label.TargetLabel != "vantage" || !slices.Contains(o.container().Args, "--probe.vantage="+*label.Replacement) {
				t.Errorf("the label %v and the flags %v name different vantages", label, o.container().Args)
			}
		}},
		{"overlays/sharded", true, func(t *testing.T, o *objects) {
			checkShards(t, o, 3)
			for _, variable := range o.container().Env {
				if variable.Name == "SHARDS" && variable.Value != fmt.Sprint(o.workload.replicas) {
					t.Errorf("%d replicas, but SHARDS is %s", o.workload.replicas, variable.Value)
				}
			}
		}},
	} {
		t.Run(test.dir, func(t *testing.T) {
			o := kustomize(t, manifests+test.dir)
			o.check(t)
			if test.synced {
				o.checkSynced(t)
			}
			if test.check != nil {
				test.check(t, o)
			}
			o.checkConfig(t, secrets)
		})
	}
}

// A change of the main file must roll out new pods; one of the targets must not.
func TestKustomizeRollsOutMainFile(t *testing.T) {
	names := slices.Sorted(maps.Keys(kustomize(t, manifests+"base").configMaps))
	if got := strings.Join(names, " "); !regexp.MustCompile(`^goodput-exporter-[0-9a-z]{10} goodput-exporter-targets$`).MatchString(got) {
		t.Errorf("ConfigMaps %s", got)
	}
}

// An overlay of one's own, as overlays/default tells to make it.
func TestKustomizeOverlay(t *testing.T) {
	dir := t.TempDir()
	absolute, err := filepath.Abs(manifests + "overlays/default")
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Rel(dir, absolute)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"kustomization.yaml": "namespace: probes\nresources: [" + base + "]\n" + commented(t, manifests+"overlays/default/kustomization.yaml"),
		"goodput.yml":        "scenarios: {s: {prompt: Hello., max_tokens: 9}}\ntarget_files: [targets/*.yml]\n",
		"targets.yml":        "targets: [{name: mine, url: https://llm.example.org, model: m, scenarios: [s]}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := kustomize(t, dir)
	o.check(t)
	secrets := map[string][]string{"goodput-exporter-credentials": {"llm"}}
	if text := o.files(t, secrets)["/etc/goodput_exporter/targets/targets.yml"]; !strings.Contains(text, "name: mine") {
		t.Errorf("targets:\n%s", text)
	}
	o.checkConfig(t, secrets)
}

// commented returns the example that stands, indented, in the comments of a file.
func commented(t *testing.T, path string) string {
	t.Helper()
	var example strings.Builder
	for line := range strings.Lines(readFile(t, path)) {
		if after, ok := strings.CutPrefix(line, "#   "); ok {
			example.WriteString(after)
		}
	}
	return example.String()
}

// The journal's component, in an overlay of one's own: on an emptyDir, and on a claim as its comment tells.
func TestKustomizeJournal(t *testing.T) {
	for _, test := range []struct{ name, base, more, claim string }{
		{"emptyDir", "base", "", ""},
		{"claim", "base", commented(t, manifests+"components/journal/kustomization.yaml"), "goodput-exporter"},
		{"sharded", "overlays/sharded", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			absolute, err := filepath.Abs(manifests)
			if err != nil {
				t.Fatal(err)
			}
			root, err := filepath.Rel(dir, absolute)
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("resources: [%s/%s]\ncomponents: [%s/components/journal]\n%s", root, test.base, root, test.more)
			if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			o := kustomize(t, dir)
			o.check(t)
			if !slices.Contains(o.container().Args, "--journal.path=/var/lib/goodput_exporter/results.jsonl") || o.claim() != test.claim {
				t.Errorf("flags %v and claim %q, want a journal and %q", o.container().Args, o.claim(), test.claim)
			}
			o.checkConfig(t, map[string][]string{"goodput-exporter-credentials": {"llm"}})
		})
	}
}

// checkShards: each pod gets its own share of n.
func checkShards(t *testing.T, o *objects, n int32) {
	t.Helper()
	if o.workload.kind != "StatefulSet" || o.workload.replicas != n {
		t.Errorf("a %s of %d, want a StatefulSet of %d", o.workload.kind, o.workload.replicas, n)
	}
	env := map[string]string{}
	for _, variable := range o.container().Env {
		env[variable.Name] = variable.Value
		if source := variable.ValueFrom; source != nil && source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.labels['apps.kubernetes.io/pod-index']" {
			env[variable.Name] = "INDEX"
		}
	}
	want := fmt.Sprintf("--shard=INDEX/%d", n)
	var got []string
	for _, arg := range o.container().Args {
		for name, value := range env {
			arg = strings.ReplaceAll(arg, "$("+name+")", value)
		}
		got = append(got, arg)
	}
	if !slices.Contains(got, want) {
		t.Errorf("flags %v, want %s among them", got, want)
	}
}
