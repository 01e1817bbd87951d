package probe_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/google/go-cmp/cmp"

	"goodput_exporter/probe/probetest"
)

var update = flag.Bool("update", false, "Write the event streams of the cases anew.")

// eventStreams are the bodies of the cases that speak AWS' event stream, write by write, message by message:
//
//	[SPOIL] TYPE PAYLOAD
//
// TYPE is an event's; one with an exclamation mark is an exception's, and "error!" is an error of the framing. SPOIL is
// "prelude" or "crc" where a checksum is wrong, "head" or "tail" where only that part of the message is written.
var eventStreams = map[string][]string{
	"P2.35": {
		claude(`{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}`),
		claude(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Rain"}}`),
		claude(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" falls"}}`),
		claude(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`) + "\n" +
			claude(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":9,"outputTokenCount":2,"invocationLatency":250,"firstByteLatency":120}}`),
	},
	"P2.36": {
		claude(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Rain"}}`),
		`throttlingException! {"message":"slow down"}`,
	},
	"P5.1": {converseStart, oak, elm, stop + "\n" + metadata},
	"P5.2": {
		converseStart + "\nhead " + oak,
		"tail " + oak + "\n" + elm + "\nhead " + stop,
		"tail " + stop + "\n" + metadata,
	},
	"P5.3": {oak, `messageStop {"stopReason":"max_tokens"}` + "\n" + `metadata {"usage":{"inputTokens":5,"outputTokens":16,"totalTokens":21}}`},
	"P5.4": {
		`contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}},"p":"ab"}` + "\n" +
			`contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}},"p":"a"}`,
		oak,
		stop + "\n" + `metadata {"usage":{"inputTokens":5,"outputTokens":4,"totalTokens":9}}`,
	},
	"P5.5": {
		`contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"name":"look","toolUseId":"t"}}}` + "\n" +
			`contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":"{}"}}}`,
		`messageStop {"stopReason":"tool_use"}` + "\n" + `metadata {"usage":{"inputTokens":5,"outputTokens":7,"totalTokens":12}}`,
	},
	"P5.6":  {oak, `messageStop {"stopReason":"guardrail_intervened"}` + "\n" + metadata},
	"P5.7":  {`messageStop {"stopReason":"content_filtered"}` + "\n" + metadata},
	"P5.8":  {oak, `throttlingException! {"message":"why"}`},
	"P5.9":  {oak, `serviceUnavailableException! {"message":"why"}`},
	"P5.10": {oak, `internalServerException! {"message":"why"}`},
	"P5.11": {oak, `modelStreamErrorException! {"message":"why","originalStatusCode":429,"originalMessage":"x"}`},
	"P5.12": {oak, `validationException! {"message":"why"}`},
	"P5.13": {`throttlingException! {"message":"slow down"}`},
	"P5.14": {`futureException! {}`},
	"P5.15": {`error! gone`},
	"P5.16": {oak, "prelude " + elm},
	"P5.17": {oak, "crc " + elm},
	"P5.18": {oak, "head " + elm},
	"P5.19": {oak, "head " + elm},
	"P5.20": {converseStart + "\n" + oak + "\n" + `contentBlockStop {"contentBlockIndex":0}`},
	"P5.21": {oak},
	"P5.22": {oak + "\n" + stop},
	"P5.23": {"initial-response \n" + `futureEvent {"x":1,"p":"abcdef"}` + "\n" + oak, `contentBlockStop {"contentBlockIndex":0,"p":"abcdefghijklmnopqrstuvwxyz"}` + "\n" + stop + "\n" + `metadata {"usage":{"inputTokens":5,"outputTokens":1},"p":"abc"}`},
	"P5.30": {`messageStop {"stopReason":"malformed_model_output"}`},
}

const (
	converseStart = `messageStart {"role":"assistant","p":"abcd"}`
	oak           = `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"oak"},"p":"abcdefghij"}`
	elm           = `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":" elm"},"p":"abc"}`
	stop          = `messageStop {"stopReason":"end_turn","p":"ab"}`
	metadata      = `metadata {"usage":{"inputTokens":5,"outputTokens":2,"totalTokens":7},"metrics":{"latencyMs":250}}`
)

// claude is an event of Anthropic's in a chunk of Bedrock's.
func claude(event string) string {
	return `chunk {"bytes":"` + base64.StdEncoding.EncodeToString([]byte(event)) + `","p":"abcdef"}`
}

// eventStream builds one write of eventStreams.
func eventStream(t *testing.T, text string) []byte {
	t.Helper()
	var written []byte
	for line := range strings.SplitSeq(text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		spoil := ""
		switch word {
		case "prelude", "crc", "head", "tail":
			spoil = word
			word, rest, _ = strings.Cut(rest, " ")
		}
		m := message(t, word, rest)
		switch spoil {
		case "prelude":
			m[8] ^= 1
		case "crc":
			m[len(m)-1] ^= 1
		case "head":
			m = m[:len(m)/2]
		case "tail":
			m = m[len(m)/2:]
		}
		written = append(written, m...)
	}
	return written
}

// message encodes one message of the event stream.
func message(t *testing.T, name, payload string) []byte {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	set := func(name, value string) { m.Headers.Set(name, eventstream.StringValue(value)) }
	exception, failed := strings.CutSuffix(name, "!")
	switch {
	case exception == "error":
		set(":message-type", "error")
		set(":error-code", "InternalFailure")
		set(":error-message", payload)
		m.Payload = nil
	case failed:
		set(":message-type", "exception")
		set(":exception-type", exception)
		set(":content-type", "application/json")
	default:
		set(":message-type", "event")
		set(":event-type", name)
		set(":content-type", "application/json")
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What the cases write in base64 is what eventStreams says.
func TestEventStreamCases(t *testing.T) {
	if *update {
		updateEventStreams(t)
	}
	cases, err := probetest.LoadCases(protocolCasesFile)
	if err != nil {
		t.Fatal(err)
	}
	left := len(eventStreams)
	for _, c := range cases {
		streams, ok := eventStreams[c.ID]
		if !ok {
			continue
		}
		left--
		var want, got [][]byte
		for _, s := range streams {
			want = append(want, eventStream(t, s))
		}
		for _, step := range c.Connections[0].Requests[0].Script {
			if step.Do == probetest.DoWrite {
				got = append(got, step.Write)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -update writes it (-want +got):\n%s", c.ID, diff)
		}
	}
	if left != 0 {
		t.Errorf("%d event streams are of no case", left)
	}
}

var base64Write = regexp.MustCompile(`write_b64: [^}]*`)

func updateEventStreams(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(protocolCasesFile)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "  - id: ")
	for i, block := range blocks {
		id, _, _ := strings.Cut(block, "\n")
		streams, n := eventStreams[id], 0
		blocks[i] = base64Write.ReplaceAllStringFunc(block, func(old string) string {
			if n++; n > len(streams) {
				return old
			}
			return `write_b64: "` + base64.StdEncoding.EncodeToString(eventStream(t, streams[n-1])) + `"`
		})
	}
	if err := os.WriteFile(protocolCasesFile, []byte(strings.Join(blocks, "  - id: ")), 0o644); err != nil {
		t.Fatal(err)
	}
}
