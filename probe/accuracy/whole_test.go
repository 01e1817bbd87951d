//go:build bench && linux

package accuracy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"goodput_exporter/probe/probetest"
)

const (
	wholeRequests = 20_000 // of one load generator in one repeat
	wholeTokens   = 128
	wholeBody     = `{"model":"truth","messages":[{"role":"user","content":"Explain in three sentences why the sky is blue."}]}`
)

var wholeConcurrencies = []int{16, 256}

// generator is a load generator that is compared: a command. Its start-up does not count, since it says itself how many
// requests a second it made.
type generator struct {
	name    string
	needs   string // the package that must be installed; "": nothing
	command func(url string, concurrency int) *exec.Cmd
	rate    func(output []byte, concurrency int) (float64, error)
}

const goodputctl = "goodputctl bench"

// generators returns what is compared, as far as it is installed.
func generators(t *testing.T, out io.Writer) []generator {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "goodputctl")
	if output, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "goodput_exporter/cmd/goodputctl").CombinedOutput(); err != nil {
		t.Fatalf("building goodputctl: %v\n%s", err, output)
	}
	const python = "/usr/bin/python3" // Debian's, for which its packages are
	count := strconv.Itoa(wholeRequests)
	list := []generator{
		{goodputctl, "", func(url string, c int) *exec.Cmd {
			return exec.Command(binary, "bench", "--url="+url, "--model=truth", "--no-stream", "--no-progress", "--output=json",
				"--requests="+count, "--concurrency="+strconv.Itoa(c), "--warmup-requests=0", "--ramp=0s")
		}, rateOfGoodputctl},
		{"hey", "hey", func(url string, c int) *exec.Cmd {
			return exec.Command("hey", "-n", count, "-c", strconv.Itoa(c), "-m", "POST", "-T", "application/json", "-d", wholeBody,
				"-disable-compression", url+"/v1/chat/completions")
		}, rateOfHey},
		{"aiohttp", "python3-aiohttp", func(url string, c int) *exec.Cmd {
			return exec.Command(python, filepath.Join("testdata", "aiohttp_loop.py"), url+"/v1/chat/completions", count, strconv.Itoa(c), wholeBody)
		}, rateOfAiohttp},
	}
	installed := map[string]bool{"": true}
	_, err := exec.LookPath("hey")
	installed["hey"] = err == nil
	installed["python3-aiohttp"] = exec.Command(python, "-c", "import aiohttp").Run() == nil
	return slices.DeleteFunc(list, func(g generator) bool {
		if !installed[g.needs] {
			fmt.Fprintf(out, "not measured: %s is not installed; apt-get install hey python3-aiohttp\n", g.needs)
		}
		return !installed[g.needs]
	})
}

// wholeRuns are the requests a second of each repeat, by concurrency and load generator.
type wholeRuns map[int]map[string][]float64

// runWhole lets all load generators ask one server for answers that are no streams, in turns.
func runWhole(t *testing.T, out io.Writer, repeats int) wholeRuns {
	t.Helper()
	list := generators(t, out)
	server := startTruthServer(t, truthSettings{Mode: probetest.TruthWhole, Tokens: wholeTokens})
	runs := wholeRuns{}
	for _, c := range wholeConcurrencies {
		runs[c] = map[string][]float64{}
	}
	for i := range repeats {
		fmt.Fprintf(out, "repeat %d of %d: load, whole answers\n", i+1, repeats)
		for _, c := range wholeConcurrencies {
			for _, g := range list {
				output, err := g.command(server.URL, c).Output()
				rate, unread := g.rate(output, c)
				if unread != nil { // goodputctl also fails where it was the bottleneck, as it is meant to be here
					t.Fatalf("%s at %d: %v\n%s", g.name, c, errors.Join(err, unread), output)
				}
				runs[c][g.name] = append(runs[c][g.name], rate)
			}
		}
	}
	return runs
}

func rateOfGoodputctl(output []byte, _ int) (float64, error) {
	var report struct {
		Rate   float64 `json:"throughput_req_s"`
		Counts struct {
			Successes int `json:"successes"`
		} `json:"counts"`
	}
	if err := json.Unmarshal(output, &report); err != nil {
		return 0, err
	}
	return report.Rate, allOf(report.Counts.Successes, wholeRequests)
}

var (
	heyRate     = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	heyAnswered = regexp.MustCompile(`\[200\]\s+([0-9]+) responses`)
)

func rateOfHey(output []byte, concurrency int) (float64, error) {
	rate, answered := heyRate.FindSubmatch(output), heyAnswered.FindSubmatch(output)
	if rate == nil || answered == nil {
		return 0, errors.New("no rate, or no answers")
	}
	n, err := strconv.Atoi(string(answered[1]))
	if err != nil {
		return 0, err
	}
	if err := allOf(n, wholeRequests/concurrency*concurrency); err != nil { // each of its workers sends as many
		return 0, err
	}
	return strconv.ParseFloat(string(rate[1]), 64)
}

func rateOfAiohttp(output []byte, _ int) (float64, error) {
	var told struct {
		Answered int     `json:"answered"`
		Seconds  float64 `json:"seconds"`
	}
	if err := json.Unmarshal(output, &told); err != nil {
		return 0, err
	}
	return float64(told.Answered) / told.Seconds, allOf(told.Answered, wholeRequests)
}

func allOf(answered, asked int) error {
	if answered != asked {
		return fmt.Errorf("%d of %d requests were answered", answered, asked)
	}
	return nil
}

func (r wholeRuns) goals() []goal {
	var goals []goal
	for _, c := range wholeConcurrencies {
		ours, name := r[c][goodputctl], fmt.Sprintf("load: whole answers a second, %d at once", c)
		goals = append(goals,
			atLeast(0.85, "x hey", name, ratios(ours, r[c]["hey"])),
			atLeast(4, "x aiohttp", name, ratios(ours, r[c]["aiohttp"])))
	}
	return goals
}

func (r wholeRuns) print(w io.Writer) {
	fmt.Fprintln(w, "whole answers/s\they\taiohttp\tours")
	for _, c := range wholeConcurrencies {
		fmt.Fprintf(w, "%d at once\t%s\t%s\t%s\n", c, spread(r[c]["hey"]), spread(r[c]["aiohttp"]), spread(r[c][goodputctl]))
	}
}
