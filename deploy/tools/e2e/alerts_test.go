// Package e2e takes alerts the whole way: the real daemon, a real Prometheus with the shipped rules, a real Alertmanager
// with the example configuration, and a receiver of its notifications. It also holds the live windows against the rules.
//
// Windows of hours do not fit into a test. Each test of alerts runs a copy of the rules and of Alertmanager's configuration
// in which every duration is divided by a factor, and says by which.
package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goodput_exporter/probe/probetest"
)

// TestDemo: the demo's degraded model makes a ticket, the healthy one never notifies, and an exporter that stops is
// missed until it is back.
//
// The demo probes every 3 s, and what is known grows with probes, not with windows: a day in 3 minutes has 60 of them.
func TestDemo(t *testing.T) {
	t.Parallel()
	exporter := program(t, "GOODPUT_EXPORTER")
	address := freeAddress(t)
	demo := func() *process {
		return start(t, "http://"+address+"/-/ready", exporter, "--demo", "--web.listen-address="+address, "--log.level=error")
	}
	daemon := demo()
	s := startStack(t, address, scale{slo: 480, prober: 60})

	burning := alert{Status: "firing", Labels: labels{
		"alertname": "GoodputErrorBudgetBurn", "severity": "warning", "target": "degraded", "model": "degraded", "slo": "goodput", "env": "demo", "job": "goodput_exporter",
	}}
	got := s.receiver.await(t, 100*time.Second, "ticket", burning)
	t.Logf("%v after the start: %v", got.at.Sub(s.started).Round(time.Second), got.Labels)
	if want := "https://runbooks.example.net/goodput#goodputerrorbudgetburn"; got.Annotations["runbook_url"] != want {
		t.Errorf("runbook_url %q, want %q", got.Annotations["runbook_url"], want)
	}
	for _, label := range []string{"scenario", "long_window", "short_window"} {
		if got.Labels[label] == "" {
			t.Errorf("the ticket has no label %s: %v", label, got.Labels)
		}
	}

	down := alert{Status: "firing", Labels: labels{"alertname": "GoodputExporterDown", "severity": "warning", "instance": address}}
	if n, ok := s.receiver.find("ticket", down); ok {
		t.Errorf("the exporter is up, and %v", n.Labels)
	}
	daemon.stop(t)
	stopped := time.Now()
	got = s.receiver.await(t, 30*time.Second, "ticket", down)
	t.Logf("%v after the exporter's end: %v", got.at.Sub(stopped).Round(time.Second), got.Labels)
	if want := "https://runbooks.example.net/goodput#goodputexporterdown"; got.Annotations["runbook_url"] != want {
		t.Errorf("runbook_url %q, want %q", got.Annotations["runbook_url"], want)
	}
	demo()
	down.Status = "resolved"
	s.receiver.await(t, 30*time.Second, "ticket", down)

	for _, receiver := range []string{"page", "ticket", "info"} {
		if n, ok := s.receiver.find(receiver, alert{Labels: labels{"target": "healthy"}}); ok {
			t.Errorf("the healthy model notifies: %s %v", receiver, n.Labels)
		}
	}
}

// outageFactor makes 15 s the 1 s in which this test probes, scrapes and evaluates: the world of the shipped rules, but
// for the score, which counts probes.
const outageFactor = 15

// TestOutage: an endpoint that dies pages within 4 minutes, only once although its budget burns and its goodput has
// dropped, and the page resolves when it is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	exporter := program(t, "GOODPUT_EXPORTER")
	model := probetest.Model{Name: "m", TTFT: probetest.Fixed(0.02), Gap: probetest.Fixed(0.002), OutputTokens: probetest.Fixed(8)}
	endpoint := serve(t, "127.0.0.1:0", model)

	// Two series: the score of a strict objective needs the fewest probes.
	config := filepath.Join(t.TempDir(), "goodput.yml")
	write(t, config, fmt.Sprintf(`
global: {interval: 1s, timeout: 950ms, first_token_timeout: 900ms, idle_timeout: 500ms}
scenarios:
  usual: {prompt: Hello, max_tokens: 64, slo: {objective: 99%%, ttft: 800ms}}
  strict: {prompt: Hello, max_tokens: 64, slo: {objective: 99.99%%, ttft: 800ms}}
targets:
  - {name: mortal, url: %q, model: m, scenarios: [usual, strict]}
`, endpoint.URL()))
	address := freeAddress(t)
	start(t, "http://"+address+"/-/ready", exporter, "--config.file="+config, "--web.listen-address="+address, "--log.level=error")
	s := startStack(t, address, scale{slo: outageFactor, prober: outageFactor})

	named := func(name, scenario, status string) alert {
		return alert{Status: status, Labels: labels{
			"alertname": name, "severity": "critical", "target": "mortal", "model": "m", "scenario": scenario, "job": "goodput_exporter",
		}}
	}
	awaitSamples(t, s.prometheus, time.Minute, `goodput_slo_events_total{slo="goodput",scenario="usual",result="good"} > 15`)
	if n, ok := s.receiver.find("page", alert{}); ok {
		t.Fatalf("paged for a good endpoint: %v", n.Labels)
	}

	if err := endpoint.Close(); err != nil {
		t.Fatal(err)
	}
	died := time.Now()
	got := s.receiver.await(t, time.Minute, "page", named("GoodputTargetDown", "usual", "firing"))
	took := got.at.Sub(died)
	t.Logf("the page came %v after the outage began: %v at a probe interval of 15 s", took.Round(100*time.Millisecond), (outageFactor * took).Round(time.Second))
	if outageFactor*took > 4*time.Minute {
		t.Errorf("a total outage pages after %v at a probe interval of 15 s, more than 4 minutes", outageFactor*took)
	}
	if want := "https://runbooks.example.net/goodput#goodputtargetdown"; got.Annotations["runbook_url"] != want {
		t.Errorf("runbook_url %q, want %q", got.Annotations["runbook_url"], want)
	}
	s.receiver.await(t, time.Minute, "page", named("GoodputTargetDown", "strict", "firing"))

	s.awaitInhibited(t, 90*time.Second, named("GoodputErrorBudgetBurn", "usual", "").Labels)
	s.awaitInhibited(t, 90*time.Second, named("GoodputDrop", "strict", "").Labels)
	for _, n := range s.receiver.all() {
		if n.receiver == "page" && n.Labels["alertname"] != "GoodputTargetDown" {
			t.Errorf("the outage has its page already, and %v", n.Labels)
		}
	}
	t.Logf("%v after the outage began, GoodputErrorBudgetBurn and GoodputDrop fire and are inhibited", time.Since(died).Round(time.Second))

	serve(t, strings.TrimPrefix(endpoint.Root(), "http://"), model)
	s.receiver.await(t, time.Minute, "page", named("GoodputTargetDown", "usual", "resolved"))
	s.receiver.await(t, time.Minute, "page", named("GoodputTargetDown", "strict", "resolved"))
}

// serve starts a simulated endpoint, which ends with the test if not before.
func serve(t *testing.T, address string, model probetest.Model) *probetest.Endpoint {
	t.Helper()
	endpoint, err := probetest.Start(address, probetest.Config{Models: []probetest.Model{model}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = endpoint.Close() }) // it may have ended before
	return endpoint
}

func program(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("set %s to the program", variable)
	}
	return path
}
