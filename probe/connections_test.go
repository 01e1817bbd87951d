package probe_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/probetest"
)

func seriesFor(url string) *config.Series {
	s := config.NewSeries(url, "m")
	s.Scenario.SLO = config.SLO{}
	return s
}

func TestStaleConnectionIsRetriedOnce(t *testing.T) {
	const wait = 100 // milliseconds until the stale connection is found to be so
	for name, last := range map[string]probetest.Step{"closed": at(wait, fin), "reset": at(wait, rst)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := exchange(200, "1.1", "chunked", nil, answer...)
			p := newPlayer(t,
				probetest.ConnectionPlan{Requests: []probetest.Exchange{good, exchange(200, "1.1", "chunked", nil, last)}},
				probetest.ConnectionPlan{Requests: []probetest.Exchange{good}})
			prober := newProber(t, seriesFor(p.URL()))
			first := prober.Probe(context.Background())
			began := time.Now()
			second := prober.Probe(context.Background())
			if first.Outcome != probe.Good || first.ConnectionReused || first.Has(probe.FlagStaleRetry) {
				t.Errorf("first: got %s", toJSON(t, first))
			}
			if second.Outcome != probe.Good || second.ConnectionReused || !second.Has(probe.FlagStaleRetry) {
				t.Errorf("second: got %s", toJSON(t, second))
			}
			if sent := second.Time.Sub(began); sent < wait*time.Millisecond {
				t.Errorf("t_send is %v after the start, want it after the end of the stale connection, %d ms", sent, wait)
			}
			if seen := p.Seen(); len(seen.Requests) != 3 || seen.Connections != 2 {
				t.Errorf("%d requests on %d connections, want 3 on 2", len(seen.Requests), seen.Connections)
			}
		})
	}
}

func TestStaleHTTP2ConnectionIsRetriedOnce(t *testing.T) {
	good := exchange(200, "2", "", nil, answer...)
	for name, last := range map[string][]probetest.Step{"closed": {fin}, "reset": {rst}, "going away": {goAway(1), fin}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := seriesFor("")
			s.Target.URL = connections(
				probetest.ConnectionPlan{Requests: []probetest.Exchange{good, exchange(200, "2", "", nil, last...)}},
				probetest.ConnectionPlan{Requests: []probetest.Exchange{good}})(t, s)
			prober := newProber(t, s)
			prober.Probe(context.Background())
			if r := prober.Probe(context.Background()); r.Outcome != probe.Good || !r.Has(probe.FlagStaleRetry) {
				t.Errorf("got %s", toJSON(t, r))
			}
		})
	}
}

// A fresh connection that dies is the endpoint's fault, and so is one that dies in the midst of an answer.
func TestWhatIsNotStaleIsNotRetried(t *testing.T) {
	good := exchange(200, "1.1", "chunked", nil, answer...)
	for name, tc := range map[string]struct {
		plan    []probetest.Exchange
		outcome probe.Outcome
		seen    int
	}{
		"fresh":         {[]probetest.Exchange{exchange(200, "1.1", "chunked", nil, fin)}, probe.ConnectionError, 2},
		"in the answer": {[]probetest.Exchange{good, exchange(200, "1.1", "chunked", nil, hi, fin)}, probe.Interrupted, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlayer(t, probetest.ConnectionPlan{Requests: tc.plan})
			prober := newProber(t, seriesFor(p.URL()))
			prober.Probe(context.Background())
			r := prober.Probe(context.Background())
			if r.Outcome != tc.outcome || r.Has(probe.FlagStaleRetry) || len(p.Seen().Requests) != tc.seen {
				t.Errorf("%d requests, got %s", len(p.Seen().Requests), toJSON(t, r))
			}
		})
	}
}

func TestConnectionReuse(t *testing.T) {
	for connection, want := range map[config.Connection]int{config.ConnectionKeep: 1, config.ConnectionNew: 3} {
		t.Run(string(connection), func(t *testing.T) {
			t.Parallel()
			p := newPlayer(t, probetest.ConnectionPlan{Requests: []probetest.Exchange{exchange(200, "1.1", "chunked", nil, answer...)}})
			s := seriesFor(p.URL())
			s.Target.Connection = connection
			prober := newProber(t, s)
			for i := range 3 {
				r := prober.Probe(context.Background())
				if reused := i > 0 && connection == config.ConnectionKeep; r.Outcome != probe.Good || r.ConnectionReused != reused {
					t.Errorf("probe %d: want a good one, connection reused %v; got %s", i+1, reused, toJSON(t, r))
				}
			}
			if got := p.Seen().Connections; got != want {
				t.Errorf("%d connections, want %d", got, want)
			}
		})
	}
}

type connKey struct{}

// All the connections of one client die at once under many probers: nobody loses a probe, and nobody sends more than
// one request too many.
func TestManyStaleConnections(t *testing.T) {
	const probers = 50
	var accepted, requests, restarted atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		io.Copy(io.Discard, r.Body)
		if r.Context().Value(connKey{}).(int64) <= restarted.Load() {
			panic(http.ErrAbortHandler) // closes the connection
		}
		for _, step := range answer {
			w.Write(step.Write)
		}
	}))
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, accepted.Add(1))
	}
	server.Start()
	t.Cleanup(server.Close)
	prober := newProber(t, seriesFor(server.URL))
	round := func() (stale int64) {
		var retried atomic.Int64
		var running sync.WaitGroup
		for range probers {
			running.Go(func() {
				r := prober.Probe(context.Background())
				if r.Has(probe.FlagStaleRetry) {
					retried.Add(1)
				}
				if r.Outcome != probe.Good {
					t.Errorf("got %s", toJSON(t, r))
				}
			})
		}
		running.Wait()
		return retried.Load()
	}
	if stale := round(); stale != 0 || requests.Load() != probers {
		t.Errorf("first round: %d stale connections, %d requests; want none, %d", stale, requests.Load(), probers)
	}
	restarted.Store(accepted.Load())
	stale := round()
	if stale == 0 || requests.Load() != 2*probers+stale {
		t.Errorf("second round: %d stale connections, %d requests; want some, and one request more for each", stale, requests.Load()-probers)
	}
}
