package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// What Options.Probe and Silences return, wrapped, where they did not do what they were asked.
var (
	ErrInvalid     = errors.New("invalid")               // 400
	ErrNotFound    = errors.New("not found")             // 404
	ErrBusy        = errors.New("busy")                  // 409
	ErrBudget      = errors.New("the budget is used up") // 429
	ErrUnavailable = errors.New("unavailable")           // 503
)

// limited is an error that is over after a time.
type limited struct{ wait time.Duration }

func (e limited) Error() string {
	return fmt.Sprintf("too many probes on demand: wait %s", e.wait.Round(time.Second))
}

// status is what HTTP says for an error.
func status(err error) int {
	var tooLarge *http.MaxBytesError
	var tooMany limited
	for _, c := range []struct {
		is     bool
		status int
	}{
		{errors.As(err, &tooLarge), http.StatusRequestEntityTooLarge},
		{errors.As(err, &tooMany), http.StatusTooManyRequests},
		{errors.Is(err, ErrInvalid), http.StatusBadRequest},
		{errors.Is(err, ErrNotFound), http.StatusNotFound},
		{errors.Is(err, ErrBusy), http.StatusConflict},
		{errors.Is(err, ErrBudget), http.StatusTooManyRequests},
		{errors.Is(err, ErrUnavailable), http.StatusServiceUnavailable},
	} {
		if c.is {
			return c.status
		}
	}
	return http.StatusInternalServerError
}

// invalidError is an ErrInvalid that says only what is wrong.
type invalidError struct{ error }

func (e invalidError) Is(target error) bool { return target == ErrInvalid }

func (e invalidError) Unwrap() error { return e.error }

// invalid is an error of what was asked.
func invalid(format string, args ...any) error { return invalidError{fmt.Errorf(format, args...)} }

// fail answers with an error as JSON.
func fail(w http.ResponseWriter, err error) {
	retryAfter(w, err)
	writeError(w, status(err), err)
}

func retryAfter(w http.ResponseWriter, err error) {
	if e := (limited{}); errors.As(err, &e) {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.wait/time.Second)+1))
	}
}

func writeError(w http.ResponseWriter, code int, err error) {
	writeJSON(w, code, struct {
		Error string `json:"error"`
	}{err.Error()})
}

// writeJSON answers with v. That the client is gone by now is nobody's concern.
func writeJSON(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n'))
}
