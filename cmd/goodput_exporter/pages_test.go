package main

import (
	"compress/gzip"
	"context"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/go-kit/log"

	"goodput_exporter/config"
	"goodput_exporter/probe/probetest"
)

var oneModel = []probetest.Model{{Name: "m", TTFT: probetest.Fixed(0.02), Gap: probetest.Fixed(0.003)}}

func TestPages(t *testing.T) {
	t.Parallel()
	file := configure(t, strings.Replace(oneTarget(simulate(t, probetest.Config{Models: oneModel})),
		"model: m,", "model: m, http: {authorization: {credentials: sesame-open}},", 1))
	d := launch(t, "--config.file="+file)
	eventually(t, "ready", func() bool { return get(t, d.url+"/-/ready").status == http.StatusOK })

	for _, c := range []struct {
		method, path string
		status       int
		contentType  string
		holds        string
	}{
		{"GET", "/metrics", 200, "text/plain; version=0.0.4", "\ngoodput_config_last_reload_successful 1\n"},
		{"HEAD", "/metrics", 200, "text/plain; version=0.0.4", ""},
		{"POST", "/metrics", 405, "", ""},
		{"GET", "/", 200, "text/html", "goodput_exporter"},
		{"GET", "/-/healthy", 200, "text/plain", "healthy"},
		{"HEAD", "/-/healthy", 200, "text/plain", ""},
		{"GET", "/-/ready", 200, "text/plain", "is ready"},
		{"GET", "/-/reload", 405, "", ""},
		{"POST", "/-/reload", 200, "", ""},
		{"GET", "/config", 200, "application/yaml", "credentials: <secret>"},
		{"POST", "/config", 405, "", ""},
		{"GET", "/debug/pprof/", 200, "text/html", "goroutine"},
		{"GET", "/debug/pprof/goroutine?debug=1", 200, "text/plain", "goroutine profile"},
		{"GET", "/debug/pprof/cmdline", 200, "text/plain", ""},
		{"POST", "/debug/pprof/symbol", 200, "text/plain", "num_symbols"},
		{"GET", "/nothing", 404, "", ""},
	} {
		p := request(t, c.method, d.url+c.path)
		if p.status != c.status {
			t.Errorf("%s %s: status %d, want %d", c.method, c.path, p.status, c.status)
		}
		if got := p.header.Get("Content-Type"); !strings.HasPrefix(got, c.contentType) {
			t.Errorf("%s %s: Content-Type %q, want %q", c.method, c.path, got, c.contentType)
		}
		if !strings.Contains(p.body, c.holds) {
			t.Errorf("%s %s: no %q in:\n%s", c.method, c.path, c.holds, p.body)
		}
	}
	if allow := get(t, d.url+"/-/reload").header.Get("Allow"); allow != "POST" {
		t.Errorf("GET /-/reload: Allow %q, want POST", allow)
	}
}

func TestLandingPageLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	file := configure(t, oneTarget(simulate(t, probetest.Config{Models: oneModel})))
	d := launch(t, "--config.file="+file, "--web.telemetry-path=/goodput/metrics")
	eventually(t, "ready", func() bool { return get(t, d.url+"/-/ready").status == http.StatusOK })

	base, err := url.Parse(d.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(get(t, d.url+"/").body, -1)
	found := map[string]bool{}
	for _, link := range links {
		u, err := base.Parse(html.UnescapeString(link[1]))
		if err != nil {
			t.Fatal(err)
		}
		if u.Host != base.Host || strings.HasSuffix(u.Path, "/profile") || strings.HasSuffix(u.Path, "/trace") {
			continue // not ours, or it takes seconds
		}
		found[u.Path] = true
		if p := get(t, u.String()); p.status != http.StatusOK {
			t.Errorf("the link %s leads to status %d", link[1], p.status)
		}
	}
	for _, path := range []string{"/goodput/metrics", "/config", "/-/healthy", "/-/ready"} {
		if !found[path] {
			t.Errorf("the landing page has no link to %s", path)
		}
	}
}

func TestMetricsInEachFormat(t *testing.T) {
	t.Parallel()
	file := configure(t, oneTarget(simulate(t, probetest.Config{Models: oneModel})))
	d := launch(t, "--config.file="+file)
	eventually(t, "the first probe is good", func() bool {
		return scrape(t, d.url).of(t, "goodput_slo_events_total", "target", "one", "slo", "goodput", "result", "good") >= 1
	})

	open := get(t, d.url+"/metrics", "Accept", "application/openmetrics-text;version=1.0.0")
	if got := open.header.Get("Content-Type"); !strings.HasPrefix(got, "application/openmetrics-text") {
		t.Errorf("Content-Type %q", got)
	}
	if !strings.HasSuffix(open.body, "\n# EOF\n") {
		t.Error("OpenMetrics without an end")
	}
	exemplar := regexp.MustCompile(`(?m)^goodput_time_to_first_token_seconds_bucket\{.*\} 1 # \{trace_id="[0-9a-f]{32}"\} `)
	if !exemplar.MatchString(open.body) {
		t.Error("no bucket of the first TTFT has an exemplar with a trace id")
	}

	packed := get(t, d.url+"/metrics", "Accept-Encoding", "gzip")
	if got := packed.header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("Content-Encoding %q, want gzip", got)
	}
	r, err := gzip.NewReader(strings.NewReader(packed.body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := parse(t, string(text)).balance(); err != nil {
		t.Error(err)
	}
}

func TestReadyOnceEverySeriesHadItsFirstSlot(t *testing.T) {
	t.Parallel()
	file := configure(t, oneTarget(simulate(t, probetest.Config{Models: oneModel})))
	f := &flags{telemetryPath: "/metrics"}
	d := newDaemon(f, func() (*config.Config, error) { return config.Load(file) }, log.NewNopLogger(), nothingOutside(t))
	defer d.close()
	if err := d.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	handler, err := routes(d, f)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	if p := get(t, server.URL+"/-/ready"); p.status != http.StatusServiceUnavailable || !strings.Contains(p.body, "first slot") {
		t.Errorf("before the first slot: status %d: %s", p.status, p.body)
	}
	if p := get(t, server.URL+"/-/healthy"); p.status != http.StatusOK {
		t.Errorf("before the first slot: healthy has status %d", p.status)
	}
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan struct{})
	close(listening)
	ended := make(chan error, 1)
	go func() { ended <- d.probe(ctx, listening) }()
	eventually(t, "ready", func() bool { return get(t, server.URL+"/-/ready").status == http.StatusOK })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTelemetryPath(t *testing.T) {
	t.Parallel()
	file := configure(t, oneTarget(simulate(t, probetest.Config{Models: oneModel})))
	t.Run("the root", func(t *testing.T) {
		t.Parallel()
		d := launch(t, "--config.file="+file, "--web.telemetry-path=/")
		if p := get(t, d.url+"/"); !strings.Contains(p.body, "goodput_exporter_build_info") {
			t.Errorf("status %d, no metrics", p.status)
		}
	})
	for _, path := range []string{"", "metrics", "/config", "/-/ready", "/{x}", "/a b", "/a/../b"} {
		t.Run("refused "+path, func(t *testing.T) {
			t.Parallel()
			code, said := exited(t, "--config.file="+file, "--web.telemetry-path="+path)
			if code != 2 || !strings.Contains(said, "web.telemetry-path") {
				t.Errorf("code %d: %s", code, said)
			}
		})
	}
}
