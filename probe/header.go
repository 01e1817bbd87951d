package probe

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// What is kept of the headers of a response, at most.
const (
	maxHeaders     = 32  // values; the first ones by name
	maxHeaderBytes = 256 // of each value
)

// maskedHeaders are those of a response whose values are nobody's business.
var maskedHeaders = map[string]bool{
	"Authorization": true, "Set-Cookie": true, "X-Amz-Security-Token": true, "X-Api-Key": true, "X-Auth-Token": true,
}

// keepHeader copies the response's headers into a result that is not good: of those that are, nobody asks.
func (a *attempt) keepHeader() {
	r := a.result
	if r.Outcome == Good || a.head == nil {
		return
	}
	secrets := a.secrets()
	kept := 0
	r.Header = http.Header{}
	for _, name := range slices.Sorted(maps.Keys(a.head)) {
		for _, value := range a.head[name] {
			if kept++; kept > maxHeaders {
				return
			}
			r.Header.Add(name, headerValue(name, value, secrets))
		}
	}
}

func headerValue(name, value string, secrets []string) string {
	if maskedHeaders[http.CanonicalHeaderKey(name)] {
		return redacted
	}
	for _, secret := range secrets {
		value = redact(value, secret)
	}
	if len(value) > maxHeaderBytes {
		value = strings.ToValidUTF8(value[:maxHeaderBytes], "") + "…"
	}
	return strings.Clone(value) // else it would keep all of the head in memory
}
