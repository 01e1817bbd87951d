// Package browser takes the live page through what a person does on it: the real daemon with its demo, in Debian's Chromium.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// The pages that each kind of reader must be able to use, and what shows that one is there.
const (
	overview       = "/"
	healthySeries  = "/series?target=healthy&scenario=chat"
	degradedSeries = "/series?target=degraded&scenario=chat"
)

// site is a running daemon, and the browser that looks at it.
type site struct {
	*daemon
	browser context.Context
}

func (s *site) open(t *testing.T, path string, prepare ...action) *tab {
	t.Helper()
	return open(t, s.browser, s.origin, path, prepare...)
}

// failure returns the path of the story of a probe that was not good.
func (s *site) failure(t *testing.T) string {
	t.Helper()
	var answer struct {
		Results []struct{ ID string }
	}
	_, body := s.get(t, "/api/v1/results?target=degraded&scenario=chat&outcome=not_good&limit=1")
	if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Results) != 1 {
		t.Fatalf("no story of a failure: %v in %s", err, body)
	}
	return "/probes/" + answer.Results[0].ID
}

// TestLivePage shares one daemon and one browser, since both take their time to start. Its parts do not lean on each other.
func TestLivePage(t *testing.T) {
	browser := startBrowser(t)
	s := &site{startDaemon(t, "--journal.path="+writePast(t)), browser}
	for _, part := range []struct {
		name string
		test func(*testing.T, *site)
	}{
		{"the degraded model is not ok and the healthy one is", testStates},
		{"rows change without a reload", testRowsChange},
		{"the filter filters", testFilter},
		{"columns sort", testSort},
		{"the page of a series has figures and charts, and changes", testSeries},
		{"the story of a failure", testStory},
		{"a probe on demand", testProbe},
		{"a probe on demand from the table", testProbeFromTable},
		{"pause and resume", testPause},
		{"the keyboard", testKeyboard},
		{"without JavaScript", testWithoutJavaScript},
		{"nothing comes from elsewhere", testPolicy},
		{"fits on a phone", testPhone},
		{"accessible", testAccessible},
		{"a page that has lost its daemon says so", testLost}, // and so it is the last
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, s) })
	}
}

func testStates(t *testing.T, s *site) {
	b := s.open(t, overview)
	// There is no data until the first probe after the start has its result.
	b.until(`!document.querySelector("tbody[data-state=no_data]")`)
	states := eval[map[string]string](b, `Object.fromEntries([...document.querySelectorAll("tbody[data-key]")].map((r) => [r.dataset.key, r.dataset.state]))`)
	want := map[string]string{
		"healthy/chat": "ok", "healthy/summarize": "ok", "healthy/complete": "ok",
		"degraded/chat": "burning", "degraded/summarize": "burning", "degraded/complete": "burning",
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if first := b.all("tbody[data-key]", "data-key")[0]; !strings.HasPrefix(first, "degraded/") {
		t.Errorf("the first row is %s, not one that needs somebody", first)
	}
	for state, count := range map[string]string{"ok": "3", "burning": "3"} {
		if got := b.all("#summary a[data-state="+state+"]", "data-count"); !slices.Equal(got, []string{count}) {
			t.Errorf("the summary counts %q %s, want %s", got, state, count)
		}
	}
	if why := b.text(`tbody[data-key="degraded/chat"] .why`); !strings.Contains(why, "good") {
		t.Errorf("the row of degraded/chat does not say why: %q", why)
	}
}

func testRowsChange(t *testing.T, s *site) {
	b := s.open(t, overview)
	b.until(`document.querySelector("#connection[data-connection=live]")`)
	eval[int](b, "window.unloaded = 1")
	strip := `document.querySelector('tbody[data-key="healthy/chat"] .last').innerHTML`
	before := eval[string](b, strip)
	b.until(fmt.Sprintf("%s !== %q", strip, before))
	if !eval[bool](b, "window.unloaded === 1") {
		t.Error("the page was loaded anew")
	}
}

func testFilter(t *testing.T, s *site) {
	b := s.open(t, overview)
	shows := func(prefix string) string {
		return fmt.Sprintf(`document.querySelectorAll("tbody[data-key]").length === 3 && [...document.querySelectorAll("tbody[data-key]")].every((r) => r.dataset.key.startsWith(%q))`, prefix)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "degraded"))
	b.until(shows("degraded/"))
	if query := eval[string](b, "location.search"); query != "?q=degraded" {
		t.Errorf("the address has the query %q, so that nobody could share it", query)
	}
	b.press("#summary a[data-state=ok]")
	b.until(shows("healthy/"))
	b.visit("/?q=nothing-has-this-name")
	b.until(`!document.querySelector("tbody[data-key]") && document.querySelector("#table").textContent.includes("No series fits the filter")`)
}

func testSort(t *testing.T, s *site) {
	b := s.open(t, overview)
	sorted := []string{"degraded/chat", "degraded/complete", "degraded/summarize", "healthy/chat", "healthy/complete", "healthy/summarize"}
	for _, direction := range []string{"ascending", "descending"} {
		b.press(`thead a[data-sort][href*="sort=series"]`)
		b.until(fmt.Sprintf("document.querySelector('th[aria-sort=%s]')", direction))
		if diff := cmp.Diff(sorted, b.all("tbody[data-key]", "data-key")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", direction, diff)
		}
		slices.Reverse(sorted)
	}
}

func testSeries(t *testing.T, s *site) {
	b := s.open(t, overview)
	b.press(`tbody[data-key="degraded/chat"] a[data-open]`)
	b.until(`document.querySelector("main[data-page=series] #state[data-state=burning]")`)
	if diff := cmp.Diff([]string{"goodput", "availability", "ttft", "tpot", "e2e", "complete"}, b.all("#slos tr[data-slo]", "data-slo")); diff != "" {
		t.Errorf("SLOs (-want +got):\n%s", diff)
	}
	charts := eval[[]string](b, `[...document.querySelectorAll("#probes figure")].map((f) => f.querySelector("figcaption").textContent + ": " + (f.querySelector("svg").getBoundingClientRect().height > 50))`)
	if len(charts) < 3 || slices.ContainsFunc(charts, func(c string) bool { return !strings.HasSuffix(c, "true") }) {
		t.Errorf("charts that are there and can be seen: %q", charts)
	}
	eval[int](b, "window.unloaded = 1")
	last := `document.querySelector("#probes .long-strip").innerHTML`
	b.until(fmt.Sprintf("%s !== %q && window.unloaded === 1", last, eval[string](b, last)))
}

func testStory(t *testing.T, s *site) {
	s.failure(t) // there is one
	b := s.open(t, degradedSeries)
	b.press("#failures tr[data-id] a[data-open]")
	b.until(`document.querySelector("main[data-page=story]")`)
	if outcome := b.all("main", "data-outcome")[0]; outcome == "good" {
		t.Error("the failure is good")
	}
	for selector, part := range map[string]string{
		"#verdict": ".", "#command": "^goodputctl probe --url=http://\\S+/v1 --protocol=openai-chat --model=degraded$",
	} {
		if text := b.text(selector); !regexp.MustCompile(part).MatchString(text) {
			t.Errorf("%s has no %s: %q", selector, part, text)
		}
	}
}

// probed waits for the answer of the button, and returns the outcome.
func probed(b *tab) string {
	b.until(`document.querySelector("#probe-result a[data-outcome]")`)
	return b.all("#probe-result a[data-outcome]", "data-outcome")[0]
}

func testProbe(t *testing.T, s *site) {
	b := s.open(t, healthySeries)
	eval[int](b, "window.unloaded = 1")
	b.do(chromedp.Click(chromedp.CSS("#probe-button")))
	outcome := probed(b)
	b.until(`window.unloaded === 1 && document.querySelectorAll("#demand tr[data-id]").length === 1`)
	if listed := b.all("#demand tr[data-id]", "data-outcome")[0]; listed != outcome {
		t.Errorf("the button says %s, the list %s", outcome, listed)
	}
	b.press("#probe-result a")
	b.until(fmt.Sprintf("document.querySelector('main[data-page=story][data-outcome=%s]')", outcome))
	if trace := b.text("#trace-id"); !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(trace) {
		t.Errorf("trace id %q", trace)
	}
}

func testProbeFromTable(t *testing.T, s *site) {
	b := s.open(t, overview)
	b.press(`tbody[data-key="healthy/complete"] form[data-probe] button`)
	b.until(`document.querySelector("main[data-page=story]")`)
	if crumbs := b.text(".crumbs"); crumbs != "healthy / complete" {
		t.Errorf("the story is of %q", crumbs)
	}
}

func testPause(t *testing.T, s *site) {
	b := s.open(t, "/series?target=healthy&scenario=summarize")
	b.do(
		chromedp.Click(chromedp.CSS("#pause summary")),
		chromedp.SendKeys(chromedp.CSS("#pause-reason"), "new GPUs"),
		chromedp.SendKeys(chromedp.CSS("#pause-by"), "ada"),
		chromedp.Click(chromedp.CSS("#pause-form button")),
	)
	b.until(`document.querySelector("#state[data-state=paused]")`)
	if said := b.text("[data-silence]"); !strings.Contains(said, "by ada: new GPUs") {
		t.Errorf("the pause says %q", said)
	}
	other := s.open(t, overview)
	if state := other.all(`tbody[data-key="healthy/summarize"]`, "data-state"); !slices.Equal(state, []string{"paused"}) {
		t.Errorf("the overview says %q", state)
	}
	b.press("[data-silence] form button")
	b.until(`document.querySelector("#state[data-state=ok]") && !document.querySelector("[data-silence]")`)
	other.until(`document.querySelector('tbody[data-key="healthy/summarize"][data-state=ok]')`) // without a reload
}

func testKeyboard(t *testing.T, s *site) {
	b := s.open(t, overview)
	// A row may change places at any time: rows are known by their keys, not by where they stand.
	current := func() string { return b.all(".current", "data-key")[0] }
	b.keys("j")
	first := current()
	b.keys("j")
	second := current()
	if first == second {
		t.Errorf("j stays at %s", first)
	}
	b.keys("k")
	if back := current(); back != first && back == second {
		t.Errorf("k stays at %s", back)
	}
	open := current()
	b.keys("\r")
	b.until(fmt.Sprintf("document.querySelector('main[data-page=series]')?.dataset.key === %q", open))
	b.keys("g")
	b.until(`document.querySelector("main[data-page=overview]")`)
	b.keys("/")
	b.until(`document.activeElement.id === "q"`)
	b.keys("j") // is a letter in there; the slash may be too, since this keyboard cannot be kept from typing it
	b.until(`document.querySelector("#q").value.endsWith("j")`)
	b.keys("\x1b")
	b.until(`document.activeElement.id !== "q"`)
	b.keys("?")
	b.until(`document.querySelector("#help").open`)
	b.keys("\x1b")
	b.until(`!document.querySelector("#help").open`)
}

func testWithoutJavaScript(t *testing.T, s *site) {
	b := s.open(t, overview, withoutJavaScript())
	if rows := b.all("tbody[data-key]", "data-key"); len(rows) != 6 {
		t.Errorf("rows %q", rows)
	}
	if said := b.text("#connection"); !strings.Contains(said, "reload for news") {
		t.Errorf("the page does not say that it stands still: %q", said)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "healthy"), chromedp.Click(chromedp.CSS("#filter button")))
	b.until(`location.search === "?q=healthy" && document.querySelectorAll("tbody[data-key]").length === 3`)
	b.do(chromedp.Click(chromedp.CSS(`tbody[data-key="healthy/complete"] a[data-open]`)))
	b.until(`document.querySelector("main[data-page=series]")`)
	b.do(chromedp.Click(chromedp.CSS("#probe-button")))
	b.until(`document.querySelector("main[data-page=story] #verdict")`)
	b.do(chromedp.Click(chromedp.CSS(".crumbs a")))
	b.until(`document.querySelectorAll("#demand tr[data-id]").length >= 1`)
}

// testPolicy: what a page may load, the browser is told; that no page wants more, every tab of these tests sees.
func testPolicy(t *testing.T, s *site) {
	want := map[string]string{
		"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'", "connect-src": "'self'",
		"form-action": "'self'", "base-uri": "'none'", "frame-ancestors": "'none'",
	}
	for _, path := range []string{overview, healthySeries, s.failure(t), "/api/v1/status", "/rows", "/nothing"} {
		response, body := s.get(t, path)
		got := map[string]string{}
		for directive := range strings.SplitSeq(response.Header.Get("Content-Security-Policy"), ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), " ")
			got[name] = value
		}
		if response.StatusCode == http.StatusNotFound && !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
			continue // of the daemon's other pages
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: Content-Security-Policy (-want +got):\n%s", path, diff)
		}
		if inline := regexp.MustCompile(`<script>| style="| on[a-z]+="`).FindString(body); inline != "" {
			t.Errorf("%s has %s, which the policy forbids", path, inline)
		}
	}
}

// testPhone: nothing is wider than the screen, tables that scroll by themselves aside.
func testPhone(t *testing.T, s *site) {
	for name, path := range map[string]string{"overview": overview, "series": degradedSeries, "story": s.failure(t)} {
		t.Run(name, func(t *testing.T) {
			b := s.open(t, path, phone())
			if width := eval[int](b, "Math.max(document.documentElement.scrollWidth, innerWidth)"); width > 360 {
				wide := eval[[]string](b, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > 360 && !e.closest(".scroll")).map((e) => e.outerHTML.slice(0, 100))`)
				t.Errorf("the page is %d px wide, because of:\n%s", width, strings.Join(wide, "\n"))
			}
			small := eval[[]string](b, `[...document.querySelectorAll("main button")].filter((e) => e.getClientRects().length && e.getBoundingClientRect().height < 24).map((e) => e.textContent + " " + e.getBoundingClientRect().height)`)
			if len(small) > 0 {
				t.Errorf("too small for a thumb: %q", small)
			}
		})
	}
}

// violation is what axe-core found.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// testAccessible: in the dark the colours differ and nothing else, on a phone much does.
func testAccessible(t *testing.T, s *site) {
	path := os.Getenv("AXE")
	if path == "" {
		t.Skip("set AXE to axe.min.js of axe-core")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const everything, colours = `{ resultTypes: ["violations"] }`, `{ resultTypes: ["violations"], runOnly: ["color-contrast"] }`
	pages := map[string]string{"overview": overview, "series": degradedSeries, "story": s.failure(t)}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		b := s.open(t, pages[page])
		b.do(chromedp.Evaluate[chromedp.Void](string(axe)))
		for _, screen := range []struct {
			name   string
			action action
			rules  string
		}{{"light", scheme("light"), everything}, {"dark", scheme("dark"), colours}, {"phone", phone(), everything}} {
			b.do(screen.action)
			for _, v := range eval[[]violation](b, "axe.run(document, "+screen.rules+").then((r) => r.violations)") {
				report := t.Logf
				if v.Impact == "serious" || v.Impact == "critical" {
					report = t.Errorf
				}
				report("%s, %s: %s: %s: %s, %d times, first in %.300s\n%s",
					page, screen.name, v.Impact, v.ID, v.Help, len(v.Nodes), v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
			}
		}
	}
}

func testLost(t *testing.T, s *site) {
	b := s.open(t, overview)
	b.until(`document.querySelector("#connection[data-connection=live]")`)
	b.lose()
	s.stop()
	b.within(10*time.Second, `document.querySelector("#connection[data-connection=lost]") && document.title.startsWith("(?)")`)
}
