//go:build thirdparty

package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// program returns the path of a program that make check has built or installed.
func program(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s is not set: make check installs the third-party programs and runs these tests", variable)
	}
	return path
}

// startDemo runs the built daemon with its demo until the end of the test, and returns the URL of its metrics.
func startDemo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	var logs bytes.Buffer
	daemon := exec.CommandContext(t.Context(), program(t, "GOODPUT_EXPORTER"), "--demo", "--web.listen-address="+address)
	daemon.Stdout, daemon.Stderr = &logs, &logs
	daemon.Cancel = func() error { return daemon.Process.Signal(syscall.SIGTERM) }
	daemon.WaitDelay = 20 * time.Second // then it is killed
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The context has ended, so Wait tells of that where the daemon itself ended without an error.
		if err := daemon.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the daemon ended on SIGTERM with: %v", err)
		}
		if t.Failed() {
			t.Logf("goodput_exporter said:\n%s", &logs)
		}
	})
	return "http://" + address + "/metrics"
}

// scrape returns the metrics as text.
func scrape(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Close = true
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

// pair is one model in one scenario: the demo has two models and three scenarios.
type pair struct{ model, scenario string }

type tally struct{ good, bad float64 }

// events sums goodput_slo_events_total over the SLOs of each pair.
func events(metrics []byte) (map[pair]tally, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(metrics))
	if err != nil {
		return nil, err
	}
	sums := map[pair]tally{}
	for _, m := range families["goodput_slo_events_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		p := pair{labels["model"], labels["scenario"]}
		sum, n := sums[p], m.GetCounter().GetValue()
		switch result := labels["result"]; result {
		case "good":
			sum.good += n
		case "bad":
			sum.bad += n
		default:
			return nil, fmt.Errorf("goodput_slo_events_total has the result %q", result)
		}
		sums[p] = sum
	}
	return sums, nil
}

// complete reports whether every pair has had a probe, and good and bad events are among theirs.
func complete(sums map[pair]tally) bool {
	var total tally
	for _, n := range sums {
		if n.good+n.bad == 0 {
			return false
		}
		total.good += n.good
		total.bad += n.bad
	}
	return len(sums) == 2*3 && total.good > 0 && total.bad > 0
}

func TestThirdPartyPromtoolAcceptsTheLiveMetrics(t *testing.T) {
	url := startDemo(t)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	var metrics []byte
	var sums map[pair]tally
	for !complete(sums) {
		select {
		case <-ctx.Done():
			t.Fatalf("after 30 s the events are %v, want good and bad ones of two models in three scenarios", sums)
		case <-poll.C:
		}
		var err error
		if metrics, err = scrape(ctx, url); err != nil {
			continue // not listening yet
		}
		if sums, err = events(metrics); err != nil {
			t.Fatalf("the metrics are not in the text format: %v", err)
		}
	}

	promtool := exec.CommandContext(t.Context(), program(t, "PROMTOOL"), "check", "metrics")
	promtool.Stdin = bytes.NewReader(metrics)
	if output, err := promtool.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, output)
	}
}
