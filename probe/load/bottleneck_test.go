package load

import (
	"strings"
	"testing"
	"time"

	"goodput_exporter/probe"
)

// steadyRun is an open loop of 200 requests, ten a second, whose client did its work well.
func steadyRun() *Run {
	run := &Run{Level: Level{Rate: 10}, Cores: 2, CPU: time.Second}
	for i := range 200 {
		due := time.Duration(i) * 100 * time.Millisecond
		run.Records = append(run.Records, Record{
			N: i, Intended: due, Sent: due + time.Millisecond, Ended: due + time.Second, Outcome: probe.Good, OwnLag: new(100 * time.Microsecond),
		})
		run.Window.LastSend = due + time.Millisecond
		run.Window.To = due + time.Second
	}
	return run
}

func TestClientThatWasTheBottleneckIsToldWithNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Run)
		want   string // "" where the run is valid
	}{
		"all is well": {func(*Run) {}, ""},
		"rate not reached": {func(r *Run) {
			for i := range r.Records {
				r.Records[i].Sent += time.Duration(i) * 2 * time.Millisecond
			}
		}, "sent 9.80 requests a second of the 10.00 offered, less than 99 %"},
		"late starts": {func(r *Run) {
			for i := range 5 {
				r.Records[30*i].Sent += 15 * time.Millisecond
			}
		}, "sent 1 in 100 requests more than 16ms late (at most 10ms)"},
		"waits for max in flight are no late starts": {func(r *Run) {
			for i := range 5 {
				r.Records[30*i].Sent += 50 * time.Millisecond
				r.Records[30*i].Queued = true
			}
		}, ""},
		"late starts beside waits for max in flight": {func(r *Run) {
			for i := range 10 {
				r.Records[15*i].Sent += 50 * time.Millisecond
				r.Records[15*i].Queued = i < 5
			}
		}, "more than 51ms late"},
		"late reads": {func(r *Run) {
			for i := range 5 {
				r.Records[30*i].OwnLag = new(12 * time.Millisecond)
			}
		}, "read 1 in 100 answers more than 12ms late (at most 10ms)"},
		"late reads of slow tokens": {func(r *Run) {
			for i := range 5 {
				r.Records[30*i].OwnLag = new(12 * time.Millisecond)
			}
			r.Gaps.Add(200 * time.Millisecond)
		}, ""},
		"no core left":   {func(r *Run) { r.CPU = 40 * time.Second }, "used 95.69 % of its 2 cores (at most 90 %)"},
		"unsent":         {func(r *Run) { r.Unsent = 3 }, "3 requests due but never sent"},
		"no descriptors": {func(r *Run) { r.Records[7].Outcome, r.Records[7].Error = probe.LocalError, "too many open files" }, "1 request failed in the client itself: too many open files"},
	} {
		t.Run(name, func(t *testing.T) {
			run := steadyRun()
			tc.change(run)
			r := Summarize(run)
			if r.Valid != (tc.want == "") {
				t.Fatalf("valid %v, because %q; want the reason %q", r.Valid, r.Invalid, tc.want)
			}
			if !r.Valid && !strings.Contains(strings.Join(r.Invalid, "\n"), tc.want) {
				t.Errorf("reasons %q, want one with %q", r.Invalid, tc.want)
			}
		})
	}
}
