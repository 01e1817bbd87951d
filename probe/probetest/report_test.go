package probetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func get(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %v", url, response.Status, err)
	}
	return string(body)
}

// What GET /truth and GET /metrics say is what happened, also of requests that no model answered.
func TestEndpointTellsWhatItDid(t *testing.T) {
	e, c := start(t, Config{Keep: 4, Models: []Model{{Name: "m", OutputTokens: Fixed(3), Faults: []Fault{{Kind: FaultUnavailable, First: 2}}}}})
	before := time.Now()
	for _, path := range []string{"/chat/completions", "/chat/completions", "/completions"} { // the last lacks its prompt
		if _, _, err := post(t.Context(), c, e.URL()+path, fmt.Sprintf(chatRequest, "")); err != nil {
			t.Fatal(err)
		}
	}
	want := []Served{
		{Protocol: "openai-chat", Model: "m", Stream: true, Status: 200, InputTokens: 4, OutputTokens: 3},
		{Protocol: "openai-chat", Model: "m", Stream: true, Fault: FaultUnavailable, Status: 503, InputTokens: 4},
		{Protocol: "openai-completions", Status: 400},
	}
	var got []Served
	eventually(t, func() bool { // a handler tells at its end, which the client does not wait for
		got = nil
		for line := range strings.Lines(get(t, c, e.Root()+"/truth")) {
			var s Served
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			got = append(got, s)
		}
		return len(got) == len(want)
	})
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Served{}, "Truth")); diff != "" {
		t.Errorf("truths (-want +got):\n%s", diff)
	}
	if first := got[0]; first.Received.Before(before) || len(first.Writes) != 3 || first.Writes[0].Before(first.Received) {
		t.Errorf("the first request: %+v", first.Truth)
	}
	metrics := get(t, c, e.Root()+"/metrics")
	for _, line := range []string{
		`simulated_requests_total{fault="none",model="m",protocol="openai-chat",status="200"} 1`,
		`simulated_requests_total{fault="unavailable",model="m",protocol="openai-chat",status="503"} 1`,
		`simulated_requests_total{fault="none",model="",protocol="openai-completions",status="400"} 1`,
		`simulated_output_tokens_total{model="m",protocol="openai-chat"} 3`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s in:\n%s", line, metrics)
		}
	}
	if got := get(t, c, e.Root()+"/truth?id=nobody"); got != "" {
		t.Errorf("the truth of nobody: %s", got)
	}
}

// The truth is a ring: the newest requests, the oldest of them first.
func TestReportKeepsTheNewest(t *testing.T) {
	r := newReport(2)
	for n := range 5 {
		r.add(Served{InputTokens: n})
	}
	if got := []int{r.kept[r.next].InputTokens, r.kept[1-r.next].InputTokens}; len(r.kept) != 2 || got[0] != 3 || got[1] != 4 {
		t.Errorf("kept %v", got)
	}
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never was")
		}
	}
}

// Equal requests to equal endpoints get equal answers, whatever the protocol.
func TestEndpointIsDeterministic(t *testing.T) {
	answers := func(seed uint64) (all []string) {
		e, c := start(t, Config{Seed: seed, Models: []Model{{Name: "m", OutputTokens: Uniform(1, 30), Faults: []Fault{{Kind: FaultInternal, Rate: 0.3}}}}})
		for range 8 {
			_, body, err := post(t.Context(), c, e.Root()+"/v2/chat", `{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(body), `,"message"`) // the id is of its own
			all = append(all, rest)
			_, body, err = post(t.Context(), c, e.URL()+"/embeddings", `{"model":"m","input":["hello"]}`)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(body))
		}
		return all
	}
	if diff := cmp.Diff(answers(1), answers(1)); diff != "" {
		t.Errorf("the same seed gave other answers:\n%s", diff)
	}
	if cmp.Equal(answers(1), answers(2)) {
		t.Error("another seed gave the same answers")
	}
}

// No base URL is of a protocol that is not served there, and each protocol has one.
func TestBasesAreRoutes(t *testing.T) {
	served := map[string]bool{}
	for _, r := range routes {
		served[r.protocol] = true
	}
	based := map[string]bool{}
	for _, b := range Bases("http://x", "m") {
		based[b.Protocol] = true
	}
	if diff := cmp.Diff(served, based); diff != "" {
		t.Errorf("protocols (-served +listed):\n%s", diff)
	}
}
