package probetest

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// Expectation is what a case expects, by the keys of the file. A key that is absent is not compared; nil
// means that the reading must be absent. Maps inside it are Expectations too: the YAML decoder makes them so.
type Expectation map[string]any

// defaultToleranceMS is how far a time may be off, unless the case says otherwise.
const defaultToleranceMS = 30

// flagVocabulary lists the flags that must not stand unless a case names them.
var flagVocabulary = []string{
	"length_limited", "done_missing", "duplicate_finish", "unterminated_final_event", "buffered",
	"reasoning_only", "usage_missing", "usage_implausible", "lingering", "reset_after_finish", "stale_retry",
	"encoded_gzip", "truncated",
}

var outcomes = []string{
	"good", "slo_violation", "truncated", "interrupted", "timeout", "rate_limited", "server_error",
	"client_error", "connection_error", "content_filtered", "invalid_response",
}

// Compare returns what is wrong with a prober's answer to a case, in words; nothing when all is right. The
// answer is the JSON line of the last probe, with the keys of `goodputctl probe --output=json`.
func Compare(c Case, got map[string]any, seen Seen) []string {
	problems := c.Expect.compare(got, seen)
	var closest []string
	for i, e := range c.ExpectAny {
		p := e.compare(got, seen)
		if len(p) == 0 {
			return problems
		}
		if i == 0 || len(p) < len(closest) {
			closest = p
		}
	}
	return append(problems, closest...)
}

func (e Expectation) compare(got map[string]any, seen Seen) []string {
	k := comparison{want: e, got: got, seen: seen, toleranceMS: defaultToleranceMS}
	if t, ok := number(e["tolerance_ms"]); ok {
		k.toleranceMS = t
	}
	for _, key := range expectationKeys {
		if want, ok := e[key.name]; ok && key.compare != nil {
			key.compare(&k, want)
		}
	}
	k.flags()
	return k.problems
}

// validate refuses unknown keys and values of the wrong kind.
func (e Expectation) validate() error {
	for name, value := range e {
		i := slices.IndexFunc(expectationKeys, func(k expectationKey) bool { return k.name == name })
		if i < 0 {
			return fmt.Errorf("expect: unknown key %q", name)
		}
		if !expectationKeys[i].valid(value) {
			return fmt.Errorf("expect: %s cannot be %v", name, value)
		}
	}
	return nil
}

// comparison of one expectation with what was got and seen.
type comparison struct {
	want        Expectation
	got         map[string]any
	seen        Seen
	toleranceMS float64
	problems    []string
}

type expectationKey struct {
	name    string
	valid   func(any) bool
	compare func(k *comparison, want any) // nil: read elsewhere
}

// expectationKeys is the schema of an expectation, in the order in which problems are told.
var expectationKeys = []expectationKey{
	{"outcome", func(v any) bool { s, ok := v.(string); return ok && slices.Contains(outcomes, s) }, compareText("outcome")},
	{"reason", orNull(isText), func(k *comparison, want any) { k.slug("reason", want) }},
	{"in_band", isBool, func(k *comparison, want any) {
		in, _ := k.got["in_band"].(bool)
		k.equal("in_band", want, in)
	}},
	{"ttft_ms", orNull(isNumber), func(k *comparison, want any) { k.near("ttft_seconds", want, 1000, k.toleranceMS) }},
	{"e2e_ms", orNull(isNumber), func(k *comparison, want any) { k.near("e2e_seconds", want, 1000, k.toleranceMS) }},
	{"tpot_ms", orNull(isNumber), func(k *comparison, want any) { k.near("tpot_seconds", want, 1000, k.toleranceMS/k.intervals()) }},
	{"output_tokens", orNull(isNumber), func(k *comparison, want any) {
		w, _ := number(want) // none and 0 are the same
		g, _ := number(k.got["output_tokens"])
		k.equal("output_tokens", w, g)
	}},
	{"tokens_source", orNull(isText), func(k *comparison, want any) {
		k.equal("output_tokens_source", textOr(want, "none"), textOr(k.got["output_tokens_source"], "none"))
	}},
	{"text", orNull(isText), compareText("text")},
	{"finish_reason", orNull(func(v any) bool { return isText(v) || isTexts(v) }), compareText("finish_reason")},
	{"retry_after_s", orNull(isNumber), func(k *comparison, want any) { k.near("retry_after_seconds", want, 1, 0.001) }},
	{"requests_seen", isNumber, func(k *comparison, want any) { k.equal("requests seen", want, len(k.seen.Requests)) }},
	{"connections_seen", isNumber, func(k *comparison, want any) { k.equal("connections seen", want, k.seen.Connections) }},
	{"methods_seen", isTexts, func(k *comparison, want any) {
		methods := []string{}
		for _, r := range k.seen.Requests {
			methods = append(methods, r.Method)
		}
		if !slices.Equal(texts(want), methods) {
			k.problem("methods seen: got %v, want %v", methods, want)
		}
	}},
	{"request_headers", isTextMap, compareHeaders},
	{"request_headers_absent", isTexts, compareHeadersAbsent},
	{"closed_by_ms", isNumber, compareClosed},
	{"also", func(v any) bool { _, ok := v.(Expectation); return ok }, compareAlso},
	{"flags", isTexts, nil},
	{"flags_optional", isTexts, nil},
	{"tolerance_ms", isNumber, nil},
}

func (k *comparison) problem(format string, args ...any) {
	k.problems = append(k.problems, fmt.Sprintf(format, args...))
}

// equal compares scalars; all numbers are of one kind.
func (k *comparison) equal(what string, want, got any) {
	if !sameValue(want, got) {
		k.problem("%s: got %v, want %v", what, got, want)
	}
}

// near compares a time of the answer, in seconds × scale, with a wanted one.
func (k *comparison) near(key string, want any, scale, tolerance float64) {
	g, present := number(k.got[key])
	w, wanted := number(want)
	switch {
	case !wanted && !present:
	case !wanted:
		k.problem("%s: got %g, want none", key, g)
	case !present:
		k.problem("%s: got none, want %g", key, w/scale)
	case math.Abs(g*scale-w) > tolerance+1e-9:
		k.problem("%s: got %g, want %g ± %g", key, g, w/scale, tolerance/scale)
	}
}

// intervals is tokens − 1, and at least 1.
func (k *comparison) intervals() float64 {
	n, ok := number(k.want["output_tokens"])
	if !ok {
		n, _ = number(k.got["output_tokens"])
	}
	return max(1, n-1)
}

// slug compares without regard to case and punctuation.
func (k *comparison) slug(key string, want any) {
	if w, g := textOr(want, ""), textOr(k.got[key], ""); plain(w) != plain(g) {
		k.problem("%s: got %q, want %q", key, g, w)
	}
}

func (k *comparison) flags() {
	required, checked := k.want["flags"]
	optional, given := k.want["flags_optional"]
	if !checked && !given {
		return
	}
	got := texts(k.got["flags"])
	for _, f := range texts(required) {
		if !slices.Contains(got, f) {
			k.problem("flag %s is missing", f)
		}
	}
	for _, f := range got {
		if slices.Contains(flagVocabulary, f) && !slices.Contains(texts(required), f) && !slices.Contains(texts(optional), f) {
			k.problem("flag %s must not stand", f)
		}
	}
}

// compareText compares a text of the answer. A list names equally good ones; null and "" are the same.
func compareText(key string) func(*comparison, any) {
	return func(k *comparison, want any) {
		allowed := texts(want)
		if !isTexts(want) {
			allowed = []string{textOr(want, "")}
		}
		if got := textOr(k.got[key], ""); !slices.Contains(allowed, got) {
			k.problem("%s: got %.200q, want %.200q", key, got, allowed)
		}
	}
}

func compareHeaders(k *comparison, want any) {
	headers := want.(Expectation)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		for i, r := range k.seen.Requests {
			if got := r.Header.Get(name); got != fmt.Sprint(value) {
				k.problem("request %d: header %s: got %q, want %q", i+1, name, got, value)
			}
		}
	}
}

func compareHeadersAbsent(k *comparison, want any) {
	for _, name := range texts(want) {
		for i, r := range k.seen.Requests {
			if _, ok := r.Header[http.CanonicalHeaderKey(name)]; ok {
				k.problem("request %d: it has the header %s", i+1, name)
			}
		}
	}
}

func compareClosed(k *comparison, want any) {
	limit, _ := number(want)
	switch closed := k.seen.ClosedAfter; {
	case closed == nil:
		k.problem("the client did not close by %g ms", limit)
	case float64(closed.Microseconds())/1000 > limit:
		k.problem("the client closed after %v, want by %g ms", *closed, limit)
	}
}

// compareAlso compares further keys, only where the answer has them.
func compareAlso(k *comparison, want any) {
	also := want.(Expectation)
	for _, key := range slices.Sorted(maps.Keys(also)) {
		w := also[key]
		g, printed := k.got[key]
		if !printed {
			continue
		}
		text, isText := w.(string)
		switch {
		case w == nil && g != nil:
			k.problem("%s: got %v, want none", key, g)
		case strings.HasSuffix(key, "_seconds") && w != nil:
			seconds, _ := number(w)
			k.near(key, seconds*1000, 1000, k.toleranceMS)
		case isText && !strings.Contains(textOr(g, ""), text):
			k.problem("%s: got %v, want %q in it", key, g, text)
		case !isText:
			k.equal(key, w, g)
		}
	}
}

func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

func sameValue(a, b any) bool {
	x, xok := number(a)
	y, yok := number(b)
	if xok && yok {
		return x == y
	}
	return fmt.Sprint(a) == fmt.Sprint(b) && (a == nil) == (b == nil)
}

// number reads the numbers of YAML and of JSON alike.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func textOr(v any, absent string) string {
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	return absent
}

func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, item := range list {
		out = append(out, fmt.Sprint(item))
	}
	return out
}

func isText(v any) bool   { _, ok := v.(string); return ok }
func isBool(v any) bool   { _, ok := v.(bool); return ok }
func isNumber(v any) bool { _, ok := number(v); return ok }

func isTexts(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(item any) bool { return !isText(item) })
}

func isTextMap(v any) bool {
	m, ok := v.(Expectation)
	for _, item := range m {
		ok = ok && isText(item)
	}
	return ok
}

func orNull(valid func(any) bool) func(any) bool {
	return func(v any) bool { return v == nil || valid(v) }
}
