package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"go.yaml.in/yaml/v3"
)

// compose loads the compose file as docker compose does, against the schema of the specification.
func compose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "deploy/compose/compose.yml")}, cli.WithConsistency(true), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestCompose(t *testing.T) {
	project := compose(t)
	known := flags(t)
	for name, service := range project.Services {
		t.Run(name, func(t *testing.T) {
			if !pinned.MatchString(service.Image) {
				t.Errorf("image %s is not pinned", service.Image)
			}
			for _, port := range service.Ports {
				if port.HostIP != "127.0.0.1" {
					t.Errorf("port %s is open to %q, not to loopback alone", port.Published, port.HostIP)
				}
			}
			for _, volume := range service.Volumes {
				if volume.Type != types.VolumeTypeBind {
					continue
				}
				if _, err := os.Stat(volume.Source); err != nil || !volume.ReadOnly {
					t.Errorf("%s: writable, or %v", volume.Source, err)
				}
			}
			if service.Privileged || service.NetworkMode != "" || !slices.Contains(service.CapDrop, "ALL") {
				t.Error("more privileges than it needs")
			}
			if service.Build != nil {
				for _, arg := range service.Command {
					if flag, _, _ := strings.Cut(arg, "="); !known[flag] {
						t.Errorf("the daemon has no flag %s", flag)
					}
				}
				if _, err := os.Stat(filepath.Join(service.Build.Context, service.Build.Dockerfile)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// mounted returns what a service finds at a path: the file or directory that is mounted there, or above it.
func mounted(t *testing.T, service types.ServiceConfig, path string) string {
	t.Helper()
	for _, volume := range service.Volumes {
		if rest, ok := strings.CutPrefix(path, volume.Target); ok && volume.Type == types.VolumeTypeBind && (rest == "" || rest[0] == '/') {
			return volume.Source + rest
		}
	}
	t.Fatalf("%s: nothing is mounted at %s", service.Name, path)
	return ""
}

// Prometheus accepts its configuration, finds the rules, keeps what the error budget needs, and scrapes and alerts
// services of the compose file.
func TestComposePrometheus(t *testing.T) {
	project := compose(t)
	service := project.Services["prometheus"]
	cfg, err := config.Load(readFile(t, mounted(t, service, "/etc/prometheus/prometheus.yml")), promslog.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range cfg.RuleFiles {
		readFile(t, mounted(t, service, "/etc/prometheus/"+file))
	}
	if kept := cfg.StorageConfig.TSDBConfig.Retention.Time; time.Duration(kept) < 30*24*time.Hour {
		t.Errorf("keeps %s of the 30d of an error budget", kept)
	}
	text := readFile(t, mounted(t, service, "/etc/prometheus/prometheus.yml"))
	for _, address := range []string{"goodput_exporter:10042", "alertmanager:9093"} {
		name, port, _ := strings.Cut(address, ":")
		if !strings.Contains(text, `"`+address+`"`) || !slices.ContainsFunc(project.Services[name].Ports, func(p types.ServicePortConfig) bool { return p.Published == port }) {
			t.Errorf("Prometheus does not know %s, or there is none", address)
		}
	}
}

// Grafana finds its data source and the dashboards.
func TestComposeGrafana(t *testing.T) {
	project := compose(t)
	service := project.Services["grafana"]
	var sources struct {
		Datasources []struct{ Type, URL string }
	}
	var dashboards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	decodeYAML(t, mounted(t, service, "/etc/grafana/provisioning/datasources/prometheus.yml"), &sources)
	decodeYAML(t, mounted(t, service, "/etc/grafana/provisioning/dashboards/goodput.yml"), &dashboards)
	if sources.Datasources[0].URL != "http://prometheus:9090" || sources.Datasources[0].Type != "prometheus" {
		t.Errorf("data source %v", sources.Datasources[0])
	}
	found, err := filepath.Glob(mounted(t, service, dashboards.Providers[0].Options.Path) + "/*.json")
	if err != nil || len(found) < 4 {
		t.Errorf("found the dashboards %v (%v)", found, err)
	}
	home := service.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	readFile(t, mounted(t, service, *home))
}

func decodeYAML(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(readFile(t, path)), into); err != nil {
		t.Fatal(err)
	}
}
