package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Trace is recorded traffic: when requests arrived, and how long they and their answers were.
type Trace struct {
	Format  string       // one of TraceFormats
	Entries []TraceEntry // by their times; at least one
	LeftOut int          // recorded requests that are not among them: those without tokens in the prompt or in the answer
}

// TraceEntry is one recorded request.
type TraceEntry struct {
	At                        time.Duration // since the first entry
	InputTokens, OutputTokens int           // at least 1 each
	// Prefix names the blocks of 512 tokens that the prompt consists of, the last of which may be shorter: equal
	// numbers are equal text. It is nil where the format does not record it.
	Prefix []int
}

// traceFormat reads one form of traces. All forms have one request a line.
type traceFormat struct {
	name string
	what string // how it is recognized, in words
	// recognizes tells the form by the first line that is not blank.
	recognizes func(line []byte) bool
	// read hands over one request after the other, with the number of its line and with the time since any instant
	// that is the same for all. Its own errors and those of add name the line.
	read func(r io.Reader, add func(line int, e TraceEntry) error) error
}

var traceFormats = []traceFormat{azureTrace, burstGPTTrace, mooncakeTrace}

// TraceFormats lists the names of the forms of traces that ReadTrace reads.
func TraceFormats() []string {
	names := make([]string, len(traceFormats))
	for i, f := range traceFormats {
		names[i] = f.name
	}
	return names
}

// ReadTrace reads a trace in one of TraceFormats; the empty format is told by the first line.
//
// Entries are sorted by their times, whatever their order in the file. A request without tokens in its prompt or its
// answer is left out and counted, since it failed or cannot be asked again: BurstGPT records failures as answers of
// 0 tokens. Anything else that is not of the format is an error, with the number of its line. The whole trace is held
// in memory, at about 50 bytes an entry.
func ReadTrace(r io.Reader, format string) (*Trace, error) {
	b := bufio.NewReader(r)
	if mark, _ := b.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = b.Discard(len(byteOrderMark))
	}
	line, err := peekLine(b)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	if len(line) == 0 {
		return nil, errors.New("the trace is empty")
	}
	f, err := traceFormatOf(format, line)
	if err != nil {
		return nil, err
	}
	t := &Trace{Format: f.name}
	err = f.read(b, func(line int, e TraceEntry) error {
		if err := e.check(); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if e.InputTokens == 0 || e.OutputTokens == 0 {
			t.LeftOut++
			return nil
		}
		t.Entries = append(t.Entries, e)
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s trace: %w", f.name, err)
	case len(t.Entries) == 0 && t.LeftOut > 0:
		return nil, fmt.Errorf("%s trace: nothing to replay: none of its %d requests has tokens in both prompt and answer", f.name, t.LeftOut)
	case len(t.Entries) == 0:
		return nil, fmt.Errorf("%s trace: nothing to replay: it has no requests", f.name)
	}
	slices.SortStableFunc(t.Entries, func(a, b TraceEntry) int { return cmp.Compare(a.At, b.At) })
	for start, i := t.Entries[0].At, 0; i < len(t.Entries); i++ {
		t.Entries[i].At -= start
	}
	return t, nil
}

const byteOrderMark = "\ufeff"

const (
	maxTraceTokens = 10_000_000 // of a prompt or an answer: no model takes as many
	maxTraceTime   = 100 * 365 * 24 * time.Hour
)

// check reports what no recorded request can be, as a mistake of the file.
func (e *TraceEntry) check() error {
	switch {
	case e.InputTokens < 0 || e.InputTokens > maxTraceTokens:
		return fmt.Errorf("a prompt of %d tokens: it must be 0 to %d", e.InputTokens, maxTraceTokens)
	case e.OutputTokens < 0 || e.OutputTokens > maxTraceTokens:
		return fmt.Errorf("an answer of %d tokens: it must be 0 to %d", e.OutputTokens, maxTraceTokens)
	case e.At < 0 || e.At > maxTraceTime:
		return errors.New("the time is negative, or a hundred years away: times count from any one instant up to now")
	}
	return nil
}

// peekLine returns the first line that is not blank, which remains to be read. It is empty where there is none.
func peekLine(b *bufio.Reader) ([]byte, error) {
	head, err := b.Peek(b.Size())
	for line := range bytes.Lines(head) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return nil, err
}

// traceFormatOf returns a format by its name, or by the first line where the name is empty.
func traceFormatOf(name string, line []byte) (traceFormat, error) {
	var known []string
	for _, f := range traceFormats {
		if name == f.name || name == "" && f.recognizes(line) {
			return f, nil
		}
		known = append(known, fmt.Sprintf("%s (%s)", f.name, f.what))
	}
	forms := strings.Join(known, ", ")
	if name != "" {
		return traceFormat{}, fmt.Errorf("unknown format of traces %q: it must be one of %s", name, forms)
	}
	return traceFormat{}, fmt.Errorf("by its first line this is no trace of a known format: it must be one of %s", forms)
}

// Scale makes a replay faster or slower: it divides the times of entries by speed, in place. 2 is twice as fast. Its
// error says that speed is not a number more than 0.
func Scale(entries []TraceEntry, speed float64) error {
	if !positive(speed) {
		return fmt.Errorf("a speed of %v: it must be a number more than 0, such as 2 for twice as fast", speed)
	}
	for i := range entries {
		entries[i].At = seconds(entries[i].At.Seconds() / speed)
	}
	return nil
}

// Sized returns a made-up prompt of about so many tokens, whose answer has a pinned length; with 0 output tokens, that
// of the scenario. It has no shared prefix.
func (s *Source) Sized(input, output int) Prompt {
	return s.Recorded(TraceEntry{InputTokens: input, OutputTokens: output})
}

// Recorded returns a made-up prompt of the lengths of a recorded request. Where its blocks are recorded, they have the
// same text in all prompts of this source, so that prefix caches answer as they did; where the scenario keeps caches, in
// those of all sources with its seed. Where they are not recorded, the prompt begins with a nonce, as others do.
func (s *Source) Recorded(e TraceEntry) Prompt {
	s.mu.Lock()
	seed := s.rng.Uint64()
	s.mu.Unlock()
	d := draft{input: e.InputTokens, output: e.OutputTokens, seed: seed}
	length := s.length.or(d.output)
	p := Prompt{MaxTokens: length.ceiling, OutputTokens: length.pinned}
	if len(e.Prefix) > 0 {
		p.Text = s.writer.recorded(d, e.Prefix, length)
	} else {
		p.Text = s.writer.first(d, length)
	}
	return p
}
