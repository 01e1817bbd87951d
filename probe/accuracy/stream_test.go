//go:build bench && linux

package accuracy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// streamed is what a client says of one stream.
type streamed struct {
	id     string      // the request id or trace id by which the server knows it
	warm   bool        // not the first stream on its connection
	start  time.Time   // of the request
	tokens []time.Time // when each arrived
	kernel bool        // by the kernel's word
}

// client is one of the clients that are compared: it makes one stream. close ends its connections.
type client struct {
	stream func() (streamed, error)
	close  func()
}

// newPlain returns the plain client.
func newPlain(_ *testing.T, s *truthServer) client {
	c := newPlainClient(s.URL, s.PEM)
	var number atomic.Int64
	return client{
		stream: func() (streamed, error) {
			id := fmt.Sprint("plain-", number.Add(1))
			start, tokens, err := c.stream(id)
			return streamed{id: id, start: start, tokens: tokens}, err
		},
		close: c.http.CloseIdleConnections,
	}
}

// newOurs returns our prober, wired as its users do.
func newOurs(t *testing.T, s *truthServer) client { return newProber(t, s, probe.NewClients()) }

// newOursReading returns our prober without the kernel's receive times.
func newOursReading(t *testing.T, s *truthServer) client {
	clients := probe.NewClients()
	clients.UseReadStamps()
	return newProber(t, s, clients)
}

func newProber(t *testing.T, s *truthServer, clients *probe.Clients) client {
	t.Helper()
	caFile := ""
	if s.PEM != nil {
		caFile = filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(caFile, s.PEM, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := wire(s.URL, caFile, clients)
	if err != nil {
		t.Fatal(err)
	}
	return client{
		stream: func() (streamed, error) { return streamOf(w.prober.Probe(context.Background())) },
		close:  w.close,
	}
}

// wired is a prober of a truth server. close ends its connections.
type wired struct {
	series *config.Series
	prober *probe.Prober
	close  func()
}

func wire(url, caFile string, clients *probe.Clients) (wired, error) {
	series := config.NewSeries(url, "truth")
	series.Scenario.SLO = config.SLO{} // a stream that comes in one write has no time per token to judge
	series.Target.HTTP.TLSConfig.CAFile = caFile
	if _, err := config.New(series); err != nil {
		return wired{}, err
	}
	c, err := clients.Get(series.Target)
	if err != nil {
		return wired{}, err
	}
	prober, err := probe.New(series, c, "goodput_exporter/bench")
	return wired{series, prober, func() {
		c.Release()
		clients.Close()
	}}, err
}

// streamOf reads the instants off a result.
func streamOf(r *probe.Result) (streamed, error) {
	if r.Outcome != probe.Good {
		return streamed{}, fmt.Errorf("the outcome is %s (%s): %s", r.Outcome, r.Reason, r.Error)
	}
	s := streamed{id: r.TraceID, start: r.Time, kernel: r.StampSource == "kernel", tokens: make([]time.Time, 0, 1+len(r.ChunkGaps))}
	at := r.Time.Add(*r.TTFT)
	s.tokens = append(s.tokens, at)
	for _, gap := range r.ChunkGaps {
		at = at.Add(gap)
		s.tokens = append(s.tokens, at)
	}
	return s, nil
}

// run is what came of a number of streams side by side.
type run struct {
	streams []streamed
	took    time.Duration
	cpu     time.Duration // of this process
	allocs  uint64        // of this process
}

// follow keeps n streams open until more says that there were enough. The first stream of each is on a new
// connection.
func follow(t *testing.T, c client, n int, more func(done int) bool) run {
	t.Helper()
	all := make([][]streamed, n)
	r := weigh(func() {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				for done := 0; more(done); done++ {
					s, err := c.stream()
					if err != nil {
						t.Error(err)
						return
					}
					s.warm = done > 0
					all[i] = append(all[i], s)
				}
			})
		}
		wg.Wait()
	})
	for _, some := range all {
		r.streams = append(r.streams, some...)
	}
	if t.Failed() {
		t.FailNow()
	}
	return r
}

// weigh returns what it costs to do something.
func weigh(do func()) run {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, cpu := time.Now(), cpuTime()
	do()
	r := run{took: time.Since(start), cpu: cpuTime() - cpu}
	runtime.ReadMemStats(&after)
	r.allocs = after.Mallocs - before.Mallocs
	return r
}

// cpuPer1000 returns the CPU time of 1,000 streams, in seconds.
func (r run) cpuPer1000() float64 { return r.cpu.Seconds() * 1000 / float64(len(r.streams)) }
