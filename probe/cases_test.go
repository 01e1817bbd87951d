package probe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"
	"go.uber.org/goleak"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/probetest"
	"goodput_exporter/probe/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// casesFile holds scripted answers of real servers, with the verdict that each must get; moreCasesFile variants of their
// kinds; protocolCasesFile what the other protocols say.
const (
	casesFile         = "probetest/testdata/cases.yaml"
	moreCasesFile     = "probetest/testdata/more_cases.yaml"
	protocolCasesFile = "probetest/testdata/protocol_cases.yaml"
)

// TestCases plays every case over real sockets. Each reaches its verdict over plain connections and over TLS.
func TestCases(t *testing.T) { playAll(t, casesFile, false, true) }

// TestMoreCases plays the variants, over TLS only where they need it.
func TestMoreCases(t *testing.T) { playAll(t, moreCasesFile, false) }

// TestProtocolCases plays the cases of the other protocols.
func TestProtocolCases(t *testing.T) { playAll(t, protocolCasesFile, false) }

func playAll(t *testing.T, file string, overTLS ...bool) {
	t.Helper()
	cases, err := probetest.LoadCases(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if !slices.Contains(wire.Names(), c.Protocol) {
			continue
		}
		connections := overTLS
		if c.HTTP2() {
			connections = []bool{true}
		}
		for _, tls := range connections {
			t.Run(fmt.Sprintf("%s tls=%v %s", c.ID, tls, c.Title), func(t *testing.T) {
				t.Parallel()
				play(t, c, tls)
			})
		}
	}
}

// play probes a case, again where timing on a busy machine was off: a verdict that is wrong stays wrong.
func play(t *testing.T, c probetest.Case, tls bool) {
	t.Helper()
	const tries = 3
	var problems []string
	for range tries {
		p, err := probetest.NewPlayer(c, probetest.PlayerOptions{TLS: tls})
		if err != nil {
			t.Fatal(err)
		}
		results := probeSeries(t, caseSeries(t, c, p), max(c.Count, 1))
		problems = probetest.Compare(c, toMap(t, results[len(results)-1]), p.Seen())
		p.Close()
		if len(problems) == 0 {
			return
		}
	}
	t.Errorf("after %d tries:\n%s", tries, strings.Join(problems, "\n"))
}

// caseSeries is the series that a case is for.
func caseSeries(t *testing.T, c probetest.Case, p *probetest.Player) *config.Series {
	t.Helper()
	s := config.NewSeries(p.URL(), "m")
	s.Target.Protocol = c.Protocol
	s.Target.HTTP.EnableHTTP2 = c.HTTP2()
	s.Target.HTTP.FollowRedirects = slices.Contains(c.Needs, "follow_redirects")
	if strings.HasPrefix(c.Protocol, "bedrock") || strings.HasPrefix(c.BasePath, "/model/") {
		s.Target.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", Credentials: "key"}
	}
	if pem := p.CertPEM(); pem != nil {
		s.Target.HTTP.TLSConfig.CAFile = filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(s.Target.HTTP.TLSConfig.CAFile, pem, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sc := s.Scenario
	sc.Stream, sc.MaxTokens = c.Stream, c.Limits.MaxTokens
	sc.Timeout = milliseconds(c.Limits.TotalMS)
	sc.FirstTokenTimeout = min(milliseconds(c.Limits.FirstTokenMS), sc.Timeout)
	sc.IdleTimeout = min(milliseconds(c.Limits.IdleMS), sc.Timeout)
	sc.RequireText = slices.Contains(c.Needs, "require_text")
	sc.AcceptNotStreamed = slices.Contains(c.Needs, "accept_not_streamed")
	sc.SLO = config.SLO{Objective: 0.99}
	for name, limit := range map[string]float64{
		config.CriterionTTFT: float64(c.SLO.TTFTMS), config.CriterionTPOT: float64(c.SLO.TPOTMS), config.CriterionE2E: float64(c.SLO.E2EMS),
	} {
		if limit > 0 {
			sc.SLO.Criteria = append(sc.SLO.Criteria, config.Criterion{Name: name, Limit: milliseconds(limit)})
		}
	}
	if len(sc.SLO.Criteria) > 0 { // as on the command line
		sc.SLO.Criteria = append(sc.SLO.Criteria, config.Criterion{Name: config.CriterionComplete})
	}
	return s
}

func milliseconds[N int | float64](n N) time.Duration {
	return time.Duration(float64(n) * float64(time.Millisecond))
}

// probeSeries probes a series a number of times in a row.
func probeSeries(t *testing.T, s *config.Series, count int) []*probe.Result {
	t.Helper()
	if _, err := config.New(s); err != nil {
		t.Fatal(err)
	}
	clients := probe.NewClients()
	defer clients.Close()
	client, err := clients.Get(s.Target)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Release()
	prober, err := probe.New(s, client, "test")
	if err != nil {
		t.Fatal(err)
	}
	var results []*probe.Result
	for range count {
		results = append(results, prober.Probe(context.Background()))
	}
	return results
}

// toMap is a result as somebody reads it who has only its JSON.
func toMap(t *testing.T, r *probe.Result) map[string]any {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
