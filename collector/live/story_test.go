package live

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

func traces(stories []Story) []string {
	var list []string
	for _, st := range stories {
		list = append(list, st.Result.TraceID)
	}
	return list
}

// named gives a result a trace id to know it by.
func named(r *probe.Result, trace string) *probe.Result {
	r.TraceID = trace
	return r
}

func TestStoriesThatAreNotGoodAreKeptLonger(t *testing.T) {
	l, s := newLive(t, Options{MaxNotGood: 3, MaxGood: 2})
	s.Observe(named(failed(l.start), "first"))
	s.Observe(named(slow(l.start), "slow"))
	s.Observe(named(result(l.start, probe.LocalError, ""), "local"))
	for i := range 50 {
		s.Observe(named(good(l.start), fmt.Sprintf("good %d", i)))
		s.Observe(named(result(l.start, probe.Canceled, ""), "canceled"))
	}
	if diff := cmp.Diff([]string{"good 49", "good 48", "local", "slow", "first"}, traces(l.Results(Filter{}))); diff != "" {
		t.Error(diff)
	}
	s.Observe(named(failed(l.start), "last"))
	if diff := cmp.Diff([]string{"last", "local", "slow"}, traces(l.Results(Filter{Outcome: NotGood}))); diff != "" {
		t.Error(diff)
	}
}

func TestASeriesThatFailsAllTheTimePushesOutNoOther(t *testing.T) {
	const maxBytes = 400 << 10
	l := New(Options{MaxBytes: maxBytes})
	var all []*config.Series
	for i := range 20 {
		all = append(all, testSeries(fmt.Sprintf("target-%d", i), "chat"))
	}
	l.Update(testConfig(all...))
	text := strings.Repeat("x", 9000)
	for _, sc := range all {
		r := named(failed(l.start), "only one of "+sc.Target.Name)
		r.Text = text
		l.Series(sc.Key()).Observe(r)
	}
	for range 1000 {
		r := named(failed(l.start), "again")
		r.Text = text
		l.Series("target-0/chat").Observe(r)
	}

	var bytes int
	for _, s := range l.all() {
		bytes += s.stories.bytes
		if s.key == "target-0/chat" {
			continue
		}
		if got := traces(l.Results(Filter{Target: s.config.Target.Name})); len(got) != 1 || !strings.HasPrefix(got[0], "only one") {
			t.Errorf("%s remembers %v", s.key, got)
		}
	}
	if bytes > maxBytes {
		t.Errorf("%d bytes in all, more than %d", bytes, maxBytes)
	}
	if n := len(l.Results(Filter{Target: "target-0"})); n == 0 || n == DefaultMaxNotGood {
		t.Errorf("the one that fails has %d stories: the bound in bytes does nothing", n)
	}
}

func TestLongStoriesAreShortened(t *testing.T) {
	l, s := newLive(t, Options{})
	r := failed(l.start)
	r.Text = strings.Repeat("é", maxText) // two bytes each
	r.ChunkGaps = make([]time.Duration, 5000)
	s.Observe(r)
	st := l.Results(Filter{})[0]
	if !st.Shortened || len(st.Result.Text) > maxText || len(st.Result.Text) < maxText-4 || !utf8.ValidString(st.Result.Text) {
		t.Errorf("shortened %v, to %d bytes", st.Shortened, len(st.Result.Text))
	}
	if len(st.Gaps) != maxGaps {
		t.Errorf("%d gaps", len(st.Gaps))
	}
	if len(r.Text) != 2*maxText || len(r.ChunkGaps) != 5000 {
		t.Error("the result itself was changed")
	}
}

func TestResultsByFilter(t *testing.T) {
	l := New(Options{})
	a, b := testSeries("a", "chat"), testSeries("b", "complete")
	l.Update(testConfig(a, b))
	l.Series(a.Key()).Observe(named(good(l.start), "1"))
	l.Series(b.Key()).Observe(named(failed(l.start), "2"))
	l.Series(a.Key()).Observe(named(slow(l.start), "3"))
	l.Series(b.Key()).Observe(named(failed(l.start), "4"))
	third := l.Results(Filter{TraceID: "3"})[0].ID

	for _, tt := range []struct {
		name   string
		filter Filter
		want   []string
	}{
		{"everything", Filter{}, []string{"4", "3", "2", "1"}},
		{"by target", Filter{Target: "a"}, []string{"3", "1"}},
		{"by scenario", Filter{Scenario: "complete"}, []string{"4", "2"}},
		{"by both", Filter{Target: "a", Scenario: "complete"}, nil},
		{"by outcome", Filter{Outcome: "timeout"}, []string{"4", "2"}},
		{"not good", Filter{Outcome: NotGood}, []string{"4", "3", "2"}},
		{"by trace", Filter{TraceID: "2"}, []string{"2"}},
		{"limited", Filter{Limit: 2}, []string{"4", "3"}},
		{"the next page", Filter{Limit: 2, Before: third}, []string{"2", "1"}},
		{"before an id of another process", Filter{Before: "zzz-3"}, nil},
		{"before no id", Filter{Before: "nonsense"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, traces(l.Results(tt.filter))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStoryByTheIDOfTheStrip(t *testing.T) {
	l, s := newLive(t, Options{})
	s.Observe(good(l.start))
	want := slow(l.start)
	want.ChunkGaps = []time.Duration{20 * time.Millisecond, time.Second}
	s.Observe(want)
	probes := l.Status(l.start, StatusOptions{Probes: 1}).Series[0].Probes
	st, ok := l.Story(probes[0].ID)
	if !ok || st.Result != want || st.Key != s.key {
		t.Fatalf("%v, %+v", ok, st)
	}
	doc, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"id":"` + st.ID + `"`, `"missed":["ttft"]`, `"result":{`, `"outcome":"slo_violation"`, `"first_chunk_gaps_seconds":[0.02,1]`,
	} {
		if !strings.Contains(string(doc), part) {
			t.Errorf("%s lacks %s", doc, part)
		}
	}
	for _, id := range []string{"", "1", l.id(99), strings.ToUpper(st.ID), st.ID + "0"} {
		if _, ok := l.Story(id); ok {
			t.Errorf("%q has a story", id)
		}
	}
}
