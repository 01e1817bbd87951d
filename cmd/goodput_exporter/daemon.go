package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"goodput_exporter/collector"
	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/schedule"
)

// cancelWait is how long a reload waits for the canceled probes of series that are gone.
const cancelWait = 10 * time.Second

// daemon holds the parts of a running exporter, and the series that are in force.
type daemon struct {
	load      func() (*config.Config, error)
	logger    log.Logger
	collector *collector.Collector
	live      *live.Live
	outside
	scheduler *schedule.Scheduler
	clients   *probe.Clients
	userAgent string
	config    atomic.Pointer[config.Config]
	rewatch   atomic.Pointer[context.CancelFunc] // ends the watch of target files, which then starts anew

	reloading sync.Mutex
	series    atomic.Pointer[map[string]*series] // by key; never changed, but replaced
	budgets   sync.Map                           // target name -> budget
}

// series is one series in force.
type series struct {
	config *config.Series
	client *probe.Client
	prober *probe.Prober
	task   *schedule.Task
}

// budget is the budget of a target, with what it was made of.
type budget struct {
	config config.Budget
	*schedule.Budget
}

func newDaemon(f *flags, load func() (*config.Config, error), logger log.Logger, o outside) *daemon {
	d := &daemon{
		load: load, logger: logger, outside: o, clients: probe.NewClients(),
		userAgent: probe.UserAgent("goodput_exporter"),
	}
	d.series.Store(&map[string]*series{})
	var skips []string
	for _, r := range schedule.Reasons {
		skips = append(skips, string(r))
	}
	d.collector = collector.New(collector.Options{
		Full: f.fullMetrics, SkipReasons: skips, BudgetRemaining: d.budgetRemaining, Paused: d.paused, Process: o.metrics(),
	})
	d.scheduler = schedule.New(schedule.Options{Vantage: f.vantage, MaxInFlight: f.maxInFlight, Grace: f.grace, Panic: d.panicked})
	d.live = live.New(live.Options{Next: d.scheduler.Next, Paused: d.pauseOf})
	return d
}

// close gives back what is left when no probe runs any more. It waits for a reload under way.
func (d *daemon) close() {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	for _, s := range *d.series.Load() {
		s.client.Release()
	}
	d.clients.Close()
}

// probe starts probes until ctx ends, as soon as somebody can see what becomes of them.
func (d *daemon) probe(ctx context.Context, listening <-chan struct{}) error {
	select {
	case <-listening:
		d.scheduler.Run(ctx)
	case <-ctx.Done():
	}
	return nil
}

// reload loads the configuration and puts it in force by difference. If anything is wrong with it, nothing
// changes but the gauge that says so.
func (d *daemon) reload(ctx context.Context) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	cfg, err := d.load()
	if err == nil {
		err = d.apply(ctx, cfg)
	}
	if err != nil {
		d.collector.ReloadFailed()
		return fmt.Errorf("load the configuration: %w", err)
	}
	for _, w := range cfg.Warnings {
		level.Warn(d.logger).Log("msg", "configuration", "warning", w)
	}
	d.collector.ReloadSucceeded(time.Now())
	level.Info(d.logger).Log("msg", "configuration in force", "targets", len(cfg.Targets), "series", len(cfg.Series))
	return nil
}

// apply builds what is new, swaps, and lets go of what is gone. Series that stay as they are keep everything.
func (d *daemon) apply(ctx context.Context, cfg *config.Config) error {
	current, next := *d.series.Load(), make(map[string]*series, len(cfg.Series))
	var built []*series
	for _, sc := range cfg.Series {
		if old := current[sc.Key()]; old != nil && old.config.Equal(sc) {
			next[sc.Key()] = old
			continue
		}
		s, err := d.build(sc)
		if err != nil {
			for _, b := range built {
				b.client.Release()
			}
			return err
		}
		built = append(built, s)
		next[sc.Key()] = s
	}

	d.updateBudgets(cfg)
	d.collector.Update(cfg)
	d.live.Update(cfg)
	d.pauses.Update(cfg)
	for _, s := range built {
		s.task = d.task(s)
	}
	tasks := make([]*schedule.Task, 0, len(cfg.Series))
	for _, sc := range cfg.Series {
		tasks = append(tasks, next[sc.Key()].task)
	}
	wait, cancel := context.WithTimeout(ctx, cancelWait)
	defer cancel()
	if err := d.scheduler.Update(wait, tasks); err != nil {
		level.Warn(d.logger).Log("msg", "probes of series that are gone have not ended yet", "err", err)
	}
	for key, old := range current {
		if next[key] != old {
			old.client.Release()
		}
	}
	d.series.Store(&next)
	before := d.config.Swap(cfg)
	if cancel := d.rewatch.Load(); cancel != nil && !slices.Equal(before.TargetGlobs, cfg.TargetGlobs) {
		(*cancel)()
	}
	return nil
}

func (d *daemon) build(sc *config.Series) (*series, error) {
	client, err := d.clients.Get(sc.Target)
	if err != nil {
		return nil, err
	}
	prober, err := probe.New(sc, client, d.userAgent)
	if err != nil {
		client.Release()
		return nil, err
	}
	return &series{config: sc, client: client, prober: prober}, nil
}

// task makes a series known to the scheduler. Its metrics and its live state must have been born.
func (d *daemon) task(s *series) *schedule.Task {
	sc, observers := s.config.Scenario, d.observers(s.config)
	return &schedule.Task{
		Key: s.config.Key(), Interval: sc.Interval, Jitter: sc.Jitter,
		Budget: d.budgetOf(s.config.Target), OutputTokens: sc.LongestAnswer(),
		Run: func(ctx context.Context, slot schedule.Slot) int {
			observers.started(slot.Delay)
			defer observers.ended()
			r := s.prober.Probe(ctx)
			observers.observe(r)
			return outputTokens(r)
		},
		Paused:  func(time.Time) bool { return d.paused(s.config.Target.Name, sc.Name) },
		Skipped: observers.skipped,
	}
}

// outputTokens returns what a probe has cost, as far as it is known.
func outputTokens(r *probe.Result) int {
	if r.OutputTokens == nil {
		return 0
	}
	return *r.OutputTokens
}

// panicked records that the prober itself failed.
func (d *daemon) panicked(key string, value any, stack []byte) {
	level.Error(d.logger).Log("msg", "a probe panicked; please report this", "series", key, "panic", value, "stack", string(stack))
	r := &probe.Result{Time: time.Now(), Outcome: probe.LocalError, Error: fmt.Sprint(value)}
	if s := d.collector.Series(key); s != nil {
		s.Observe(r)
	}
	if s := d.live.Series(key); s != nil {
		s.Observe(r)
	}
}

// updateBudgets keeps the balance of budgets that stay as they are.
func (d *daemon) updateBudgets(cfg *config.Config) {
	wanted := map[string]config.Budget{}
	for _, t := range cfg.Targets {
		wanted[t.Name] = t.Budget
	}
	d.budgets.Range(func(name, b any) bool {
		if w, ok := wanted[name.(string)]; !ok || w != b.(budget).config {
			d.budgets.Delete(name)
		}
		return true
	})
	for name, w := range wanted {
		if _, ok := d.budgets.Load(name); !ok {
			d.budgets.Store(name, budget{w, schedule.NewBudget(w)})
		}
	}
}

func (d *daemon) budgetOf(t *config.Target) *schedule.Budget {
	b, _ := d.budgets.Load(t.Name)
	return b.(budget).Budget
}

func (d *daemon) budgetRemaining(target, unit string) (int, bool) {
	b, ok := d.budgets.Load(target)
	if !ok {
		return 0, false
	}
	return b.(budget).Remaining(schedule.Unit(unit))
}

// reloadOnSignal reloads at each SIGHUP until ctx ends.
func (d *daemon) reloadOnSignal(ctx context.Context, hup <-chan os.Signal) error {
	for {
		select {
		case <-hup:
			d.tryReload(ctx, "SIGHUP")
		case <-ctx.Done():
			return nil
		}
	}
}

// reloadOnChange reloads when a target file changes, until ctx ends. Where files cannot be watched (the system is
// short of inotify instances), that is no reason to stop probing.
func (d *daemon) reloadOnChange(ctx context.Context) error {
	for ctx.Err() == nil {
		watch, cancel := context.WithCancel(ctx)
		d.rewatch.Store(&cancel)
		err := d.config.Load().Watch(watch, func() { d.tryReload(ctx, "a target file changed") })
		if err != nil {
			level.Error(d.logger).Log("msg", "changes of target files go unseen: reload by SIGHUP", "err", err)
			<-watch.Done()
		}
		cancel()
	}
	return nil
}

func (d *daemon) tryReload(ctx context.Context, why string) {
	level.Info(d.logger).Log("msg", "reloading", "why", why)
	if err := d.reload(ctx); err != nil {
		level.Error(d.logger).Log("msg", "reload failed: the configuration before stays in force", "err", err)
	}
}
