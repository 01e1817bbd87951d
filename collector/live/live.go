// Package live holds the live state of a running daemon in memory: what each series' probes saw lately, counted over the
// windows that the alerts look at, and the full story of the last ones that were not good. The live page, the JSON API
// and goodputctl status are views of it. It says the same as the shipped rules and alerts, without a Prometheus.
//
// Time within it is the wall clock of the process's start carried on by the monotonic clock, so that a step of the wall
// clock moves no window. Results that were restored from a journal stand where their wall time says.
//
// Windows of up to an hour hold exactly the attempts of that time. Longer ones begin at the nearest edge of a bucket: of 5
// minutes up to a day, of an hour beyond.
package live

import (
	"cmp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"goodput_exporter/config"
)

// Options of a Live. The zero value is usable.
type Options struct {
	// Next returns the next slot of a series by its config.Series.Key, and false where there is none. It is called at
	// every Status, and must not call the Live. It may be nil.
	Next func(key string) (time.Time, bool)

	// Paused returns why a series is not probed now, on purpose, and false where it is. It is called at every result and
	// Status, and must not call the Live. It may be nil.
	Paused func(target, scenario string, now time.Time) (Pause, bool)

	MaxNotGood int // stories of probes that were not good, by series; 0 is DefaultMaxNotGood
	MaxGood    int // stories of good probes, by series; 0 is DefaultMaxGood

	// MaxBytes bounds the memory of all stories; 0 is DefaultMaxBytes. All series have the same share of it, so that
	// none pushes out what another has seen; each keeps at least its last story, cut to fit.
	MaxBytes int
}

// Defaults of Options.
const (
	DefaultMaxNotGood = 20
	DefaultMaxGood    = 3
	DefaultMaxBytes   = 64 << 20
)

// Live is the live state of a process. It is safe for concurrent use.
type Live struct {
	opts   Options
	start  time.Time
	number atomic.Uint64 // of the last result
	share  atomic.Int64  // of MaxBytes, by series
	hub    hub

	mu     sync.RWMutex // a Status sees the series before an Update or those after it
	series map[string]*Series
	listed []*Series // in the order of the configuration
}

// New returns a Live without series.
func New(opts Options) *Live {
	opts.MaxNotGood = cmp.Or(opts.MaxNotGood, DefaultMaxNotGood)
	opts.MaxGood = cmp.Or(opts.MaxGood, DefaultMaxGood)
	opts.MaxBytes = cmp.Or(opts.MaxBytes, DefaultMaxBytes)
	return &Live{opts: opts, start: time.Now(), series: map[string]*Series{}}
}

// Update brings the series to those of cfg, which must be valid: new ones are born, those that are not in it any more die
// with all that was known of them. A series keeps its memory as long as it stays equal; otherwise it dies and another is
// born.
func (l *Live) Update(cfg *config.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	series := make(map[string]*Series, len(cfg.Series))
	listed := make([]*Series, 0, len(cfg.Series))
	var changes SeriesData
	for _, sc := range cfg.Series {
		s := l.series[sc.Key()]
		if s == nil || !s.config.Equal(sc) {
			s = newSeries(l, sc, now)
			changes.Born = append(changes.Born, sc.Key())
		}
		series[sc.Key()] = s
		listed = append(listed, s)
	}
	for _, s := range l.listed {
		if series[s.key] != s {
			s.die()
			changes.Died = append(changes.Died, s.key)
		}
	}
	l.series, l.listed = series, listed
	l.share.Store(int64(l.opts.MaxBytes / max(len(listed), 1)))
	if changes.Born != nil || changes.Died != nil {
		l.hub.publish(SeriesEvent, &changes)
	}
}

// Series returns the handle of a living series by its config.Series.Key, or nil. After an Update, ask again for every
// series that is new or was changed.
func (l *Live) Series(key string) *Series {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.series[key]
}

// all returns the living series in the order of the configuration. The slice is not changed later.
func (l *Live) all() []*Series {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.listed
}

// instant is a time within the process, in nanoseconds: see the package's documentation.
type instant int64

func (l *Live) instant(t time.Time) instant {
	return instant(l.start.UnixNano()) + instant(t.Sub(l.start))
}

// id makes the id of a result's number. Its first part tells the numbers of this process from those of the one before.
func (l *Live) id(number uint64) string {
	b := strconv.AppendInt(make([]byte, 0, 32), l.start.UnixMilli(), 36)
	return string(strconv.AppendUint(append(b, '-'), number, 10))
}
