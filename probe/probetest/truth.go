package probetest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Truth is what a server knows of one request for certain. As JSON its instants are nanoseconds of the clock
// that all processes of a machine share, and another process reads them as instants of its own.
type Truth struct {
	RequestID string      // header X-Request-Id, as the client sent it
	TraceID   string      // of the header traceparent: 32 hex digits
	Received  time.Time   // when the last byte of the request had arrived
	Kernel    bool        // the kernel said so; else it was the return of the read
	Writes    []time.Time // the instant just before each write that held a token
}

type truthJSON struct {
	RequestID string  `json:"request_id,omitempty"`
	TraceID   string  `json:"trace_id,omitempty"`
	Received  int64   `json:"received_ns"`
	Kernel    bool    `json:"kernel"`
	Writes    []int64 `json:"writes_ns"`
}

// MarshalJSON implements json.Marshaler.
func (t Truth) MarshalJSON() ([]byte, error) { return json.Marshal(t.json()) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Truth) UnmarshalJSON(data []byte) error {
	var in truthJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*t = in.truth()
	return nil
}

func (t Truth) json() truthJSON {
	out := truthJSON{t.RequestID, t.TraceID, toMachine(t.Received), t.Kernel, make([]int64, len(t.Writes))}
	for i, w := range t.Writes {
		out.Writes[i] = toMachine(w)
	}
	return out
}

func (in truthJSON) truth() Truth {
	t := Truth{in.RequestID, in.TraceID, fromMachine(in.Received), in.Kernel, make([]time.Time, len(in.Writes))}
	for i, w := range in.Writes {
		t.Writes[i] = fromMachine(w)
	}
	return t
}

// truthOf begins the truth of a request.
func truthOf(h http.Header) Truth {
	return Truth{RequestID: h.Get("X-Request-Id"), TraceID: traceID(h.Get("Traceparent"))}
}

// traceID returns the trace id of a W3C traceparent; "" where it is none.
func traceID(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[1]) != 32 {
		return ""
	}
	return parts[1]
}
