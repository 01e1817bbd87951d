// Package schedule decides when probes start: it turns tasks with an interval into slots, and each slot into a
// started probe or a skip with a reason. It knows nothing of what a probe is.
//
// Slots lie at Unix epoch + phase + k × interval. They are placed once, on the monotonic clock, and counted from
// there, so neither the length of a probe nor a step of the wall clock moves them. Phases are spread so that
// tasks of one interval neither fire together nor clump (see phase).
//
// Time is read and waited for through package time only: tests inject their clock with testing/synctest.
package schedule

import (
	"container/heap"
	"context"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

// The causes for which the context of a running probe is canceled.
var (
	ErrRemoved  = errors.New("the series was removed or replaced by a reload")
	ErrShutdown = errors.New("the scheduler was shut down")
)

// Reason says why no probe started in a slot. The set is closed: a reason is a metric label.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	ReasonLate     Reason = "late"      // the scheduler woke too late for the slot: the process was stopped or starved
	ReasonPaused   Reason = "paused"    // the series is not to be probed now: maintenance, or a silence
	ReasonOverlap  Reason = "overlap"   // the series' previous probe is still running
	ReasonInFlight Reason = "in_flight" // as many probes are running as may
	ReasonBudget   Reason = "budget"    // the target's budget does not allow another probe now
)

// Reasons lists every reason, so that their counters can be born at 0.
var Reasons = []Reason{ReasonLate, ReasonPaused, ReasonOverlap, ReasonInFlight, ReasonBudget}

// Task is one series, as the scheduler sees it. Its identity is its pointer: a caller that passes the same
// pointer to Update again says that nothing about the series has changed. It must not be modified after that.
type Task struct {
	Key      string        // unique among the tasks of a scheduler
	Interval time.Duration // between slots; positive
	Jitter   time.Duration // each slot starts up to this much later, at random; at most Interval

	Budget       *Budget // shared by the series of a target; nil is no bound
	OutputTokens int     // the most that one probe may cost of the Budget; 0: not known

	// Paused reports whether the series is not to be probed at an instant, that of a slot which is due. A slot that is
	// skipped for it costs nothing of the Budget; a probe that is running when a pause begins goes on, and counts. It must
	// return at once and must not call the scheduler. nil is never.
	Paused func(now time.Time) bool

	// Run is one probe. It is called in a goroutine of its own, once for each slot that is not skipped, and
	// returns the output tokens that it has cost, as far as it knows. It must return soon after ctx has ended;
	// context.Cause(ctx) is then ErrRemoved or ErrShutdown.
	Run func(ctx context.Context, slot Slot) (outputTokens int)

	// Skipped is told of slots that passed without a probe. It must return at once and must not call the
	// scheduler. It may be nil.
	Skipped func(reason Reason, slots int)
}

// Slot is the instant for which a probe was started.
type Slot struct {
	Scheduled time.Time     // by the series' phase and interval
	Delay     time.Duration // how much later than Scheduled and its jitter the probe started: the prober's own lag
}

// Options of a Scheduler. The zero value is useful.
type Options struct {
	Vantage     string        // names the place of this prober; another one has other phases
	MaxInFlight int           // bound on probes running at once; 0 is none
	LateLimit   float64       // share of its interval by which a slot may start late, but at least 250 ms; 0 is DefaultLateLimit
	Grace       time.Duration // at shutdown, what running probes are given to end by themselves

	// Panic is told of a panic in a task's Run; the slot is then free again, and the probe is charged to the
	// budget in full. If it is nil, such a panic ends the process, as any other would.
	Panic func(key string, value any, stack []byte)

	// Jitter returns numbers in [0, 1), from which the jitter of a slot is made. nil is rand.Float64.
	Jitter func() float64
}

// DefaultLateLimit is 0.3 s of 15 s: more than a busy machine's hiccup, and few enough slots of the other series
// that a wake after it is no burst.
const DefaultLateLimit = 0.02

// minLateLimit keeps short intervals from losing slots to the ordinary latency of a machine.
const minLateLimit = 250 * time.Millisecond

// Scheduler starts the probes of its tasks. Its methods are safe for concurrent use.
type Scheduler struct {
	opts   Options
	offset uint64    // of the vantage, in units of 2^-64 of an interval
	anchor time.Time // where the wall clock was tied to the monotonic one, once for all slots

	wake  chan struct{} // the queue was changed by Update
	ready chan struct{}
	wg    sync.WaitGroup // running probes

	mu       sync.Mutex
	series   map[string]*series
	queue    queue // of all series, by their next slot
	updated  bool  // there was an Update
	inFlight int
}

// New returns a scheduler without tasks. It does nothing before Run.
func New(opts Options) *Scheduler {
	if opts.LateLimit == 0 {
		opts.LateLimit = DefaultLateLimit
	}
	if opts.Jitter == nil {
		opts.Jitter = rand.Float64
	}
	return &Scheduler{
		opts:   opts,
		offset: offset(opts.Vantage),
		anchor: time.Now(),
		wake:   make(chan struct{}, 1),
		ready:  make(chan struct{}),
		series: make(map[string]*series),
	}
}

// Run starts probes until ctx ends. Then it gives running ones the grace of the options, cancels those left
// with ErrShutdown, and returns when the last has returned. It may be called once.
func (s *Scheduler) Run(ctx context.Context) {
	probes, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(ErrShutdown)

	s.begin(time.Now())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if next, ok := s.dispatch(probes, time.Now()); ok {
			timer.Reset(time.Until(next))
		}
		select {
		case <-timer.C:
		case <-s.wake:
		case <-ctx.Done():
		}
	}

	grace := time.AfterFunc(s.opts.Grace, func() { stop(ErrShutdown) })
	defer grace.Stop()
	s.wg.Wait()
}

// begin forgets the slots between Update and Run: nobody could have kept them.
func (s *Scheduler) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sr := range s.queue {
		s.place(sr, now)
	}
	heap.Init(&s.queue)
}

// dispatch starts or skips what is due, and returns the time of the next slot. It is false if there is none.
func (s *Scheduler) dispatch(ctx context.Context, now time.Time) (next time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		sr := s.queue[0]
		if sr.due.After(now) {
			s.checkReady()
			return sr.due, true
		}
		s.take(ctx, sr, now)
		heap.Fix(&s.queue, 0)
	}
	s.checkReady()
	return time.Time{}, false
}

// take starts or skips the slot of a series that is due, and moves the series to its next one.
func (s *Scheduler) take(ctx context.Context, sr *series, now time.Time) {
	sr.had = true
	if now.Sub(sr.due) > s.lateLimit(sr.task.Interval) {
		// With it go all slots whose successor's time has come as well.
		missed := max(1, sr.slotBefore(now)-sr.slot)
		s.skip(sr, ReasonLate, int(missed))
		s.move(sr, sr.slot+missed)
		return
	}
	if reason, refused := s.refusal(sr, now); refused {
		s.skip(sr, reason, 1)
	} else {
		s.start(ctx, sr)
	}
	s.move(sr, sr.slot+1)
}

// refusal returns why a probe may not start now. If it may, its cost is reserved.
func (s *Scheduler) refusal(sr *series, now time.Time) (Reason, bool) {
	switch {
	case sr.task.Paused != nil && sr.task.Paused(now):
		return ReasonPaused, true
	case sr.running != nil:
		return ReasonOverlap, true
	case s.opts.MaxInFlight > 0 && s.inFlight >= s.opts.MaxInFlight:
		return ReasonInFlight, true
	case !sr.task.Budget.reserve(sr.task.OutputTokens):
		return ReasonBudget, true
	}
	return "", false
}

func (s *Scheduler) skip(sr *series, reason Reason, slots int) {
	if sr.task.Skipped != nil {
		sr.task.Skipped(reason, slots)
	}
}

// lateLimit returns how late a slot may start. It stays within the interval, so that a wake starts no two
// slots of a series.
func (s *Scheduler) lateLimit(interval time.Duration) time.Duration {
	return min(interval, max(minLateLimit, time.Duration(s.opts.LateLimit*float64(interval))))
}

// start starts the probe of a series' slot.
func (s *Scheduler) start(ctx context.Context, sr *series) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &running{cancel: cancel, done: make(chan struct{})}
	sr.running = p
	s.inFlight++
	task, due, slot := sr.task, sr.due, Slot{Scheduled: sr.scheduled()}
	s.wg.Go(func() {
		defer s.finish(sr, p)
		s.probe(ctx, task, due, slot)
	})
}

// probe calls the task's Run and charges the budget.
func (s *Scheduler) probe(ctx context.Context, task *Task, due time.Time, slot Slot) {
	cost := task.OutputTokens // what a panic costs is not known: all of it
	defer func() { task.Budget.settle(task.OutputTokens, cost) }()
	if s.opts.Panic != nil {
		defer func() {
			if value := recover(); value != nil {
				s.opts.Panic(task.Key, value, debug.Stack())
			}
		}()
	}
	slot.Delay = time.Since(due)
	cost = task.Run(ctx, slot)
}

// finish frees the slot of a probe that has returned.
func (s *Scheduler) finish(sr *series, p *running) {
	s.mu.Lock()
	sr.running = nil
	s.inFlight--
	s.mu.Unlock()
	p.cancel(nil)
	close(p.done)
}

// Next returns when the next slot of the task is due, its jitter included. It is false for an unknown key.
func (s *Scheduler) Next(key string) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sr, ok := s.series[key]
	if !ok {
		return time.Time{}, false
	}
	return sr.due, true
}

// Ready returns a channel that is closed as soon as every task has had its first slot, whatever became of it.
// It stays closed when a later Update brings new tasks.
func (s *Scheduler) Ready() <-chan struct{} { return s.ready }

func (s *Scheduler) checkReady() {
	select {
	case <-s.ready:
		return
	default:
	}
	if !s.updated {
		return
	}
	for _, sr := range s.queue {
		if !sr.had {
			return
		}
	}
	close(s.ready)
}
