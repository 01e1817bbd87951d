package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// csvTrace is a trace in comma-separated values under a line with the names of the columns. Columns may stand in any
// order, with others among them.
type csvTrace struct {
	at, input, output string // names of columns
	parseTime         func(string) (time.Duration, error)
}

func (c csvTrace) format(name string) traceFormat {
	return traceFormat{
		name: name,
		what: fmt.Sprintf("CSV with the columns %s, %s, %s", c.at, c.input, c.output),
		recognizes: func(line []byte) bool {
			return strings.Contains(string(line), c.input) && strings.Contains(string(line), c.output)
		},
		read: c.read,
	}
}

func (c csvTrace) read(r io.Reader, add func(line int, e TraceEntry) error) error {
	records := csv.NewReader(r)
	records.ReuseRecord = true
	header, err := records.Read()
	if err != nil {
		return csvError(err)
	}
	header = slices.Clone(header)
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	var columns [3]int
	for i, name := range []string{c.at, c.input, c.output} {
		if columns[i] = slices.Index(header, name); columns[i] < 0 {
			return fmt.Errorf("the column %q is missing: the first line has %s", name, strings.Join(header, ", "))
		}
	}
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return csvError(err)
		}
		line, _ := records.FieldPos(0)
		e, err := c.entry(record[columns[0]], record[columns[1]], record[columns[2]])
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if err := add(line, e); err != nil {
			return err
		}
	}
}

func (c csvTrace) entry(at, input, output string) (e TraceEntry, err error) {
	if e.At, err = c.parseTime(strings.TrimSpace(at)); err != nil {
		return e, fmt.Errorf("%s: %w", c.at, err)
	}
	if e.InputTokens, err = parseTokens(input); err != nil {
		return e, fmt.Errorf("%s: %w", c.input, err)
	}
	if e.OutputTokens, err = parseTokens(output); err != nil {
		return e, fmt.Errorf("%s: %w", c.output, err)
	}
	return e, nil
}

func parseTokens(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a whole number of tokens", s)
	}
	return n, nil
}

// csvError puts an error of encoding/csv into the words of the other errors of traces.
func csvError(err error) error {
	var at *csv.ParseError
	switch {
	case !errors.As(err, &at):
		return err
	case errors.Is(err, csv.ErrFieldCount):
		return fmt.Errorf("line %d: not as many fields as the first line has columns", at.Line)
	}
	return fmt.Errorf("line %d: %w", at.Line, at.Err)
}
