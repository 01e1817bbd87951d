package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"goodput_exporter/probe"
	"goodput_exporter/probe/load"
)

// How often the progress is told.
const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
)

// progress says on stderr how a level goes: as a bar on a terminal, as a line from time to time elsewhere.
type progress struct {
	w        io.Writer
	options  load.Options
	begin    time.Time
	bar      *progressbar.ProgressBar // nil: lines
	done     chan struct{}
	finished sync.WaitGroup

	mu                           sync.Mutex
	ended, measured, good, tries int
}

// startProgress begins to tell of a level that starts now. It must be stopped. A nil progress tells nothing.
func startProgress(w io.Writer, o load.Options) *progress {
	p := &progress{w: w, options: o, begin: time.Now(), done: make(chan struct{})}
	every := lineEvery
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		every = barEvery
		p.bar = progressbar.NewOptions64(p.total(), progressbar.OptionSetWriter(w), progressbar.OptionFullWidth(),
			progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(true))
	}
	p.finished.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.tell()
			case <-p.done:
				return
			}
		}
	})
	return p
}

// observe counts a request that has ended.
func (p *progress) observe(rec load.Record) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	if !rec.Warmup {
		p.measured++
	}
	if rec.Attempt() {
		p.tries++
		if rec.Outcome == probe.Good {
			p.good++
		}
	}
}

func (p *progress) stop() {
	if p == nil {
		return
	}
	close(p.done)
	p.finished.Wait()
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// total is how far there is to go: in requests, or in milliseconds where no number of requests was asked for.
func (p *progress) total() int64 {
	if p.options.Requests > 0 {
		return int64(p.options.Requests)
	}
	return (p.options.WarmupDuration + p.options.Duration).Milliseconds()
}

func (p *progress) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Since(p.begin)
	at := int64(p.measured)
	if p.options.Requests == 0 {
		at = elapsed.Milliseconds()
	}
	at = min(at, p.total())
	state := fmt.Sprintf("%s: %d requests, throughput %.3g/s, goodput %.3g/s", p.options.Level, p.ended,
		float64(p.tries)/elapsed.Seconds(), float64(p.good)/elapsed.Seconds())
	if p.bar != nil {
		p.bar.Describe(state)
		_ = p.bar.Set64(at)
		return
	}
	left := "unknown"
	if at > 0 {
		left = time.Duration(float64(elapsed) * float64(p.total()-at) / float64(at)).Round(time.Second).String()
	}
	fmt.Fprintf(p.w, "%s, %d %% done, time left %s\n", state, 100*at/max(1, p.total()), left)
}
