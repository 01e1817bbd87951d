package page

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const interval = 15 * time.Second

var criteria = []string{config.CriterionTTFT, config.CriterionTPOT, config.CriterionE2E, config.CriterionComplete}

func testSeries(target, scenario string) *config.Series {
	return &config.Series{
		Target: &config.Target{
			Name: target, Protocol: "openai-chat", URL: "https://llm.example.net:8443/v1?key=x", Model: "llama-3.3-70b",
			Labels: map[string]string{"env": "prod", "region": "eu"},
		},
		Scenario: &config.Scenario{
			Name: scenario, Interval: interval, Timeout: time.Minute, Stream: scenario != "summarize",
			SLO: config.SLO{Objective: 0.99, Criteria: []config.Criterion{
				{Name: config.CriterionTTFT, Limit: 800 * time.Millisecond, Objective: 0.95},
				{Name: config.CriterionTPOT, Limit: 50 * time.Millisecond},
				{Name: config.CriterionE2E, Limit: 8 * time.Second},
				{Name: config.CriterionComplete},
			}},
		},
	}
}

// result is one that came to its end at a time. Edits come last.
func result(at time.Time, outcome probe.Outcome, edits ...func(*probe.Result)) *probe.Result {
	const took = 2 * time.Second
	r := &probe.Result{
		Protocol: "openai-chat", Model: "llama-3.3-70b",
		Time: at.Add(-took), Outcome: outcome, E2E: new(took), TraceID: fmt.Sprintf("%032x", rand.Uint64()),
	}
	if reasons := probe.Reasons[outcome]; reasons != nil {
		r.Reason = reasons[len(reasons)-1]
		r.Error = "it did not work"
	}
	if outcome.Attempt() {
		r.Judgments = []probe.Judgment{
			{SLO: probe.SLOGoodput, Verdict: verdictOf(outcome == probe.Good)},
			{SLO: probe.SLOAvailability, Verdict: verdictOf(outcome.Success())},
		}
		for _, c := range criteria {
			missed := outcome == probe.SLOViolation && c == config.CriterionTTFT
			r.Judgments = append(r.Judgments, probe.Judgment{SLO: c, Verdict: verdictOf(outcome.Success() && !missed)})
		}
	}
	if outcome.Success() {
		r.StatusCode, r.HTTPVersion, r.FinishReason, r.StampSource = http.StatusOK, "HTTP/1.1", "stop", "kernel"
		r.TTFT, r.TPOT, r.Text = new(200*time.Millisecond), new(25*time.Millisecond), "Hello"
		if outcome == probe.SLOViolation {
			r.TTFT = new(1840 * time.Millisecond)
		}
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func verdictOf(met bool) probe.Verdict {
	if met {
		return probe.Met
	}
	return probe.Missed
}

// newLive returns a Live whose series are in every state: their targets are named by it.
func newLive(t testing.TB) *live.Live {
	t.Helper()
	now := time.Now()
	l := live.New(live.Options{
		Next: func(string) (time.Time, bool) { return now.Add(7 * time.Minute), true },
		Paused: func(target, _ string, _ time.Time) (live.Pause, bool) {
			return live.Pause{Reason: "new GPUs", By: "ada"}, target == "paused"
		},
	})
	cfg := &config.Config{}
	for _, name := range []string{"ok", "burning", "down", "no_data", "paused"} {
		cfg.Series = append(cfg.Series, testSeries(name, "chat"))
	}
	l.Update(cfg)
	const probes = 120
	for i := range probes {
		at := now.Add(-time.Duration(probes-i) * interval)
		l.Series("ok/chat").Restore(result(at, probe.Good))
		l.Series("paused/chat").Restore(result(at, probe.Good))
		burning, down := probe.Good, probe.Good
		if i%2 == 1 {
			burning = probe.SLOViolation
		}
		if i > probes-20 {
			down = probe.ConnectionError
		}
		l.Series("burning/chat").Restore(result(at, burning))
		l.Series("down/chat").Restore(result(at, down))
	}
	return l
}

func newPage(t testing.TB, opts Options) *Page {
	t.Helper()
	if opts.Live == nil {
		opts.Live = newLive(t)
	}
	p, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// request makes a request, with headers as pairs of name and value.
func request(method, url, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	return r
}

type answer struct {
	code   int
	header http.Header
	body   string
}

func do(h http.Handler, r *http.Request) answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Result().Header, w.Body.String()}
}

func get(t testing.TB, h http.Handler, url string) answer {
	t.Helper()
	a := do(h, request(http.MethodGet, url, ""))
	if a.code != http.StatusOK {
		t.Fatalf("GET %s: %d: %s", url, a.code, a.body)
	}
	return a
}

// parse returns the nodes of an HTML document.
func parse(t testing.TB, text string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(root.Descendants())
}

// attr returns an attribute's value, and false where the element has none of this name.
func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// with returns the elements that have an attribute of a value.
func with(nodes []*html.Node, name, value string) []*html.Node {
	var found []*html.Node
	for _, n := range nodes {
		if v, ok := attr(n, name); ok && v == value {
			found = append(found, n)
		}
	}
	return found
}

// values returns an attribute's values in the order of the document.
func values(nodes []*html.Node, element, name string) []string {
	var list []string
	for _, n := range nodes {
		if v, ok := attr(n, name); ok && n.Data == element {
			list = append(list, v)
		}
	}
	return list
}

// text returns what an element says, with single blanks.
func text(nodes ...*html.Node) string {
	var b strings.Builder
	for _, n := range nodes {
		for d := range n.Descendants() {
			if d.Type == html.TextNode {
				b.WriteString(d.Data + " ")
			}
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// silences keeps what it is told in memory.
type silences struct{ list []Silence }

func (s *silences) List() []Silence { return slices.Clone(s.list) }

func (s *silences) Create(_ context.Context, one Silence) (Silence, error) {
	one.ID = fmt.Sprint("silence-", len(s.list)+1)
	s.list = append(s.list, one)
	return one, nil
}

func (s *silences) Delete(_ context.Context, id string) error {
	for i, one := range s.list {
		if one.ID == id {
			s.list = slices.Delete(s.list, i, i+1)
			return nil
		}
	}
	return fmt.Errorf("%w: there is no silence %s", ErrNotFound, id)
}
