package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kingpin/v2"
	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"goodput_exporter/probe/probetest"
)

// simulateFlags are the flags of `goodputctl simulate`.
type simulateFlags struct {
	listen, file string
	seed         uint64
	models       []string
	spec         modelSpec // of all of them
}

// modelSpec describes a simulated model, as flags and the YAML file write it.
type modelSpec struct {
	Name         string        `yaml:"name"`
	TTFT         string        `yaml:"ttft"`
	Gap          string        `yaml:"gap"`
	OutputTokens string        `yaml:"output_tokens"`
	Prefill      time.Duration `yaml:"prefill"`
	Concurrency  int           `yaml:"concurrency"`
	MaxQueue     int           `yaml:"max_queue"`
	Faults       []string      `yaml:"faults"`
}

// What a model is like of which nothing is said.
var defaultSpec = modelSpec{Name: "simulated", TTFT: "lognormal:200ms,500ms", Gap: "normal:20ms,5ms", OutputTokens: "lognormal:64,200"}

// simulateCommand is `goodputctl simulate`: an endpoint to try things with, until it is interrupted.
func simulateCommand(app *kingpin.Application) (string, func(context.Context, io.Writer, io.Writer) int) {
	cmd := app.Command("simulate", "Simulate an endpoint that speaks every protocol, with stated latencies and faults, until interrupted. "+
		"What it truly did is at /truth, and in numbers at /metrics.")
	f := &simulateFlags{}
	cmd.Action(f.exclusive)
	cmd.Flag("listen", "Address to listen on.").Default("127.0.0.1:8000").StringVar(&f.listen)
	cmd.Flag("seed", "Equal seeds give equal answers to equal requests in equal order.").Default("1").Uint64Var(&f.seed)
	cmd.Flag("file", "YAML file with a list of models, each with the keys name, ttft, gap, output_tokens, prefill, concurrency, max_queue, faults. "+
		"It takes the place of the flags below.").StringVar(&f.file)

	cmd.Flag("model", "Name of a model. Repeatable.").Default(defaultSpec.Name).StringsVar(&f.models)
	cmd.Flag("ttft", "Time from a request to the first token: fixed:TIME, uniform:FROM,TO, normal:MEAN,DEVIATION, lognormal:MEDIAN,P95, or recorded:FILE with one time a line.").
		Default(defaultSpec.TTFT).StringVar(&f.spec.TTFT)
	cmd.Flag("gap", "Time from token to token, in the same forms.").Default(defaultSpec.Gap).StringVar(&f.spec.Gap)
	cmd.Flag("output-tokens", "Length of an answer that no limit cuts, in the same forms.").Default(defaultSpec.OutputTokens).StringVar(&f.spec.OutputTokens)
	cmd.Flag("prefill", "Further time to the first token for each token of the request.").DurationVar(&f.spec.Prefill)
	cmd.Flag("concurrency", "Requests that a model serves at a time; the others wait. 0 is no limit.").IntVar(&f.spec.Concurrency)
	cmd.Flag("max-queue", "Requests that may wait; what is more gets a 429. 0 is no limit.").IntVar(&f.spec.MaxQueue)
	cmd.Flag("fault", "A fault and its share of the requests, such as rate_limited:5% or truncated:0.01. A time may follow, as in rate_limited:5%:2s: "+
		"the delay of slow_first_token, or the Retry-After of a status. Repeatable. Faults: "+faultNames()+".").StringsVar(&f.spec.Faults)
	return cmd.FullCommand(), f.run
}

func faultNames() string {
	names := make([]string, len(probetest.FaultKinds))
	for i, k := range probetest.FaultKinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// exclusive refuses flags that have no say beside --file.
func (f *simulateFlags) exclusive(parsed *kingpin.ParseContext) error {
	for _, e := range parsed.Elements {
		flag, ok := e.Clause.(*kingpin.FlagClause)
		if !ok || f.file == "" {
			continue
		}
		if name := flag.Model().Name; name != "file" && name != "listen" && name != "seed" {
			return fmt.Errorf("--%s has no say beside --file, which describes the models", name)
		}
	}
	return nil
}

func (f *simulateFlags) run(ctx context.Context, stdout, stderr io.Writer) int {
	models, err := f.read()
	if err != nil {
		fmt.Fprintf(stderr, "goodputctl simulate: %v\n", err)
		return exitUsage
	}
	e, err := probetest.Start(f.listen, probetest.Config{Models: models, Seed: f.seed})
	if err != nil {
		fmt.Fprintf(stderr, "goodputctl simulate: %v\n", err)
		return exitUsage
	}
	if _, err := io.WriteString(stdout, welcome(e.Root(), models)); err != nil {
		fmt.Fprintf(stderr, "goodputctl simulate: %v\n", err)
		_ = e.Close()
		return exitUsage
	}
	<-ctx.Done()
	if err := e.Close(); err != nil {
		fmt.Fprintf(stderr, "goodputctl simulate: %v\n", err)
		return exitUsage
	}
	return exitGood
}

// welcome says where the endpoint is: its base URLs, protocol by protocol.
func welcome(root string, models []probetest.Model) string {
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.Name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Simulating %s; what it does is at %s/truth and %[2]s/metrics. Base URLs:\n", strings.Join(names, ", "), root)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, base := range probetest.Bases(root, models[0].Name) {
		name := base.Protocol
		if base.Via != "" {
			name += " (" + base.Via + ")"
		}
		fmt.Fprintf(w, "  %s\t%s\n", name, base.URL)
	}
	_ = w.Flush() // to a strings.Builder
	return b.String()
}

// read returns the models that the flags, or the file, describe.
func (f *simulateFlags) read() ([]probetest.Model, error) {
	specs, named := []modelSpec{}, flagOf
	if f.file != "" {
		var err error
		if specs, err = readSpecs(f.file); err != nil {
			return nil, err
		}
	} else {
		for _, name := range f.models {
			spec := f.spec
			spec.Name = name
			specs = append(specs, spec)
		}
	}
	seen := map[string]bool{}
	var models []probetest.Model
	for i, spec := range specs {
		if f.file != "" {
			named = func(key string) string { return fmt.Sprintf("%s: models[%d].%s", f.file, i, key) }
		}
		m, err := spec.model(named)
		if err != nil {
			return nil, err
		}
		if seen[m.Name] {
			return nil, fmt.Errorf("%s: %q is there twice", named("name"), m.Name)
		}
		seen[m.Name] = true
		models = append(models, m)
	}
	return models, nil
}

// flagOf returns the flag for a key of the file.
func flagOf(key string) string {
	switch key {
	case "name":
		return "--model"
	case "faults":
		return "--fault"
	}
	return "--" + strings.ReplaceAll(key, "_", "-")
}

// readSpecs reads the file of models. Paths in it are relative to it.
func readSpecs(file string) ([]modelSpec, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var content struct {
		Models []modelSpec `yaml:"models"`
	}
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&content); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", file, strings.Join(strings.Fields(err.Error()), " "))
	}
	if len(content.Models) == 0 {
		return nil, fmt.Errorf("%s: no models: list at least one, such as models: [{name: a, ttft: 200ms}]", file)
	}
	for i := range content.Models {
		m := &content.Models[i]
		for text, standard := range map[*string]string{&m.TTFT: defaultSpec.TTFT, &m.Gap: defaultSpec.Gap, &m.OutputTokens: defaultSpec.OutputTokens} {
			if *text == "" {
				*text = standard
			}
			if recorded, ok := strings.CutPrefix(*text, "recorded:"); ok {
				*text = "recorded:" + promconfig.JoinDir(filepath.Dir(file), recorded)
			}
		}
	}
	return content.Models, nil
}

// model makes the model. named returns what a key is called where the user wrote it.
func (s modelSpec) model(named func(key string) string) (m probetest.Model, err error) {
	m = probetest.Model{Name: s.Name, Prefill: s.Prefill, Concurrency: s.Concurrency, MaxQueue: s.MaxQueue}
	if m.TTFT, err = probetest.ParseDurations(s.TTFT); err != nil {
		return m, fmt.Errorf("%s: %w", named("ttft"), err)
	}
	if m.Gap, err = probetest.ParseDurations(s.Gap); err != nil {
		return m, fmt.Errorf("%s: %w", named("gap"), err)
	}
	if m.OutputTokens, err = probetest.ParseCounts(s.OutputTokens); err != nil {
		return m, fmt.Errorf("%s: %w", named("output_tokens"), err)
	}
	switch {
	case s.Name == "":
		return m, fmt.Errorf("%s: the name is missing", named("name"))
	case s.Prefill < 0:
		return m, fmt.Errorf("%s: must not be negative", named("prefill"))
	case s.Concurrency < 0:
		return m, fmt.Errorf("%s: must not be negative; 0 is no limit", named("concurrency"))
	case s.MaxQueue < 0:
		return m, fmt.Errorf("%s: must not be negative; 0 is no limit", named("max_queue"))
	case s.MaxQueue > 0 && s.Concurrency == 0:
		return m, fmt.Errorf("%s: nothing waits without %s", named("max_queue"), named("concurrency"))
	}
	if m.Faults, err = parseFaults(s.Faults); err != nil {
		return m, fmt.Errorf("%s: %w", named("faults"), err)
	}
	return m, nil
}

// parseFaults reads faults such as "rate_limited:5%:2s".
func parseFaults(texts []string) ([]probetest.Fault, error) {
	var faults []probetest.Fault
	total := 0.0
	for _, text := range texts {
		f, err := parseFault(text)
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
		total += f.Rate
	}
	if total > 1+1e-9 { // the sum of ten times 10 % is not exactly 1
		return nil, fmt.Errorf("the shares add up to %.4g %%, more than all requests", 100*total)
	}
	return faults, nil
}

// slowByDefault is the delay of slow_first_token where none is given.
const slowByDefault = 2 * time.Second

func parseFault(text string) (f probetest.Fault, err error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return f, fmt.Errorf("%q is no fault: write one such as rate_limited:5%%", text)
	}
	f.Kind = probetest.FaultKind(parts[0])
	if !slices.Contains(probetest.FaultKinds, f.Kind) {
		return f, fmt.Errorf("%q is no fault; known are %s", parts[0], faultNames())
	}
	share, percent := strings.CutSuffix(parts[1], "%")
	if f.Rate, err = strconv.ParseFloat(share, 64); err != nil {
		return f, fmt.Errorf("%q is no share: write one such as 5%% or 0.05", parts[1])
	}
	if percent {
		f.Rate /= 100
	}
	if !(f.Rate > 0 && f.Rate <= 1) {
		return f, fmt.Errorf("the share of %s is %s: it must be more than 0, and at most 1 or 100 %%", f.Kind, parts[1])
	}
	wait := slowByDefault
	if len(parts) == 3 {
		if wait, err = time.ParseDuration(parts[2]); err != nil || wait <= 0 {
			return f, fmt.Errorf("%q is no time such as 2s", parts[2])
		}
		f.RetryAfter = wait
	}
	f.Delay = wait
	return f, nil
}
