package live

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSubscribersAreToldOfResultsAndStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLive(t, Options{})
		events := l.Subscribe(t.Context())
		now := feed(s, time.Now(), 2, good)
		l.Status(now.Add(10*time.Minute), StatusOptions{}) // a reader finds out
		feed(s, now.Add(10*time.Minute), 1, good)

		var got []string
		for len(events) > 0 {
			e := <-events
			switch d := e.Data.(type) {
			case *ResultData:
				got = append(got, "result "+d.Outcome)
			case *StateData:
				got = append(got, string(d.Before)+" -> "+string(d.State)+": "+d.Reason)
			}
		}
		want := []string{
			"result good",
			"no_data -> ok: 1 of 1 good in 1h",
			"result good",
			"ok -> no_data: no probe was judged for 10m0s",
			"result good",
			"no_data -> ok: 3 of 3 good in 1h",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnEventIsEncodedOnce(t *testing.T) {
	l, s := newLive(t, Options{})
	one, two := l.Subscribe(t.Context()), l.Subscribe(t.Context())
	s.Observe(slow(l.start))
	a, err := (<-one).JSON()
	if err != nil {
		t.Fatal(err)
	}
	b, _ := (<-two).JSON()
	if &a[0] != &b[0] {
		t.Error("two subscribers have two encodings")
	}
	var data map[string]any
	if err := json.Unmarshal(a, &data); err != nil {
		t.Fatal(err)
	}
	delete(data, "id")
	delete(data, "time")
	want := map[string]any{
		"key": "chat-eu/chat", "target": "chat-eu", "scenario": "chat", "outcome": "slo_violation", "missed": []any{"ttft"},
		"ttft_seconds": 0.2, "tpot_seconds": 0.025, "e2e_seconds": 2.0,
	}
	if diff := cmp.Diff(want, data); diff != "" {
		t.Error(diff)
	}
}

func TestASlowSubscriberLosesEventsAndIsTold(t *testing.T) {
	l, s := newLive(t, Options{})
	slowOne, quick := l.Subscribe(t.Context()), l.Subscribe(t.Context())
	const lost = 10
	for i := range backlog + lost {
		s.Observe(good(l.start.Add(time.Duration(i) * time.Second)))
		for len(quick) > 0 {
			if e := <-quick; e.Dropped != 0 {
				t.Fatalf("one that keeps up lost %d", e.Dropped)
			}
		}
	}
	for range backlog {
		if e := <-slowOne; e.Dropped != 0 {
			t.Fatalf("told too early of %d", e.Dropped)
		}
	}
	s.Observe(good(l.start.Add(time.Hour)))
	if e := <-slowOne; e.Dropped != lost+1 { // one of them the change of state
		t.Errorf("told of %d lost events, want %d", e.Dropped, lost+1)
	}
}

func TestASubscriptionEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLive(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		events := l.Subscribe(ctx)
		cancel()
		synctest.Wait()
		if _, open := <-events; open {
			t.Error("the channel is open")
		}
		s.Observe(good(time.Now()))
		if l.hub.heard() {
			t.Error("it is still subscribed")
		}
	})
}
