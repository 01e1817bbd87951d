package config

import (
	"bytes"
	"flag"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"
)

var update = flag.Bool("update", false, "write golden files")

func TestMaskedExample(t *testing.T) {
	cfg, err := Load("testdata/example.yml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := cfg.Masked()
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "masked.golden.yml")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("masked configuration (-want +got):\n%s", diff)
	}
}

func TestMaskedHoldsNoSecret(t *testing.T) {
	for name, target := range map[string]string{
		"bearer token":        "http: {bearer_token: hunter2}",
		"credentials":         "http: {authorization: {credentials: hunter2}}",
		"password":            "http: {basic_auth: {username: me, password: hunter2}}",
		"OAuth2":              "http: {oauth2: {client_id: a, client_secret: hunter2, token_url: 'http://me:hunter2@id/?k=hunter2', endpoint_params: {k: hunter2}, claims: {k: hunter2}, proxy_url: 'http://hunter2@proxy'}}",
		"header value":        "http: {http_headers: {X-Key: {values: [hunter2], secrets: [hunter2]}}}",
		"proxy":               "http: {proxy_url: 'http://me:hunter2@proxy', proxy_connect_header: {X-Key: [hunter2]}}",
		"proxy user":          "http: {proxy_url: 'http://hunter2@proxy/?k=hunter2'}",
		"key in the body":     "extra_body: {api_key: hunter2, deep: [{access_token: hunter2}]}",
		"query and fragment":  "labels: {a: b}",
		"everything together": "http: {basic_auth: {username: me, password: hunter2}, http_headers: {X-Key: {values: [hunter2]}}, proxy_url: 'http://a:hunter2@proxy'}",
	} {
		t.Run(name, func(t *testing.T) {
			write(t, nil)
			cfg := load(t, strings.Replace(valid, "net/v1", "net/v1?api-version=1&key=hunter2&hunter2#hunter2", 1)+"    "+target+"\n")
			got, err := cfg.Masked()
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(got, []byte("hunter2")) {
				t.Errorf("a secret is in\n%s", got)
			}
			if warnings := strings.Join(cfg.Warnings, "\n"); strings.Contains(warnings, "hunter2") {
				t.Errorf("a secret is in %s", warnings)
			}
			again, err := load(t, string(mustRead(t, "c.yml"))).Masked()
			if err != nil || !bytes.Equal(got, again) {
				t.Errorf("the order is not stable (%v)", err)
			}
		})
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSeriesEqual(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Series)
		equal  bool
	}{
		{"nothing changed", func(*Series) {}, true},
		{"expression compiled anew", func(s *Series) { s.Scenario.Prompts[0].Expect = regexp.MustCompile("x") }, true},
		{"proxy in use", func(s *Series) {
			proxy := s.Target.HTTP.Proxy()
			_, _ = proxy(&http.Request{URL: &url.URL{Scheme: "http", Host: "a"}})
		}, true},
		{"another expression", func(s *Series) { s.Scenario.Prompts[0].Expect = regexp.MustCompile("y") }, false},
		{"another prompt", func(s *Series) { s.Scenario.Prompts[0].Text = "other" }, false},
		{"one prompt more", func(s *Series) { s.Scenario.Prompts = append(s.Scenario.Prompts, Prompt{Text: "x", Weight: 1}) }, false},
		{"another label", func(s *Series) { s.Target.Labels["env"] = "test" }, false},
		{"another credential", func(s *Series) { s.Target.HTTP.Authorization.Credentials = "other" }, false},
		{"another limit", func(s *Series) { s.Scenario.SLO.Criteria[0].Limit++ }, false},
		{"another interval", func(s *Series) { s.Scenario.Interval++ }, false},
		{"another budget", func(s *Series) { s.Target.Budget.RequestsPerDay++ }, false},
		{"another deep value of the body", func(s *Series) { s.Target.ExtraBody["a"].(map[string]any)["b"] = 2 }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			series := func() *Series {
				s := NewSeries("http://a", "m")
				s.Scenario.Prompts[0].Expect = regexp.MustCompile("x")
				s.Target.Labels = map[string]string{"env": "prod"}
				s.Target.ExtraBody = map[string]any{"a": map[string]any{"b": 1}}
				s.Target.HTTP.Authorization = &promconfig.Authorization{Credentials: "key"}
				s.Target.HTTP.ProxyFromEnvironment = true
				return s
			}
			changed := series()
			tt.change(changed)
			if got := series().Equal(changed); got != tt.equal {
				t.Errorf("Equal = %t, want %t", got, tt.equal)
			}
		})
	}
}
