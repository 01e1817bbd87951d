package page

import (
	"sync"
	"time"

	"goodput_exporter/collector/live"
)

// maxAge is how old what is shared may be. live.js waits at least as long after an event before it asks, so that what it
// gets is never older than the event.
const maxAge = time.Second

// cache shares what was rendered among those who look at the same moment: an outage makes all of them look at once, and
// must not take the processor from the probes.
type cache struct {
	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	at     time.Time
	render func() ([]byte, error) // once
}

// maxEntries bounds the memory of a cache: the rows of some thousand series are as many times 3 KB.
const maxEntries = 4096

// get returns what render does, or did for the same key within maxAge.
func (c *cache) get(key string, render func() ([]byte, error)) ([]byte, error) {
	return c.entry(key, render).render()
}

func (c *cache) entry(key string, render func() ([]byte, error)) entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	e, ok := c.entries[key]
	if ok && now.Sub(e.at) < maxAge {
		return e
	}
	if c.entries == nil || len(c.entries) >= maxEntries {
		c.entries = map[string]entry{}
	}
	e = entry{now, sync.OnceValues(render)}
	c.entries[key] = e
	return e
}

// snapshot is the last status of all series: with thousands of series it is the dearest thing here.
type snapshot struct {
	mu     sync.Mutex
	status *live.Status
}

// all returns the status of all series, without their last probes.
func (p *Page) all() *live.Status {
	p.snapshot.mu.Lock()
	defer p.snapshot.mu.Unlock()
	now := time.Now()
	if s := p.snapshot.status; s == nil || now.Sub(s.Now) >= maxAge || now.Before(s.Now) {
		p.snapshot.status = p.opts.Live.Status(now, live.StatusOptions{})
	}
	return p.snapshot.status
}

// one returns the status of one series with some of its last probes, and false where there is none of this key.
func (p *Page) one(key string, probes int) (live.SeriesStatus, bool) {
	if p.opts.Live.Series(key) == nil {
		return live.SeriesStatus{}, false
	}
	st := p.opts.Live.Status(time.Now(), live.StatusOptions{Key: key, Probes: probes})
	if len(st.Series) == 0 { // it died in between
		return live.SeriesStatus{}, false
	}
	return st.Series[0], true
}
