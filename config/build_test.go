package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"
)

func TestFromEnv(t *testing.T) {
	tests := []struct {
		name       string
		env        map[string]string
		ok         bool
		err        string
		target     string
		credential string
	}{
		{name: "nothing set", env: map[string]string{"LLM_MODEL": "m"}},
		{
			name: "all set", env: map[string]string{"LLM_URL": "https://llm.example.net:8443/v1/chat/completions", "LLM_MODEL": "m", "LLM_API_KEY": "sk-1\n"},
			ok: true, target: "llm.example.net", credential: "sk-1",
		},
		{name: "without a key", env: map[string]string{"LLM_URL": "http://localhost:8000", "LLM_MODEL": "m"}, ok: true, target: "localhost"},
		{
			name: "without a model", env: map[string]string{"LLM_URL": "http://a"},
			err: "LLM_MODEL: missing: give the name of the model as the endpoint knows it",
		},
		{
			name: "without a scheme", env: map[string]string{"LLM_URL": "llm.example.net/v1", "LLM_MODEL": "m"},
			err: "LLM_URL: must begin with http:// or https://",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, ok, err := FromEnv(func(name string) string { return tt.env[name] })
			if got := errorText(err); ok != tt.ok || got != tt.err {
				t.Fatalf("FromEnv = %t, %q; want %t, %q", ok, got, tt.ok, tt.err)
			}
			if !ok {
				return
			}
			target := cfg.Targets[0]
			if target.Name != tt.target || len(cfg.Series) != 1 || cfg.Series[0].Key() != tt.target+"/chat" {
				t.Errorf("target %q, series %v", target.Name, cfg.Series)
			}
			credential := ""
			if a := target.HTTP.Authorization; a != nil {
				credential = a.Type + " " + string(a.Credentials)
			}
			if want := strings.TrimSpace("Bearer " + tt.credential); tt.credential != "" && credential != want {
				t.Errorf("authorization = %q, want %q", credential, want)
			}
			if len(cfg.Warnings) > 0 {
				t.Errorf("warnings = %q", cfg.Warnings)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNewFillsDefaultsAndValidates(t *testing.T) {
	s := &Series{
		Target:   &Target{Name: "a", URL: "http://a", Model: "m"},
		Scenario: &Scenario{Name: "probe", Prompts: []Prompt{{Text: "x", Weight: 1}}, Timeout: 5 * time.Second},
	}
	cfg, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	got := cfg.Series[0]
	if got.Target.Protocol != DefaultProtocol || got.Target.Connection != ConnectionKeep || got.Target.MaxTokensField != DefaultMaxTokensField ||
		got.Scenario.Interval != DefaultInterval || got.Scenario.FirstTokenTimeout != 5*time.Second || got.Scenario.IdleTimeout != 5*time.Second {
		t.Errorf("target %+v, scenario %+v", got.Target, got.Scenario)
	}

	s = NewSeries("http://a", "m")
	s.Scenario.Timeout = -time.Second
	s.Scenario.SLO = SLO{Objective: 1, Criteria: []Criterion{{Name: CriterionTTFT}, {Name: "speed"}}}
	s.Target.HTTP.Authorization = &promconfig.Authorization{CredentialsFile: "no-such-file"}
	_, err = New(s)
	want := `http.authorization.credentials_file: cannot read no-such-file: no such file or directory; it must be a file that the user of this process may read
timeout: must be more than 0
first_token_timeout: 20s does not fit into the timeout of -1s for the whole probe: shorten it or lengthen timeout
idle_timeout: 10s does not fit into the timeout of -1s for the whole probe: shorten it or lengthen timeout
slo.objective: must be more than 0 % and less than 100 %, such as 99%: an objective of 100 % leaves no error budget
slo.ttft.limit: missing: give a duration such as 800ms
slo.speed: unknown criterion, or given twice; known are ttft, first_answer, tpot, stall, e2e, complete`
	if diff := cmp.Diff(want, errorText(err)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestNewOfSeveralSeries(t *testing.T) {
	chat, other := NewSeries("http://a", "m"), NewSeries("http://a", "n")
	_, err := New(chat, other)
	if want := `a/chat.name: duplicate target "a"; names must be unique`; errorText(err) != want {
		t.Errorf("New = %v, want %s", err, want)
	}
	second := *chat.Scenario
	second.Name, second.Prompts = "second", nil
	_, err = New(chat, &Series{chat.Target, &second})
	if want := `a/second.prompt: nothing to ask: give prompt (a text), prompts_file (JSON lines), or synthetic (lengths in tokens)`; errorText(err) != want {
		t.Errorf("New = %v, want %s", err, want)
	}
	if _, err = New(); errorText(err) != "no targets: there is nothing to probe" {
		t.Errorf("New of nothing = %v", err)
	}
}
