package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// mooncakeTrace is the form of the traces of Mooncake, JSON lines:
//
//	{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}
//
// Times are milliseconds. Each hash stands for a block of 512 tokens together with all before it, the last for what
// is left of the prompt.
var mooncakeTrace = traceFormat{
	name:       "mooncake",
	what:       "JSON lines with timestamp, input_length, output_length, hash_ids",
	recognizes: func(line []byte) bool { return line[0] == '{' },
	read:       readMooncake,
}

type mooncakeJSON struct {
	Timestamp    *float64 `json:"timestamp"`
	InputLength  *int     `json:"input_length"`
	OutputLength *int     `json:"output_length"`
	HashIDs      []int    `json:"hash_ids"`
}

// maxJSONLine bounds the lines of JSON, in bytes. A prompt of a million tokens has 2,000 blocks in one.
const maxJSONLine = 1 << 20

func readMooncake(r io.Reader, add func(line int, e TraceEntry) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxJSONLine)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		e, err := mooncakeEntry(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := add(n, e); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: longer than %d bytes: is each request in a line of its own?", n+1, maxJSONLine)
	}
	return lines.Err()
}

func mooncakeEntry(line []byte) (TraceEntry, error) {
	var raw mooncakeJSON
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(line, &raw); {
	case errors.As(err, &wrong) && wrong.Field != "":
		return TraceEntry{}, fmt.Errorf("%s must be of type %s, not %s", wrong.Field, wrong.Type, wrong.Value)
	case err != nil:
		return TraceEntry{}, fmt.Errorf("not a JSON object: %w", err)
	}
	switch {
	case raw.Timestamp == nil:
		return TraceEntry{}, errors.New("timestamp is missing: the arrival in milliseconds")
	case raw.InputLength == nil:
		return TraceEntry{}, errors.New("input_length is missing: the tokens of the prompt")
	case raw.OutputLength == nil:
		return TraceEntry{}, errors.New("output_length is missing: the tokens of the answer")
	}
	return TraceEntry{
		At:          seconds(*raw.Timestamp / 1000),
		InputTokens: *raw.InputLength, OutputTokens: *raw.OutputLength,
		Prefix: raw.HashIDs,
	}, nil
}
