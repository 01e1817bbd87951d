package pause

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/alertmanager/timeinterval"

	"goodput_exporter/config"
)

// newConfig has the series eu/chat, eu/summarize and us/chat.
func newConfig(windows ...config.Maintenance) *config.Config {
	eu, us := &config.Target{Name: "eu"}, &config.Target{Name: "us"}
	return &config.Config{Maintenance: windows, Series: []*config.Series{
		{Target: eu, Scenario: &config.Scenario{Name: "chat"}},
		{Target: eu, Scenario: &config.Scenario{Name: "summarize"}},
		{Target: us, Scenario: &config.Scenario{Name: "chat"}},
	}}
}

func newRegistry(t *testing.T, file string, windows ...config.Maintenance) *Registry {
	t.Helper()
	r, err := New(Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	r.Update(newConfig(windows...))
	return r
}

func create(t *testing.T, r *Registry, s Silence) Silence {
	t.Helper()
	s, err := r.Create(s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// paused returns the series that are paused now.
func paused(r *Registry) []string {
	var keys []string
	for _, s := range newConfig().Series {
		if _, ok := r.Active(s.Target.Name, s.Scenario.Name, time.Now()); ok {
			keys = append(keys, s.Key())
		}
	}
	return keys
}

func check(t *testing.T, r *Registry, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, paused(r)); diff != "" {
		t.Errorf("paused at %s (-want +got):\n%s", time.Now().UTC().Format(time.TimeOnly), diff)
	}
}

func TestSilencesPauseTheirSeriesForTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t, "")
		check(t, r)
		now := time.Now()
		chat := create(t, r, Silence{Target: "eu", Scenario: "chat", Until: now.Add(time.Hour), Reason: "new driver", By: "me"})
		planned := create(t, r, Silence{Target: "eu", From: now.Add(30 * time.Minute), Until: now.Add(2 * time.Hour), Reason: "move"})
		check(t, r, "eu/chat")
		p, _ := r.Active("eu", "chat", now)
		want := Pause{Kind: Silenced, ID: chat.ID, Reason: "new driver", By: "me", Until: now.Add(time.Hour)}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("pause (-want +got):\n%s", diff)
		}

		time.Sleep(30 * time.Minute)
		check(t, r, "eu/chat", "eu/summarize")
		if p, _ := r.Active("eu", "chat", time.Now()); p.ID != planned.ID {
			t.Errorf("of two silences %q is named, want that which ends last", p.Reason)
		}
		if diff := cmp.Diff([]Silence{chat, planned}, r.Silences()); diff != "" {
			t.Errorf("silences (-want +got):\n%s", diff)
		}

		time.Sleep(30*time.Minute - time.Nanosecond)
		if err := r.Delete(planned.ID); err != nil {
			t.Fatal(err)
		}
		check(t, r, "eu/chat")
		time.Sleep(time.Nanosecond)
		check(t, r)
		if got := r.Silences(); len(got) != 0 {
			t.Errorf("silences that have ended are listed: %v", got)
		}
		for _, id := range []string{chat.ID, planned.ID, ""} {
			if err := r.Delete(id); !errors.Is(err, ErrNotFound) {
				t.Errorf("Delete(%q) = %v, want ErrNotFound", id, err)
			}
		}
	})
}

func TestInvalidSilencesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t, "")
		now := time.Now()
		valid := Silence{Target: "eu", Scenario: "chat", Until: now.Add(time.Hour), Reason: "why"}
		tests := []struct {
			name  string
			spoil func(*Silence)
			want  string
		}{
			{"no target", func(s *Silence) { s.Target = "" }, "target is missing"},
			{"unknown target", func(s *Silence) { s.Target = "asia" }, `there is no target "asia"`},
			{"unknown scenario", func(s *Silence) { s.Scenario = "x" }, `target "eu" has no scenario "x"`},
			{"scenario of another target", func(s *Silence) { s.Target, s.Scenario = "us", "summarize" }, `target "us" has no scenario "summarize"`},
			{"no end", func(s *Silence) { s.Until = time.Time{} }, "until is missing: say when it ends"},
			{"over", func(s *Silence) { s.Until = now }, "until is over already"},
			{"end before the beginning", func(s *Silence) { s.From = now.Add(time.Hour) }, "until must be after from"},
			{
				"too long", func(s *Silence) { s.Until = now.Add(MaxAhead + 1) },
				"until may be 7 days from now at most: put a longer pause into the configuration, as maintenance",
			},
			{"no reason", func(s *Silence) { s.Reason = " " }, "reason is missing: tell others why"},
			{"long reason", func(s *Silence) { s.Reason = strings.Repeat("x", 501) }, "reason must be UTF-8 of 500 bytes at most"},
			{"broken reason", func(s *Silence) { s.Reason = "\xff" }, "reason must be UTF-8 of 500 bytes at most"},
			{"long by", func(s *Silence) { s.By = strings.Repeat("x", 101) }, "by must be UTF-8 of 100 bytes at most"},
		}
		for _, tt := range tests {
			s := valid
			tt.spoil(&s)
			_, err := r.Create(s)
			if want := "not a valid silence: " + tt.want; !errors.Is(err, ErrInvalid) || err.Error() != want {
				t.Errorf("%s: %v, want %s", tt.name, err, want)
			}
		}
		check(t, r)
		if _, err := r.Create(valid); err != nil {
			t.Errorf("what the cases spoil is not valid: %v", err)
		}
	})
}

func TestNumberOfSilencesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t, "")
		s := Silence{Target: "eu", Until: time.Now().Add(time.Hour), Reason: "why"}
		for range MaxSilences {
			create(t, r, s)
		}
		if _, err := r.Create(s); !errors.Is(err, ErrTooMany) {
			t.Errorf("one too many: %v, want ErrTooMany", err)
		}
		time.Sleep(time.Hour)
		s.Until = time.Now().Add(time.Hour)
		if _, err := r.Create(s); err != nil {
			t.Errorf("after all have ended: %v", err)
		}
	})
}

func TestWindowsOfTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at 2000-01-01 00:00 UTC, a Saturday
		now := time.Now()
		nightly := config.Maintenance{Name: "nightly", Targets: []string{"us"}, TimeIntervals: []timeinterval.TimeInterval{
			{Times: []timeinterval.TimeRange{{StartMinute: 60, EndMinute: 90}}},
		}}
		once := config.Maintenance{Name: "move", Scenarios: []string{"chat"}, From: now.Add(2 * time.Hour), To: now.Add(3 * time.Hour)}
		january := config.Maintenance{Name: "january", Targets: []string{"eu"}, Scenarios: []string{"summarize"}, TimeIntervals: []timeinterval.TimeInterval{
			{Months: []timeinterval.MonthRange{{InclusiveRange: timeinterval.InclusiveRange{Begin: 1, End: 1}}}},
		}}
		r := newRegistry(t, "", nightly, once, january)
		for _, step := range []struct {
			after time.Duration
			want  []string
		}{
			{0, []string{"eu/summarize"}},
			{time.Hour, []string{"eu/summarize", "us/chat"}},
			{90 * time.Minute, []string{"eu/summarize"}},
			{2 * time.Hour, []string{"eu/chat", "eu/summarize", "us/chat"}},
			{3 * time.Hour, []string{"eu/summarize"}},
			{25 * time.Hour, []string{"eu/summarize", "us/chat"}},
			{31 * 24 * time.Hour, nil},
		} {
			time.Sleep(time.Until(now.Add(step.after)))
			check(t, r, step.want...)
		}

		r.Update(newConfig(config.Maintenance{Name: "now", Targets: []string{"us"}, From: time.Now(), To: time.Now().Add(time.Minute)}))
		check(t, r, "us/chat")
		r.Update(newConfig())
		check(t, r)
	})
}

func TestUntilOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		r := newRegistry(t, "", config.Maintenance{Name: "nightly", Targets: []string{"us"}, TimeIntervals: []timeinterval.TimeInterval{
			{Times: []timeinterval.TimeRange{{StartMinute: 60, EndMinute: 90}}},
		}}, config.Maintenance{Name: "january", TimeIntervals: []timeinterval.TimeInterval{
			{Months: []timeinterval.MonthRange{{InclusiveRange: timeinterval.InclusiveRange{Begin: 1, End: 1}}}},
		}})
		for _, step := range []struct {
			target       string
			after, until time.Duration // 0 is unknown
		}{
			{"us", 61 * time.Minute, 90 * time.Minute},
			{"us", 62 * time.Minute, 90 * time.Minute},
			{"us", 25 * time.Hour, 25*time.Hour + 30*time.Minute},
			{"eu", 22 * 24 * time.Hour, 0},
			{"eu", 24 * 24 * time.Hour, 31 * 24 * time.Hour},
		} {
			time.Sleep(time.Until(now.Add(step.after)))
			var want time.Time
			if step.until != 0 {
				want = now.Add(step.until)
			}
			if p, ok := r.Active(step.target, "chat", time.Now()); !ok || p.Kind != Maintenance || !p.Until.Equal(want) {
				t.Errorf("%s after %s: %+v (%t), want one until %s", step.target, step.after, p, ok, want)
			}
		}
	})
}

func TestSilencesOutliveARestartWithAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "silences.json")
		r := newRegistry(t, file)
		now := time.Now()
		create(t, r, Silence{Target: "eu", Until: now.Add(time.Hour), Reason: "ends while the process is down"})
		gone := create(t, r, Silence{Target: "eu", Until: now.Add(3 * time.Hour), Reason: "deleted"})
		stays := create(t, r, Silence{Target: "us", Scenario: "chat", From: now.Add(time.Minute), Until: now.Add(3 * time.Hour), Reason: "stays", By: "me"})
		if err := r.Delete(gone.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		r = newRegistry(t, file)
		check(t, r, "us/chat")
		if diff := cmp.Diff([]Silence{stays}, r.Silences()); diff != "" {
			t.Errorf("silences (-want +got):\n%s", diff)
		}
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
		if diff := cmp.Diff([]string{file}, files); diff != "" {
			t.Errorf("files left (-want +got):\n%s", diff)
		}
	})
}

func TestFileThatCannotBeUsed(t *testing.T) {
	for _, content := range []string{"{", `{"silences": [null]}`, `{"silences": [{"target": "eu"}]}`, `[]`} {
		file := filepath.Join(t.TempDir(), "silences.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Options{File: file}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("New with %s = %v, want an error that names the file", content, err)
		}
	}

	dir := filepath.Join(t.TempDir(), "gone")
	r := newRegistry(t, filepath.Join(dir, "silences.json"))
	if _, err := r.Create(Silence{Target: "eu", Until: time.Now().Add(time.Hour), Reason: "why"}); err == nil || errors.Is(err, ErrInvalid) {
		t.Errorf("Create without a directory to write to: %v", err)
	}
	check(t, r)
}

func TestConcurrentUse(t *testing.T) {
	windows := config.Maintenance{Name: "w", Targets: []string{"us"}, TimeIntervals: []timeinterval.TimeInterval{
		{Years: []timeinterval.YearRange{{InclusiveRange: timeinterval.InclusiveRange{Begin: 2000, End: 3000}}}},
	}}
	r := newRegistry(t, filepath.Join(t.TempDir(), "silences.json"), windows)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				s, err := r.Create(Silence{Target: "eu", Until: time.Now().Add(time.Hour), Reason: "why"})
				if err != nil {
					t.Error(err)
				}
				r.Update(newConfig(windows))
				if got := paused(r); len(got) != 3 {
					t.Errorf("paused are %v, want all", got)
				}
				if err := r.Delete(s.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	check(t, r, "us/chat")
}

// BenchmarkActive is the cost at a slot or a scrape of one series, which is not paused.
func BenchmarkActive(b *testing.B) {
	r, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		b.Fatal(err)
	}
	cfg := newConfig()
	for i := range 20 {
		cfg.Maintenance = append(cfg.Maintenance, config.Maintenance{Name: fmt.Sprint(i), TimeIntervals: []timeinterval.TimeInterval{{
			Times:    []timeinterval.TimeRange{{StartMinute: 60, EndMinute: 90}},
			Location: &timeinterval.Location{Location: berlin},
		}}})
	}
	r.Update(cfg)
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for range 100 {
		if _, err := r.Create(Silence{Target: "us", Until: time.Now().Add(time.Hour), Reason: "why"}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Active("eu", "chat", now)
	}
}
