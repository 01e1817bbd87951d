// Package pause knows which series are not to be probed now, on purpose: those in a window of maintenance of the
// configuration, and those that somebody silenced while the daemon runs. It is to schedule what a calendar is to a clock.
//
// Pauses go by the wall clock. A paused slot is skipped with a reason, and is neither good nor bad; a probe that is running
// when a pause begins goes on, and counts.
package pause

import (
	"sync"
	"time"

	"goodput_exporter/config"
)

// Kind says where a pause comes from.
type Kind string

// The kinds.
const (
	Maintenance Kind = "maintenance" // a window of the configuration
	Silenced    Kind = "silence"     // a Silence
)

// Pause says why a series is not probed, and for how long.
type Pause struct {
	Kind   Kind
	ID     string    // of the silence; "" for maintenance
	Reason string    // of the silence, or the name of the window
	By     string    // who silenced it; "" for maintenance
	Until  time.Time // zero where a window lasts for more than 8 days yet
}

// Options of a Registry. The zero value is usable.
type Options struct {
	// File keeps the silences over a restart, as JSON. Without it they do not outlive the process. Its directory must
	// exist and be writable.
	File string
}

// Registry holds the pauses of a process. It is safe for concurrent use.
type Registry struct {
	opts Options

	changing sync.Mutex // one change of the silences at a time, with its write to the file

	mu       sync.RWMutex // held for moments only: a slot waits for it
	config   *config.Config
	ends     map[*config.Maintenance]end // of the windows that contain the present
	silences []*Silence                  // in the order of creation; each is immutable, some have ended
	byTarget map[string][]*Silence
}

// end is when a window that contains from ends. until is zero where it is too far to tell.
type end struct{ from, until time.Time }

// New returns a Registry without windows, and with the silences of the options' file where there is one.
func New(opts Options) (*Registry, error) {
	r := &Registry{opts: opts, config: &config.Config{}, ends: map[*config.Maintenance]end{}}
	if err := r.restore(time.Now()); err != nil {
		return nil, err
	}
	return r, nil
}

// Update puts the windows of cfg, which must be valid, in the place of the present ones. Silences stay, also those of
// targets that are gone: they may come back.
func (r *Registry) Update(cfg *config.Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.config, r.ends = cfg, map[*config.Maintenance]end{}
}

// Active returns why a series is not to be probed at now, the present; false where it is. Where there are several pauses,
// silences come first, and of them the one that ends last.
func (r *Registry) Active(target, scenario string, now time.Time) (Pause, bool) {
	r.mu.RLock()
	silence := r.silenced(target, scenario, now)
	cfg := r.config
	r.mu.RUnlock()
	if silence != nil {
		return Pause{Kind: Silenced, ID: silence.ID, Reason: silence.Reason, By: silence.By, Until: silence.Until}, true
	}
	if m, ok := cfg.Active(target, scenario, now); ok {
		return Pause{Kind: Maintenance, Reason: m.Name, Until: r.endOf(m, now)}, true
	}
	return Pause{}, false
}

// endOf returns when a window that contains now ends, the zero time where that is too far to tell. It looks it up once for
// every time that the window comes: slots and scrapes ask for each series.
func (r *Registry) endOf(m *config.Maintenance, now time.Time) time.Time {
	r.mu.RLock()
	e, ok := r.ends[m]
	r.mu.RUnlock()
	if ok && e.holds(now) {
		return e.until
	}
	until, _ := m.End(now)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends[m] = end{now, until}
	return until
}

// holds reports whether the end is that of the window at now too. One that is too far to tell is looked for again after an
// hour.
func (e end) holds(now time.Time) bool {
	limit := e.until
	if limit.IsZero() {
		limit = e.from.Add(time.Hour)
	}
	return !now.Before(e.from) && now.Before(limit)
}
