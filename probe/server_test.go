package probe_test

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/probetest"
)

// server starts an endpoint for one test, prepares the series that is to probe it, and returns its URL.
type server func(t *testing.T, s *config.Series) string

// script answers every request with the steps.
func script(status int, framing string, steps ...probetest.Step) server {
	return exchanges(exchange(status, "1.1", framing, nil, steps...))
}

// stream answers with a stream of events, and stream2 does by HTTP/2.
func stream(steps ...probetest.Step) server { return script(200, "chunked", steps...) }

func stream2(steps ...probetest.Step) server { return exchanges(exchange(200, "2", "", nil, steps...)) }

// http10 answers as HTTP/1.0 does: the end of the connection is that of the body.
func http10(steps ...probetest.Step) server {
	return exchanges(exchange(200, "1.0", "close", nil, steps...))
}

// status answers with that status, body and headers, name by value.
func status(code int, body string, headers ...string) server {
	return exchanges(exchange(code, "1.1", "length", headers, write(body), end))
}

// redirect sends the first request elsewhere, and answers the second one with the steps, if there are any.
func redirect(code int, to string, steps ...probetest.Step) server {
	var headers []string
	if to != "" {
		headers = []string{"Location", to}
	}
	list := []probetest.Exchange{exchange(code, "1.1", "length", headers, end)}
	if len(steps) > 0 {
		list = append(list, exchange(200, "1.1", "chunked", nil, steps...))
	}
	return exchanges(list...)
}

// encoded answers with a stream that says how it is encoded, and zipped with one that is in gzip, flushed at every step.
func encoded(coding string, steps ...probetest.Step) server {
	return exchanges(exchange(200, "1.1", "chunked", []string{"Content-Encoding", coding}, steps...))
}

func zipped(steps ...probetest.Step) server {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	steps = append([]probetest.Step{}, steps...)
	for i, step := range steps {
		if step.Do == probetest.DoEnd {
			z.Close()
			tail := step
			tail.Do, tail.Write = probetest.DoWrite, bytes.Clone(b.Bytes())
			return encoded("gzip", append(steps[:i:i], tail, step)...)
		}
		z.Write(step.Write)
		z.Flush()
		steps[i].Write = bytes.Clone(b.Bytes())
		b.Reset()
	}
	return encoded("gzip", steps...)
}

func zip(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

func exchange(status int, version, framing string, headers []string, steps ...probetest.Step) probetest.Exchange {
	head := probetest.Head{Version: version, Status: status, Framing: framing}
	for i := 0; i+1 < len(headers); i += 2 {
		head.Headers = append(head.Headers, [2]string{headers[i], headers[i+1]})
	}
	return probetest.Exchange{HTTP: head, Script: steps}
}

// exchanges plays the exchanges on every connection, request by request.
func exchanges(list ...probetest.Exchange) server {
	return connections(probetest.ConnectionPlan{Requests: list})
}

// connections plays the plans, connection by connection.
func connections(plans ...probetest.ConnectionPlan) server {
	return func(t *testing.T, s *config.Series) string {
		t.Helper()
		p := newPlayer(t, plans...)
		if pem := p.CertPEM(); pem != nil {
			s.Target.HTTP.EnableHTTP2 = true
			trust(t, s, pem)
		}
		return p.URL()
	}
}

func newPlayer(t *testing.T, plans ...probetest.ConnectionPlan) *probetest.Player {
	t.Helper()
	c := probetest.Case{ID: t.Name(), Count: 1, BasePath: "/v1", Connections: plans}
	p, err := probetest.NewPlayer(c, probetest.PlayerOptions{TLS: c.HTTP2()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func trust(t *testing.T, s *config.Series, pem []byte) {
	t.Helper()
	s.Target.HTTP.TLSConfig.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(s.Target.HTTP.TLSConfig.CAFile, pem, 0o600); err != nil {
		t.Fatal(err)
	}
}

// raw hands every connection to do when the client has sent something.
func raw(do func(*net.TCPConn)) server {
	return func(t *testing.T, _ *config.Series) string {
		t.Helper()
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		t.Cleanup(func() {
			l.Close()
			running.Wait()
		})
		running.Go(func() {
			for {
				c, err := l.AcceptTCP()
				if err != nil {
					return
				}
				running.Go(func() {
					defer c.Close()
					if _, err := c.Read(make([]byte, 64<<10)); err == nil {
						do(c)
					}
				})
			}
		})
		return "http://" + l.Addr().String()
	}
}

// says writes and closes.
func says(text string) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		io.WriteString(c, text)
		c.CloseWrite()
		io.Copy(io.Discard, c) // a close with unread bytes would be a reset
	}
}

func reset(c *net.TCPConn) { c.SetLinger(0) }
func holds(c *net.TCPConn) { io.Copy(io.Discard, c) }

// nobody is an URL that no server of ours has.
func nobody(u string) server { return func(*testing.T, *config.Series) string { return u } }

// scheme changes the scheme of a server's URL.
func scheme(scheme string, next server) server {
	return func(t *testing.T, s *config.Series) string {
		t.Helper()
		_, rest, _ := strings.Cut(next(t, s), "://")
		return scheme + "://" + rest
	}
}

// proxy is the proxy that the client has to use.
func proxy(u string) option {
	return func(s *config.Series) {
		parsed, err := url.Parse(u)
		if err != nil {
			panic(err)
		}
		s.Target.HTTP.ProxyURL = promconfig.URL{URL: parsed}
	}
}

func refusingProxy(t *testing.T, s *config.Series) string {
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(p.Close)
	proxy(p.URL)(s)
	return "https://127.0.0.1:1"
}

// secure is a server with TLS that nobody gets an answer from.
func secure(prepare func(*testing.T, *tls.Config, *config.Series)) server {
	return func(t *testing.T, s *config.Series) string {
		t.Helper()
		authority, err := probetest.NewAuthority()
		if err != nil {
			t.Fatal(err)
		}
		h := httptest.NewUnstartedServer(http.NotFoundHandler())
		h.Config.ErrorLog = log.New(io.Discard, "", 0)
		h.TLS = authority.ServerConfig()
		trust(t, s, authority.PEM())
		prepare(t, h.TLS, s)
		h.StartTLS()
		t.Cleanup(h.Close)
		return h.URL
	}
}

func untrusted(_ *testing.T, _ *tls.Config, s *config.Series) { s.Target.HTTP.TLSConfig.CAFile = "" }

func otherName(_ *testing.T, _ *tls.Config, s *config.Series) {
	s.Target.HTTP.TLSConfig.ServerName = "other.invalid"
}

func clientCertificate12(_ *testing.T, c *tls.Config, _ *config.Series) {
	c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12
}

func clientCertificate13(_ *testing.T, c *tls.Config, _ *config.Series) {
	c.ClientAuth, c.MinVersion = tls.RequireAnyClientCert, tls.VersionTLS13
}

func expired(t *testing.T, c *tls.Config, s *config.Series) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	trust(t, s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// newProber returns a prober of the series with a client of its own.
func newProber(t *testing.T, s *config.Series) *probe.Prober {
	t.Helper()
	clients := probe.NewClients()
	t.Cleanup(clients.Close)
	client, err := clients.Get(s.Target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Release)
	p, err := probe.New(s, client, "goodput_exporter/test")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func toJSON(t *testing.T, r *probe.Result) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
