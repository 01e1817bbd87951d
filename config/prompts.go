package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// promptJSON is one line of a prompts file.
type promptJSON struct {
	Prompt    *string   `json:"prompt"`
	Messages  []Message `json:"messages"`
	MaxTokens *int      `json:"max_tokens"`
	Weight    *float64  `json:"weight"`
	Expect    *string   `json:"expect"`
}

var promptKeys = []string{"prompt", "messages", "max_tokens", "weight", "expect"}

// ReadPrompts reads a prompts file that no configuration names. Its error is Errors where lines are wrong.
func ReadPrompts(file string) ([]Prompt, error) {
	var p problems
	prompts, err := readPrompts(file, &p)
	if err == nil && len(p.errors) > 0 {
		err = p.errors
	}
	return prompts, err
}

// readPrompts reads a prompts file: one JSON object a line, blank lines between them allowed. It reports what is
// wrong with the lines themselves; the error is for the key that names the file.
func readPrompts(file string, p *problems) ([]Prompt, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the prompts file %s: %w; paths are relative to the file that names them", file, cause(err))
	}
	p.files = append(p.files, file)
	var prompts []Prompt
	number, filled := 0, false
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		filled = true
		here := report{p, func(key string) Error { return Error{File: file, Line: number, Key: key} }}
		before := len(p.errors)
		prompt := parsePrompt(line, here)
		if len(p.errors) == before {
			prompts = append(prompts, prompt)
		}
	}
	if !filled {
		return nil, fmt.Errorf(`the prompts file %s is empty: write lines such as {"prompt": "Say hello."}`, file)
	}
	return prompts, nil
}

func parsePrompt(line []byte, r report) (p Prompt) {
	var raw promptJSON
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&raw)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object; write one object a line")
		}
	}
	if err != nil {
		r.errorf("", "%s", jsonMistake(err))
		return p
	}

	p = Prompt{Messages: raw.Messages, Weight: 1}
	if raw.Prompt != nil {
		p.Text = *raw.Prompt
	}
	if raw.MaxTokens != nil {
		p.MaxTokens = *raw.MaxTokens
		if p.MaxTokens == 0 {
			r.errorf("max_tokens", "must be at least 1; leave it out to take the scenario's")
		}
	}
	if raw.Weight != nil {
		p.Weight = *raw.Weight
	}
	if raw.Expect != nil {
		if p.Expect, err = regexp.Compile(*raw.Expect); err != nil {
			r.errorf("expect", "not a regular expression of RE2: %w", err)
		}
	}
	p.check(r, "")
	return p
}

// jsonMistake puts an error of encoding/json into the words of a prompts file.
func jsonMistake(err error) string {
	var wrong *json.UnmarshalTypeError
	if key, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		key = strings.Trim(key, `"`)
		return fmt.Sprintf("unknown key %q; %s", key, didYouMean(key, promptKeys))
	}
	if errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Sprintf(`must be an object such as {"prompt": "Say hello."}, not a JSON %s`, wrong.Value)
		}
		return fmt.Sprintf("%s must be of type %s, not %s", wrong.Field, wrong.Type, wrong.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "not JSON: the line ends inside the object; write each object in one line"
	}
	return "not JSON: " + err.Error()
}

// cause takes the path out of a file error whose message names it already.
func cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
