package page

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// eventsOf asks a server for events and returns its lines. They end with ctx.
func eventsOf(ctx context.Context, t *testing.T, server *httptest.Server, query string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/events"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("Content-Type %q", got)
	}
	lines := bufio.NewScanner(response.Body)
	nextLine(t, lines, ": connected")
	return lines
}

// nextLine reads lines until one begins with something, and returns it.
func nextLine(t *testing.T, lines *bufio.Scanner, prefix string) string {
	t.Helper()
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), prefix) {
			return lines.Text()
		}
	}
	t.Fatalf("the stream ended without a line %q: %v", prefix, lines.Err())
	return ""
}

func newServer(t *testing.T, l *live.Live, edits ...func(*Page)) *httptest.Server {
	t.Helper()
	p := newPage(t, Options{Live: l})
	p.streams.pause = time.Millisecond
	for _, edit := range edits {
		edit(p)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server
}

func TestEventsReachEveryClient(t *testing.T) {
	l := newLive(t)
	server := newServer(t, l)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	all := eventsOf(ctx, t, server, "")
	second := eventsOf(ctx, t, server, "")
	one := eventsOf(ctx, t, server, "?target=no_data&scenario=chat")

	l.Series("ok/chat").Observe(result(time.Now(), probe.Good))
	l.Series("no_data/chat").Observe(result(time.Now(), probe.Good))
	for _, lines := range []*bufio.Scanner{all, second} {
		nextLine(t, lines, "event: result")
		if data := nextLine(t, lines, "data: "); !strings.Contains(data, `"key":"ok/chat"`) || !strings.Contains(data, `"outcome":"good"`) {
			t.Errorf("the first event is %s", data)
		}
	}
	// What else happened came in the same order to the one that wants less.
	nextLine(t, one, "event: result")
	if data := nextLine(t, one, "data: "); !strings.Contains(data, `"key":"no_data/chat"`) {
		t.Errorf("the client of one series got %s", data)
	}
	nextLine(t, one, "event: state")
	if data := nextLine(t, one, "data: "); !strings.Contains(data, `"before":"no_data","state":"ok"`) {
		t.Errorf("the state is %s", data)
	}
	l.Update(&config.Config{Series: []*config.Series{testSeries("ok", "chat")}})
	nextLine(t, one, "event: series")
	if data := nextLine(t, one, "data: "); !strings.Contains(data, `"died":["burning/chat"`) {
		t.Errorf("the deaths are %s", data)
	}
}

func TestHeartbeat(t *testing.T) {
	server := newServer(t, newLive(t), func(p *Page) { p.streams.heartbeat = 10 * time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	lines := eventsOf(ctx, t, server, "")
	nextLine(t, lines, ": heartbeat")
	nextLine(t, lines, ": heartbeat")
}

// A client that does not keep up is told how many events it lost.
func TestSlowClientIsToldWhatItLost(t *testing.T) {
	l := newLive(t)
	server := newServer(t, l, func(p *Page) { p.streams.pause = time.Second })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	lines := eventsOf(ctx, t, server, "")
	s := l.Series("ok/chat")
	// Within the first pause, more than the backlog holds. The next event after it says how many were lost.
	for range 3000 {
		s.Observe(result(time.Now(), probe.Good))
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				s.Observe(result(time.Now(), probe.Good))
			}
		}
	}()
	nextLine(t, lines, "event: dropped")
	data := nextLine(t, lines, "data: ")
	var n int
	if _, err := fmt.Sscanf(data, `data: {"events":%d}`, &n); err != nil || n < 1 {
		t.Errorf("dropped: %s", data)
	}
	close(stop)
	<-done
}

func TestManyClientsLeaveNothing(t *testing.T) {
	l := newLive(t)
	server := newServer(t, l)
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	clients := make([]*bufio.Scanner, 200)
	for i := range clients {
		clients[i] = eventsOf(ctx, t, server, "")
	}
	l.Series("ok/chat").Observe(result(time.Now(), probe.Good))
	for _, lines := range clients {
		nextLine(t, lines, "event: result")
	}
	cancel()
	server.Client().CloseIdleConnections()
	if err := goleak.Find(before, goleak.IgnoreTopFunction("testing.(*T).Run")); err != nil {
		t.Error(err)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	p := newPage(t, Options{})
	p.streams.open.Store(maxStreams)
	if a := do(p, request(http.MethodGet, "/api/v1/events", "")); a.code != http.StatusServiceUnavailable {
		t.Errorf("one more: %d %s", a.code, a.body)
	}
	if n := p.streams.open.Load(); n != maxStreams {
		t.Errorf("%d streams are counted, want %d", n, maxStreams)
	}
}
