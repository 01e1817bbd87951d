package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"goodput_exporter/collector/live"
)

// Silences are the pauses of series that people make, and the maintenance windows of the configuration.
type Silences interface {
	// List returns those that are in force or will be. A maintenance window of several targets or scenarios is one for
	// each.
	List() []Silence

	// Create makes one and returns it with its id. It returns ErrNotFound where no series fits, ErrInvalid where it
	// cannot be, and ErrUnavailable where there are too many.
	Create(ctx context.Context, s Silence) (Silence, error)

	// Delete ends one. It returns ErrNotFound where there is none, and ErrInvalid where it is the configuration's.
	Delete(ctx context.Context, id string) error
}

// Silence says that series are not probed on purpose for a time.
type Silence struct {
	ID       string    `json:"id"`
	Target   string    `json:"target,omitempty"`   // "": every target
	Scenario string    `json:"scenario,omitempty"` // "": every scenario
	Start    time.Time `json:"start,omitzero"`
	Until    time.Time `json:"until,omitzero"` // zero: a maintenance window of which nobody knows
	Reason   string    `json:"reason"`
	By       string    `json:"by"`
	Origin   string    `json:"origin,omitempty"` // "config": a maintenance window, which cannot be deleted
}

// covers reports whether the silence is of a series.
func (s Silence) covers(target, scenario string) bool {
	return (s.Target == "" || s.Target == target) && (s.Scenario == "" || s.Scenario == scenario)
}

// OriginConfig is the Origin of a maintenance window of the configuration.
const OriginConfig = "config"

// Bounds of a silence that is made here: it must end, so that none is forgotten. They are those of probe/pause.
const (
	maxSilence = 7 * 24 * time.Hour
	maxReason  = 500 // bytes
	maxBy      = 100
)

// silenceRequest is the body of POST /api/v1/silences. The silence begins now.
type silenceRequest struct {
	Target   string     `json:"target"`
	Scenario string     `json:"scenario"`
	Until    *time.Time `json:"until"`
	Seconds  *float64   `json:"duration_seconds"` // instead of Until
	Reason   string     `json:"reason"`
	By       string     `json:"by"`
}

// silence checks a request.
func (q silenceRequest) silence(now time.Time) (Silence, error) {
	s := Silence{Target: q.Target, Scenario: q.Scenario, Start: now.UTC(), Reason: q.Reason, By: q.By}
	switch {
	case (q.Until == nil) == (q.Seconds == nil):
		return s, invalid("one of until and duration_seconds must be given")
	case q.Until != nil:
		s.Until = q.Until.UTC()
	case *q.Seconds > maxSilence.Seconds():
		return s, invalid("duration_seconds=%g: it must be at most %g", *q.Seconds, maxSilence.Seconds())
	default:
		s.Until = s.Start.Add(time.Duration(*q.Seconds * float64(time.Second)))
	}
	switch {
	case q.Target == "":
		return s, invalid("target must be given, with a scenario or for all of its scenarios")
	case !s.Until.After(now) || s.Until.After(now.Add(maxSilence)):
		return s, invalid("the silence would end at %s: it must end later than now and within %s", s.Until.Format(time.RFC3339), maxSilence)
	case q.Reason == "" || len(q.Reason) > maxReason:
		return s, invalid("reason: it must have 1 to %d bytes, not %d", maxReason, len(q.Reason))
	case len(q.By) > maxBy:
		return s, invalid("by: it must have at most %d bytes", maxBy)
	}
	return s, nil
}

func (p *Page) create(ctx context.Context, q silenceRequest) (Silence, error) {
	if p.opts.Silences == nil {
		return Silence{}, errNoSilences
	}
	s, err := q.silence(time.Now())
	if err != nil {
		return Silence{}, err
	}
	return p.opts.Silences.Create(ctx, s)
}

func (p *Page) end(ctx context.Context, id string) error {
	if p.opts.Silences == nil {
		return errNoSilences
	}
	return p.opts.Silences.Delete(ctx, id)
}

var errNoSilences = fmt.Errorf("%w: silences are not offered", ErrUnavailable)

// silencesDocument is the answer of GET /api/v1/silences.
type silencesDocument struct {
	Version  string    `json:"version"`
	Silences []Silence `json:"silences"`
}

// serveSilences is GET /api/v1/silences.
func (p *Page) serveSilences(w http.ResponseWriter, _ *http.Request) {
	doc := silencesDocument{Version: live.APIVersion, Silences: []Silence{}}
	if p.opts.Silences != nil {
		doc.Silences = append(doc.Silences, p.opts.Silences.List()...)
	}
	writeJSON(w, http.StatusOK, doc)
}

// serveCreate is POST /api/v1/silences.
func (p *Page) serveCreate(w http.ResponseWriter, r *http.Request) {
	var q silenceRequest
	if err := decode(r, &q); err != nil {
		fail(w, err)
		return
	}
	q.By = cmp.Or(q.By, user(r))
	s, err := p.create(r.Context(), q)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Location", "/api/v1/silences/"+url.PathEscape(s.ID))
	writeJSON(w, http.StatusCreated, s)
}

// user is who the web configuration's basic auth let in, "" without.
func user(r *http.Request) string {
	name, _, _ := r.BasicAuth()
	return name
}

// serveDelete is DELETE /api/v1/silences/{id}.
func (p *Page) serveDelete(w http.ResponseWriter, r *http.Request) {
	if err := p.end(r.Context(), r.PathValue("id")); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// serveSilenceForm is POST /silences: the form of a series' page, which leads back to it.
func (p *Page) serveSilenceForm(w http.ResponseWriter, r *http.Request) {
	given, err := fields(r, "target", "scenario", "for", "reason", "by")
	if err != nil {
		p.serveError(w, err)
		return
	}
	length, err := time.ParseDuration(given.Get("for"))
	if err != nil {
		p.serveError(w, invalid("for=%q: it must be a duration, such as 1h", given.Get("for")))
		return
	}
	seconds := length.Seconds()
	if _, err := p.create(r.Context(), silenceRequest{
		Target: given.Get("target"), Scenario: given.Get("scenario"), Seconds: &seconds, Reason: given.Get("reason"), By: cmp.Or(given.Get("by"), user(r)),
	}); err != nil {
		p.serveError(w, err)
		return
	}
	http.Redirect(w, r, seriesURL(given.Get("target"), given.Get("scenario")), http.StatusSeeOther)
}

// serveEndForm is POST /silences/{id}/end: the button that resumes.
func (p *Page) serveEndForm(w http.ResponseWriter, r *http.Request) {
	given, err := fields(r, "target", "scenario")
	if err == nil {
		err = p.end(r.Context(), r.PathValue("id"))
	}
	if err != nil {
		p.serveError(w, err)
		return
	}
	http.Redirect(w, r, seriesURL(given.Get("target"), given.Get("scenario")), http.StatusSeeOther)
}
