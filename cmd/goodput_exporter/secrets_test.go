package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// secrets are the values that nobody may ever see, each of its own kind.
var secrets = map[string]string{
	"inline credentials":     "inline-credentials-6f1d",
	"credentials file":       "credentials-file-93ab",
	"credentials reference":  "credentials-ref-51c0",
	"bearer token":           "bearer-token-77e2",
	"bearer token file":      "bearer-token-file-08d4",
	"password":               "basic-password-2b9c",
	"password file":          "basic-password-file-e15f",
	"header secret":          "header-secret-c0b3",
	"header file":            "header-file-19fe",
	"proxy password":         "proxy-password-d83a",
	"proxy header":           "proxy-header-40e6",
	"client secret":          "client-secret-b727",
	"query value":            "query-value-5c91",
	"value of the body":      "body-value-e3a8",
	"value of a broken file": "broken-file-7d02",
}

// echo is an endpoint, a proxy and a token endpoint that tell everybody what they were told, in every way there is.
func echo(w http.ResponseWriter, r *http.Request) {
	var told strings.Builder
	fmt.Fprintf(&told, "%s ", r.RequestURI)
	for name, values := range r.Header {
		for _, value := range values {
			fmt.Fprintf(&told, "%s: %s ", name, value)
			if encoded, ok := strings.CutPrefix(value, "Basic "); ok {
				plain, _ := base64.StdEncoding.DecodeString(encoded)
				fmt.Fprintf(&told, "%s ", plain)
			}
		}
	}
	if r.Method == http.MethodConnect || r.URL.Path == "/token" {
		_ = r.ParseForm()
		http.Error(w, told.String()+r.PostForm.Encode(), http.StatusForbidden)
		return
	}
	text := told.String()
	quoted, _ := json.Marshal(text)
	w.Header().Set("X-Request-Id", text)
	w.Header().Set("Retry-After", text)
	var ask struct{ Model string }
	_ = json.NewDecoder(r.Body).Decode(&ask)
	event := func(choice string) { fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,%s}]}\n\n", choice) }
	switch ask.Model {
	case "plain error":
		http.Error(w, text, http.StatusBadRequest)
	case "error object":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%s}}`, quoted)
	case "error type":
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"error":{"type":%s,"code":%s}}`, quoted, quoted)
	case "page":
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprintf(w, "<html><title>%s</title></html>", text)
	case "in band":
		w.Header().Set("Content-Type", "text/event-stream")
		event(`"delta":{"content":"x"}`)
		fmt.Fprintf(w, "data: {\"error\":{\"message\":%s}}\n\n", quoted)
	case "malformed":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\": %s\n\n", text)
	case "redirect":
		w.Header().Set("Location", "/elsewhere?told="+base64.URLEncoding.EncodeToString([]byte(text)))
		w.WriteHeader(http.StatusFound)
	default: // "text"
		w.Header().Set("Content-Type", "text/event-stream")
		event(`"delta":{"content":` + string(quoted) + `}`)
		event(`"delta":{},"finish_reason":` + string(quoted))
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// ways are the models of echo.
var ways = []string{"plain error", "error object", "error type", "page", "in band", "malformed", "redirect", "text"}

// secretsConfig is a configuration with every kind of secret, each of them told to echo in every way.
func secretsConfig(t *testing.T, url string) string {
	t.Helper()
	dir := t.TempDir()
	file := func(kind string) string {
		return write(t, filepath.Join(dir, strings.ReplaceAll(kind, " ", "_")), secrets[kind])
	}
	cert, key := newCertificate(t)
	proxy := strings.Replace(url, "http://", "http://prober:"+secrets["proxy password"]+"@", 1)
	var b strings.Builder
	b.WriteString(`
global: {interval: 1s, timeout: 900ms}
scenarios:
  chat: {prompt: "Why is the sky blue?", max_tokens: 64, slo: {objective: 95%, ttft: 800ms}}
targets:
`)
	target := func(name, model, url, rest string) {
		fmt.Fprintf(&b, "- {name: %q, url: %q, model: %q, scenarios: [chat]%s}\n", name, url, model, rest)
	}
	for i, http := range []string{
		fmt.Sprintf("authorization: {credentials: %s}", secrets["inline credentials"]),
		fmt.Sprintf("authorization: {type: Token, credentials_file: %s}", file("credentials file")),
		"authorization: {credentials_ref: GOODPUT_TEST_SECRET}",
		fmt.Sprintf("bearer_token: %s", secrets["bearer token"]),
		fmt.Sprintf("bearer_token_file: %s", file("bearer token file")),
		fmt.Sprintf("basic_auth: {username: anna, password: %s}", secrets["password"]),
		fmt.Sprintf("basic_auth: {username: anna, password_file: %s}", file("password file")),
		fmt.Sprintf("http_headers: {X-Team: {secrets: [%s]}, X-Room: {files: [%s]}}", secrets["header secret"], file("header file")),
		fmt.Sprintf("proxy_url: %q", proxy),
	} {
		for _, way := range ways {
			target(fmt.Sprintf("%d %s", i, way), way, url, ", http: {"+http+"}")
		}
	}
	target("connect", "m", "https://127.0.0.1:1", fmt.Sprintf(", http: {proxy_url: %q, proxy_connect_header: {X-Proxy: [%s]}}", proxy, secrets["proxy header"]))
	target("oauth2", "m", url, fmt.Sprintf(", http: {oauth2: {client_id: me, client_secret: %s, token_url: %q}}", secrets["client secret"], url+"/token"))
	target("query", "plain error", url+"/v1/chat/completions?api-key="+secrets["query value"], "")
	target("body", "plain error", url, fmt.Sprintf(", extra_body: {api_key: %s}", secrets["value of the body"]))
	target("tls", "plain error", url, fmt.Sprintf(", http: {tls_config: {cert: %q, key: %q}}", cert, key))
	return b.String()
}

func TestSecretsAppearNowhere(t *testing.T) {
	t.Setenv("GOODPUT_TEST_SECRET", secrets["credentials reference"])
	for _, format := range []string{"logfmt", "json"} {
		t.Run(format, func(t *testing.T) {
			endpoint := httptest.NewServer(http.HandlerFunc(echo))
			defer endpoint.Close()
			file := configure(t, secretsConfig(t, endpoint.URL))
			keyLine := tlsKeyLine(t, file)
			web := configure(t, "basic_auth_users: {prometheus: "+webHash+"}\n")
			d := launch(t, "--config.file="+file, "--web.config.file="+web, "--log.level=debug", "--log.format="+format)
			authorization := []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("prometheus:"+webPassword))}
			seen := func(path string) string {
				t.Helper()
				p := get(t, d.url+path, authorization...)
				if p.status != http.StatusOK {
					t.Fatalf("%s: status %d", path, p.status)
				}
				return p.body
			}
			eventually(t, "every target was probed", func() bool {
				return get(t, d.url+"/-/ready", authorization...).status == http.StatusOK
			})
			eventually(t, "every probe has ended", func() bool {
				return strings.Count(d.logs.String(), `"probe"`)+strings.Count(d.logs.String(), `msg=probe `) >= 9*len(ways)+5
			})

			shown := map[string]string{
				"a broken file that repeats a secret": breakConfiguration(t, d, file, authorization),
				"OpenMetrics":                         get(t, d.url+"/metrics", append(authorization, "Accept", "application/openmetrics-text;version=1.0.0")...).body,
			}
			for _, path := range []string{
				"/", "/config", "/metrics", "/api/v1/status?probes=10", "/api/v1/results?limit=1000", "/api/v1/silences", "/-/healthy", "/-/ready", "/debug/pprof/", "/debug/pprof/cmdline",
				"/debug/pprof/goroutine?debug=1", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs?debug=1",
				"/debug/pprof/block?debug=1", "/debug/pprof/mutex?debug=1", "/debug/pprof/threadcreate?debug=1",
			} {
				shown[path] = seen(path)
			}
			series := map[string]bool{}
			for _, st := range stories(t, d.url, "", authorization...) {
				path := "/probes/" + st.ID
				shown[path] = get(t, d.url+path, authorization...).body // it may be forgotten by now
				query := url.Values{"target": {st.Result.Target}, "scenario": {st.Result.Scenario}}.Encode()
				if series[query] {
					continue
				}
				series[query] = true
				for _, path := range []string{"/series?" + query, "/rows?" + url.Values{"key": {st.Key}}.Encode()} {
					shown[path] = seen(path)
				}
			}
			shown["the events"] = events(t, d.url, 9*len(ways), authorization...)
			for query := range series {
				p := request(t, http.MethodPost, d.url+"/probe?"+query, authorization...)
				if p.status != http.StatusOK {
					t.Errorf("a probe on demand: status %d: %s", p.status, p.body)
				}
				shown["a probe on demand"] = p.body
				break // the next would be too many
			}
			d.stop(t)
			shown["the log"] = d.logs.String()

			for where, text := range shown {
				for kind, secret := range secrets {
					lookFor(t, where, text, kind, secret)
				}
				lookFor(t, where, text, "TLS key", keyLine)
				lookFor(t, where, text, "web password", webPassword)
				lookFor(t, where, text, "web hash", webHash)
			}
			for _, scrubbed := range []string{"<secret>", "outcome"} {
				if !strings.Contains(shown["the log"], scrubbed) && !strings.Contains(shown["the log"], strings.ReplaceAll(scrubbed, "<", `\u003c`)) {
					t.Errorf("no %s in the log: this test has not shown what it should", scrubbed)
				}
			}
		})
	}
}

// TestWhatServersSendUnaskedIsNotPrinted is about what net/http prints by itself.
func TestWhatServersSendUnaskedIsNotPrinted(t *testing.T) {
	t.Parallel()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\nUnasked: %s", r.Header.Get("Authorization"))
	}))
	defer endpoint.Close()
	p := spawn(t, "--config.file="+configure(t, strings.Replace(oneTarget(endpoint.URL),
		"model: m,", "model: m, http: {authorization: {credentials: "+secrets["inline credentials"]+"}},", 1)))
	eventually(t, "two probes", func() bool {
		return scrape(t, p.url).of(t, "goodput_probes_total", "outcome", "server_error") >= 2
	})
	p.signal(t, syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if said := p.logs.String(); strings.Contains(said, "Unsolicited") || strings.Contains(said, secrets["inline credentials"]) {
		t.Errorf("the daemon said:\n%s", said)
	}
}

// lookFor looks for a secret as it is, in small letters, and as basic authentication encodes it.
func lookFor(t *testing.T, where, text, kind, secret string) {
	t.Helper()
	at := strings.Index(strings.ToLower(text), strings.ToLower(secret))
	if at < 0 {
		at = strings.Index(text, base64.StdEncoding.EncodeToString([]byte("anna:"+secret)))
	}
	if at < 0 {
		at = strings.Index(text, base64.StdEncoding.EncodeToString([]byte("prober:"+secret)))
	}
	if at >= 0 {
		t.Errorf("%s shows the %s: …%.250s…", where, kind, text[max(0, at-200):])
	}
}

// tlsKeyLine returns a line from within the TLS key of a configuration.
func tlsKeyLine(t *testing.T, file string) string {
	t.Helper()
	_, key, ok := strings.Cut(readFile(t, file), `-----BEGIN PRIVATE KEY-----\n`)
	line, _, end := strings.Cut(key, `\n`)
	if !ok || !end || len(line) < 60 {
		t.Fatalf("no key in %s", file)
	}
	return line
}

// breakConfiguration reloads files that are wrong on the very line of a secret, and returns what the daemon says.
func breakConfiguration(t *testing.T, d *running, file string, authorization []string) string {
	t.Helper()
	var said strings.Builder
	secret := secrets["value of a broken file"]
	for _, broken := range []string{
		"targets: [{name: a, url: http://127.0.0.1, model: m, http: {authorization: {credentials: %s",
		"targets:\n- name: a\n  url: http://127.0.0.1\n  model: m\n  http: {authorization: {credentials: [%s]}}\n",
		"targets:\n- name: a\n  url: http://127.0.0.1\n  model: m\n  http: {authorization: %s}\n",
		"targets:\n- name: a\n  url: http://127.0.0.1\n  model: m\n  http: {basic_auth: {password: x: %s}}\n",
		"targets:\n- name: a\n  url: http://127.0.0.1\n  model: m\n  http: {bearer_token: \"%s\n",
		"targets:\n- name: a\n  url: http://127.0.0.1\n  model: m\n  http: {http_headers: {X-A: {secrets: %s}}}\n",
		"targets:\n- name: a\n  url: http://127.0.0.1\n  model: m\n  http: {proxy_url: 'http://a:%s@[::1'}\n",
		"targets:\n- name: a\n  url: http://a:%s@127.0.0.1\n  model: m\n",
		"targets:\n- name: a\n  url: 'http://127.0.0.1/%%zz?key=%s'\n  model: m\n",
		"targets:\n- name: a\n  url: http://127.0.0.1\n  model: m\n  http: {tls_config: {cert: '%[1]s', key: '%[1]s'}}\n",
		"targets:\n- name: a\n  url: http://127.0.0.1\n  model: m\n  http: {authorization: {type: Basic, credentials: %s}}\n",
		"targets:\n- name: a\n  url: http://127.0.0.1\n  model: m\n  http: {bearer_token: %[1]s, basic_auth: {password: %[1]s}}\n",
	} {
		write(t, file, fmt.Sprintf(broken, secret))
		p := request(t, http.MethodPost, d.url+"/-/reload", authorization...)
		if p.status != http.StatusInternalServerError {
			t.Errorf("status %d after a reload of:\n%s", p.status, broken)
		}
		said.WriteString(p.body)
	}
	return said.String()
}
