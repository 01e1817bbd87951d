package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/prometheus/prometheus/promql/parser"
)

// Where the rest of the repository is, seen from here.
const (
	committed   = "../../../dashboards"
	rulesDir    = "../../rules"
	runbookFile = "../../runbooks/README.md"
	golden      = "../../../collector/testdata/catalogue.golden"
)

// metric is what a query may say of a metric.
type metric struct {
	kind   string // counter, gauge, histogram; recorded for the series of rules
	labels map[string]bool
}

// catalogue knows every metric that a dashboard may ask for.
type catalogue map[string]metric

// foreign are the metrics that are neither the exporter's own nor recorded, with where they come from.
var foreign = map[string]struct{ kind, from, labels string }{
	"ALERTS":                                     {"gauge", "Prometheus, of alerts", "alertname alertstate severity long_window short_window job target model scenario slo"},
	"ALERTS_FOR_STATE":                           {"gauge", "Prometheus, of alerts", "alertname severity long_window short_window job target model scenario slo"},
	"up":                                         {"gauge", "Prometheus, of scrapes", "job instance"},
	"scrape_duration_seconds":                    {"gauge", "Prometheus, of scrapes", "job instance"},
	"scrape_samples_scraped":                     {"gauge", "Prometheus, of scrapes", "job instance"},
	"scrape_series_added":                        {"gauge", "Prometheus, of scrapes", "job instance"},
	"process_cpu_seconds_total":                  {"counter", "client_golang", "job instance"},
	"process_resident_memory_bytes":              {"gauge", "client_golang", "job instance"},
	"process_open_fds":                           {"gauge", "client_golang", "job instance"},
	"go_memstats_heap_inuse_bytes":               {"gauge", "client_golang", "job instance"},
	"go_goroutines":                              {"gauge", "client_golang", "job instance"},
	"go_gc_duration_seconds":                     {"gauge", "client_golang", "job instance quantile"},
	"vllm:time_to_first_token_seconds":           {"histogram", "vLLM", "model_name"},
	"vllm:request_time_per_output_token_seconds": {"histogram", "vLLM", "model_name"},
	"vllm:num_requests_running":                  {"gauge", "vLLM", "model_name"},
	"vllm:num_requests_waiting":                  {"gauge", "vLLM", "model_name"},
	"vllm:kv_cache_usage_perc":                   {"gauge", "vLLM", "model_name"},
}

// classic are the histograms with classic buckets in the exporter's default, or the server's.
var classic = map[string]bool{
	"goodput_time_to_first_token_seconds": true, "goodput_time_per_output_token_seconds": true, "goodput_request_duration_seconds": true,
	"vllm:time_to_first_token_seconds": true, "vllm:request_time_per_output_token_seconds": true,
}

var goldenLine = regexp.MustCompile(`^(\w+)\{([^}]*)\} (\w+)$`)

func loadCatalogue(t *testing.T) catalogue {
	t.Helper()
	known := catalogue{}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(string(data), "\n") {
		if m := goldenLine.FindStringSubmatch(l); m != nil {
			// env is a label of the golden file's own configuration.
			known.add(m[1], m[3], strings.ReplaceAll(m[2], ",", " ")+" job instance")
		}
	}
	for name, f := range foreign {
		known.add(name, f.kind, f.labels)
	}
	for _, r := range loadRules(t) {
		if r.Record == "" {
			continue
		}
		labels := "job target model scenario"
		if strings.HasPrefix(r.Record, "slo:") {
			labels += " slo"
		}
		known.add(r.Record, "recorded", labels)
	}
	if len(known) < 60 {
		t.Fatalf("the catalogue has %d metrics: something is not where it was", len(known))
	}
	return known
}

func (c catalogue) add(name, kind, labels string) {
	m := metric{kind: kind, labels: map[string]bool{}}
	for _, l := range strings.Fields(labels) {
		m.labels[l] = true
	}
	c[name] = m
}

// find gives a metric by the name of its series. Only classic histograms have a _bucket.
func (c catalogue) find(name string) (metric, error) {
	if m, ok := c[name]; ok {
		return m, nil
	}
	base, isBucket := strings.CutSuffix(name, "_bucket")
	m, ok := c[base]
	switch {
	case !isBucket || !ok || m.kind != "histogram":
		return metric{}, fmt.Errorf("no metric %s", name)
	case !classic[base]:
		return metric{}, fmt.Errorf("%s has no classic buckets by default", base)
	}
	labels := map[string]bool{"le": true}
	for l := range m.labels {
		labels[l] = true
	}
	return metric{kind: "histogram", labels: labels}, nil
}

type rule struct {
	Record, Alert, Expr string
	Labels              map[string]string
}

// loadRules reads the rules that dashboards stand on.
func loadRules(t *testing.T) []rule {
	t.Helper()
	var all []rule
	for _, name := range []string{"goodput.rules.yml", "goodput.alerts.yml"} {
		data, err := os.ReadFile(filepath.Join(rulesDir, name))
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Groups []struct{ Rules []rule } }
		if err := yaml.Unmarshal(data, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, g := range file.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

func parse(expr string) (parser.Expr, error) {
	return parser.NewParser(parser.Options{}).ParseExpr(expr)
}
