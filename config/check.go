package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Check is what the visible text of a complete answer must be, beside what a prompt expects of it. Its zero value asks
// for nothing.
type Check struct {
	JSON          bool   // one JSON value, with nothing around it
	Schema        string // the text of a JSON schema, which that value must fit; "" is none
	SchemaFile    string // where Schema comes from
	MinLength     int    // characters, without white space at both ends; 0 is no bound
	MaxRepetition int    // how often in a row the end may say the same short thing; 0 is no bound
}

// ReadSchema reads a JSON schema from a file, for Schema. That it is one, the validation finds out.
func (c *Check) ReadSchema(file string) error {
	c.SchemaFile = file
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the schema %s: %w", file, cause(err))
	}
	if c.Schema = string(data); strings.TrimSpace(c.Schema) == "" {
		return fmt.Errorf(`the schema %s is empty: write one such as {"type": "object"}`, file)
	}
	return nil
}

// CompileSchema returns the schema, nil where there is none. A schema stands for itself: what refers to another file,
// or to the network, is an error.
func (c *Check) CompileSchema() (*jsonschema.Schema, error) {
	if c.Schema == "" {
		return nil, nil
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(c.Schema))
	if err != nil {
		return nil, fmt.Errorf("the schema %s is not JSON: %w", c.SchemaFile, err)
	}
	const location = "schema:///" // its name in itself, never opened
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	if err := compiler.AddResource(location, doc); err != nil {
		return nil, fmt.Errorf("the schema %s: %w", c.SchemaFile, err)
	}
	schema, err := compiler.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("%s is not a JSON schema that stands for itself: %s", c.SchemaFile, reason(err))
	}
	return schema, nil
}

// reason puts an error of jsonschema into one line without its name for the schema.
func reason(err error) string {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		err = invalid.Err
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "schema:///", "")), " ")
}

// check reports what is wrong, by the keys of the YAML.
func (c *Check) check(r report) {
	if _, err := c.CompileSchema(); err != nil {
		r.errorf("check.schema", "%w", err)
	}
	if c.MinLength < 0 {
		r.errorf("check.min_length", "must be at least 1; leave it out for no limit")
	}
	if c.MaxRepetition < 0 {
		r.errorf("check.max_repetition", "must be at least 1; leave it out for no limit")
	}
}

type checkYAML struct {
	JSON          *bool   `yaml:"json"`
	Schema        *string `yaml:"schema"`
	MinLength     *int    `yaml:"min_length"`
	MaxRepetition *int    `yaml:"max_repetition"`
}

func (c *checkYAML) over(base *checkYAML) *checkYAML {
	if c == nil || base == nil {
		return cmp.Or(c, base)
	}
	return &checkYAML{
		JSON:          cmp.Or(c.JSON, base.JSON),
		Schema:        cmp.Or(c.Schema, base.Schema),
		MinLength:     cmp.Or(c.MinLength, base.MinLength),
		MaxRepetition: cmp.Or(c.MaxRepetition, base.MaxRepetition),
	}
}

func (c *checkYAML) absolute(dir string) {
	if c != nil && c.Schema != nil {
		file := promconfig.JoinDir(dir, *c.Schema)
		c.Schema = &file
	}
}

// check reads the schema and returns the Check.
func (c *checkYAML) check(r report) Check {
	if c == nil {
		return Check{}
	}
	out := Check{
		JSON:          value(c.JSON),
		MinLength:     positive(c.MinLength, "check.min_length", r),
		MaxRepetition: positive(c.MaxRepetition, "check.max_repetition", r),
	}
	if c.Schema == nil {
		return out
	}
	if err := out.ReadSchema(*c.Schema); err != nil {
		r.errorf("check.schema", "%w; paths are relative to the file that names them", err)
		return out
	}
	if !slices.Contains(r.files, out.SchemaFile) {
		r.files = append(r.files, out.SchemaFile)
	}
	return out
}

type checkView struct {
	JSON          bool   `yaml:"json,omitempty"`
	Schema        string `yaml:"schema,omitempty"`
	MinLength     int    `yaml:"min_length,omitempty"`
	MaxRepetition int    `yaml:"max_repetition,omitempty"`
}

func viewCheck(c Check) checkView {
	return checkView{JSON: c.JSON, Schema: c.SchemaFile, MinLength: c.MinLength, MaxRepetition: c.MaxRepetition}
}
