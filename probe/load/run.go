package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"goodput_exporter/probe"
)

// hopelessAfter is how many requests may end without any answer, or all refused as wrong, before a run is given up.
const hopelessAfter = 20

// Do runs one level, and returns when its last request has ended. When ctx ends before that, requests in flight are
// canceled and the run so far is returned. The error is of the options.
func Do(ctx context.Context, asker Asker, o Options) (*Run, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &runner{
		Options: o, asker: asker, ended: make(chan ended, 4*hopelessAfter), giveUp: cancel,
		run: &Run{Level: o.Level, Started: time.Now(), Cores: runtime.GOMAXPROCS(0)},
	}
	cpu := cpuTime()
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for e := range r.ended {
			r.collect(e)
		}
	}()
	if o.Level.Open() {
		r.open(ctx)
	} else {
		r.closed(ctx)
	}
	close(r.ended)
	<-collected
	r.run.CPU = cpuTime() - cpu
	r.run.Interrupted = ctx.Err() != nil && r.run.Hopeless == ""
	return r.run, nil
}

func (o *Options) check() error {
	l := o.Level
	switch {
	case l.Concurrency < 0 || l.Rate < 0:
		return fmt.Errorf("%s is negative", l)
	case (l.Concurrency > 0) == (l.Rate > 0):
		return errors.New("a level has either a concurrency or a rate, and it must be positive")
	case l.Open() && o.Next == nil:
		return errors.New("an open loop needs a schedule")
	case o.Requests <= 0 && o.Duration <= 0:
		return errors.New("a run needs a number of requests or a duration, and it must be positive")
	case o.CancelShare < 0 || o.CancelShare > 1:
		return fmt.Errorf("share of requests to give up: %v is not between 0 and 1", o.CancelShare)
	case o.CancelShare > 0 && o.CancelAfter <= 0:
		return errors.New("requests that are given up need a time after which, and it must be positive")
	}
	return nil
}

// runner is a run under way.
type runner struct {
	Options
	asker  Asker
	run    *Run // collect's while the run lasts
	ended  chan ended
	giveUp context.CancelFunc

	mu       sync.Mutex
	started  int           // requests
	measured int           // of them
	from     time.Duration // start of the first that was measured
}

// ended is a request that has ended.
type ended struct {
	record Record
	result *probe.Result
}

// ticket admits one request.
type ticket struct {
	n        int
	intended time.Duration
	warmup   bool
	queued   bool // it waited for MaxInFlight
}

// admit gives out the ticket of the request that is due at an instant of the run. False: the run is over.
func (r *runner) admit(at time.Duration) (ticket, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := ticket{n: r.started, intended: at, warmup: r.started < r.WarmupRequests || at < r.WarmupDuration}
	if !t.warmup {
		if r.measured == 0 {
			r.from = at
		}
		if r.enough(at) {
			return ticket{}, false
		}
		r.measured++
	}
	r.started++
	return t, true
}

// enough reports whether all measured requests have been started.
func (r *runner) enough(at time.Duration) bool {
	return r.measured >= r.Requests && at >= r.from+r.Duration && r.measured > 0
}

// closed keeps as many requests in flight as the level says. Their first ones start one after the other: so many
// dials at one instant would be the client's delay, not the endpoint's.
func (r *runner) closed(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	for i := range r.Level.Concurrency {
		due := r.run.Started.Add(r.Ramp * time.Duration(i) / time.Duration(r.Level.Concurrency))
		workers.Go(func() {
			if !waitUntil(ctx, due) {
				return
			}
			for ctx.Err() == nil {
				t, ok := r.admit(time.Since(r.run.Started))
				if !ok {
					return
				}
				r.ask(ctx, t)
			}
		})
	}
}

// open starts requests at the instants of the schedule, however long those before them take.
func (r *runner) open(ctx context.Context) {
	var requests sync.WaitGroup
	defer requests.Wait()
	slots := make(chan struct{}, max(r.MaxInFlight, 1))
	for {
		at, ok := r.Next()
		if !ok || !waitUntil(ctx, r.run.Started.Add(at)) {
			return
		}
		t, ok := r.admit(at)
		if !ok {
			return
		}
		if r.MaxInFlight > 0 {
			select {
			case slots <- struct{}{}:
			default:
				t.queued = true
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					r.countUnsent()
					return
				}
			}
		}
		requests.Go(func() {
			r.ask(ctx, t)
			if r.MaxInFlight > 0 {
				<-slots
			}
		})
	}
}

// countUnsent counts the requests that are due by now, the one that waits among them.
func (r *runner) countUnsent() {
	now := time.Since(r.run.Started)
	for {
		r.run.Unsent++
		if at, ok := r.Next(); !ok || at > now {
			return
		}
	}
}

// ask sends one request and hands on what became of it.
func (r *runner) ask(ctx context.Context, t ticket) {
	asked, impatient := ctx, r.impatient(t.n)
	if impatient {
		var cancel context.CancelFunc
		asked, cancel = context.WithCancel(ctx)
		defer time.AfterFunc(r.CancelAfter, cancel).Stop()
		defer cancel()
	}
	result := r.asker.Ask(asked, t.n)
	record := newRecord(t.n, r.run.Started, t.intended, result, time.Now())
	record.Warmup, record.Queued = t.warmup, t.queued
	record.GivenUp = impatient && result.Outcome == probe.Canceled && ctx.Err() == nil
	r.ended <- ended{record, result}
}

// impatient reports whether a request is one of those that are given up.
func (r *runner) impatient(n int) bool {
	return r.CancelShare > 0 && rand.New(rand.NewPCG(r.Seed, uint64(n))).Float64() < r.CancelShare
}

// collect adds a request that has ended to the run.
func (r *runner) collect(e ended) {
	run, rec := r.run, e.record
	if !rec.Warmup {
		first := run.Window == Window{}
		if first || rec.Sent < run.Window.From {
			run.Window.From = rec.Sent
		}
		run.Window.LastSend = max(run.Window.LastSend, rec.Sent)
		run.Window.To = max(run.Window.To, rec.Ended)
		if rec.Outcome.Success() && !e.result.Has(probe.FlagOwnLag) { // else the gaps are ours, not the endpoint's
			for _, gap := range e.result.ChunkGaps {
				run.Gaps.Add(gap)
			}
		}
	}
	run.Records = append(run.Records, rec)
	if r.Observe != nil {
		r.Observe(rec, e.result)
	}
	if len(run.Records) == hopelessAfter && unanswered(run.Records) {
		run.Hopeless = fmt.Sprintf("the first %d requests all ended without an answer, the last one as %s (%s): %s",
			hopelessAfter, rec.Outcome, rec.Reason, rec.Error)
		r.giveUp()
	}
}

// unanswered reports whether no request got further than a connection that failed or a refusal.
func unanswered(records []Record) bool {
	for i := range records {
		if o := records[i].Outcome; o != probe.ConnectionError && o != probe.ClientError && o != probe.LocalError {
			return false
		}
	}
	return true
}

// waitUntil waits until an instant. False: ctx ended before.
func waitUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
