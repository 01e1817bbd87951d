package arrival

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"
)

// client is the round tripper that probes use: connection tracking and TLS lie between it and our connections.
func client(t *testing.T, d *Dialer, configure ...func(*promconfig.HTTPClientConfig)) http.RoundTripper {
	t.Helper()
	cfg := promconfig.DefaultHTTPClientConfig
	cfg.EnableHTTP2 = false
	cfg.TLSConfig.InsecureSkipVerify = true
	for _, c := range configure {
		c(&cfg)
	}
	rt, err := promconfig.NewRoundTripperFromConfig(cfg, "test", promconfig.WithDialContextFunc(d.DialContext))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.(interface{ CloseIdleConnections() }).CloseIdleConnections)
	return rt
}

func http2(c *promconfig.HTTPClientConfig) { c.EnableHTTP2 = true }

// server answers after a pause, in two parts with a pause between them.
func server(t *testing.T, start func(*httptest.Server)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(pause)
		io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		time.Sleep(pause)
		io.WriteString(w, "second")
	}))
	start(s)
	t.Cleanup(s.Close)
	return s
}

const pause = 30 * time.Millisecond

func plain(s *httptest.Server)   { s.Start() }
func secure(s *httptest.Server)  { s.StartTLS() }
func secure2(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }

// seen is one exchange, and the instants around it.
type seen struct {
	*Exchange
	before, after time.Time
	stamps        []Stamp // of the body's parts
}

// exchange makes a request and reads the answer. Where there is a turn, the server has it when the head is there, and gives
// it back; then reads come late.
func exchange(t *testing.T, rt http.RoundTripper, url string, turn chan struct{}) seen {
	t.Helper()
	s := seen{Exchange: NewExchange(), before: time.Now()}
	if _, ok := s.Start(); ok {
		t.Error("a start before anything happened")
	}
	req, err := http.NewRequestWithContext(s.Context(context.Background()), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Error(err)
		return s
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return s
	}
	defer resp.Body.Close()
	if turn != nil {
		turn <- struct{}{}
		<-turn
		time.Sleep(lateness)
	}
	buf := make([]byte, 100)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			s.stamps = append(s.stamps, s.Stamp())
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Error(err)
			return s
		}
	}
	s.after = time.Now()
	return s
}

func (s seen) start(t *testing.T) time.Time {
	t.Helper()
	start, ok := s.Start()
	if !ok {
		t.Fatal("no start")
	}
	return start
}

// took returns the phases that took place.
func (s seen) took() []Phase {
	var took []Phase
	for p := range phaseCount {
		if _, ok := s.Took(p); ok {
			took = append(took, p)
		}
	}
	return took
}

func TestExchange(t *testing.T) {
	for _, tc := range []struct {
		name      string
		serve     func(*httptest.Server)
		configure []func(*promconfig.HTTPClientConfig)
		host      string
		fresh     []Phase // of a new connection
		shared    bool
	}{
		{name: "plain", serve: plain, fresh: []Phase{Connect, Request, Headers}},
		{name: "by name", serve: plain, host: "localhost", fresh: []Phase{DNS, Connect, Request, Headers}},
		{name: "TLS", serve: secure, fresh: []Phase{Connect, TLS, Request, Headers}},
		{name: "HTTP/2", serve: secure2, configure: []func(*promconfig.HTTPClientConfig){http2}, fresh: []Phase{Connect, TLS, Request, Headers}, shared: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			needKernelStamps(t)
			s := server(t, tc.serve)
			url := s.URL
			if tc.host != "" {
				url = strings.Replace(url, "127.0.0.1", tc.host, 1)
			}
			rt := client(t, dialer(t), tc.configure...)

			first := exchange(t, rt, url, nil)
			if got := first.took(); !slices.Equal(got, tc.fresh) {
				t.Errorf("phases of a new connection: got %v, want %v", got, tc.fresh)
			}
			if connected, reused := first.Connected(); !connected || reused {
				t.Errorf("new connection: connected %v, reused %v", connected, reused)
			}
			first.check(t, tc.shared)

			second := exchange(t, rt, url, nil)
			if got := second.took(); !slices.Equal(got, []Phase{Request, Headers}) {
				t.Errorf("phases of a reused connection: got %v, want request and headers", got)
			}
			if connected, reused := second.Connected(); !connected || !reused {
				t.Errorf("reused connection: connected %v, reused %v", connected, reused)
			}
			second.check(t, tc.shared)
			if second.start(t).Before(first.after) {
				t.Error("the second request starts before the end of the first")
			}
		})
	}
}

// check checks what every exchange with server has in common.
func (s seen) check(t *testing.T, shared bool) {
	t.Helper()
	start := s.start(t)
	if start.Before(s.before) || start.After(s.after) {
		t.Errorf("starts %v after the call, which took %v", start.Sub(s.before), s.after.Sub(s.before))
	}
	first, ok := s.FirstByte()
	if !ok || first.At.Sub(start) < pause {
		t.Errorf("first byte (%v) after %v, want at least %v", ok, first.At.Sub(start), pause)
	}
	headers, _ := s.Took(Headers)
	if headers < pause-slack {
		t.Errorf("headers took %v, want at least %v", headers, pause-slack)
	}
	if request, _ := s.Took(Request); request <= 0 && !shared {
		t.Errorf("writing the request took %v", request)
	}
	var sum time.Duration
	for p := range phaseCount {
		d, _ := s.Took(p)
		sum += d
	}
	if took := first.At.Sub(start); sum > took+time.Millisecond {
		t.Errorf("the phases sum to %v, but the first byte came after %v", sum, took)
	}
	last := s.stamps[len(s.stamps)-1]
	if gap := last.At.Sub(s.stamps[0].At); gap < pause-slack {
		t.Errorf("%v between the parts of the body, want at least %v", gap, pause-slack)
	}
	if !shared {
		for _, stamp := range append(s.stamps, first) {
			if !stamp.Kernel {
				t.Errorf("a stamp without the kernel's time: %+v", stamp)
			}
		}
	}
}

// A body that is read late was stamped in time, through everything that prometheus/common and TLS put between.
func TestLateReadOfBody(t *testing.T) {
	needKernelStamps(t)
	for name, serve := range map[string]func(*httptest.Server){"plain": plain, "TLS": secure} {
		t.Run(name, func(t *testing.T) {
			turn := make(chan struct{})
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush()
				<-turn
				io.WriteString(w, "bytes")
				w.(http.Flusher).Flush()
				turn <- struct{}{}
			}))
			serve(s)
			t.Cleanup(s.Close)
			x := exchange(t, client(t, dialer(t)), s.URL, turn)
			last := x.stamps[len(x.stamps)-1]
			if !last.Kernel || last.Lag < lateness-slack || x.after.Sub(last.At) < lateness-slack {
				t.Errorf("stamp %+v, %v before the end of reading; want the kernel's, at least %v", last, x.after.Sub(last.At), lateness-slack)
			}
		})
	}
}

// A dial that the transport began for one request may end up serving another, which did not wait for it.
func TestConnectionDialedForAnother(t *testing.T) {
	answer := make(chan struct{}) // lets the server answer the first request
	arrived := make(chan struct{}, 3)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		switch r.URL.Path {
		case "/first":
			<-answer
		case "/second":
			w.Header().Set("Connection", "close")
		}
	}))
	t.Cleanup(s.Close)
	d := dialer(t)
	secondDialed, handOver, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	defer close(end)
	var dials atomic.Int64
	rt, err := promconfig.NewRoundTripperFromConfig(promconfig.HTTPClientConfig{}, "test", promconfig.WithDialContextFunc(
		func(ctx context.Context, network, address string) (net.Conn, error) {
			dial := dials.Add(1)
			if dial == 3 { // the third request has to take what the second one left
				<-end
				return nil, net.ErrClosed
			}
			c, err := d.DialContext(ctx, network, address)
			if dial == 2 {
				close(secondDialed)
				<-handOver
			}
			return c, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.(interface{ CloseIdleConnections() }).CloseIdleConnections()

	var first, second seen
	var running sync.WaitGroup
	running.Go(func() { first = exchange(t, rt, s.URL+"/first", nil) })
	<-arrived
	running.Go(func() { second = exchange(t, rt, s.URL+"/second", nil) })
	<-secondDialed
	close(answer) // the second request takes the first one's connection
	running.Wait()
	close(handOver)
	third := exchange(t, rt, s.URL+"/third", nil)

	if got := first.took(); !slices.Equal(got, []Phase{Connect, Request, Headers}) {
		t.Errorf("first request: phases %v, want connect, request and headers", got)
	}
	for name, x := range map[string]seen{"second": second, "third": third} {
		if got := x.took(); !slices.Equal(got, []Phase{Request, Headers}) {
			t.Errorf("%s request: phases %v, want request and headers", name, got)
		}
		if _, warm := x.Connected(); !warm {
			t.Errorf("%s request: its connection was there before", name)
		}
		if start := x.start(t); start.Before(x.before) || start.After(x.after) {
			t.Errorf("%s request: starts %v after the call", name, start.Sub(x.before))
		}
	}
}

// Where a redirect is followed, everything counts from the first request.
func TestExchangeWithRedirect(t *testing.T) {
	s := server(t, plain)
	rt := client(t, dialer(t))
	x := seen{Exchange: NewExchange(), before: time.Now()}
	ctx := x.Context(context.Background())
	for range 2 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if got := x.took(); !slices.Equal(got, []Phase{Connect, Request, Headers}) {
		t.Errorf("phases: got %v, want those of the first request", got)
	}
	const three = 3*pause - slack // two before the first bytes, one in the first body
	if first, _ := x.FirstByte(); first.At.Sub(x.start(t)) < three {
		t.Errorf("the first byte came %v after the start, want at least %v", first.At.Sub(x.start(t)), three)
	}
	if headers, _ := x.Took(Headers); headers < three {
		t.Errorf("headers took %v, want at least %v", headers, three)
	}
}
