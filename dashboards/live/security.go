package page

import (
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// policy lets the pages load and ask nothing but what this server has.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// What a request may bring at most, in bytes.
const (
	maxBody  = 16 << 10
	maxQuery = 8 << 10
)

// secure refuses what another origin's page makes a browser send, bounds requests, and sets the headers of all answers.
func secure(h http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, http.StatusForbidden, errors.New("the request comes from a page of another origin"))
	}))
	inner := protection.Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "same-origin") // no-referrer would make the Origin of forms null
		header.Set("Cache-Control", "no-store")
		if len(r.URL.RawQuery) > maxQuery {
			writeError(w, http.StatusBadRequest, fmt.Errorf("the query is longer than %d bytes", maxQuery))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		inner.ServeHTTP(w, r)
	})
}

// methods answers by the request's method, and with 405 where it is none of them.
type methods map[string]http.Handler

// ServeHTTP implements http.Handler.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if h, ok := m[method]; ok {
		h.ServeHTTP(w, r)
		return
	}
	allowed := strings.Join(slices.Sorted(maps.Keys(m)), ", ")
	w.Header().Set("Allow", allowed)
	writeError(w, http.StatusMethodNotAllowed, fmt.Errorf("%s: the method must be %s", r.Method, allowed))
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeError(w, http.StatusNotFound, fmt.Errorf("there is no %s", r.URL.Path))
}

// accepted is the first of the media types that the request's Accept names, or the last one where it names none: Accept
// lists are short, and nobody weighs these against one another.
func accepted(r *http.Request, types ...string) string {
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if t, _, err := mime.ParseMediaType(part); err == nil && slices.Contains(types, t) {
			return t
		}
	}
	return types[len(types)-1]
}

// contentType is the media type of the request's body.
func contentType(r *http.Request) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}
