package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goodput_exporter/probe/probetest"
)

// faults are all that the endpoint can do to a probe, and what becomes of one that is streamed.
var faults = []struct {
	kind    probetest.FaultKind
	outcome string
}{
	{probetest.FaultRateLimited, "rate_limited"},
	{probetest.FaultInternal, "server_error"},
	{probetest.FaultUnavailable, "server_error"},
	{probetest.FaultInBand, "server_error"},
	{probetest.FaultTruncated, "truncated"},
	{probetest.FaultReset, "interrupted"},
	{probetest.FaultStall, "timeout"},
	{probetest.FaultNoFirstToken, "timeout"},
	{probetest.FaultSlowFirstToken, "slo_violation"},
	{probetest.FaultLengthLimited, "slo_violation"},
	{probetest.FaultEmpty, "invalid_response"},
	{probetest.FaultContentFilter, "content_filtered"},
}

// faultyEndpoint has a model for each fault, which befalls every second request of it.
func faultyEndpoint(t *testing.T) string {
	t.Helper()
	var models []probetest.Model
	for _, f := range faults {
		models = append(models, probetest.Model{
			Name: string(f.kind), TTFT: probetest.Fixed(0.01), Gap: probetest.Fixed(0.003),
			Faults: []probetest.Fault{{Kind: f.kind, First: 1, Every: 2, Delay: 600 * time.Millisecond}},
		})
	}
	return simulate(t, probetest.Config{Models: models})
}

// faultsConfig probes each model of a faulty endpoint in three ways, a port where nobody listens, and an endpoint
// whose credentials are in the file secret.
func faultsConfig(t *testing.T, url, secret string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(`
global: {interval: 1s, timeout: 950ms, first_token_timeout: 800ms, idle_timeout: 400ms, objective: 95%}
scenarios:
  stream: {prompt: "Why is the sky blue?", max_tokens: 64, slo: {ttft: 500ms, tpot: 200ms}}
  whole: {prompt: "Why is the sky blue?", max_tokens: 64, stream: false, slo: {e2e: 900ms}}
targets:
`)
	for _, f := range faults {
		fmt.Fprintf(&b, "- {name: %s, url: %q, model: %[1]s, scenarios: [stream, whole]}\n", f.kind, url)
		fmt.Fprintf(&b, "- {name: %s-completions, url: %q, model: %[1]s, protocol: openai-completions, scenarios: [stream]}\n", f.kind, url)
	}
	fmt.Fprintf(&b, "- {name: nobody, url: 'http://%s', model: m, scenarios: [stream]}\n", l.Addr())
	fmt.Fprintf(&b, "- {name: secretive, url: %q, model: empty, scenarios: [stream], http: {authorization: {credentials_file: %q}}}\n", url, secret)
	return b.String()
}

// TestEventsSumToAttemptsUnderEveryFault scrapes as often as it can while every fault strikes.
func TestEventsSumToAttemptsUnderEveryFault(t *testing.T) {
	t.Parallel()
	secret := write(t, filepath.Join(t.TempDir(), "secret"), "sesame")
	h := newHarness(t, &flags{grace: patience}, configure(t, faultsConfig(t, faultyEndpoint(t), secret)))
	h.reload(t)
	if err := os.Remove(secret); err != nil { // after the configuration was found to be right
		t.Fatal(err)
	}
	h.start()

	var m metrics
	eventually(t, "every fault has struck, and every model has answered", func() bool {
		m = scrape(t, h.url)
		if err := m.balance(); err != nil {
			t.Fatal(err)
		}
		return struck(m)
	})
	h.stop(t)
	m = scrape(t, h.url)
	if err := m.balance(); err != nil {
		t.Error(err)
	}
	if attempts := m.of(t, "goodput_probes_total", "target", "secretive"); attempts != 0 {
		t.Errorf("%v attempts without credentials", attempts)
	}
	failed, _ := m.sum("goodput_probe_failures_total")
	if good, violations := m.of(t, "goodput_probes_total", "outcome", "good"), m.of(t, "goodput_probes_total", "outcome", "slo_violation"); failed+good+violations != m.of(t, "goodput_probes_total") {
		t.Errorf("%v failures, %v good, %v violations: not all of the %v attempts", failed, good, violations, m.of(t, "goodput_probes_total"))
	}
}

// struck reports whether each series has met what it is there for.
func struck(m metrics) bool {
	had := func(name string, labels ...string) bool {
		n, _ := m.sum(name, labels...)
		return n > 0
	}
	for _, f := range faults {
		for _, target := range []string{string(f.kind), string(f.kind) + "-completions"} {
			if !had("goodput_probes_total", "target", target, "scenario", "stream", "outcome", f.outcome) ||
				!had("goodput_probes_total", "target", target, "scenario", "stream", "outcome", "good") {
				return false
			}
		}
		if !had("goodput_probes_total", "target", string(f.kind), "scenario", "whole") {
			return false
		}
	}
	return had("goodput_probes_total", "target", "nobody", "outcome", "connection_error") &&
		had("goodput_aborted_probes_total", "target", "secretive", "reason", "local_error")
}
