package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

// stack is what stands behind an exporter.
type stack struct {
	prometheus, alertmanager string // addresses
	receiver                 *receiver
	started                  time.Time
}

// startStack starts a Prometheus that scrapes the exporter, an Alertmanager behind it, and the receiver of its
// notifications.
func startStack(t *testing.T, exporter string, by scale) *stack {
	t.Helper()
	manager := program(t, "ALERTMANAGER")
	t.Logf("scrapes and evaluations every %v; windows, waits and for divided by %g, those of the prober's alerts by %g; no window is shorter than %v",
		pace, by.slo, by.prober, shortest)
	s := &stack{prometheus: freeAddress(t), alertmanager: freeAddress(t), receiver: startReceiver(t), started: time.Now()}
	dir := t.TempDir()

	config := filepath.Join(dir, "alertmanager.yml")
	by.copyAlertmanager(t, config, s.receiver.url)
	start(t, "http://"+s.alertmanager+"/-/ready", manager, "--config.file="+config, "--storage.path="+filepath.Join(dir, "alertmanager"),
		"--web.listen-address="+s.alertmanager, "--cluster.listen-address=", "--log.level=error")

	by.copyRules(t, dir)
	startPrometheus(t, dir, s.prometheus, exporter, s.alertmanager)
	return s
}

// startPrometheus starts a Prometheus on an address. It scrapes the exporter, evaluates the rules that are in the
// directory, and keeps its data there.
func startPrometheus(t *testing.T, dir, address, exporter string, alertmanagers ...string) {
	t.Helper()
	config := filepath.Join(dir, "prometheus.yml")
	write(t, config, fmt.Sprintf(`
global: {scrape_interval: %[1]v, scrape_timeout: %[1]v, evaluation_interval: %[1]v}
rule_files: [goodput.*.yml]
alerting: {alertmanagers: [{static_configs: [{targets: %[2]q}]}]}
scrape_configs:
  - job_name: goodput_exporter
    scrape_native_histograms: true
    static_configs: [{targets: [%[3]q]}]
`, pace, alertmanagers, exporter))
	start(t, "http://"+address+"/-/ready", program(t, "PROMETHEUS"), "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "prometheus"), "--web.listen-address="+address, "--log.level=error")
}

// query returns Prometheus's answer to a query.
func query(t *testing.T, prometheus, promql string) model.Vector {
	t.Helper()
	var answer struct {
		Data struct{ Result model.Vector }
	}
	get(t, "http://"+prometheus+"/api/v1/query?"+url.Values{"query": {promql}}.Encode(), &answer)
	return answer.Data.Result
}

// awaitSamples waits until a query has an answer.
func awaitSamples(t *testing.T, prometheus string, within time.Duration, promql string) {
	t.Helper()
	eventually(t, within, promql, func() bool { return len(query(t, prometheus, promql)) > 0 })
}

// awaitInhibited waits until Alertmanager has an alert with these labels and holds it back because of another.
func (s *stack) awaitInhibited(t *testing.T, within time.Duration, want labels) {
	t.Helper()
	query := url.Values{}
	for name, value := range want {
		query.Add("filter", fmt.Sprintf("%s=%q", name, value))
	}
	eventually(t, within, fmt.Sprintf("inhibition of %v", want), func() bool {
		var alerts []struct {
			Status struct{ InhibitedBy []string }
		}
		get(t, "http://"+s.alertmanager+"/api/v2/alerts?"+query.Encode(), &alerts)
		for _, a := range alerts {
			if len(a.Status.InhibitedBy) > 0 {
				return true
			}
		}
		return false
	})
}

func get(t *testing.T, address string, into any) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", address, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
}

type labels map[string]string

// alert is an alert in a notification. As a pattern it matches those that have all its labels and, if it has one, its
// status.
type alert struct {
	Status      string
	Labels      labels
	Annotations map[string]string
}

func (a alert) matches(pattern alert) bool {
	for name, value := range pattern.Labels {
		if a.Labels[name] != value {
			return false
		}
	}
	return pattern.Status == "" || pattern.Status == a.Status
}

// notified is an alert, when it came and for whom.
type notified struct {
	alert
	receiver string
	at       time.Time
}

// receiver keeps what Alertmanager's webhooks bring.
type receiver struct {
	url string

	mu  sync.Mutex
	got []notified
}

func startReceiver(t *testing.T) *receiver {
	r := &receiver{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// ServeHTTP implements http.Handler. The path is the receiver's name.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var message struct{ Alerts []alert }
	if err := json.NewDecoder(request.Body).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range message.Alerts {
		r.got = append(r.got, notified{a, strings.TrimPrefix(request.URL.Path, "/"), time.Now()})
	}
}

func (r *receiver) all() []notified {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// find returns the first notification of an alert for a receiver.
func (r *receiver) find(name string, pattern alert) (notified, bool) {
	for _, n := range r.all() {
		if n.receiver == name && n.matches(pattern) {
			return n, true
		}
	}
	return notified{}, false
}

// await waits for the first notification of an alert for a receiver.
func (r *receiver) await(t *testing.T, within time.Duration, name string, pattern alert) notified {
	t.Helper()
	var n notified
	eventually(t, within, fmt.Sprintf("%s: %s %v", name, pattern.Status, pattern.Labels), func() (ok bool) {
		n, ok = r.find(name, pattern)
		return ok
	})
	return n
}

// eventually polls a condition, and fails the test if it does not come true in time.
func eventually(t *testing.T, within time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// process is a program that runs until the test ends, or is stopped.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a program and waits until it is ready.
func start(t *testing.T, ready, binary string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{cmd: exec.CommandContext(ctx, binary, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = os.Stderr, os.Stderr
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 20 * time.Second
	if err := p.cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // ended by us
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
	})
	eventually(t, time.Minute, filepath.Base(binary)+" ready", func() bool {
		select {
		case <-p.ended:
			t.Fatalf("%s: %v", filepath.Base(binary), p.cmd.ProcessState)
		default:
		}
		response, err := http.Get(ready)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return p
}

// stop ends a program as an operator would.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not end", p.cmd.Path)
	}
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
