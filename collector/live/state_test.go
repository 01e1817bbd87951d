package live

import (
	"testing"
	"testing/synctest"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// feed observes n results, one each interval from the last on, and returns when the last one ended.
func feed(s *Series, from time.Time, n int, what ...func(time.Time) *probe.Result) time.Time {
	for i := range n {
		from = from.Add(s.config.Scenario.Interval)
		s.Observe(what[i%len(what)](from))
	}
	return from
}

// repeat makes a pattern for feed: n of one and m of another.
func repeat(n int, a func(time.Time) *probe.Result, m int, b func(time.Time) *probe.Result) []func(time.Time) *probe.Result {
	var pattern []func(time.Time) *probe.Result
	for range n {
		pattern = append(pattern, a)
	}
	for range m {
		pattern = append(pattern, b)
	}
	return pattern
}

func aborted(at time.Time) *probe.Result { return result(at, probe.LocalError, "") }

func TestStates(t *testing.T) {
	type step struct {
		n    int
		what []func(time.Time) *probe.Result
	}
	is := func(w ...func(time.Time) *probe.Result) []func(time.Time) *probe.Result { return w }
	for _, tt := range []struct {
		name     string
		steps    []step
		change   func(*config.Series)
		after    time.Duration // of the last result
		state    State
		severity Severity
		reason   string
		since    time.Duration // before the last result
	}{
		{
			name:  "a new series has no data",
			state: NoData, reason: "no probe was judged yet", since: 0,
		},
		{
			name:  "only failures of the prober's own are no data",
			steps: []step{{10, is(aborted)}},
			state: NoData, reason: "no probe was judged yet; in the last hour: 10 local_error", since: 150 * time.Second,
		},
		{
			name:  "one good probe is ok",
			steps: []step{{1, is(good)}},
			state: OK, reason: "1 of 1 good in 1h",
		},
		{
			name:  "good since the first probe",
			steps: []step{{400, is(good)}},
			state: OK, reason: "20 of 20 good in 5m", since: 399 * 15 * time.Second,
		},
		{
			name:  "a prober that stands still has no data, however bad it was",
			steps: []step{{100, is(failed)}},
			after: 91 * time.Second,
			state: NoData, reason: "no probe was judged for 1m31s", since: -90 * time.Second,
		},
		{
			name:  "patience lasts until a slow probe may have ended",
			steps: []step{{100, is(good)}},
			after: 90 * time.Second,
			state: OK, reason: "14 of 14 good in 5m", since: 99 * 15 * time.Second,
		},
		{
			name:  "no answer for two minutes is down since the first failure",
			steps: []step{{400, is(good)}, {9, is(failed)}},
			state: Down, severity: Critical, since: 8*15*time.Second + 2*time.Second,
			reason: "no answer to any of 8 probes in 2m: 8 timeout (first_token)",
		},
		{
			name:  "six failures are not down while the window holds an answer",
			steps: []step{{400, is(good)}, {4, is(slow)}, {1, is(failed)}},
			state: OK, since: 404 * 15 * time.Second,
			reason: "15 of 20 good in 5m: 4 ttft missed, 1 timeout (first_token)",
		},
		{
			name:   "six failures of a slow series are down",
			change: func(s *config.Series) { s.Scenario.Interval = 5 * time.Minute },
			steps:  []step{{20, is(good)}, {8, is(failed)}},
			state:  Down, severity: Critical, since: 35*time.Minute + 2*time.Second,
			reason: "no answer to any of 8 probes in 40m: 8 timeout (first_token)",
		},
		{
			name:  "answers that all miss the SLO burn at once, without an alert",
			steps: []step{{400, is(good)}, {20, is(slow)}},
			state: Burning, since: 13 * 15 * time.Second,
			reason: "goodput burns its error budget 100 times too fast: 20 of 20 bad in 5m: 20 ttft missed",
		},
		{
			name:  "answers that go on missing the SLO are a drop, not down",
			steps: []step{{400, is(good)}, {400, repeat(1, good, 2, slow)}},
			state: Burning, severity: Critical, since: -1,
			reason: "goodput has dropped, by a drop score of 1.95: 7 of 20 good in 5m: 13 ttft missed",
		},
		{
			name:  "a burst of five failures is ok",
			steps: []step{{4000, is(good)}, {5, is(failed)}, {5, is(good)}},
			state: OK, since: 4009 * 15 * time.Second,
			reason: "15 of 20 good in 5m: 5 timeout (first_token)",
		},
		{
			name: "a drop of availability burns its budget where goodput has no objective to drop from",
			change: func(s *config.Series) {
				s.Scenario.SLO.Objective, s.Scenario.SLO.Availability = 0, 0.95
			},
			steps: []step{{240, repeat(1, good, 3, failed)}},
			state: Burning, severity: Critical, since: -1,
			reason: "availability burns its error budget 15 times too fast: 180 of 240 bad in 1h, 15 of 20 in 5m: 15 timeout (first_token)",
		},
		{
			name:   "a criterion burns by an objective of its own, for working hours",
			change: func(s *config.Series) { s.Scenario.SLO.Objective = 0.5 },
			steps:  []step{{24 * 240, repeat(7, good, 3, slow)}},
			state:  Burning, severity: Warning, since: -1,
			reason: "ttft burns its error budget 6 times too fast: 1728 of 5760 bad in 1d, 145 of 481 in 2h: 78 ttft missed",
		},
		{
			name:  "four bad probes of four are too few to say",
			steps: []step{{4, is(slow)}},
			state: OK, since: 3 * 15 * time.Second,
			reason: "0 of 4 good in 1h: 4 ttft missed",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sc := testSeries("chat-eu", "chat")
				if tt.change != nil {
					tt.change(sc)
				}
				l := New(Options{})
				l.Update(testConfig(sc))
				s, now := l.Series(sc.Key()), time.Now()
				for _, step := range tt.steps {
					now = feed(s, now, step.n, step.what...)
				}
				got := l.Status(now.Add(tt.after), StatusOptions{}).Series[0]
				if got.State != tt.state || got.Severity != tt.severity || got.Reason != tt.reason {
					t.Errorf("%s %s: %s\nwant %s %s: %s", got.State, got.Severity, got.Reason, tt.state, tt.severity, tt.reason)
				}
				if since := now.Sub(got.Since); tt.since != -1 && since != tt.since {
					t.Errorf("since %s before the last result, want %s", since, tt.since)
				}
			})
		})
	}
}

func TestAPausedSeriesIsPausedUntilItsPauseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(time.Hour)
		l, s := newLive(t, Options{Paused: func(_, _ string, now time.Time) (Pause, bool) {
			return Pause{Reason: "new nodes", By: "maintenance", Until: &until}, now.Before(until)
		}})
		s.Observe(good(time.Now()))

		got := l.Status(time.Now(), StatusOptions{}).Series[0]
		want := "paused by maintenance until " + until.UTC().Format(time.RFC3339) + ": new nodes"
		if got.State != Paused || got.Reason != want || got.Pause == nil {
			t.Errorf("%s: %s %v, want %s", got.State, got.Reason, got.Pause, want)
		}
		got = l.Status(until, StatusOptions{}).Series[0]
		if got.State != NoData || got.Pause != nil {
			t.Errorf("after its end: %s, %v", got.State, got.Pause)
		}
		until = time.Now() // somebody ends it
		if got = l.Status(time.Now(), StatusOptions{}).Series[0]; got.State != OK {
			t.Errorf("after it was ended: %s", got.State)
		}
	})
}

func TestSinceSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var journal []*probe.Result
		for i := range 100 {
			at := time.Now().Add(time.Duration(i-99) * 15 * time.Second)
			r := good(at)
			if i >= 80 {
				r = failed(at)
			}
			journal = append(journal, r)
		}
		l, s := newLive(t, Options{})
		for _, r := range journal {
			s.Restore(r)
		}
		got := l.Status(time.Now(), StatusOptions{}).Series[0]
		if want := journal[80].Time; got.State != Down || !got.Since.Equal(want) {
			t.Errorf("%s since %s, want down since %s", got.State, got.Since, want)
		}
	})
}
