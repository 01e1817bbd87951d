package probetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// NewHandler returns a simulated endpoint without a server of its own. Served times are then those of the
// handler, and a reset is an aborted connection.
func NewHandler(c Config) (http.Handler, error) { return newHandler(c) }

type handler struct {
	config  Config
	models  map[string]*runningModel
	mux     *http.ServeMux
	report  *report
	open    atomic.Int64 // requests being answered
	started time.Time
}

// runningModel is a model with its state.
type runningModel struct {
	Model
	slots   chan struct{} // nil: no limit
	waiting atomic.Int64
	mu      sync.Mutex
	counts  map[kind]int
}

func newHandler(c Config) (*handler, error) {
	h := &handler{config: c, models: map[string]*runningModel{}, mux: http.NewServeMux(), report: newReport(c.Keep), started: time.Now()}
	for _, m := range c.Models {
		if m.Name == "" || h.models[m.Name] != nil {
			return nil, fmt.Errorf("model %q: want names that are not empty and differ", m.Name)
		}
		running := &runningModel{Model: m, counts: map[kind]int{}}
		if m.Concurrency > 0 {
			running.slots = make(chan struct{}, m.Concurrency)
		}
		h.models[m.Name] = running
	}
	for _, route := range routes {
		for _, pattern := range route.patterns {
			h.mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, route) })
		}
	}
	h.mux.HandleFunc("GET /v1/models", h.list)
	h.mux.HandleFunc("GET /truth", h.report.truths)
	h.mux.Handle("GET /metrics", h.report.metrics())
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, openAI{}, &apiError{status: http.StatusNotFound, message: "no such path: " + r.URL.Path})
	})
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mux.ServeHTTP(w, r)
}

// maxQuery bounds the body of a request, in bytes.
const maxQuery = 16 << 20

func (h *handler) answer(w http.ResponseWriter, r *http.Request, route route) {
	x := &exchange{open: &h.open, dialect: route.dialect, w: w, r: r}
	x.served = Served{Truth: truthOf(r.Header), Protocol: route.protocol}
	defer func() {
		h.report.add(x.served)
		if h.config.Observe != nil {
			h.config.Observe(x.served)
		}
	}()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuery))
	x.served.Received = time.Now()
	if c := connOf(r); c != nil {
		x.served.Received, x.served.Kernel = c.received()
	}
	if err != nil {
		x.refuse(&apiError{status: http.StatusBadRequest, message: "reading the body: " + err.Error()})
		return
	}
	if x.query, err = route.dialect.read(r, body); err != nil {
		x.refuse(&apiError{status: http.StatusBadRequest, message: err.Error()})
		return
	}
	x.query.protocol = route.protocol
	if x.model = h.find(x.query); x.model == nil {
		x.refuse(&apiError{status: http.StatusNotFound, message: fmt.Sprintf("the model %q does not exist", x.query.model)})
		return
	}
	x.plan = x.model.plan(h.config.Seed, x.query, x.model.count(x.query.kind()))
	x.served.Model, x.served.Stream, x.served.Fault = x.model.Name, x.query.stream, x.plan.fault.Kind
	x.served.InputTokens = x.query.inputTokens
	x.run()
}

// find returns the model of a request: of one that cannot name it, the first.
func (h *handler) find(q *query) *runningModel {
	if q.anyModel && len(h.config.Models) > 0 {
		q.model = h.config.Models[0].Name
	}
	return h.models[q.model]
}

// count numbers the requests of each kind, from 1.
func (m *runningModel) count(k kind) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[k]++
	return m.counts[k]
}

var errQueueFull = errors.New("too many requests are waiting")

// enter waits for a free place, and returns what gives it back.
func (m *runningModel) enter(ctx context.Context) (release func(), err error) {
	if m.slots == nil {
		return func() {}, nil
	}
	leave := func() { <-m.slots }
	select {
	case m.slots <- struct{}{}:
		return leave, nil
	default:
	}
	waiting := m.waiting.Add(1)
	defer m.waiting.Add(-1)
	if m.MaxQueue > 0 && waiting > int64(m.MaxQueue) {
		return nil, errQueueFull
	}
	select {
	case m.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// writeError answers with an error in the form of an API, and returns the status that it got there.
func writeError(w http.ResponseWriter, d dialect, e *apiError) int {
	w.Header().Set("Content-Type", jsonType)
	body := d.refuse(w.Header(), e)
	w.WriteHeader(e.status)
	_, _ = w.Write(body)
	return e.status
}

func (h *handler) list(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	data := []entry{}
	for _, m := range h.config.Models {
		data = append(data, entry{ID: m.Name, Object: "model", Created: h.started.Unix(), OwnedBy: "probetest"})
	}
	w.Header().Set("Content-Type", jsonType)
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}
