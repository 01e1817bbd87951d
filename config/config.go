// Package config turns YAML files, flags and environment variables into validated values. It is the ground
// floor: it imports nothing of this project, and nothing above it looks at YAML.
//
// There are three ways in, and one validation behind all of them: Load reads files, FromEnv the environment,
// and New takes series that were built in code. A file goes through three steps:
//
//   - decode.go walks the YAML tree into the structs of yaml.go. It is strict, and it notes the line of every key.
//   - load.go merges what a file says at its four levels (global, scenario, target, and the target's entry for the
//     scenario; the later wins) into one Scenario per series, and reads the prompts.
//   - validate.go and http.go check the values, whichever way they came in; warn.go says what will not work well.
//
// No step stops at the first mistake: the caller gets Errors, one line each, with file, line and key. No message
// repeats a value that could be a secret.
package config

import (
	"regexp"
	"time"

	promconfig "github.com/prometheus/common/config"
)

// Config is one validated configuration.
type Config struct {
	Targets    []*Target
	Series     []*Series // in the order of the files: target by target, scenario by scenario
	LabelNames []string  // sorted; the union of the names of all targets' labels
	Files      []string  // every file that was read, absolute: the configuration, target files, prompts
	// TargetGlobs are the target_files patterns, absolute, for Watch.
	TargetGlobs []string
	loaded      []byte        // digest of what they held when they were read
	Warnings    []string      // what is valid but will not work well
	Maintenance []Maintenance // when not to probe, in the order of the file; their names are unique
}

// Series is one target × one scenario: the unit that is scheduled, measured and labelled. Everything is
// resolved: defaults, overrides and prompts.
type Series struct {
	Target   *Target
	Scenario *Scenario // this series' own copy, with the overrides of its target
}

// Key names a series among all series of a process.
func (s *Series) Key() string { return s.Target.Name + "/" + s.Scenario.Name }

// Target is one endpoint.
type Target struct {
	Name           string
	Protocol       string // "openai-chat", "openai-completions", ...
	URL            string // base URL or full endpoint URL; no user information in it
	Model          string
	Provider       string            // free text for goodput_target_info, such as "vllm"
	Labels         map[string]string // only those that the target has
	HTTP           promconfig.HTTPClientConfig
	Bearer         bool // credentials go as a bearer token, also where the protocol has a header of its own for keys
	Connection     Connection
	MaxTokensField string         // name of the request's limit: "max_tokens" or "max_completion_tokens"
	ExtraBody      map[string]any // merged into the request's JSON body
	Budget         Budget
	Price          *Price
}

// Connection says what a probe does about connections.
type Connection string

// The ways of connecting.
const (
	ConnectionKeep Connection = "keep" // reuse an idle connection where there is one
	ConnectionNew  Connection = "new"  // a new connection for every probe
)

// Budget bounds what a target's probes may cost a day. 0 is no bound.
type Budget struct {
	RequestsPerDay     int
	OutputTokensPerDay int
}

// Price is in dollars per million tokens.
type Price struct {
	Input, Output float64
}

// Scenario is one kind of use: what is asked, how often, and what a user may expect.
type Scenario struct {
	Name string

	Interval          time.Duration
	Jitter            time.Duration // each slot starts up to this much later, at random; 0 is none
	Timeout           time.Duration // of the whole probe
	FirstTokenTimeout time.Duration // from t_send; no bound where the answer is not streamed
	IdleTimeout       time.Duration // between token events

	Prompts      []Prompt   // at least one, unless Synthetic is set
	Synthetic    *Synthetic // prompts of stated lengths, made up
	Stream       bool
	MaxTokens    int  // a ceiling that a normal answer does not touch; 0 is none
	OutputTokens int  // a pinned length; 0 is none. At most one of the two and Synthetic.OutputTokens is set
	KeepCache    bool // no nonce: the endpoint's prefix cache may answer
	RequireText  bool // a success must have visible text
	Check        Check

	AcceptNotStreamed bool           // a whole answer to a streaming request is no failure
	ExtraBody         map[string]any // merged into the request's JSON body, over the target's

	SLO SLO
}

// Prompt is what is asked. Either Messages or Text is set; chat protocols send Text as one user message.
type Prompt struct {
	Text      string
	Messages  []Message
	MaxTokens int            // over the scenario's; 0 leaves it
	Weight    float64        // share of the draws; positive
	Expect    *regexp.Regexp // the visible text of the answer must match; nil: anything will do
}

// Message is one turn of a conversation.
type Message struct {
	Role    string `yaml:"role" json:"role"`
	Content string `yaml:"content" json:"content"`
}

// Synthetic describes made-up prompts: lengths in tokens, lognormal through the two quantiles.
type Synthetic struct {
	InputTokens  Quantiles  // of each message of the user; the shared prefix is a part of the first
	OutputTokens *Quantiles // of the answers, drawn and pinned for each prompt; nil: the scenario says

	SharedPrefixTokens int // length of the text that prompts begin with, before their nonces; 0 is none
	Prefixes           int // how many such texts there are; each prompt draws one. 0 is 1

	Turns int // messages of the user in a conversation; 0 and 1 are single prompts
}

// Quantiles of a length in tokens. P95 equal to P50 is a fixed length.
type Quantiles struct {
	P50, P95 int
}

// Longest is the bound of a length in tokens that is drawn by the quantiles: the lognormal itself has none.
func (q Quantiles) Longest() int {
	if q.P95 == q.P50 {
		return q.P95
	}
	return 4 * q.P95
}

// PinsLength reports whether answers have a pinned length, be it one or drawn.
func (s *Scenario) PinsLength() bool {
	return s.OutputTokens > 0 || s.Synthetic != nil && s.Synthetic.OutputTokens != nil
}

// SLO is what a user may expect, and how often.
type SLO struct {
	Objective    float64 // ratio in (0, 1) of goodput: all criteria together; 0: no SLO was given
	Availability float64 // ratio in (0, 1); 0: the same as Objective
	Criteria     []Criterion
}

// Criterion is one condition of an SLO.
type Criterion struct {
	Name      string
	Limit     time.Duration // 0 for CriterionComplete, which has no limit
	Objective float64       // ratio in (0, 1); 0: none of its own
}

// The criteria, by their names in the configuration, in metrics and on the command line.
const (
	CriterionTTFT        = "ttft"
	CriterionFirstAnswer = "first_answer"
	CriterionTPOT        = "tpot"
	CriterionStall       = "stall"
	CriterionE2E         = "e2e"
	CriterionComplete    = "complete" // the answer was not cut by the token limit
)

// Criteria lists all criteria in the order of the documentation.
var Criteria = []string{CriterionTTFT, CriterionFirstAnswer, CriterionTPOT, CriterionStall, CriterionE2E, CriterionComplete}

// StreamOnly reports whether a criterion has no meaning for an answer that is not streamed.
func StreamOnly(criterion string) bool {
	switch criterion {
	case CriterionTTFT, CriterionFirstAnswer, CriterionTPOT, CriterionStall:
		return true
	}
	return false
}

// Defaults of the configuration, the command line and the environment alike.
const (
	DefaultProtocol          = "openai-chat"
	DefaultInterval          = 15 * time.Second
	DefaultTimeout           = 60 * time.Second
	DefaultFirstTokenTimeout = 20 * time.Second
	DefaultIdleTimeout       = 10 * time.Second
	DefaultMaxTokensField    = "max_tokens"
)
