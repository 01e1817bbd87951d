package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goodput_exporter/collector/live"
	"goodput_exporter/probe/pause"
)

// How far what the API says may be from what Prometheus says.
var (
	exact = cmp.Options{}
	// rounding: the API leaves six decimals.
	rounding = cmpopts.EquateApprox(0, 1e-6)
	// extrapolation: increase() goes on from the last sample to the end of the window, up to 1.1 of the intervals between
	// some thirty scrapes.
	extrapolation = cmpopts.EquateApprox(0.1, 0)
)

// TestWindowsEqualPromQL: what the live page says of a window is what the recorded rules say: its attainment, and the
// counts behind it.
//
// increase() does not see what a counter held at its first scrape, and probes end between two scrapes. So the series are
// silenced until the counters were scraped at 0, and again before anything is compared: then the attainment of the rules is
// exact, all counters being extrapolated alike. The run is shorter than any window, so no window ends in it.
func TestWindowsEqualPromQL(t *testing.T) {
	d := startSilenced(t, "healthy", "degraded")
	prometheus := freeAddress(t)
	dir := t.TempDir()
	copyRulesAtPace(t, filepath.Join(dir, "goodput.rules.yml"))
	startPrometheus(t, dir, prometheus, d.address)

	awaitSamples(t, prometheus, 30*time.Second, `goodput_slo_events_total == 0`)
	d.resume(t)
	awaitSamples(t, prometheus, time.Minute, `
		    min(sum without (result) (goodput_slo_events_total{slo="goodput"})) >= 9
		and sum(goodput_slo_events_total{slo="goodput",result="good"}) > 9
		and sum(goodput_slo_events_total{slo="goodput",result="bad"}) > 9`)
	d.silence(t)
	status := d.awaitQuiet(t)
	awaitSamples(t, prometheus, 30*time.Second, after(status.Now, `goodput_slo_events_total`))
	awaitSamples(t, prometheus, 30*time.Second, after(time.Now(), `slo:goodput_slo_attainment:ratio_rate5m`))

	for _, test := range []struct {
		promql, window string
		figure         figure
		tolerance      cmp.Option
	}{
		{`goodput_slo_events_total{result="good"}`, "5m", good, exact},
		{`goodput_slo_events_total{result="bad"}`, "5m", bad, exact},
		{"slo:goodput_slo_attainment:ratio_rate5m", "5m", attainment, rounding},
		{"slo:goodput_slo_attainment:ratio_rate1h", "1h", attainment, rounding},
		{"slo:goodput_slo_attainment:ratio_rate6h", "6h", attainment, rounding},
		{"slo:goodput_slo_attainment:ratio_rate1d", "1d", attainment, rounding},
		{"slo:goodput_slo_events:increase5m", "5m", attempts, extrapolation},
		{"slo:goodput_slo_bad_events:increase5m", "5m", bad, extrapolation},
	} {
		want, got := recorded(t, prometheus, test.promql), of(status, test.window, test.figure)
		if diff := cmp.Diff(want, got, test.tolerance); diff != "" {
			t.Errorf("window %s (-%s +live):\n%s", test.window, test.promql, diff)
		}
		t.Logf("%s, %d series: degraded/chat goodput %g, live %g", test.promql, len(want), want["degraded/chat goodput"], got["degraded/chat goodput"])
	}
}

// figure is one of a window, false where the window has none.
type figure func(live.Window) (float64, bool)

func good(w live.Window) (float64, bool)     { return float64(w.Good), true }
func bad(w live.Window) (float64, bool)      { return float64(w.Bad), true }
func attempts(w live.Window) (float64, bool) { return float64(w.Good + w.Bad), true }

func attainment(w live.Window) (float64, bool) {
	if w.Ratio == nil {
		return 0, false
	}
	return w.Attainment, true
}

// of returns a figure of one window of every series and SLO, by "target/scenario slo".
func of(status *live.Status, window string, f figure) map[string]float64 {
	figures := map[string]float64{}
	for _, series := range status.Series {
		for _, slo := range series.SLOs {
			for _, w := range slo.Windows {
				if value, ok := f(w); ok && w.Name == window {
					figures[series.Key+" "+slo.Name] = value
				}
			}
		}
	}
	return figures
}

// recorded returns the values of a query, by "target/scenario slo".
func recorded(t *testing.T, prometheus, promql string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, sample := range query(t, prometheus, promql) {
		key := fmt.Sprintf("%s/%s %s", sample.Metric["target"], sample.Metric["scenario"], sample.Metric["slo"])
		if _, ok := values[key]; ok {
			t.Errorf("%s: two samples for %s", promql, key)
		}
		values[key] = float64(sample.Value)
	}
	return values
}

// after is a query that has an answer when all samples of a metric are later than a time.
func after(at time.Time, metric string) string {
	return fmt.Sprintf("min(timestamp(%s)) > %.3f", metric, float64(at.UnixMilli())/1000)
}

// copyRulesAtPace copies the shipped recording rules, evaluated as often as this test's Prometheus scrapes. Their windows
// stay.
func copyRulesAtPace(t *testing.T, to string) {
	t.Helper()
	rules := regexp.MustCompile(`(?m)^    interval: \w+\n`).ReplaceAllString(read(t, filepath.Join(rulesDir, "goodput.rules.yml")), "")
	if strings.Contains(rules, "interval: ") {
		t.Fatal("a group of rules keeps its interval")
	}
	write(t, to, rules)
}

// silenced is a daemon with its demo, whose targets can be silenced.
type silenced struct {
	address string
	targets []string
}

// startSilenced starts a daemon whose targets are silenced from before its first slot.
func startSilenced(t *testing.T, targets ...string) *silenced {
	t.Helper()
	d := &silenced{address: freeAddress(t), targets: targets}
	var kept struct {
		Silences []pause.Silence `json:"silences"`
	}
	for _, target := range targets {
		kept.Silences = append(kept.Silences, pause.Silence{ID: target, Target: target, Until: time.Now().Add(time.Hour), Reason: "to be scraped at 0"})
	}
	content, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "silences.json")
	write(t, file, string(content))
	start(t, "http://"+d.address+"/-/healthy", program(t, "GOODPUT_EXPORTER"), "--demo", "--silences.file="+file,
		"--web.listen-address="+d.address, "--log.level=error")
	return d
}

// resume ends the silences that the daemon started with.
func (d *silenced) resume(t *testing.T) {
	t.Helper()
	for _, target := range d.targets {
		d.call(t, http.MethodDelete, "/api/v1/silences/"+target, "", http.StatusNoContent)
	}
}

// silence silences the targets anew.
func (d *silenced) silence(t *testing.T) {
	t.Helper()
	for _, target := range d.targets {
		body := fmt.Sprintf(`{"target": %q, "duration_seconds": 3600, "reason": "to be compared at rest"}`, target)
		d.call(t, http.MethodPost, "/api/v1/silences", body, http.StatusCreated)
	}
}

// awaitQuiet waits until the last probe has ended, and returns the status then.
func (d *silenced) awaitQuiet(t *testing.T) *live.Status {
	t.Helper()
	var status live.Status
	eventually(t, 30*time.Second, "no probe in flight", func() bool {
		status = live.Status{}
		get(t, "http://"+d.address+"/api/v1/status", &status)
		return len(status.Series) > 0 && !slices.ContainsFunc(status.Series, func(s live.SeriesStatus) bool { return s.State != live.Paused || s.InFlight > 0 })
	})
	return &status
}

func (d *silenced) call(t *testing.T, method, path, body string, want int) {
	t.Helper()
	request, err := http.NewRequest(method, "http://"+d.address+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != want {
		t.Fatalf("%s %s: %s", method, path, response.Status)
	}
}
