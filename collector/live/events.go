package live

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// EventType says what an Event tells. It is the event's name among server-sent events.
type EventType string

// The types of events.
const (
	ResultEvent EventType = "result" // *ResultData: a probe came to its end
	StateEvent  EventType = "state"  // *StateData: a series changed its state, or how severe it is
	SeriesEvent EventType = "series" // *SeriesData: series were born or died
)

// Event is something that happened. All subscribers share its data and, once one of them has asked for it, its JSON.
type Event struct {
	Type    EventType
	Data    any // by the type; not to be changed
	Dropped int // how many events this subscriber lost just before this one, because it was too slow

	encoded func() ([]byte, error)
}

// JSON returns the data as one object, not to be changed. It is encoded once for all subscribers.
func (e Event) JSON() ([]byte, error) { return e.encoded() }

// ResultData tells of a result.
type ResultData struct {
	Key      string `json:"key"`
	Target   string `json:"target"`
	Scenario string `json:"scenario"`
	Probe
}

// StateData tells of a change of a series' state.
type StateData struct {
	Key      string    `json:"key"`
	Target   string    `json:"target"`
	Scenario string    `json:"scenario"`
	Before   State     `json:"before"`
	State    State     `json:"state"`
	Severity Severity  `json:"severity,omitempty"`
	Since    time.Time `json:"since"`
	Reason   string    `json:"reason"`
}

// SeriesData tells of births and deaths, by the keys of the series. A series whose settings changed is in both.
type SeriesData struct {
	Born []string `json:"born,omitempty"`
	Died []string `json:"died,omitempty"`
}

// Subscribe returns a channel of all events from now on. It is closed when ctx ends. A subscriber that does not keep up
// loses events, and is told with the next one it gets how many; it never holds up a probe.
func (l *Live) Subscribe(ctx context.Context) <-chan Event {
	s := &subscriber{events: make(chan Event, backlog)}
	l.hub.join(s)
	context.AfterFunc(ctx, func() { l.hub.leave(s) })
	return s.events
}

// backlog is how many events a subscriber may lag behind. Three thousand series at 15 s have 200 results a second.
const backlog = 512

// hub hands events to subscribers.
type hub struct {
	listening atomic.Int64 // len(subscribers), to be known without waiting

	mu          sync.Mutex
	subscribers []*subscriber
}

type subscriber struct {
	events  chan Event
	dropped int // since the last event that it got
}

// heard reports whether anybody listens.
func (h *hub) heard() bool { return h.listening.Load() > 0 }

func (h *hub) join(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers = append(h.subscribers, s)
	h.listening.Add(1)
}

func (h *hub) leave(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers = slices.DeleteFunc(h.subscribers, func(t *subscriber) bool { return t == s })
	h.listening.Add(-1)
	close(s.events)
}

// publish hands an event to everybody who has room for it. data must not be changed any more.
func (h *hub) publish(t EventType, data any) {
	event := Event{Type: t, Data: data, encoded: sync.OnceValues(func() ([]byte, error) { return json.Marshal(data) })}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.subscribers {
		event.Dropped = s.dropped
		select {
		case s.events <- event:
			s.dropped = 0
		default:
			s.dropped++
		}
	}
}
