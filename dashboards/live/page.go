// Package page is the built-in live page and the JSON API: for the person on call, who asks whether a series meets its SLO
// now, since when not, by which criterion, and what a failed probe saw. Both are views of collector/live.
//
// The page needs no JavaScript: it is a table, with links that sort and filter and forms that act. static/live.js keeps
// it up to date. Nothing comes from elsewhere, and nothing stands inline: see the Content-Security-Policy in security.go.
//
// The API is versioned by its path, /api/v1. Keys may be added within a version; none changes its meaning or goes.
// Durations are in seconds, times are RFC 3339 in UTC, what does not exist is absent, and errors are {"error": "..."}.
package page

import (
	"cmp"
	"context"
	"net/http"

	"github.com/klauspost/compress/gzhttp"

	"goodput_exporter/collector/live"
	"goodput_exporter/probe"
)

// Options say what the pages show and offer.
type Options struct {
	Live          *live.Live
	Version       string // of the program
	TelemetryPath string // "" is /metrics

	// ConfigFile is the configuration's file for the command that repeats a probe; "" where there is none.
	ConfigFile string

	// Request tells of the requests of a series by its key, and false where there is no such series. It may be nil.
	Request func(key string) (Request, bool)

	// Probe sends one probe of a series, outside its slots and its SLO, charged to its budget. It returns ErrNotFound,
	// ErrBudget or ErrUnavailable where it sent none. A nil Probe is not offered.
	Probe func(ctx context.Context, key string) (*probe.Result, error)

	Silences Silences // nil: not offered
}

// Request is what the requests of a series have in common.
type Request struct {
	URL    string // without user information and query
	Header http.Header
}

// Page serves the live page, and the JSON API under /api/.
type Page struct {
	opts     Options
	handler  http.Handler
	demand   demand
	streams  streams
	snapshot snapshot
	rendered cache
}

// Paths are those that a Page answers; one with a slash at its end, all below it. Beside them it answers /{$}.
var Paths = []string{"/rows", "/series", "/probe", "/probes/", "/silences", "/silences/", "/static/", "/api/"}

// New returns the pages. They answer / and Paths; everything else is not found.
func New(opts Options) (*Page, error) {
	opts.TelemetryPath = cmp.Or(opts.TelemetryPath, "/metrics")
	p := &Page{opts: opts, demand: newDemand(), streams: newStreams()}
	zip, err := gzhttp.NewWrapper(gzhttp.MinSize(2<<10), gzhttp.CompressionLevel(gzipLevel))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", zip(http.HandlerFunc(p.serveOverview)))
	mux.Handle("GET /rows", zip(http.HandlerFunc(p.serveRows)))
	mux.Handle("GET /series", zip(http.HandlerFunc(p.serveSeries)))
	mux.Handle("GET /probes/{id}", zip(http.HandlerFunc(p.serveStory)))
	mux.Handle("GET /static/", zip(static()))
	mux.HandleFunc("POST /probe", p.serveProbe)
	mux.HandleFunc("POST /silences", p.serveSilenceForm)
	mux.HandleFunc("POST /silences/{id}/end", p.serveEndForm)

	mux.Handle("/api/", http.HandlerFunc(notFound))
	mux.Handle("/api/v1/status", methods{"GET": zip(http.HandlerFunc(p.serveStatus))})
	mux.Handle("/api/v1/results", methods{"GET": zip(http.HandlerFunc(p.serveResults))})
	mux.Handle("/api/v1/results/{id}", methods{"GET": zip(http.HandlerFunc(p.serveResult))})
	mux.Handle("/api/v1/events", methods{"GET": http.HandlerFunc(p.serveEvents)})
	mux.Handle("/api/v1/silences", methods{"GET": http.HandlerFunc(p.serveSilences), "POST": http.HandlerFunc(p.serveCreate)})
	mux.Handle("/api/v1/silences/{id}", methods{"DELETE": http.HandlerFunc(p.serveDelete)})
	p.handler = secure(mux)
	return p, nil
}

// gzipLevel is fast: a page of a hundred series shrinks to a tenth all the same.
const gzipLevel = 3

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }
