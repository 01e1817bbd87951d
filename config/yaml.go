package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

// The structs of this file have the shape of the YAML. What may be absent is a pointer.

type fileYAML struct {
	Global      globalYAML               `yaml:"global"`
	Scenarios   map[string]*scenarioYAML `yaml:"scenarios"`
	Targets     []*targetYAML            `yaml:"targets"`
	TargetFiles []string                 `yaml:"target_files"`
	Maintenance []*maintenanceYAML       `yaml:"maintenance"`
}

// targetFileYAML is a file that target_files names; it may also be the bare list.
type targetFileYAML struct {
	Targets []*targetYAML `yaml:"targets"`
}

type globalYAML struct {
	timingYAML `yaml:",inline"`
	Objective  *ratio `yaml:"objective"` // of every SLO that states none
}

type timingYAML struct {
	Interval          *limit    `yaml:"interval"`
	Timeout           *limit    `yaml:"timeout"`
	FirstTokenTimeout *limit    `yaml:"first_token_timeout"`
	IdleTimeout       *limit    `yaml:"idle_timeout"`
	Jitter            *duration `yaml:"jitter"`
}

// over returns the timing with what it leaves open taken from base.
func (t timingYAML) over(base timingYAML) timingYAML {
	return timingYAML{
		Interval:          cmp.Or(t.Interval, base.Interval),
		Timeout:           cmp.Or(t.Timeout, base.Timeout),
		FirstTokenTimeout: cmp.Or(t.FirstTokenTimeout, base.FirstTokenTimeout),
		IdleTimeout:       cmp.Or(t.IdleTimeout, base.IdleTimeout),
		Jitter:            cmp.Or(t.Jitter, base.Jitter),
	}
}

type scenarioYAML struct {
	timingYAML        `yaml:",inline"`
	promptsYAML       `yaml:",inline"`
	lengthYAML        `yaml:",inline"`
	Stream            *bool          `yaml:"stream"`
	Cache             *string        `yaml:"cache"`
	RequireText       *bool          `yaml:"require_text"`
	AcceptNotStreamed *bool          `yaml:"accept_not_streamed"`
	Expect            *pattern       `yaml:"expect"`
	Check             *checkYAML     `yaml:"check"`
	ExtraBody         map[string]any `yaml:"extra_body"`
	SLO               *sloYAML       `yaml:"slo"`
}

// promptsYAML says what is asked. An override replaces it as a whole.
type promptsYAML struct {
	Prompt      *string        `yaml:"prompt"`
	PromptsFile *string        `yaml:"prompts_file"`
	Synthetic   *syntheticYAML `yaml:"synthetic"`
	builtin     bool           // the prompts of the built-in scenario
}

// lengthYAML bounds the answer. An override replaces it as a whole.
type lengthYAML struct {
	MaxTokens    *int `yaml:"max_tokens"`
	OutputTokens *int `yaml:"output_tokens"`
}

type syntheticYAML struct {
	InputTokens        *quantilesYAML `yaml:"input_tokens"`
	OutputTokens       *quantilesYAML `yaml:"output_tokens"`
	SharedPrefixTokens int            `yaml:"shared_prefix_tokens"`
	Prefixes           int            `yaml:"prefixes"`
	Turns              int            `yaml:"turns"`
}

// over returns the scenario with what it leaves open taken from base.
func (s scenarioYAML) over(base scenarioYAML) scenarioYAML {
	m := scenarioYAML{
		timingYAML:        s.timingYAML.over(base.timingYAML),
		promptsYAML:       cmp.Or(s.promptsYAML, base.promptsYAML),
		lengthYAML:        cmp.Or(s.lengthYAML, base.lengthYAML),
		Stream:            cmp.Or(s.Stream, base.Stream),
		Cache:             cmp.Or(s.Cache, base.Cache),
		RequireText:       cmp.Or(s.RequireText, base.RequireText),
		AcceptNotStreamed: cmp.Or(s.AcceptNotStreamed, base.AcceptNotStreamed),
		Expect:            cmp.Or(s.Expect, base.Expect),
		Check:             s.Check.over(base.Check),
		ExtraBody:         maps.Clone(base.ExtraBody),
		SLO:               s.SLO.over(base.SLO),
	}
	if m.ExtraBody == nil {
		m.ExtraBody = maps.Clone(s.ExtraBody)
	} else {
		maps.Copy(m.ExtraBody, s.ExtraBody)
	}
	return m
}

type sloYAML struct {
	Objective    *ratio         `yaml:"objective"`
	Availability *ratio         `yaml:"availability"`
	TTFT         *criterionYAML `yaml:"ttft"`
	FirstAnswer  *criterionYAML `yaml:"first_answer"`
	TPOT         *criterionYAML `yaml:"tpot"`
	Stall        *criterionYAML `yaml:"stall"`
	E2E          *criterionYAML `yaml:"e2e"`
	Complete     *completeYAML  `yaml:"complete"`
}

func (s *sloYAML) over(base *sloYAML) *sloYAML {
	if s == nil || base == nil {
		return cmp.Or(s, base)
	}
	return &sloYAML{
		Objective:    cmp.Or(s.Objective, base.Objective),
		Availability: cmp.Or(s.Availability, base.Availability),
		TTFT:         s.TTFT.over(base.TTFT),
		FirstAnswer:  s.FirstAnswer.over(base.FirstAnswer),
		TPOT:         s.TPOT.over(base.TPOT),
		Stall:        s.Stall.over(base.Stall),
		E2E:          s.E2E.over(base.E2E),
		Complete:     cmp.Or(s.Complete, base.Complete),
	}
}

// criterionYAML is "800ms" or {limit: 800ms, objective: 95%}.
type criterionYAML struct {
	Limit     *limit `yaml:"limit"`
	Objective *ratio `yaml:"objective"`
}

func (c *criterionYAML) over(base *criterionYAML) *criterionYAML {
	if c == nil || base == nil {
		return cmp.Or(c, base)
	}
	return &criterionYAML{Limit: cmp.Or(c.Limit, base.Limit), Objective: cmp.Or(c.Objective, base.Objective)}
}

func (c *criterionYAML) setScalar(value string) error {
	c.Limit = new(limit)
	return c.Limit.setScalar(value)
}

func (c *criterionYAML) form() string {
	return "a duration such as 800ms, or {limit: 800ms, objective: 95%}"
}

// completeYAML is true, false or {objective: 95%}, which is also true.
type completeYAML struct {
	off       bool
	Objective *ratio `yaml:"objective"`
}

func (c *completeYAML) setScalar(value string) error {
	on, err := strconv.ParseBool(value)
	if err != nil {
		return fmt.Errorf("must be %s", c.form())
	}
	c.off = !on
	return nil
}

func (c *completeYAML) form() string { return "true, false, or {objective: 95%}" }

// quantilesYAML is a number of tokens or {p50: 3000, p95: 6000}.
type quantilesYAML struct {
	P50 *int `yaml:"p50"`
	P95 *int `yaml:"p95"`
}

func (q *quantilesYAML) setScalar(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("must be %s", q.form())
	}
	q.P50, q.P95 = &n, &n
	return nil
}

func (q *quantilesYAML) form() string { return "a number of tokens, or {p50: 3000, p95: 6000}" }

type targetYAML struct {
	timingYAML     `yaml:",inline"`
	Name           string                      `yaml:"name"`
	Protocol       string                      `yaml:"protocol"`
	URL            string                      `yaml:"url"`
	Model          string                      `yaml:"model"`
	Provider       string                      `yaml:"provider"`
	Scenarios      []*entryYAML                `yaml:"scenarios"`
	Labels         map[string]string           `yaml:"labels"`
	HTTP           promconfig.HTTPClientConfig `yaml:"http"`
	Bearer         bool                        `yaml:"bearer"`
	Connection     Connection                  `yaml:"connection"`
	MaxTokensField string                      `yaml:"max_tokens_field"`
	ExtraBody      map[string]any              `yaml:"extra_body"`
	Budget         budgetYAML                  `yaml:"budget"`
	Price          *priceYAML                  `yaml:"price"`
}

type budgetYAML struct {
	RequestsPerDay     int `yaml:"requests_per_day"`
	OutputTokensPerDay int `yaml:"output_tokens_per_day"`
}

type priceYAML struct {
	Input  float64 `yaml:"input"`
	Output float64 `yaml:"output"`
}

// entryYAML is one scenario of a target: its name, or a mapping with its name and what is different there.
type entryYAML struct {
	Name         string `yaml:"name"`
	scenarioYAML `yaml:",inline"`
}

func (e *entryYAML) setScalar(value string) error { //nolint:unparam // of the interface
	e.Name = value
	return nil
}

func (e *entryYAML) form() string {
	return "the name of a scenario, or a mapping such as {name: chat, interval: 60s}"
}

// duration is a length of time, 0 or more.
type duration time.Duration

func (d *duration) setScalar(value string) error {
	parsed, err := parseDuration(value)
	*d = duration(parsed)
	return err
}

func (d *duration) form() string { return "a duration such as 15s or 800ms" }

// limit is a length of time that is more than 0.
type limit time.Duration

func (l *limit) setScalar(value string) error {
	parsed, err := parseDuration(value)
	if err == nil && parsed == 0 {
		return errors.New("must be more than 0: write a duration such as 15s or 800ms, or leave the key out")
	}
	*l = limit(parsed)
	return err
}

func (l *limit) form() string { return "a duration such as 15s or 800ms" }

// parseDuration takes the durations of Prometheus ("1m30s", "1d") and of Go ("1.5s").
func parseDuration(s string) (time.Duration, error) {
	if d, err := model.ParseDuration(s); err == nil {
		return time.Duration(d), nil
	}
	d, err := time.ParseDuration(s)
	if _, number := strconv.ParseFloat(s, 64); number == nil {
		return 0, fmt.Errorf("%s has no unit: write a duration such as 15s or 800ms", s)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is no duration: write one such as 15s, 800ms, 1.5s or 1m30s", s)
	}
	if d < 0 {
		return 0, fmt.Errorf("must not be negative, as %s is", s)
	}
	return d, nil
}

// ratio is a share in (0, 1), written "99%" or 0.99.
type ratio float64

func (r *ratio) setScalar(value string) error {
	number := value
	if share, percent := strings.CutSuffix(value, "%"); percent {
		number = strings.TrimSpace(share) + "e-2" // exact, unlike a division by 100
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return fmt.Errorf("%q is no ratio: write one such as 99%% or 0.99", value)
	}
	*r = ratio(v)
	return checkRatio(v)
}

func (r *ratio) form() string { return "a ratio such as 99% or 0.99" }

// ParseRatio reads a share in (0, 1) as the configuration writes it: 99% or 0.99.
func ParseRatio(text string) (float64, error) {
	var r ratio
	err := r.setScalar(text)
	return float64(r), err
}

// checkRatio refuses objectives that no number of probes can meet or miss.
func checkRatio(v float64) error {
	if v > 0 && v < 1 {
		return nil
	}
	if v > 1 && v < 100 {
		return fmt.Errorf("must be below 1, or have a %% sign: write %[1]v%% for %[1]v percent", v)
	}
	return fmt.Errorf("must be more than 0 %% and less than 100 %%, such as 99%%: %s", impossible(v))
}

func impossible(v float64) string {
	if v >= 1 {
		return "an objective of 100 % leaves no error budget"
	}
	return "an objective of 0 % asks for nothing"
}

// pattern is a regular expression in the syntax of Go (RE2).
type pattern struct{ *regexp.Regexp }

func (p *pattern) setScalar(value string) error {
	re, err := regexp.Compile(value)
	if err != nil {
		return fmt.Errorf("not a regular expression of RE2: %w", err)
	}
	p.Regexp = re
	return nil
}

func (p *pattern) form() string { return "a regular expression" }
