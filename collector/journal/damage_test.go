package journal

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/probe"
)

// lines are those of results from 1 on.
func lines(t testing.TB, results int) []byte {
	t.Helper()
	var text []byte
	for n := 1; n <= results; n++ {
		var err error
		if text, err = appendLine(text, entry{"chat-eu/chat", numbered(n)}); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

// TestLineForAnyTool checks that a line is JSON, and names what goodputctl probe names.
func TestLineForAnyTool(t *testing.T) {
	var doc struct {
		CRC32C, Series, Outcome string
		TTFT                    float64 `json:"ttft_seconds"`
	}
	if err := json.Unmarshal(lines(t, 1), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.CRC32C) != 8 || doc.Series != "chat-eu/chat" || doc.Outcome != "good" || doc.TTFT != 0.200000001 {
		t.Errorf("%+v", doc)
	}
}

// TestCutAtEveryByte cuts a journal anywhere in its last two lines, as a kill or a power cut might. What was whole comes
// back, and Open knows what to cut off.
func TestCutAtEveryByte(t *testing.T) {
	whole := lines(t, 4)
	var got batch
	read := newReader(func(lines []byte) { got = decode(lines, time.Time{}) }) // so few are one batch
	for end := len(lines(t, 2)); end <= len(whole); end++ {
		kept := bytes.Count(whole[:end], []byte{'\n'})
		torn := int64(end - (bytes.LastIndexByte(whole[:end], '\n') + 1))
		read.torn = 0
		if err := read.read(bytes.NewReader(whole[:end])); err != nil {
			t.Fatal(err)
		}
		if list := numbers(t, got.results()); !slices.Equal(list, count(1, kept)) || got.damaged > 0 || read.torn != torn {
			t.Fatalf("cut at %d: %v, %d damaged, %d bytes torn, want %d", end, list, got.damaged, read.torn, torn)
		}
		if found, err := lastLineEnd(bytes.NewReader(whole[:end]), int64(end)); err != nil || found != int64(end)-torn {
			t.Fatalf("cut at %d: the last line ends at %d, %v; want %d bytes torn", end, found, err, torn)
		}
	}
}

// TestAppendAfterCut checks one cut through Open, where a line is torn, and one where nothing but a torn line is left.
func TestAppendAfterCut(t *testing.T) {
	for _, whole := range []int{0, 1} {
		path := filepath.Join(t.TempDir(), "results.jsonl")
		if err := os.WriteFile(path, lines(t, whole+1)[:len(lines(t, whole))+100], 0o600); err != nil {
			t.Fatal(err)
		}
		j := mustOpen(t, Options{Path: path})
		appendNumbered(t, j, 5, 6)
		mustClose(t, j)
		if torn := j.Stats().TornBytes; torn != 100 {
			t.Errorf("%d bytes torn", torn)
		}
		got, sum := replayAll(t, path)
		if diff := cmp.Diff(append(count(1, whole), 5, 6), numbers(t, got)); diff != "" || sum.Damaged+int(sum.TornBytes) > 0 {
			t.Errorf("%+v, -want +got:\n%s", sum, diff)
		}
	}
}

// TestLongTailIsCut checks a tail of zeros, as some file systems leave after a power cut.
func TestLongTailIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	text := append(lines(t, 2), make([]byte, 3*maxLine)...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, sum := replayAll(t, path); len(got) != 2 || sum.TornBytes != 3*maxLine {
		t.Errorf("%d results, %+v", len(got), sum)
	}
	mustClose(t, mustOpen(t, Options{Path: path}))
	if want := int64(len(lines(t, 2))); fileSize(t, path) != want {
		t.Errorf("%d bytes left of %d", fileSize(t, path), want)
	}
}

// TestEveryFlippedByteIsNoticed damages each byte of the middle line, in three ways.
func TestEveryFlippedByteIsNoticed(t *testing.T) {
	whole := lines(t, 3)
	start, end := len(lines(t, 1)), len(lines(t, 2))-1
	for at := start; at < end; at++ {
		for _, flip := range []byte{0x01, 0x20, 0xff} { // the second one changes upper and lower case
			text := slices.Clone(whole)
			text[at] ^= flip
			b := decode(text, time.Time{})
			if diff := cmp.Diff([]int{1, 3}, numbers(t, b.results())); diff != "" || b.damaged == 0 {
				t.Fatalf("byte %d of the line by %#x: %d damaged, -want +got:\n%s", at-start, flip, b.damaged, diff)
			}
		}
	}
}

func TestDamagedLinesAreLeftOut(t *testing.T) {
	whole := lines(t, 2)
	first, second := whole[:len(lines(t, 1))], whole[len(lines(t, 1)):]
	unknown := []byte(`{"crc32c":"00000000","series":"a/b","time":"2026-11-29T18:00:00Z","outcome":"splendid"}`)
	seal(unknown)
	for name, between := range map[string]string{
		"text":                 "no JSON\n",
		"JSON":                 "{}\n",
		"a long line":          string(bytes.Repeat([]byte{'x'}, 5*maxLine)) + "\n",
		"two lines in one":     string(first[:200]) + string(first),
		"an outcome of others": string(unknown) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "results.jsonl")
			if err := os.WriteFile(path, slices.Concat(first, []byte(between), second), 0o600); err != nil {
				t.Fatal(err)
			}
			got, sum := replayAll(t, path)
			if diff := cmp.Diff(count(1, 2), numbers(t, got)); diff != "" || sum.Damaged != 1 || sum.TornBytes != 0 {
				t.Errorf("%+v, -want +got:\n%s", sum, diff)
			}
		})
	}
}

// FuzzParse checks that no line is too strange, that every line says what encoding/json reads in it, and that what is
// taken for a result is one that comes back equal.
func FuzzParse(f *testing.F) {
	for line := range bytes.Lines(lines(f, 3)) {
		f.Add(bytes.TrimSuffix(line, []byte{'\n'}))
	}
	line, err := appendLine(nil, entry{"chat-eu/chat", fullResult()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.TrimSuffix(line, []byte{'\n'}))
	f.Add([]byte(`{"crc32c":"00000000","series":"\u0061/b","time":"2026-11-29T18:00:00Z","outcome":"good","ttft_seconds":1e300}`))
	f.Add([]byte(lineStart))
	f.Fuzz(func(t *testing.T, line []byte) {
		_, _ = parse(line, nil)
		if len(line) < len(lineStart)+sumDigits+len(sumEnd) || bytes.ContainsRune(line, '\n') {
			return
		}
		line = slices.Clone(line)
		seal(line) // or the fuzzer would never come further
		p, err := parse(line, names{})
		if err != nil {
			return
		}
		e, err := p.entry()
		want := new(probe.Result)
		if jsonErr := want.UnmarshalJSON(line); (err == nil) != (jsonErr == nil) {
			t.Fatalf("%q: %v, of encoding/json %v", line, err, jsonErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, e.result); diff != "" {
			t.Fatalf("%q: -of encoding/json +got:\n%s", line, diff)
		}
		again, err := appendLine(nil, e)
		if err != nil || !e.result.Time.Equal(p.time) {
			return
		}
		b := decode(again, p.time)
		if b.damaged > 0 || len(b.entries) != 1 {
			t.Fatalf("%q became %q, which is none", line, again)
		}
		e.result.Text, e.result.Error = cut(e.result.Text), cut(e.result.Error)
		if diff := cmp.Diff(e.result, b.entries[0].result); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
