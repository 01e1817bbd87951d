package config

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Protocols lists the protocols of this build. It must equal the table of probe/wire, which has a test for that:
// this package cannot import it.
var Protocols = []string{
	"anthropic-messages", "azure-openai", "bedrock-converse", "cohere", "gemini", "ollama", "openai-chat",
	"openai-completions", "openai-embeddings", "openai-responses", "rerank", "tgi",
}

// wholeProtocols are those whose answers are never streamed.
var wholeProtocols = []string{"openai-embeddings", "rerank"}

// MinInterval is the shortest interval: what is more often than this is a load test.
const MinInterval = time.Second

// reservedLabels are those that our metrics, Prometheus or its scrape configuration set.
var reservedLabels = []string{
	"target", "model", "scenario", "slo", "result", "outcome", "reason", "phase", "kind", "unit",
	"protocol", "provider", "url_host", "le", "quantile", "job", "instance",
}

// setDefaults fills in what is zero and has a default.
func (t *Target) setDefaults() {
	if t.Protocol == "" {
		t.Protocol = DefaultProtocol
	}
	if t.Connection == "" {
		t.Connection = ConnectionKeep
	}
	if t.MaxTokensField == "" {
		t.MaxTokensField = DefaultMaxTokensField
	}
}

// setDefaults fills in what is zero and has a default. The limits inside a probe give way to the probe's own.
func (s *Scenario) setDefaults() {
	if s.Interval == 0 {
		s.Interval = DefaultInterval
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if s.FirstTokenTimeout == 0 {
		s.FirstTokenTimeout = min(DefaultFirstTokenTimeout, s.Timeout)
	}
	if s.IdleTimeout == 0 {
		s.IdleTimeout = min(DefaultIdleTimeout, s.Timeout)
	}
}

// check reports what is wrong with a target, by the keys of the YAML.
func (t *Target) check(r report) {
	if t.Name == "" {
		r.errorf("name", "missing: give each target a name; it becomes the label target")
	}
	if !slices.Contains(Protocols, t.Protocol) {
		r.errorf("protocol", "unknown protocol %q; %s", t.Protocol, didYouMean(t.Protocol, Protocols))
	}
	checkURL(t.URL, r)
	if t.Model == "" {
		r.errorf("model", "missing: give the name of the model as the endpoint knows it")
	}
	for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
		checkLabel(name, r)
	}
	if t.Connection != ConnectionKeep && t.Connection != ConnectionNew {
		r.errorf("connection", "must be keep or new")
	}
	if t.MaxTokensField != "max_tokens" && t.MaxTokensField != "max_completion_tokens" {
		r.errorf("max_tokens_field", "must be max_tokens or max_completion_tokens")
	}
	if t.Budget.RequestsPerDay < 0 {
		r.errorf("budget.requests_per_day", "must not be negative; leave it out for no bound")
	}
	if t.Budget.OutputTokensPerDay < 0 {
		r.errorf("budget.output_tokens_per_day", "must not be negative; leave it out for no bound")
	}
	if t.Price != nil {
		checkPrice("price.input", t.Price.Input, r)
		checkPrice("price.output", t.Price.Output, r)
	}
	checkExtraBody(t.ExtraBody, r)
	checkHTTP(&t.HTTP, r)
}

func checkLabel(name string, r report) {
	key := "labels." + name
	switch {
	case !model.LegacyValidation.IsValidLabelName(name):
		r.errorf(key, "not a label name: it must match [a-zA-Z_][a-zA-Z0-9_]*")
	case strings.HasPrefix(name, "__"):
		r.errorf(key, "label names that begin with __ are reserved for Prometheus: choose another")
	case slices.Contains(reservedLabels, name):
		r.errorf(key, "the label %s is set by the exporter or by Prometheus: choose another, such as llm_%[1]s", name)
	}
}

func checkPrice(key string, v float64, r report) {
	if !(v >= 0) || math.IsInf(v, 0) {
		r.errorf(key, "must be dollars per million tokens, 0 or more")
	}
}

func checkExtraBody(body map[string]any, r report) {
	if _, err := json.Marshal(body); err != nil {
		r.errorf("extra_body", "cannot be sent as JSON: keys must be strings and numbers finite")
	}
}

// check reports what is wrong with a scenario, by the keys of the YAML.
func (s *Scenario) check(r report) {
	if s.Name == "" {
		r.errorf("name", "missing: give each scenario a name; it becomes the label scenario")
	}
	s.checkTiming(r)
	s.checkPrompts(r)
	s.checkLength(r)
	s.Check.check(r)
	checkExtraBody(s.ExtraBody, r)
	if s.SLO.Objective != 0 || s.SLO.Availability != 0 || len(s.SLO.Criteria) > 0 {
		s.checkSLO(r)
	}
}

func (s *Scenario) checkTiming(r report) {
	if s.Interval < MinInterval {
		r.errorf("interval", "%s is too often for steady probing: at least %s; for load there is goodputctl bench", span(s.Interval), span(MinInterval))
	}
	if s.Timeout <= 0 {
		r.errorf("timeout", "must be more than 0")
	}
	if s.Jitter < 0 || s.Jitter >= s.Interval {
		r.errorf("jitter", "must be shorter than the interval of %s, so that slots keep their order", span(s.Interval))
	}
	if !s.Stream {
		return
	}
	if s.FirstTokenTimeout <= 0 || s.FirstTokenTimeout > s.Timeout {
		r.errorf("first_token_timeout", "%s does not fit into the timeout of %s for the whole probe: shorten it or lengthen timeout",
			span(s.FirstTokenTimeout), span(s.Timeout))
	}
	if s.IdleTimeout <= 0 || s.IdleTimeout > s.Timeout {
		r.errorf("idle_timeout", "%s does not fit into the timeout of %s for the whole probe: shorten it or lengthen timeout",
			span(s.IdleTimeout), span(s.Timeout))
	}
}

func (s *Scenario) checkPrompts(r report) {
	if len(s.Prompts) == 0 && s.Synthetic == nil {
		r.errorf("prompt", "nothing to ask: give prompt (a text), prompts_file (JSON lines), or synthetic (lengths in tokens)")
	}
	for i := range s.Prompts {
		s.Prompts[i].check(r, "prompt")
		if s.OutputTokens > 0 && s.Prompts[i].MaxTokens > 0 {
			r.errorf("output_tokens", "contradicts a prompt with max_tokens: a length is either pinned or capped; remove one")
		}
	}
	if s.Synthetic != nil {
		s.checkSynthetic(r)
	}
}

// maxLength bounds lengths in tokens, far above what any model takes: a digit too many is no prompt of gigabytes.
const maxLength = 10_000_000

func (s *Scenario) checkSynthetic(r report) {
	syn := s.Synthetic
	syn.InputTokens.check("synthetic.input_tokens", r)
	if syn.OutputTokens != nil {
		syn.OutputTokens.check("synthetic.output_tokens", r)
		switch {
		case s.OutputTokens > 0:
			r.errorf("synthetic.output_tokens", "contradicts output_tokens: both pin the length, one for all answers, one drawn for each; remove one")
		case s.MaxTokens > 0:
			r.errorf("synthetic.output_tokens", "contradicts max_tokens: max_tokens is a ceiling, synthetic.output_tokens pins the length; remove one")
		}
	}
	switch {
	case syn.SharedPrefixTokens < 0:
		r.errorf("synthetic.shared_prefix_tokens", "must not be negative; leave it out for prompts that share nothing")
	case syn.SharedPrefixTokens > 0 && syn.SharedPrefixTokens >= syn.InputTokens.P95:
		r.errorf("synthetic.shared_prefix_tokens", "must be less than the p95 of input_tokens: the prefix is a part of the prompt")
	case syn.SharedPrefixTokens > 0 && s.KeepCache:
		r.errorf("synthetic.shared_prefix_tokens", "contradicts cache: keep, where prompts share everything: remove one")
	}
	switch {
	case syn.Prefixes < 0:
		r.errorf("synthetic.prefixes", "must not be negative; leave it out for one prefix")
	case syn.Prefixes > 0 && syn.SharedPrefixTokens == 0:
		r.errorf("synthetic.prefixes", "prefixes of what length? Give synthetic.shared_prefix_tokens too")
	}
	if syn.Turns < 0 {
		r.errorf("synthetic.turns", "must not be negative; leave it out for single prompts")
	}
}

func (q Quantiles) check(key string, r report) {
	switch {
	case q.P50 < 1 || q.P95 < q.P50:
		r.errorf(key, "must have a p50 of at least 1 and a p95 of at least the p50, such as {p50: 3000, p95: 6000}")
	case q.P95 > maxLength:
		r.errorf(key, "must have a p95 of at most %d tokens", maxLength)
	}
}

// check reports what is wrong with a prompt; prefix is the path of its keys.
func (p *Prompt) check(r report, prefix string) {
	if blank := strings.TrimSpace(p.Text) == ""; blank == (len(p.Messages) == 0) {
		r.errorf(prefix, "must have either a text as prompt or messages")
	}
	for _, m := range p.Messages {
		if m.Role == "" {
			r.errorf(join(prefix, "messages"), `every message needs a role, such as "user"`)
		}
	}
	if p.MaxTokens < 0 {
		r.errorf(join(prefix, "max_tokens"), "must be at least 1; leave it out to take the scenario's")
	}
	if !(p.Weight > 0) || math.IsInf(p.Weight, 0) {
		r.errorf(join(prefix, "weight"), "must be more than 0; leave it out for 1")
	}
}

func (s *Scenario) checkLength(r report) {
	if s.MaxTokens < 0 {
		r.errorf("max_tokens", "must be at least 1; leave it out for no limit")
	}
	if s.OutputTokens < 0 {
		r.errorf("output_tokens", "must be at least 1; leave it out for an answer of any length")
	}
	if s.MaxTokens > 0 && s.OutputTokens > 0 {
		r.errorf("output_tokens", "contradicts max_tokens: max_tokens is a ceiling, output_tokens pins the length; remove one")
	}
}

func (s *Scenario) checkSLO(r report) {
	if s.SLO.Objective == 0 {
		r.errorf("slo.objective", "missing: say how many of the probes must be good, such as 99%%")
	} else if err := checkRatio(s.SLO.Objective); err != nil {
		r.errorf("slo.objective", "%w", err)
	}
	if s.SLO.Availability != 0 {
		if err := checkRatio(s.SLO.Availability); err != nil {
			r.errorf("slo.availability", "%w", err)
		}
	}
	seen := make(map[string]bool)
	for _, c := range s.SLO.Criteria {
		if !slices.Contains(Criteria, c.Name) || seen[c.Name] {
			r.errorf("slo."+c.Name, "unknown criterion, or given twice; known are %s", strings.Join(Criteria, ", "))
			continue
		}
		seen[c.Name] = true
		s.checkCriterion(c, r)
	}
}

func (s *Scenario) checkCriterion(c Criterion, r report) {
	key := "slo." + c.Name
	if c.Objective != 0 {
		if err := checkRatio(c.Objective); err != nil {
			r.errorf(key+".objective", "%w", err)
		}
	}
	if c.Name == CriterionComplete {
		return
	}
	if StreamOnly(c.Name) && !s.Stream {
		r.errorf(key, "has no meaning for answers that are not streamed: remove it, use e2e, or set stream: true")
		return
	}
	if c.Limit <= 0 {
		r.errorf(key+".limit", "missing: give a duration such as 800ms")
	}
	name, timeout := s.timeoutOf(c.Name)
	if c.Limit > timeout {
		r.errorf(key, "%s is longer than the %s of %s, which ends the probe before: shorten the one or lengthen the other",
			span(c.Limit), name, span(timeout))
	}
}

// timeoutOf returns the limit that ends a probe before a criterion could.
func (s *Scenario) timeoutOf(criterion string) (name string, timeout time.Duration) {
	switch criterion {
	case CriterionTTFT:
		return "first_token_timeout", s.FirstTokenTimeout
	case CriterionStall:
		return "idle_timeout", s.IdleTimeout
	}
	return "timeout", s.Timeout
}

// span writes a duration as the YAML does.
func span(d time.Duration) string {
	if d%time.Second != 0 {
		return d.String() // 1.5s, not 1s500ms
	}
	return model.Duration(d).String() // 1m, not 1m0s
}
