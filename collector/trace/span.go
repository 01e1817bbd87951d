package trace

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// record makes the span of a probe. It holds no text of prompts, answers or errors, and of the URL the host only: who
// reads traces is not always who may read those.
func record(ctx context.Context, tracer trace.Tracer, target *config.Target, r *probe.Result) {
	_, span := tracer.Start(ctx, spanName(r), trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(r.Time),
		trace.WithAttributes(slices.Concat(genAI(target, r), server(target, r), own(target, r))...))
	for _, e := range events(r) {
		span.AddEvent(e.name, trace.WithTimestamp(r.Time.Add(e.after)))
	}
	if failed(r) {
		span.SetStatus(codes.Error, cause(r))
	}
	span.End(trace.WithTimestamp(r.Time.Add(lasted(r))))
}

// failed reports whether the operation of the span failed: a slow answer did not, and a probe that the prober itself
// called off says nothing of the server.
func failed(r *probe.Result) bool { return !r.Outcome.Success() && r.Outcome != probe.Canceled }

// cause is the outcome with its reason.
func cause(r *probe.Result) string {
	if r.Reason == "" {
		return string(r.Outcome)
	}
	return string(r.Outcome) + ": " + string(r.Reason)
}

// lasted is how long the span is: to the end of the answer, or else to the last that is known of it.
func lasted(r *probe.Result) time.Duration {
	if r.E2E != nil {
		return *r.E2E
	}
	var last time.Duration
	for _, e := range events(r) {
		last = max(last, e.after)
	}
	return last
}

// event is an instant of a probe, counted from t_send.
type event struct {
	name  string
	after time.Duration
}

// events lists the end of each phase and the first of what came. How long a phase took is known, not when it was: the
// phases are taken to follow one another without gaps, up to the headers, which end with the first byte.
func events(r *probe.Result) []event {
	var list []event
	var after time.Duration
	for _, p := range r.Phases {
		after += p.Duration
		if p.Name == probe.PhaseHeaders && r.TTFB != nil {
			after = *r.TTFB
		}
		list = append(list, event{string(p.Name), after})
	}
	for _, first := range []struct {
		name  string
		after *time.Duration
	}{{"first_byte", r.TTFB}, {"first_token", r.TTFT}, {"first_answer", r.FirstAnswer}} {
		if first.after != nil {
			list = append(list, event{first.name, *first.after})
		}
	}
	return list
}

// server says who was asked, and with what success.
func server(target *config.Target, r *probe.Result) []attribute.KeyValue {
	var list []attribute.KeyValue
	if u, err := url.Parse(target.URL); err == nil && u.Host != "" {
		list = append(list, semconv.ServerAddress(text(u.Hostname())), semconv.ServerPort(port(u)))
	}
	if r.StatusCode != 0 {
		list = append(list, semconv.HTTPResponseStatusCode(r.StatusCode))
	}
	if failed(r) {
		list = append(list, semconv.ErrorTypeKey.String(string(r.Outcome)))
	}
	return list
}

func port(u *url.URL) int {
	if n, err := strconv.Atoi(u.Port()); err == nil {
		return n
	}
	if u.Scheme == "http" {
		return 80
	}
	return 443
}

// own holds what no convention has a name for, by the words of the metrics and of the JSON.
func own(target *config.Target, r *probe.Result) []attribute.KeyValue {
	list := []attribute.KeyValue{
		ownKey("target").String(text(r.Target)),
		ownKey("scenario").String(text(r.Scenario)),
		ownKey("protocol").String(r.Protocol),
		ownKey("outcome").String(string(r.Outcome)),
		ownKey("connection_reused").Bool(r.ConnectionReused),
	}
	if r.Reason != "" {
		list = append(list, ownKey("reason").String(string(r.Reason)))
	}
	if r.InBand {
		list = append(list, ownKey("in_band").Bool(true))
	}
	if len(r.Flags) > 0 {
		list = append(list, ownKey("flags").StringSlice(words(r.Flags)))
	}
	if r.RequestID != "" {
		list = append(list, ownKey("request_id").String(text(r.RequestID)))
	}
	for name, value := range target.Labels {
		list = append(list, ownKey("label."+name).String(text(value)))
	}
	for _, f := range r.Figures() {
		list = append(list, ownKey(f.Name+"_seconds").Float64(f.Value.Seconds()))
	}
	for _, t := range r.ServerTimes {
		list = append(list, ownKey("server_"+string(t.Kind)+"_seconds").Float64(t.Took.Seconds()))
	}
	return append(list, verdicts(r)...)
}

// verdicts gives that of each SLO, and lists the criteria that were not met.
func verdicts(r *probe.Result) []attribute.KeyValue {
	var list []attribute.KeyValue
	var missed []string
	for _, j := range r.Judgments {
		list = append(list, ownKey("slo."+j.SLO).String(string(j.Verdict)))
		bad := j.Verdict == probe.Missed || j.Verdict == probe.Unmeasurable
		if bad && slices.Contains(config.Criteria, j.SLO) {
			missed = append(missed, j.SLO)
		}
	}
	if len(missed) > 0 {
		list = append(list, ownKey("missed").StringSlice(missed))
	}
	return list
}

func ownKey(name string) attribute.Key { return attribute.Key("goodput." + name) }

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// text makes a value of a string from outside: protobuf takes UTF-8 only, and refuses the whole batch for one that is not.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
