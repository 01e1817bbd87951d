package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const exampleFile = "../../config/testdata/example.yml"

// somewhere is an endpoint for tests that must fail before anything is sent.
const somewhere = "--url=http://127.0.0.1:1"

// Bad usage is told in one line that names what is wrong, with exit code 2, and nothing is sent.
func TestBadUsage(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no endpoint":               {[]string{"--model=m"}, "no endpoint: give --url (or LLM_URL), or --config.file"},
		"no model":                  {[]string{somewhere}, "no model: give --model (or LLM_MODEL)"},
		"unknown protocol":          {[]string{somewhere, "--model=m", "--protocol=x"}, `protocol: unknown protocol "x"; known are `},
		"no duration":               {[]string{somewhere, "--model=m", "--timeout=soon"}, `invalid duration "soon"`},
		"timeout of 0":              {[]string{somewhere, "--model=m", "--timeout=0s"}, "--timeout=0s: it must be positive"},
		"negative first token":      {[]string{somewhere, "--model=m", "--first-token-timeout=-1s"}, "--first-token-timeout=-1s: it must be positive"},
		"idle timeout of 0":         {[]string{somewhere, "--model=m", "--idle-timeout=0s"}, "--idle-timeout=0s: it must be positive"},
		"negative count":            {[]string{somewhere, "--model=m", "--count=-1"}, "--count=-1: it must be at least 1"},
		"count of 0":                {[]string{somewhere, "--model=m", "--count=0"}, "--count=0: it must be at least 1"},
		"negative max tokens":       {[]string{somewhere, "--model=m", "--max-tokens=-1"}, "max_tokens: must be at least 1"},
		"max tokens in words":       {[]string{somewhere, "--model=m", "--max-tokens=many"}, `"many"`},
		"no URL":                    {[]string{"--url=://", "--model=m"}, "url: not a URL: write one such as https://llm.example.net/v1"},
		"URL without a scheme":      {[]string{"--url=llm.example.net", "--model=m"}, "url: must begin with http:// or https://"},
		"URL of another scheme":     {[]string{"--url=ftp://llm.example.net", "--model=m"}, "url: must begin with http:// or https://"},
		"password in the URL":       {[]string{"--url=http://me:hidden@127.0.0.1:1", "--model=m"}, "url: must not hold a user name or password"},
		"header without a colon":    {[]string{somewhere, "--model=m", "--header=X"}, `--header="X": it must be 'Name: value'`},
		"header without a name":     {[]string{somewhere, "--model=m", "--header=: x"}, `--header=": x": it must be 'Name: value'`},
		"API key file missing":      {[]string{somewhere, "--model=m", "--api-key-file=" + missing}, "cannot read " + missing},
		"CA file missing":           {[]string{somewhere, "--model=m", "--ca-file=" + missing}, "cannot read " + missing},
		"unknown flag":              {[]string{somewhere, "--model=m", "--speed=1"}, "unknown long flag '--speed'"},
		"an argument":               {[]string{somewhere, "--model=m", "x"}, "unexpected x"},
		"unknown output":            {[]string{somewhere, "--model=m", "--output=xml"}, "must be one of text,json, got 'xml'"},
		"negative objective":        {[]string{somewhere, "--model=m", "--slo.ttft=-1s"}, "--slo.ttft=-1s: it must be positive"},
		"objective of 0":            {[]string{somewhere, "--model=m", "--slo.e2e=0s"}, "--slo.e2e=0s: it must be positive"},
		"TTFT of a whole answer":    {[]string{somewhere, "--model=m", "--no-stream", "--slo.ttft=1s"}, "slo.ttft: has no meaning for answers that are not streamed"},
		"unknown name of the limit": {[]string{somewhere, "--model=m", "--max-tokens-field=tokens"}, "max_tokens_field: must be max_tokens or max_completion_tokens"},
		"configuration missing":     {[]string{"--config.file=" + missing}, missing},
		"unknown target":            {[]string{"--config.file=" + exampleFile, "--target=x"}, "fit 0 series of " + exampleFile + ", not one; it has chat-eu/chat, chat-eu/summarize, completions-us/chat"},
		"unknown scenario":          {[]string{"--config.file=" + exampleFile, "--target=chat-eu", "--scenario=x"}, "fit 0 series"},
		"several series":            {[]string{"--config.file=" + exampleFile, "--target=chat-eu"}, "fit 2 series"},
		"URL and configuration":     {[]string{somewhere, "--config.file=" + exampleFile}, "--url has no say beside --config.file"},
		"SLO and configuration":     {[]string{"--slo.ttft=1s", "--config.file=" + exampleFile}, "--slo.ttft has no say beside --config.file"},
		"expression":                {[]string{somewhere, "--model=m", "--expect=("}, `--expect="(": not a regular expression of RE2`},
		"schema missing":            {[]string{somewhere, "--model=m", "--check.schema=" + missing}, "--check.schema: cannot read the schema " + missing},
		"schema that is none":       {[]string{somewhere, "--model=m", "--check.schema=" + exampleFile}, "check.schema: the schema " + exampleFile + " is not JSON"},
		"negative length":           {[]string{somewhere, "--model=m", "--check.min-length=-1"}, "check.min_length: must be at least 1"},
		"negative repetition":       {[]string{somewhere, "--model=m", "--check.max-repetition=-1"}, "check.max_repetition: must be at least 1"},
		"target without a file":     {[]string{somewhere, "--model=m", "--target=x"}, "--target needs --config.file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := goodputctl(t, nil, append([]string{"probe"}, tc.args...)...)
			if r.code != 2 {
				t.Errorf("exit code %d, want 2", r.code)
			}
			if r.stdout != "" {
				t.Errorf("stdout: %q, want none", r.stdout)
			}
			if !strings.Contains(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("got %q, want one line with %q", r.stderr, tc.want)
			}
			if strings.Contains(r.stderr, "hidden") {
				t.Errorf("it tells the password: %q", r.stderr)
			}
		})
	}
}

func TestUnknownCommand(t *testing.T) {
	for _, args := range [][]string{{"prod"}, {"check-config"}} {
		if r := goodputctl(t, nil, args...); r.code != 2 || r.stderr == "" {
			t.Errorf("%v: exit code %d, stderr %q; want 2 and a message", args, r.code, r.stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, command := range []string{"", "probe", "bench", "sweep", "compare", "merge", "status", "check-config", "simulate"} {
		t.Run(command, func(t *testing.T) {
			name, args := "help.golden", []string{"--help"}
			if command != "" {
				name, args = command+"_help.golden", []string{command, "--help"}
			}
			r := goodputctl(t, nil, args...)
			if r.code != 0 || r.stderr != "" {
				t.Fatalf("exit code %d, stderr %q", r.code, r.stderr)
			}
			golden(t, name, r.stdout)
		})
	}
}

func TestVersion(t *testing.T) {
	r := goodputctl(t, nil, "--version")
	if r.code != 0 || !strings.HasPrefix(r.stdout, "goodputctl, version ") || strings.Contains(r.stdout, "usage:") {
		t.Errorf("exit code %d, stdout %q", r.code, r.stdout)
	}
}

func TestCheckConfig(t *testing.T) {
	for _, tc := range []struct {
		name, golden string
		files        []string
		code         int
	}{
		{"good", "check_good.golden", []string{exampleFile}, 0},
		{"good with a warning", "check_warning.golden", []string{"testdata/rare.yml"}, 0},
		{"everything that is wrong at once", "check_bad.golden", []string{"testdata/bad.yml"}, 1},
		{"several files", "check_several.golden", []string{"testdata/rare.yml", "testdata/missing.yml", exampleFile}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := goodputctl(t, nil, append([]string{"check-config"}, tc.files...)...)
			if r.code != tc.code {
				t.Errorf("exit code %d, want %d", r.code, tc.code)
			}
			golden(t, tc.golden, "--- stdout\n"+r.stdout+"--- stderr\n"+known.ReplaceAllString(r.stderr, "known are …"))
		})
	}
}

// A configured target is probed as the daemon would.
func TestConfiguredProbe(t *testing.T) {
	p := newPlayer(t, caseByID(t, "A17"))
	file := writeFile(t, "config.yml", []byte(`
scenarios: {chat: {prompt: Hello., max_tokens: 16, slo: {objective: 99%, ttft: 1s}}}
targets: [{name: eu, url: "`+p.URL()+`", model: m, scenarios: [chat]}]
`))
	r := goodputctl(t, nil, "probe", "--config.file="+file, "--output=json", "--count=2")
	results := parse(t, r)
	if r.code != 0 || len(results) != 2 {
		t.Fatalf("exit code %d, %d lines: %s%s", r.code, len(results), r.stdout, r.stderr)
	}
	for _, got := range results {
		if got["target"] != "eu" || got["scenario"] != "chat" || got["outcome"] != "good" {
			t.Errorf("target %v, scenario %v, outcome %v", got["target"], got["scenario"], got["outcome"])
		}
	}
}

// A secret file that goes away between two probes is the prober's own failure, and no verdict on the endpoint.
func TestSecretFileGoesAway(t *testing.T) {
	p := newPlayer(t, caseByID(t, "A17")) // answers after 310 ms
	key := writeFile(t, "key", []byte("s3cret-in-a-file"))
	removed := make(chan struct{})
	go func() {
		defer close(removed)
		for len(p.Seen().Requests) == 0 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		_ = os.Remove(key)
	}()
	r := goodputctl(t, nil, "probe", "--url="+p.URL(), "--model=m", "--api-key-file="+key, "--output=json", "--count=2", "--new-connection")
	<-removed
	results := parse(t, r)
	if r.code != 2 || len(results) != 2 || results[0]["outcome"] != "good" || results[1]["outcome"] != "local_error" {
		t.Errorf("exit code %d, want 2, a good probe and a local_error: %s%s", r.code, r.stdout, r.stderr)
	}
}
