package schedule

import (
	"sync"
	"time"

	"goodput_exporter/config"
)

// Unit is what a Budget is counted in.
type Unit string

// The units.
const (
	UnitRequests     Unit = "requests"
	UnitOutputTokens Unit = "output_tokens"
)

// Units lists every unit.
var Units = []Unit{UnitRequests, UnitOutputTokens}

// Budget is what the probes of one target may cost. In no 24 hours do they cost more than config.Budget allows:
// a probe spends its request when it starts and its output tokens when it ends. Before it starts, the most that
// it may cost is set aside. Where that is not known (Task.OutputTokens is 0), or a server does not keep to the
// limit that it was asked for, the overdraft is paid back before the next probe.
//
// A budget that runs out thins the probes evenly, rather than let them go on until it is empty and then wait for
// midnight: up to a forty-eighth of it can be spent at once, the rest comes back steadily over the day. That is
// per process; a restart begins with a forty-eighth anew.
//
// Nil is a budget without bounds. The methods are safe for concurrent use.
type Budget struct {
	mu           sync.Mutex
	requests     bucket
	outputTokens bucket
}

// NewBudget returns the budget of one target, of which nothing is spent. To keep what has been spent over a
// reload, keep the Budget.
func NewBudget(b config.Budget) *Budget {
	return &Budget{requests: newBucket(b.RequestsPerDay), outputTokens: newBucket(b.OutputTokensPerDay)}
}

// Remaining returns what is left of today's budget: the bound, less what was spent since 00:00 UTC and what is
// set aside for running probes. It is negative after an overdraft. It is false for a unit without a bound.
func (b *Budget) Remaining(unit Unit) (n int, ok bool) {
	if b == nil {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch unit {
	case UnitRequests:
		return b.requests.remaining(time.Now())
	case UnitOutputTokens:
		return b.outputTokens.remaining(time.Now())
	}
	return 0, false
}

// fit makes room for a probe that may cost so many output tokens.
func (b *Budget) fit(outputTokens int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outputTokens.fit(outputTokens)
}

// reserve sets aside what a probe may cost, and reports whether there was enough. Every probe that it admits
// has to be settled.
func (b *Budget) reserve(outputTokens int) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.requests.advance(now)
	b.outputTokens.advance(now)
	if !b.requests.has(1) || !b.outputTokens.has(outputTokens) {
		return false
	}
	b.requests.spend(1)
	b.outputTokens.reserved += outputTokens
	return true
}

// settle spends what a probe has cost in place of what was set aside for it.
func (b *Budget) settle(reserved, spent int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outputTokens.advance(time.Now())
	b.outputTokens.reserved -= reserved
	b.outputTokens.spend(spent)
}

// Spend runs a probe outside of any slot: it sets aside the most that it may cost, and spends what it has cost. False:
// there was not enough, and nothing was run.
func (b *Budget) Spend(most int, run func() (spent int)) bool {
	if !b.reserve(most) {
		return false
	}
	spent := most // what a panic costs is not known: all of it
	defer func() { b.settle(most, spent) }()
	spent = run()
	return true
}

const day = 24 * time.Hour

// refillShare of the refill that the bound allows is given. What is left out keeps rounding errors out of the
// bound, and the refill of a small budget out of step with the slots, so that the same series of the target does
// not come first every time.
const refillShare = 0.99

// bucket is a token bucket of one unit.
type bucket struct {
	limit    int       // in any 24 hours; 0 is no bound
	burst    int       // the most that balance can be
	balance  float64   // what may be spent, at updated
	reserved int       // of balance, for running probes
	updated  time.Time // zero: never, and balance is full

	today      int64 // days since the epoch, in UTC
	spentToday int
}

func newBucket(limit int) bucket {
	return bucket{limit: limit, burst: max(1, limit/48)}
}

func (b *bucket) fit(n int) {
	b.burst = max(b.burst, min(n, b.limit))
}

// perDay is the refill. In 24 hours, burst + refill < limit + 1; spent are whole units, so at most limit.
func (b *bucket) perDay() float64 {
	return refillShare * float64(b.limit-b.burst+1)
}

// advance brings the balance to now.
func (b *bucket) advance(now time.Time) {
	if b.updated.IsZero() {
		b.balance = float64(b.burst)
	} else {
		days := float64(now.Sub(b.updated)) / float64(day)
		b.balance = min(float64(b.burst), b.balance+days*b.perDay())
	}
	b.updated = now
	if today := now.Unix() / int64(day/time.Second); today != b.today {
		b.today, b.spentToday = today, 0
	}
}

// has reports whether n can be set aside; if n is 0, not known, whether there is anything at all.
func (b *bucket) has(n int) bool {
	free := b.balance - float64(b.reserved)
	return b.limit == 0 || free > 0 && free >= float64(n)
}

func (b *bucket) spend(n int) {
	b.balance -= float64(n)
	b.spentToday += n
}

func (b *bucket) remaining(now time.Time) (n int, ok bool) {
	if b.limit == 0 {
		return 0, false
	}
	b.advance(now)
	return b.limit - b.spentToday - b.reserved, true
}
