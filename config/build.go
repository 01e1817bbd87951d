package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
)

// New returns a Config of series that were built in code: the flags of goodputctl, the demo. Fields that are zero and
// have a default get it. Its error is Errors; where there is one series, their keys are those of the YAML below a
// scenario or a target, such as slo.ttft, else the series' key stands before them.
func New(series ...*Series) (*Config, error) {
	var b builder
	known := make(map[*Target]bool)
	for _, s := range series {
		at := func(key string) Error {
			if len(series) > 1 {
				key = join(s.Key(), key)
			}
			return Error{Key: key}
		}
		r := report{&b.problems, at}
		if !known[s.Target] {
			known[s.Target] = true
			b.addTarget(s.Target, r)
		}
		b.addSeries(s, r, r)
	}
	return b.finish()
}

// NewSeries returns the series that FromEnv makes: a target named after the URL's host with the built-in scenario
// chat. The caller changes what it likes and hands it to New, which validates it.
func NewSeries(endpoint, model string) *Series {
	t := &Target{URL: endpoint, Model: model}
	if u, err := url.Parse(endpoint); err == nil {
		t.Name = u.Hostname()
	}
	if t.Name == "" || net.ParseIP(t.Name) != nil {
		t.Name = "llm" // an address is no name; where the URL is wrong, New reports it
	}
	var l loader
	s := &Series{Target: t, Scenario: l.resolve(builtinName, *builtin(), report{})}
	t.setDefaults()
	s.Scenario.setDefaults()
	return s
}

// FromEnv makes a configuration of LLM_URL, LLM_MODEL and LLM_API_KEY, as benchmark scripts have them: one target with
// the built-in scenario chat. It returns false where LLM_URL is empty. The URL may be the base URL or that of the
// endpoint. Its error is Errors, with the variables as keys.
func FromEnv(getenv func(string) string) (*Config, bool, error) {
	endpoint := strings.TrimSpace(getenv("LLM_URL"))
	if endpoint == "" {
		return nil, false, nil
	}
	s := NewSeries(endpoint, strings.TrimSpace(getenv("LLM_MODEL")))
	if key := strings.TrimSpace(getenv("LLM_API_KEY")); key != "" {
		s.Target.HTTP.Authorization = &promconfig.Authorization{Credentials: promconfig.Secret(key)}
	}
	cfg, err := New(s)
	variables := map[string]string{"url": "LLM_URL", "model": "LLM_MODEL", "http": "LLM_API_KEY"}
	if errs := Errors(nil); errors.As(err, &errs) {
		for _, e := range errs {
			if variable, ok := variables[e.Key]; ok {
				e.Key = variable
			}
		}
	}
	return cfg, err == nil, err
}

// builtinName is the scenario that exists without a file. A file may define its own of that name.
const builtinName = "chat"

// builtin is an ordinary chat: short questions that every model answers in a few sentences. The ceiling leaves room
// for models that think first. The SLO has no limit for the whole answer, which would depend on what the model has to
// say, and contradict shorter timeouts.
func builtin() *scenarioYAML {
	ms := func(n time.Duration) *criterionYAML {
		l := limit(n * time.Millisecond)
		return &criterionYAML{Limit: &l}
	}
	objective, maxTokens := ratio(0.95), 1024
	return &scenarioYAML{
		promptsYAML: promptsYAML{builtin: true},
		lengthYAML:  lengthYAML{MaxTokens: &maxTokens},
		SLO:         &sloYAML{Objective: &objective, TTFT: ms(2000), TPOT: ms(100)},
	}
}

func builtinPrompts() []Prompt {
	texts := []string{
		"What is the difference between a city and a town? Answer in two sentences.",
		"Explain in three sentences why the sky is blue.",
		"Give me a simple recipe for pancakes in about sixty words.",
		"Write a friendly two-sentence reply to a customer whose parcel is late.",
		"Name three good habits for learning a language, each in one short sentence.",
	}
	prompts := make([]Prompt, len(texts))
	for i, text := range texts {
		prompts[i] = Prompt{Text: text, Weight: 1}
	}
	return prompts
}

// builder is a Config on its way. Every way in ends here, so that there is one validation.
type builder struct {
	problems
	cfg     Config
	names   map[string]Error   // where each target's name stands first
	keys    map[string]*Target // of all series
	reports map[*Target]report
}

func (b *builder) addTarget(t *Target, r report) {
	if b.names == nil {
		b.names, b.keys, b.reports = make(map[string]Error), make(map[string]*Target), make(map[*Target]report)
	}
	t.setDefaults()
	t.check(r)
	first, taken := b.names[t.Name]
	switch {
	case taken && first.File != "":
		r.errorf("name", "duplicate target %q, first in %s:%d; names must be unique", t.Name, first.File, first.Line)
	case taken:
		r.errorf("name", "duplicate target %q; names must be unique", t.Name)
	case t.Name != "":
		b.names[t.Name] = r.locate("name")
	}
	b.cfg.Targets = append(b.cfg.Targets, t)
	b.reports[t] = r
}

// addSeries takes the report of the scenario and that of the place which makes a series of it.
func (b *builder) addSeries(s *Series, r, entry report) {
	s.Scenario.setDefaults()
	if slices.Contains(wholeProtocols, s.Target.Protocol) {
		s.Scenario.Stream = false
		if s.Scenario.Check != (Check{}) {
			r.errorf("check", "has no meaning for %s, whose answers have no text: remove it", s.Target.Protocol)
		}
	}
	s.Scenario.check(r)
	first, taken := b.keys[s.Key()]
	switch {
	case !taken:
		b.keys[s.Key()] = s.Target
	case first == s.Target || first.Name != s.Target.Name: // else the duplicate target is the error
		entry.errorf("", "the series %s is there twice: a target can have each scenario once", s.Key())
	}
	b.cfg.Series = append(b.cfg.Series, s)
	warnSeries(s.Scenario, r)
}

// finish returns the Config, or everything that is wrong with it.
func (b *builder) finish() (*Config, error) {
	if len(b.cfg.Targets) == 0 && len(b.errors) == 0 {
		b.add(Error{Err: errors.New("no targets: there is nothing to probe")})
	}
	if len(b.errors) > 0 {
		b.sort(b.errors)
		return nil, b.errors
	}
	labels := make(map[string]bool)
	for _, t := range b.cfg.Targets {
		for name := range t.Labels {
			labels[name] = true
		}
		warnBudget(t, b.cfg.Series, b.reports[t])
	}
	b.cfg.LabelNames = slices.Sorted(maps.Keys(labels))
	for _, file := range b.files {
		b.cfg.Files = append(b.cfg.Files, absolute(file))
	}
	b.sort(b.warnings)
	for _, w := range b.warnings {
		b.cfg.Warnings = append(b.cfg.Warnings, fmt.Sprint(w))
	}
	return &b.cfg, nil
}
