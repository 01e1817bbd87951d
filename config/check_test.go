package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const objectSchema = `{"type": "object"}`

func TestChecksLoadAndOverride(t *testing.T) {
	write(t, map[string]string{
		"schemas/a.json": objectSchema, "t/b.json": `{"type": "array"}`,
		"t/x.yml": "- {name: c, url: 'http://c', model: m, scenarios: [{name: s, check: {schema: b.json}}]}\n",
	})
	cfg := load(t, `
scenarios: {s: {prompt: x, check: {json: true, schema: schemas/a.json, min_length: 3, max_repetition: 30}}}
target_files: [t/*.yml]
targets:
  - {name: a, url: 'http://a', model: m, scenarios: [s]}
  - {name: b, url: 'http://b', model: m, scenarios: [{name: s, check: {json: false, min_length: 9}}]}
`)
	var got []Check
	for _, s := range cfg.Series {
		got = append(got, s.Scenario.Check)
	}
	want := []Check{
		{JSON: true, Schema: objectSchema, SchemaFile: "schemas/a.json", MinLength: 3, MaxRepetition: 30},
		{Schema: objectSchema, SchemaFile: "schemas/a.json", MinLength: 9, MaxRepetition: 30},
		{JSON: true, Schema: `{"type": "array"}`, SchemaFile: "t/b.json", MinLength: 3, MaxRepetition: 30},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	for _, file := range []string{"schemas/a.json", "t/b.json"} { // so that a change is a reload
		if n := strings.Count(strings.Join(cfg.Files, " "), file); n != 1 {
			t.Errorf("%s is %d times among the files %v", file, n, cfg.Files)
		}
	}
	masked, err := cfg.Masked()
	if err != nil {
		t.Fatal(err)
	}
	if want := "check:\n          schema: schemas/a.json\n          min_length: 9\n          max_repetition: 30\n"; !strings.Contains(string(masked), want) {
		t.Errorf("no %q in:\n%s", want, masked)
	}
}

// A schema that changed is another scenario, although its file has the same name.
func TestSchemaIsPartOfEqual(t *testing.T) {
	const text = "scenarios: {s: {prompt: x, check: {schema: a.json}}}\ntargets: [{name: a, url: 'http://a', model: m, scenarios: [s]}]\n"
	write(t, map[string]string{"a.json": objectSchema})
	was := load(t, text).Series[0]
	if !was.Equal(load(t, text).Series[0]) {
		t.Error("the same schema is not equal")
	}
	write(t, map[string]string{"a.json": `{"type": "array"}`})
	if was.Equal(load(t, text).Series[0]) {
		t.Error("another schema is equal")
	}
}

func TestChecksThatAreWrong(t *testing.T) {
	for name, tc := range map[string]struct{ check, want string }{
		"unknown key":       {"{jason: true}", `c.yml:2: scenarios.s.check.jason: unknown key; did you mean "json"?`},
		"not a mapping":     {"json", "scenarios.s.check: must be a mapping with the keys json, max_repetition, min_length, schema, not a string"},
		"no truth value":    {"{json: perhaps}", "scenarios.s.check.json: must be true or false"},
		"length of 0":       {"{min_length: 0}", "scenarios.s.check.min_length: must be at least 1; leave it out for no limit"},
		"negative length":   {"{min_length: -1}", "scenarios.s.check.min_length: must be at least 1; leave it out for no limit"},
		"repetition of 0":   {"{max_repetition: 0}", "scenarios.s.check.max_repetition: must be at least 1"},
		"schema missing":    {"{schema: no.json}", "scenarios.s.check.schema: cannot read the schema no.json: no such file or directory; paths are relative to the file that names them"},
		"schema empty":      {"{schema: empty.json}", `scenarios.s.check.schema: the schema empty.json is empty: write one such as {"type": "object"}`},
		"schema no JSON":    {"{schema: text.json}", "scenarios.s.check.schema: the schema text.json is not JSON: invalid character 'o'"},
		"schema wrong":      {"{schema: wrong.json}", "scenarios.s.check.schema: wrong.json is not a JSON schema that stands for itself: "},
		"schema of another": {"{schema: refers.json}", "scenarios.s.check.schema: refers.json is not a JSON schema that stands for itself: "},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, map[string]string{
				"empty.json": " ", "text.json": "object", "wrong.json": `{"type": "thing"}`,
				"refers.json": `{"$ref": "file:///etc/passwd"}`,
				"c.yml":       "scenarios:\n  s: {prompt: x, check: " + tc.check + "}\ntargets: [{name: a, url: 'http://a', model: m, scenarios: [s]}]\n",
			})
			_, err := Load("c.yml")
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("got %v, want one line with %q", err, tc.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "c.yml:2: ") {
				t.Errorf("not of line 2: %v", err)
			}
		})
	}
}

func TestChecksOfAnswersWithoutText(t *testing.T) {
	write(t, map[string]string{"c.yml": "scenarios: {s: {prompt: x, check: {json: true}}}\ntargets: [{name: a, url: 'http://a', model: m, protocol: openai-embeddings, scenarios: [s]}]\n"})
	if _, err := Load("c.yml"); err == nil || !strings.Contains(err.Error(), "check: has no meaning for openai-embeddings") {
		t.Errorf("got %v", err)
	}
}
