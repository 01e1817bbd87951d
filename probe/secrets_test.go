package probe_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	promconfig "github.com/prometheus/common/config"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

const secret = "s3cr3t-0f-thE-tests"

// echoes are the places where a server may repeat what it was sent.
var echoes = map[string]http.HandlerFunc{
	"error body": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": "bad credentials: " + sent(r)}})
	},
	"plain error, clipped in the secret": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		head, _, _ := strings.Cut(sent(r), secret)
		fmt.Fprint(w, strings.Repeat("x", 1000-len(head)-len(secret)/2), sent(r))
	},
	"page": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<html><title>%s</title>", sent(r))
	},
	"text": func(w http.ResponseWriter, r *http.Request) {
		for _, c := range sent(r) { // token by token
			event(w, map[string]any{"choices": []any{map[string]any{"delta": map[string]any{"content": string(c)}}}})
		}
		event(w, map[string]any{"choices": []any{map[string]any{"finish_reason": "stop"}}})
	},
	"finish reason": func(w http.ResponseWriter, r *http.Request) {
		event(w, map[string]any{"choices": []any{map[string]any{"delta": map[string]any{"content": "Hi"}, "finish_reason": sent(r)}}})
	},
	"in-band error": func(w http.ResponseWriter, r *http.Request) {
		event(w, map[string]any{"error": sent(r)})
	},
	"request id": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", sent(r))
		w.WriteHeader(http.StatusInternalServerError)
	},
	"protocol error": func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			fmt.Fprintf(conn, "%s\r\n\r\n", sent(r))
			conn.Close()
		}
	},
}

// sent is everything in a request's headers that could be a secret.
func sent(r *http.Request) string {
	_, password, _ := r.BasicAuth()
	return strings.Join([]string{r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.Header.Get("X-Tenant"), password}, " ")
}

func event(w http.ResponseWriter, v any) {
	b, _ := json.Marshal(v)
	fmt.Fprintf(w, "data: %s\n\n", b)
}

func TestSecretsAreNotRepeated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	header := func(name string, h promconfig.Header) option {
		return func(s *config.Series) {
			s.Target.HTTP.HTTPHeaders = &promconfig.Headers{Headers: map[string]promconfig.Header{name: h}}
		}
	}
	for name, configure := range map[string]option{
		"bearer": credentials(secret),
		"bearer from a file": func(s *config.Series) {
			s.Target.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: file}
		},
		"basic": func(s *config.Series) {
			s.Target.HTTP.BasicAuth = &promconfig.BasicAuth{Username: "me", Password: secret}
		},
		"x-api-key":               header("x-api-key", promconfig.Header{Values: []string{secret}}),
		"secret of any header":    header("X-Tenant", promconfig.Header{Secrets: []promconfig.Secret{secret}}),
		"file of any header":      header("x-tenant", promconfig.Header{Files: []string{file}}),
		"secret of several words": header("X-Tenant", promconfig.Header{Secrets: []promconfig.Secret{secret + " and more"}}),
	} {
		t.Run(name, func(t *testing.T) {
			for where, echo := range echoes {
				t.Run(where, func(t *testing.T) {
					t.Parallel()
					echoed := make(chan bool, 1)
					server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						echoed <- strings.Contains(sent(r), secret)
						echo(w, r)
					}))
					t.Cleanup(server.Close)
					s := config.NewSeries(server.URL, "m")
					configure(s)
					got := toJSON(t, newProber(t, s).Probe(context.Background()))
					if !<-echoed {
						t.Fatal("the secret was not sent")
					}
					for _, form := range []string{secret, secret[:10], base64.StdEncoding.EncodeToString([]byte("me:" + secret))} {
						if strings.Contains(got, form) {
							t.Errorf("%q is in %s", form, got)
						}
					}
				})
			}
		})
	}
}

// What is no secret stays.
func TestTextWithoutSecretsStays(t *testing.T) {
	s := config.NewSeries("", "m")
	s.Target.URL = stream(answer...)(t, s)
	s.Target.HTTP.HTTPHeaders = &promconfig.Headers{Headers: map[string]promconfig.Header{"X-Tenant": {Values: []string{"Hi"}}}}
	if r := newProber(t, s).Probe(context.Background()); r.Outcome != probe.Good || r.Text != "Hi" {
		t.Errorf("got %s, text %q; want a good answer, Hi", r.Outcome, r.Text)
	}
}
