package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"goodput_exporter/probe/probetest"
)

// asDaemon makes this test binary the daemon itself, for tests of a whole process.
const asDaemon = "GOODPUT_EXPORTER_AS_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// eventually waits until done, and fails the test where that takes too long.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %s still not: %s", patience, what)
		}
	}
}

// output is what a daemon says. It is safe for concurrent use.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// running is a daemon that runs in this process, from its command line on.
type running struct {
	url  string // without a path
	logs *output
	end  context.CancelFunc
	code chan int
}

// listening finds the address in the line that tells it, in either format.
var listening = regexp.MustCompile(`msg="Listening on" address=(\S+)|"address":"([^"]+)".*"msg":"Listening on"`)

// addressIn returns the URL at which a daemon listens, as soon as it says so.
func addressIn(said string) (url string, ok bool) {
	found := listening.FindStringSubmatch(said)
	if found == nil {
		return "", false
	}
	return "http://" + found[1] + found[2], true
}

// launch runs the daemon on a free port of loopback until the end of the test.
func launch(t *testing.T, args ...string) *running {
	t.Helper()
	r := start(t, args...)
	eventually(t, "the daemon listens", func() (ok bool) {
		r.url, ok = addressIn(r.logs.String())
		return ok
	})
	return r
}

// start is launch without the wait for the port.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{logs: &output{}, end: cancel, code: make(chan int, 1)}
	args = append([]string{"--web.listen-address=127.0.0.1:0"}, args...)
	go func() { r.code <- exitCode(ctx, args, r.logs, r.logs) }()
	t.Cleanup(func() {
		r.stop(t)
		if t.Failed() {
			t.Logf("the daemon said:\n%s", r.logs)
		}
	})
	return r
}

// stop asks the daemon to end and returns its exit code. It may be called again.
func (r *running) stop(t *testing.T) int {
	t.Helper()
	r.end()
	return r.wait(t)
}

// wait waits for the end of the daemon and returns its exit code.
func (r *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case code := <-r.code:
		r.code <- code
		return code
	case <-time.After(patience):
		t.Fatalf("the daemon runs on; it said:\n%s", r.logs)
		return -1
	}
}

// exited is what a daemon that does not get far ends with.
func exited(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	r := start(t, args...)
	return r.wait(t), r.logs.String()
}

// client keeps no connections, so that nothing of them is left after a test.
var client = &http.Client{
	Timeout:   patience,
	Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
}

// page is an answer to a request.
type page struct {
	status int
	header http.Header
	body   string
}

// request makes a request without a body. header holds names and values in turn.
func request(t *testing.T, method, url string, header ...string) page {
	t.Helper()
	return exchange(t, method, url, http.NoBody, header...)
}

func exchange(t *testing.T, method, url string, content io.Reader, header ...string) page {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, content)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{resp.StatusCode, resp.Header, string(body)}
}

func get(t *testing.T, url string, header ...string) page {
	t.Helper()
	return request(t, http.MethodGet, url, header...)
}

// metrics are those of one scrape, by name.
type metrics map[string]*dto.MetricFamily

// scrape scrapes a daemon, given its URL without a path, in the format that Prometheus prefers.
func scrape(t *testing.T, url string) metrics {
	t.Helper()
	format := expfmt.NewFormat(expfmt.TypeProtoDelim)
	p := get(t, url+"/metrics", "Accept", string(format))
	if p.status != http.StatusOK {
		t.Fatalf("/metrics: status %d: %s", p.status, p.body)
	}
	m := metrics{}
	for d := expfmt.NewDecoder(strings.NewReader(p.body), format); ; {
		family := &dto.MetricFamily{}
		switch err := d.Decode(family); {
		case errors.Is(err, io.EOF):
			return m
		case err != nil:
			t.Fatalf("the metrics are no protocol buffers: %v", err)
		}
		m[family.GetName()] = family
	}
}

// parse reads metrics in the text format.
func parse(t *testing.T, text string) metrics {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	m, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("the metrics are not in the text format: %v", err)
	}
	return m
}

// sum adds up the samples of a metric that have the labels, given as names and values in turn. Of a histogram it
// takes the count. found is how many samples there were.
func (m metrics) sum(name string, labels ...string) (total float64, found int) {
	for _, sample := range m[name].GetMetric() {
		if !has(sample, labels) {
			continue
		}
		found++
		total += sample.GetCounter().GetValue() + sample.GetGauge().GetValue() + float64(sample.GetHistogram().GetSampleCount())
	}
	return total, found
}

// of is sum for samples that must be there.
func (m metrics) of(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	total, found := m.sum(name, labels...)
	if found == 0 {
		t.Fatalf("no sample of %s with %q", name, labels)
	}
	return total
}

func has(sample *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		if label(sample, labels[i]) != labels[i+1] {
			return false
		}
	}
	return true
}

func label(sample *dto.Metric, name string) string {
	for _, l := range sample.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// balance says what is wrong with the counts of any series: the events of goodput, those of availability, and the
// attempts by outcome are the same probes.
func (m metrics) balance() error {
	for _, sample := range m["goodput_probe_interval_seconds"].GetMetric() {
		target, scenario := label(sample, "target"), label(sample, "scenario")
		series := []string{"target", target, "scenario", scenario}
		attempts, _ := m.sum("goodput_probes_total", series...)
		for _, slo := range []string{"goodput", "availability"} {
			events, found := m.sum("goodput_slo_events_total", append(series, "slo", slo)...)
			if found != 2 || events != attempts {
				return fmt.Errorf("%s/%s: %v events of %s in %d samples, and %v attempts", target, scenario, events, slo, found, attempts)
			}
		}
		started, _ := m.sum("goodput_start_delay_seconds", series...)
		skipped, _ := m.sum("goodput_slots_skipped_total", series...)
		if slots, _ := m.sum("goodput_slots_total", series...); slots != started+skipped {
			return fmt.Errorf("%s/%s: %v slots, but %v started and %v skipped", target, scenario, slots, started, skipped)
		}
	}
	return nil
}

// write writes a file and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	// In one step, as good tools do: a reader sees the old file or the new one.
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// configure writes a configuration file into a directory of its own and returns its path.
func configure(t *testing.T, text string) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "goodput.yml"), text)
}

// simulate starts an endpoint until the end of the test and returns its URL.
func simulate(t *testing.T, c probetest.Config) string {
	t.Helper()
	endpoint, err := probetest.Start("127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := endpoint.Close(); err != nil {
			t.Error(err)
		}
	})
	return endpoint.URL()
}

// oneTarget is a configuration of a model m in the scenario chat, every second.
func oneTarget(url string) string {
	return fmt.Sprintf(`
global: {interval: 1s, timeout: 10s}
scenarios:
  chat: {prompt: "Why is the sky blue?", max_tokens: 64, slo: {objective: 95%%, ttft: 5s}}
targets:
- {name: one, url: %q, model: m, scenarios: [chat]}
`, url)
}
