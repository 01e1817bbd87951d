package page

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"goodput_exporter/collector/live"
	"goodput_exporter/probe"
)

// What one answer holds at most.
const (
	maxResults = 1000
	maxProbes  = 1000 // of each series
)

// serveStatus is GET /api/v1/status?target=&scenario=&probes=&brief=: live.Status as JSON.
func (p *Page) serveStatus(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	probes, err := number(query, "probes", 0, 0, maxProbes)
	brief, briefErr := number(query, "brief", 0, 0, 1)
	if err := errors.Join(err, briefErr, known(query, "target", "scenario", "probes", "brief")); err != nil {
		fail(w, err)
		return
	}
	target, scenario := query.Get("target"), query.Get("scenario")
	options := live.StatusOptions{Probes: probes, Brief: brief == 1}
	if target != "" && scenario != "" {
		options.Key = target + "/" + scenario
	}
	st := p.opts.Live.Status(time.Now(), options)
	if target+scenario != "" {
		selectSeries(st, target, scenario)
	}
	if target+scenario != "" && len(st.Series) == 0 {
		fail(w, noSeries(target, scenario))
		return
	}
	writeJSON(w, http.StatusOK, st)
}

// selectSeries leaves the series of a target and a scenario in a status; "" is any.
func selectSeries(st *live.Status, target, scenario string) {
	st.Series = slices.DeleteFunc(st.Series, func(s live.SeriesStatus) bool {
		return target != "" && s.Target != target || scenario != "" && s.Scenario != scenario
	})
	for _, state := range live.States {
		st.Summary[state] = 0
	}
	for i := range st.Series {
		st.Summary[st.Series[i].State]++
	}
}

// resultsDocument is the answer of GET /api/v1/results.
type resultsDocument struct {
	Version string       `json:"version"`
	Results []live.Story `json:"results"` // the newest first

	// Next is what to give as before= for older ones. Absent where there are none.
	Next string `json:"next,omitempty"`
}

// serveResults is GET /api/v1/results?target=&scenario=&outcome=&trace_id=&limit=&before=.
func (p *Page) serveResults(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit, err := number(query, "limit", live.DefaultLimit, 1, maxResults)
	err = errors.Join(err,
		known(query, "target", "scenario", "outcome", "trace_id", "limit", "before"),
		checkOutcome(query.Get("outcome")))
	if err != nil {
		fail(w, err)
		return
	}
	stories := p.opts.Live.Results(live.Filter{
		Target: query.Get("target"), Scenario: query.Get("scenario"), Outcome: query.Get("outcome"),
		TraceID: query.Get("trace_id"), Before: query.Get("before"), Limit: limit + 1,
	})
	doc := resultsDocument{Version: live.APIVersion, Results: stories[:min(limit, len(stories))]}
	if len(stories) > limit {
		doc.Next = stories[limit-1].ID
	}
	writeJSON(w, http.StatusOK, doc)
}

// serveResult is GET /api/v1/results/{id}: a live.Story, also of a probe on demand.
func (p *Page) serveResult(w http.ResponseWriter, r *http.Request) {
	st, ok := p.story(r.PathValue("id"))
	if !ok {
		writeError(w, http.StatusNotFound, errForgotten)
		return
	}
	writeJSON(w, http.StatusOK, st)
}

// story returns a story of the series' own probes, or of those on demand.
func (p *Page) story(id string) (live.Story, bool) {
	if st, ok := p.demand.story(id); ok {
		return st, true
	}
	return p.opts.Live.Story(id)
}

// number reads a parameter that is a whole number.
func number(query url.Values, name string, without, least, most int) (int, error) {
	text := query.Get(name)
	if text == "" {
		return without, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, invalid("%s=%q: it must be a whole number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// known refuses parameters that have no say, which are most likely misspelt ones.
func known(query url.Values, names ...string) error {
	for name, values := range query {
		if !slices.Contains(names, name) {
			return invalid("there is no parameter %q; there are %q", name, names)
		}
		if len(values) > 1 {
			return invalid("%s is given %d times", name, len(values))
		}
	}
	return nil
}

func checkOutcome(outcome string) error {
	all := slices.Concat(probe.Outcomes, probe.AbortedOutcomes)
	if outcome == "" || outcome == live.NotGood || slices.Contains(all, probe.Outcome(outcome)) {
		return nil
	}
	return invalid("outcome=%q: it must be %s or one of %q", outcome, live.NotGood, all)
}
