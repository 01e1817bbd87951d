package main

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"goodput_exporter/probe/probetest"
)

// tally counts the requests that an endpoint has seen, by model. It is safe for concurrent use.
type tally struct {
	mu   sync.Mutex
	seen map[string]float64
}

func (c *tally) observe(s probetest.Served) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]float64{}
	}
	c.seen[s.Model]++
}

func (c *tally) counts() map[string]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seen)
}

const (
	stable   = 6 // targets that no reload changes
	changing = 3 // targets of each of the kinds that every reload changes
)

// reloadConfig is the configuration of the i-th reload. Targets are named after what happens to them:
//   - stable: nothing;
//   - moved: another client, which no metric depends on;
//   - judged: another SLO, with which all their metrics are born anew;
//   - passing: there in every second configuration only.
//
// Each has a model of its own, named like it.
func reloadConfig(url string, i int) string {
	var b strings.Builder
	fmt.Fprint(&b, "global: {interval: 1s, timeout: 20s}\n",
		"scenarios:\n  chat: {prompt: Tell me why., max_tokens: 64, slo: {objective: 95%, ttft: 800ms}}\ntargets:\n")
	target := func(kind string, n int, rest string) {
		fmt.Fprintf(&b, "- {name: %s-%d, model: %[1]s-%d, url: %q, labels: {env: test}%s}\n", kind, n, url, rest)
	}
	for n := range stable {
		target("stable", n, ", scenarios: [chat]")
	}
	for n := range changing {
		target("moved", n, fmt.Sprintf(", scenarios: [chat], http: {http_headers: {X-Reload: {values: ['%d']}}}", i))
		target("judged", n, fmt.Sprintf(", scenarios: [{name: chat, slo: {ttft: %dms}}]", 300+i))
		if i%2 == 1 {
			target("passing", n, ", scenarios: [chat]")
		}
	}
	return b.String()
}

// reloadModels are the models of reloadConfig. Their answers take long enough that every reload meets some.
func reloadModels() []probetest.Model {
	var models []probetest.Model
	for kind, n := range map[string]int{"stable": stable, "moved": changing, "judged": changing, "passing": changing} {
		for i := range n {
			models = append(models, probetest.Model{Name: fmt.Sprintf("%s-%d", kind, i), TTFT: probetest.Uniform(0.05, 0.4), Gap: probetest.Fixed(0.005)})
		}
	}
	return models
}

func TestReloadsUnderTraffic(t *testing.T) {
	t.Parallel()
	const reloads = 50
	var seen tally
	endpoint, err := probetest.Start("127.0.0.1:0", probetest.Config{Models: reloadModels(), Seed: 1, Observe: seen.observe})
	if err != nil {
		t.Fatal(err)
	}
	defer endpoint.Close()
	url := endpoint.URL()
	file := configure(t, reloadConfig(url, 0))
	h := newHarness(t, &flags{grace: patience}, file)
	h.reload(t)
	h.start()
	eventually(t, "ready", func() bool { return get(t, h.url+"/-/ready").status == http.StatusOK })
	slots := map[string]time.Time{}
	for kind, n := range map[string]int{"stable": stable, "moved": changing, "judged": changing} {
		for i := range n {
			key := fmt.Sprintf("%s-%d/chat", kind, i)
			slots[key], _ = h.scheduler.Next(key)
		}
	}

	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	before := scrape(t, h.url)
	for i := 1; i <= reloads; i++ {
		<-pace.C
		if i%10 == 0 {
			refuseReload(t, h, file)
		}
		write(t, file, reloadConfig(url, i))
		asked := time.Now()
		h.reload(t)
		after := scrape(t, h.url)
		took := time.Since(asked)
		if err := after.balance(); err != nil {
			t.Fatalf("reload %d: %v", i, err)
		}
		checkSeries(t, i, before, after, took)
		before = after
	}
	h.stop(t)
	if err := endpoint.Close(); err != nil { // which waits until all requests are counted
		t.Error(err)
	}

	end := scrape(t, h.url)
	if err := end.balance(); err != nil {
		t.Error(err)
	}
	checkCounts(t, end, seen.counts())
	for key, was := range slots {
		is, ok := h.scheduler.Next(key)
		if !ok || is.Sub(was)%time.Second != 0 || is.Before(was) {
			t.Errorf("%s: its next slot was at %s, and is now at %s: not the same clock", key, was, is)
		}
	}
}

// refuseReload reloads a file that is wrong.
func refuseReload(t *testing.T, h *harness, file string) {
	t.Helper()
	before := get(t, h.url+"/config").body
	write(t, file, "targets: [{name: other}]\n")
	p := request(t, http.MethodPost, h.url+"/-/reload")
	if p.status != http.StatusInternalServerError || !strings.Contains(p.body, file+":1: targets[0].url: missing") {
		t.Errorf("a bad file: status %d: %s", p.status, p.body)
	}
	m := scrape(t, h.url)
	if got := m.of(t, "goodput_config_last_reload_successful"); got != 0 {
		t.Errorf("goodput_config_last_reload_successful is %v after a bad file", got)
	}
	if _, found := m.sum("goodput_probes_total", "target", "other"); found != 0 {
		t.Error("a bad file has given birth to a series")
	}
	if after := get(t, h.url+"/config").body; after != before {
		t.Errorf("a bad file has changed /config to:\n%s", after)
	}
}

// checkSeries checks what the i-th reload has left of each kind of series. took is how long before the second scrape
// it was asked for.
func checkSeries(t *testing.T, i int, before, after metrics, took time.Duration) {
	t.Helper()
	if got := after.of(t, "goodput_config_last_reload_successful"); got != 1 {
		t.Fatalf("reload %d: goodput_config_last_reload_successful is %v", i, got)
	}
	for name, family := range after {
		for _, sample := range family.GetMetric() {
			if target := label(sample, "target"); i%2 == 0 && strings.HasPrefix(target, "passing") {
				t.Fatalf("reload %d: %s still knows %s", i, name, target)
			}
		}
	}
	for n := range stable {
		series := []string{"target", fmt.Sprintf("stable-%d", n)}
		for _, name := range []string{"goodput_probes_total", "goodput_slots_total", "goodput_slo_events_total", "goodput_output_tokens_total"} {
			if was, is := before.of(t, name, series...), after.of(t, name, series...); is < was {
				t.Fatalf("reload %d: %s of %s fell from %v to %v", i, name, series[1], was, is)
			}
		}
	}
	for n := range changing {
		moved := []string{"target", fmt.Sprintf("moved-%d", n)}
		if was, is := before.of(t, "goodput_slots_total", moved...), after.of(t, "goodput_slots_total", moved...); is < was {
			t.Fatalf("reload %d: the slots of %s fell from %v to %v, although no metric depends on its client", i, moved[1], was, is)
		}
		judged := []string{"target", fmt.Sprintf("judged-%d", n)}
		if is := after.of(t, "goodput_slots_total", judged...); is > 1+took.Seconds() {
			t.Fatalf("reload %d: %s has another SLO since %s, but already %v slots", i, judged[1], took, is)
		}
		limit := after.of(t, "goodput_slo_threshold_seconds", append(judged, "slo", "ttft")...)
		if want := float64(300+i) / 1000; math.Abs(limit-want) > 1e-9 {
			t.Fatalf("reload %d: %s has the limit %v, want %v", i, judged[1], limit, want)
		}
	}
}

// checkCounts compares what was counted in the end with what the endpoint has seen.
func checkCounts(t *testing.T, m metrics, seen map[string]float64) {
	t.Helper()
	for n := range stable {
		name := fmt.Sprintf("stable-%d", n)
		series := []string{"target", name}
		attempts, aborted := m.of(t, "goodput_probes_total", series...), m.of(t, "goodput_aborted_probes_total", series...)
		if attempts == 0 {
			t.Errorf("%s: no attempt", name)
		}
		if canceled := m.of(t, "goodput_aborted_probes_total", "target", name, "reason", "canceled"); canceled != 0 {
			t.Errorf("%s: %v probes canceled, although nothing changed and all had their grace", name, canceled)
		}
		if attempts+aborted != seen[name] {
			t.Errorf("%s: %v attempts and %v aborted, but the endpoint has seen %v", name, attempts, aborted, seen[name])
		}
		if started := m.of(t, "goodput_start_delay_seconds", series...); started != attempts+aborted {
			t.Errorf("%s: %v probes started, but %v attempts and %v aborted", name, started, attempts, aborted)
		}
	}
	for n := range changing {
		name := fmt.Sprintf("moved-%d", n)
		series := []string{"target", name}
		attempts, aborted := m.of(t, "goodput_probes_total", series...), m.of(t, "goodput_aborted_probes_total", series...)
		// A canceled probe may have been on its way to the endpoint, or not yet.
		if seen[name] < attempts || seen[name] > attempts+aborted {
			t.Errorf("%s: %v attempts and %v aborted, but the endpoint has seen %v", name, attempts, aborted, seen[name])
		}
		if started := m.of(t, "goodput_start_delay_seconds", series...); started != attempts+aborted {
			t.Errorf("%s: %v probes started, but %v attempts and %v aborted", name, started, attempts, aborted)
		}
	}
	if canceled := m.of(t, "goodput_aborted_probes_total", "reason", "canceled"); canceled == 0 {
		t.Error("no reload has met a probe under way: this test has not shown what it should")
	}
	for _, sample := range m["goodput_probes_in_flight"].GetMetric() {
		if n := sample.GetGauge().GetValue(); n != 0 {
			t.Errorf("%s: %v probes in flight after the end", label(sample, "target"), n)
		}
	}
}

// TestLabelNamesChange is about the one difference that a registry cannot take: counters start anew, series go on.
func TestLabelNamesChange(t *testing.T) {
	t.Parallel()
	var seen tally
	url := simulate(t, probetest.Config{Models: oneModel, Observe: seen.observe})
	file := configure(t, oneTarget(url))
	h := newHarness(t, &flags{grace: patience}, file)
	h.reload(t)
	h.start()
	eventually(t, "an attempt", func() bool { return scrape(t, h.url).of(t, "goodput_probes_total", "target", "one") > 0 })
	write(t, file, oneTarget(url)+fmt.Sprintf("- {name: two, url: %q, model: m, scenarios: [chat], labels: {env: prod}}\n", url))
	h.reload(t)
	eventually(t, "an attempt of each", func() bool {
		m := scrape(t, h.url)
		return m.of(t, "goodput_probes_total", "target", "one", "env", "") > 0 && m.of(t, "goodput_probes_total", "target", "two", "env", "prod") > 0
	})
	h.stop(t)
	if err := scrape(t, h.url).balance(); err != nil {
		t.Error(err)
	}
}

func TestTargetFilesAreWatched(t *testing.T) {
	t.Parallel()
	url := simulate(t, probetest.Config{Models: oneModel})
	dir := t.TempDir()
	for _, sub := range []string{"first", "second"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	target := func(name string) string {
		return fmt.Sprintf("- {name: %s, url: %q, model: m, scenarios: [chat]}\n", name, url)
	}
	file := write(t, filepath.Join(dir, "goodput.yml"), oneTarget(url)+"target_files: [first/*.yml]\n")
	d := launch(t, "--config.file="+file)
	// again is done every now and then until it is seen: what changes between a load and the begin of a watch is not.
	sees := func(what string, want map[string]bool, again func(try int)) {
		t.Helper()
		try, next := 0, time.Now()
		eventually(t, what, func() bool {
			if again != nil && time.Now().After(next) {
				again(try)
				try, next = try+1, next.Add(3*time.Second)
			}
			m := scrape(t, d.url)
			for name, there := range want {
				if _, found := m.sum("goodput_slots_total", "target", name); (found > 0) != there {
					return false
				}
			}
			return true
		})
	}

	appeared := write(t, filepath.Join(dir, "first", "a.yml"), target("a"))
	sees("a file that appears", map[string]bool{"one": true, "a": true}, func(try int) {
		write(t, appeared, target("a")+fmt.Sprintf("# %d\n", try))
	})
	write(t, appeared, target("b"))
	sees("a file that changes", map[string]bool{"one": true, "a": false, "b": true}, nil)
	if err := os.Remove(appeared); err != nil {
		t.Fatal(err)
	}
	sees("a file that vanishes", map[string]bool{"one": true, "b": false}, nil)

	write(t, file, oneTarget(url)+"target_files: [second/*.yml]\n")
	if p := request(t, http.MethodPost, d.url+"/-/reload"); p.status != http.StatusOK {
		t.Fatalf("reload: status %d: %s", p.status, p.body)
	}
	sees("a file of the new pattern", map[string]bool{"one": true, "c": true}, func(try int) {
		write(t, filepath.Join(dir, "second", "c.yml"), target("c")+fmt.Sprintf("# %d\n", try))
	})
}
