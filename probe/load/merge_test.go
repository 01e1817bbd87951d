package load

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// parts deals the records of a run out to clients, as if each had sent its own. Each client began a little later than
// the one before it, by its own clock.
func parts(run *Run, clients int) []*Run {
	var all []*Run
	for i := range clients {
		late := time.Duration(i) * 50 * time.Millisecond
		part := &Run{
			About: run.About, Level: Level{Rate: run.Level.Rate / float64(clients)}, Started: run.Started.Add(late),
			CPU: run.CPU / time.Duration(clients), Cores: 1,
		}
		part.About.Share = fmt.Sprintf("%d/%d", i, clients)
		for _, rec := range run.Records {
			if rec.N%clients != i {
				continue
			}
			rec.Intended, rec.Sent, rec.Ended = rec.Intended-late, rec.Sent-late, rec.Ended-late
			if !rec.Warmup {
				first := part.Window == Window{}
				if first || rec.Sent < part.Window.From {
					part.Window.From = rec.Sent
				}
				part.Window.LastSend, part.Window.To = max(part.Window.LastSend, rec.Sent), max(part.Window.To, rec.Ended)
			}
			part.Records = append(part.Records, rec)
		}
		all = append(all, part)
	}
	all[0].Gaps = run.Gaps
	return all
}

func TestMergedPartsAreTheWhole(t *testing.T) {
	run := drawnRun(6, 2000)
	run.Cores = 4
	merged, err := Merge(parts(run, 4)...)
	if err != nil {
		t.Fatal(err)
	}
	want, got := Summarize(run), merged.Report()
	ignore := cmpopts.IgnoreFields(Report{}, "Notes")
	approximately := cmp.Options{cmpopts.EquateApprox(1e-9, 0), cmp.Transformer("float64", func(v Value) float64 { return float64(v) })}
	if diff := cmp.Diff(want, got, ignore, approximately); diff != "" {
		t.Errorf("the joined report differs from that of one client (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(want.Notes, "joined from 4 runs"), got.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestMergedConcurrenciesAddUp(t *testing.T) {
	a, b := drawnRun(6, 100), drawnRun(7, 100)
	a.Level, b.Level = Level{Concurrency: 8}, Level{Concurrency: 4}
	b.Started = b.Started.Add(time.Second)
	merged, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if got := merged.Run.Level; got != (Level{Concurrency: 12}) {
		t.Errorf("the joined level is %s, want concurrency 12", got)
	}
	if !merged.Run.Started.Equal(a.Started) {
		t.Errorf("started %s, want when the first client did, %s", merged.Run.Started, a.Started)
	}
}

func TestMergedLoadIsAsGoodAsItsWorstClient(t *testing.T) {
	all := parts(drawnRun(6, 2000), 4)
	for i := range all[2].Records {
		if i%10 == 0 {
			all[2].Records[i].Sent += 20 * time.Millisecond
		}
	}
	all[2].CPU = time.Hour
	merged, err := Merge(all...)
	if err != nil {
		t.Fatal(err)
	}
	r := merged.Report()
	if reasons := strings.Join(r.Invalid, "\n"); r.Valid || !strings.Contains(reasons, "run 3: the client used") {
		t.Errorf("valid %v, reasons %q; want run 3 named", r.Valid, r.Invalid)
	}
}

func TestMergeSaysWhenClientsDidNotSendTogether(t *testing.T) {
	all := parts(drawnRun(6, 2000), 4)
	all[3].Started = all[3].Started.Add(time.Hour)
	merged, err := Merge(all[0], all[1], all[3])
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(merged.Notes, "\n")
	for _, want := range []string{"only a part of the load is here: 0/4, 1/4, 3/4", "run 1 sent during"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q, want one with %q", merged.Notes, want)
		}
	}
}

func TestRunsThatDoNotBelongTogetherAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Run)
		want   string
	}{
		"model":         {func(r *Run) { r.About.Model = "other" }, `run 3 does not belong to run 1: its model is "other", not "llama"`},
		"scenario":      {func(r *Run) { r.About.Scenario = "summarize" }, `its scenario is "summarize", not "chat"`},
		"protocol":      {func(r *Run) { r.About.Protocol = "ollama-chat" }, `its protocol is "ollama-chat"`},
		"SLO":           {func(r *Run) { r.About.SLO.Objective = 0.5 }, "it was judged by another SLO"},
		"kind of load":  {func(r *Run) { r.Level = Level{Concurrency: 4} }, "its load is concurrency 4, which does not add up with rate 2.5/s"},
		"the same part": {func(r *Run) { r.About.Share = "1/4" }, "run 3 is the same part of the load as run 2 (1/4)"},
	} {
		all := parts(drawnRun(6, 100), 4)
		tc.change(all[2])
		if _, err := Merge(all...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, tc.want)
		}
	}
	one := drawnRun(6, 100)
	if _, err := Merge(one, one); err == nil || !strings.Contains(err.Error(), "run 2 is the same part of the load as run 1") {
		t.Errorf("a run beside itself: got error %v, want it refused", err)
	}
	if _, err := Merge(); err == nil {
		t.Error("nothing was merged without an error")
	}
}
