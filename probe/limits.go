package probe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"goodput_exporter/probe/arrival"
)

// stalledAfter is how late a limit may be enforced before the lateness is the prober's own fault: then nothing can
// be said of the endpoint.
const stalledAfter = 500 * time.Millisecond

// readersTurn is what the reader gets when a limit is enforced late: bytes that arrived in time may still lie unread.
const readersTurn = 20 * time.Millisecond

// lingerLimit is how long a body may go on after its protocol's sentinel, and no longer than the idle limit. Waiting for
// its end keeps the connection for the next probe.
const lingerLimit = time.Second

// errLimit is the cause with which a probe's context is canceled when one of its limits runs out.
type errLimit struct {
	reason Reason
	limit  time.Duration
	late   time.Duration // how much later than the limit it was noticed
}

func (e *errLimit) Error() string {
	return fmt.Sprintf("no end within the limit of %s (%s)", e.limit, e.reason)
}

// limits ends an exchange that takes too long: in all, to its first token, from token to token, or after its end.
// Time counts from t_send; until that is known, from the start.
type limits struct {
	total, firstToken, idle time.Duration // 0: no such limit
	exchange                *arrival.Exchange
	cancel                  context.CancelCauseFunc

	mu       sync.Mutex
	timer    *time.Timer
	started  time.Time
	token    time.Time // of the last token event; zero: none yet
	finished bool      // the answer ended: what follows is usage, sentinel, close
	done     time.Time // of the sentinel
	gaveTurn bool
	stopped  bool
}

// watch starts the clock. The caller must call stop.
func (l *limits) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = time.Now()
	at, _ := l.next()
	l.timer = time.AfterFunc(time.Until(at), l.expire)
}

func (l *limits) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.timer.Stop()
}

// onToken puts off the idle limit.
func (l *limits) onToken(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.token.IsZero()
	l.token = at
	if first {
		l.reset() // later ones only put the limit off, which expire notices
	}
}

// onFinish says that the answer is complete, and onDone that nothing else can come.
func (l *limits) onFinish(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.finished {
		l.finished, l.token = true, at
		l.reset()
	}
}

func (l *limits) onDone(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done.IsZero() {
		l.finished, l.done = true, at
		l.reset()
	}
}

func (l *limits) reset() {
	at, _ := l.next()
	if !l.stopped {
		l.timer.Reset(time.Until(at))
	}
}

// next returns when the next limit runs out, and which.
func (l *limits) next() (time.Time, errLimit) {
	start := l.started
	if t, ok := l.exchange.Start(); ok {
		start = t
	}
	at, which := start.Add(l.total), errLimit{reason: ReasonTotal, limit: l.total}
	earlier := func(from time.Time, limit time.Duration, reason Reason) {
		if t := from.Add(limit); limit > 0 && t.Before(at) {
			at, which = t, errLimit{reason: reason, limit: limit}
		}
	}
	switch {
	case !l.done.IsZero():
		earlier(l.done, lingerLimit, ReasonIdle)
		earlier(l.done, l.idle, ReasonIdle)
	case !l.token.IsZero():
		earlier(l.token, l.idle, ReasonIdle)
	default:
		earlier(start, l.firstToken, ReasonFirstToken)
	}
	return at, which
}

// expire cancels the exchange if a limit has run out, and else waits for the next.
func (l *limits) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	at, which := l.next()
	now := time.Now()
	if now.Before(at) {
		l.timer.Reset(at.Sub(now))
		return
	}
	which.late = now.Sub(at)
	if which.late > readersTurn/2 && !l.gaveTurn {
		l.gaveTurn = true
		l.timer.Reset(readersTurn)
		return
	}
	l.stopped = true
	l.cancel(&which)
}
