package page

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"goodput_exporter/collector/live"
	"goodput_exporter/probe"
)

// demand holds the probes on demand: which are under way, and the last ones' stories. They are no part of a series'
// history, since they are outside its SLO.
type demand struct {
	limiter *rate.Limiter
	prefix  string // of ids: it tells those of this process from those of the one before

	mu      sync.Mutex
	running map[string]bool // by key of the series
	stories []live.Story    // the oldest first
	number  uint64          // of the last story
}

// Bounds of the probes on demand.
const (
	demandRate  = 1 // a second, over all series
	demandBurst = 5
	maxDemand   = 100 // stories
	maxText     = 16 << 10
)

func newDemand() demand {
	return demand{
		limiter: rate.NewLimiter(demandRate, demandBurst),
		prefix:  "demand-" + strconv.FormatInt(time.Now().UnixMilli(), 36) + "-",
		running: map[string]bool{},
	}
}

// begin reserves a series, or says why not.
func (d *demand) begin(key string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running[key] {
		return fmt.Errorf("%w: a probe of %s on demand is under way", ErrBusy, key)
	}
	if r := d.limiter.Reserve(); r.Delay() > 0 {
		wait := r.Delay()
		r.Cancel()
		return limited{wait}
	}
	d.running[key] = true
	return nil
}

func (d *demand) end(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, key)
}

// keep remembers a result and returns its story.
func (d *demand) keep(key string, r *probe.Result) live.Story {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.number++
	st := live.Story{ID: d.prefix + strconv.FormatUint(d.number, 10), Key: key, Missed: r.Missed(), Result: r}
	if len(r.Text) > maxText {
		short := *r
		short.Text = r.Text[:maxText]
		st.Result, st.Shortened = &short, true
	}
	for _, gap := range r.ChunkGaps {
		st.Gaps = append(st.Gaps, gap.Seconds())
	}
	if len(d.stories) == maxDemand {
		d.stories = slices.Delete(d.stories, 0, 1)
	}
	d.stories = append(d.stories, st)
	return st
}

func (d *demand) story(id string) (live.Story, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, st := range d.stories {
		if st.ID == id {
			return st, true
		}
	}
	return live.Story{}, false
}

// of returns the stories of a series, the newest first.
func (d *demand) of(key string) []live.Story {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []live.Story
	for _, st := range slices.Backward(d.stories) {
		if st.Key == key {
			list = append(list, st)
		}
	}
	return list
}

// probeNow sends one probe of a series and remembers what became of it.
func (p *Page) probeNow(ctx context.Context, key string) (live.Story, error) {
	switch {
	case p.opts.Probe == nil:
		return live.Story{}, fmt.Errorf("%w: probes on demand are not offered", ErrUnavailable)
	case p.opts.Live.Series(key) == nil:
		return live.Story{}, fmt.Errorf("%w: there is no series %s", ErrNotFound, key)
	}
	if err := p.demand.begin(key); err != nil {
		return live.Story{}, err
	}
	defer p.demand.end(key)
	r, err := p.opts.Probe(ctx, key)
	if err != nil {
		return live.Story{}, err
	}
	return p.demand.keep(key, r), nil
}
