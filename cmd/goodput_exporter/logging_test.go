package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/probe"
	"goodput_exporter/probe/probetest"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// failedProbe has everything that a line can tell.
var failedProbe = &probe.Result{
	Target: "chat-eu", Scenario: "chat", Model: "llama", Outcome: probe.Timeout, Reason: probe.ReasonIdle, InBand: true,
	Error: "no end within the limit of 10s (idle)\nand \"more\"", StatusCode: 200, FinishReason: "stop",
	Flags: []probe.Flag{probe.FlagBuffered, probe.FlagTruncated},
	TTFT:  new(250 * time.Millisecond), E2E: new(10*time.Second + 1234567*time.Nanosecond), OutputTokens: new(12),
	RequestID: "req-1", TraceID: "0af7651916cd43dd8448eb211c80319c",
}

func TestLineOfAProbe(t *testing.T) {
	t.Parallel()
	good := &probe.Result{Target: "chat-eu", Scenario: "chat", Model: "llama", Outcome: probe.Good, TraceID: "0af7651916cd43dd8448eb211c80319c"}
	violation := &probe.Result{
		Target: "chat-eu", Scenario: "chat", Model: "llama", Outcome: probe.SLOViolation, TraceID: "0af7651916cd43dd8448eb211c80319c",
		Judgments: []probe.Judgment{{SLO: "goodput", Verdict: probe.Missed}, {SLO: "ttft", Verdict: probe.Missed}, {SLO: "e2e", Verdict: probe.Met}, {SLO: "tpot", Verdict: probe.Unmeasurable}},
	}
	canceled := &probe.Result{Target: "chat-eu", Scenario: "chat", Model: "llama", Outcome: probe.Canceled, Error: "shutdown", TraceID: "0af7651916cd43dd8448eb211c80319c"}
	local := &probe.Result{Target: "chat-eu", Scenario: "chat", Model: "llama", Outcome: probe.LocalError, Error: "too many open files", TraceID: "0af7651916cd43dd8448eb211c80319c"}
	const series, trace = "msg=probe target=chat-eu scenario=chat model=llama ", "trace_id=0af7651916cd43dd8448eb211c80319c\n"
	for _, c := range []struct {
		name, minimum string
		result        *probe.Result
		want          string
	}{
		{"good, at info", "info", good, ""},
		{"good, at debug", "debug", good, "level=debug " + series + "outcome=good " + trace},
		{"canceled, at info", "info", canceled, ""},
		{"a failure of our own", "info", local, "level=warn " + series + `outcome=local_error err="too many open files" ` + trace},
		{"a violation", "info", violation, "level=warn " + series + "outcome=slo_violation missed=ttft,tpot " + trace},
		{"a failure", "warn", failedProbe, "level=warn " + series + `outcome=timeout reason=idle in_band=true status_code=200 finish_reason=stop ` +
			`ttft_seconds=0.25 e2e_seconds=10.001235 output_tokens=12 flags=buffered,truncated ` +
			`err="no end within the limit of 10s (idle)\nand \"more\"" request_id=req-1 ` + trace},
		{"a failure, at error", "error", failedProbe, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			logResult(newLogger(&b, c.minimum, "logfmt"), c.result)
			if diff := cmp.Diff(c.want, b.String()); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLineOfAProbeInJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	logResult(newLogger(&b, "info", "json"), failedProbe)
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, &b)
	}
	want := map[string]any{
		"level": "warn", "msg": "probe", "target": "chat-eu", "scenario": "chat", "model": "llama", "outcome": "timeout", "reason": "idle",
		"in_band": true, "status_code": 200.0, "finish_reason": "stop", "ttft_seconds": 0.25, "e2e_seconds": 10.001235, "output_tokens": 12.0,
		"flags": "buffered,truncated", "err": failedProbe.Error, "request_id": "req-1", "trace_id": failedProbe.TraceID,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

// TestEveryLineHasItsTimeLevelAndPlaceOnce runs a daemon and reads all that it says, also what the web library and
// net/http say.
func TestEveryLineHasItsTimeLevelAndPlaceOnce(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"logfmt", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			said := talk(t, format)
			lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
			probes := 0
			for _, line := range lines {
				pairs := parseLine(t, format, line)
				for _, key := range []string{"ts", "level", "caller", "msg"} {
					if n := len(pairs[key]); n != 1 {
						t.Errorf("%s stands %d times in: %s", key, n, line)
					}
				}
				for key, values := range pairs {
					if len(values) != 1 {
						t.Errorf("%s stands %d times in: %s", key, len(values), line)
					}
				}
				if ts := pairs["ts"]; len(ts) == 1 {
					if at, err := time.Parse(time.RFC3339Nano, ts[0]); err != nil || at.Location() != time.UTC {
						t.Errorf("ts is no time in UTC: %s", line)
					}
				}
				if len(pairs["msg"]) == 1 && pairs["msg"][0] == "probe" {
					probes++
					if len(pairs["request_id"]) != 1 || pairs["request_id"][0] != "req 1" || len(pairs["trace_id"]) != 1 {
						t.Errorf("no request id or trace id in: %s", line)
					}
				}
			}
			if probes == 0 {
				t.Error("no line of a probe")
			}
			for _, library := range []string{"Listening on", "TLS handshake error"} {
				if !strings.Contains(said, library) {
					t.Errorf("no line with %q", library)
				}
			}
		})
	}
}

// talk runs a daemon until it and its libraries have said what they have to say, and returns that.
func talk(t *testing.T, format string) string {
	t.Helper()
	handler, err := probetest.NewHandler(probetest.Config{Models: []probetest.Model{
		{Name: "m", Faults: []probetest.Fault{{Kind: probetest.FaultUnavailable, Rate: 1}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req 1")
		handler.ServeHTTP(w, r)
	}))
	defer endpoint.Close()
	cert, key := newCertificate(t)
	web := configure(t, fmt.Sprintf("tls_server_config: {cert: %q, key: %q}\n", cert, key))
	d := launch(t, "--config.file="+configure(t, oneTarget(endpoint.URL)), "--web.config.file="+web, "--log.level=debug", "--log.format="+format)
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(bytes.Repeat([]byte{0}, 64)); err != nil {
		t.Error(err)
	}
	eventually(t, "a probe and a handshake have failed", func() bool {
		said := d.logs.String()
		return strings.Contains(said, "req 1") && strings.Contains(said, "TLS handshake error")
	})
	conn.Close()
	d.stop(t)
	return d.logs.String()
}

// parseLine returns all values of each key of a line.
func parseLine(t *testing.T, format, line string) map[string][]string {
	t.Helper()
	pairs := map[string][]string{}
	if format == "json" {
		d := json.NewDecoder(strings.NewReader(line)) // token by token, because a map hides what stands twice
		for depth, key := 0, ""; ; {
			token, err := d.Token()
			if err != nil {
				break
			}
			switch delim, is := token.(json.Delim); {
			case is && delim == '{':
				depth++
			case is:
				depth--
			case key == "":
				key = fmt.Sprint(token)
			default:
				pairs[key] = append(pairs[key], fmt.Sprint(token))
				key = ""
			}
			if depth == 0 {
				break
			}
		}
		return pairs
	}
	for rest := line; rest != ""; {
		var key, value string
		key, rest, _ = strings.Cut(rest, "=")
		if strings.HasPrefix(rest, `"`) {
			d := json.NewDecoder(strings.NewReader(rest))
			if err := d.Decode(&value); err != nil {
				t.Fatalf("%v in: %s", err, line)
			}
			rest = strings.TrimPrefix(rest[d.InputOffset():], " ")
		} else {
			value, rest, _ = strings.Cut(rest, " ")
		}
		pairs[key] = append(pairs[key], value)
	}
	return pairs
}
