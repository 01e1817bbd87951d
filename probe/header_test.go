package probe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

func TestHeadersOfAResponseThatIsNotGood(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("A-Markup", "<script>")
		h.Set("Set-Cookie", "session=abc")
		h.Set("Echo", "got "+r.Header.Get("Authorization"))
		h.Set("Long", strings.Repeat("x", 5000))
		for i := range 40 {
			h.Add("X-Many", fmt.Sprint(i))
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	s := config.NewSeries(server.URL, "m")
	credentials(secret)(s)
	r := newProber(t, s).Probe(context.Background())

	kept := 0
	for _, values := range r.Header {
		kept += len(values)
	}
	if kept != 32 {
		t.Errorf("%d values are kept, want 32", kept)
	}
	if got := r.Header.Get("Long"); len(got) > 260 || !strings.HasSuffix(got, "x…") {
		t.Errorf("a long value is %q", got)
	}
	if got := r.Header.Get("A-Markup"); got != "<script>" {
		t.Errorf("a value became %q", got)
	}
	if all := fmt.Sprint(r.Header); strings.Contains(all, secret) || strings.Contains(all, "abc") || r.Header.Get("Set-Cookie") == "" {
		t.Errorf("secrets in %s", all)
	}
}

func TestNoHeadersOfAGoodResponse(t *testing.T) {
	s := config.NewSeries("", "m")
	s.Target.URL = stream(answer...)(t, s)
	if r := newProber(t, s).Probe(context.Background()); r.Outcome != probe.Good || r.Header != nil {
		t.Errorf("%s with %v", r.Outcome, r.Header)
	}
}
