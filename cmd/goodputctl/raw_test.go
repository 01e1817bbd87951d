package main_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"goodput_exporter/probe/probetest"
)

const (
	okHead   = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	okEvents = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"moss\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	okLength = "Content-Length: 97\r\n\r\n"
)

// rawServer answers the requests on one connection after the other with these bytes, then closes it. It listens for no
// more connections than there are answers.
func rawServer(t *testing.T, connections ...[]string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i, answers := range connections {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if i == len(connections)-1 {
				listener.Close()
			}
			answer(conn, answers)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return "http://" + listener.Addr().String()
}

func answer(conn net.Conn, answers []string) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for _, a := range answers {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		if _, err := io.WriteString(conn, a); err != nil {
			return
		}
	}
}

// What HTTP itself can do, beyond what a script of the cases can.
func TestRawAnswers(t *testing.T) {
	ok := okHead + okLength + okEvents
	for name, tc := range map[string]struct {
		connections [][]string
		count       string
		outcome     string
		reason      string
		flag        string
	}{
		"100 Continue first":              {[][]string{{"HTTP/1.1 100 Continue\r\n\r\n" + ok}}, "1", "good", "", ""},
		"103 Early Hints first":           {[][]string{{"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ok}}, "1", "good", "", ""},
		"trailers":                        {[][]string{{okHead + "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n61\r\n" + okEvents + "\r\n0\r\nX-T: 1\r\n\r\n"}}, "1", "good", "", ""},
		"chunk extensions":                {[][]string{{okHead + "Transfer-Encoding: chunked\r\n\r\n61;a=b\r\n" + okEvents + "\r\n0\r\n\r\n"}}, "1", "good", "", ""},
		"broken chunks after the finish":  {[][]string{{okHead + "Transfer-Encoding: chunked\r\n\r\n61\r\n" + okEvents + "\r\nzz\r\n"}}, "1", "good", "", "reset_after_finish"},
		"broken chunks":                   {[][]string{{okHead + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"}}, "1", "interrupted", "protocol", "truncated"},
		"no HTTP":                         {[][]string{{"SSH-2.0-OpenSSH_9.2\r\n"}}, "1", "connection_error", "protocol", ""},
		"cut inside the head":             {[][]string{{"HTTP/1.1 200 OK\r\nContent-T"}}, "1", "connection_error", "", ""},
		"reused and cut inside the head":  {[][]string{{ok, "HTTP/1.1 200 OK\r\nContent-T"}, {ok}}, "2", "connection_error", "", ""},
		"stale, and nobody listens":       {[][]string{{ok, ""}}, "2", "connection_error", "refused", "stale_retry"},
		"stale, and the next one is good": {[][]string{{ok, ""}, {ok}}, "2", "good", "", "stale_retry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := rawServer(t, tc.connections...)
			results := parse(t, goodputctl(t, nil, "probe", "--url="+url, "--model=m", "--output=json", "--timeout=5s", "--count="+tc.count))
			got := results[len(results)-1]
			if got["outcome"] != tc.outcome || tc.reason != "" && got["reason"] != tc.reason {
				t.Errorf("%v (%v), want %s (%s): %v", got["outcome"], got["reason"], tc.outcome, tc.reason, got)
			}
			if tc.flag != "" && !hasFlag(got, tc.flag) {
				t.Errorf("flags %v, want %s among them", got["flags"], tc.flag)
			}
		})
	}
}

func hasFlag(result map[string]any, flag string) bool {
	flags, _ := result["flags"].([]any)
	for _, f := range flags {
		if f == flag {
			return true
		}
	}
	return false
}

// Credentials do not follow a redirect to another host; the request does, where that is allowed.
func TestRedirectToAnotherHost(t *testing.T) {
	var authorization, method string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization, method = r.Header.Get("Authorization"), r.Method
		_, _ = io.WriteString(w, okEvents)
	}))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+"/elsewhere", http.StatusPermanentRedirect))
	defer first.Close()
	r := goodputctl(t, []string{"LLM_API_KEY=s3cret-of-the-first-host"}, "probe", "--url="+first.URL, "--model=m", "--output=json", "--follow-redirects")
	if got := parse(t, r); r.code != 0 || got[0]["outcome"] != "good" {
		t.Errorf("exit code %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if authorization != "" || method != http.MethodPost {
		t.Errorf("the other host got a %s with the credentials %q", method, authorization)
	}
}

// Certificates are trusted by --ca-file as by SSL_CERT_FILE, and not without.
func TestCertificates(t *testing.T) {
	c := caseByID(t, "A26.1") // HTTP/2, good
	p := newPlayer(t, c)
	ca := writeFile(t, "ca.pem", p.CertPEM())
	args := append([]string{"probe"}, probetest.Args(c, p.URL())...)
	for name, tc := range map[string]struct {
		env     []string
		args    []string
		outcome string
		reason  any
	}{
		"ca file":         {nil, []string{"--ca-file=" + ca}, "good", nil},
		"environment":     {[]string{"SSL_CERT_FILE=" + ca}, nil, "good", nil},
		"not verified":    {nil, []string{"--insecure-skip-verify"}, "good", nil},
		"nothing trusted": {nil, nil, "connection_error", "tls"},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse(t, goodputctl(t, tc.env, append(args, tc.args...)...))[0]
			if got["outcome"] != tc.outcome || got["reason"] != tc.reason {
				t.Errorf("%v (%v), want %s (%v): %v", got["outcome"], got["reason"], tc.outcome, tc.reason, got["error"])
			}
			if tc.outcome == "good" && got["http_version"] != "HTTP/2.0" {
				t.Errorf("spoke %v", got["http_version"])
			}
		})
	}
}

// The wrong scheme is told as what it looks like from outside.
func TestWrongScheme(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	for _, tc := range []struct{ url, outcome, reason string }{
		{"https" + plain.URL[len("http"):], "connection_error", "tls"},
		{"http" + secure.URL[len("https"):], "client_error", "request"},
	} {
		got := parse(t, goodputctl(t, nil, "probe", "--url="+tc.url, "--model=m", "--output=json"))[0]
		if got["outcome"] != tc.outcome || got["reason"] != tc.reason {
			t.Errorf("%s: %v (%v), want %s (%s)", tc.url, got["outcome"], got["reason"], tc.outcome, tc.reason)
		}
	}
}
