package page

import (
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"goodput_exporter/collector/live"
	"goodput_exporter/dashboards/chart"
	"goodput_exporter/probe"
)

// storyView is the page of one probe.
type storyView struct {
	layout
	live.Story
	Target, Scenario string // of the series
	SeriesURL        string // "" where the series is gone
	Kind             chart.Kind
	Verdict          string
	Judgments        []judgmentView
	Request          []factView
	Response         []factView
	Facts            []factView
	Waterfall        template.HTML
	Spans            []spanView
	Events           []eventView
	Command          string
}

type judgmentView struct {
	Name, Limit, Value, Verdict string
	Bad                         bool
	verdict                     probe.Verdict
}

type factView struct{ Name, Value string }

type spanView struct {
	Name       string
	From, Took float64
}

// eventView is the arrival of a token event, in seconds.
type eventView struct {
	Number    int
	Stamp     float64
	Gap       *float64 // nil for the first
	IsLongest bool
}

const shownEvents = 24

// serveStory is GET /probes/{id}.
func (p *Page) serveStory(w http.ResponseWriter, r *http.Request) {
	st, ok := p.story(r.PathValue("id"))
	if !ok {
		p.serveError(w, fmt.Errorf("%w: %w", ErrNotFound, errForgotten))
		return
	}
	render(w, http.StatusOK, "story", p.newStoryView(st))
}

func (p *Page) newStoryView(st live.Story) storyView {
	r := st.Result
	v := storyView{
		layout: p.layout(time.Now(), spaced(string(r.Outcome))+": "+st.Key), Story: st,
		Target: r.Target, Scenario: r.Scenario,
		Kind: kind(string(r.Outcome)), Facts: facts(r), Events: events(st),
		Command: p.command(r),
	}
	var s *live.SeriesStatus
	if found, ok := p.one(st.Key, 0); ok {
		s, v.SeriesURL = &found, seriesURL(found.Target, found.Scenario)
	}
	v.Judgments = judgments(r, s)
	v.Verdict = verdict(st, v.Judgments)
	v.Request, v.Response = p.requestFacts(st, s), responseFacts(r)
	v.Spans = spans(r)
	if len(v.Spans) > 0 {
		v.Waterfall = waterfall(v.Spans, s)
	}
	return v
}

// verdict says in words what became of the probe.
func verdict(st live.Story, list []judgmentView) string {
	r := st.Result
	text := verdicts[r.Outcome]
	if r.Outcome == probe.SLOViolation {
		var parts []string
		for _, j := range list {
			if !j.Bad {
				continue
			}
			switch {
			case j.verdict == probe.Unmeasurable:
				parts = append(parts, j.Name+" could not be measured")
			case j.Value != "" && j.Limit != "":
				parts = append(parts, fmt.Sprintf("%s was %s, over its limit of %s", j.Name, j.Value, j.Limit))
			default:
				parts = append(parts, j.Name+" was missed")
			}
		}
		return text + ": " + strings.Join(parts, "; ") + "."
	}
	if r.Reason != "" {
		text += " (" + spaced(string(r.Reason)) + ")"
	}
	if r.InBand {
		text += ", said inside an answer with status 200"
	}
	return text + "."
}

var verdicts = map[probe.Outcome]string{
	probe.Good:            "Good: answered in full, within every limit",
	probe.SLOViolation:    "Answered in full, but not as a user may expect",
	probe.Truncated:       "Failed: the answer ended without the protocol's sign of its end",
	probe.Interrupted:     "Failed: the connection broke within the answer",
	probe.Timeout:         "Failed: it took too long",
	probe.RateLimited:     "Failed: the endpoint refused more requests",
	probe.ServerError:     "Failed: the endpoint said that it has a fault",
	probe.ClientError:     "Failed: the endpoint did not accept the request",
	probe.ConnectionError: "Failed: there was no response at all",
	probe.ContentFiltered: "Failed: the answer was withheld or refused",
	probe.InvalidResponse: "Failed: there was an answer, but none that can be used",
	probe.Canceled:        "Not an attempt: the probe was canceled",
	probe.LocalError:      "Not an attempt: the prober itself failed",
}

// judgments lists the criteria with what was measured.
func judgments(r *probe.Result, s *live.SeriesStatus) []judgmentView {
	values := map[string]string{}
	for _, f := range r.Figures() {
		values[f.Name] = chart.Seconds(f.Value.Seconds())
	}
	var list []judgmentView
	for _, j := range r.Judgments {
		if j.SLO == probe.SLOGoodput || j.SLO == probe.SLOAvailability {
			continue
		}
		v := judgmentView{Name: criterionTitle(j.SLO), Value: values[j.SLO], Verdict: judged[j.Verdict], verdict: j.Verdict}
		v.Bad = j.Verdict == probe.Missed || j.Verdict == probe.Unmeasurable
		if s != nil {
			if o := sloOf(s, j.SLO); o != nil && o.Limit != nil {
				v.Limit = chart.Seconds(*o.Limit)
			}
		}
		list = append(list, v)
	}
	return list
}

var judged = map[probe.Verdict]string{
	probe.Met:           "met",
	probe.Missed:        "missed",
	probe.Unmeasurable:  "could not be measured",
	probe.NotApplicable: "does not apply",
}

// requestFacts tell what was sent, as far as it is known: configurations change, and only what came back is kept.
func (p *Page) requestFacts(st live.Story, s *live.SeriesStatus) []factView {
	list := []factView{{"Method", http.MethodPost}}
	request, known := p.request(st.Key)
	switch {
	case known:
		list = append(list, factView{"URL", request.URL})
	case s != nil:
		list = append(list, factView{"Host", s.URLHost})
	}
	list = append(list, factView{"Protocol", st.Result.Protocol}, factView{"Model", st.Result.Model})
	return append(existing(list), headerFacts(request.Header)...)
}

func responseFacts(r *probe.Result) []factView {
	status := ""
	if r.StatusCode != 0 {
		status = strings.TrimSpace(fmt.Sprintf("%s %d %s", r.HTTPVersion, r.StatusCode, http.StatusText(r.StatusCode)))
	}
	var retry string
	if r.RetryAfter != nil {
		retry = r.RetryAfter.String()
	}
	return append(existing([]factView{
		{"Status", status},
		{"Finish reason", r.FinishReason},
		{"Request id", r.RequestID},
		{"Retry after", retry},
	}), headerFacts(r.Header)...)
}

func headerFacts(h http.Header) []factView {
	list := make([]factView, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		list = append(list, factView{name, strings.Join(h[name], ", ")})
	}
	return list
}

// facts are the rest.
func facts(r *probe.Result) []factView {
	list := make([]factView, 0, 16)
	for _, f := range r.Figures() {
		list = append(list, factView{criterionTitle(f.Name), chart.Seconds(f.Value.Seconds())})
	}
	for _, f := range []struct {
		name  string
		count *int
	}{
		{"Input tokens", r.InputTokens},
		{"Output tokens", r.OutputTokens},
		{"Cached input tokens", r.CachedInputTokens},
		{"Reasoning tokens", r.ReasoningTokens},
	} {
		if f.count != nil {
			list = append(list, factView{f.name, fmt.Sprint(*f.count)})
		}
	}
	for _, t := range r.ServerTimes {
		list = append(list, factView{"Server's own " + spaced(string(t.Kind)), chart.Seconds(t.Took.Seconds())})
	}
	connection := ""
	if r.StampSource != "" {
		connection = "new"
		if r.ConnectionReused {
			connection = "reused"
		}
	}
	flags := make([]string, 0, len(r.Flags))
	for _, f := range r.Flags {
		flags = append(flags, spaced(string(f)))
	}
	list = append(list,
		factView{"Output tokens by", string(r.OutputTokensSource)},
		factView{"Token events", fmt.Sprint(r.TokenEvents)},
		factView{"Flags", strings.Join(flags, ", ")},
		factView{"Connection", connection},
		factView{"Stamps by", r.StampSource},
	)
	return existing(list)
}

// existing leaves out what has no value.
func existing(list []factView) []factView {
	return slices.DeleteFunc(list, func(f factView) bool { return f.Value == "" })
}

// spans are the parts of the probe, one after the other.
func spans(r *probe.Result) []spanView {
	var list []spanView
	at := 0.0
	add := func(name string, to float64) {
		if to > at {
			list = append(list, spanView{name, at, to - at})
			at = to
		}
	}
	for _, phase := range r.Phases {
		add(string(phase.Name), at+phase.Duration.Seconds())
	}
	if r.TTFT != nil {
		add("first token", r.TTFT.Seconds())
	}
	if r.E2E != nil {
		name := "tokens"
		if r.TTFT == nil {
			name = "rest"
		}
		add(name, r.E2E.Seconds())
	}
	return list
}

func waterfall(list []spanView, s *live.SeriesStatus) template.HTML {
	w := chart.Waterfall{Name: "Phases of the probe, from the first network act on"}
	for _, span := range list {
		waiting := span.Name == string(probe.PhaseHeaders) || span.Name == "first token" || span.Name == "rest"
		w.Spans = append(w.Spans, chart.Span{Name: span.Name, From: span.From, To: span.From + span.Took, Waiting: waiting})
	}
	if s != nil {
		if f := figureOf(s, "e2e"); f != nil && f.Limit != nil && *f.Limit < 4*(list[len(list)-1].From+list[len(list)-1].Took) {
			w.Threshold = &chart.Threshold{Value: *f.Limit}
		}
	}
	return w.SVG()
}

// events are the stamps of the first token events.
func events(st live.Story) []eventView {
	if st.Result.TTFT == nil {
		return nil
	}
	at := st.Result.TTFT.Seconds()
	list := []eventView{{Number: 1, Stamp: at}}
	for i, gap := range st.Gaps[:min(len(st.Gaps), shownEvents-1)] {
		at += gap
		list = append(list, eventView{Number: i + 2, Stamp: at, Gap: &st.Gaps[i], IsLongest: gap > 0 && gap == slices.Max(st.Gaps)})
	}
	return list
}

// request tells of the requests of a series, where that is known.
func (p *Page) request(key string) (Request, bool) {
	if p.opts.Request == nil {
		return Request{}, false
	}
	return p.opts.Request(key)
}

// command repeats the probe.
func (p *Page) command(r *probe.Result) string {
	if file := p.opts.ConfigFile; file != "" {
		return "goodputctl probe --config.file=" + quote(file) + " --target=" + quote(r.Target) + " --scenario=" + quote(r.Scenario)
	}
	request, _ := p.request(r.Target + "/" + r.Scenario)
	return "goodputctl probe --url=" + quote(request.URL) + " --protocol=" + quote(r.Protocol) + " --model=" + quote(r.Model)
}

// quote makes a text one word of a POSIX shell.
func quote(s string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./:@%+=,", c)
	}
	if s != "" && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// printable quotes what a server sent to confuse a terminal.
func printable(s string) string {
	if strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// storyText tells a story as text.
func storyText(w io.Writer, v storyView) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", v.Key, v.Verdict)
	if v.Result.Error != "" {
		fmt.Fprintf(&b, "  error: %q\n", v.Result.Error)
	}
	for _, j := range v.Judgments {
		fmt.Fprintf(&b, "  %s: %s", strings.ToLower(j.Name), j.Verdict)
		if j.Limit != "" {
			fmt.Fprintf(&b, " (limit %s)", j.Limit)
		}
		b.WriteByte('\n')
	}
	for _, f := range slices.Concat(v.Response, v.Facts) {
		fmt.Fprintf(&b, "  %s: %s\n", strings.ToLower(f.Name), printable(f.Value))
	}
	for _, s := range v.Spans {
		fmt.Fprintf(&b, "  phase %s: %s\n", s.Name, chart.Seconds(s.Took))
	}
	fmt.Fprintf(&b, "  trace id: %s\n", v.Result.TraceID)
	if v.Result.Text != "" {
		fmt.Fprintf(&b, "  text: %q\n", v.Result.Text)
	}
	fmt.Fprintf(&b, "  page: %s\n", storyURL(v.ID))
	_, err := io.WriteString(w, b.String())
	return err
}
