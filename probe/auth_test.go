package probe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/wire"
)

// keyHeaders are those in which protocols want a key.
var keyHeaders = map[string]string{"anthropic-messages": "X-Api-Key", "azure-openai": "Api-Key", "gemini": "X-Goog-Api-Key"}

// credentialHeaders returns what of a request is credentials.
func credentialHeaders(h http.Header) map[string]string {
	got := map[string]string{}
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if v := h.Values(name); len(v) > 0 {
			got[name] = strings.Join(v, ", ")
		}
	}
	return got
}

// recorder is an endpoint that refuses every request and keeps the headers of the last one.
func recorder(t *testing.T) (url string, last func() http.Header) {
	t.Helper()
	seen := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":%q}}`, fmt.Sprint(r.Header))
	}))
	t.Cleanup(server.Close)
	return server.URL, func() http.Header { return <-seen }
}

// A key goes where its protocol wants it, wherever it comes from, and into no result.
func TestCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOODPUT_TEST_KEY", secret)
	kinds := map[string]promconfig.Authorization{
		"inline":      {Type: "Bearer", Credentials: secret},
		"file":        {Type: "Bearer", CredentialsFile: file},
		"environment": {Type: "Bearer", CredentialsRef: "GOODPUT_TEST_KEY"},
	}
	for _, protocol := range wire.Names() {
		for kind, authorization := range kinds {
			for _, bearer := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, bearer %v", protocol, kind, bearer), func(t *testing.T) {
					u, last := recorder(t)
					s := config.NewSeries(u, "m")
					s.Target.Protocol, s.Target.Bearer, s.Target.HTTP.Authorization = protocol, bearer, &authorization
					r := newProber(t, s).Probe(context.Background())
					want := map[string]string{"Authorization": "Bearer " + secret}
					if header, ok := keyHeaders[protocol]; ok && !bearer {
						want = map[string]string{header: secret}
					}
					if diff := cmp.Diff(want, credentialHeaders(last())); diff != "" {
						t.Error(diff)
					}
					if r.Outcome != probe.ClientError || r.Reason != probe.ReasonAuth || strings.Contains(toJSON(t, r), secret) {
						t.Errorf("got %s", toJSON(t, r))
					}
				})
			}
		}
	}
}

// A key file is read anew for each request.
func TestKeyFileIsReadAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	u, last := recorder(t)
	s := config.NewSeries(u, "m")
	s.Target.Protocol = "anthropic-messages"
	s.Target.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: file}
	p := newProber(t, s)
	for _, key := range []string{"the-first-key", "the-second-key"} {
		if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		p.Probe(context.Background())
		if got := last().Get("X-Api-Key"); got != key {
			t.Errorf("got %q, want %q", got, key)
		}
	}
}

// Without credentials of the configuration, a request to Bedrock is signed by those of AWS' default chain, or carries
// the bearer key that is set. None of it is told.
func TestBedrockCredentials(t *testing.T) {
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
	t.Setenv("AWS_SESSION_TOKEN", secret+"-session")
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	u, last := recorder(t)
	probed := func(protocol, url string) (*probe.Result, http.Header) {
		s := config.NewSeries(url, "anthropic.claude-x:0")
		s.Target.Protocol = protocol
		return newProber(t, s).Probe(context.Background()), last()
	}
	for protocol, url := range map[string]string{"bedrock-converse": u, "anthropic-messages": u + "/model/m"} {
		r, h := probed(protocol, url)
		authorization := h.Get("Authorization")
		scope := "Credential=AKIDEXAMPLE/" + time.Now().UTC().Format("20060102") + "/eu-west-1/bedrock/aws4_request"
		if !strings.HasPrefix(authorization, "AWS4-HMAC-SHA256 ") || !strings.Contains(authorization, scope) {
			t.Errorf("%s: Authorization: %s; want %s", protocol, authorization, scope)
		}
		for _, header := range []string{"content-length", "content-type", "host", "x-amz-date", "x-amz-security-token"} {
			if _, signed, _ := strings.Cut(authorization, "SignedHeaders="); !strings.Contains(signed, header) {
				t.Errorf("%s: %s is not signed: %s", protocol, header, authorization)
			}
		}
		_, signature, _ := strings.Cut(authorization, "Signature=")
		for _, told := range []string{secret, signature} {
			if told == "" || strings.Contains(toJSON(t, r), told) {
				t.Errorf("%s: %q is in %s", protocol, told, toJSON(t, r))
			}
		}
	}
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", secret)
	r, h := probed("bedrock-converse", u)
	if diff := cmp.Diff(map[string]string{"Authorization": "Bearer " + secret}, credentialHeaders(h)); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(toJSON(t, r), secret) {
		t.Errorf("the bearer key is in %s", toJSON(t, r))
	}
}

// A signature that fails because a clock is off is told as that.
func TestClockOff(t *testing.T) {
	for name, tc := range map[string]struct {
		off  time.Duration
		told string
	}{
		"ten minutes ahead":  {-10 * time.Minute, "off the server's by 10m"},
		"ten minutes behind": {10 * time.Minute, "off the server's by -"},
		"in time":            {0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := config.NewSeries("", "m")
			s.Target.Protocol = "bedrock-converse"
			s.Target.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", Credentials: secret}
			date := time.Now().Add(tc.off).UTC().Format(http.TimeFormat)
			s.Target.URL = status(http.StatusForbidden, `{"message":"Signature expired"}`, "Date", date)(t, s)
			r := newProber(t, s).Probe(context.Background())
			if r.Outcome != probe.ClientError || r.Reason != probe.ReasonAuth {
				t.Errorf("got %s, %s", r.Outcome, r.Reason)
			}
			if got := strings.Contains(r.Error, "the clock here is off"); got != (tc.told != "") || !strings.Contains(r.Error, tc.told) {
				t.Errorf("got %q, want %q in it", r.Error, tc.told)
			}
		})
	}
}
