package journal

import (
	"bytes"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// fullResult is a result that has something in every field.
func fullResult() *probe.Result {
	r := numbered(3)
	r.InBand, r.FinishReason, r.RetryAfter = true, "error", new(30*time.Second)
	r.FirstAnswer, r.TPOT, r.ChunkGaps = new(time.Second), new(31234567*time.Nanosecond), []time.Duration{1, 2}
	r.OutputTokens, r.CachedInputTokens, r.ReasoningTokens, r.Comments = new(0), new(3), new(4), 5
	r.Header = http.Header{"Retry-After": {"30"}, "Via": {"a", `"b" <ß>`}, "X-Empty": {}}
	r.Judgments, r.Phases, r.ServerTimes = nil, nil, nil
	for i, slo := range append([]string{probe.SLOGoodput, probe.SLOAvailability}, config.Criteria...) {
		verdicts := []probe.Verdict{probe.Met, probe.Missed, probe.Unmeasurable, probe.NotApplicable}
		r.Judgments = append(r.Judgments, probe.Judgment{SLO: slo, Verdict: verdicts[i%len(verdicts)]})
	}
	for i, name := range probe.PhaseNames {
		r.Phases = append(r.Phases, probe.Phase{Name: name, Duration: time.Duration(i) * 123456})
	}
	for i, kind := range probe.ServerKinds {
		r.ServerTimes = append(r.ServerTimes, probe.ServerTime{Kind: kind, Took: time.Duration(i) * time.Second / 3})
	}
	return r
}

// TestFullResultIsFull fails where probe.Result has a new field, which fullResult and scanResult must know.
func TestFullResultIsFull(t *testing.T) {
	for field, v := range reflect.ValueOf(fullResult()).Elem().Fields() {
		if v.IsZero() {
			t.Errorf("%s is empty", field.Name)
		}
	}
}

// TestScanEqualsJSON checks that scanResult knows whatever this package writes, and reads it as encoding/json does.
func TestScanEqualsJSON(t *testing.T) {
	results := []*probe.Result{fullResult(), {Outcome: probe.Canceled, OutputTokensSource: probe.TokensNone}}
	add := func(edit func(*probe.Result)) {
		r := fullResult()
		edit(r)
		results = append(results, r)
	}
	for n := range 100 {
		results = append(results, numbered(n))
	}
	for _, outcome := range slices.Concat(probe.Outcomes, probe.AbortedOutcomes) {
		add(func(r *probe.Result) { r.Outcome = outcome })
	}
	for d := time.Duration(1); d < 10*24*time.Hour; d = d*5/3 + 1 {
		add(func(r *probe.Result) { r.TTFT, r.OwnLag, r.Phases[0].Duration = &d, new(-d), d })
	}
	var every strings.Builder // character of up to 16 bits, and some more
	for c := range rune(0x10000) {
		every.WriteRune(c)
		if c%1000 == 999 {
			every.WriteString("😀")
			add(func(r *probe.Result) { r.Text, r.Model = every.String(), every.String()[:10] })
			every.Reset()
		}
	}
	add(func(r *probe.Result) { r.Text, r.Error = "half a character \xc3", "\xff" })
	for i := range reflect.TypeFor[probe.Result]().NumField() {
		add(func(r *probe.Result) {
			if f := reflect.ValueOf(r).Elem().Field(i); reflect.TypeFor[probe.Result]().Field(i).Name != "Outcome" {
				f.SetZero()
			}
		})
	}
	for i, r := range results {
		line, err := appendLine(nil, entry{"chat-eu/chat", r})
		if err != nil {
			t.Fatal(err)
		}
		p, err := parse(bytes.TrimSuffix(line, []byte{'\n'}), names{})
		if err != nil {
			t.Fatalf("%d: %s: %v", i, line, err)
		}
		got, ok := scanResult(&p.rest, p.time)
		want := new(probe.Result)
		if err := want.UnmarshalJSON(line); err != nil || !ok {
			t.Fatalf("%d: %s: scanned %v, of encoding/json %v", i, line, ok, err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%d: -of encoding/json +got:\n%s", i, cmp.Diff(want, got))
		}
	}
}

// TestOtherLinesAreReadAsWell checks lines of other versions and by other hands: scanResult leaves them to encoding/json,
// or reads the same.
func TestOtherLinesAreReadAsWell(t *testing.T) {
	const ok = `,"outcome":"good"`
	for _, tc := range []struct {
		rest    string
		scanned bool
	}{
		{ok + `}`, true},
		{ok + `,"ttft_seconds":1,"ttft_seconds":2,"error":"a","error":"b"}`, true},
		{ok + `,"text":"\u00e9\/\n"}`, true},
		{ok + `,"ttft_seconds":-0.5e-3}`, true},
		{ok + `,"text":"\ud83d\ude00"}`, false},
		{ok + `,"text":"\ud83d"}`, false},
		{ok + `,"ttft_seconds":1e7}`, false},
		{ok + `,"ttft_seconds":null}`, false},
		{ok + `,"new":{"a":[1]}}`, false},
		{ok + `,"Target":"x"}`, false},
		{ok + ` }`, false},
		{ok + `,"slo":{"goodput":"good"},"slo":{"ttft":"good"}}`, false},
		{ok + `,"slo":{"new":"good"}}`, false},
		{ok + `,"phases":{"dns":1,"dns":2}}`, false},
		{ok + `,"server_total_seconds":1,"server_ttft_seconds":2}`, false},
		{ok + `,"server_ttft_seconds":1,"server_ttft_seconds":2}`, false},
		{ok + `,"time":"2026-11-29T19:00:00Z"}`, false},
		// What is no result.
		{ok + `,"ttft_seconds":01}`, false},
		{ok + `,"ttft_seconds":1.}`, false},
		{ok + `,"ttft_seconds":+1}`, false},
		{ok + `,"status_code":1.5}`, false},
		{ok + `,"status_code":1e400}`, false},
		{ok + `,"status_code":"200"}`, false},
		{ok + `,"in_band":1}`, false},
		{ok + `,"text":"\x"}`, false},
		{ok + `,"text":"\u00g0"}`, false},
		{ok + `,"text":"` + "\x01" + `"}`, false},
		{ok + `,"text":"\"}`, false},
		{ok + `}}`, false},
		{ok + `,}`, false},
		{ok, false},
		{`}`, false},
		{`,"outcome":"splendid"}`, false},
		{``, false},
	} {
		t.Run(tc.rest, func(t *testing.T) {
			line := fmt.Appendf(nil, `{"crc32c":"00000000","series":"a/b","time":"2026-11-29T18:00:00Z"%s`, tc.rest)
			seal(line)
			p, err := parse(line, names{})
			if err != nil {
				t.Fatal(err)
			}
			e, err := p.entry()
			want := new(probe.Result)
			if jsonErr := want.UnmarshalJSON(line); (err == nil) != (jsonErr == nil) {
				t.Fatalf("%v, of encoding/json %v", err, jsonErr)
			} else if diff := cmp.Diff(want, e.result); err == nil && diff != "" {
				t.Errorf("-of encoding/json +got:\n%s", diff)
			}
			if _, ok := scanResult(&p.rest, p.time); ok != tc.scanned {
				t.Errorf("scanned: %v", ok)
			}
		})
	}
}
