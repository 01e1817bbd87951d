package workload

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
)

func TestTracesOfEachForm(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		file   string
		format string
		want   Trace
	}{
		{"azure_2023.csv", "azure", Trace{Entries: []TraceEntry{
			{At: 0, InputTokens: 374, OutputTokens: 44},
			{At: 1250*ms + 100*time.Nanosecond, InputTokens: 2396, OutputTokens: 9},
			{At: 2750 * ms, InputTokens: 20, OutputTokens: 210},
		}}},
		{"azure_2024.csv", "azure", Trace{Entries: []TraceEntry{
			{At: 0, InputTokens: 1500, OutputTokens: 80},
			{At: 250 * ms, InputTokens: 1700, OutputTokens: 1},
		}}},
		{"azure_2025_multimodal.csv", "azure", Trace{Entries: []TraceEntry{
			{At: 0, InputTokens: 900, OutputTokens: 77},
			{At: 125 * ms, InputTokens: 31, OutputTokens: 12},
		}}},
		{"burstgpt.csv", "burstgpt", Trace{LeftOut: 1, Entries: []TraceEntry{
			{At: 0, InputTokens: 472, OutputTokens: 18},
			{At: 40 * time.Second, InputTokens: 1087, OutputTokens: 230},
			{At: 113 * time.Second, InputTokens: 417, OutputTokens: 276},
		}}},
		{"burstgpt_sessions.csv", "burstgpt", Trace{Entries: []TraceEntry{
			{At: 0, InputTokens: 210, OutputTokens: 64},
			{At: 500 * ms, InputTokens: 33, OutputTokens: 5},
		}}},
		{"mooncake.jsonl", "mooncake", Trace{Entries: []TraceEntry{
			{At: 0, InputTokens: 1300, OutputTokens: 50, Prefix: []int{0, 1, 2}},
			{At: 0, InputTokens: 1100, OutputTokens: 490, Prefix: []int{0, 1, 3}},
			{At: 3052 * ms, InputTokens: 700, OutputTokens: 7, Prefix: []int{4, 5}},
		}}},
	}
	for _, tt := range tests {
		content, err := os.ReadFile(filepath.Join("testdata", tt.file))
		if err != nil {
			t.Fatal(err)
		}
		tt.want.Format = tt.format
		variants := map[string]struct{ content, format string }{
			"named":                          {string(content), tt.format},
			"told by its first line":         {string(content), ""},
			"with a byte order mark":         {"\ufeff" + string(content), ""},
			"with the line ends of Windows":  {strings.ReplaceAll(string(content), "\n", "\r\n"), ""},
			"without an end of line":         {strings.TrimSuffix(string(content), "\n"), ""},
			"with blank lines at both sides": {"\n\n" + string(content) + "\n\n", ""},
		}
		for name, v := range variants {
			t.Run(tt.file+" "+name, func(t *testing.T) {
				got, err := ReadTrace(strings.NewReader(v.content), v.format)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(&tt.want, got); diff != "" {
					t.Errorf("trace (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestEntriesAreSortedByTime(t *testing.T) {
	trace, err := ReadTrace(strings.NewReader("Timestamp,Request tokens,Response tokens\n9,1,1\n7.5,2,2\n8,3,3\n7.5,4,4\n"), "burstgpt")
	if err != nil {
		t.Fatal(err)
	}
	want := []TraceEntry{
		{At: 0, InputTokens: 2, OutputTokens: 2},
		{At: 0, InputTokens: 4, OutputTokens: 4},
		{At: time.Second / 2, InputTokens: 3, OutputTokens: 3},
		{At: 1500 * time.Millisecond, InputTokens: 1, OutputTokens: 1},
	}
	if diff := cmp.Diff(want, trace.Entries); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestTracesThatCannotBeRead(t *testing.T) {
	const (
		azure    = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
		burstGPT = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
		request  = `{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [0]}` + "\n"
	)
	tests := []struct {
		name, content, format, want string
	}{
		{"nothing", "", "", "the trace is empty"},
		{"nothing but blank lines", "\n \n", "azure", "the trace is empty"},
		{"unknown format", azure, "sharegpt", `unknown format of traces "sharegpt": it must be one of azure (CSV with the columns TIMESTAMP, `},
		{"unknown first line", "time,tokens\n1,2\n", "", "by its first line this is no trace of a known format: it must be one of azure ("},
		{"a missing column", "TIMESTAMP,ContextTokens\n2023-11-16 10:00:00,5\n", "azure", `azure trace: the column "GeneratedTokens" is missing: the first line has TIMESTAMP, ContextTokens`},
		{"no header", "2023-11-16 10:00:00,5,5\n", "azure", `azure trace: the column "TIMESTAMP" is missing: the first line has 2023-11-16 10:00:00, 5, 5`},
		{"a missing field", azure + "2023-11-16 10:00:00,5,5\n\n2023-11-16 10:00:00,5\n", "", "azure trace: line 4: not as many fields as the first line has columns"},
		{"an open quote", azure + "\"2023-11-16 10:00:00,5,5\n", "", "azure trace: line 2: extraneous or missing \" in quoted-field"},
		{"no time", azure + "yesterday,5,5\n", "", `azure trace: line 2: TIMESTAMP: "yesterday" is not a time such as 2023-11-16 18:15:46.68059`},
		{"a time before the epoch", azure + "1823-11-16 10:00:00,5,5\n", "", "azure trace: line 2: the time is negative, or a hundred years away"},
		{"no number", azure + "2023-11-16 10:00:00,five,5\n", "", `azure trace: line 2: ContextTokens: "five" is not a whole number of tokens`},
		{"half a token", burstGPT + "5,m,5,5.5,10,API log\n", "", `burstgpt trace: line 2: Response tokens: "5.5" is not a whole number of tokens`},
		{"a negative length", burstGPT + "5,m,5,5,10,API log\n5,m,5,-5,10,API log\n", "", "burstgpt trace: line 3: an answer of -5 tokens: it must be 0 to 10000000"},
		{"a length too long", burstGPT + "5,m,10000001,5,10,API log\n", "", "burstgpt trace: line 2: a prompt of 10000001 tokens: it must be 0 to 10000000"},
		{"a negative time", burstGPT + "-5,m,5,5,10,API log\n", "", `burstgpt trace: line 2: Timestamp: "-5" is not a number of seconds, 0 or more`},
		{"a time that is no number", burstGPT + "NaN,m,5,5,10,API log\n", "", `burstgpt trace: line 2: Timestamp: "NaN" is not a number of seconds, 0 or more`},
		{"an infinite time", burstGPT + "Inf,m,5,5,10,API log\n", "", "burstgpt trace: line 2: the time is negative, or a hundred years away"},
		{"only failures", burstGPT + "5,m,5,0,5,API log\n6,m,0,5,5,API log\n", "", "burstgpt trace: nothing to replay: none of its 2 requests has tokens in both prompt and answer"},
		{"only a header", burstGPT, "", "burstgpt trace: nothing to replay: it has no requests"},
		{"no JSON", request + "{timestamp: 0}\n", "", "mooncake trace: line 2: not a JSON object: invalid character 't'"},
		{"two objects in a line", "\n" + strings.TrimSpace(request) + request, "", "mooncake trace: line 2: not a JSON object: invalid character '{' after"},
		{"JSON of the wrong type", strings.Replace(request, "[0]", `["a"]`, 1), "", "mooncake trace: line 1: hash_ids must be of type int, not string"},
		{"no object", "[]\n", "mooncake", "mooncake trace: line 1: not a JSON object: "},
		{"no time in JSON", `{"input_length": 5, "output_length": 5}`, "", "mooncake trace: line 1: timestamp is missing: the arrival in milliseconds"},
		{"no input length", `{"timestamp": 0, "output_length": 5}`, "", "mooncake trace: line 1: input_length is missing"},
		{"no output length", `{"timestamp": 0, "input_length": 5}`, "", "mooncake trace: line 1: output_length is missing"},
		{"a negative time in JSON", `{"timestamp": -1, "input_length": 5, "output_length": 5}`, "", "mooncake trace: line 1: the time is negative"},
		{"a line without end", request + "{" + strings.Repeat(" ", maxJSONLine), "", "mooncake trace: line 2: longer than 1048576 bytes: is each request in a line of its own?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadTrace(strings.NewReader(tt.content), tt.format)
			if !strings.HasPrefix(fmt.Sprint(err), tt.want) {
				t.Errorf("error\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
}

func TestReadErrorIsReported(t *testing.T) {
	broken := errors.New("broken disk")
	const request = `{"timestamp": 0, "input_length": 5, "output_length": 5}` + "\n"
	for _, content := range []string{"", "TIMESTAMP,ContextTokens,GeneratedTokens\n", strings.Repeat(request, 100)} {
		r := iotest.OneByteReader(strings.NewReader(content))
		if _, err := ReadTrace(&failing{r, broken}, ""); !errors.Is(err, broken) {
			t.Errorf("after %.20q: error %v, want that of the reader", content, err)
		}
	}
}

// failing is a reader whose end is an error.
type failing struct {
	r interface{ Read(p []byte) (int, error) }
	error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil {
		err = f.error
	}
	return n, err
}

func TestScaleDividesTimes(t *testing.T) {
	entries := []TraceEntry{{At: 0}, {At: 3 * time.Second}, {At: time.Hour}}
	if err := Scale(entries, 1.5); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]TraceEntry{{At: 0}, {At: 2 * time.Second}, {At: 40 * time.Minute}}, entries); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	for _, speed := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if err := Scale(entries, speed); err == nil {
			t.Errorf("a speed of %v is no error", speed)
		}
	}
}

// prompts of recorded requests can be had of any source.
func traceSource(t *testing.T, keepCache bool) *Source {
	t.Helper()
	return newSource(t, &config.Scenario{MaxTokens: 256, KeepCache: keepCache, Prompts: []config.Prompt{{Text: "a", Weight: 1}}}, 1)
}

func TestSizedPromptsHaveTheirLengths(t *testing.T) {
	s := traceSource(t, false)
	p := s.Sized(700, 33)
	if p.OutputTokens != 33 || p.MaxTokens != 0 || !strings.Contains(p.Text, "about 33 words") {
		t.Errorf("%d output tokens pinned, a ceiling of %d, asked %q", p.OutputTokens, p.MaxTokens, p.Text)
	}
	if got := tokensOf(withoutNonce(t, p.Text)) + nonceTokens; got != 700 {
		t.Errorf("about %d tokens, want 700", got)
	}
	if withoutNonce(t, p.Text) == withoutNonce(t, s.Sized(700, 33).Text) {
		t.Error("two prompts of one length are the same")
	}
	if p := s.Sized(700, 0); p.OutputTokens != 0 || p.MaxTokens != 256 {
		t.Errorf("%d output tokens pinned, a ceiling of %d; want the scenario's", p.OutputTokens, p.MaxTokens)
	}
}

// tokensOf returns the length of a made-up text without marks in tokens.
func tokensOf(text string) int {
	words, _, _ := strings.Cut(text, "\n\nWrite a story")
	return len(strings.Fields(words)) + taskTokens
}

func TestRecordedBlocksAreTheSameText(t *testing.T) {
	s := traceSource(t, false)
	text := func(input int, ids ...int) []string {
		p := s.Recorded(TraceEntry{InputTokens: input, OutputTokens: 10, Prefix: ids})
		text := withoutNonce(t, p.Text)
		if got := tokensOf(text) + nonceTokens; got != input {
			t.Errorf("about %d tokens, want %d", got, input)
		}
		return strings.Fields(text)
	}
	run := s.Recorded(TraceEntry{InputTokens: 600, OutputTokens: 10, Prefix: []int{0, 1}}).Text[:14]
	again := s.Recorded(TraceEntry{InputTokens: 600, OutputTokens: 10, Prefix: []int{7}}).Text[:14]
	if run != again {
		t.Errorf("prompts of one run begin with %q and %q", run, again)
	}
	one, same, other := text(1536, 0, 1, 2), text(1536, 0, 1, 2), text(1536, 0, 3, 2)
	if diff := cmp.Diff(one, same); diff != "" {
		t.Errorf("one request recorded twice is asked in two ways:\n%s", diff)
	}
	if n := common(one, other); n < blockTokens || n > blockTokens+10 {
		t.Errorf("prompts with one block in common share %d words, want %d and hardly more", n, blockTokens)
	}
	if n := common(text(700, 0, 1), one); n != 700-taskTokens-nonceTokens {
		t.Errorf("the shorter of two prompts shares %d words, want all", n)
	}
	// Words beyond the recorded blocks are nobody else's.
	if n := common(text(900, 0), text(900, 0)); n < blockTokens || n > blockTokens+10 {
		t.Errorf("prompts longer than their blocks share %d words, want %d and hardly more", n, blockTokens)
	}
	if n := common(text(530, -4), text(530, math.MaxInt)); n > 10 {
		t.Errorf("two blocks have %d words in common", n)
	}
}

// common returns how many words two texts begin with alike.
func common(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func TestRecordedBlocksAreNewInEachRun(t *testing.T) {
	e := TraceEntry{InputTokens: 600, OutputTokens: 10, Prefix: []int{0, 1}}
	one, again := traceSource(t, false).Recorded(e).Text, traceSource(t, false).Recorded(e).Text
	if one[:12] == again[:12] {
		t.Errorf("a second run asks what a cache may still have: both begin with %.40q", one)
	}
	if kept := traceSource(t, true).Recorded(e).Text; kept != traceSource(t, true).Recorded(e).Text {
		t.Error("two runs with one seed that keep caches ask differently")
	}
}
