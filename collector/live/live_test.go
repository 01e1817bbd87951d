package live

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

var update = flag.Bool("update", false, "write the golden files anew")

// checkGolden compares a document with its golden file, indented.
func checkGolden(t *testing.T, name string, doc []byte) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, doc, "", "  "); err != nil {
		t.Fatal(err)
	}
	indented.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, indented.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), indented.String()); diff != "" {
		t.Errorf("%s differs; if that is meant, run go test ./collector/live -update\n%s", path, diff)
	}
}

func TestStatusAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := time.Now().Add(time.Hour)
		l, s := newLive(t, Options{Next: func(key string) (time.Time, bool) { return next, key == "chat-eu/chat" }})
		now := feed(s, time.Now(), 300, good)
		now = feed(s, now, 12, good, slow, failed)
		s.Observe(result(now.Add(time.Second), probe.Canceled, ""))
		time.Sleep(time.Until(now) + 2*time.Second)
		s.SlotsSkipped("budget", 2)
		s.ProbeStarted()

		doc, err := json.Marshal(l.Status(time.Now(), StatusOptions{Probes: 4}))
		if err != nil {
			t.Fatal(err)
		}
		checkGolden(t, "status.json", doc)

		var read Status
		if err := json.Unmarshal(doc, &read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l.Status(time.Now(), StatusOptions{Probes: 4}), &read); diff != "" {
			t.Errorf("what a client reads differs:\n%s", diff)
		}
	})
}

func TestUpdateByDifference(t *testing.T) {
	same, changed, gone, fresh := testSeries("a", "chat"), testSeries("b", "chat"), testSeries("c", "chat"), testSeries("d", "chat")
	l := New(Options{})
	l.Update(testConfig(same, changed, gone))
	events := l.Subscribe(t.Context())
	handles := map[string]*Series{}
	for _, sc := range []*config.Series{same, changed, gone} {
		handles[sc.Key()] = l.Series(sc.Key())
		handles[sc.Key()].Observe(failed(l.start))
	}
	changedNow := testSeries("b", "chat")
	changedNow.Scenario.SLO.Objective = 0.95
	l.Update(testConfig(fresh, testSeries("a", "chat"), changedNow))
	for _, s := range handles {
		s.Observe(failed(l.start))
	}

	counts, order := map[string]int{}, []string{}
	for _, st := range l.Status(l.start, StatusOptions{}).Series {
		counts[st.Key] = st.SLOs[goodput].Windows[0].Bad
		order = append(order, st.Key)
	}
	if diff := cmp.Diff([]string{"d/chat", "a/chat", "b/chat"}, order); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"a/chat": 2, "b/chat": 0, "d/chat": 0}, counts); diff != "" {
		t.Error(diff)
	}
	if l.Series("c/chat") != nil || l.Series("a/chat") != handles["a/chat"] {
		t.Error("the handles are not those of the living series")
	}
	var told []string
	for len(events) > 0 {
		e := <-events
		if e.Type == ResultEvent {
			told = append(told, e.Data.(*ResultData).Key)
		} else if d, ok := e.Data.(*SeriesData); ok {
			told = append(told, fmt.Sprint(*d))
		}
	}
	want := []string{"a/chat", "b/chat", "c/chat", "{[d/chat b/chat] [b/chat c/chat]}", "a/chat"}
	slices.Sort(want)
	slices.Sort(told)
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("events:\n%s", diff)
	}
}

func TestFiguresNowAgainstTheDay(t *testing.T) {
	l, s := newLive(t, Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	now := l.start
	var day []float64
	for i := range 5760 {
		now = now.Add(15 * time.Second)
		v := time.Duration(float64(200*time.Millisecond) * math.Exp(rng.NormFloat64())).Truncate(time.Microsecond)
		if i >= 5760-60 {
			v = time.Duration(i) * time.Millisecond
		}
		r := good(now)
		r.TTFT = &v
		s.Observe(r)
		day = append(day, v.Seconds())
	}
	figure := l.Status(now, StatusOptions{}).Series[0].Figures[0]
	if figure.Name != "ttft" || *figure.Limit != 0.8 {
		t.Errorf("figure %s with limit %v", figure.Name, *figure.Limit)
	}
	if figure.Now.Count != 60 || *figure.Now.P50 != 5.729 || *figure.Now.P95 != 5.756 {
		t.Errorf("now: %d, p50 %v, p95 %v", figure.Now.Count, *figure.Now.P50, *figure.Now.P95)
	}
	slices.Sort(day)
	for _, q := range []struct{ got, want float64 }{
		{*figure.Day.P50, day[len(day)/2]}, {*figure.Day.P95, day[len(day)*95/100]},
	} {
		if math.Abs(q.got/q.want-1) > sketchError+0.01 {
			t.Errorf("day: %v, want %v", q.got, q.want)
		}
	}
	if figure.Day.Count < 5760-120 {
		t.Errorf("the day has %d", figure.Day.Count)
	}
}

func TestSketchKeepsItsRelativeError(t *testing.T) {
	for v := 50e-6; v < 5000; v *= 1.037 {
		var s sketch
		s.add(v)
		if got := middle(int(s[0].index)); math.Abs(got/v-1) > sketchError*1.0001 {
			t.Errorf("%v becomes %v", v, got)
		}
	}
}

func TestAFailureHasNoLatency(t *testing.T) {
	l, s := newLive(t, Options{})
	s.Observe(failed(l.start))
	for _, f := range l.Status(l.start, StatusOptions{}).Series[0].Figures {
		if f.Now.Count != 0 || f.Day.Count != 0 || f.Now.P50 != nil {
			t.Errorf("%s: %+v", f.Name, f)
		}
	}
}

func TestSkippedSlotsOfTheLastHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLive(t, Options{})
		s.SlotsSkipped("late", 7)
		time.Sleep(40 * time.Minute)
		s.SlotsSkipped("overlap", 1)
		s.SlotsSkipped("overlap", 1)
		s.SlotsSkipped("budget", 1)
		got := l.Status(time.Now(), StatusOptions{}).Series[0].Skipped
		if diff := cmp.Diff(map[string]int{"late": 7, "overlap": 2, "budget": 1}, got); diff != "" {
			t.Error(diff)
		}
		time.Sleep(40 * time.Minute)
		got = l.Status(time.Now(), StatusOptions{}).Series[0].Skipped
		if diff := cmp.Diff(map[string]int{"overlap": 2, "budget": 1}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEverythingAtOnce(t *testing.T) {
	l, s := newLive(t, Options{MaxBytes: 64 << 10})
	events := l.Subscribe(t.Context())
	other := testSeries("other", "chat")
	const times = 200
	var work sync.WaitGroup
	for _, do := range []func(i int){
		func(i int) { s.Observe(failed(l.start.Add(time.Duration(i) * time.Second))) },
		func(int) { s.ProbeStarted(); s.SlotsSkipped("late", 1); s.ProbeEnded() },
		func(i int) { l.Update(testConfig([]*config.Series{s.config, other}[:1+i%2]...)) },
		func(int) { l.Status(time.Now(), StatusOptions{Probes: Strip}); l.Results(Filter{}) },
		func(int) {
			if len(events) > 0 {
				if _, err := (<-events).JSON(); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		work.Go(func() {
			for i := range times {
				do(i)
			}
		})
	}
	work.Wait()
	st := l.Status(l.start.Add(times*time.Second), StatusOptions{Key: s.key}).Series[0]
	if bad := st.SLOs[goodput].Windows[1].Bad; bad != times || st.InFlight != 0 {
		t.Errorf("%d failures and %d in flight, want %d and none", bad, st.InFlight, times)
	}
}
