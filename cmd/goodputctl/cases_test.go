package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goodput_exporter/probe/probetest"
	"goodput_exporter/probe/wire"
)

const (
	// casesFile holds scripted answers of real servers, with the verdict that each must get; moreCasesFile
	// variants of their kinds; protocolCasesFile what the other protocols say.
	casesFile         = "../../probe/probetest/testdata/cases.yaml"
	moreCasesFile     = "../../probe/probetest/testdata/more_cases.yaml"
	protocolCasesFile = "../../probe/probetest/testdata/protocol_cases.yaml"
)

// TestCases plays every case to the built binary, as a user would run it.
func TestCases(t *testing.T) {
	for _, file := range []string{casesFile, moreCasesFile, protocolCasesFile} {
		cases, err := probetest.LoadCases(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			if !slices.Contains(wire.Names(), c.Protocol) {
				continue
			}
			t.Run(c.ID+" "+c.Title, func(t *testing.T) {
				if !c.HTTP2() { // a handshake is part of its times, and takes its time on a busy machine
					t.Parallel()
				}
				playCase(t, c)
			})
		}
	}
}

// playCase probes a case, again where timing on a busy machine was off: a verdict that is wrong stays wrong.
func playCase(t *testing.T, c probetest.Case) {
	t.Helper()
	const tries = 5
	var problems []string
	for range tries {
		if problems = playOnce(t, c); len(problems) == 0 {
			return
		}
	}
	t.Errorf("after %d tries:\n%s", tries, strings.Join(problems, "\n"))
}

func playOnce(t *testing.T, c probetest.Case) []string {
	t.Helper()
	p, err := probetest.NewPlayer(c, probetest.PlayerOptions{TLS: c.HTTP2()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	env := []string{"AWS_BEARER_TOKEN_BEDROCK=key"}
	if pem := p.CertPEM(); pem != nil {
		env = append(env, "SSL_CERT_FILE="+writeFile(t, "ca.pem", pem))
	}
	r := goodputctl(t, env, append([]string{"probe"}, probetest.Args(c, p.URL())...)...)
	results := parse(t, r)
	if len(results) != max(c.Count, 1) {
		t.Fatalf("%d lines for %d probes; stderr: %s", len(results), c.Count, r.stderr)
	}
	problems := probetest.Compare(c, results[len(results)-1], p.Seen())
	if want := wantCode(results); r.code != want {
		problems = append(problems, "exit code is not what the outcomes ask for")
	}
	if len(problems) > 0 {
		problems = append(problems, r.stdout)
	}
	return problems
}

// wantCode is 0 when all probes were good and else 1: no case makes goodputctl fail by itself.
func wantCode(results []map[string]any) int {
	for _, r := range results {
		if r["outcome"] != "good" {
			return 1
		}
	}
	return 0
}

// parse reads one JSON object a line.
func parse(t *testing.T, r ran) []map[string]any {
	t.Helper()
	var results []map[string]any
	for line := range strings.Lines(r.stdout) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in line %q; stderr: %s", err, line, r.stderr)
		}
		results = append(results, m)
	}
	return results
}

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
