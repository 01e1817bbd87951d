package journal

import (
	"math/bits"
	"net/http"
	"slices"
	"strings"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// scanResult reads the members of a result behind its time, about four times as fast as probe.Result.UnmarshalJSON, and
// equally. It reports false for what it does not know, such as a key that a later version writes.
func scanResult(s *scanner, sent time.Time) (*probe.Result, bool) {
	r := &probe.Result{Time: sent}
	s.expectByte(',')
	s.members(func(key []byte) {
		if !scanIdentity(s, r, key) && !scanFigure(s, r, key) && !scanAnswer(s, r, key) && !scanServerTime(s, r, key) {
			s.failed = true
		}
	})
	known := slices.Contains(probe.Outcomes, r.Outcome) || slices.Contains(probe.AbortedOutcomes, r.Outcome)
	return r, known && !s.failed && s.at == len(s.text)
}

// scanIdentity reads what a result is of, and the verdict. Like the functions below it reports false for a key that is
// none of its own.
func scanIdentity(s *scanner, r *probe.Result, key []byte) bool {
	switch string(key) {
	case "target":
		r.Target = s.name()
	case "scenario":
		r.Scenario = s.name()
	case "model":
		r.Model = s.name()
	case "protocol":
		r.Protocol = s.name()
	case "outcome":
		r.Outcome = probe.Outcome(s.name())
	case "reason":
		r.Reason = probe.Reason(s.name())
	case "in_band":
		r.InBand = s.bool()
	case "error":
		r.Error = s.string()
	case "flags":
		r.Flags = nil
		for _, flag := range s.list() {
			r.Flags = append(r.Flags, probe.Flag(flag))
		}
	case "slo":
		scanJudgments(s, r)
	case "request_id":
		r.RequestID = s.string()
	case "trace_id":
		r.TraceID = s.string()
	case "span_id":
		r.SpanID = s.string()
	default:
		return false
	}
	return true
}

// scanFigure reads durations.
func scanFigure(s *scanner, r *probe.Result, key []byte) bool {
	switch string(key) {
	case "ttfb_seconds":
		r.TTFB = new(s.duration())
	case "ttft_seconds":
		r.TTFT = new(s.duration())
	case "first_answer_seconds":
		r.FirstAnswer = new(s.duration())
	case "e2e_seconds":
		r.E2E = new(s.duration())
	case "tpot_seconds":
		r.TPOT = new(s.duration())
	case "stall_seconds":
		r.Stall = new(s.duration())
	case "chunk_gap_mean_seconds":
		s.duration() // of the gaps, which are not in the line
	case "phases":
		scanPhases(s, r)
	case "retry_after_seconds":
		r.RetryAfter = new(s.duration())
	case "own_lag_seconds":
		r.OwnLag = new(s.duration())
	default:
		return false
	}
	return true
}

// scanAnswer reads what the server sent, and how.
func scanAnswer(s *scanner, r *probe.Result, key []byte) bool {
	switch string(key) {
	case "status_code":
		r.StatusCode = s.int()
	case "finish_reason":
		r.FinishReason = s.name()
	case "text":
		r.Text = s.string()
	case "input_tokens":
		r.InputTokens = new(s.int())
	case "output_tokens":
		r.OutputTokens = new(s.int())
	case "output_tokens_source":
		r.OutputTokensSource = probe.TokensSource(s.name())
	case "cached_input_tokens":
		r.CachedInputTokens = new(s.int())
	case "reasoning_tokens":
		r.ReasoningTokens = new(s.int())
	case "token_events":
		r.TokenEvents = s.int()
	case "comments":
		r.Comments = s.int()
	case "connection_reused":
		r.ConnectionReused = s.bool()
	case "http_version":
		r.HTTPVersion = s.name()
	case "response_headers":
		scanHeader(s, r)
	case "stamp_source":
		r.StampSource = s.name()
	default:
		return false
	}
	return true
}

// slos are all that judgments are of, in the order of probe.Result.UnmarshalJSON.
var slos = append([]string{probe.SLOGoodput, probe.SLOAvailability}, config.Criteria...)

func scanJudgments(s *scanner, r *probe.Result) {
	s.failed = s.failed || r.Judgments != nil // encoding/json would join both
	verdicts := make([]probe.Verdict, len(slos))
	seen := scanKnown(s, slos, func(i int) { verdicts[i] = probe.Verdict(s.name()) })
	r.Judgments = slices.Grow(r.Judgments, bits.OnesCount(seen))
	for i, v := range verdicts {
		if seen>>i&1 == 1 {
			r.Judgments = append(r.Judgments, probe.Judgment{SLO: slos[i], Verdict: v})
		}
	}
}

func scanPhases(s *scanner, r *probe.Result) {
	s.failed = s.failed || r.Phases != nil
	took := make([]time.Duration, len(probe.PhaseNames))
	seen := scanKnown(s, probe.PhaseNames, func(i int) { took[i] = s.duration() })
	r.Phases = slices.Grow(r.Phases, bits.OnesCount(seen))
	for i, d := range took {
		if seen>>i&1 == 1 {
			r.Phases = append(r.Phases, probe.Phase{Name: probe.PhaseNames[i], Duration: d})
		}
	}
}

// scanKnown reads an object that has no other keys than those of a list, each once at most. It calls value with the index
// of a key to read its value, and returns the indexes as bits.
func scanKnown[K ~string](s *scanner, list []K, value func(i int)) (seen uint) {
	s.object(func(key []byte) {
		i := slices.IndexFunc(list, func(k K) bool { return string(k) == string(key) })
		if i < 0 || seen>>i&1 == 1 {
			s.failed = true
			return
		}
		seen |= 1 << i
		value(i)
	})
	return seen
}

func scanHeader(s *scanner, r *probe.Result) {
	s.failed = s.failed || r.Header != nil
	r.Header = http.Header{}
	s.object(func(name []byte) {
		key := s.names.of(name)
		r.Header[key] = s.list()
	})
}

// scanServerTime reads what the server says of its own times, in the order in which they are written.
func scanServerTime(s *scanner, r *probe.Result, key []byte) bool {
	index := func(kind probe.ServerKind) int { return slices.Index(probe.ServerKinds, kind) }
	text, ok := strings.CutPrefix(string(key), "server_")
	text, ok2 := strings.CutSuffix(text, "_seconds")
	i := index(probe.ServerKind(text))
	if n := len(r.ServerTimes); !ok || !ok2 || i < 0 || n > 0 && index(r.ServerTimes[n-1].Kind) >= i {
		return false
	}
	r.ServerTimes = append(r.ServerTimes, probe.ServerTime{Kind: probe.ServerKinds[i], Took: s.duration()})
	return true
}
