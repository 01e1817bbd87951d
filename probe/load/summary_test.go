package load

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

var update = flag.Bool("update", false, "Write the golden files anew.")

var chatSLO = config.SLO{Objective: 0.99, Criteria: []config.Criterion{
	{Name: config.CriterionTTFT, Limit: 800 * time.Millisecond, Objective: 0.95},
	{Name: config.CriterionTPOT, Limit: 50 * time.Millisecond},
	{Name: config.CriterionComplete},
}}

// about is what the runs of the tests asked.
func about() About {
	return About{
		Target: "chat-eu", Scenario: "chat", Model: "llama", Protocol: "openai-chat", URL: "http://127.0.0.1:1/v1", SLO: chatSLO,
		Workload: "2 prompts; answers of at most 256 tokens",
	}
}

// drawnRun is an open loop of n requests, ten a second, with all outcomes in it. Its figures are drawn, so that a
// reference can compute what they come to.
func drawnRun(seed uint64, n int) *Run {
	rng := rand.New(rand.NewPCG(seed, 7))
	run := &Run{
		About: about(), Level: Level{Rate: 10}, Started: time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC), Cores: 2, CPU: time.Second,
	}
	run.About.Arrivals = "constant"
	for i := range n {
		rec := drawnRecord(rng, i)
		rec.Warmup = i < n/20
		if !rec.Warmup {
			first := run.Window == Window{}
			if first {
				run.Window.From = rec.Sent
			}
			run.Window.LastSend = max(run.Window.LastSend, rec.Sent)
			run.Window.To = max(run.Window.To, rec.Ended)
			if rec.Outcome.Success() {
				run.Gaps.Add(time.Duration(20e6 * rng.ExpFloat64()))
			}
		}
		run.Records = append(run.Records, rec)
	}
	slices.SortStableFunc(run.Records, func(a, b Record) int { return int(a.Ended - b.Ended) })
	return run
}

func drawnRecord(rng *rand.Rand, n int) Record {
	lognormal := func(median time.Duration) *time.Duration {
		return new(time.Duration(float64(median) * math.Exp(rng.NormFloat64()/2)))
	}
	due := time.Duration(n) * 100 * time.Millisecond
	rec := Record{
		N: n, Intended: due, Sent: due + time.Duration(rng.IntN(1000))*time.Microsecond, Outcome: probe.Good,
		TTFT: lognormal(300 * time.Millisecond), TPOT: lognormal(20 * time.Millisecond), E2E: lognormal(3 * time.Second),
		OwnLag: new(time.Duration(rng.IntN(300)) * time.Microsecond), StatusCode: 200,
		InputTokens: new(100 + rng.IntN(50)), OutputTokens: new(1 + rng.IntN(250)), OutputTokensSource: probe.TokensUsage,
	}
	rec.Ended = rec.Sent + *rec.E2E
	switch rng.IntN(20) {
	case 0:
		rec.Outcome, rec.Reason, rec.TPOT, rec.OutputTokens = probe.Timeout, probe.ReasonTotal, nil, nil
	case 1:
		rec.Outcome, rec.Reason, rec.TTFT, rec.TPOT, rec.OutputTokens = probe.RateLimited, probe.ReasonLimit, nil, nil, nil
	case 2:
		rec.Outcome, rec.GivenUp = probe.Canceled, true
	}
	judgeDrawn(&rec)
	return rec
}

// judgeDrawn judges a record by chatSLO.
func judgeDrawn(rec *Record) {
	if !rec.Outcome.Attempt() {
		return
	}
	success, met := rec.Outcome.Success(), rec.Outcome.Success()
	verdict := func(name string, ok bool) probe.Judgment {
		met = met && ok
		if ok {
			return probe.Judgment{SLO: name, Verdict: probe.Met}
		}
		return probe.Judgment{SLO: name, Verdict: probe.Missed}
	}
	criteria := []probe.Judgment{
		verdict(config.CriterionTTFT, rec.TTFT != nil && *rec.TTFT <= 800*time.Millisecond),
		verdict(config.CriterionTPOT, success && *rec.TPOT <= 50*time.Millisecond),
		verdict(config.CriterionComplete, success),
	}
	if success && !met {
		rec.Outcome = probe.SLOViolation
	}
	rec.Judgments = append([]probe.Judgment{verdict(probe.SLOGoodput, met), verdict(probe.SLOAvailability, success)}, criteria...)
}

// The table that shows why goodput: B completes more requests a second, and serves fewer users well.
func TestMoreThroughputCanBeLessGoodput(t *testing.T) {
	for name, tc := range map[string]struct {
		duration                          time.Duration
		good                              int
		throughput, goodput, attainment10 float64
	}{
		"A": {100 * time.Second, 950, 10, 9.5, 0.95},
		"B": {80 * time.Second, 600, 12.5, 7.5, 0.60},
	} {
		run := &Run{Level: Level{Concurrency: 10}, Window: Window{To: tc.duration, LastSend: tc.duration - time.Second}}
		for i := range 1000 {
			outcome := probe.Good
			if i >= tc.good {
				outcome = probe.SLOViolation
			}
			run.Records = append(run.Records, Record{N: i, Outcome: outcome})
		}
		r := Summarize(run)
		if *r.Throughput != tc.throughput || *r.Goodput != tc.goodput || *r.Attainment != tc.attainment10 {
			t.Errorf("%s: throughput %v, goodput %v, attainment %v; want %v, %v, %v",
				name, *r.Throughput, *r.Goodput, *r.Attainment, tc.throughput, tc.goodput, tc.attainment10)
		}
	}
}

// reference computes a distribution by its definition: a quantile is the least value that enough others do not exceed.
func reference(values []float64) *Distribution {
	quantile := func(numerator int) Value {
		least := math.Inf(1)
		sorted := slices.Clone(values)
		slices.Sort(sorted)
		for i, v := range sorted {
			if 100*(i+1) >= numerator*len(sorted) {
				least = min(least, v)
			}
		}
		return Value(least)
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return &Distribution{
		Count: len(values), Mean: Value(sum / float64(len(values))), Min: Value(slices.Min(values)), Max: Value(slices.Max(values)),
		P50: quantile(50), P95: quantile(95), P99: quantile(99),
	}
}

func TestFiguresOf20000RequestsMatchAReference(t *testing.T) {
	run := drawnRun(1, 20_000)
	r := Summarize(run)
	var want struct {
		attempts, good, violations, timeouts, limited, givenUp, warmup, input, output, goodOutput int
		ttft, e2e, e2eAll, fromIntended, lengths                                                  []float64
	}
	for i := range run.Records {
		rec := &run.Records[i]
		switch {
		case rec.Warmup:
			want.warmup++
			continue
		case rec.GivenUp:
			want.givenUp++
			continue
		}
		want.attempts++
		want.input += *rec.InputTokens
		e2e := math.Inf(1)
		switch rec.Outcome {
		case probe.Good, probe.SLOViolation:
			want.good++
			want.goodOutput += *rec.OutputTokens
			if rec.Outcome == probe.SLOViolation {
				want.good--
				want.violations++
				want.goodOutput -= *rec.OutputTokens
			}
			want.output += *rec.OutputTokens
			e2e = rec.E2E.Seconds()
			want.ttft = append(want.ttft, rec.TTFT.Seconds())
			want.e2e = append(want.e2e, e2e)
			want.fromIntended = append(want.fromIntended, (rec.Sent - rec.Intended + *rec.E2E).Seconds())
			want.lengths = append(want.lengths, float64(*rec.OutputTokens))
		case probe.Timeout:
			want.timeouts++
		case probe.RateLimited:
			want.limited++
		default:
			t.Fatalf("outcome %s was not drawn", rec.Outcome)
		}
		want.e2eAll = append(want.e2eAll, e2e)
	}
	counts := Counts{
		Requests: want.attempts + want.givenUp, WarmupRequests: want.warmup, Attempts: want.attempts,
		Successes: want.good + want.violations, Good: want.good, Failures: want.timeouts + want.limited,
		Timeouts: want.timeouts, RateLimited: want.limited, GivenUp: want.givenUp,
		InputTokens: want.input, OutputTokens: want.output, GoodOutputTokens: want.goodOutput,
	}
	if diff := cmp.Diff(counts, r.Counts, cmpopts.IgnoreFields(Counts{}, "Outcomes", "Reasons", "Flags")); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	duration := (run.Window.To - run.Window.From).Seconds()
	approximately := cmp.Options{cmpopts.EquateApprox(1e-9, 0), cmp.Transformer("float64", func(v Value) float64 { return float64(v) })}
	for name, pair := range map[string][2]float64{
		"duration":       {duration, *r.Duration},
		"throughput":     {float64(want.attempts) / duration, *r.Throughput},
		"successful":     {float64(want.good+want.violations) / duration, *r.Successful},
		"goodput":        {float64(want.good) / duration, *r.Goodput},
		"attainment":     {float64(want.good) / float64(want.attempts), *r.Attainment},
		"output tokens":  {float64(want.output) / duration, *r.OutputTokenRate},
		"token goodput":  {float64(want.goodOutput) / duration, *r.GoodTokenRate},
		"latency p95":    {float64(reference(want.e2e).P95), *r.LatencyP95},
		"offered":        {10, *r.Load.OfferedRate},
		"sum of reasons": {float64(r.Counts.Failures), float64(r.Counts.Reasons[0].Count + r.Counts.Reasons[1].Count)},
	} {
		if !cmp.Equal(pair[0], pair[1], approximately) {
			t.Errorf("%s is %v, want %v", name, pair[1], pair[0])
		}
	}
	intervals := cmpopts.IgnoreFields(Distribution{}, "P50Interval", "P95Interval", "P99Interval")
	for name, pair := range map[string][2]*Distribution{
		"TTFT":              {reference(want.ttft), r.Latencies.TTFT.Successes},
		"E2E":               {reference(want.e2e), r.Latencies.E2E.Successes},
		"E2E with failures": {reference(want.e2eAll), r.Latencies.E2E.WithFailures},
		"E2E from intended": {reference(want.fromIntended), r.Latencies.E2EFromIntended.Successes},
		"output length":     {reference(want.lengths), r.Lengths.Output},
	} {
		if diff := cmp.Diff(pair[0], pair[1], intervals, approximately); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestQuantilesWithFailuresAreInfinite(t *testing.T) {
	run := &Run{Window: Window{To: time.Second}}
	for i := range 100 {
		rec := Record{N: i, Outcome: probe.Good, E2E: new(time.Duration(i+1) * time.Millisecond)}
		if i >= 94 {
			rec.Outcome = probe.ServerError
		}
		run.Records = append(run.Records, rec)
	}
	l := Summarize(run).Latencies.E2E
	if got := l.WithFailures.P50; got != 0.050 {
		t.Errorf("p50 with failures %v, want 0.05", got)
	}
	if got := float64(l.WithFailures.P95); !math.IsInf(got, 1) {
		t.Errorf("p95 with failures %v, want +Inf: 6 of 100 failed", got)
	}
	if got := l.Successes.P95; got != 0.090 {
		t.Errorf("p95 of 94 successes %v, want the 90th, 0.09", got)
	}
	text, err := json.Marshal(l.WithFailures)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"p50":0.05,"p95":"+Inf"`) {
		t.Errorf("JSON is %s, want a p95 of \"+Inf\"", text)
	}
}

func TestRunWithoutAttemptsHasNoFigures(t *testing.T) {
	r := Summarize(&Run{About: about(), Level: Level{Rate: 1}, Records: []Record{{Warmup: true, Outcome: probe.Good}}})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"duration_seconds", "throughput_req_s", "goodput_req_s", "slo_attainment", "latency_p99_s", "ttft_seconds", "achieved_req_s"} {
		if strings.Contains(string(text), `"`+key+`"`) {
			t.Errorf("%s is in %s, although nothing was measured", key, text)
		}
	}
}

func TestFigureThatNoAttemptHasIsAbsent(t *testing.T) {
	run := &Run{Records: []Record{
		{Outcome: probe.Good, E2E: new(time.Second)},
		{Outcome: probe.ServerError, E2E: new(time.Second)},
	}}
	if l := Summarize(run).Latencies; l.TTFT != nil || l.E2E == nil {
		t.Errorf("TTFT %v, E2E %v; want only E2E: the answers were not streamed", l.TTFT, l.E2E)
	}
}

func TestWhatIsNotAnAttemptIsCountedApart(t *testing.T) {
	run := &Run{Records: []Record{
		{Outcome: probe.Good},
		{Outcome: probe.Canceled, GivenUp: true},
		{Outcome: probe.Canceled},
		{Outcome: probe.LocalError, Error: "too many open files"},
		{Outcome: probe.Good, Warmup: true},
		{Outcome: probe.ServerError, Reason: probe.ReasonOverloaded, InBand: true},
	}}
	c := Summarize(run).Counts
	got := []int{c.Requests, c.Attempts, c.Successes, c.Failures, c.InBand, c.GivenUp, c.Canceled, c.LocalErrors, c.WarmupRequests}
	if want := []int{5, 2, 1, 1, 1, 1, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	if len(c.Outcomes) != len(probe.Outcomes) {
		t.Errorf("%d outcomes, want all %d of an attempt, at 0 where there are none", len(c.Outcomes), len(probe.Outcomes))
	}
}

func TestCriteriaAreCountedByVerdict(t *testing.T) {
	run := &Run{About: About{SLO: config.SLO{Criteria: []config.Criterion{{Name: "tpot", Limit: time.Second}}}}}
	for _, v := range []probe.Verdict{probe.Met, probe.Met, probe.Met, probe.Missed, probe.Unmeasurable, probe.NotApplicable} {
		run.Records = append(run.Records, Record{Outcome: probe.Good, Judgments: []probe.Judgment{{SLO: "tpot", Verdict: v}}})
	}
	got := Summarize(run).SLO.Criteria[0]
	if got.Attainment.Met != 3 || got.Attainment.Of != 5 || got.Unmeasurable != 1 || got.NotApplicable != 1 {
		t.Errorf("got %+v, want 3 of 5 met, 1 unmeasurable, 1 not applicable", got)
	}
}

func TestConcurrencyIsAveragedOverTime(t *testing.T) {
	second := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	run := &Run{
		Window: Window{From: second(1), LastSend: second(3), To: second(5)},
		Records: []Record{
			{Warmup: true, Sent: 0, Ended: second(2)}, // half of the window
			{Sent: second(1), Ended: second(3)},       // all of it
			{Sent: second(2), Ended: second(3)},       // the other half, in the place of the first
			{Sent: second(3), Ended: second(5)},       // none
		},
	}
	mean, peak := inFlight(run)
	if *mean != 2 || *peak != 2 {
		t.Errorf("%v in flight on average, %v at most; want 2 and 2", *mean, *peak)
	}
}

func TestStallsThatTheClientMadeAreLeftOut(t *testing.T) {
	run := &Run{Records: []Record{
		{Outcome: probe.Good, Stall: new(time.Second)},
		{Outcome: probe.Good, Stall: new(time.Minute), Flags: []probe.Flag{probe.FlagOwnLag}},
	}}
	if got := Summarize(run).Latencies.Stall.Successes; got.Count != 1 || got.Max != 1 {
		t.Errorf("stalls %+v, want only the one of 1 s", got)
	}
}

func TestNotesSayWhatTheFiguresCannot(t *testing.T) {
	run := drawnRun(3, 150)
	all := strings.Join(Summarize(run).Notes, "\n")
	for _, want := range []string{
		"a p99 of", "1000 would be needed for 10 beyond it", "a p95 of", "cannot tell whether ttft meets its objective of 95 %",
		"the warm-up of 7 requests", "given up on purpose",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no note has %q:\n%s", want, all)
		}
	}
	if many := strings.Join(Summarize(drawnRun(3, 3000)).Notes, "\n"); strings.Contains(many, "p99") {
		t.Errorf("enough requests for a p99, but a note doubts it:\n%s", many)
	}
}

func TestReportJSON(t *testing.T) {
	r := Summarize(drawnRun(2, 400))
	var text bytes.Buffer
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "report.json")
	if *update {
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("%s differs (write it anew with -update; -want +got):\n%s", path, diff)
	}
	back, err := ReadReport(&text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the report is another one when read back (-want +got):\n%s", diff)
	}
}

func TestForeignReportsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"throughput: 10\n": "not the JSON of a report",
		`{"version": 99}`:  "a report of version 99",
		`{"levels": []}`:   "a report of version 0",
	} {
		if _, err := ReadReport(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", text, err, want)
		}
	}
}
