package probetest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// oneCase reads a case from the lines below its id.
func oneCase(t *testing.T, yaml string) Case {
	t.Helper()
	text := "version: 1\ncases:\n  - id: T\n" + indent(yaml)
	if !strings.Contains(yaml, "expect") {
		text += "    expect: {outcome: good}\n"
	}
	cases, err := ReadCases(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return cases[0]
}

func indent(yaml string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(yaml, "\n") + "\n") {
		b.WriteString("    " + strings.ReplaceAll(line, "\t", "  "))
	}
	return b.String()
}

func play(t *testing.T, c Case, options PlayerOptions) *Player {
	t.Helper()
	p, err := NewPlayer(c, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// client trusts the player and follows no redirects.
func client(t *testing.T, p *Player) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!p.c.HTTP2())
	protocols.SetHTTP2(p.c.HTTP2() && p.tls != nil)
	protocols.SetUnencryptedHTTP2(p.c.HTTP2() && p.tls == nil)
	transport := &http.Transport{Protocols: protocols, DisableCompression: true}
	if p.tls != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: p.CertPool()}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post sends a request and reads the answer to its end or error.
func post(ctx context.Context, c *http.Client, url, body string) (*http.Response, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	response, err := c.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	return response, got, err
}

const threeWrites = `
http: {framing: %s}
script:
	- {at_ms: 10, write: "one "}
	- {at_ms: 60, write: "two "}
	- {at_ms: 120, write: "three"}
	- {at_ms: 150, do: %s}
`

func TestPlayerWritesAtItsTimes(t *testing.T) {
	t.Parallel()
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", tls), func(t *testing.T) {
			t.Parallel()
			p := play(t, oneCase(t, fmt.Sprintf(threeWrites, "chunked", "end")), PlayerOptions{TLS: tls})
			var sent time.Time
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				GotConn: func(httptrace.GotConnInfo) { sent = time.Now() },
			})
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.URL(), strings.NewReader("{}"))
			response, err := client(t, p).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body := bufio.NewReader(response.Body)
			for _, want := range []struct {
				at   time.Duration
				text string
			}{{10 * time.Millisecond, "one "}, {60 * time.Millisecond, "two "}, {120 * time.Millisecond, "three"}} {
				got := make([]byte, len(want.text))
				_, err := io.ReadFull(body, got)
				if at := time.Since(sent); at < want.at {
					t.Errorf("%q arrived after %v, before its time of %v", want.text, at, want.at)
				}
				if err != nil || string(got) != want.text {
					t.Errorf("got %q (%v), want %q", got, err, want.text)
				}
			}
			if _, err := body.ReadByte(); !errors.Is(err, io.EOF) || time.Since(sent) < 150*time.Millisecond {
				t.Errorf("the body ended with %v after %v, want a clean end at 150 ms", err, time.Since(sent))
			}
		})
	}
}

func TestPlayerEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, framing, do string
		want              error // nil: a clean end
	}{
		{"chunked, end", "chunked", "end", nil},
		{"chunked, fin", "chunked", "fin", io.ErrUnexpectedEOF},
		{"chunked, rst", "chunked", "rst", syscall.ECONNRESET},
		{"length, end", "length", "end", nil},
		{"length, fin", "length", "fin", io.ErrUnexpectedEOF},
		{"close, end", "close", "end", nil},
		{"close, fin looks like an end", "close", "fin", nil},
		{"close, rst", "close", "rst", syscall.ECONNRESET},
		{"HTTP/1.0, close, end", `close, version: "1.0"`, "end", nil},
	}
	for _, tc := range tests {
		for _, tls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, tls=%v", tc.name, tls), func(t *testing.T) {
				t.Parallel()
				p := play(t, oneCase(t, fmt.Sprintf(threeWrites, tc.framing, tc.do)), PlayerOptions{TLS: tls})
				_, got, err := post(t.Context(), client(t, p), p.URL(), "{}")
				if !errors.Is(err, tc.want) {
					t.Errorf("the body ended with %v, want %v", err, tc.want)
				}
				if string(got) != "one two three" {
					t.Errorf("body %q, want all three writes", got)
				}
			})
		}
	}
}

func TestPlayerSendsNoByteBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	for _, do := range []string{"fin", "rst"} {
		p := play(t, oneCase(t, fmt.Sprintf("script:\n\t- {at_ms: 5, do: %s}", do)), PlayerOptions{})
		conn := dial(t, p)
		got, err := io.ReadAll(conn)
		if len(got) > 0 {
			t.Errorf("%s: got %q, want nothing", do, got)
		}
		if reset := errors.Is(err, syscall.ECONNRESET); reset != (do == "rst") {
			t.Errorf("%s: the connection ended with %v", do, err)
		}
	}
}

// dial sends one request by hand.
func dial(t *testing.T, p *Player) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /v1/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
	return conn
}

func TestPlayerHeadGoesOutWithTheFirstWriteByteForByte(t *testing.T) {
	t.Parallel()
	p := play(t, oneCase(t, `
http: {status: 429, headers: [[Content-Type, a/b], [retry-AFTER, "3"]], framing: length}
script:
	- {at_ms: 0, write_parts: ["a", {repeat: "xy", times: 2}]}
	- {at_ms: 1, write_b64: "8J+M"}
	- {at_ms: 2, do: end}
`), PlayerOptions{})
	conn := dial(t, p)
	want := "HTTP/1.1 429 Too Many Requests\r\nContent-Type: a/b\r\nretry-AFTER: 3\r\nContent-Length: 8\r\n\r\naxyxy\xf0\x9f\x8c"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	seen := p.Seen()
	if r := seen.Requests[0]; string(r.Body) != "abcde" || r.Method != http.MethodPost || r.Path != "/v1/x" || r.Header.Get("X-A") != "b" {
		t.Errorf("seen: %+v", r)
	}
}

func TestPlayerHoldsUntilTheClientCloses(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.1", "2"} {
		p := play(t, oneCase(t, fmt.Sprintf(`
http: {version: "%s"}
script:
	- {at_ms: 0, write: "x"}
	- {at_ms: 0, do: hold}
expect: {outcome: timeout, closed_by_ms: 5000}
`, version)), PlayerOptions{TLS: version == "2"})
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		_, got, err := post(ctx, client(t, p), p.URL(), "{}")
		if !errors.Is(err, context.DeadlineExceeded) || string(got) != "x" {
			t.Errorf("HTTP/%s: got %q, %v", version, got, err)
		}
		if seen := p.Seen(); seen.ClosedAfter == nil || *seen.ClosedAfter > 4*time.Second {
			t.Errorf("HTTP/%s: closed after %v, want about 400 ms", version, seen.ClosedAfter)
		}
	}
}

func TestPlayerPlansConnectionsAndRequests(t *testing.T) {
	t.Parallel()
	p := play(t, oneCase(t, `
connections:
	- requests:
		- {http: {framing: length}, script: [{at_ms: 0, write: "1.1"}, {at_ms: 0, do: end}]}
		- {http: {framing: length}, script: [{at_ms: 0, write: "1.2"}, {at_ms: 0, do: end}]}
		- {http: {framing: close}, script: [{at_ms: 0, write: "1.3"}, {at_ms: 0, do: end}]}
	- requests:
		- {script: [{at_ms: 0, write: "2.1"}, {at_ms: 0, do: end}]}
`), PlayerOptions{})
	c := client(t, p)
	for _, want := range []string{"1.1", "1.2", "1.3", "2.1", "2.1"} {
		_, got, err := post(t.Context(), c, p.URL(), "{}")
		if err != nil || string(got) != want {
			t.Errorf("got %q (%v), want %q", got, err, want)
		}
	}
	if seen := p.Seen(); seen.Connections != 2 || len(seen.Requests) != 5 {
		t.Errorf("saw %d connections and %d requests, want 2 and 5", seen.Connections, len(seen.Requests))
	}
}

func TestPlayerNotesWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	p := play(t, oneCase(t, "script: [{at_ms: 0, do: end}]"), PlayerOptions{})
	conn, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "hello\r\n\r\n")
	if got, err := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("got %q, %v, want a closed connection", got, err)
	}
	if seen := p.Seen(); len(seen.Requests) != 0 || seen.Connections != 1 || len(seen.Errors) != 1 || !strings.Contains(seen.Errors[0], "hello") {
		t.Errorf("seen: %+v", seen)
	}
}

func TestPlayerHTTP2(t *testing.T) {
	t.Parallel()
	const head = "http: {version: \"2\"}\nscript:\n\t- {at_ms: 0, write: \"one\"}\n"
	big := strings.Repeat("z", 6<<20) // over the window of a stream, which is 4 MiB with net/http
	tests := []struct {
		name, yaml, want string
		check            func(error) bool
	}{
		{"end", head + "\t- {at_ms: 10, do: end}", "one", func(err error) bool { return err == nil }},
		{"reset", head + "\t- {at_ms: 10, do: \"h2_rst:INTERNAL_ERROR\"}", "one", func(err error) bool {
			return err != nil && strings.Contains(err.Error(), http2.ErrCodeInternal.String())
		}},
		{
			"goaway that covers the request", head + "\t- {at_ms: 5, do: h2_goaway}\n\t- {at_ms: 9, write: two}\n\t- {at_ms: 10, do: end}", "onetwo",
			func(err error) bool { return err == nil },
		},
		{"fin", head + "\t- {at_ms: 10, do: fin}", "one", func(err error) bool { return err != nil }},
		{"rst", head + "\t- {at_ms: 30, do: rst}", "one", func(err error) bool { return err != nil }},
		{
			"a write over the window", "http: {version: \"2\"}\nscript:\n\t- {at_ms: 0, write_parts: [{repeat: z, times: 6291456}]}\n\t- {at_ms: 0, do: end}", big,
			func(err error) bool { return err == nil },
		},
	}
	for _, tc := range tests {
		for _, tls := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, tls=%v", tc.name, tls), func(t *testing.T) {
				t.Parallel()
				p := play(t, oneCase(t, tc.yaml), PlayerOptions{TLS: tls})
				request := strings.Repeat("q", 300_000) // over the window that the player begins with
				response, got, err := post(t.Context(), client(t, p), p.URL(), request)
				if !tc.check(err) || !bytes.Equal(got, []byte(tc.want)) {
					t.Errorf("got %d bytes, %v", len(got), err)
				}
				if response != nil && response.ProtoMajor != 2 {
					t.Errorf("spoke %s", response.Proto)
				}
				if seen := p.Seen(); len(seen.Requests) != 1 || len(seen.Requests[0].Body) != len(request) {
					t.Errorf("saw %d requests, errors %v", len(seen.Requests), seen.Errors)
				}
			})
		}
	}
}

func TestPlayerPlaysEveryCase(t *testing.T) {
	t.Parallel()
	cases, err := LoadCases("testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != 50 {
		t.Errorf("%d cases, want 50", len(cases))
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			p := play(t, c, PlayerOptions{TLS: c.HTTP2()})
			const patience = 2650 * time.Millisecond // in the middle between two writes of A27
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, got, err := post(ctx, client(t, p), p.URL(), "{}")
			var want []byte
			x := c.exchange(0, 0)
			for _, s := range x.Script {
				if s.At < patience {
					want = append(want, s.Write...)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got %d bytes of body, want %d (%v)", len(got), len(want), err)
			}
			if clean := x.Script[len(x.Script)-1].Do == DoEnd; clean != (err == nil) {
				t.Errorf("the body ended with %v", err)
			}
			if seen := p.Seen(); len(seen.Requests) != 1 || len(seen.Errors) > 0 {
				t.Errorf("seen: %d requests, errors %v", len(seen.Requests), seen.Errors)
			}
		})
	}
}
