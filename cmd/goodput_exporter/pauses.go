package main

import (
	"context"
	"errors"
	"time"

	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	livepage "goodput_exporter/dashboards/live"
	"goodput_exporter/probe/pause"
)

// paused reports whether a series is not to be probed now, on purpose.
func (d *daemon) paused(target, scenario string) bool {
	_, on := d.pauses.Active(target, scenario, time.Now())
	return on
}

// pauseOf says why a series is not probed, as the live state tells it.
func (d *daemon) pauseOf(target, scenario string, now time.Time) (live.Pause, bool) {
	p, on := d.pauses.Active(target, scenario, now)
	if !on {
		return live.Pause{}, false
	}
	told := live.Pause{Reason: p.Reason, By: p.By}
	if p.Kind == pause.Maintenance {
		told.By = string(p.Kind)
	}
	if !p.Until.IsZero() {
		told.Until = &p.Until
	}
	return told, true
}

// silences are the pauses that people make, and the windows of maintenance, as the live page has them.
type silences struct{ *daemon }

// List implements livepage.Silences.
func (s silences) List() []livepage.Silence {
	var list []livepage.Silence
	for _, silence := range s.pauses.Silences() {
		list = append(list, shown(silence))
	}
	now := time.Now()
	cfg := s.config.Load() // once: a reload in between may have fewer windows
	for i := range cfg.Maintenance {
		if m := &cfg.Maintenance[i]; m.Contains(now) {
			list = append(list, windows(m, now)...)
		}
	}
	return list
}

// windows returns what a window of maintenance is to the page: one silence for each target and scenario that it names.
func windows(m *config.Maintenance, now time.Time) []livepage.Silence {
	until, _ := m.End(now)
	all := []string{""}
	targets, scenarios := m.Targets, m.Scenarios
	if len(targets) == 0 {
		targets = all
	}
	if len(scenarios) == 0 {
		scenarios = all
	}
	var list []livepage.Silence
	for _, target := range targets {
		for _, scenario := range scenarios {
			list = append(list, livepage.Silence{
				ID: m.Name, Target: target, Scenario: scenario, Start: m.From, Until: until, Reason: m.Name, Origin: livepage.OriginConfig,
			})
		}
	}
	return list
}

// Create implements livepage.Silences.
func (s silences) Create(_ context.Context, wanted livepage.Silence) (livepage.Silence, error) {
	made, err := s.pauses.Create(pause.Silence{
		Target: wanted.Target, Scenario: wanted.Scenario, From: wanted.Start, Until: wanted.Until, Reason: wanted.Reason, By: wanted.By,
	})
	return shown(made), pageError(err)
}

// Delete implements livepage.Silences.
func (s silences) Delete(_ context.Context, id string) error { return pageError(s.pauses.Delete(id)) }

func shown(s pause.Silence) livepage.Silence {
	return livepage.Silence{ID: s.ID, Target: s.Target, Scenario: s.Scenario, Start: s.From, Until: s.Until, Reason: s.Reason, By: s.By}
}

// pageError gives an error of the pauses the class by which the page answers.
func pageError(err error) error {
	for ours, theirs := range map[error]error{
		pause.ErrInvalid: livepage.ErrInvalid, pause.ErrNotFound: livepage.ErrNotFound, pause.ErrTooMany: livepage.ErrUnavailable,
	} {
		if errors.Is(err, ours) {
			return classified{err, theirs}
		}
	}
	return err
}

// classified is an error that is also of a class, of which its words say nothing.
type classified struct{ error, class error }

func (c classified) Error() string   { return c.error.Error() }
func (c classified) Unwrap() []error { return []error{c.error, c.class} }
