package main

import (
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	slgk "github.com/tjhop/slog-gokit"

	"goodput_exporter/probe"
)

// newLogger returns a logger without time and place: libraries add theirs.
func newLogger(w io.Writer, minimum, format string) log.Logger {
	w = log.NewSyncWriter(w)
	logger := log.NewLogfmtLogger(w)
	if format == "json" {
		logger = log.NewJSONLogger(w)
	}
	return level.NewFilter(logger, level.Allow(level.ParseDefault(minimum, level.InfoValue())))
}

// decorated returns a logger whose lines carry the time and the place of the call.
func decorated(plain log.Logger) log.Logger {
	return log.With(plain, "ts", log.DefaultTimestampUTC, "caller", log.DefaultCaller)
}

// forLibraries returns the logger of libraries that want slog. They add time and place themselves; their time gets
// the name that ours has.
func forLibraries(plain log.Logger) *slog.Logger {
	renaming := log.LoggerFunc(func(keyvals ...any) error {
		for i := 0; i+1 < len(keyvals); i += 2 {
			if t, ok := keyvals[i+1].(time.Time); ok && keyvals[i] == slog.TimeKey {
				keyvals[i], keyvals[i+1] = "ts", t.UTC()
			}
		}
		return plain.Log(keyvals...)
	})
	return slog.New(slgk.NewGoKitHandler(renaming, nil))
}

// logResult logs one probe: at debug where it is good, so that what is not stands out.
func logResult(logger log.Logger, r *probe.Result) {
	leveled := level.Warn(logger)
	if r.Outcome == probe.Good || r.Outcome == probe.Canceled {
		leveled = level.Debug(logger)
	}
	fields := []any{
		"msg", "probe", "target", r.Target, "scenario", r.Scenario, "model", r.Model, "outcome", r.Outcome,
	}
	add := func(key string, value any, is bool) {
		if is {
			fields = append(fields, key, value)
		}
	}
	add("reason", r.Reason, r.Reason != "")
	add("in_band", true, r.InBand)
	add("missed", strings.Join(r.Missed(), ","), r.Outcome == probe.SLOViolation)
	add("status_code", r.StatusCode, r.StatusCode != 0)
	add("finish_reason", r.FinishReason, r.FinishReason != "")
	for _, f := range r.Figures() {
		fields = append(fields, f.Name+"_seconds", f.Value.Round(time.Microsecond).Seconds())
	}
	if r.OutputTokens != nil {
		fields = append(fields, "output_tokens", *r.OutputTokens)
	}
	flags := make([]string, len(r.Flags))
	for i, f := range r.Flags {
		flags[i] = string(f)
	}
	add("flags", strings.Join(flags, ","), len(flags) > 0)
	add("err", r.Error, r.Error != "")
	add("request_id", r.RequestID, r.RequestID != "")
	_ = leveled.Log(append(fields, "trace_id", r.TraceID)...)
}
