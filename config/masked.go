package config

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"
)

// masked stands for a secret; prometheus/common writes it so.
const masked = "<secret>"

// maskedInURL stands for a secret where < would be escaped.
const maskedInURL = "xxxxx"

// Masked returns the effective configuration as YAML for people: each target with its series, everything resolved, in
// the order of the files, and the windows of maintenance. Secrets are masked, wherever they stand: credentials, header values, passwords of proxies,
// query values of URLs, and values in request bodies whose names speak of secrets.
func (c *Config) Masked() ([]byte, error) {
	var out struct {
		Targets     []targetView      `yaml:"targets"`
		Maintenance []maintenanceView `yaml:"maintenance,omitempty"`
	}
	for _, t := range c.Targets {
		view := viewTarget(t)
		for _, s := range c.Series {
			if s.Target == t {
				view.Scenarios = append(view.Scenarios, viewScenario(s.Scenario))
			}
		}
		out.Targets = append(out.Targets, view)
	}
	for i := range c.Maintenance {
		out.Maintenance = append(out.Maintenance, viewMaintenance(&c.Maintenance[i]))
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(out); err != nil {
		return nil, fmt.Errorf("write the configuration as YAML: %w", err)
	}
	return b.Bytes(), nil
}

type targetView struct {
	Name           string                      `yaml:"name"`
	Protocol       string                      `yaml:"protocol"`
	URL            string                      `yaml:"url"`
	Model          string                      `yaml:"model"`
	Provider       string                      `yaml:"provider,omitempty"`
	Labels         map[string]string           `yaml:"labels,omitempty"`
	HTTP           promconfig.HTTPClientConfig `yaml:"http"`
	Bearer         bool                        `yaml:"bearer,omitempty"`
	Connection     Connection                  `yaml:"connection"`
	MaxTokensField string                      `yaml:"max_tokens_field"`
	ExtraBody      map[string]any              `yaml:"extra_body,omitempty"`
	Budget         budgetView                  `yaml:"budget,omitempty"`
	Price          *priceYAML                  `yaml:"price,omitempty"`
	Scenarios      []scenarioView              `yaml:"scenarios"`
}

type budgetView struct {
	RequestsPerDay     int `yaml:"requests_per_day,omitempty"`
	OutputTokensPerDay int `yaml:"output_tokens_per_day,omitempty"`
}

type scenarioView struct {
	Name              string         `yaml:"name"`
	Interval          string         `yaml:"interval"`
	Jitter            string         `yaml:"jitter,omitempty"`
	Timeout           string         `yaml:"timeout"`
	FirstTokenTimeout string         `yaml:"first_token_timeout,omitempty"`
	IdleTimeout       string         `yaml:"idle_timeout,omitempty"`
	Prompts           *promptsView   `yaml:"prompts,omitempty"`
	Synthetic         *syntheticView `yaml:"synthetic,omitempty"`
	Stream            bool           `yaml:"stream"`
	MaxTokens         int            `yaml:"max_tokens,omitempty"`
	OutputTokens      int            `yaml:"output_tokens,omitempty"`
	Cache             string         `yaml:"cache"`
	RequireText       bool           `yaml:"require_text"`
	AcceptNotStreamed bool           `yaml:"accept_not_streamed"`
	Check             checkView      `yaml:"check,omitempty"`
	ExtraBody         map[string]any `yaml:"extra_body,omitempty"`
	SLO               yaml.Node      `yaml:"slo,omitempty"`
}

type syntheticView struct {
	InputTokens        quantilesView  `yaml:"input_tokens"`
	OutputTokens       *quantilesView `yaml:"output_tokens,omitempty"`
	SharedPrefixTokens int            `yaml:"shared_prefix_tokens,omitempty"`
	Prefixes           int            `yaml:"prefixes,omitempty"`
	Turns              int            `yaml:"turns,omitempty"`
}

type quantilesView struct {
	P50 int `yaml:"p50"`
	P95 int `yaml:"p95"`
}

// promptsView shows how many prompts there are, and how the first begins.
type promptsView struct {
	Count int    `yaml:"count"`
	First string `yaml:"first"`
}

func viewTarget(t *Target) targetView {
	v := targetView{
		Name: t.Name, Protocol: t.Protocol, URL: maskURL(t.URL), Model: t.Model, Provider: t.Provider, Labels: t.Labels,
		HTTP: maskHTTP(t.HTTP), Bearer: t.Bearer, Connection: t.Connection, MaxTokensField: t.MaxTokensField,
		ExtraBody: maskBody(t.ExtraBody), Budget: budgetView(t.Budget),
	}
	if t.Price != nil {
		v.Price = &priceYAML{Input: t.Price.Input, Output: t.Price.Output}
	}
	return v
}

func viewScenario(s *Scenario) scenarioView {
	v := scenarioView{
		Name: s.Name, Interval: span(s.Interval), Timeout: span(s.Timeout), Stream: s.Stream, MaxTokens: s.MaxTokens,
		OutputTokens: s.OutputTokens, Cache: "bust", RequireText: s.RequireText, AcceptNotStreamed: s.AcceptNotStreamed,
		Check: viewCheck(s.Check), ExtraBody: maskBody(s.ExtraBody), SLO: viewSLO(&s.SLO),
	}
	if s.KeepCache {
		v.Cache = "keep"
	}
	if s.Jitter > 0 {
		v.Jitter = span(s.Jitter)
	}
	if s.Stream {
		v.FirstTokenTimeout, v.IdleTimeout = span(s.FirstTokenTimeout), span(s.IdleTimeout)
	}
	if len(s.Prompts) > 0 {
		v.Prompts = &promptsView{len(s.Prompts), beginning(s.Prompts[0])}
	}
	if s.Synthetic != nil {
		v.Synthetic = &syntheticView{
			InputTokens: quantilesView(s.Synthetic.InputTokens), OutputTokens: (*quantilesView)(s.Synthetic.OutputTokens),
			SharedPrefixTokens: s.Synthetic.SharedPrefixTokens, Prefixes: s.Synthetic.Prefixes, Turns: s.Synthetic.Turns,
		}
	}
	return v
}

// beginning returns the first words of a prompt.
func beginning(p Prompt) string {
	const most = 80
	text := p.Text
	if len(p.Messages) > 0 {
		text = p.Messages[0].Role + ": " + p.Messages[0].Content
	}
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most]) + "…"
	}
	return text
}

// viewSLO keeps the order of the criteria, which a map would lose.
func viewSLO(slo *SLO) yaml.Node {
	var n yaml.Node
	if slo.Objective == 0 {
		return n
	}
	n = yaml.Node{Kind: yaml.MappingNode}
	add := func(n *yaml.Node, key, value string) {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &yaml.Node{Kind: yaml.ScalarNode, Value: value})
	}
	add(&n, "objective", percent(slo.Objective))
	if slo.Availability != 0 {
		add(&n, "availability", percent(slo.Availability))
	}
	for _, c := range slo.Criteria {
		form := "true"
		if c.Limit > 0 {
			form = span(c.Limit)
		}
		add(&n, c.Name, form)
		if c.Objective == 0 {
			continue
		}
		long := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		if c.Limit > 0 {
			add(long, "limit", form)
		}
		add(long, "objective", percent(c.Objective))
		n.Content[len(n.Content)-1] = long
	}
	return n
}

// maskHTTP masks what the marshalling of prometheus/common leaves readable.
func maskHTTP(c promconfig.HTTPClientConfig) promconfig.HTTPClientConfig {
	c.ProxyConfig = maskProxy(&c.ProxyConfig)
	if c.OAuth2 != nil {
		o := *c.OAuth2
		o.ProxyConfig = maskProxy(&o.ProxyConfig)
		o.TokenURL = maskURL(o.TokenURL)
		o.EndpointParams = maps.Clone(o.EndpointParams)
		for name := range o.EndpointParams {
			o.EndpointParams[name] = masked
		}
		o.Claims = maskAll(o.Claims)
		c.OAuth2 = &o
	}
	if c.HTTPHeaders != nil {
		headers := maps.Clone(c.HTTPHeaders.Headers)
		for name, h := range headers {
			h.Values = slices.Repeat([]string{masked}, len(h.Values))
			headers[name] = h
		}
		c.HTTPHeaders = &promconfig.Headers{Headers: headers}
	}
	return c
}

func maskProxy(p *promconfig.ProxyConfig) promconfig.ProxyConfig {
	out := plainProxy(p)
	if p.ProxyURL.URL != nil {
		if u, err := url.Parse(maskURL(p.ProxyURL.String())); err == nil {
			out.ProxyURL = promconfig.URL{URL: u}
		}
	}
	return out
}

// maskURL keeps what tells where a URL leads: user, password and query values go.
func maskURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return maskedInURL
	}
	if u.User != nil {
		u.User = url.User(maskedInURL)
	}
	if u.RawQuery != "" {
		parameters := strings.Split(u.RawQuery, "&")
		for i, p := range parameters {
			if name, _, ok := strings.Cut(p, "="); ok {
				parameters[i] = name + "=" + maskedInURL
			} else {
				parameters[i] = maskedInURL
			}
		}
		u.RawQuery = strings.Join(parameters, "&")
	}
	if u.Fragment != "" {
		u.Fragment = maskedInURL
	}
	return u.String()
}

func maskAll(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for name := range out {
		out[name] = masked
	}
	return out
}

// maskBody masks the values of a request body whose names speak of secrets, at any depth.
func maskBody(body map[string]any) map[string]any {
	if body == nil {
		return nil
	}
	return maskValue(body).(map[string]any)
}

func maskValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			if out[name] = masked; !secretName(name) {
				out[name] = maskValue(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = maskValue(inner)
		}
		return out
	}
	return v
}
