package differential

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"goodput_exporter/probe/arrival"
	"goodput_exporter/probe/probetest"
	"goodput_exporter/probe/stream"
	"goodput_exporter/probe/wire"
)

// caseFiles are all the scripted answers.
var caseFiles = []string{
	"../../probetest/testdata/cases.yaml", "../../probetest/testdata/more_cases.yaml", "../../probetest/testdata/protocol_cases.yaml",
}

// answer is what both sides read out of a stream. A count that is not told is 0.
type answer struct {
	Text, Finish  string
	Input, Output int64
	Error         string // of the SDK: it could not read the stream to its end
}

// wellFormed returns the cases of a protocol that are complete streams, by id.
func wellFormed(t *testing.T, protocols ...string) map[string]probetest.Case {
	t.Helper()
	found := map[string]probetest.Case{}
	for _, file := range caseFiles {
		cases, err := probetest.LoadCases(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			outcome := c.Expect["outcome"]
			complete := outcome == "good" || outcome == "slo_violation"
			x := c.Connections[0].Requests[0]
			plain := len(c.Connections) == 1 && len(c.Connections[0].Requests) == 1 && x.HTTP.Status == 200
			if complete && plain && c.Stream && !slices.Contains(c.Needs, "accept_not_streamed") && slices.Contains(protocols, c.Protocol) && !strings.HasPrefix(c.BasePath, "/model/") {
				found[c.ID] = c
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no case of %v", protocols)
	}
	return found
}

func bodyOf(c probetest.Case) []byte {
	var body []byte
	for _, step := range c.Connections[0].Requests[0].Script {
		body = append(body, step.Write...)
	}
	return body
}

// ours reads a body as a probe does.
func ours(t *testing.T, c probetest.Case) answer {
	t.Helper()
	p, err := wire.New(c.Protocol, &url.URL{Scheme: "http", Host: "llm", Path: c.BasePath})
	if err != nil {
		t.Fatal(err)
	}
	d := p.Decoder(wire.Request{Stream: true})
	var a answer
	done := false
	emit := func(f stream.Frame) error {
		if done {
			return nil
		}
		ev, err := d.Decode(f)
		switch {
		case err != nil && f.Unterminated:
			return nil
		case err != nil:
			return err
		}
		done = ev.Done
		a.Text += string(ev.Text)
		if a.Finish == "" {
			a.Finish = ev.Finish
		}
		if u := ev.Usage; u != nil {
			count(&a.Input, u.Input)
			count(&a.Output, u.Output)
		}
		return nil
	}
	framer := &stream.Detect{Framing: p.Traits().Framing, Streamed: true}
	if err := framer.Feed(bodyOf(c), arrival.Stamp{}, emit); err != nil {
		t.Fatal(err)
	}
	if err := framer.Close(emit); err != nil {
		t.Fatal(err)
	}
	return a
}

func count(into *int64, n *int) {
	if n != nil {
		*into = int64(*n)
	}
}
