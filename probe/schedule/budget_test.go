package schedule

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"goodput_exporter/config"
)

func TestBudgetHoldsInAnyDay(t *testing.T) {
	tests := []struct {
		requests, tokens int
		reserve, actual  int
		least            int // probes in four days: the bound is used, not only kept
	}{
		{requests: 1, least: 3},
		{requests: 2, least: 6},
		{requests: 10, least: 38},
		{requests: 96, least: 370},
		{requests: 6000, least: 4 * 5700},
		{tokens: 100000, reserve: 256, actual: 256, least: 4 * 375},
		{tokens: 100000, reserve: 256, actual: 20, least: 4 * 4700},
		{tokens: 1000, reserve: 400, actual: 400, least: 6},
		{tokens: 100, reserve: 400, actual: 400, least: 0}, // not one probe fits
		{requests: 500, tokens: 100000, reserve: 256, actual: 100, least: 4 * 480},
	}
	for _, tt := range tests {
		name := fmt.Sprintf("%d requests, %d tokens, %d of %d a probe", tt.requests, tt.tokens, tt.actual, tt.reserve)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBudget(config.Budget{RequestsPerDay: tt.requests, OutputTokensPerDay: tt.tokens})
				b.fit(tt.reserve)
				var spent []time.Time
				for range 4 * 24 * 60 * 12 { // as often as may be, for four days
					if b.reserve(tt.reserve) {
						time.Sleep(time.Second)
						b.settle(tt.reserve, tt.actual)
						spent = append(spent, time.Now())
						time.Sleep(4 * time.Second)
					} else {
						time.Sleep(5 * time.Second)
					}
				}
				if len(spent) < tt.least {
					t.Errorf("%d probes in four days, want at least %d", len(spent), tt.least)
				}
				first := 0
				for i, at := range spent {
					for at.Sub(spent[first]) > 24*time.Hour {
						first++
					}
					n := i - first + 1
					if tt.requests > 0 && n > tt.requests {
						t.Fatalf("%d requests in 24 h, want at most %d", n, tt.requests)
					}
					if tt.tokens > 0 && n*tt.actual > tt.tokens {
						t.Fatalf("%d output tokens in 24 h, want at most %d", n*tt.actual, tt.tokens)
					}
				}
			})
		})
	}
}

func TestExhaustedBudgetThinsEvenly(t *testing.T) {
	for _, requests := range []int{24, 48, 96, 1000} {
		t.Run(fmt.Sprint(requests), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				budget := NewBudget(config.Budget{RequestsPerDay: requests})
				var tasks []*Task
				for i := range 3 {
					task := r.task(fmt.Sprint(i), 15*time.Second, 0)
					task.Budget = budget
					tasks = append(tasks, task)
				}
				stop := run(t, New(Options{}), tasks...)
				const days = 6
				time.Sleep(days * 24 * time.Hour)
				stop()

				all := map[int64]int{} // by hour
				for key := range r.started {
					if share := float64(r.starts(key)) / float64(days*requests); share < 0.15 || share > 0.55 {
						t.Errorf("series %s got %.2f of the budget, want about a third", key, share)
					}
					for _, at := range r.started[key] {
						all[at.Unix()/3600]++
					}
				}
				for hour := time.Now().Add(-24*time.Hour).Unix() / 3600; hour < time.Now().Unix()/3600; hour++ {
					if n := all[hour]; n < requests/24-1-requests/200 {
						t.Errorf("%d probes in an hour, want about %d", n, requests/24)
					}
				}
			})
		})
	}
}

func TestOverdraftIsPaidBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(config.Budget{OutputTokensPerDay: 48000})
		b.fit(0)
		if !b.reserve(0) {
			t.Fatal("a probe of unknown cost was refused with a balance of 1000")
		}
		b.settle(0, 3000) // the server had no limit, or kept to none
		if got, _ := b.Remaining(UnitOutputTokens); got != 45000 {
			t.Errorf("%d remain, want 45000", got)
		}
		if b.reserve(0) || b.reserve(1) {
			t.Error("a probe was admitted with a balance of -2000")
		}
		time.Sleep(61 * time.Minute) // 2000 at 0.99 × 47001 a day
		if b.reserve(0) {
			t.Error("a probe was admitted before the overdraft was paid back")
		}
		time.Sleep(3 * time.Minute)
		if !b.reserve(0) {
			t.Error("a probe was refused after the overdraft was paid back")
		}
	})
}

func TestReservedTokensCannotBeSpentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(config.Budget{OutputTokensPerDay: 48000})
		for range 3 {
			if !b.reserve(300) {
				t.Fatal("refused although 1000 can be spent at once")
			}
		}
		if b.reserve(300) {
			t.Error("1200 set aside of 1000")
		}
		if got, _ := b.Remaining(UnitOutputTokens); got != 47100 {
			t.Errorf("%d remain with 900 set aside, want 47100", got)
		}
		b.settle(300, 10)
		if !b.reserve(300) {
			t.Error("what a probe did not use was not given back")
		}
	})
}

func TestRemaining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble's clock starts at midnight UTC
		want := func(b *Budget, unit Unit, n int, ok bool) {
			t.Helper()
			if got, bounded := b.Remaining(unit); got != n || bounded != ok {
				t.Errorf("%s: %d, %t; want %d, %t", unit, got, bounded, n, ok)
			}
		}
		want(nil, UnitRequests, 0, false)
		want(NewBudget(config.Budget{}), UnitRequests, 0, false)

		b := NewBudget(config.Budget{RequestsPerDay: 100})
		want(b, UnitRequests, 100, true)
		b.reserve(50)
		b.settle(50, 40) // output tokens, which have no bound
		want(b, UnitRequests, 99, true)
		want(b, UnitOutputTokens, 0, false)
		time.Sleep(24*time.Hour - time.Second)
		want(b, UnitRequests, 99, true)
		time.Sleep(time.Second)
		want(b, UnitRequests, 100, true)
	})
}

func TestSchedulerChargesTheActualTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(config.Budget{OutputTokensPerDay: 4800})
		stop := run(t, New(Options{}), &Task{
			Key: "a", Interval: time.Minute, Budget: budget, OutputTokens: 256, // more than a 48th of the budget
			Run: func(context.Context, Slot) int {
				if got, _ := budget.Remaining(UnitOutputTokens); got != 4800-256 {
					t.Errorf("%d remain while the probe runs, want %d", got, 4800-256)
				}
				return 16
			},
		})
		time.Sleep(time.Minute)
		stop()
		if got, _ := budget.Remaining(UnitOutputTokens); got != 4800-16 {
			t.Errorf("%d remain, want %d", got, 4800-16)
		}
	})
}
