package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/collector/live"
	"goodput_exporter/probe/probetest"
)

// remembered is what a restart and a reload must leave as it is of a series: all that its probes have left.
type remembered struct {
	SLOs                []live.SLOStatus
	Figures             []live.Figure
	Outcomes            []live.OutcomeCount
	LastProbe, LastGood *time.Time
	Probes              []live.Probe
	Stories             []string // outcomes and trace ids
}

// windowsOf are those of every series of a daemon, by key. What tells one process from the next is left out.
func windowsOf(t *testing.T, url string) map[string]remembered {
	t.Helper()
	all := map[string]remembered{}
	for key, s := range statusOf(t, url) {
		w := remembered{SLOs: s.SLOs, Figures: s.Figures, Outcomes: s.Outcomes, LastProbe: s.LastProbe, LastGood: s.LastGood, Probes: s.Probes}
		for i := range w.Probes {
			w.Probes[i].ID = ""
		}
		for _, st := range stories(t, url, "&target="+s.Target+"&scenario="+s.Scenario) {
			w.Stories = append(w.Stories, string(st.Result.Outcome)+" "+st.Result.TraceID)
		}
		all[key] = w
	}
	return all
}

// pauseAll pauses targets, and waits for the end of their probes, so that nothing changes any more.
func pauseAll(t *testing.T, url string, targets ...string) {
	t.Helper()
	for _, target := range targets {
		silence(t, url, target)
	}
	eventually(t, "no probe is under way", func() bool {
		for _, s := range statusOf(t, url) {
			if s.InFlight > 0 && s.State == live.Paused {
				return false
			}
		}
		return true
	})
}

// attempts are those of the last day, of every series together.
func attempts(t *testing.T, url string) (n int) {
	t.Helper()
	for _, s := range statusOf(t, url) {
		for _, slo := range s.SLOs {
			for _, w := range slo.Windows {
				if slo.Name == "goodput" && w.Name == "1d" {
					n += w.Good + w.Bad
				}
			}
		}
	}
	return n
}

func TestRestartRestoresTheWindows(t *testing.T) {
	t.Parallel()
	url := simulate(t, probetest.Config{Models: []probetest.Model{
		{Name: "m", TTFT: probetest.Uniform(0.01, 0.05), Gap: probetest.Fixed(0.003)},
		{Name: "bad", TTFT: probetest.Uniform(0.01, 0.05), Gap: probetest.Fixed(0.003), Faults: []probetest.Fault{{Kind: probetest.FaultUnavailable, Every: 2}}},
	}})
	text := oneTarget(url) + fmt.Sprintf("- {name: two, url: %q, model: bad, scenarios: [chat]}\n", url)
	dir := t.TempDir()
	args := []string{
		"--config.file=" + configure(t, text), "--journal.path=" + filepath.Join(dir, "journal", "results.jsonl"), "--silences.file=" + filepath.Join(dir, "silences.json"),
	}
	d := launch(t, args...)
	eventually(t, "some attempts", func() bool { return attempts(t, d.url) >= 8 })
	pauseAll(t, d.url, "one", "two")
	before := windowsOf(t, d.url)
	if code := d.stop(t); code != 0 {
		t.Fatalf("code %d", code)
	}

	d = launch(t, args...)
	if diff := cmp.Diff(before, windowsOf(t, d.url)); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	for key, s := range statusOf(t, d.url) {
		if s.State != live.Paused {
			t.Errorf("%s is %s after a restart, though its pause is kept in a file", key, s.State)
		}
	}
	if code, said := exited(t, args...); code != 1 || !strings.Contains(said, "journal") {
		t.Errorf("a second daemon with the same journal: code %d:\n%s", code, said)
	}
}

// restored finds what a start says of the journal.
var restored = regexp.MustCompile(`msg="live windows restored" results=(\d+) damaged_lines=(\d+)`)

// TestKillLosesNothingThatWasWritten kills the daemon at any moment, again and again: what goodput_journal_results_written_total
// has said once is there after each start.
func TestKillLosesNothingThatWasWritten(t *testing.T) {
	t.Parallel()
	const rounds, targets = 10, 20
	var seen tally
	url := simulate(t, probetest.Config{
		Models: []probetest.Model{{Name: "m", TTFT: probetest.Uniform(0.001, 0.05), Gap: probetest.Fixed(0.0005)}}, Seed: 1, Observe: seen.observe,
	})
	text, _, _ := strings.Cut(oneTarget(url), "- {name: one")
	for i := range targets {
		text += fmt.Sprintf("- {name: t%d, url: %q, model: m, scenarios: [chat]}\n", i, url)
	}
	file, path := configure(t, text), filepath.Join(t.TempDir(), "results.jsonl")
	written := 0
	for round := range rounds + 1 {
		p := spawn(t, "--config.file="+file, "--journal.path="+path)
		found := restored.FindStringSubmatch(p.logs.String())
		if found == nil {
			t.Fatalf("round %d: the start says nothing of the journal:\n%s", round, p.logs)
		}
		got, _ := strconv.Atoi(found[1])
		if got < written || float64(got) > seen.counts()["m"] || found[2] != "0" {
			t.Errorf("round %d: %d results came back and %s lines are damaged; %d had been written, and the endpoint has answered %v",
				round, got, found[2], written, seen.counts()["m"])
		}
		if shown := attempts(t, p.url); shown < got {
			t.Errorf("round %d: the windows show %d attempts of %d results", round, shown, got)
		}
		if round == rounds {
			break // which ends with the test
		}
		eventually(t, "a result is written", func() bool { return scrape(t, p.url).of(t, "goodput_journal_results_written_total") > 0 })
		time.Sleep(time.Duration(rand.Float64() * float64(300*time.Millisecond))) // any moment will do
		written = got + int(scrape(t, p.url).of(t, "goodput_journal_results_written_total"))
		p.signal(t, syscall.SIGKILL)
		_ = p.cmd.Wait() // killed
	}
	info, err := os.Stat(path)
	if err != nil || written < rounds {
		t.Fatalf("%d results were written, %v: this test has not shown what it should", written, err)
	}
	t.Logf("%d results in %d bytes", written, info.Size())
}

func TestReloadKeepsTheWindowsOfWhatStays(t *testing.T) {
	t.Parallel()
	url := simulate(t, probetest.Config{Models: oneModel})
	text := oneTarget(url) + fmt.Sprintf("- {name: two, url: %q, model: m, scenarios: [chat]}\n", url)
	file := configure(t, text)
	h := newHarness(t, &flags{grace: patience}, file)
	h.reload(t)
	h.start()
	eventually(t, "attempts of both", func() bool {
		s := statusOf(t, h.url)
		return s["one/chat"].LastProbe != nil && s["two/chat"].LastProbe != nil
	})
	pauseAll(t, h.url, "one", "two")
	before := windowsOf(t, h.url)

	write(t, file, strings.Replace(text, "name: two", "name: three", 1))
	h.reload(t)
	after := windowsOf(t, h.url)
	if diff := cmp.Diff(before["one/chat"], after["one/chat"]); diff != "" {
		t.Errorf("the series that stays (-before +after):\n%s", diff)
	}
	if _, there := after["two/chat"]; there || len(stories(t, h.url, "&target=three")) != 0 {
		t.Error("the series that is gone is still there")
	}
	if s := statusOf(t, h.url)["one/chat"]; s.State != live.Paused {
		t.Errorf("the reload has ended the pause: %s", s.State)
	}
	h.stop(t)
}
