package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"
)

func load(t *testing.T, yaml string) *Config {
	t.Helper()
	if err := os.WriteFile("c.yml", []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load("c.yml")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestExampleLoadsWithoutWarnings(t *testing.T) {
	cfg, err := Load("testdata/example.yml")
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Warnings) > 0 {
		t.Errorf("warnings:\n%s", strings.Join(cfg.Warnings, "\n"))
	}
	var keys []string
	for _, s := range cfg.Series {
		keys = append(keys, s.Key())
	}
	if diff := cmp.Diff([]string{"chat-eu/chat", "chat-eu/summarize", "completions-us/chat"}, keys); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"env", "region"}, cfg.LabelNames); diff != "" {
		t.Errorf("label names (-want +got):\n%s", diff)
	}
	chat := cfg.Series[0].Scenario
	want := SLO{Objective: 0.99, Availability: 0.98, Criteria: []Criterion{
		{CriterionTTFT, 800 * time.Millisecond, 0.95},
		{CriterionTPOT, 50 * time.Millisecond, 0},
		{CriterionE2E, 8 * time.Second, 0},
		{CriterionComplete, 0, 0},
	}}
	if diff := cmp.Diff(want, chat.SLO); diff != "" {
		t.Errorf("SLO (-want +got):\n%s", diff)
	}
	if len(chat.Prompts) != 3 || chat.Prompts[0].Weight != 2 || chat.Prompts[1].Expect == nil || len(chat.Prompts[2].Messages) != 2 {
		t.Errorf("prompts = %+v", chat.Prompts)
	}
	secret, err := filepath.Abs("testdata/secrets/llm")
	if err != nil {
		t.Fatal(err)
	}
	if got := absolute(cfg.Targets[0].HTTP.Authorization.CredentialsFile); got != secret {
		t.Errorf("credentials_file = %s, want %s", got, secret)
	}
}

func TestLaterLevelsOverride(t *testing.T) {
	write(t, map[string]string{
		"c.jsonl": `{"prompt": "from a file"}`, "t/d.jsonl": `{"prompt": "beside the target file"}`,
		"t/a.yml": "- {name: f, url: 'http://f', model: m, scenarios: [{name: full, prompts_file: d.jsonl}]}\n",
	})
	cfg := load(t, `
global: {interval: 10s, timeout: 10s, jitter: 1s, objective: 0.9}
scenarios:
  full:
    interval: 20s
    timeout: 8s
    prompts_file: c.jsonl
    max_tokens: 100
    extra_body: {a: 1, b: 1}
    expect: hello
    slo: {ttft: {limit: 1s, objective: 95%}, e2e: 5s}
  bare: {prompt: x, cache: keep, stream: false, require_text: true, accept_not_streamed: true}
target_files: [t/*.yml]
targets:
  - {name: a, url: 'http://a', model: m, interval: 30s, scenarios: [full, bare]}
  - name: b
    url: http://b
    model: m
    interval: 30s
    scenarios:
      - {name: full, interval: 40s, output_tokens: 50, extra_body: {b: 2}, slo: {objective: 99%, ttft: 2s}}
`)

	type row struct {
		Key                              string
		Interval, Jitter, Timeout, First time.Duration
		Max, Pinned                      int
		Objective                        float64
		Criteria                         []Criterion
		Prompt                           string
	}
	var got []row
	for _, s := range cfg.Series {
		sc := s.Scenario
		got = append(got, row{
			s.Key(), sc.Interval, sc.Jitter, sc.Timeout, sc.FirstTokenTimeout, sc.MaxTokens, sc.OutputTokens,
			sc.SLO.Objective, sc.SLO.Criteria, sc.Prompts[0].Text,
		})
	}
	sec := time.Second
	full := []Criterion{{CriterionTTFT, sec, 0.95}, {CriterionE2E, 5 * sec, 0}, {CriterionComplete, 0, 0}}
	want := []row{
		{"a/full", 30 * sec, sec, 8 * sec, 8 * sec, 100, 0, 0.9, full, "from a file"},
		{"a/bare", 30 * sec, sec, 10 * sec, 10 * sec, 0, 0, 0, nil, "x"},
		{"b/full", 40 * sec, sec, 8 * sec, 8 * sec, 0, 50, 0.99, []Criterion{{CriterionTTFT, 2 * sec, 0.95}, {CriterionE2E, 5 * sec, 0}}, "from a file"},
		{"f/full", 20 * sec, sec, 8 * sec, 8 * sec, 100, 0, 0.9, full, "beside the target file"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"a": 1, "b": 2}, cfg.Series[2].Scenario.ExtraBody); diff != "" {
		t.Errorf("extra_body (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"a": 1, "b": 1}, cfg.Series[0].Scenario.ExtraBody); diff != "" {
		t.Errorf("extra_body of another series (-want +got):\n%s", diff)
	}
	bare := cfg.Series[1].Scenario
	if bare.Stream || !bare.KeepCache || !bare.RequireText || !bare.AcceptNotStreamed {
		t.Errorf("bare = %+v", bare)
	}
	if got := cfg.Series[0].Scenario.Prompts[0].Expect.String(); got != "hello" {
		t.Errorf("expect = %q", got)
	}
	if len(cfg.TargetGlobs) != 1 || !filepath.IsAbs(cfg.TargetGlobs[0]) {
		t.Errorf("TargetGlobs = %q", cfg.TargetGlobs)
	}
	var files []string
	for _, f := range cfg.Files {
		files = append(files, filepath.Base(f))
	}
	if diff := cmp.Diff([]string{"c.yml", "c.jsonl", "a.yml", "d.jsonl"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestCompleteCriterion(t *testing.T) {
	tests := []struct {
		name, scenario string
		want           []Criterion
	}{
		{"on with an SLO", "slo: {objective: 90%}", []Criterion{{CriterionComplete, 0, 0}}},
		{"off with a pinned length", "output_tokens: 10, slo: {objective: 90%}", nil},
		{"on by request with a pinned length", "output_tokens: 10, slo: {objective: 90%, complete: true}", []Criterion{{CriterionComplete, 0, 0}}},
		{"off by request", "slo: {objective: 90%, complete: false}", nil},
		{"with an objective of its own", "slo: {objective: 90%, complete: {objective: 80%}}", []Criterion{{CriterionComplete, 0, 0.8}}},
		{"absent without an SLO", "max_tokens: 5", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, nil)
			cfg := load(t, "scenarios: {s: {prompt: x, "+tt.scenario+"}}\ntargets: [{name: a, url: 'http://a', model: m, scenarios: [s]}]\n")
			if diff := cmp.Diff(tt.want, cfg.Series[0].Scenario.SLO.Criteria); diff != "" {
				t.Errorf("criteria (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHTTPDefaultsAreOurs(t *testing.T) {
	tests := []struct {
		name, http       string
		http2, redirects bool
	}{
		{"without settings", "", false, false},
		{"with other settings", "http: {authorization: {credentials: x}}", false, false},
		{"by request", "http: {enable_http2: true, follow_redirects: true}", true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, nil)
			cfg := load(t, valid+"    "+tt.http+"\n")
			got := cfg.Targets[0].HTTP
			if got.EnableHTTP2 != tt.http2 || got.FollowRedirects != tt.redirects {
				t.Errorf("enable_http2 = %t, follow_redirects = %t", got.EnableHTTP2, got.FollowRedirects)
			}
		})
	}
}

func TestHTTPSettingsAreThoseOfPrometheus(t *testing.T) {
	write(t, map[string]string{"id": "x", "token": "x"})
	t.Setenv("EXAMPLE_SECRET", "s3cret")
	cfg := load(t, valid+`    http:
      oauth2:
        client_id: a
        client_secret_ref: EXAMPLE_SECRET
        token_url: https://id.example.net/token
        endpoint_params: {audience: llm}
      tls_config: {server_name: llm, min_version: TLS12}
      proxy_url: http://proxy:3128
      proxy_connect_header: {X-A: [b]}
      http_headers: {X-Team: {values: [a], files: [token]}}
`)
	got := cfg.Targets[0].HTTP
	if got.OAuth2.ClientID != "a" || got.OAuth2.EndpointParams["audience"] != "llm" || got.TLSConfig.MinVersion != promconfig.TLSVersions["TLS12"] ||
		got.ProxyURL.Host != "proxy:3128" || len(got.ProxyConnectHeader["X-A"]) != 1 || got.HTTPHeaders.Headers["X-Team"].Files[0] != "token" {
		t.Errorf("HTTP settings = %+v", got)
	}
	if _, err := promconfig.NewClientFromConfig(got, "test", promconfig.WithSecretManager(SecretManager)); err != nil {
		t.Errorf("no client can be built: %v", err)
	}
	if secret, err := SecretManager.Fetch(t.Context(), "EXAMPLE_SECRET"); err != nil || secret != "s3cret" {
		t.Errorf("Fetch = %q, %v", secret, err)
	}
}

func TestAnchorsAndMerges(t *testing.T) {
	write(t, nil)
	cfg := load(t, `
targets:
  - &base
    name: a
    url: http://a
    model: m
    labels: &labels {env: prod}
  - <<: *base
    name: b
    labels: {<<: *labels, region: eu}
`)
	b := cfg.Targets[1]
	if b.Name != "b" || b.URL != "http://a" {
		t.Errorf("target = %+v", b)
	}
	if diff := cmp.Diff(map[string]string{"env": "prod", "region": "eu"}, b.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestBuiltinScenarioNeedsNoFile(t *testing.T) {
	write(t, nil)
	cfg := load(t, "global: {interval: 20s, timeout: 15s}\ntargets: [{name: a, url: 'http://a', model: m}]\n")
	s := cfg.Series[0].Scenario
	if s.Name != "chat" || len(s.Prompts) < 3 || !s.Stream || s.Interval != 20*time.Second || s.SLO.Objective != 0.95 {
		t.Errorf("scenario = %+v", s)
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		name     string
		old, new string
		want     []string
	}{
		{"objective beyond the rate of probing", "95%", "99.9%", []string{
			"c.yml:6: scenarios.chat.slo.objective: 99.9% cannot be judged at one probe in 30s: it allows 0.12 bad of the 120 in an hour; use an objective of at most 99.16%, or an interval of at most 3.6s",
		}},
		{"criterion's objective beyond the rate of probing", "ttft: 800ms", "ttft: {limit: 800ms, objective: 99.5%}", []string{
			"c.yml:6: scenarios.chat.slo.ttft.objective: 99.5% cannot be judged at one probe in 30s: it allows 0.6 bad of the 120 in an hour; use an objective of at most 99.16%, or an interval of at most 18s",
		}},
		{"budget of requests below the schedule", "model: m", "model: m\n    budget: {requests_per_day: 1000}", []string{
			"c.yml:11: targets[0].budget.requests_per_day: the schedule needs 2880 requests a day, the budget ends after 1000: it suffices for an interval of 1m26.4s",
		}},
		{"budget of tokens below the schedule", "model: m", "model: m\n    budget: {output_tokens_per_day: 92160}", []string{
			"c.yml:11: targets[0].budget.output_tokens_per_day: answers may need up to 184320 output tokens a day, the budget ends after 92160: it suffices for an interval of 1m",
		}},
		{"sufficient budget", "model: m", "model: m\n    budget: {requests_per_day: 2880, output_tokens_per_day: 184320}", nil},
		{"timeout longer than the interval", "timeout: 20s", "timeout: 40s", []string{
			"c.yml:1: global.timeout: 40s is longer than the interval of 30s: while the endpoint hangs, slots that fall into a running probe are skipped (overlap)",
		}},
		{"the defaults", "global: {interval: 30s, timeout: 20s}", "global: {}", nil},
		{"limit longer than the interval", "{interval: 30s, timeout: 20s}\nscenarios:\n  chat:", "{}\nscenarios:\n  chat:\n    slo: {objective: 90%, e2e: 20s}\n    prompt: x\n  other:", []string{
			"c.yml:4: scenarios.chat.slo.e2e: an answer may take 20s and be good, but probes start every 15s: slots that fall into a running probe are skipped; use an interval of 20s or more",
			"c.yml:6: scenarios.other: no target uses this scenario",
		}},
		{"plaintext credentials", "model: m", "model: m\n    http: {authorization: {credentials: x}}", []string{
			"c.yml:11: targets[0].http.authorization.credentials: a secret in plain text: prefer a file or an environment variable (the keys that end in _file, files or _ref)",
		}},
		{"key in the URL", "net/v1", "net/v1?api-key=x", []string{
			"c.yml:9: targets[0].url: a secret in plain text, in its query: prefer http.authorization or http.http_headers with files",
		}},
		{"pattern that matches nothing", "targets:", "target_files: [more/*.yml]\ntargets:", []string{
			"c.yml:7: target_files[0]: no file matches more/*.yml",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, nil)
			cfg := load(t, strings.Replace(valid, tt.old, tt.new, 1))
			if diff := cmp.Diff(tt.want, cfg.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("testdata/example.yml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte(valid))
	f.Add([]byte("targets:\n- &a\n  <<: *a\n"))
	f.Add([]byte("scenarios: {'': }\ntargets: [~, {scenarios: [~, '', {name: ''}]}]\n"))
	f.Add([]byte("targets: &a [*a]\n"))
	file := filepath.Join(f.TempDir(), "c.yml")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := Load(file)
		if err != nil {
			return
		}
		if _, err := cfg.Masked(); err != nil {
			t.Errorf("Masked: %v", err)
		}
		for _, s := range cfg.Series {
			if !s.Equal(s) {
				t.Errorf("series %s does not equal itself", s.Key())
			}
		}
	})
}
