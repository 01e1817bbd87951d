package probetest

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// serveTruth returns a server, its URL, and a client that trusts it.
func serveTruth(t *testing.T, c TruthConfig, secure bool) (*TruthServer, string, *http.Client) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	scheme := "http"
	if secure {
		authority, err := NewAuthority()
		if err != nil {
			t.Fatal(err)
		}
		c.TLS = authority.ServerConfig("http/1.1")
		transport.TLSClientConfig = &tls.Config{RootCAs: authority.Pool()}
		scheme = "https"
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := ServeTruth(ctx, l, c)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		s.Wait()
	})
	return s, scheme + "://" + l.Addr().String(), &http.Client{Transport: transport}
}

// events posts a request with an id, and returns when each token arrived.
func events(c *http.Client, url, id string) (sent time.Time, tokens []time.Time, err error) {
	r, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(strings.Repeat("q", 20_000)))
	if err != nil {
		return sent, nil, err
	}
	r.Header.Set("X-Request-Id", id)
	r.Header.Set("Traceparent", fmt.Sprintf("00-%032s-0123456789abcdef-01", id))
	sent = time.Now()
	response, err := c.Do(r)
	if err != nil {
		return sent, nil, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	done := false
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"content":`) {
			tokens = append(tokens, time.Now())
		}
		done = done || lines.Text() == "data: [DONE]"
	}
	if err := lines.Err(); err != nil || !done {
		return sent, tokens, fmt.Errorf("the stream ended early: %w", err)
	}
	return sent, tokens, nil
}

func TestTruthServerTellsTheTruth(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", secure), func(t *testing.T) {
			t.Parallel()
			const tokens = 8
			s, url, c := serveTruth(t, TruthConfig{Tokens: tokens, TTFT: Uniform(0.020, 0.030), Gap: Uniform(0.005, 0.006)}, secure)
			var wg sync.WaitGroup
			for i := range 6 { // enough to leave the few that may spin
				wg.Go(func() {
					for j := range 2 { // the second one on a kept connection
						id := fmt.Sprintf("a%d%d", i, j)
						sent, arrived, err := events(c, url, id)
						if err != nil || len(arrived) != tokens {
							t.Errorf("%d tokens, %v", len(arrived), err)
							return
						}
						truth, ok := s.Truth(id)
						if !ok {
							t.Errorf("no truth of %s", id)
							return
						}
						consistent(t, truth, sent, arrived)
					}
				})
			}
			wg.Wait()
		})
	}
}

// consistent checks that a truth lies between what its client saw.
func consistent(t *testing.T, truth Truth, sent time.Time, arrived []time.Time) {
	t.Helper()
	if runtime.GOOS == "linux" && !truth.Kernel {
		t.Error("the kernel gave no time of receipt")
	}
	if truth.Received.Before(sent) {
		t.Errorf("received %v before it was sent", sent.Sub(truth.Received))
	}
	if len(truth.Writes) != len(arrived) {
		t.Fatalf("%d writes, %d arrived", len(truth.Writes), len(arrived))
	}
	for i, w := range truth.Writes {
		if arrived[i].Before(w) {
			t.Errorf("token %d arrived %v before it was written", i, w.Sub(arrived[i]))
		}
		if due := 20*time.Millisecond + time.Duration(i)*5*time.Millisecond; w.Sub(truth.Received) < due {
			t.Errorf("token %d was written after %v, before %v", i, w.Sub(truth.Received), due)
		}
	}
}

func TestTruthServerReportsOverHTTP(t *testing.T) {
	t.Parallel()
	s, url, c := serveTruth(t, TruthConfig{Tokens: 2, TTFT: Fixed(0), Gap: Fixed(0), Keep: 2}, false)
	for _, id := range []string{"a", "b", "c"} {
		if _, _, err := events(c, url, id); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ path, want string }{
		{"/truth", "b c"}, // the newest two
		{"/truth?id=c", "c"},
		{"/truth?id=" + fmt.Sprintf("%032s", "b"), "b"}, // by its trace id
		{"/truth?id=a", ""},
	}
	for _, tc := range tests {
		response, err := c.Get(url + tc.path)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		decoder := json.NewDecoder(response.Body)
		for decoder.More() {
			var got Truth
			if err := decoder.Decode(&got); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, got.RequestID)
			want, _ := s.Truth(got.RequestID)
			if d := got.Received.Sub(want.Received).Abs(); d > time.Microsecond {
				t.Errorf("%s: received is off by %v after the way over JSON", got.RequestID, d)
			}
			if d := got.Writes[1].Sub(want.Writes[1]).Abs(); d > time.Microsecond || got.TraceID != want.TraceID || len(got.Writes) != 2 {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		response.Body.Close()
		if got := strings.Join(ids, " "); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.path, got, tc.want)
		}
	}
	if response, err := c.Get(url + "/elsewhere"); err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("got %v, %v, want 404", response, err)
	} else {
		response.Body.Close()
	}
}

func TestTruthServerModes(t *testing.T) {
	t.Parallel()
	t.Run("batch is one write", func(t *testing.T) {
		t.Parallel()
		s, url, c := serveTruth(t, TruthConfig{Mode: TruthBatch, TTFT: Fixed(0)}, false)
		_, tokens, err := events(c, url, "x")
		if truth, _ := s.Truth("x"); err != nil || len(tokens) != 128 || len(truth.Writes) != 1 {
			t.Errorf("%d tokens in %d writes, %v; want 128 in 1", len(tokens), len(truth.Writes), err)
		}
	})
	t.Run("whole is one object", func(t *testing.T) {
		t.Parallel()
		_, url, c := serveTruth(t, TruthConfig{Mode: TruthWhole, Tokens: 3, TTFT: Fixed(0)}, false)
		response, err := c.Post(url+"/v1/chat/completions", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || !json.Valid(body) || !strings.Contains(string(body), `" moss fern kelp"`) {
			t.Errorf("got %s, %v", body, err)
		}
	})
}

func TestTruthServerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := ServeTruth(ctx, l, TruthConfig{TTFT: Fixed(3600)})
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
	for s.streams.Load() == 0 {
		runtime.Gosched()
	}
	cancel()
	s.Wait()
	if got, err := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("got %q, %v, want the end", got, err)
	}
}
