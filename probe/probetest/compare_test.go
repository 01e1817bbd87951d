package probetest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	const good = `{"outcome":"good","in_band":false,"status_code":200,"finish_reason":"stop","flags":["stale_retry"],"text":"ab",
		"ttft_seconds":0.11,"e2e_seconds":0.31,"tpot_seconds":0.041,"output_tokens":6,"output_tokens_source":"usage"}`
	const limited = `{"outcome":"rate_limited","reason":"limit","in_band":false,"status_code":429,"retry_after_seconds":3,"output_tokens_source":"none"}`
	closed := 1200 * time.Millisecond
	seen := Seen{Connections: 1, ClosedAfter: &closed, Requests: []Request{{Method: "POST", Header: http.Header{"X-A": {"b"}}}}}
	tests := []struct {
		name, expect, got string
		want              []string // a part of each problem
	}{
		{"all right", "{outcome: good, in_band: false, ttft_ms: 100, e2e_ms: 310, tpot_ms: 40, output_tokens: 6, tokens_source: usage, flags: [stale_retry], text: ab, finish_reason: stop}", good, nil},
		{"keys that are absent are not compared", "{outcome: good}", good, nil},
		{"another outcome", "{outcome: truncated}", good, []string{`outcome: got "good"`}},
		{"a time outside the tolerance", "{outcome: good, ttft_ms: 79}", good, []string{"ttft_seconds: got 0.11, want 0.079"}},
		{"a tolerance of its own", "{outcome: good, ttft_ms: 100, tolerance_ms: 9}", good, []string{"ttft_seconds"}},
		{"tpot has a share of the tolerance", "{outcome: good, tpot_ms: 34, output_tokens: 6}", good, []string{"tpot_seconds"}},
		{"null wants none", "{outcome: good, ttft_ms: null, text: null}", good, []string{"ttft_seconds: got 0.11, want none", "text"}},
		{"a missing reading", "{outcome: rate_limited, ttft_ms: 5}", limited, []string{"ttft_seconds: got none"}},
		{"none and 0 tokens are the same", "{outcome: rate_limited, output_tokens: 0, tokens_source: none, ttft_ms: null, retry_after_s: 3, flags: []}", limited, nil},
		{"retry after", "{outcome: rate_limited, retry_after_s: 3.01}", limited, []string{"retry_after_seconds"}},
		{"no retry after", "{outcome: rate_limited, retry_after_s: null}", limited, []string{"retry_after_seconds: got 3, want none"}},
		{"a reason by its letters", `{outcome: rate_limited, reason: "LI:mit"}`, limited, nil},
		{"another reason", "{outcome: rate_limited, reason: quota}", limited, []string{"reason"}},
		{"a missing flag and one too many", "{outcome: good, flags: [buffered]}", good, []string{"flag buffered is missing", "flag stale_retry must not stand"}},
		{"an optional flag", "{outcome: good, flags: [], flags_optional: [stale_retry]}", good, nil},
		{"a flag outside the vocabulary is free", "{outcome: good, flags: []}", strings.Replace(good, "stale_retry", "own_lag", 1), nil},
		{"finish reasons that are equally good", "{outcome: good, finish_reason: [end, stop]}", good, nil},
		{"also compares what is printed", "{outcome: good, also: {status_code: 200, e2e_seconds: 0.3, text: b, unheard_of: 1}}", good, nil},
		{"also differs", "{outcome: good, also: {status_code: 500, e2e_seconds: 0.2, text: z, finish_reason: null}}", good, []string{"e2e_seconds", "finish_reason", "status_code", "text"}},
		{"what the server saw", "{outcome: good, requests_seen: 1, connections_seen: 1, methods_seen: [POST], request_headers: {x-a: b}, request_headers_absent: [x-b], closed_by_ms: 1300}", good, nil},
		{
			"what it should not have seen", "{outcome: good, requests_seen: 2, connections_seen: 2, methods_seen: [GET], request_headers: {x-a: c}, request_headers_absent: [x-a], closed_by_ms: 1100}", good,
			[]string{"requests seen", "connections seen", "methods seen", `header x-a: got "b"`, "it has the header x-a", "the client closed"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := oneCase(t, "script: [{at_ms: 0, do: end}]\nexpect: "+tc.expect)
			var got map[string]any
			if err := json.Unmarshal([]byte(tc.got), &got); err != nil {
				t.Fatal(err)
			}
			problems := Compare(c, got, seen)
			if !slices.EqualFunc(problems, tc.want, strings.Contains) {
				t.Errorf("problems %q, want %q", problems, tc.want)
			}
		})
	}
}

func TestCompareAnyOfSeveral(t *testing.T) {
	c := oneCase(t, "script: [{at_ms: 0, do: end}]\nexpect_any: [{outcome: good}, {outcome: truncated, text: a}]")
	for _, tc := range []struct {
		outcome  string
		problems int
	}{{"good", 0}, {"timeout", 1}} {
		if got := Compare(c, map[string]any{"outcome": tc.outcome}, Seen{}); len(got) != tc.problems {
			t.Errorf("%s: problems %q, want %d", tc.outcome, got, tc.problems)
		}
	}
}

func TestReadCasesRefuses(t *testing.T) {
	const ok = "script: [{at_ms: 0, do: end}]\n"
	tests := []struct{ name, yaml, want string }{
		{"an unknown key", ok + "colour: red", "field colour not found"},
		{"an unknown key of a step", "script: [{at_ms: 0, do: end, colour: red}]", "field colour not found"},
		{"an unknown key of expect", ok + "expect: {outcome: good, colour: red}", `unknown key "colour"`},
		{"an unknown outcome", ok + "expect: {outcome: fine}", "outcome cannot be fine"},
		{"no verdict", ok + "expect:", "want expect or expect_any"},
		{"an unknown protocol", ok + "protocol: smtp", `unknown protocol "smtp"`},
		{"no script", "title: x", "want either script or connections"},
		{"script and connections", ok + "connections: [{requests: [{script: [{at_ms: 0, do: end}]}]}]", "want either script or connections"},
		{"a step without time", "script: [{do: end}]", "at_ms"},
		{"a step with two acts", "script: [{at_ms: 0, do: end, write: x}]", "want exactly one"},
		{"a script without an end", "script: [{at_ms: 0, write: x}]", "a script ends in"},
		{"an end in the middle", "script: [{at_ms: 0, do: end}, {at_ms: 1, do: end}]", "a script ends in"},
		{"steps back in time", "script: [{at_ms: 9, write: x}, {at_ms: 1, do: end}]", "earlier"},
		{"an unknown act", "script: [{at_ms: 0, do: explode}]", `do is "explode"`},
		{"an unknown code", "http: {version: \"2\"}\nscript: [{at_ms: 0, do: \"h2_rst:NOPE\"}]", "h2_rst:NOPE"},
		{"a reset of HTTP/2 in HTTP/1.1", "script: [{at_ms: 0, do: \"h2_rst:CANCEL\"}]", "needs HTTP/2"},
		{"framing in HTTP/2", "http: {version: \"2\", framing: chunked}\n" + ok, "no framing"},
		{"chunks in HTTP/1.0", "http: {version: \"1.0\"}\n" + ok, "no chunked framing"},
		{"bad base64", "script: [{at_ms: 0, write_b64: \"?\"}, {at_ms: 0, do: end}]", "write_b64"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			text := "version: 1\ncases:\n  - id: T\n" + indent(tc.yaml)
			if !strings.Contains(tc.yaml, "expect") {
				text += "    expect: {outcome: good}\n"
			}
			_, err := ReadCases(strings.NewReader(text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "case T") && !strings.Contains(tc.want, "field") {
				t.Errorf("got %v, want the case and %q", err, tc.want)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	tests := []struct {
		name, yaml string
		want       []string
	}{
		{"defaults", "script: [{at_ms: 0, do: end}]", []string{
			"--url=U", "--protocol=openai-chat", "--model=m", "--output=json", "--timeout=5s",
			"--first-token-timeout=2s", "--idle-timeout=1s", "--max-tokens=16", "--stream",
		}},
		{"everything", `
protocol: openai-completions
stream: false
count: 2
needs: [require_text]
limits: {total_ms: 1500, max_tokens: 4}
slo: {ttft_ms: 500, tpot_ms: 0.5, e2e_ms: 1000}
http: {version: "2"}
script: [{at_ms: 0, do: end}]
`, []string{
			"--url=U", "--protocol=openai-completions", "--model=m", "--output=json", "--timeout=1.5s",
			"--first-token-timeout=2s", "--idle-timeout=1s", "--max-tokens=4", "--no-stream",
			"--slo.ttft=500ms", "--slo.tpot=500µs", "--slo.e2e=1s", "--require-text", "--count=2", "--http2",
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Args(oneCase(t, tc.yaml), "U")); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}
