package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"goodput_exporter/collector/live"
	livepage "goodput_exporter/dashboards/live"
	"goodput_exporter/probe/probetest"
)

// send makes a request with a body. header holds names and values in turn.
func send(t *testing.T, method, url, contentType, body string, header ...string) page {
	t.Helper()
	return exchange(t, method, url, strings.NewReader(body), append([]string{"Content-Type", contentType}, header...)...)
}

// decoded is the JSON that a daemon answers to a GET.
func decoded[T any](t *testing.T, url string, header ...string) T {
	t.Helper()
	p := get(t, url, header...)
	if p.status != http.StatusOK {
		t.Fatalf("%s: status %d: %s", url, p.status, p.body)
	}
	var value T
	if err := json.Unmarshal([]byte(p.body), &value); err != nil {
		t.Fatalf("%s: %v in:\n%s", url, err, p.body)
	}
	return value
}

// statusOf is the state of every series of a daemon, by key.
func statusOf(t *testing.T, url string) map[string]live.SeriesStatus {
	t.Helper()
	series := map[string]live.SeriesStatus{}
	for _, s := range decoded[live.Status](t, url+"/api/v1/status?probes=1000").Series {
		series[s.Key] = s
	}
	return series
}

// stories are those that a daemon remembers, the newest first.
func stories(t *testing.T, url, query string, header ...string) []live.Story {
	t.Helper()
	return decoded[struct{ Results []live.Story }](t, url+"/api/v1/results?limit=1000"+query, header...).Results
}

// silence pauses the series of a target and returns the id.
func silence(t *testing.T, url, target string) string {
	t.Helper()
	p := send(t, http.MethodPost, url+"/api/v1/silences", "application/json",
		fmt.Sprintf(`{"target": %q, "duration_seconds": 3600, "reason": "new GPUs", "by": "ada"}`, target))
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(p.body), &made); p.status != http.StatusCreated || err != nil || made.ID == "" {
		t.Fatalf("status %d: %s", p.status, p.body)
	}
	return made.ID
}

// freeAddress is an address of loopback where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// everything has at least one request for each page of the daemon.
var everything = []struct{ method, path string }{
	{"GET", "/"},
	{"GET", "/?q=one"},
	{"GET", "/rows?key=one/chat"},
	{"GET", "/series?target=one&scenario=chat"},
	{"GET", "/probes/1"},
	{"GET", "/static/live.js"},
	{"GET", "/static/live.css"},
	{"POST", "/probe?target=one&scenario=chat"},
	{"POST", "/silences"},
	{"POST", "/silences/1/end"},
	{"GET", "/api/v1/status"},
	{"GET", "/api/v1/results"},
	{"GET", "/api/v1/results/1"},
	{"GET", "/api/v1/events"},
	{"GET", "/api/v1/silences"},
	{"POST", "/api/v1/silences"},
	{"DELETE", "/api/v1/silences/1"},
	{"GET", "/api/v2/status"},
	{"GET", "/metrics"},
	{"GET", "/config"},
	{"GET", "/debug/pprof/"},
	{"GET", "/debug/pprof/goroutine?debug=2"},
	{"GET", "/-/healthy"},
	{"GET", "/-/ready"},
	{"POST", "/-/reload"},
	{"GET", "/nothing"},
}

func TestEverythingIsBehindThePassword(t *testing.T) {
	t.Parallel()
	for _, path := range livepage.Paths {
		if !slices.ContainsFunc(everything, func(r struct{ method, path string }) bool { return strings.HasPrefix(r.path, path) }) {
			t.Errorf("%s is not tried", path)
		}
	}
	web := configure(t, "basic_auth_users: {prometheus: "+webHash+"}\n")
	health := freeAddress(t)
	d := launch(t, "--config.file="+configure(t, oneTarget(simulate(t, probetest.Config{Models: oneModel}))),
		"--web.config.file="+web, "--web.health-address="+health)
	for _, r := range everything {
		p := request(t, r.method, d.url+r.path)
		if p.status != http.StatusUnauthorized || strings.Contains(p.body, "one") {
			t.Errorf("%s %s: status %d without a password: %s", r.method, r.path, p.status, p.body)
		}
	}
	if p := get(t, d.url+"/api/v1/status", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("prometheus:"+webPassword))); p.status != http.StatusOK {
		t.Errorf("status %d with the password", p.status)
	}

	eventually(t, "ready without a password", func() bool { return get(t, "http://"+health+"/-/ready").status == http.StatusOK })
	for _, r := range everything {
		want := http.StatusNotFound
		if strings.HasPrefix(r.path, "/-/healthy") || strings.HasPrefix(r.path, "/-/ready") {
			want = http.StatusOK
		}
		if p := request(t, r.method, "http://"+health+r.path); p.status != want {
			t.Errorf("%s %s: status %d at the address for health alone, want %d", r.method, r.path, p.status, want)
		}
	}
}

// markup is what a server may send to run in the browser of who is on call.
const markup = `"'></script><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}`

// hostile is an endpoint that sends markup wherever it can, by model.
func hostile(w http.ResponseWriter, r *http.Request) {
	var ask struct{ Model string }
	_ = json.NewDecoder(r.Body).Decode(&ask)
	quoted, _ := json.Marshal(markup)
	for _, name := range []string{"X-Request-Id", "Server", "Retry-After", "X-Ratelimit-Remaining-Requests", "Via"} {
		w.Header().Set(name, markup)
	}
	event := func(choice string) { fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,%s}]}\n\n", choice) }
	switch ask.Model {
	case "body":
		http.Error(w, markup, http.StatusInternalServerError)
	case "message":
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprintf(w, `{"error":{"message":%s,"type":%[1]s,"code":%[1]s}}`, quoted)
	case "type":
		w.Header().Set("Content-Type", markup)
		fmt.Fprint(w, markup)
	case "in band":
		w.Header().Set("Content-Type", "text/event-stream")
		event(`"delta":{"content":"x"}`)
		fmt.Fprintf(w, "data: {\"error\":{\"message\":%s}}\n\n", quoted)
	default: // "text"
		w.Header().Set("Content-Type", "text/event-stream")
		event(`"delta":{"content":` + string(quoted) + `}`)
		event(`"delta":{},"finish_reason":` + string(quoted))
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

func TestMarkupOfServersIsEscaped(t *testing.T) {
	t.Parallel()
	endpoint := httptest.NewServer(http.HandlerFunc(hostile))
	defer endpoint.Close()
	models := []string{"text", "body", "message", "type", "in band"}
	var targets strings.Builder
	for _, model := range models {
		fmt.Fprintf(&targets, "- {name: %q, url: %q, model: %[1]q, scenarios: [chat], labels: {note: %[3]q}}\n", model, endpoint.URL, "<script>alert(2)</script>")
	}
	head, _, _ := strings.Cut(oneTarget(endpoint.URL), "- {name: one")
	d := launch(t, "--config.file="+configure(t, head+targets.String()))
	eventually(t, "a story of each", func() bool {
		seen := map[string]bool{}
		for _, st := range stories(t, d.url, "") {
			seen[st.Result.Target] = true
		}
		return len(seen) == len(models)
	})

	shown := map[string]string{"/": get(t, d.url+"/").body}
	for _, model := range models {
		series := url.Values{"target": {model}, "scenario": {"chat"}}.Encode()
		for _, path := range []string{"/series?" + series, "/rows?" + url.Values{"key": {model + "/chat"}}.Encode()} {
			shown[path] = get(t, d.url+path).body
		}
		story := "/probes/" + stories(t, d.url, "&"+series)[0].ID
		shown[story] = get(t, d.url+story).body
		if !strings.Contains(shown[story], "&lt;script&gt;alert(1)") {
			t.Errorf("the story of %s does not tell what the server sent: this test has not shown what it should:\n%s", model, shown[story])
		}
		now := send(t, http.MethodPost, d.url+"/probe?"+series, "application/x-www-form-urlencoded", "", "Accept", "text/plain")
		if now.status != http.StatusOK || !strings.HasPrefix(now.header.Get("Content-Type"), "text/plain") || now.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("a probe of %s as text: status %d, %v", model, now.status, now.header)
		}
	}
	for _, path := range []string{"/api/v1/status?probes=10", "/api/v1/results"} {
		p := get(t, d.url+path)
		shown[path] = p.body
		if p.header.Get("Content-Type") != "application/json; charset=utf-8" && p.header.Get("Content-Type") != "application/json" || p.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, p.header)
		}
	}
	for path, body := range shown {
		for _, raw := range []string{"<script>alert", "<img src=x", "</script><", "onerror=alert(1)>"} {
			if at := strings.Index(body, raw); at >= 0 {
				t.Errorf("%s has what the server sent as it is: …%.200s…", path, body[max(0, at-100):])
			}
		}
	}
}

func TestOtherOriginsCanChangeNothing(t *testing.T) {
	t.Parallel()
	var seen tally
	file := configure(t, strings.Replace(oneTarget(simulate(t, probetest.Config{Models: oneModel, Observe: seen.observe})), "interval: 1s", "interval: 24h", 1))
	d := launch(t, "--config.file="+file)
	const form = "application/x-www-form-urlencoded"
	for _, r := range []struct{ method, path, contentType, body string }{
		{"POST", "/probe", form, "target=one&scenario=chat"},
		{"POST", "/silences", form, "target=one&scenario=chat&for=1h&reason=x"},
		{"POST", "/silences/1/end", form, "target=one&scenario=chat"},
		{"POST", "/api/v1/silences", "application/json", `{"target": "one", "duration_seconds": 60, "reason": "x"}`},
		{"DELETE", "/api/v1/silences/1", "", ""},
	} {
		for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			if p := send(t, r.method, d.url+r.path, r.contentType, r.body, header...); p.status != http.StatusForbidden {
				t.Errorf("%s %s with %q: status %d: %s", r.method, r.path, header, p.status, p.body)
			}
		}
	}
	if n := len(seen.counts()); n != 0 {
		t.Errorf("%d probes on behalf of another origin", n)
	}
	if p := send(t, http.MethodPost, d.url+"/probe", form, "target=one&scenario=chat", "Sec-Fetch-Site", "same-origin", "Origin", d.url); p.status != http.StatusOK {
		t.Errorf("of its own origin: status %d: %s", p.status, p.body)
	}
}

func TestSilencePausesTheSlots(t *testing.T) {
	t.Parallel()
	d := launch(t, "--config.file="+configure(t, oneTarget(simulate(t, probetest.Config{Models: oneModel}))))
	eventually(t, "an attempt", func() bool { return scrape(t, d.url).of(t, "goodput_probes_total") > 0 })
	id := silence(t, d.url, "one")
	if got := scrape(t, d.url).of(t, "goodput_paused", "target", "one"); got != 1 {
		t.Errorf("goodput_paused is %v", got)
	}
	s := statusOf(t, d.url)["one/chat"]
	if s.State != live.Paused || s.Pause == nil || s.Pause.Reason != "new GPUs" || s.Pause.By != "ada" {
		t.Errorf("state %s, pause %+v", s.State, s.Pause)
	}
	eventually(t, "the probe under way has ended", func() bool { return statusOf(t, d.url)["one/chat"].InFlight == 0 })
	attempts := scrape(t, d.url).of(t, "goodput_probes_total")
	eventually(t, "two slots are skipped", func() bool {
		return scrape(t, d.url).of(t, "goodput_slots_skipped_total", "reason", "paused") >= 2
	})
	m := scrape(t, d.url)
	if got := m.of(t, "goodput_probes_total"); got != attempts {
		t.Errorf("%v attempts during the pause", got-attempts)
	}
	if err := m.balance(); err != nil {
		t.Error(err)
	}
	if skipped := statusOf(t, d.url)["one/chat"].Skipped["paused"]; skipped < 2 {
		t.Errorf("the status knows %d skipped slots", skipped)
	}

	if p := request(t, http.MethodDelete, d.url+"/api/v1/silences/"+id); p.status != http.StatusNoContent {
		t.Errorf("status %d: %s", p.status, p.body)
	}
	eventually(t, "probes go on", func() bool { return scrape(t, d.url).of(t, "goodput_probes_total") > attempts })
	if got := scrape(t, d.url).of(t, "goodput_paused", "target", "one"); got != 0 {
		t.Errorf("goodput_paused is %v after the pause", got)
	}
	if state := statusOf(t, d.url)["one/chat"].State; state != live.OK {
		t.Errorf("state %s after the pause", state)
	}
}

func TestProbeOnDemandIsOutsideTheSLOAndInTheBudget(t *testing.T) {
	t.Parallel()
	var seen tally
	text := oneTarget(simulate(t, probetest.Config{Models: oneModel, Observe: seen.observe}))
	text = strings.Replace(text, "interval: 1s", "interval: 24h", 1)
	text = strings.Replace(text, "model: m,", "model: m, budget: {requests_per_day: 1},", 1)
	d := launch(t, "--config.file="+configure(t, text))
	remaining := func() float64 {
		return scrape(t, d.url).of(t, "goodput_budget_remaining", "target", "one", "unit", "requests")
	}
	before := remaining()
	ask := func(header ...string) page {
		return send(t, http.MethodPost, d.url+"/probe?target=one&scenario=chat", "", "", header...)
	}
	p := ask("Accept", "application/json")
	var st live.Story
	if err := json.Unmarshal([]byte(p.body), &st); p.status != http.StatusOK || err != nil || st.Result == nil || st.Result.Outcome != "good" {
		t.Fatalf("status %d: %s", p.status, p.body)
	}
	if told := decoded[live.Story](t, d.url+"/api/v1/results/"+st.ID); told.Result.TraceID != st.Result.TraceID {
		t.Errorf("its story has the trace id %s, not %s", told.Result.TraceID, st.Result.TraceID)
	}
	if after := remaining(); after != before-1 {
		t.Errorf("the budget has %v left, and had %v", after, before)
	}
	m := scrape(t, d.url)
	for _, name := range []string{"goodput_probes_total", "goodput_slo_events_total", "goodput_slots_total", "goodput_time_to_first_token_seconds"} {
		if got := m.of(t, name); got != 0 {
			t.Errorf("%s is %v", name, got)
		}
	}
	if s := statusOf(t, d.url)["one/chat"]; s.LastProbe != nil || len(s.Probes) != 0 || len(stories(t, d.url, "")) != 0 {
		t.Errorf("it is in the series' history: %+v", s)
	}
	if p := ask(); p.status != http.StatusTooManyRequests || !strings.Contains(p.body, "budget") {
		t.Errorf("beyond the budget: status %d: %s", p.status, p.body)
	}
	if n := seen.counts()["m"]; n != 1 {
		t.Errorf("the endpoint has seen %v requests", n)
	}
	for path, status := range map[string]int{
		"/probe?target=one":                                             http.StatusBadRequest,
		"/probe?target=other&scenario=chat":                             http.StatusNotFound,
		"/probe?target=one&scenario=chat&url=http://169.254.169.254/v1": http.StatusBadRequest,
	} {
		if p := send(t, http.MethodPost, d.url+path, "", ""); p.status != status {
			t.Errorf("%s: status %d, want %d: %s", path, p.status, status, p.body)
		}
	}
	if p := send(t, http.MethodPost, d.url+"/probe", "application/x-www-form-urlencoded", strings.Repeat("x", 1<<20)); p.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 1 MiB: status %d: %s", p.status, p.body)
	}
}

func TestEventsTellOfResults(t *testing.T) {
	t.Parallel()
	d := launch(t, "--config.file="+configure(t, oneTarget(simulate(t, probetest.Config{Models: oneModel}))))
	told := events(t, d.url, 2)
	if !strings.Contains(told, "event: result\n") || !strings.Contains(told, `"key":"one/chat"`) || !strings.Contains(told, `"outcome":"good"`) {
		t.Errorf("the events are:\n%s", told)
	}
	asked := time.Now()
	if code := d.stop(t); code != 0 || time.Since(asked) > stopWait {
		t.Errorf("code %d after %s", code, time.Since(asked))
	}
}

// events reads the events of a daemon until some results are told.
func events(t *testing.T, url string, results int, header ...string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var told strings.Builder
	for lines := bufio.NewScanner(resp.Body); results > 0; {
		if !lines.Scan() {
			t.Fatalf("the events end with %v:\n%s", lines.Err(), &told)
		}
		fmt.Fprintln(&told, lines.Text())
		if strings.HasPrefix(lines.Text(), `data: `) && strings.Contains(lines.Text(), `"outcome"`) {
			results--
		}
	}
	return told.String()
}
