package main

import (
	"time"

	"goodput_exporter/collector"
	"goodput_exporter/collector/live"
	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/schedule"
)

// observers are all who are told what one series does.
type observers struct {
	daemon  *daemon
	config  *config.Series
	metrics *collector.Series
	live    *live.Series
}

// observers returns those of a series, whose metrics and live state must have been born.
func (d *daemon) observers(sc *config.Series) observers {
	return observers{d, sc, d.collector.Series(sc.Key()), d.live.Series(sc.Key())}
}

func (o observers) started(delay time.Duration) {
	o.metrics.SlotStarted(delay)
	o.metrics.ProbeStarted()
	o.live.ProbeStarted()
}

func (o observers) ended() {
	o.metrics.ProbeEnded()
	o.live.ProbeEnded()
}

func (o observers) observe(r *probe.Result) {
	o.metrics.Observe(r)
	o.live.Observe(r)
	if o.daemon.journal != nil {
		o.daemon.journal.Append(o.config.Key(), r)
	}
	if o.daemon.traces != nil {
		o.daemon.traces.Observe(o.config.Target, r)
	}
	logResult(o.daemon.logger, r)
}

func (o observers) skipped(reason schedule.Reason, slots int) {
	o.metrics.SlotsSkipped(string(reason), slots)
	o.live.SlotsSkipped(string(reason), slots)
}
