package pause

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of silences. A longer pause belongs into the configuration, where others see it and it is under review.
const (
	MaxSilences = 1000               // that have not ended
	MaxAhead    = 7 * 24 * time.Hour // from now until the end of a silence
	maxReason   = 500                // bytes
	maxBy       = 100                // bytes
)

// What can be wrong with a request.
var (
	ErrInvalid  = errors.New("not a valid silence")
	ErrTooMany  = fmt.Errorf("there are %d silences already, as many as may be: delete some", MaxSilences)
	ErrNotFound = errors.New("no such silence, or it has ended")
)

// Silence is a pause of one target, or of one series of it, that somebody asked for.
type Silence struct {
	ID       string    `json:"id"`
	Target   string    `json:"target"`
	Scenario string    `json:"scenario,omitempty"` // "" is all of the target
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"` // the first instant after it
	Reason   string    `json:"reason"`
	By       string    `json:"by,omitempty"`
}

// Create begins a silence, or plans one, and returns it with its new id. From is now where it is zero. The error wraps
// ErrInvalid where the silence cannot be, and ErrTooMany where there is no room; any other says that the file could not be
// written. With an error nothing has changed.
func (r *Registry) Create(s Silence) (Silence, error) {
	r.changing.Lock()
	defer r.changing.Unlock()
	now := time.Now()
	if s.From.IsZero() {
		s.From = now
	}
	// Without the monotonic clock: silences go by the wall clock, as the windows and after a restart.
	s.ID, s.From, s.Until = rand.Text(), s.From.UTC().Round(0), s.Until.UTC().Round(0)
	if err := r.check(&s, now); err != nil {
		return Silence{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	present := r.present(now)
	if len(present) >= MaxSilences {
		return Silence{}, ErrTooMany
	}
	if err := r.change(append(present, &s)); err != nil {
		return Silence{}, err
	}
	return s, nil
}

// Delete ends a silence. The error is ErrNotFound where there is none with this id; any other says that the file could not
// be written, and the silence goes on.
func (r *Registry) Delete(id string) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	present := r.present(time.Now())
	i := slices.IndexFunc(present, func(s *Silence) bool { return s.ID == id })
	if i < 0 {
		return ErrNotFound
	}
	return r.change(slices.Delete(present, i, i+1))
}

// Silences returns those that have not ended, planned ones among them, in the order of their creation.
func (r *Registry) Silences() []Silence {
	present := r.present(time.Now())
	list := make([]Silence, len(present))
	for i, s := range present {
		list[i] = *s
	}
	return list
}

// present returns a new list of the silences that have not ended.
func (r *Registry) present(now time.Time) []*Silence {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(r.silences), func(s *Silence) bool { return !now.Before(s.Until) })
}

// change writes silences to the file and puts them in the place of the present ones.
func (r *Registry) change(silences []*Silence) error {
	if err := r.save(silences); err != nil {
		return err
	}
	r.put(silences)
	return nil
}

func (r *Registry) put(silences []*Silence) {
	byTarget := make(map[string][]*Silence)
	for _, s := range silences {
		byTarget[s.Target] = append(byTarget[s.Target], s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silences, r.byTarget = silences, byTarget
}

// silenced returns the silence of a series that ends last, nil where there is none. The caller holds the lock.
func (r *Registry) silenced(target, scenario string, now time.Time) (last *Silence) {
	for _, s := range r.byTarget[target] {
		covers := s.Scenario == "" || s.Scenario == scenario
		if covers && !now.Before(s.From) && now.Before(s.Until) && (last == nil || s.Until.After(last.Until)) {
			last = s
		}
	}
	return last
}

func (r *Registry) check(s *Silence, now time.Time) error {
	if err := r.checkSeries(s); err != nil {
		return err
	}
	switch {
	case s.Until.IsZero():
		return errors.New("until is missing: say when it ends")
	case !s.Until.After(now):
		return errors.New("until is over already")
	case !s.From.Before(s.Until):
		return errors.New("until must be after from")
	case s.Until.Sub(now) > MaxAhead:
		return fmt.Errorf("until may be %d days from now at most: put a longer pause into the configuration, as maintenance", int(MaxAhead/(24*time.Hour)))
	case strings.TrimSpace(s.Reason) == "":
		return errors.New("reason is missing: tell others why")
	case len(s.Reason) > maxReason || !utf8.ValidString(s.Reason):
		return fmt.Errorf("reason must be UTF-8 of %d bytes at most", maxReason)
	case len(s.By) > maxBy || !utf8.ValidString(s.By):
		return fmt.Errorf("by must be UTF-8 of %d bytes at most", maxBy)
	}
	return nil
}

// checkSeries refuses what the configuration does not have: a typing error would let probes go on.
func (r *Registry) checkSeries(s *Silence) error {
	r.mu.RLock()
	cfg := r.config
	r.mu.RUnlock()
	known := false
	for _, series := range cfg.Series {
		if series.Target.Name == s.Target {
			if known = true; s.Scenario == "" || s.Scenario == series.Scenario.Name {
				return nil
			}
		}
	}
	switch {
	case s.Target == "":
		return errors.New("target is missing")
	case !known:
		return fmt.Errorf("there is no target %q", s.Target)
	}
	return fmt.Errorf("target %q has no scenario %q", s.Target, s.Scenario)
}
