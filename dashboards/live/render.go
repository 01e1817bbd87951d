package page

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"goodput_exporter/collector/live"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html"))

// layout is what all pages have.
type layout struct {
	Title         string
	AsOf          time.Time
	Version       string
	TelemetryPath string
	Worst         live.State // what the icon says; "" says nothing
}

func (p *Page) layout(now time.Time, title string) layout {
	return layout{Title: title, AsOf: now, Version: p.opts.Version, TelemetryPath: p.opts.TelemetryPath}
}

// Icon is the file of the page's icon.
func (l layout) Icon() string {
	switch l.Worst {
	case live.Down, live.Burning:
		return "icon-bad.svg"
	case live.OK:
		return "icon-ok.svg"
	}
	return "icon.svg"
}

// execute returns what a template makes of data.
func execute(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// write answers with HTML, or says why there is none.
func write(w http.ResponseWriter, code int, text []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// render answers with a template, whole or not at all.
func render(w http.ResponseWriter, code int, name string, data any) {
	text, err := execute(name, data)
	write(w, code, text, err)
}

// errorView is the page of an error.
type errorView struct {
	layout
	Code  int
	Words string
	Error string
}

// serveError answers with an error as a page.
func (p *Page) serveError(w http.ResponseWriter, err error) {
	retryAfter(w, err)
	code := status(err)
	v := errorView{layout: p.layout(time.Now(), http.StatusText(code)), Code: code, Words: http.StatusText(code), Error: err.Error()}
	render(w, code, "error", v)
}

func seriesURL(target, scenario string) string {
	return "/series?" + url.Values{"target": {target}, "scenario": {scenario}}.Encode()
}

func storyURL(id string) string { return "/probes/" + url.PathEscape(id) }
