package journal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// TestWindowsComeBackEqual restores the live state of one process in another.
func TestWindowsComeBackEqual(t *testing.T) {
	s := config.NewSeries("http://127.0.0.1:1/v1", "llama")
	s.Target.Name, s.Scenario.Name = "chat-eu", "chat"
	s.Scenario.SLO = config.SLO{Objective: 0.99, Criteria: []config.Criterion{
		{Name: config.CriterionTTFT, Limit: time.Second}, {Name: config.CriterionE2E, Limit: 10 * time.Second},
	}}
	cfg, err := config.New(s)
	if err != nil {
		t.Fatal(err)
	}
	path := newPath(t)
	before, after := live.New(live.Options{}), live.New(live.Options{})
	before.Update(cfg)
	after.Update(cfg)
	j := mustOpen(t, Options{Path: path})
	now := time.Now()
	for n := 1; n <= 2000; n++ { // over a day and a half
		r := numbered(n)
		r.Time = now.Add(time.Duration(n-2001) * time.Minute)
		before.Series(s.Key()).Observe(r)
		j.Append(s.Key(), r)
	}
	mustClose(t, j)
	if _, err := Replay(path, time.Time{}, func(key string, r *probe.Result) { after.Series(key).Restore(r) }); err != nil {
		t.Fatal(err)
	}
	want, got := before.Status(now, live.StatusOptions{}).Series[0], after.Status(now, live.StatusOptions{}).Series[0]
	if got.Outcomes == nil || got.LastGood == nil {
		t.Fatalf("nothing came back: %+v", got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}
