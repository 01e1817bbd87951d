package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rightlyEmpty are the queries without an answer in the demo, by a part of them, with the reason.
var rightlyEmpty = map[string]string{
	"offset 1d":                "the demo is not a day old",
	"vllm:":                    "the demo's endpoint is no vLLM",
	"goodput_budget_remaining": "the demo has no budgets",
	"goodput_cost_dollars":     "the demo has no prices",
	`slo="first_answer"`:       "the demo's chat has no such criterion",
	`slo="stall"`:              "the demo's chat has no such criterion",
}

// shortSteps lets sums of counts over weeks have something to sum after a minute: their subqueries step by 5 minutes.
var shortSteps = strings.NewReplacer("[30d:5m]", "[30d:15s]", "[7d:5m]", "[7d:15s]")

// settle is how long the demo runs before it is asked: bars of a minute need more than one.
const settle = 100 * time.Second

// TestLiveQueries runs every query of every panel, annotation and rule against a real Prometheus that scrapes the real
// exporter in its demo: none may fail, and none may be empty but those in the tables. GOODPUT_EXPORTER and PROMETHEUS
// name the binaries (Prometheus 3, which stores both forms of a histogram).
func TestLiveQueries(t *testing.T) {
	exporter, server := os.Getenv("GOODPUT_EXPORTER"), os.Getenv("PROMETHEUS")
	if exporter == "" || server == "" {
		t.Skip("GOODPUT_EXPORTER and PROMETHEUS name no binaries")
	}
	api := startPrometheus(t, server, startDemo(t, exporter))
	time.Sleep(settle)

	used := map[string]bool{}
	for name, d := range load(t) {
		for _, p := range panelsOf(d) {
			for _, q := range queriesOf(p) {
				for _, expr := range expand(d, chosen(q.Expr)) {
					t.Run(name+"/"+*p.Title+"/"+*q.RefId, func(t *testing.T) { api.mustAnswer(t, expr, used) })
				}
			}
		}
		for _, a := range d.Annotations.List {
			for _, expr := range expand(d, *a.Expr) {
				t.Run(name+"/annotation/"+a.Name, func(t *testing.T) { api.mustAnswer(t, expr, used) })
			}
		}
		checkVariables(t, api, name, d)
	}
	for _, r := range loadRules(t) {
		t.Run("rule/"+r.Record+r.Alert, func(t *testing.T) {
			if n := api.series(t, r.Expr); n == 0 && r.Alert == "" { // most alerts have no reason to fire
				t.Errorf("no series: %s", r.Expr)
			}
		})
	}
	for part := range rightlyEmpty {
		if !used[part] {
			t.Errorf("no query with %q is empty any more", part)
		}
	}
}

// chosen puts the demo's most telling series where a dashboard has the reader choose one.
func chosen(expr string) string {
	for _, v := range [][2]string{{"target", "degraded"}, {"scenario", "chat"}, {"slo", "goodput"}} {
		expr = regexp.MustCompile(v[0]+`="\$`+v[0]+`"`).ReplaceAllString(expr, v[0]+`="`+v[1]+`"`)
	}
	return expr
}

func checkVariables(t *testing.T, api prometheusAPI, name string, d classicDashboard) {
	t.Helper()
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		match := regexp.MustCompile(`^label_values\((.+), \w+\)$`).FindStringSubmatch(*v.Query.String)[1]
		for _, expr := range expand(d, chosen(match)) {
			if api.series(t, expr) == 0 {
				t.Errorf("%s: variable %s has no values", name, v.Name)
			}
		}
	}
}

// mustAnswer fails where a query fails, or is empty for no reason. It marks the reasons that were needed.
func (api prometheusAPI) mustAnswer(t *testing.T, expr string, used map[string]bool) {
	t.Helper()
	n := api.series(t, expr)
	for part := range rightlyEmpty {
		if strings.Contains(expr, part) {
			used[part] = used[part] || n == 0
			return
		}
	}
	if n == 0 {
		t.Errorf("no series: %s", expr)
	}
}

// prometheusAPI is the address of a Prometheus.
type prometheusAPI string

// series runs a query over the last minutes, as a panel does, and returns the number of series in the answer.
func (api prometheusAPI) series(t *testing.T, expr string) int {
	t.Helper()
	expr = shortSteps.Replace(expr)
	now := time.Now()
	response, err := http.PostForm(string(api)+"/api/v1/query_range", url.Values{
		"query": {expr}, "step": {"15"},
		"start": {strconv.FormatInt(now.Add(-settle).Unix(), 10)}, "end": {strconv.FormatInt(now.Unix(), 10)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if answer.Status != "success" {
		t.Errorf("%s: %s", answer.Error, expr)
	}
	return len(answer.Data.Result)
}

func startDemo(t *testing.T, binary string) (address string) {
	t.Helper()
	address = freeAddress(t)
	start(t, "http://"+address+"/-/ready", binary, "--demo", "--web.listen-address="+address, "--log.level=error")
	return address
}

// startPrometheus scrapes an exporter every 3 s, the interval of the demo's probes, with the rules at the same pace.
func startPrometheus(t *testing.T, binary, exporter string) prometheusAPI {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"goodput.rules.yml", "goodput.alerts.yml"} {
		rules, err := os.ReadFile(filepath.Join(rulesDir, name))
		if err != nil {
			t.Fatal(err)
		}
		rules = regexp.MustCompile(`(?m)^(\s+interval: ).*$`).ReplaceAll(rules, []byte("${1}3s"))
		// The degraded model's alerts are to be there at once: they wait for neither minutes nor filled windows.
		rules = regexp.MustCompile(`\b(for: )\d+[mh]\b`).ReplaceAll(rules, []byte("${1}1s"))
		rules = regexp.MustCompile(`(window_fill:ratio_\w+ > )0\.25`).ReplaceAll(rules, []byte("${1}0.0001"))
		rules = []byte(shortSteps.Replace(string(rules)))
		if err := os.WriteFile(filepath.Join(dir, name), rules, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 3s, evaluation_interval: 3s}
rule_files: [goodput.*.yml]
scrape_configs:
  - job_name: goodput_exporter
    scrape_native_histograms: true
    always_scrape_classic_histograms: true
    static_configs: [{targets: [%q]}]
`, exporter)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	start(t, "http://"+address+"/-/ready", binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--enable-feature=exemplar-storage", "--log.level=error")
	return prometheusAPI("http://" + address)
}

// start runs a program until the test ends, and waits until it is ready.
func start(t *testing.T, ready, binary string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // ended by us
	})
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		response, err := http.Get(ready)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
	}
	t.Fatalf("%s is not ready after a minute", filepath.Base(binary))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
