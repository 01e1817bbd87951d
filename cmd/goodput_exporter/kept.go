package main

import (
	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"goodput_exporter/collector/journal"
	"goodput_exporter/probe/pause"
)

// kept is what outlives the process, as far as the flags ask for it.
type kept struct {
	journal *journal.Journal // nil: there is none
	pauses  *pause.Registry
}

func (f *flags) keep(logger log.Logger) (kept, error) {
	pauses, err := pause.New(pause.Options{File: f.silencesFile})
	if err != nil {
		return kept{}, err
	}
	j, err := f.journal.open(logger)
	return kept{j, pauses}, err
}

// close writes what is still to be written. No probe may run any more.
func (k kept) close(logger log.Logger) {
	if k.journal == nil {
		return
	}
	if err := k.journal.Close(); err != nil {
		level.Error(logger).Log("msg", "close the journal", "err", err)
	}
}
