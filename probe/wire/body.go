package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// bodyForm is the JSON body that the requests of a series have in common: what stands before and behind what is asked.
type bodyForm struct {
	maxTokens, outputTokens int // of the requests that it is of
	head, tail              []byte
}

// askedMark stands in a form for what is asked: nobody configures such a string.
const askedMark = `"\u0000"`

// body returns a request's body: what is asked under a key, the fields of the protocol, and the configuration's own, which
// win. The requests of a series differ by what they ask, and by their limits. m may be nil.
func (m *Memory) body(r Request, key string, asked any, fields func(Request) map[string]any) ([]byte, error) {
	var form *bodyForm
	if m != nil {
		form = m.bodies.Load()
	}
	if form == nil || form.maxTokens != r.MaxTokens || form.outputTokens != r.OutputTokens {
		all := fields(r)
		all[key] = json.RawMessage(askedMark)
		maps.Copy(all, r.Extra)
		marked, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		head, tail, ok := bytes.Cut(marked, []byte(askedMark))
		if !ok { // the configuration asks something else
			return marked, nil
		}
		form = &bodyForm{r.MaxTokens, r.OutputTokens, head, tail}
		if m != nil {
			m.bodies.Store(form)
		}
	}
	value, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	return slices.Concat(form.head, value, form.tail), nil
}
