package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"goodput_exporter/collector/live"
)

var errForgotten = errors.New("no such result: its id is wrong, or it was forgotten; trace_id in the logs outlives it")

const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"
	typeHTML = "text/html"
	typeText = "text/plain"
)

// serveProbe is POST /probe: one probe of a configured series, now. target and scenario stand in the query, a form or a
// JSON object. The answer is a story: a live.Story for who accepts JSON, its page for who accepts HTML, else text.
func (p *Page) serveProbe(w http.ResponseWriter, r *http.Request) {
	given, err := fields(r, "target", "scenario")
	if err == nil && (given.Get("target") == "" || given.Get("scenario") == "") {
		err = invalid("target and scenario must be given")
	}
	var st live.Story
	if err == nil {
		st, err = p.probeNow(r.Context(), given.Get("target")+"/"+given.Get("scenario"))
	}
	format := accepted(r, typeJSON, typeHTML, typeText)
	switch {
	case err != nil && format == typeHTML:
		p.serveError(w, err)
	case err != nil && format == typeText:
		retryAfter(w, err)
		http.Error(w, err.Error(), status(err))
	case err != nil:
		fail(w, err)
	case format == typeHTML:
		http.Redirect(w, r, storyURL(st.ID), http.StatusSeeOther)
	case format == typeText:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = storyText(w, p.newStoryView(st))
	default:
		writeJSON(w, http.StatusOK, st)
	}
}

// fields are what a request gives in its query and its body, which is a form or a JSON object of texts. Unknown ones are
// refused.
func fields(r *http.Request, names ...string) (url.Values, error) {
	given := r.URL.Query()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	switch t := contentType(r); {
	case len(body) == 0:
	case t == typeJSON:
		var object map[string]string
		if err := json.Unmarshal(body, &object); err != nil {
			return nil, invalid("body: it must be an object of texts: %w", err)
		}
		for name, value := range object {
			given.Add(name, value)
		}
	case t == typeForm:
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, invalid("body: %w", err)
		}
		for name, values := range form {
			given[name] = append(given[name], values...)
		}
	default:
		return nil, invalid("Content-Type %q: it must be %s or %s", t, typeForm, typeJSON)
	}
	return given, known(given, names...)
}

// decode reads a JSON body. That its type must be said keeps forms of other origins out where browsers are old.
func decode(r *http.Request, into any) error {
	if t := contentType(r); t != typeJSON {
		return invalid("Content-Type %q: it must be %s", t, typeJSON)
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return fmt.Errorf("body: %w", err)
		}
		return invalid("body: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return invalid("body: more than one JSON value")
	}
	return nil
}

// noSeries says that nothing fits.
func noSeries(target, scenario string) error {
	var asked []string
	for _, f := range [][2]string{{"target", target}, {"scenario", scenario}} {
		if f[1] != "" {
			asked = append(asked, fmt.Sprintf("%s=%q", f[0], f[1]))
		}
	}
	return fmt.Errorf("%w: no series has %s", ErrNotFound, strings.Join(asked, " and "))
}
