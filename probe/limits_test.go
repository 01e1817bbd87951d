package probe

import (
	"context"
	"errors"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"goodput_exporter/probe/arrival"
)

// limitsTest is one exchange under limits, in the time of a bubble.
type limitsTest struct {
	*limits
	ctx   context.Context
	trace *httptrace.ClientTrace
	start time.Time
}

// underLimits runs do while limits watch: 10 s in all, 3 s to the first token, 1 s from token to token.
func underLimits(t *testing.T, do func(*testing.T, *limitsTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		x := arrival.NewExchange()
		l := &limitsTest{
			limits: &limits{total: 10 * time.Second, firstToken: 3 * time.Second, idle: time.Second, exchange: x, cancel: cancel},
			ctx:    ctx, trace: httptrace.ContextClientTrace(x.Context(ctx)), start: time.Now(),
		}
		l.watch()
		defer l.stop()
		do(t, l)
	})
}

// expires checks that the limits run out at that time since the start, and for that reason.
func (l *limitsTest) expires(t *testing.T, at time.Duration, reason Reason) {
	t.Helper()
	select {
	case <-l.ctx.Done():
	case <-time.After(time.Hour):
		t.Fatal("no limit runs out")
	}
	if took := time.Since(l.start); took != at {
		t.Errorf("it ended after %v, want %v", took, at)
	}
	var limit *errLimit
	if !errors.As(context.Cause(l.ctx), &limit) || limit.reason != reason {
		t.Errorf("it ended by %v, want %s", context.Cause(l.ctx), reason)
	}
	if limit.late != 0 {
		t.Errorf("it was noticed %v late, although nothing was in the way", limit.late)
	}
}

func (l *limitsTest) tokensEvery(d time.Duration, n int) {
	for range n {
		time.Sleep(d)
		l.onToken(time.Now())
	}
}

func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		name   string
		do     func(*limitsTest)
		at     time.Duration
		reason Reason
	}{
		{"nothing comes", func(*limitsTest) {}, 3 * time.Second, ReasonFirstToken},
		{"time counts from the first network act", func(l *limitsTest) {
			time.Sleep(500 * time.Millisecond)
			l.trace.ConnectStart("tcp", "")
		}, 3500 * time.Millisecond, ReasonFirstToken},
		{"no second token", func(l *limitsTest) { l.tokensEvery(2*time.Second, 1) }, 3 * time.Second, ReasonIdle},
		{"the last token's stamp counts, not its reading", func(l *limitsTest) {
			time.Sleep(2 * time.Second)
			l.onToken(l.start.Add(1700 * time.Millisecond))
		}, 2700 * time.Millisecond, ReasonIdle},
		{"tokens without end", func(l *limitsTest) { l.tokensEvery(900*time.Millisecond, 11) }, 10 * time.Second, ReasonTotal},
		{"tokens, then none", func(l *limitsTest) { l.tokensEvery(900*time.Millisecond, 5) }, 5500 * time.Millisecond, ReasonIdle},
		{"a finish puts off the idle limit", func(l *limitsTest) {
			l.tokensEvery(500*time.Millisecond, 1)
			time.Sleep(900 * time.Millisecond)
			l.onFinish(time.Now())
		}, 2400 * time.Millisecond, ReasonIdle},
		{"a second finish does not", func(l *limitsTest) {
			l.onFinish(time.Now())
			time.Sleep(500 * time.Millisecond)
			l.onFinish(time.Now())
		}, time.Second, ReasonIdle},
		{"the end of the body is not waited for", func(l *limitsTest) {
			l.idle = time.Minute
			l.onDone(time.Now())
		}, lingerLimit, ReasonIdle},
		{"not streamed", func(l *limitsTest) { l.firstToken, l.idle = 0, 0; l.onToken(time.Now()) }, 10 * time.Second, ReasonTotal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			underLimits(t, func(t *testing.T, l *limitsTest) {
				tc.do(l)
				l.expires(t, tc.at, tc.reason)
			})
		})
	}
}

func TestStoppedLimitsDoNotExpire(t *testing.T) {
	underLimits(t, func(t *testing.T, l *limitsTest) {
		l.tokensEvery(time.Second/2, 1)
		l.stop()
		l.onToken(time.Now())
		l.onFinish(time.Now())
		l.onDone(time.Now())
		time.Sleep(time.Hour)
		if l.ctx.Err() != nil {
			t.Errorf("it ended by %v after it was stopped", context.Cause(l.ctx))
		}
	})
}

// A limit that is noticed much too late says more about the prober than about the endpoint.
func TestLateLimit(t *testing.T) {
	for _, tc := range []struct {
		late    time.Duration
		outcome Outcome
		reason  Reason
	}{
		{0, Timeout, ReasonIdle},
		{stalledAfter, Timeout, ReasonIdle},
		{stalledAfter + time.Millisecond, LocalError, ""},
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(&errLimit{reason: ReasonIdle, limit: time.Second, late: tc.late})
		if f := ofCause(ctx, arrival.NewExchange(), true); f == nil || f.outcome != tc.outcome || f.reason != tc.reason {
			t.Errorf("%v late: got %+v, want %s (%s)", tc.late, f, tc.outcome, tc.reason)
		}
	}
}

// The timer itself says how late it is. The reader has its turn before.
func TestExpireTellsItsLateness(t *testing.T) {
	underLimits(t, func(t *testing.T, l *limitsTest) {
		l.mu.Lock()
		l.started = l.started.Add(-2 * time.Second) // the timer is set for later than the limit now
		l.mu.Unlock()
		<-l.ctx.Done()
		var limit *errLimit
		if !errors.As(context.Cause(l.ctx), &limit) || limit.late != 2*time.Second+readersTurn {
			t.Errorf("got %+v, want it to be 2 s and the reader's turn late", limit)
		}
	})
}
