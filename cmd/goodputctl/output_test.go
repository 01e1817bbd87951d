package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"goodput_exporter/probe/probetest"
)

var (
	known   = regexp.MustCompile(`known are .*`)
	figure  = regexp.MustCompile(`[0-9]+\.[0-9] ms`)
	hexID   = regexp.MustCompile(`[0-9a-f]{32}`)
	masked  = regexp.MustCompile(`(<|\\u003c)secret(>|\\u003e)`)
	padding = regexp.MustCompile(` {2,}`)
)

func caseByID(t *testing.T, id string) probetest.Case {
	t.Helper()
	cases, err := probetest.LoadCases(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("there is no case %s", id)
	return probetest.Case{}
}

func newPlayer(t *testing.T, c probetest.Case) *probetest.Player {
	t.Helper()
	p, err := probetest.NewPlayer(c, probetest.PlayerOptions{TLS: c.HTTP2()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// What a person reads. Figures are masked: the cases compare them.
func TestTextOutput(t *testing.T) {
	var all strings.Builder
	for _, id := range []string{"A17", "A15.1", "A20", "A21.2", "A25", "A28", "A32.1"} {
		c := caseByID(t, id)
		p := newPlayer(t, c)
		args := slices.DeleteFunc(probetest.Args(c, p.URL()), func(a string) bool { return a == "--output=json" })
		r := goodputctl(t, nil, append([]string{"probe"}, args...)...)
		text := hexID.ReplaceAllString(figure.ReplaceAllString(r.stdout, "0.0 ms"), "…")
		// The columns are as wide as the figures.
		text = padding.ReplaceAllStringFunc(text, func(string) string { return "  " })
		fmt.Fprintf(&all, "# %s %s: exit code %d\n%s%s\n", c.ID, c.Title, r.code, text, r.stderr)
	}
	golden(t, "text.golden", all.String())
}

// Whatever a server echoes, the credentials stand in no output.
func TestSecretsStayOut(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		headers := fmt.Sprint(r.Header)
		w.Header().Set("X-Request-Id", r.Header.Get("Authorization")+r.Header.Get("X-Tenant-Key"))
		if strings.Contains(string(body), `"stream":true`) {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", headers, headers)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "{\"error\":{\"message\":%q}}", headers)
	}))
	defer echo.Close()
	const secret = "s3cret-that-nobody-may-read"
	keyFile := writeFile(t, "key", []byte(secret+"\n"))
	for name, tc := range map[string]struct {
		env  []string
		args []string
	}{
		"key file":             {nil, []string{"--api-key-file=" + keyFile}},
		"environment":          {[]string{"LLM_API_KEY=" + secret}, nil},
		"authorization header": {nil, []string{"--header=Authorization: Bearer " + secret}},
		"another header":       {nil, []string{"--header=X-Tenant-Key: " + secret}},
	} {
		for _, output := range []string{"text", "json"} {
			for _, stream := range []string{"--stream", "--no-stream"} {
				t.Run(name+" "+output+stream, func(t *testing.T) {
					args := append([]string{"probe", "--url=" + echo.URL, "--model=m", "--output=" + output, stream}, tc.args...)
					r := goodputctl(t, tc.env, args...)
					if strings.Contains(r.stdout+r.stderr, secret) {
						t.Errorf("the secret stands in the output: %s%s", r.stdout, r.stderr)
					}
					if !masked.MatchString(r.stdout) { // or else it was never sent
						t.Errorf("nothing is masked in: %s%s", r.stdout, r.stderr)
					}
				})
			}
		}
	}
}
