package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goodput_exporter/probe/load"
)

// sweep runs goodputctl sweep and returns its report. On a machine that is busy with other tests a level may count as
// spoilt by the client, which ends a sweep: then it is tried again.
func sweep(t *testing.T, args ...string) load.SweepReport {
	t.Helper()
	const tries = 5
	for try := 1; ; try++ {
		r := goodputctl(t, nil, append([]string{"sweep", "--model=m", "--no-progress", "--output=json"}, args...)...)
		var report load.SweepReport
		if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
			t.Fatalf("exit code %d, %v: %s%s", r.code, err, r.stderr, r.stdout)
		}
		spoilt := slices.ContainsFunc(report.Levels, func(l *load.Report) bool { return !l.Valid })
		if !spoilt || try == tries {
			return report
		}
		t.Logf("try %d: %s", try, report.Stopped)
	}
}

// A service of 4 slots that each take 100 ms for a request serves 40 a second. A closed loop of 4 gets all of that at
// 100 ms, one of 8 waits as long again, one of 16 three times as long: so the arithmetic of queues puts the SLO of
// 300 ms at 8, and the end of growth at 4.
func TestSweepFindsAKnownCapacity(t *testing.T) {
	t.Parallel()
	for seed := 1; seed <= 3; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := startSimulation(t, "--model=m", fmt.Sprint("--seed=", seed), "--concurrency=4",
				"--ttft=uniform:40ms,60ms", "--gap=fixed:10ms", "--output-tokens=fixed:6")
			report := sweep(t, "--url="+s.root+"/v1", fmt.Sprint("--seed=", seed), "--concurrency=1,2,4,8,16", "--slo.e2e=300ms",
				"--slo.objective=90%", "--duration=1500ms", "--requests=30", "--warmup=300ms")
			for name, answer := range map[string]struct {
				got  load.Answer
				want []float64
			}{
				"greatest goodput":  {report.Answers.GoodputPeak, []float64{4, 8}}, // the same by arithmetic
				"SLO capacity":      {report.Answers.SLOCapacity, []float64{8}},
				"end of the growth": {report.Answers.Saturation, []float64{4}},
			} {
				found := false
				for _, want := range answer.want {
					found = found || answer.got.Level != nil && *answer.got.Level == want
				}
				if !found {
					t.Errorf("%s: %v (%s), want %v", name, deref(answer.got.Level), answer.got.Reason, answer.want)
				}
			}
			if last := report.Levels[len(report.Levels)-1]; last.Load.Level().Value() != 16 || *last.Goodput > 0.2**last.Throughput {
				t.Errorf("at 16 goodput is %v of a throughput of %v; all wait 400 ms of the 300 ms allowed", *last.Goodput, *last.Throughput)
			}
		})
	}
}

// The typical shape: near the capacity of an open loop throughput goes on rising while goodput falls.
func TestSweepShowsGoodputFallWhileThroughputRises(t *testing.T) {
	t.Parallel()
	s := startSimulation(t, "--model=m", "--concurrency=4", "--ttft=lognormal:60ms,200ms", "--gap=fixed:5ms", "--output-tokens=fixed:6")
	report := sweep(t, "--url="+s.root+"/v1", "--rate=15,30,55", "--slo.e2e=400ms", "--duration=4s", "--requests=60", "--warmup=500ms")
	if n := len(report.Levels); n != 3 {
		t.Fatalf("%d levels: %s", n, report.Stopped)
	}
	middle, last := report.Levels[1], report.Levels[2]
	if *last.Throughput <= *middle.Throughput || *last.Goodput >= *middle.Goodput {
		t.Errorf("throughput %.1f then %.1f, goodput %.1f then %.1f; want one to rise and the other to fall",
			*middle.Throughput, *last.Throughput, *middle.Goodput, *last.Goodput)
	}
}

func TestSweepPrintsAndPlots(t *testing.T) {
	t.Parallel()
	s := startSimulation(t, "--model=m", "--ttft=fixed:5ms", "--gap=fixed:1ms", "--output-tokens=fixed:4")
	page, plots := filepath.Join(t.TempDir(), "sweep.html"), filepath.Join(t.TempDir(), "sweep.svg")
	r := goodputctl(t, nil, "sweep", "--url="+s.root+"/v1", "--model=m", "--no-progress", "--concurrency=1,2", "--slo.e2e=10s",
		"--duration=200ms", "--requests=10", "--warmup=0s", "--html="+page, "--svg="+plots)
	if r.code != 0 && r.code != 2 { // 2: on a busy machine
		t.Fatalf("exit code %d: %s", r.code, r.stderr)
	}
	for _, want := range []string{"goodput", "throughput", "attainment", "SLO capacity"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	for _, name := range []string{page, plots} {
		if text, err := os.ReadFile(name); err != nil || !bytes.Contains(text, []byte("<svg")) {
			t.Errorf("%s has no plot: %v", name, err)
		}
	}
}

func TestSweepBadUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no levels":             {nil, "no levels: give --concurrency=1,2,4,8 or --rate=1,2,4,8"},
		"both loops":            {[]string{"--rate=1", "--concurrency=1"}, "give one of them"},
		"level of 0":            {[]string{"--concurrency=0,1"}, `"0" is no level of load`},
		"level in words":        {[]string{"--rate=fast"}, `"fast" is no level of load`},
		"half a request":        {[]string{"--concurrency=1.5"}, "it must be a whole number"},
		"level twice":           {[]string{"--concurrency=2,2"}, "is listed twice"},
		"search of a list":      {[]string{"--concurrency=1,2", "--search"}, "--search starts at one level"},
		"precision of 0":        {[]string{"--concurrency=1", "--search", "--precision=0"}, "it must be positive"},
		"search above its most": {[]string{"--concurrency=8", "--search", "--search-max=4"}, "above its greatest level"},
		"headroom of all":       {[]string{"--concurrency=1", "--headroom=1"}, "is not at least 0 and below 1"},
		"no requests":           {[]string{"--concurrency=1", "--requests=0"}, "--requests=0: it must be at least 1"},
		"nobody there":          {[]string{"--concurrency=1"}, "cannot reach http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := somewhere
			if strings.Contains("level twice, precision of 0, search above its most, headroom of all", name) {
				s := startSimulation(t)
				url = "--url=" + s.root + "/v1"
			}
			r := goodputctl(t, nil, append([]string{"sweep", url, "--model=m"}, tc.args...)...)
			if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q, stderr %q; want 2 and one line with %q", r.code, r.stdout, r.stderr, tc.want)
			}
		})
	}
}
