package probetest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Served is the truth about one request.
type Served struct {
	Truth
	Protocol     string // by whose path it came
	Model        string // "" where there is none of that name
	Stream       bool   // it was asked for
	Fault        FaultKind
	Status       int // 0: no response
	InputTokens  int
	OutputTokens int // those that were written
}

type servedJSON struct {
	truthJSON
	Protocol     string    `json:"protocol"`
	Model        string    `json:"model"`
	Stream       bool      `json:"stream"`
	Fault        FaultKind `json:"fault,omitempty"`
	Status       int       `json:"status"`
	InputTokens  int       `json:"input_tokens"`
	OutputTokens int       `json:"output_tokens"`
}

// MarshalJSON implements json.Marshaler.
func (s Served) MarshalJSON() ([]byte, error) {
	return json.Marshal(servedJSON{s.json(), s.Protocol, s.Model, s.Stream, s.Fault, s.Status, s.InputTokens, s.OutputTokens})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Served) UnmarshalJSON(data []byte) error {
	var in servedJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*s = Served{in.truth(), in.Protocol, in.Model, in.Stream, in.Fault, in.Status, in.InputTokens, in.OutputTokens}
	return nil
}

// report tells what an endpoint did: request by request, and in numbers.
type report struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	tokens   *prometheus.CounterVec

	keep int
	mu   sync.Mutex
	next int
	kept []Served // a ring
}

const defaultKeep = 1024

func newReport(keep int) *report {
	r := &report{
		keep:     cmp.Or(keep, defaultKeep),
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "simulated_requests_total",
			Help: "Requests that are over, by protocol, model (empty: unknown), fault (none, or its kind) and status (0: no response).",
		}, []string{"protocol", "model", "fault", "status"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "simulated_output_tokens_total",
			Help: "Tokens that were written, by protocol and model.",
		}, []string{"protocol", "model"}),
	}
	r.registry.MustRegister(r.requests, r.tokens)
	return r
}

func (r *report) metrics() http.Handler {
	return promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{})
}

func (r *report) add(s Served) {
	r.requests.WithLabelValues(s.Protocol, s.Model, cmp.Or(string(s.Fault), "none"), strconv.Itoa(s.Status)).Inc()
	r.tokens.WithLabelValues(s.Protocol, s.Model).Add(float64(s.OutputTokens))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) < r.keep {
		r.kept = append(r.kept, s)
		return
	}
	r.kept[r.next] = s
	r.next = (r.next + 1) % len(r.kept)
}

// truths answers GET /truth, the oldest request first.
func (r *report) truths(w http.ResponseWriter, req *http.Request) {
	id := req.URL.Query().Get("id")
	r.mu.Lock()
	kept := append(append([]Served{}, r.kept[r.next:]...), r.kept[:r.next]...)
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	for _, s := range kept {
		if id == "" || id == s.RequestID || id == s.TraceID {
			_ = lines.Encode(s) // the client is gone
		}
	}
}
