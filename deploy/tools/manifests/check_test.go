package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// check holds one installation against itself: what its parts say of each other is true.
func (o *objects) check(t *testing.T) {
	t.Helper()
	if o.workload.kind == "" {
		t.Fatal("neither a Deployment nor a StatefulSet")
	}
	o.checkSelectors(t)
	o.checkContainer(t)
	o.checkSecurity(t)
	if account := o.pod().ServiceAccountName; account != "default" && o.serviceAccounts[account] == nil {
		t.Errorf("no ServiceAccount %s", account)
	}
	for name, configMap := range o.configMaps {
		size := 0
		for _, text := range configMap.Data {
			size += len(text)
		}
		if size > 250_000 { // kubectl apply keeps a copy in an annotation, and all annotations together hold 256 KiB
			t.Errorf("ConfigMap %s holds %d bytes", name, size)
		}
	}
	if w := o.workload; w.kind == "StatefulSet" && (o.services[w.serviceName] == nil || o.services[w.serviceName].Spec.ClusterIP != corev1.ClusterIPNone) {
		t.Errorf("no headless Service %s", w.serviceName)
	}
}

func (o *objects) pod() *corev1.PodSpec { return &o.workload.template.Spec }

func (o *objects) container() *corev1.Container { return &o.pod().Containers[0] }

// hasPort tells whether the container has a port of this name or number.
func (o *objects) hasPort(port intstr.IntOrString) bool {
	return slices.ContainsFunc(o.container().Ports, func(p corev1.ContainerPort) bool {
		return p.Name == port.StrVal || port.IntVal == p.ContainerPort
	})
}

// checkSelectors: each selector selects, and each port that is named exists where it leads.
func (o *objects) checkSelectors(t *testing.T) {
	t.Helper()
	pod := labels.Set(o.workload.template.Labels)
	selects := func(what string, selector *metav1.LabelSelector, set labels.Set) {
		if s, err := metav1.LabelSelectorAsSelector(selector); err != nil || s.Empty() || !s.Matches(set) {
			t.Errorf("%s: selector %v (%v) does not select %v", what, s, err, set)
		}
	}
	selects(o.workload.kind, o.workload.selector, pod)
	for name, service := range o.services {
		selects("Service "+name, &metav1.LabelSelector{MatchLabels: service.Spec.Selector}, pod)
		for _, port := range service.Spec.Ports {
			if !o.hasPort(port.TargetPort) {
				t.Errorf("Service %s: the container has no port %s", name, port.TargetPort.String())
			}
		}
	}
	for name, np := range o.policies {
		selects("NetworkPolicy "+name, &np.Spec.PodSelector, pod)
		for _, rule := range np.Spec.Ingress {
			for _, port := range rule.Ports {
				if !o.hasPort(*port.Port) {
					t.Errorf("NetworkPolicy %s: the container has no port %s", name, port.Port.String())
				}
			}
		}
	}
	for name, monitor := range o.monitors {
		if len(o.services) != 1 {
			t.Fatalf("%d Services", len(o.services))
		}
		for _, service := range o.services {
			selects("ServiceMonitor "+name, &monitor.Spec.Selector, service.Labels)
			if label := monitor.Spec.JobLabel; label != "" && service.Labels[label] == "" {
				t.Errorf("ServiceMonitor %s: the Service has no label %s", name, label)
			}
			for _, endpoint := range monitor.Spec.Endpoints {
				if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == endpoint.Port }) {
					t.Errorf("ServiceMonitor %s: the Service has no port %s", name, endpoint.Port)
				}
			}
		}
	}
}

var pinned = regexp.MustCompile(`^[^:@\s]+(:\d+/[^:@\s]+)?(:v?\d[\w.-]*|@sha256:[0-9a-f]{64})$`)

// checkContainer: image, flags, probes and mounts are such that the daemon can start and answer.
func (o *objects) checkContainer(t *testing.T) {
	t.Helper()
	c := o.container()
	if !pinned.MatchString(c.Image) {
		t.Errorf("image %s is not pinned", c.Image)
	}
	known := flags(t)
	for _, arg := range c.Args {
		if flag, _, _ := strings.Cut(arg, "="); !known[flag] {
			t.Errorf("the daemon has no flag %s", flag)
		}
		for _, variable := range regexp.MustCompile(`\$\((\w+)\)`).FindAllStringSubmatch(arg, -1) {
			if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable[1] }) {
				t.Errorf("%s: no variable %s", arg, variable[1])
			}
		}
	}
	for probe, want := range map[*corev1.Probe]string{c.LivenessProbe: "/-/healthy", c.ReadinessProbe: "/-/ready"} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != want || !o.hasPort(probe.HTTPGet.Port) {
			t.Errorf("no probe of %s on a port of the container: %v", want, probe)
		}
	}
	for _, port := range c.Ports {
		if flag := fmt.Sprintf("--web.health-address=:%d", port.ContainerPort); port.Name == "health" && !slices.Contains(c.Args, flag) {
			t.Errorf("flags %v lack %s", c.Args, flag)
		}
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("resources %v lack a request or the limit of memory", c.Resources)
	}
	for _, mount := range c.VolumeMounts {
		if !slices.ContainsFunc(o.pod().Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) {
			t.Errorf("mount %s has no volume", mount.Name)
		}
	}
	o.checkWritten(t)
}

// writes are the flags that name a file which the daemon writes.
var writes = map[string]bool{"--journal.path": true, "--silences.file": true}

// checkWritten: the daemon can write where its flags say, and nowhere else; and two never write to the same claim.
func (o *objects) checkWritten(t *testing.T) {
	t.Helper()
	var told, can []string
	for _, arg := range o.container().Args {
		if flag, file, _ := strings.Cut(arg, "="); writes[flag] {
			told = append(told, path.Dir(file))
		}
	}
	for _, mount := range o.container().VolumeMounts {
		if !mount.ReadOnly {
			can = append(can, mount.MountPath)
		}
	}
	if diff := cmp.Diff(slices.Compact(told), can); diff != "" {
		t.Errorf("directories of files that the daemon writes (-flags +writable mounts):\n%s", diff)
	}
	if s := o.workload.strategy; o.claim() != "" && (o.workload.kind != "Deployment" || s.Type != appsv1.RecreateDeploymentStrategyType || s.RollingUpdate != nil) {
		t.Errorf("two pods of the %s may hold the claim %s: %v", o.workload.kind, o.claim(), s)
	}
}

// claim returns the name of the PersistentVolumeClaim that the pod mounts, "" where it mounts none.
func (o *objects) claim() string {
	for _, volume := range o.pod().Volumes {
		if volume.PersistentVolumeClaim != nil {
			return volume.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// checkSecurity: Pod Security admission lets the pod into a namespace of the level restricted, and the pod is at least
// as strict where that level has no say.
func (o *objects) checkSecurity(t *testing.T) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &o.workload.template.ObjectMeta, o.pod())); !result.Allowed {
		t.Errorf("not restricted: %s", result.ForbiddenDetail())
	}
	isTrue := func(b *bool) bool { return b != nil && *b }
	if !isTrue(o.container().SecurityContext.ReadOnlyRootFilesystem) {
		t.Error("the root is writable")
	}
	if token := o.pod().AutomountServiceAccountToken; token == nil || *token {
		t.Error("the pod gets a token of Kubernetes")
	}
}

// files returns what the container finds in its volumes, by path. Secrets are not among the manifests: each has the
// keys that it is told to have.
func (o *objects) files(t *testing.T, secrets map[string][]string) map[string]string {
	t.Helper()
	found := map[string]string{}
	project := func(dir, kind, name string, data map[string]string, items []corev1.KeyToPath) {
		if data == nil {
			t.Errorf("no %s %s", kind, name)
		}
		if items == nil {
			for key := range data {
				items = append(items, corev1.KeyToPath{Key: key, Path: key})
			}
		}
		for _, item := range items {
			text, ok := data[item.Key]
			if !ok {
				t.Errorf("%s %s has no key %s", kind, name, item.Key)
			}
			found[path.Join(dir, item.Path)] = text
		}
	}
	for _, mount := range o.container().VolumeMounts {
		for _, volume := range o.pod().Volumes {
			if volume.Name != mount.Name {
				continue
			}
			if volume.Secret != nil {
				project(mount.MountPath, "Secret", volume.Secret.SecretName, secretData(secrets, volume.Secret.SecretName), volume.Secret.Items)
				continue
			}
			if volume.Projected == nil { // empty, or what the cluster keeps
				continue
			}
			for _, source := range volume.Projected.Sources {
				name := source.ConfigMap.Name
				var data map[string]string
				if configMap := o.configMaps[name]; configMap != nil {
					data = configMap.Data
				}
				project(mount.MountPath, "ConfigMap", name, data, source.ConfigMap.Items)
			}
		}
	}
	return found
}

func secretData(secrets map[string][]string, name string) map[string]string {
	keys, ok := secrets[name]
	if !ok {
		return nil
	}
	data := map[string]string{}
	for _, key := range keys {
		data[key] = "secret"
	}
	return data
}

// checkConfig lets goodputctl check the configuration, in the image's content with the pod's volumes and no network.
func (o *objects) checkConfig(t *testing.T, secrets map[string][]string) {
	t.Helper()
	bwrap := tool(t, "BWRAP", "bwrap")
	configFile := ""
	for _, arg := range o.container().Args {
		if value, ok := strings.CutPrefix(arg, "--config.file="); ok {
			configFile = value
		}
	}
	files := o.files(t, secrets)
	if _, ok := files[configFile]; !ok {
		t.Fatalf("no file %q among %v", configFile, slices.Sorted(maps.Keys(files)))
	}
	mounts := t.TempDir()
	for name, text := range files {
		file := filepath.Join(mounts, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--unshare-all", "--die-with-parent", "--clearenv", "--ro-bind", imageContent(t) + "/bin", "/bin"}
	for _, variable := range o.container().Env {
		args = append(args, "--setenv", variable.Name, "value")
	}
	for _, mount := range o.container().VolumeMounts {
		if mount.ReadOnly {
			args = append(args, "--ro-bind", mounts+mount.MountPath, mount.MountPath)
		}
	}
	out := output(t, bwrap, append(args, "/bin/goodputctl", "check-config", configFile)...)
	if !strings.Contains(out, ": ok: ") {
		t.Errorf("goodputctl check-config: %s", out)
	}
}

// checkSynced: the rules and dashboards are those of deploy/rules and dashboards.
func (o *objects) checkSynced(t *testing.T) {
	t.Helper()
	sources, err := copies(root)
	if err != nil {
		t.Fatal(err)
	}
	var want monitoringv1.PrometheusRule
	if err := yaml.UnmarshalStrict(sources["prometheusrule.yaml"], &want); err != nil {
		t.Fatal(err)
	}
	if len(o.rules) != 1 {
		t.Errorf("%d PrometheusRules", len(o.rules))
	}
	for _, rule := range o.rules {
		if diff := cmp.Diff(want.Spec, rule.Spec); diff != "" {
			t.Errorf("rules (-deploy/rules +manifest):\n%s", diff)
		}
	}
	dashboards := map[string]string{}
	for _, configMap := range o.configMaps {
		if configMap.Labels["grafana_dashboard"] == "1" {
			maps.Copy(dashboards, configMap.Data)
		}
	}
	for name, data := range sources {
		if base, ok := strings.CutPrefix(name, "dashboards/"); ok {
			if dashboards[base] != string(data) {
				t.Errorf("dashboard %s differs or is missing", base)
			}
			delete(dashboards, base)
		}
	}
	for name := range dashboards {
		t.Errorf("dashboard %s is none of ours", name)
	}
}
