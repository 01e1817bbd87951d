package probe_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/probetest"
)

// way is one way to ask a simulated endpoint: a protocol at one of its places, streamed or not.
type way struct {
	probetest.Base
	stream bool
}

func (w way) String() string {
	return fmt.Sprintf("%s %s stream=%t", w.Protocol, w.Via, w.stream)
}

func (w way) tokenless() bool { return w.Protocol == "openai-embeddings" || w.Protocol == "rerank" }

// aws reports whether the streams are those of AWS.
func (w way) aws() bool { return w.Protocol == "bedrock-converse" || w.Via == "Bedrock" }

// is reports whether the protocol is one of these.
func (w way) is(protocols ...string) bool { return slices.Contains(protocols, w.Protocol) }

// ways lists all ways to ask the endpoint. What is never streamed is asked once.
func ways(e *probetest.Endpoint) []way {
	var list []way
	for _, b := range probetest.Bases(e.Root(), "m") {
		w := way{b, false}
		list = append(list, w)
		if !w.tokenless() {
			list = append(list, way{b, true})
		}
	}
	return list
}

// simulate starts an endpoint with one model, and returns what it truly did, by trace id.
func simulate(t *testing.T, m probetest.Model) (*probetest.Endpoint, func(traceID string) probetest.Served) {
	t.Helper()
	var mu sync.Mutex
	served := map[string]probetest.Served{}
	m.Name = "m"
	e, err := probetest.Start("127.0.0.1:0", probetest.Config{Models: []probetest.Model{m}, Observe: func(s probetest.Served) {
		mu.Lock()
		defer mu.Unlock()
		served[s.TraceID] = s
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, func(id string) probetest.Served {
		_ = e.Close() // waits for the handlers
		return served[id]
	}
}

// ask probes in that way.
func (w way) ask(t *testing.T, options ...option) *probe.Result {
	t.Helper()
	s := config.NewSeries(w.URL, "m")
	s.Target.Protocol = w.Protocol
	s.Target.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", Credentials: "any"}
	s.Scenario.Stream = w.stream
	s.Scenario.MaxTokens = 32
	s.Scenario.SLO = config.SLO{}
	for _, o := range options {
		o(s)
	}
	return newProber(t, s).Probe(t.Context())
}

// askAll probes in all ways at once.
func askAll(t *testing.T, e *probetest.Endpoint, options ...option) map[way]*probe.Result {
	t.Helper()
	var mu sync.Mutex
	var running sync.WaitGroup
	results := map[way]*probe.Result{}
	for _, w := range ways(e) {
		running.Go(func() {
			r := w.ask(t, options...)
			mu.Lock()
			defer mu.Unlock()
			results[w] = r
		})
	}
	running.Wait()
	return results
}

// Every protocol, streamed or not, is measured as the endpoint truly was.
func TestSimulatedAnswers(t *testing.T) {
	const tokens = 5
	const text = " moss fern kelp oak reef"
	e, truth := simulate(t, probetest.Model{
		TTFT: probetest.Fixed(0.03), Gap: probetest.Fixed(0.01), OutputTokens: probetest.Fixed(tokens),
	})
	spoken := map[string]bool{}
	results := map[way]*probe.Result{}
	for _, w := range ways(e) { // one after the other, since times are compared
		results[w] = w.ask(t)
	}
	for w, r := range results {
		spoken[w.Protocol] = true
		served := truth(r.TraceID)
		switch {
		case verdictOn(r) != "good":
			t.Errorf("%s: %s (%s) %v: %s", w, r.Outcome, r.Reason, r.Flags, r.Error)
			continue
		case served.Status != http.StatusOK || served.Protocol != w.Protocol || served.Stream != w.stream:
			t.Errorf("%s: served %+v", w, served)
		case r.E2E == nil || *r.E2E < 30*time.Millisecond || *r.E2E > 20*time.Second:
			t.Errorf("%s: E2E %v", w, r.E2E)
		}
		checkServerTimes(t, w, r)
		if w.Via != "TEI" && (r.InputTokens == nil || *r.InputTokens != served.InputTokens) {
			t.Errorf("%s: input tokens %v, want %d", w, r.InputTokens, served.InputTokens)
		}
		if w.tokenless() {
			continue
		}
		if r.Text != text || r.OutputTokens == nil || *r.OutputTokens != tokens || r.OutputTokensSource != probe.TokensUsage {
			t.Errorf("%s: text %q, tokens %v (%s)", w, r.Text, r.OutputTokens, r.OutputTokensSource)
		}
		if (r.TTFT != nil) != w.stream || (r.TPOT != nil) != (w.stream && !r.Has(probe.FlagBuffered)) {
			t.Errorf("%s: TTFT %v, TPOT %v", w, r.TTFT, r.TPOT)
			continue
		}
		if !w.stream {
			continue
		}
		if n := len(served.Writes); n != tokens || r.TokenEvents != tokens {
			t.Errorf("%s: %d writes, %d token events, want %d", w, n, r.TokenEvents, tokens)
			continue
		}
		if ttft := served.Writes[0].Sub(served.Received); *r.TTFT < ttft || *r.TTFT > ttft+10*time.Second {
			t.Errorf("%s: TTFT %s, and the first token was written after %s", w, *r.TTFT, ttft)
		}
	}
	if got := slices.Sorted(maps.Keys(spoken)); !slices.Equal(got, config.Protocols) {
		t.Errorf("protocols %v, want %v", got, config.Protocols)
	}
}

// checkServerTimes checks that the times which a family tells arrive, and are those of the model.
func checkServerTimes(t *testing.T, w way, r *probe.Result) {
	t.Helper()
	tells := map[string]bool{"ollama": true, "bedrock-converse": true}
	if !w.stream { // these tell them in the head
		for _, p := range []string{"openai-chat", "openai-completions", "azure-openai", "openai-responses", "openai-embeddings", "tgi"} {
			tells[p] = true
		}
	}
	if got := len(r.ServerTimes) > 0; got != (tells[w.Protocol] || w.Via == "TEI") {
		t.Errorf("%s: server times %v", w, r.ServerTimes)
	}
	for _, s := range r.ServerTimes {
		if s.Kind == probe.ServerKinds[len(probe.ServerKinds)-1] && (s.Took < 30*time.Millisecond || s.Took > *r.E2E+2*time.Millisecond) {
			t.Errorf("%s: the server took %s of %s", w, s.Took, *r.E2E)
		}
	}
}

// verdict is an outcome in words: "server_error internal in_band", with the flags behind it, but for those that a busy
// machine sets.
type verdict string

func verdictOn(r *probe.Result) verdict {
	words := []string{string(r.Outcome)}
	if r.Reason != "" {
		words = append(words, string(r.Reason))
	}
	if r.InBand {
		words = append(words, "in_band")
	}
	for _, f := range r.Flags {
		if f != probe.FlagTruncated && f != probe.FlagBuffered && f != probe.FlagOwnLag {
			words = append(words, string(f))
		}
	}
	return verdict(strings.Join(words, " "))
}

// faultTests give the verdict on each fault; "" is good.
var faultTests = []struct {
	kind probetest.FaultKind
	want func(w way) verdict
	with []option
}{
	{kind: probetest.FaultRateLimited, want: always("rate_limited limit")},
	{kind: probetest.FaultQuota, want: func(w way) verdict {
		// The others have no word for it.
		if w.aws() || w.is("gemini", "ollama", "tgi", "cohere", "rerank") {
			return "rate_limited limit"
		}
		return "rate_limited quota"
	}},
	{kind: probetest.FaultUnauthorized, want: always("client_error auth")},
	{kind: probetest.FaultNotFound, want: always("client_error not_found")},
	{kind: probetest.FaultBadRequest, want: always("client_error request")},
	{kind: probetest.FaultInternal, want: always("server_error internal")},
	{kind: probetest.FaultUnavailable, want: always("server_error overloaded")},
	{kind: probetest.FaultBadGateway, want: always("server_error bad_gateway")},
	{kind: probetest.FaultGatewayTimeout, want: always("server_error gateway_timeout")},
	{kind: probetest.FaultRedirect, want: always("client_error redirect")},
	{kind: probetest.FaultHTML, want: always("invalid_response html")},
	{kind: probetest.FaultClosed, want: always("connection_error closed")},
	{kind: probetest.FaultResetAtOnce, want: always("connection_error reset")},
	{kind: probetest.FaultNoHeaders, want: always("timeout headers"), with: impatient},
	{kind: probetest.FaultInBand, want: always("server_error internal in_band")},
	{kind: probetest.FaultTruncated, want: always("truncated unterminated")},
	{kind: probetest.FaultReset, want: always("interrupted reset")},
	{kind: probetest.FaultCut, want: always("interrupted unexpected_eof")},
	{kind: probetest.FaultStall, want: streamed("timeout idle", "timeout total"), with: impatient},
	{kind: probetest.FaultPingStall, want: streamed("timeout idle", "timeout total"), with: impatient},
	{kind: probetest.FaultNoFirstToken, want: streamed("timeout first_token", "timeout total"), with: impatient},
	{kind: probetest.FaultSlowFirstToken, want: always("")},
	{kind: probetest.FaultMalformed, want: always("invalid_response malformed")},
	{kind: probetest.FaultTooLarge, want: always("invalid_response event_too_large")},
	{kind: probetest.FaultChecksum, want: func(w way) verdict {
		if w.aws() && w.stream {
			return "invalid_response crc"
		}
		return ""
	}},
	{kind: probetest.FaultNotStreamed, want: func(w way) verdict {
		switch {
		case !w.stream:
			return ""
		case w.is("ollama"): // a document without a line's end, where lines were expected
			return "invalid_response not_streamed unterminated_final_event"
		}
		return "invalid_response not_streamed"
	}},
	{kind: probetest.FaultLengthLimited, want: unlessTokenless("good length_limited")},
	{kind: probetest.FaultEmpty, want: func(w way) verdict {
		if w.tokenless() {
			return "invalid_response content_check"
		}
		return "invalid_response empty"
	}},
	{kind: probetest.FaultContentFilter, want: func(w way) verdict {
		switch {
		case w.tokenless() || w.is("ollama", "tgi", "cohere"):
			return ""
		case w.is("anthropic-messages"):
			return "content_filtered refusal"
		}
		return "content_filtered filter"
	}},
	{kind: probetest.FaultRefusal, want: func(w way) verdict {
		switch {
		case w.tokenless() || w.is("ollama", "tgi", "cohere"):
			return ""
		case w.is("openai-completions", "gemini", "bedrock-converse"):
			return "content_filtered filter"
		}
		return "content_filtered refusal"
	}},
	{kind: probetest.FaultStuck, want: unlessTokenless("invalid_response content_check"), with: []option{
		func(s *config.Series) { s.Scenario.Check.MaxRepetition = 10 },
	}},
	{kind: probetest.FaultDoubleFinish, want: func(w way) verdict {
		if w.stream && w.is("openai-chat", "openai-completions", "azure-openai", "anthropic-messages", "bedrock-converse", "gemini") {
			return "good duplicate_finish"
		}
		return ""
	}},
	{kind: probetest.FaultUsageMissing, want: unlessTokenless("good usage_missing")},
}

func always(v verdict) func(way) verdict { return func(way) verdict { return v } }

func streamed(v, whole verdict) func(way) verdict {
	return func(w way) verdict {
		if w.stream {
			return v
		}
		return whole
	}
}

func unlessTokenless(v verdict) func(way) verdict {
	return func(w way) verdict {
		if w.tokenless() {
			return ""
		}
		return v
	}
}

// impatient is for faults that only a limit ends.
var impatient = []option{func(s *config.Series) {
	s.Scenario.Timeout, s.Scenario.FirstTokenTimeout, s.Scenario.IdleTimeout = 3*time.Second, 2*time.Second, 1500*time.Millisecond
}}

// Each fault has its outcome and reason, whatever the protocol that tells it.
func TestSimulatedFaults(t *testing.T) {
	var tested []probetest.FaultKind
	for _, tc := range faultTests {
		tested = append(tested, tc.kind)
		t.Run(string(tc.kind), func(t *testing.T) {
			e, truth := simulate(t, probetest.Model{Faults: []probetest.Fault{{
				Kind: tc.kind, Rate: 1, Delay: 30 * time.Millisecond, RetryAfter: 3 * time.Second,
			}}})
			for w, r := range askAll(t, e, tc.with...) {
				want := tc.want(w)
				if want == "" {
					want = "good"
				}
				if got := verdictOn(r); got != want {
					t.Errorf("%s: got %q, want %q: %s", w, got, want, r.Error)
				}
				if r.StatusCode == http.StatusTooManyRequests && (r.RetryAfter == nil || *r.RetryAfter != 3*time.Second) {
					t.Errorf("%s: retry after %v, want 3s", w, r.RetryAfter)
				}
				if served := truth(r.TraceID); served.Fault != tc.kind || served.Status != r.StatusCode {
					t.Errorf("%s: status %d, served %+v", w, r.StatusCode, served)
				}
			}
		})
	}
	if !slices.Equal(tested, probetest.FaultKinds) {
		t.Errorf("tested %v, want %v", tested, probetest.FaultKinds)
	}
}
