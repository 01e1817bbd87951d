package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	promconfig "github.com/prometheus/common/config"

	"goodput_exporter/config"
)

// seriesFlags describe what is probed: the endpoint, what it is asked, and the SLO. All commands that probe have them.
type seriesFlags struct {
	url, protocol, model             string
	prompt, promptsFile              string
	inputTokens, outputTokens        tokensFlag
	sharedPrefixTokens, prefixes     int
	keepCache                        bool
	stream                           bool
	maxTokens                        int
	maxTokensField                   string
	timeout, firstToken, idle        time.Duration
	slo                              map[string]*limitFlag
	sloSeconds                       float64
	sloSecondsSet                    bool
	objective                        string
	complete, completeSet            bool
	requireText, acceptNotStreamed   bool
	expect                           string
	check                            config.Check
	followRedirects, http2, newConns bool
	insecure                         bool
	caFile, apiKeyFile               string
	headers                          []string
	file, target, scenario           string
	describing                       map[string]bool // names of the flags that describe a series, and have no say beside a file
}

// limitFlag is a flag for the limit of an SLO's criterion.
type limitFlag struct {
	limit time.Duration
	set   bool
}

// register adds the flags to a command.
func (f *seriesFlags) register(cmd *kingpin.CmdClause) {
	f.slo, f.describing = map[string]*limitFlag{}, map[string]bool{}
	flag := func(name, help string) *kingpin.FlagClause {
		f.describing[name] = true
		return cmd.Flag(name, help)
	}
	f.registerEndpoint(flag)
	f.registerWorkload(flag)
	f.registerSLO(flag)
	cmd.Flag("config.file", "Take the target and the scenario from the daemon's configuration instead of from flags.").StringVar(&f.file)
	cmd.Flag("target", "Target of --config.file. Default: its only one.").StringVar(&f.target)
	cmd.Flag("scenario", "Scenario of --config.file. Default: the target's only one.").StringVar(&f.scenario)
	cmd.Action(f.exclusive)
}

// flagger makes a flag of a command.
type flagger func(name, help string) *kingpin.FlagClause

func (f *seriesFlags) registerEndpoint(flag flagger) {
	flag("url", "Base URL or full URL of the endpoint.").Envar("LLM_URL").StringVar(&f.url)
	flag("protocol", "Protocol: "+strings.Join(config.Protocols, ", ")+".").Default(config.DefaultProtocol).StringVar(&f.protocol)
	flag("model", "Model to ask.").Envar("LLM_MODEL").StringVar(&f.model)
	flag("api-key-file", "File with the API key, sent as a bearer token. Default: the environment variable LLM_API_KEY.").StringVar(&f.apiKeyFile)
	flag("header", "Further request header, as 'Name: value'. Repeatable.").StringsVar(&f.headers)
	flag("follow-redirects", "Follow one redirect that keeps the method and the body (307, 308).").BoolVar(&f.followRedirects)
	flag("http2", "Offer HTTP/2.").BoolVar(&f.http2)
	flag("new-connection", "Connect anew for each probe.").BoolVar(&f.newConns)
	flag("ca-file", "File with the certificates to trust. Default: the system's.").StringVar(&f.caFile)
	flag("insecure-skip-verify", "Do not verify the server's certificate.").BoolVar(&f.insecure)
}

func (f *seriesFlags) registerWorkload(flag flagger) {
	flag("prompt", "What to ask. Default: a short everyday question.").StringVar(&f.prompt)
	flag("prompts-file", "File of prompts to draw from: JSON lines with prompt or messages, max_tokens, weight, expect.").StringVar(&f.promptsFile)
	flag("input-tokens", "Make prompts up, so long in tokens: N, or P50,P95 of a lognormal distribution.").SetValue(&f.inputTokens)
	flag("output-tokens", "Pinned length of the answer in tokens, where the server can: N, or with --input-tokens P50,P95. Takes the place of --max-tokens.").
		SetValue(&f.outputTokens)
	flag("max-tokens", "Ceiling of the answer in tokens; 0 is none.").Default("256").IntVar(&f.maxTokens)
	flag("max-tokens-field", "Name of the request's limit: max_tokens or max_completion_tokens.").Default(config.DefaultMaxTokensField).StringVar(&f.maxTokensField)
	flag("shared-prefix-tokens", "Begin made-up prompts with a text of this length that others begin with too; 0 is none.").IntVar(&f.sharedPrefixTokens)
	flag("prefixes", "How many such texts there are.").Default("1").IntVar(&f.prefixes)
	flag("keep-cache", "No nonce at the start of prompts: the endpoint's prefix cache may answer.").BoolVar(&f.keepCache)
	flag("stream", "Ask for a stream.").Default("true").BoolVar(&f.stream)
	flag("timeout", "Limit of the whole probe.").Default(config.DefaultTimeout.String()).DurationVar(&f.timeout)
	flag("first-token-timeout", "Limit to the first token.").Default(config.DefaultFirstTokenTimeout.String()).DurationVar(&f.firstToken)
	flag("idle-timeout", "Limit between tokens.").Default(config.DefaultIdleTimeout.String()).DurationVar(&f.idle)
	flag("require-text", "An answer without visible text is no answer.").BoolVar(&f.requireText)
	flag("expect", "Regular expression (RE2) that the text must match.").StringVar(&f.expect)
	flag("check.json", "The text must be JSON.").BoolVar(&f.check.JSON)
	flag("check.schema", "File with a JSON schema that the text must fit.").StringVar(&f.check.SchemaFile)
	flag("check.min-length", "Least length of the text in characters; 0 is no bound.").IntVar(&f.check.MinLength)
	flag("check.max-repetition", "How often in a row the text may end with the same short thing; 0 is no bound.").IntVar(&f.check.MaxRepetition)
	flag("accept-not-streamed", "A whole answer to a request for a stream is no failure.").BoolVar(&f.acceptNotStreamed)
}

func (f *seriesFlags) registerSLO(flag flagger) {
	for _, name := range config.Criteria {
		if name == config.CriterionComplete {
			flag("slo.complete", "SLO: the answer must not be cut by the token limit. Default: on with any other --slo flag, off with --output-tokens.").
				IsSetByUser(&f.completeSet).BoolVar(&f.complete)
			continue
		}
		f.slo[name] = &limitFlag{}
		flag(sloFlag(name), "SLO: longest good "+name+".").IsSetByUser(&f.slo[name].set).DurationVar(&f.slo[name].limit)
	}
	flag("slo-seconds", "The same as --slo.e2e, as a number of seconds.").IsSetByUser(&f.sloSecondsSet).Float64Var(&f.sloSeconds)
	flag("slo.objective", "SLO: share of requests that must be good.").Default("99%").StringVar(&f.objective)
}

func sloFlag(criterion string) string { return "slo." + strings.ReplaceAll(criterion, "_", "-") }

// exclusive refuses flags that have no say beside, or without, --config.file.
func (f *seriesFlags) exclusive(parsed *kingpin.ParseContext) error {
	for _, e := range parsed.Elements {
		flag, ok := e.Clause.(*kingpin.FlagClause)
		if !ok {
			continue
		}
		switch name := flag.Model().Name; {
		case f.describing[name] && f.file != "":
			return fmt.Errorf("--%s has no say beside --config.file, which describes the whole probe", name)
		case (name == "target" || name == "scenario") && f.file == "":
			return fmt.Errorf("--%s needs --config.file", name)
		}
	}
	return nil
}

// series makes the series that the flags describe, or takes it from a configuration.
func (f *seriesFlags) series() (*config.Series, error) {
	if f.file != "" {
		return f.configured()
	}
	if err := f.checkLimits(); err != nil {
		return nil, err
	}
	if f.url == "" {
		return nil, errors.New("no endpoint: give --url (or LLM_URL), or --config.file")
	}
	if f.model == "" {
		return nil, errors.New("no model: give --model (or LLM_MODEL)")
	}
	s := config.NewSeries(f.url, f.model)
	f.setTarget(s.Target)
	f.setScenario(s.Scenario)
	for _, set := range []func() error{
		func() error { return f.setPrompts(s.Scenario) },
		func() error { return f.setSLO(s.Scenario) },
		func() error { return f.setChecks(s.Scenario) },
		func() error { return f.setHTTP(&s.Target.HTTP) },
	} {
		if err := set(); err != nil {
			return nil, err
		}
	}
	if _, err := config.New(s); err != nil {
		return nil, err
	}
	return s, nil
}

func (f *seriesFlags) checkLimits() error {
	for name, limit := range map[string]time.Duration{"timeout": f.timeout, "first-token-timeout": f.firstToken, "idle-timeout": f.idle} {
		if limit <= 0 {
			return fmt.Errorf("--%s=%s: it must be positive", name, limit)
		}
	}
	for name, flag := range f.slo {
		if flag.set && flag.limit <= 0 {
			return fmt.Errorf("--%s=%s: it must be positive", sloFlag(name), flag.limit)
		}
	}
	switch {
	case f.sloSecondsSet && f.sloSeconds <= 0:
		return fmt.Errorf("--slo-seconds=%v: it must be positive", f.sloSeconds)
	case f.sloSecondsSet && f.slo[config.CriterionE2E].set:
		return errors.New("--slo-seconds and --slo.e2e are the same: give one of them")
	}
	return nil
}

// configured returns the series of the configuration that the flags name.
func (f *seriesFlags) configured() (*config.Series, error) {
	cfg, err := config.Load(f.file)
	if err != nil {
		return nil, err
	}
	var keys []string
	var found *config.Series
	matches := 0
	for _, s := range cfg.Series {
		keys = append(keys, s.Key())
		if (f.target == "" || f.target == s.Target.Name) && (f.scenario == "" || f.scenario == s.Scenario.Name) {
			found = s
			matches++
		}
	}
	if matches != 1 {
		return nil, fmt.Errorf("--target and --scenario fit %d series of %s, not one; it has %s", matches, f.file, strings.Join(keys, ", "))
	}
	return found, nil
}

func (f *seriesFlags) setTarget(t *config.Target) {
	t.Protocol = f.protocol
	t.MaxTokensField = f.maxTokensField
	if f.newConns {
		t.Connection = config.ConnectionNew
	}
}

func (f *seriesFlags) setScenario(s *config.Scenario) {
	s.Stream = f.stream
	s.MaxTokens = f.maxTokens
	if f.outputTokens.set() {
		s.MaxTokens = 0
	}
	s.Timeout = f.timeout
	// A limit that the whole probe's is shorter than has no say.
	s.FirstTokenTimeout, s.IdleTimeout = min(f.firstToken, f.timeout), min(f.idle, f.timeout)
	s.RequireText, s.AcceptNotStreamed, s.KeepCache = f.requireText, f.acceptNotStreamed, f.keepCache
}

// setPrompts sets what is asked: one prompt, a file of them, or made-up ones.
func (f *seriesFlags) setPrompts(s *config.Scenario) error {
	given := 0
	for _, is := range []bool{f.prompt != "", f.promptsFile != "", f.inputTokens.set()} {
		if is {
			given++
		}
	}
	if given > 1 {
		return errors.New("--prompt, --prompts-file and --input-tokens exclude one another: give one of them")
	}
	switch {
	case f.sharedPrefixTokens != 0 && !f.inputTokens.set():
		return errors.New("--shared-prefix-tokens is of made-up prompts: it needs --input-tokens")
	case f.prefixes != 1 && f.sharedPrefixTokens == 0:
		return errors.New("--prefixes needs --shared-prefix-tokens, the length of each")
	}
	switch {
	case f.prompt != "":
		s.Prompts = []config.Prompt{{Text: f.prompt, Weight: 1}}
	case f.promptsFile != "":
		prompts, err := config.ReadPrompts(f.promptsFile)
		if err != nil {
			return fmt.Errorf("--prompts-file: %w", err)
		}
		s.Prompts = prompts
	case f.inputTokens.set():
		s.Prompts = nil
		s.Synthetic = &config.Synthetic{InputTokens: f.inputTokens.Quantiles}
		if f.sharedPrefixTokens != 0 {
			s.Synthetic.SharedPrefixTokens, s.Synthetic.Prefixes = f.sharedPrefixTokens, f.prefixes
		}
	}
	switch {
	case f.outputTokens.fixed():
		s.OutputTokens = f.outputTokens.P50
	case f.outputTokens.set() && s.Synthetic == nil:
		return fmt.Errorf("--output-tokens=%s: a distribution needs made-up prompts, --input-tokens; here give one number", &f.outputTokens)
	case f.outputTokens.set():
		s.Synthetic.OutputTokens = &f.outputTokens.Quantiles
	}
	return nil
}

func (f *seriesFlags) setSLO(s *config.Scenario) error {
	objective, err := config.ParseRatio(f.objective)
	if err != nil {
		return fmt.Errorf("--slo.objective: %w", err)
	}
	s.SLO = config.SLO{Objective: objective}
	for _, name := range config.Criteria {
		limit := time.Duration(0)
		if flag, ok := f.slo[name]; ok && flag.set {
			limit = flag.limit
		}
		if name == config.CriterionE2E && f.sloSecondsSet {
			limit = time.Duration(f.sloSeconds * float64(time.Second))
		}
		if limit > 0 {
			s.SLO.Criteria = append(s.SLO.Criteria, config.Criterion{Name: name, Limit: limit})
		}
	}
	if f.completeSet && f.complete || !f.completeSet && len(s.SLO.Criteria) > 0 && !f.outputTokens.set() {
		s.SLO.Criteria = append(s.SLO.Criteria, config.Criterion{Name: config.CriterionComplete})
	}
	return nil
}

// setChecks sets what the text of the answer must be.
func (f *seriesFlags) setChecks(s *config.Scenario) error {
	if f.expect != "" {
		expect, err := regexp.Compile(f.expect)
		if err != nil {
			return fmt.Errorf("--expect=%q: not a regular expression of RE2: %w", f.expect, err)
		}
		for i := range s.Prompts {
			if s.Prompts[i].Expect == nil {
				s.Prompts[i].Expect = expect
			}
		}
	}
	s.Check = f.check
	if f.check.SchemaFile == "" {
		return nil
	}
	if err := s.Check.ReadSchema(f.check.SchemaFile); err != nil {
		return fmt.Errorf("--check.schema: %w", err)
	}
	return nil
}

func (f *seriesFlags) setHTTP(h *promconfig.HTTPClientConfig) error {
	h.FollowRedirects, h.EnableHTTP2 = f.followRedirects, f.http2
	h.TLSConfig.CAFile, h.TLSConfig.InsecureSkipVerify = f.caFile, f.insecure
	switch key := os.Getenv("LLM_API_KEY"); {
	case f.apiKeyFile != "":
		h.Authorization = &promconfig.Authorization{CredentialsFile: f.apiKeyFile}
	case key != "":
		h.Authorization = &promconfig.Authorization{Credentials: promconfig.Secret(key)}
	}
	for _, header := range f.headers {
		name, value, ok := strings.Cut(header, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return fmt.Errorf("--header=%q: it must be 'Name: value'", header)
		}
		if strings.EqualFold(name, "Authorization") {
			scheme, credentials, _ := strings.Cut(value, " ")
			h.Authorization = &promconfig.Authorization{Type: scheme, Credentials: promconfig.Secret(credentials)}
			continue
		}
		if h.HTTPHeaders == nil {
			h.HTTPHeaders = &promconfig.Headers{Headers: map[string]promconfig.Header{}}
		}
		was := h.HTTPHeaders.Headers[name]
		was.Secrets = append(was.Secrets, promconfig.Secret(value))
		h.HTTPHeaders.Headers[name] = was
	}
	return nil
}
