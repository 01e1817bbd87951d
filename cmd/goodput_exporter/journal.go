package main

import (
	"fmt"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/alecthomas/units"
	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"goodput_exporter/collector/journal"
	"goodput_exporter/probe"
)

// journalFlags say where results are kept on disk.
type journalFlags struct {
	path string
	size units.Base2Bytes
	age  model.Duration
	sync time.Duration
}

func (f *journalFlags) register(app *kingpin.Application) {
	app.Flag("journal.path", "File to keep results in, so that the live windows come back after a restart. Empty is none.").StringVar(&f.path)
	app.Flag("journal.max-size", "Bound on the journal, its older files included.").Default("1GiB").BytesVar(&f.size)
	app.Flag("journal.max-age", "How long the journal keeps results.").Default("4d").SetValue(&f.age)
	app.Flag("journal.sync-interval", "How often the journal is forced to disk: what a power cut may take.").Default("1s").DurationVar(&f.sync)
}

// longestWindow is how far back the live state looks, with some room.
const longestWindow = 73 * time.Hour

// open opens the journal; nil where there is none.
func (f *journalFlags) open(logger log.Logger) (*journal.Journal, error) {
	if f.path == "" {
		return nil, nil
	}
	j, err := journal.Open(journal.Options{
		Path: f.path, MaxFileBytes: int64(f.size) / journal.DefaultMaxFiles, MaxAge: time.Duration(f.age), SyncInterval: f.sync,
		OnError: func(err error) {
			level.Error(logger).Log("msg", "results are missing from the journal; probing goes on", "err", err)
		},
	})
	if err != nil {
		return nil, err
	}
	if torn := j.Stats().TornBytes; torn > 0 {
		level.Warn(logger).Log("msg", "the journal ended in the midst of a result, which was cut off", "bytes", torn)
	}
	return j, nil
}

// restore brings back what the journal knows of the series in force. It must end before the first probe begins.
func (d *daemon) restore(path string) error {
	if d.journal == nil {
		return nil
	}
	begin := time.Now()
	found, err := journal.Replay(path, begin.Add(-longestWindow), func(key string, r *probe.Result) {
		if s := d.live.Series(key); s != nil {
			s.Restore(r)
		}
	})
	if err != nil {
		return fmt.Errorf("restore the live windows: %w", err)
	}
	level.Info(d.logger).Log("msg", "live windows restored", "results", found.Restored, "damaged_lines", found.Damaged, "files", found.Files,
		"took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// journalMetrics returns the metrics of the journal.
func journalMetrics(j *journal.Journal) []prometheus.Collector {
	if j == nil {
		return nil
	}
	counter := func(name, help string, value func(journal.Stats) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "goodput_journal_" + name, Help: help},
			func() float64 { return float64(value(j.Stats())) })
	}
	return []prometheus.Collector{
		counter("results_written_total", "Results that were written to the journal.", func(s journal.Stats) uint64 { return s.Written }),
		counter("results_lost_total", "Results that the journal lost: the disk was too slow, or refused.", func(s journal.Stats) uint64 { return s.Lost }),
		counter("errors_total", "Errors of writing, rotating and syncing the journal.", func(s journal.Stats) uint64 { return s.Errors }),
		counter("written_bytes_total", "Bytes that were written to the journal.", func(s journal.Stats) uint64 { return s.Bytes }),
	}
}
