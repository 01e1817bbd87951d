package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"
)

// decoder fills Go values from a YAML tree. It does what yaml.Decoder does with KnownFields, and besides: it goes on
// after an error, names the path of the key, notes the line of every key, and never repeats a value. It walks
// into structs even where they have an UnmarshalYAML of their own, so that the HTTP settings of prometheus/common are
// as strict as ours; their Validate methods are called in http.go.
type decoder struct {
	*problems
	src    *source
	budget int // nodes that may still be visited: aliases can make a small file very large
}

// maxNodes is far beyond any real configuration.
const maxNodes = 1 << 20

// maxMerges bounds how deep merges (<<) may nest; one that contains itself has no end.
const maxMerges = 16

// scalar is a type that can be written as one scalar, whatever longer form it may have besides.
type scalar interface {
	setScalar(value string) error
	form() string // what to write, such as "a duration such as 800ms"
}

// unmarshaler is how types of prometheus/common read themselves.
type unmarshaler interface {
	UnmarshalYAML(unmarshal func(any) error) error
}

// parse returns the root of the only document of a file; nil for an empty file. Its error is the place and kind of a
// mistake of syntax.
func parse(file string, r io.Reader) (*yaml.Node, *Error) {
	d := yaml.NewDecoder(r)
	var doc, second yaml.Node
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		if err = d.Decode(&second); errors.Is(err, io.EOF) {
			return doc.Content[0], nil
		}
		if err == nil {
			return nil, &Error{File: file, Line: second.Line, Err: errors.New("a second YAML document: put everything into one")}
		}
	}
	return nil, syntaxError(file, err)
}

var (
	syntaxLine = regexp.MustCompile(`^line (\d+): `)
	// The parser of yaml/v3, unlike its scanner, counts lines from 0, and leaves a 0 out.
	parserError = regexp.MustCompile(`^did not find expected (<|node content|key|'-' indicator|',' or)`)
)

func syntaxError(file string, err error) *Error {
	e := &Error{File: file}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		text = strings.TrimPrefix(text, m[0])
	}
	switch {
	case strings.Contains(text, "unknown anchor"):
		// The name of the anchor could be a password that begins with an asterisk.
		text = "an alias to an anchor that does not exist; quote a value that begins with *"
	case parserError.MatchString(text):
		e.Line++
	}
	e.Err = errors.New("not YAML: " + text)
	return e
}

func (d *decoder) errorf(path string, n *yaml.Node, format string, args ...any) {
	d.add(Error{File: d.src.file, Line: n.Line, Key: path, Err: fmt.Errorf(format, args...)})
}

// decode sets out from n and reports whether it could. A null leaves out as it is.
func (d *decoder) decode(path string, n *yaml.Node, out reflect.Value) bool {
	if d.budget--; d.budget < 0 {
		d.add(Error{File: d.src.file, Err: errors.New("too large: its aliases repeat more than a million values")})
		return false
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.ShortTag() == "!!null" {
		return false
	}
	if out.Kind() == reflect.Pointer {
		elem := reflect.New(out.Type().Elem())
		ok := d.decode(path, n, elem.Elem())
		if ok {
			out.Set(elem)
		}
		return ok
	}
	if n.Kind == yaml.ScalarNode {
		return d.scalar(path, n, out)
	}
	switch {
	case out.Type() == reflect.TypeFor[map[string]any]() && n.Kind == yaml.MappingNode:
		return d.free(path, n, out)
	case out.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		d.structure(path, n, out)
	case out.Kind() == reflect.Map && n.Kind == yaml.MappingNode:
		d.mapping(path, n, out)
	case out.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			d.src.lines[at] = item.Line
			elem := reflect.New(out.Type().Elem()).Elem()
			d.decode(at, item, elem)
			out.Set(reflect.Append(out, elem))
		}
	default:
		return d.wrongType(path, n, out)
	}
	return true
}

func (d *decoder) scalar(path string, n *yaml.Node, out reflect.Value) bool {
	ptr := out.Addr().Interface()
	if s, ok := ptr.(scalar); ok {
		if err := s.setScalar(n.Value); err != nil {
			d.errorf(path, n, "%w", err)
			return false
		}
		return true
	}
	_, unmarshals := ptr.(unmarshaler)
	switch out.Kind() {
	case reflect.String:
		out.SetString(n.Value)
		return true
	case reflect.Struct, reflect.Map, reflect.Slice:
		if !unmarshals {
			return d.wrongType(path, n, out)
		}
	}
	if n.Decode(ptr) != nil { // its text repeats the value
		return d.wrongType(path, n, out)
	}
	return true
}

func (d *decoder) structure(path string, n *yaml.Node, out reflect.Value) {
	known, rest := fields(out)
	for _, p := range d.pairs(path, n, 0) {
		at := join(path, p.key.Value)
		d.src.lines[at] = p.key.Line
		if field, ok := known[p.key.Value]; ok {
			d.decode(at, p.value, field)
		} else if rest.IsValid() {
			d.entry(at, p, rest)
		} else {
			d.unknown(path, p.key, slices.Sorted(maps.Keys(known)))
		}
	}
}

var looksLikeKey = regexp.MustCompile(`^[a-z][a-z_]{0,30}$`)

// unknown reports a key that nothing has. One that does not look like a key is not repeated: it could be a secret
// with its key forgotten, as in "authorization: {sk-123}".
func (d *decoder) unknown(path string, key *yaml.Node, known []string) {
	if !looksLikeKey.MatchString(key.Value) {
		d.errorf(path, key, "unknown key; known are %s", strings.Join(known, ", "))
		return
	}
	d.errorf(join(path, key.Value), key, "unknown key; %s", didYouMean(key.Value, known))
}

func (d *decoder) mapping(path string, n *yaml.Node, out reflect.Value) {
	for _, p := range d.pairs(path, n, 0) {
		at := join(path, p.key.Value)
		d.src.lines[at] = p.key.Line
		d.entry(at, p, out)
	}
}

// entry adds one entry to a map, creating the map when it is the first.
func (d *decoder) entry(path string, p pair, out reflect.Value) {
	if out.IsNil() {
		out.Set(reflect.MakeMap(out.Type()))
	}
	elem := reflect.New(out.Type().Elem()).Elem()
	d.decode(path, p.value, elem)
	out.SetMapIndex(reflect.ValueOf(p.key.Value), elem)
}

// free decodes a mapping of any content, such as extra_body.
func (d *decoder) free(path string, n *yaml.Node, out reflect.Value) bool {
	before := len(d.errors)
	d.pairs(path, n, 0)
	if err := n.Decode(out.Addr().Interface()); err != nil && len(d.errors) == before {
		d.errorf(path, n, "not a mapping that can be read: look for keys given twice and for tags that do not fit their values")
	}
	return len(d.errors) == before
}

func (d *decoder) wrongType(path string, n *yaml.Node, out reflect.Value) bool {
	d.errorf(path, n, "must be %s, not %s", wanted(out), found(n))
	return false
}

// pair is one entry of a mapping.
type pair struct{ key, value *yaml.Node }

// pairs lists the entries of a mapping, and those merged into it with << that it does not override. It reports keys
// that are given twice.
func (d *decoder) pairs(path string, n *yaml.Node, depth int) []pair {
	var own, merged []pair
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch line, given := first[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			d.errorf(path, key, "a key must be a plain word, not %s", found(key))
		case key.Tag == "!!merge":
			merged = append(merged, d.merged(path, value, depth)...)
		case given:
			d.errorf(join(path, key.Value), key, "given twice, first in line %d; remove one", line)
		default:
			first[key.Value] = key.Line
			own = append(own, pair{key, value})
		}
	}
	for _, p := range merged {
		if _, given := first[p.key.Value]; !given {
			first[p.key.Value] = p.key.Line
			own = append(own, p)
		}
	}
	return own
}

// merged lists the entries of the value of a <<: a mapping or a list of mappings.
func (d *decoder) merged(path string, n *yaml.Node, depth int) []pair {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case depth >= maxMerges:
		d.errorf(path, n, "merges (<<) nest too deep, or one contains itself")
	case n.Kind == yaml.MappingNode:
		return d.pairs(path, n, depth+1)
	case n.Kind == yaml.SequenceNode && depth == 0:
		var all []pair
		for _, item := range n.Content {
			all = append(all, d.merged(path, item, depth+1)...)
		}
		return all
	default:
		d.errorf(path, n, "a merge (<<) must name a mapping or a list of mappings")
	}
	return nil
}

// fields maps the YAML keys of a struct to its fields, those of inlined structs included; rest is its inlined map,
// if it has one.
func fields(v reflect.Value) (known map[string]reflect.Value, rest reflect.Value) {
	known = make(map[string]reflect.Value)
	for i := range v.NumField() {
		tag, tagged := v.Type().Field(i).Tag.Lookup("yaml")
		name, options, _ := strings.Cut(tag, ",")
		switch inline := options == "inline"; {
		case !tagged || name == "-":
		case inline && v.Field(i).Kind() == reflect.Map:
			rest = v.Field(i)
		case inline:
			inlined, _ := fields(v.Field(i))
			maps.Copy(known, inlined)
		default:
			known[name] = v.Field(i)
		}
	}
	return known, rest
}

// wanted says what may stand where a value of another type stood.
func wanted(v reflect.Value) string {
	switch t := v.Addr().Interface().(type) {
	case scalar:
		return t.form()
	case *promconfig.URL:
		return "a URL"
	case *promconfig.TLSVersion:
		return "one of TLS10, TLS11, TLS12, TLS13"
	}
	switch v.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		if known, rest := fields(v); !rest.IsValid() {
			return "a mapping with the keys " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
		}
		return "a mapping"
	case reflect.Map:
		return "a mapping"
	}
	return "a string"
}

// found names the kind of a value without repeating it.
func found(n *yaml.Node) string {
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "a truth value"
	case "!!map":
		return "a mapping"
	case "!!seq":
		return "a list"
	}
	return "a string"
}
