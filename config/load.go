package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"
)

// Load reads a configuration: the file itself, the target files and the prompts files that it names. Its error is
// Errors, with everything that is wrong in any of them.
func Load(path string) (*Config, error) {
	l := &loader{prompts: make(map[string][]Prompt), used: make(map[string]bool)}
	root, src := l.read(path)
	if root == nil {
		return nil, l.errors
	}
	l.main = src
	l.decode(src, root, &l.file)
	l.file.absolute(filepath.Dir(path))

	l.addTargets(src, "targets", l.file.Targets)
	for _, file := range l.targetFiles(filepath.Dir(path)) {
		l.loadTargets(file)
	}
	for _, name := range slices.Sorted(maps.Keys(l.file.Scenarios)) {
		if !l.used[name] {
			l.checkUnused(name)
		}
	}
	l.addMaintenance()
	if len(l.cfg.Targets) == 0 && len(l.errors) == 0 {
		l.add(Error{File: path, Line: src.lines["targets"], Key: "targets", Err: errors.New("no targets: list at least one with name, url and model")})
	}
	return l.finish()
}

// loader is a Config on its way from files.
type loader struct {
	builder
	main    *source
	file    fileYAML
	prompts map[string][]Prompt // by file; nil for a file with errors
	used    map[string]bool     // scenarios that a target names
	unread  bool                // a target file could not be read: not all targets are known
}

// read parses one file. It returns nil when there is nothing to decode, and has then reported why.
func (l *loader) read(path string) (*yaml.Node, *source) {
	l.files = append(l.files, path)
	f, err := os.Open(path)
	if err != nil {
		l.add(Error{File: path, Err: fmt.Errorf("cannot read the file: %w", cause(err))})
		return nil, nil
	}
	defer f.Close()
	root, mistake := parse(path, f)
	switch {
	case mistake != nil:
		l.add(*mistake)
		return nil, nil
	case root == nil:
		l.add(Error{File: path, Err: errors.New("the file is empty: list targets")})
		return nil, nil
	}
	return root, &source{file: path, lines: make(map[string]int)}
}

func (l *loader) decode(src *source, root *yaml.Node, out any) {
	d := &decoder{problems: &l.problems, src: src, budget: maxNodes}
	d.decode("", root, reflect.ValueOf(out).Elem())
}

// targetFiles returns the files that target_files match, each once, in the order of the patterns.
func (l *loader) targetFiles(dir string) []string {
	var files []string
	defer func() { l.cfg.loaded = contents(l.cfg.TargetGlobs) }() // before any of them is read
	for i, glob := range l.file.TargetFiles {
		key := fmt.Sprintf("target_files[%d]", i)
		at := Error{File: l.main.file, Line: l.main.lines[key], Key: key}
		glob = promconfig.JoinDir(dir, glob)
		matches, err := filepath.Glob(glob)
		if err != nil {
			at.Err = fmt.Errorf("not a pattern: %w; write one such as targets/*.yml", err)
			l.add(at)
			continue
		}
		if len(matches) == 0 {
			at.Err = fmt.Errorf("no file matches %s", glob)
			l.warn(at)
		}
		l.cfg.TargetGlobs = append(l.cfg.TargetGlobs, absolute(glob))
		for _, file := range matches {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// loadTargets reads a target file: a list of targets, or a mapping with the key targets.
func (l *loader) loadTargets(file string) {
	root, src := l.read(file)
	if root == nil {
		l.unread = true
		return
	}
	var f targetFileYAML
	path := "targets"
	if root.Kind == yaml.SequenceNode {
		path = ""
		l.decode(src, root, &f.Targets)
	} else {
		l.decode(src, root, &f)
	}
	absoluteTargets(f.Targets, filepath.Dir(file))
	l.addTargets(src, path, f.Targets)
}

// absolute makes the paths of a file relative to its directory, and empty mappings of what was left empty.
func (f *fileYAML) absolute(dir string) {
	for name, s := range f.Scenarios {
		if s == nil {
			f.Scenarios[name] = &scenarioYAML{}
			continue
		}
		s.absolute(dir)
	}
	absoluteTargets(f.Targets, dir)
	for i, m := range f.Maintenance {
		if m == nil {
			f.Maintenance[i] = &maintenanceYAML{}
		}
	}
}

func absoluteTargets(targets []*targetYAML, dir string) {
	for i, t := range targets {
		if t == nil {
			targets[i] = &targetYAML{}
			continue
		}
		t.absolute(dir)
	}
}

func (raw *targetYAML) absolute(dir string) {
	raw.HTTP.SetDirectory(dir)
	if raw.HTTP.OAuth2 != nil { // SetDirectory forgets this one
		o := raw.HTTP.OAuth2
		o.ClientCertificateKeyFile = promconfig.JoinDir(dir, o.ClientCertificateKeyFile)
	}
	for i, e := range raw.Scenarios {
		if e == nil {
			raw.Scenarios[i] = &entryYAML{}
			continue
		}
		e.absolute(dir)
	}
}

func (s *scenarioYAML) absolute(dir string) {
	if s.PromptsFile != nil {
		file := promconfig.JoinDir(dir, *s.PromptsFile)
		s.PromptsFile = &file
	}
	s.Check.absolute(dir)
}

func (l *loader) addTargets(src *source, path string, targets []*targetYAML) {
	for i, raw := range targets {
		at := place{src, fmt.Sprintf("%s[%d]", path, i)}
		t := raw.target()
		r := report{&l.problems, locator(at, at)}
		l.addTarget(t, r)
		warnPlaintext(t, r)
		for j, entry := range l.entries(raw, r) {
			l.addEntry(t, raw, entry, at, place{src, fmt.Sprintf("%s.scenarios[%d]", at.path, j)})
		}
	}
}

func (raw *targetYAML) target() *Target {
	t := &Target{
		Name: raw.Name, Protocol: raw.Protocol, URL: raw.URL, Model: raw.Model, Provider: raw.Provider,
		Labels: raw.Labels, HTTP: raw.HTTP, Bearer: raw.Bearer, Connection: raw.Connection, MaxTokensField: raw.MaxTokensField,
		ExtraBody: raw.ExtraBody, Budget: Budget(raw.Budget),
	}
	if raw.Price != nil {
		t.Price = &Price{Input: raw.Price.Input, Output: raw.Price.Output}
	}
	return t
}

// entries returns the scenarios of a target: those that it names; the built-in one where there is nothing to name.
func (l *loader) entries(raw *targetYAML, r report) []*entryYAML {
	if len(raw.Scenarios) > 0 {
		return raw.Scenarios
	}
	if len(l.file.Scenarios) == 0 {
		return []*entryYAML{{Name: builtinName}}
	}
	r.errorf("scenarios", "no scenarios: name at least one, such as [%s]", slices.Sorted(maps.Keys(l.file.Scenarios))[0])
	return nil
}

// addEntry makes the series of one entry of a target's scenarios.
func (l *loader) addEntry(t *Target, target *targetYAML, entry *entryYAML, targetAt, entryAt place) {
	entryReport := report{&l.problems, locator(entryAt, entryAt)}
	scenarioAt := place{l.main, "scenarios." + entry.Name}
	home := scenarioAt
	base, ok := l.file.Scenarios[entry.Name]
	switch {
	case ok:
		l.used[entry.Name] = true
	case entry.Name == builtinName:
		base, home = builtin(), targetAt
	default:
		entryReport.errorf("", "unknown scenario %q; %s", entry.Name, didYouMean(entry.Name, l.knownScenarios()))
		return
	}
	r := report{&l.problems, locator(home, entryAt, targetAt, scenarioAt, place{l.main, "global"})}
	merged := scenarioYAML{timingYAML: target.timingYAML}.over(*base)
	s := l.resolve(entry.Name, entry.scenarioYAML.over(merged), r)
	l.addSeries(&Series{Target: t, Scenario: s}, r, entryReport)
}

// knownScenarios returns the names of all scenarios that there are, sorted.
func (l *loader) knownScenarios() []string {
	known := slices.AppendSeq([]string{builtinName}, maps.Keys(l.file.Scenarios))
	slices.Sort(known)
	return slices.Compact(known)
}

// checkUnused validates a scenario that no target names, so that its errors show before one does.
func (l *loader) checkUnused(name string) {
	at := place{l.main, "scenarios." + name}
	r := report{&l.problems, locator(at, at, place{l.main, "global"})}
	s := l.resolve(name, *l.file.Scenarios[name], r)
	s.setDefaults()
	s.check(r)
	r.warnf("", "no target uses this scenario")
}

// resolve turns the merged YAML of a scenario into a Scenario.
func (l *loader) resolve(name string, raw scenarioYAML, r report) *Scenario {
	raw.timingYAML = raw.timingYAML.over(l.file.Global.timingYAML)
	s := &Scenario{
		Name:              name,
		Interval:          time.Duration(value(raw.Interval)),
		Jitter:            time.Duration(value(raw.Jitter)),
		Timeout:           time.Duration(value(raw.Timeout)),
		FirstTokenTimeout: time.Duration(value(raw.FirstTokenTimeout)),
		IdleTimeout:       time.Duration(value(raw.IdleTimeout)),
		Prompts:           l.promptsOf(raw, r),
		Stream:            raw.Stream == nil || *raw.Stream,
		MaxTokens:         positive(raw.MaxTokens, "max_tokens", r),
		OutputTokens:      positive(raw.OutputTokens, "output_tokens", r),
		RequireText:       value(raw.RequireText),
		Check:             raw.Check.check(r),
		AcceptNotStreamed: value(raw.AcceptNotStreamed),
		ExtraBody:         raw.ExtraBody,
	}
	if raw.Synthetic != nil {
		s.Synthetic = raw.Synthetic.synthetic()
	}
	switch value(raw.Cache) {
	case "keep":
		s.KeepCache = true
	case "", "bust":
	default:
		r.errorf("cache", "must be keep (the endpoint's prefix cache may answer) or bust (every prompt begins with a new nonce)")
	}
	if raw.SLO != nil {
		s.SLO = raw.SLO.slo(l.file.Global.Objective, s.PinsLength())
	}
	return s
}

// positive refuses a 0 that is written down: in a Scenario it would mean that nothing was.
func positive(v *int, key string, r report) int {
	if v != nil && *v == 0 {
		r.errorf(key, "must be at least 1; leave it out for no limit")
	}
	return value(v)
}

func (raw *syntheticYAML) synthetic() *Synthetic {
	s := &Synthetic{SharedPrefixTokens: raw.SharedPrefixTokens, Prefixes: raw.Prefixes, Turns: raw.Turns}
	if raw.InputTokens != nil {
		s.InputTokens = raw.InputTokens.quantiles()
	}
	if raw.OutputTokens != nil {
		q := raw.OutputTokens.quantiles()
		s.OutputTokens = &q
	}
	return s
}

func (q *quantilesYAML) quantiles() Quantiles {
	return Quantiles{P50: value(q.P50), P95: value(cmp.Or(q.P95, q.P50))}
}

// promptsOf returns the prompts of a scenario, with its expect where a prompt has none.
func (l *loader) promptsOf(raw scenarioYAML, r report) []Prompt {
	given := 0
	for _, is := range []bool{raw.Prompt != nil, raw.PromptsFile != nil, raw.Synthetic != nil} {
		if is {
			given++
		}
	}
	if given > 1 {
		r.errorf("prompt", "give only one of prompt, prompts_file and synthetic")
	}
	var prompts []Prompt
	switch {
	case raw.builtin:
		prompts = builtinPrompts()
	case raw.Prompt != nil:
		prompts = []Prompt{{Text: *raw.Prompt, Weight: 1}}
	case raw.PromptsFile != nil:
		if prompts = slices.Clone(l.promptsFile(*raw.PromptsFile, r)); prompts == nil {
			r.excuse("prompt")
		}
	}
	for i := range prompts {
		if prompts[i].Expect == nil && raw.Expect != nil {
			prompts[i].Expect = raw.Expect.Regexp
		}
	}
	return prompts
}

// promptsFile reads a prompts file once, however many series share it.
func (l *loader) promptsFile(file string, r report) []Prompt {
	if prompts, read := l.prompts[file]; read {
		return prompts
	}
	prompts, err := readPrompts(file, &l.problems)
	if err != nil {
		r.errorf("prompts_file", "%w", err)
	}
	l.prompts[file] = prompts
	return prompts
}

// slo brings the criteria into the order of the documentation. An answer that was cut counts as bad unless its length
// is pinned or the configuration says otherwise.
func (raw *sloYAML) slo(objective *ratio, pinned bool) SLO {
	slo := SLO{Objective: float64(value(raw.Objective)), Availability: float64(value(raw.Availability))}
	if raw.Objective == nil {
		slo.Objective = float64(value(objective))
	}
	limits := map[string]*criterionYAML{
		CriterionTTFT: raw.TTFT, CriterionFirstAnswer: raw.FirstAnswer, CriterionTPOT: raw.TPOT,
		CriterionStall: raw.Stall, CriterionE2E: raw.E2E,
	}
	for _, name := range Criteria {
		if c := limits[name]; c != nil {
			slo.Criteria = append(slo.Criteria, Criterion{
				Name: name, Limit: time.Duration(value(c.Limit)), Objective: float64(value(c.Objective)),
			})
		}
	}
	if c := raw.Complete; c == nil && !pinned {
		slo.Criteria = append(slo.Criteria, Criterion{Name: CriterionComplete})
	} else if c != nil && !c.off {
		slo.Criteria = append(slo.Criteria, Criterion{Name: CriterionComplete, Objective: float64(value(c.Objective))})
	}
	return slo
}

// value returns what p points to, the zero value for nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// absolute is filepath.Abs, which fails only where the working directory is gone; the path is then as good as any.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
