package page

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/probe"
)

func TestMostPressingFirst(t *testing.T) {
	nodes := parse(t, get(t, newPage(t, Options{}), "/").body)
	want := []string{"down/chat", "burning/chat", "no_data/chat", "paused/chat", "ok/chat"}
	if diff := cmp.Diff(want, values(nodes, "tbody", "data-key")); diff != "" {
		t.Errorf("order of the series (-want +got):\n%s", diff)
	}
	want = []string{"down", "burning", "no_data", "paused", "ok"}
	if diff := cmp.Diff(want, values(nodes, "tbody", "data-state")); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if title := "1 down, 1 burning, 1 no data, 1 paused, 1 ok – goodput"; !strings.HasPrefix(text(nodes[0].Parent), title) {
		t.Errorf("the title is not %q", title)
	}
}

func TestRowSaysHowTheSeriesIs(t *testing.T) {
	nodes := parse(t, get(t, newPage(t, Options{}), "/").body)
	for key, parts := range map[string][]string{
		"down/chat":    {"Down", "for", "0 % 0/19", "no answer to any of", "connection_error (protocol)", "2 s day 2.09 s", "limit 8 s", "in 6 min"},
		"burning/chat": {"Burning", "50 % 60/120", "ttft missed", "50×", "env=prod", "region=eu"},
		"no_data/chat": {"No data", "no attempts", "no probe was judged yet"},
		"paused/chat":  {"Paused", "paused by ada: new GPUs"},
		"ok/chat":      {"OK", "100 % 120/120 96.8–100", "200 ms day", "limit 800 ms", "0 %"},
	} {
		got := text(with(nodes, "data-key", key)...)
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s does not say %q: %s", key, part, got)
			}
		}
	}
	strip := with(nodes, "aria-label", "last 32 probes: 16 good, 16 slo violation (ttft)")
	if len(strip) != 1 {
		t.Errorf("there are %d strips of the burning series, not one", len(strip))
	}
}

func TestSortAndFilter(t *testing.T) {
	p := newPage(t, Options{})
	for name, tc := range map[string]struct {
		query string
		want  []string
	}{
		"by name":               {"sort=series", []string{"burning/chat", "down/chat", "no_data/chat", "ok/chat", "paused/chat"}},
		"by name, reversed":     {"sort=series&reverse=1", []string{"paused/chat", "ok/chat", "no_data/chat", "down/chat", "burning/chat"}},
		"lowest attainment":     {"sort=1h", []string{"burning/chat", "down/chat", "paused/chat", "ok/chat", "no_data/chat"}},
		"highest burn":          {"sort=burn", []string{"burning/chat", "down/chat", "paused/chat", "ok/chat", "no_data/chat"}},
		"longest TTFT":          {"sort=ttft", []string{"burning/chat", "down/chat", "paused/chat", "ok/chat", "no_data/chat"}},
		"state":                 {"q=state%3Ddown", []string{"down/chat"}},
		"label and text":        {"q=env%3Dprod+BURN", []string{"burning/chat"}},
		"label of another":      {"q=env%3Dstaging", nil},
		"a part of a label":     {"q=sta+env%3Dprod", nil},
		"nothing has that name": {"q=nothing%3Dprod", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := values(parse(t, get(t, p, "/?"+tc.query).body), "tbody", "data-key")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThousandsOfSeriesComeInPages(t *testing.T) {
	l := live.New(live.Options{})
	cfg := &config.Config{}
	for i := range 2*pageRows + 1 {
		cfg.Series = append(cfg.Series, testSeries("target-"+string(rune('a'+i/26))+string(rune('a'+i%26)), "chat"))
	}
	l.Update(cfg)
	p := newPage(t, Options{Live: l})
	seen := map[string]bool{}
	pages := 0
	for address := "/?sort=series"; address != ""; pages++ {
		nodes := parse(t, get(t, p, address).body)
		for _, key := range values(nodes, "tbody", "data-key") {
			seen[key] = true
		}
		address = ""
		for _, n := range with(nodes, "rel", "next") {
			address, _ = attr(n, "href")
		}
	}
	if pages != 3 || len(seen) != len(cfg.Series) {
		t.Errorf("%d series on %d pages, want %d on 3", len(seen), pages, len(cfg.Series))
	}
}

// What is shared is never older than a second, and rows are what the page shows.
func TestRowsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		p := newPage(t, Options{Live: l})
		row := func() string { return text(parse(t, get(t, p, "/rows?key=ok/chat&key=none/chat").body)[0].Parent) }
		before := row()
		l.Series("ok/chat").Observe(result(time.Now(), probe.Good))
		if row() != before {
			t.Error("the row was not shared")
		}
		time.Sleep(maxAge)
		if after := row(); after == before || !strings.Contains(after, "121/121") {
			t.Errorf("a second later: %s", after)
		}
		if whole := text(with(parse(t, get(t, p, "/").body), "data-key", "ok/chat")...); whole != row() {
			t.Errorf("the page says %q, the row %q", whole, row())
		}
	})
}

func TestSeriesPage(t *testing.T) {
	p := newPage(t, Options{Silences: &silences{}})
	body := get(t, p, "/series?target=burning&scenario=chat").body
	nodes := parse(t, body)
	said := text(nodes[0].Parent)
	for _, part := range []string{
		"burning / chat", "Burning", "critical", "TTFT, last probes", "limit 800 ms", "slo violation", "Last failures", "every 15 s", "Pause",
	} {
		if !strings.Contains(said, part) {
			t.Errorf("the page does not say %q", part)
		}
	}
	if diff := cmp.Diff([]string{"goodput", "availability", "ttft", "tpot", "e2e", "complete"}, values(nodes, "tr", "data-slo")); diff != "" {
		t.Errorf("SLOs (-want +got):\n%s", diff)
	}
	// Every failure leads to its story.
	ids := values(nodes, "tr", "data-id")
	if len(ids) < live.DefaultMaxNotGood {
		t.Fatalf("only %d probes are listed", len(ids))
	}
	get(t, p, storyURL(ids[0]))
	if a := do(p, request(http.MethodGet, "/series?target=none&scenario=chat", "")); a.code != http.StatusNotFound {
		t.Errorf("a series that does not exist: %d", a.code)
	}
}

func TestStoryExplainsAProbe(t *testing.T) {
	l := newLive(t)
	l.Series("ok/chat").Observe(result(time.Now(), probe.SLOViolation, func(r *probe.Result) {
		r.Target, r.Scenario = "ok", "chat"
		r.TTFB = new(150 * time.Millisecond)
		r.Phases = []probe.Phase{{Name: probe.PhaseConnect, Duration: 20 * time.Millisecond}, {Name: probe.PhaseHeaders, Duration: 130 * time.Millisecond}}
		r.ChunkGaps = []time.Duration{30 * time.Millisecond, 90 * time.Millisecond}
		r.Flags = []probe.Flag{probe.FlagLengthLimited}
		r.Header = http.Header{"Server": {"envoy"}, "X-Served-By": {"gpu-17", "gpu-18"}}
		r.RequestID, r.TraceID = "req-7", "4bf92f3577b34da6a3ce929d0e0e4736"
		r.InputTokens, r.OutputTokens, r.OutputTokensSource = new(120), new(41), probe.TokensUsage
	}))
	p := newPage(t, Options{Live: l, ConfigFile: "it's/goodput.yml", Request: func(key string) (Request, bool) {
		return Request{URL: "https://llm.example.net:8443/v1/chat/completions", Header: http.Header{"Authorization": {"Bearer <secret>"}}}, key == "ok/chat"
	}})
	id := l.Results(live.Filter{Target: "ok", Outcome: live.NotGood})[0].ID
	said := text(parse(t, get(t, p, storyURL(id)).body)[0].Parent)
	for _, part := range []string{
		"not as a user may expect: TTFT was 1.84 s, over its limit of 800 ms.",
		"Method POST", "URL https://llm.example.net:8443/v1/chat/completions", "Authorization Bearer <secret>",
		"headers from 20 ms for 130 ms", "first token from 150 ms for 1.69 s",
		"2 1.87 s 30 ms 3 1.96 s 90 ms", "length limited", "Status HTTP/1.1 200 OK", "Request id req-7", "Server envoy X-Served-By gpu-17, gpu-18", "Finish reason stop",
		"Trace id 4bf92f3577b34da6a3ce929d0e0e4736", "Input tokens 120", "Output tokens 41", "Output tokens by usage", "Hello",
		`goodputctl probe --config.file='it'\''s/goodput.yml' --target=ok --scenario=chat`,
	} {
		if !strings.Contains(said, part) {
			t.Errorf("the page does not say %q:\n%s", part, said)
		}
	}
	if a := do(p, request(http.MethodGet, "/probes/none-1", "")); a.code != http.StatusNotFound {
		t.Errorf("a probe that does not exist: %d", a.code)
	}
}

func TestEveryOutcomeHasWords(t *testing.T) {
	l := newLive(t)
	p := newPage(t, Options{Live: l})
	for outcome := range verdicts {
		v := p.newStoryView(live.Story{Key: "ok/chat", Result: result(time.Now(), outcome)})
		if v.Verdict == "." || v.Verdict == "" {
			t.Errorf("%s has no words", outcome)
		}
	}
	if want := len(probe.Outcomes) + len(probe.AbortedOutcomes); len(verdicts) != want {
		t.Errorf("%d outcomes have words, want %d", len(verdicts), want)
	}
}

// The files that pages name are there, under names that change with their content.
func TestAssets(t *testing.T) {
	p := newPage(t, Options{})
	nodes := parse(t, get(t, p, "/").body)
	addresses := append(values(nodes, "link", "href"), values(nodes, "script", "src")...)
	if len(addresses) != 4 {
		t.Errorf("the page names %d files: %q", len(addresses), addresses)
	}
	for _, address := range addresses {
		a := get(t, p, address)
		if !strings.Contains(a.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: Cache-Control %q", address, a.header.Get("Cache-Control"))
		}
		again := do(p, request(http.MethodGet, address, "", "If-None-Match", a.header.Get("ETag")))
		if again.code != http.StatusNotModified {
			t.Errorf("%s with its ETag: %d", address, again.code)
		}
	}
	if a := get(t, p, "/static/live.js"); a.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("without a version: Cache-Control %q", a.header.Get("Cache-Control"))
	}
	for _, address := range []string{"/static/none", "/static/", "/static/a/live.js", "/nothing"} {
		if a := do(p, request(http.MethodGet, address, "")); a.code != http.StatusNotFound {
			t.Errorf("%s: %d", address, a.code)
		}
	}
}

// Nothing stands inline, nothing comes from elsewhere, and the headers forbid both.
func TestPagesObeyTheirPolicy(t *testing.T) {
	l := newLive(t)
	p := newPage(t, Options{Live: l, Silences: &silences{}})
	story := storyURL(l.Results(live.Filter{Limit: 1})[0].ID)
	for _, address := range []string{"/", "/series?target=down&scenario=chat", story, "/?sort=none"} {
		a := do(p, request(http.MethodGet, address, ""))
		for name, want := range map[string]string{
			"Content-Security-Policy": policy,
			"X-Content-Type-Options":  "nosniff",
			"X-Frame-Options":         "DENY",
			"Referrer-Policy":         "same-origin",
			"Cache-Control":           "no-store",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", address, name, got, want)
			}
		}
		ids := map[string]bool{}
		for _, n := range parse(t, a.body) {
			for _, at := range n.Attr {
				switch {
				case at.Key == "style" || strings.HasPrefix(at.Key, "on"):
					t.Errorf("%s: <%s %s=%q> is inline", address, n.Data, at.Key, at.Val)
				case (at.Key == "href" || at.Key == "src" || at.Key == "action") && !strings.HasPrefix(at.Val, "/") && !strings.HasPrefix(at.Val, "#"):
					t.Errorf("%s: <%s %s=%q> leads elsewhere", address, n.Data, at.Key, at.Val)
				case at.Key == "id" && ids[at.Val]:
					t.Errorf("%s: the id %q is there twice", address, at.Val)
				case at.Key == "id":
					ids[at.Val] = true
				}
			}
			if src, ok := attr(n, "src"); n.Data == "style" || n.Data == "script" && (!ok || src == "") {
				t.Errorf("%s: <%s> is inline", address, n.Data)
			}
		}
	}
}

// Whatever servers, configurations and readers write, it stays text.
func TestMarkupIsEscaped(t *testing.T) {
	const evil = `"><img src=x onerror=alert(1)><script>alert(2)</script>{{.}}'`
	l := live.New(live.Options{Paused: func(string, string, time.Time) (live.Pause, bool) {
		return live.Pause{Reason: evil, By: evil}, true
	}})
	sc := testSeries(evil, "chat")
	sc.Target.Model, sc.Target.Protocol = evil, evil
	sc.Target.Labels = map[string]string{"label": evil}
	l.Update(&config.Config{Series: []*config.Series{sc}})
	bad := result(time.Now(), probe.SLOViolation, func(r *probe.Result) {
		r.Target, r.Scenario, r.Model, r.Protocol = evil, "chat", evil, evil
		r.Error, r.Text, r.FinishReason, r.RequestID, r.TraceID = evil, evil, evil, evil, evil
		r.Header = http.Header{evil: {evil}}
	})
	l.Series(sc.Key()).Observe(bad)
	p := newPage(t, Options{
		Live: l, Version: evil, ConfigFile: evil,
		Silences: &silences{list: []Silence{{ID: evil, Target: evil, Until: time.Now().Add(time.Hour), Reason: evil, By: evil}}},
		Request: func(string) (Request, bool) {
			return Request{URL: evil, Header: http.Header{evil: {evil}}}, true
		},
	})
	story := storyURL(l.Results(live.Filter{})[0].ID)
	for _, address := range []string{
		"/", "/?q=" + url.QueryEscape(evil), "/?sort=" + url.QueryEscape(evil), "/rows?key=" + url.QueryEscape(sc.Key()),
		seriesURL(evil, "chat"), seriesURL(evil, "none"), story, storyURL(evil),
	} {
		a := do(p, request(http.MethodGet, address, ""))
		found := false
		for _, n := range parse(t, a.body) {
			switch n.Data {
			case "img":
				t.Errorf("%s: markup became an element", address)
			case "script":
				if src, _ := attr(n, "src"); !strings.HasPrefix(src, "/static/") {
					t.Errorf("%s: markup became a script", address)
				}
			}
			found = found || strings.Contains(n.Data, "alert(1)")
		}
		if !found && address != storyURL(evil) { // or else this looks at nothing
			t.Errorf("%s does not say what was written: %d %s", address, a.code, a.body)
		}
	}
	// To a terminal control characters say nothing.
	if got := printable("\x1b[31mred"); got != `"\x1b[31mred"` {
		t.Errorf("printable: %s", got)
	}
}

func TestGzip(t *testing.T) {
	server := httptest.NewServer(newPage(t, Options{}))
	defer server.Close()
	r := request(http.MethodGet, server.URL+"/", "", "Accept-Encoding", "gzip")
	r.RequestURI = ""
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.Header.Get("Content-Encoding") != "gzip" || n > 8<<10 {
		t.Errorf("Content-Encoding %q, %d bytes", response.Header.Get("Content-Encoding"), n)
	}
}

func TestFormats(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{share(1), "100 %"},
		{share(0.99999), "99.99 %"},
		{share(0.995), "99.5 %"},
		{share(0.9849), "98.4 %"},
		{share(0), "0 %"},
		{between(0.9684, 1), "96.8–100"},
		{used(2.494), "249 %"},
		{used(0.055), "5.5 %"},
		{times(nil), none},
		{times(new(0.0)), "0×"},
		{times(new(14.4)), "14×"},
		{times(new(3.04)), "3.0×"},
		{span(59 * time.Second), "59 s"},
		{span(26 * time.Hour), "1 d 2 h"},
		{quote("a b"), "'a b'"},
		{quote(""), "''"},
		{quote("~/x"), "'~/x'"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

func TestErrorsHaveTheirStatus(t *testing.T) {
	for err, want := range map[error]int{
		invalid("x"): 400, ErrNotFound: 404, ErrBusy: 409, ErrBudget: 429, limited{time.Second}: 429, ErrUnavailable: 503, errors.New("x"): 500,
	} {
		if got := status(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}
