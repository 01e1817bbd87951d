package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	promconfig "github.com/prometheus/common/config"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// probeFlags are the flags of `goodputctl probe`.
type probeFlags struct {
	url, protocol, model             string
	prompt                           string
	stream                           bool
	maxTokens, outputTokens          int
	maxTokensField                   string
	timeout, firstToken, idle        time.Duration
	slo                              map[string]*limitFlag
	complete, completeSet            bool
	requireText, acceptNotStreamed   bool
	expect                           string
	check                            config.Check
	followRedirects, http2, newConns bool
	insecure                         bool
	caFile, apiKeyFile               string
	headers                          []string
	file, target, scenario           string
	output                           string
	count                            int
}

// limitFlag is a flag for the limit of an SLO's criterion.
type limitFlag struct {
	limit time.Duration
	set   bool
}

// probeCommand is `goodputctl probe`: one probe, or a few in a row.
func probeCommand(app *kingpin.Application) (string, func(context.Context, io.Writer, io.Writer) int) {
	cmd := app.Command("probe", "Send one request and say what became of it. Exits 0 when it was good, 1 when not, 2 on bad usage or a failure of its own.")
	f := &probeFlags{slo: map[string]*limitFlag{}}
	cmd.Action(f.exclusive)
	cmd.Flag("url", "Base URL or full URL of the endpoint.").Envar("LLM_URL").StringVar(&f.url)
	cmd.Flag("protocol", "Protocol: "+strings.Join(config.Protocols, ", ")+".").Default(config.DefaultProtocol).StringVar(&f.protocol)
	cmd.Flag("model", "Model to ask.").Envar("LLM_MODEL").StringVar(&f.model)
	cmd.Flag("api-key-file", "File with the API key, sent as a bearer token. Default: the environment variable LLM_API_KEY.").StringVar(&f.apiKeyFile)
	cmd.Flag("header", "Further request header, as 'Name: value'. Repeatable.").StringsVar(&f.headers)

	cmd.Flag("prompt", "What to ask. Default: a short everyday question.").StringVar(&f.prompt)
	cmd.Flag("stream", "Ask for a stream.").Default("true").BoolVar(&f.stream)
	cmd.Flag("max-tokens", "Ceiling of the answer in tokens; 0 is none.").Default("256").IntVar(&f.maxTokens)
	cmd.Flag("output-tokens", "Pinned length of the answer in tokens, where the server can; 0 is none. Takes the place of --max-tokens.").IntVar(&f.outputTokens)
	cmd.Flag("max-tokens-field", "Name of the request's limit: max_tokens or max_completion_tokens.").Default(config.DefaultMaxTokensField).StringVar(&f.maxTokensField)

	cmd.Flag("timeout", "Limit of the whole probe.").Default(config.DefaultTimeout.String()).DurationVar(&f.timeout)
	cmd.Flag("first-token-timeout", "Limit to the first token.").Default(config.DefaultFirstTokenTimeout.String()).DurationVar(&f.firstToken)
	cmd.Flag("idle-timeout", "Limit between tokens.").Default(config.DefaultIdleTimeout.String()).DurationVar(&f.idle)

	for _, name := range config.Criteria {
		if name == config.CriterionComplete {
			cmd.Flag("slo.complete", "SLO: the answer must not be cut by the token limit. Default: on with any other --slo flag, off with --output-tokens.").
				IsSetByUser(&f.completeSet).BoolVar(&f.complete)
			continue
		}
		f.slo[name] = &limitFlag{}
		cmd.Flag(sloFlag(name), "SLO: longest good "+name+".").IsSetByUser(&f.slo[name].set).DurationVar(&f.slo[name].limit)
	}
	cmd.Flag("require-text", "An answer without visible text is no answer.").BoolVar(&f.requireText)
	cmd.Flag("expect", "Regular expression (RE2) that the text must match.").StringVar(&f.expect)
	cmd.Flag("check.json", "The text must be JSON.").BoolVar(&f.check.JSON)
	cmd.Flag("check.schema", "File with a JSON schema that the text must fit.").StringVar(&f.check.SchemaFile)
	cmd.Flag("check.min-length", "Least length of the text in characters; 0 is no bound.").IntVar(&f.check.MinLength)
	cmd.Flag("check.max-repetition", "How often in a row the text may end with the same short thing; 0 is no bound.").IntVar(&f.check.MaxRepetition)
	cmd.Flag("accept-not-streamed", "A whole answer to a request for a stream is no failure.").BoolVar(&f.acceptNotStreamed)
	cmd.Flag("follow-redirects", "Follow one redirect that keeps the method and the body (307, 308).").BoolVar(&f.followRedirects)
	cmd.Flag("http2", "Offer HTTP/2.").BoolVar(&f.http2)
	cmd.Flag("new-connection", "Connect anew for each probe.").BoolVar(&f.newConns)
	cmd.Flag("ca-file", "File with the certificates to trust. Default: the system's.").StringVar(&f.caFile)
	cmd.Flag("insecure-skip-verify", "Do not verify the server's certificate.").BoolVar(&f.insecure)

	cmd.Flag("config.file", "Take the target and the scenario from the daemon's configuration instead of from flags.").StringVar(&f.file)
	cmd.Flag("target", "Target of --config.file. Default: its only one.").StringVar(&f.target)
	cmd.Flag("scenario", "Scenario of --config.file. Default: the target's only one.").StringVar(&f.scenario)

	cmd.Flag("output", "Output: text, or json with one object a line.").Default("text").EnumVar(&f.output, "text", "json")
	cmd.Flag("count", "Number of probes, one after the other.").Default("1").IntVar(&f.count)
	return cmd.FullCommand(), f.run
}

func sloFlag(criterion string) string { return "slo." + strings.ReplaceAll(criterion, "_", "-") }

// exclusive refuses flags that have no say beside, or without, --config.file.
func (f *probeFlags) exclusive(parsed *kingpin.ParseContext) error {
	for _, e := range parsed.Elements {
		flag, ok := e.Clause.(*kingpin.FlagClause)
		if !ok {
			continue
		}
		switch name := flag.Model().Name; name {
		case "config.file", "output", "count":
		case "target", "scenario":
			if f.file == "" {
				return fmt.Errorf("--%s needs --config.file", name)
			}
		default:
			if f.file != "" {
				return fmt.Errorf("--%s has no say beside --config.file, which describes the whole probe", name)
			}
		}
	}
	return nil
}

func (f *probeFlags) run(ctx context.Context, stdout, stderr io.Writer) int {
	series, err := f.series()
	if err != nil {
		fmt.Fprintf(stderr, "goodputctl probe: %v\n", err)
		return exitUsage
	}
	clients := probe.NewClients()
	defer clients.Close()
	client, err := clients.Get(series.Target)
	if err != nil {
		fmt.Fprintf(stderr, "goodputctl probe: %v\n", err)
		return exitUsage
	}
	defer client.Release()
	prober, err := probe.New(series, client, probe.UserAgent("goodputctl"))
	if err != nil {
		fmt.Fprintf(stderr, "goodputctl probe: %v\n", err)
		return exitUsage
	}
	code := exitGood
	for range f.count {
		r := prober.Probe(ctx)
		if err := f.print(stdout, r, series.Scenario.SLO); err != nil {
			fmt.Fprintf(stderr, "goodputctl probe: %v\n", err)
			return exitUsage
		}
		code = max(code, exitCode(r.Outcome))
		if ctx.Err() != nil {
			break
		}
	}
	return code
}

func exitCode(o probe.Outcome) int {
	switch {
	case o == probe.Good:
		return exitGood
	case o.Attempt():
		return exitNotGood
	}
	return exitUsage
}

// series makes the series that the flags describe, or takes it from a configuration.
func (f *probeFlags) series() (*config.Series, error) {
	if f.count < 1 {
		return nil, fmt.Errorf("--count=%d: it must be at least 1", f.count)
	}
	if f.file != "" {
		return f.configured()
	}
	for name, limit := range map[string]time.Duration{"timeout": f.timeout, "first-token-timeout": f.firstToken, "idle-timeout": f.idle} {
		if limit <= 0 {
			return nil, fmt.Errorf("--%s=%s: it must be positive", name, limit)
		}
	}
	for name, flag := range f.slo {
		if flag.set && flag.limit <= 0 {
			return nil, fmt.Errorf("--%s=%s: it must be positive", sloFlag(name), flag.limit)
		}
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
	if err := f.setChecks(s.Scenario); err != nil {
		return nil, err
	}
	if err := f.setHTTP(&s.Target.HTTP); err != nil {
		return nil, err
	}
	if _, err := config.New(s); err != nil {
		return nil, err
	}
	return s, nil
}

// configured returns the series of the configuration that the flags name.
func (f *probeFlags) configured() (*config.Series, error) {
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

func (f *probeFlags) setTarget(t *config.Target) {
	t.Protocol = f.protocol
	t.MaxTokensField = f.maxTokensField
	if f.newConns {
		t.Connection = config.ConnectionNew
	}
}

func (f *probeFlags) setScenario(s *config.Scenario) {
	s.Stream = f.stream
	s.MaxTokens, s.OutputTokens = f.maxTokens, f.outputTokens
	if f.outputTokens > 0 {
		s.MaxTokens = 0
	}
	s.Timeout = f.timeout
	// A limit that the whole probe's is shorter than has no say.
	s.FirstTokenTimeout, s.IdleTimeout = min(f.firstToken, f.timeout), min(f.idle, f.timeout)
	s.RequireText, s.AcceptNotStreamed = f.requireText, f.acceptNotStreamed
	if f.prompt != "" {
		s.Prompts = []config.Prompt{{Text: f.prompt, Weight: 1}}
	}
	s.SLO = config.SLO{Objective: 0.99} // one probe is good or not; any objective will do
	for _, name := range config.Criteria {
		if flag, ok := f.slo[name]; ok && flag.set {
			s.SLO.Criteria = append(s.SLO.Criteria, config.Criterion{Name: name, Limit: flag.limit})
		}
	}
	if f.completeSet && f.complete || !f.completeSet && len(s.SLO.Criteria) > 0 && f.outputTokens == 0 {
		s.SLO.Criteria = append(s.SLO.Criteria, config.Criterion{Name: config.CriterionComplete})
	}
}

// setChecks sets what the text of the answer must be.
func (f *probeFlags) setChecks(s *config.Scenario) error {
	if f.expect != "" {
		expect, err := regexp.Compile(f.expect)
		if err != nil {
			return fmt.Errorf("--expect=%q: not a regular expression of RE2: %w", f.expect, err)
		}
		for i := range s.Prompts {
			s.Prompts[i].Expect = expect
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

func (f *probeFlags) setHTTP(h *promconfig.HTTPClientConfig) error {
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

func (f *probeFlags) print(w io.Writer, r *probe.Result, slo config.SLO) error {
	if f.output == "json" {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := io.WriteString(w, describe(r, slo))
	return err
}
