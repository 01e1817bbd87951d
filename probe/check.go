package probe

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"goodput_exporter/config"
)

// check checks the visible text of a complete answer.
func (a *attempt) check() *failure {
	err := a.checkText(a.answer.text)
	if err == nil {
		return nil
	}
	return fail(InvalidResponse, ReasonContentCheck, err)
}

// checkText says what is wrong with a text. Of one that is too long to be kept whole, only the beginning is known.
func (a *attempt) checkText(text []byte) error {
	c := a.scenario.Check
	visible := bytes.TrimSpace(text)
	switch {
	case a.scenario.RequireText && len(visible) == 0:
		return errors.New("the answer has no visible text")
	case a.expect != nil && !a.expect.Match(text):
		return fmt.Errorf("the text does not match %q", a.expect)
	case c.MinLength > 0 && utf8.RuneCount(visible) < c.MinLength:
		return fmt.Errorf("the text has %d characters, not at least %d", utf8.RuneCount(visible), c.MinLength)
	case a.answer.clipped:
		return nil
	}
	if err := checkRepetition(text, c.MaxRepetition); err != nil {
		return err
	}
	return checkJSON(visible, c, a.schema)
}

// longestUnit is the longest text that a stuck model is believed to repeat, in bytes.
const longestUnit = 200

// checkRepetition says that a text ends with the same short thing more than limit times in a row; 0 is no limit. The
// last time may be cut.
func checkRepetition(text []byte, limit int) error {
	for unit := 1; limit > 0 && unit <= longestUnit && unit*limit < len(text); unit++ {
		// The end has the period unit as far back as each byte equals the one a unit before it.
		start := len(text) - unit
		for start > 0 && text[start-1] == text[start-1+unit] {
			start--
		}
		if times := (len(text) - start) / unit; times > limit {
			return fmt.Errorf("the text ends with %q %d times in a row, more than %d", text[len(text)-unit:], times, limit)
		}
	}
	return nil
}

// checkJSON says that a text is not the JSON that was wanted, if any was.
func checkJSON(text []byte, c config.Check, schema *jsonschema.Schema) error {
	if !c.JSON && schema == nil {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	switch {
	case len(text) == 0:
		return errors.New("the text is not JSON: there is none")
	case err != nil:
		return fmt.Errorf("the text is not JSON: %w", err)
	case schema == nil:
		return nil
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(value); errors.As(err, &invalid) {
		return fmt.Errorf("the JSON does not fit the schema: %s", violations(invalid))
	}
	return nil
}

// violations lists what a schema finds wrong, in one line: where it stands in the answer, and what is wrong there.
func violations(e *jsonschema.ValidationError) string {
	var list []string
	for _, unit := range e.BasicOutput().Errors {
		if unit.Error == nil {
			continue
		}
		text := unit.Error.String()
		if unit.InstanceLocation != "" {
			text = unit.InstanceLocation + ": " + text
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}
