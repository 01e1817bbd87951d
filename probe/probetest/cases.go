package probetest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http2"
)

// Case is a scripted answer, and the verdict that a prober must reach on it.
type Case struct {
	ID          string           `yaml:"id"`
	Title       string           `yaml:"title"`
	Source      []string         `yaml:"source"`
	Note        string           `yaml:"note"`
	Protocol    string           `yaml:"protocol"`
	Stream      bool             `yaml:"stream"`
	Count       int              `yaml:"count"`     // probes in a row by one command
	BasePath    string           `yaml:"base_path"` // path of the URL that the prober is given
	Needs       []string         `yaml:"needs"`     // options without which the case has no sense
	Limits      Limits           `yaml:"limits"`
	SLO         SLO              `yaml:"slo"`
	Clock       *ClockStep       `yaml:"clock"`
	Connections []ConnectionPlan `yaml:"connections"` // in the order of connecting; the last one repeats
	Expect      Expectation      `yaml:"expect"`
	ExpectAny   []Expectation    `yaml:"expect_any"` // one of them has to fit
}

// Limits are what the prober is told to bear with.
type Limits struct {
	FirstTokenMS int `yaml:"first_token_ms"`
	IdleMS       int `yaml:"idle_ms"`
	TotalMS      int `yaml:"total_ms"`
	MaxTokens    int `yaml:"max_tokens"`
}

// SLO is in milliseconds; 0 is no criterion.
type SLO struct {
	TTFTMS float64 `yaml:"ttft_ms"`
	TPOTMS float64 `yaml:"tpot_ms"`
	E2EMS  float64 `yaml:"e2e_ms"`
}

// ClockStep is a step of the wall clock that the prober has to make by itself.
type ClockStep struct {
	AtMS   float64 `yaml:"at_ms"`
	StepMS float64 `yaml:"step_ms"`
}

// ConnectionPlan is what one connection does, request by request; the last one repeats.
type ConnectionPlan struct {
	Requests []Exchange `yaml:"requests"`
}

// Exchange is one answer.
type Exchange struct {
	HTTP   Head   `yaml:"http"`
	Script []Step `yaml:"script"`
}

// Head is all of an answer but its body.
type Head struct {
	Version string      `yaml:"version"` // "1.0", "1.1", "2"
	Status  int         `yaml:"status"`
	Headers [][2]string `yaml:"headers"` // in order
	Framing string      `yaml:"framing"` // "chunked", "close", "length"; "" with HTTP/2
}

// Step is one act of a script, at a time after the request was read whole.
type Step struct {
	At    time.Duration
	Write []byte // one TCP write; meaningless unless Do is DoWrite
	Do    Do
	Code  http2.ErrCode // of DoResetStream
	Last  *uint32       // last stream id of DoGoAway; nil is the stream of the request
}

// Do is the kind of a Step.
type Do string

// The kinds of steps. All but DoWrite and DoGoAway end a script.
const (
	DoWrite       Do = "write"
	DoEnd         Do = "end"       // the proper end of the body
	DoFin         Do = "fin"       // close without the proper end
	DoRst         Do = "rst"       // TCP reset
	DoHold        Do = "hold"      // silence until the client closes
	DoResetStream Do = "h2_rst"    // RST_STREAM
	DoGoAway      Do = "h2_goaway" // GOAWAY with NO_ERROR; the script goes on
)

var protocols = []string{
	"openai-chat", "openai-completions", "openai-responses", "anthropic-messages",
	"gemini", "ollama", "bedrock-converse", "tgi", "cohere", "azure-openai",
	"openai-embeddings", "rerank",
}

// LoadCases reads a file of cases. It is strict: a key that it does not know, or a script that cannot be
// played, is an error that names the case.
func LoadCases(path string) ([]Case, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening cases: %w", err)
	}
	defer f.Close()
	cases, err := ReadCases(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cases, nil
}

// ReadCases is LoadCases from a reader.
func ReadCases(r io.Reader) ([]Case, error) {
	var file struct {
		Version int    `yaml:"version"`
		Cases   []Case `yaml:"cases"`
	}
	decoder := yaml.NewDecoder(r)
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("reading cases: %w", err)
	}
	if file.Version != 1 {
		return nil, fmt.Errorf("version is %d, want 1", file.Version)
	}
	seen := map[string]bool{}
	for _, c := range file.Cases {
		if seen[c.ID] {
			return nil, fmt.Errorf("case %s: the id is used twice", c.ID)
		}
		seen[c.ID] = true
	}
	return file.Cases, nil
}

// UnmarshalYAML sets the defaults, and refuses what cannot be played.
func (c *Case) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Case
	raw := struct {
		*plain `yaml:",inline"`
		HTTP   *Head  `yaml:"http"`
		Script []Step `yaml:"script"`
	}{plain: (*plain)(c)}
	*c = Case{
		Stream: true, Count: 1, BasePath: "/v1", Protocol: "openai-chat",
		Limits: Limits{FirstTokenMS: 2000, IdleMS: 1000, TotalMS: 5000, MaxTokens: 16},
	}
	if err := unmarshal(&raw); err != nil {
		return fmt.Errorf("case %s: %w", c.ID, err)
	}
	switch {
	case (len(raw.Script) > 0) == (len(c.Connections) > 0):
		return fmt.Errorf("case %s: want either script or connections", c.ID)
	case raw.HTTP != nil && len(c.Connections) > 0:
		return fmt.Errorf("case %s: http belongs to the requests of connections", c.ID)
	case len(raw.Script) > 0:
		x := Exchange{HTTP: defaultHead(), Script: raw.Script}
		if raw.HTTP != nil {
			x.HTTP = *raw.HTTP
		}
		c.Connections = []ConnectionPlan{{Requests: []Exchange{x}}}
	}
	if err := c.validate(); err != nil {
		return fmt.Errorf("case %s: %w", c.ID, err)
	}
	return nil
}

func (c *Case) validate() error {
	switch {
	case c.ID == "":
		return errors.New("it has no id")
	case !slices.Contains(protocols, c.Protocol):
		return fmt.Errorf("unknown protocol %q", c.Protocol)
	case c.Count < 1:
		return fmt.Errorf("count is %d, want 1 or more", c.Count)
	case !strings.HasPrefix(c.BasePath, "/"):
		return fmt.Errorf("base_path is %q, want it to begin with /", c.BasePath)
	case c.Expect == nil && c.ExpectAny == nil:
		return errors.New("want expect or expect_any")
	}
	for i, plan := range c.Connections {
		if len(plan.Requests) == 0 {
			return fmt.Errorf("connection %d has no requests", i+1)
		}
		for j, x := range plan.Requests {
			if err := x.validate(); err != nil {
				return fmt.Errorf("connection %d, request %d: %w", i+1, j+1, err)
			}
		}
	}
	for _, e := range append([]Expectation{c.Expect}, c.ExpectAny...) {
		if err := e.validate(); err != nil {
			return err
		}
	}
	return nil
}

// HTTP2 reports whether the case is played over HTTP/2.
func (c *Case) HTTP2() bool { return c.hasVersion(func(v string) bool { return v == "2" }) }

func (c *Case) hasVersion(is func(string) bool) bool {
	for _, plan := range c.Connections {
		for _, x := range plan.Requests {
			if is(x.HTTP.Version) {
				return true
			}
		}
	}
	return false
}

// exchange is what answers a request; both indices count from 0.
func (c *Case) exchange(connection, request int) Exchange {
	plan := c.Connections[min(connection, len(c.Connections)-1)]
	return plan.Requests[min(request, len(plan.Requests)-1)]
}

func defaultHead() Head {
	return Head{Version: "1.1", Status: 200, Headers: [][2]string{{"Content-Type", "text/event-stream"}}, Framing: "chunked"}
}

// UnmarshalYAML sets the defaults.
func (h *Head) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Head
	*h = defaultHead()
	h.Framing = ""
	if err := unmarshal((*plain)(h)); err != nil {
		return err
	}
	if h.Framing == "" && h.Version != "2" {
		h.Framing = "chunked"
	}
	return nil
}

// UnmarshalYAML sets the defaults.
func (x *Exchange) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Exchange
	x.HTTP = defaultHead()
	return unmarshal((*plain)(x))
}

func (x *Exchange) validate() error {
	h := x.HTTP
	switch {
	case h.Version != "1.0" && h.Version != "1.1" && h.Version != "2":
		return fmt.Errorf("http version is %q, want 1.0, 1.1 or 2", h.Version)
	case h.Version == "2" && h.Framing != "":
		return errors.New("HTTP/2 has no framing")
	case h.Version == "1.0" && h.Framing == "chunked":
		return errors.New("HTTP/1.0 has no chunked framing")
	case h.Version != "2" && !slices.Contains([]string{"chunked", "close", "length"}, h.Framing):
		return fmt.Errorf("framing is %q, want chunked, close or length", h.Framing)
	case h.Status < 200 || h.Status > 599:
		return fmt.Errorf("status is %d, want 200 to 599", h.Status)
	case len(x.Script) == 0:
		return errors.New("the script is empty")
	}
	for i, s := range x.Script {
		final := s.Do != DoWrite && s.Do != DoGoAway
		switch {
		case final != (i == len(x.Script)-1):
			return fmt.Errorf("step %d is %s: a script ends in end, fin, rst, hold or h2_rst, and has none before", i+1, s.Do)
		case i > 0 && s.At < x.Script[i-1].At:
			return fmt.Errorf("step %d is earlier than the one before", i+1)
		case (s.Do == DoGoAway || s.Do == DoResetStream) && h.Version != "2":
			return fmt.Errorf("step %d: %s needs HTTP/2", i+1, s.Do)
		}
	}
	return nil
}

// UnmarshalYAML reads the one of write, write_b64, write_parts and do that a step must have.
func (s *Step) UnmarshalYAML(unmarshal func(any) error) error {
	var raw struct {
		AtMS       *float64 `yaml:"at_ms"`
		Write      *string  `yaml:"write"`
		WriteB64   *string  `yaml:"write_b64"`
		WriteParts []part   `yaml:"write_parts"`
		Do         *string  `yaml:"do"`
	}
	if err := unmarshal(&raw); err != nil {
		return err
	}
	if raw.AtMS == nil || *raw.AtMS < 0 {
		return errors.New("a step needs an at_ms of 0 or more")
	}
	*s = Step{At: milliseconds(*raw.AtMS), Do: DoWrite}
	given := 0
	if raw.Write != nil {
		given++
		s.Write = []byte(*raw.Write)
	}
	if raw.WriteB64 != nil {
		given++
		data, err := base64.StdEncoding.DecodeString(*raw.WriteB64)
		if err != nil {
			return fmt.Errorf("write_b64: %w", err)
		}
		s.Write = data
	}
	if raw.WriteParts != nil {
		given++
		for _, p := range raw.WriteParts {
			s.Write = append(s.Write, p...)
		}
	}
	if raw.Do != nil {
		given++
		if err := s.parseDo(*raw.Do); err != nil {
			return err
		}
	}
	if given != 1 {
		return fmt.Errorf("a step has %d of write, write_b64, write_parts and do, want exactly one", given)
	}
	return nil
}

func (s *Step) parseDo(text string) error {
	name, argument, has := strings.Cut(text, ":")
	s.Do = Do(name)
	switch s.Do {
	case DoEnd, DoFin, DoRst, DoHold:
		if !has {
			return nil
		}
	case DoResetStream:
		for code := http2.ErrCodeNo; code <= http2.ErrCodeHTTP11Required; code++ {
			if code.String() == argument {
				s.Code = code
				return nil
			}
		}
	case DoGoAway:
		if !has {
			return nil
		}
		if n, err := strconv.ParseUint(argument, 10, 31); err == nil {
			last := uint32(n)
			s.Last = &last
			return nil
		}
	}
	return fmt.Errorf("do is %q, want end, fin, rst, hold, h2_rst:CODE, h2_goaway or h2_goaway:N", text)
}

// part of a write: a string, or one that is repeated.
type part []byte

func (p *part) UnmarshalYAML(unmarshal func(any) error) error {
	var text string
	if unmarshal(&text) == nil {
		*p = part(text)
		return nil
	}
	var repeated struct {
		Repeat string `yaml:"repeat"`
		Times  int    `yaml:"times"`
	}
	if err := unmarshal(&repeated); err != nil {
		return err
	}
	if repeated.Times < 0 || len(repeated.Repeat)*repeated.Times > 1<<28 {
		return fmt.Errorf("times is %d, want 0 or more, and no more than 256 MiB in all", repeated.Times)
	}
	*p = bytes.Repeat([]byte(repeated.Repeat), repeated.Times)
	return nil
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
