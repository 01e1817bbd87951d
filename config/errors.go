package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Error is one thing that is wrong with a configuration, and where it stands.
type Error struct {
	File string // "" where the value comes from code or the environment
	Line int    // 0 where no line can be named
	Key  string // such as targets[1].http.authorization; "" for the file as a whole
	Err  error  // what is wrong, and what would be right
}

// Error returns "file:line: key: message", without the parts that are unknown.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.File != "" {
		if e.Line > 0 {
			b.WriteString(":" + strconv.Itoa(e.Line))
		}
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors is everything that is wrong with a configuration, in the order of the files and their lines.
type Errors []*Error

// Error returns one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors one by one, for errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// position identifies a place that has had its error: what follows from it would only distract.
type position struct {
	file string
	line int
	key  string
}

// problems collects the errors and warnings of one configuration.
type problems struct {
	files    []string // as they are named in errors, in the order of reading
	errors   Errors
	warnings Errors
	blamed   map[position]bool
}

func (p *problems) blame(e Error) (first bool) {
	if p.blamed == nil {
		p.blamed = make(map[position]bool)
	}
	at := position{e.File, e.Line, e.Key}
	first = !p.blamed[at]
	p.blamed[at] = true
	return first
}

// add takes an error unless its place already has one.
func (p *problems) add(e Error) {
	if p.blame(e) {
		p.errors = append(p.errors, &e)
	}
}

func (p *problems) warn(e Error) {
	same := func(w *Error) bool { return w.Error() == e.Error() }
	if !slices.ContainsFunc(p.warnings, same) {
		p.warnings = append(p.warnings, &e)
	}
}

// sort brings errors into the order in which a reader meets them.
func (p *problems) sort(errs Errors) {
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(slices.Index(p.files, a.File), slices.Index(p.files, b.File)),
			cmp.Compare(a.Line, b.Line),
		)
	})
}

// report takes the problems of one part of a configuration, by the keys of that part; locate knows where a key
// stands.
type report struct {
	*problems
	locate func(key string) Error
}

func (r report) errorf(key, format string, args ...any) {
	e := r.locate(key)
	e.Err = fmt.Errorf(format, args...)
	r.add(e)
}

func (r report) warnf(key, format string, args ...any) {
	e := r.locate(key)
	e.Err = fmt.Errorf(format, args...)
	r.warn(e)
}

// excuse keeps quiet about a key whose error is reported elsewhere.
func (r report) excuse(key string) { r.blame(r.locate(key)) }

// source is one YAML file: its name, and the line of each key path in it.
type source struct {
	file  string
	lines map[string]int
}

// place is a mapping inside a source.
type place struct {
	src  *source
	path string // "" is the whole file
}

func (p place) at(key string, line int) Error {
	return Error{File: p.src.file, Line: line, Key: join(p.path, key)}
}

// locator returns a report's locate for a part whose keys may stand in several places, the strongest first. A key
// that none of them has is missing from home.
func locator(home place, places ...place) func(key string) Error {
	return func(key string) Error {
		for k := key; k != ""; k = parent(k) {
			for _, p := range places {
				if line, ok := p.src.lines[join(p.path, k)]; ok {
					return p.at(key, line)
				}
			}
		}
		return home.at(key, home.src.lines[home.path])
	}
}

// join appends a key, or an index in brackets, to a path.
func join(path, key string) string {
	if path == "" || key == "" || key[0] == '[' {
		return path + key
	}
	return path + "." + key
}

// parent returns the path without its last part, "" for a path of one part.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// didYouMean proposes the known word nearest to a mistyped one, or lists them all where none is near.
func didYouMean(word string, known []string) string {
	if len(known) == 0 {
		return "there is none"
	}
	best, distance := "", 1+len(word)/3
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), k); d <= distance && (best == "" || d < distance) {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}

// editDistance counts the bytes to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
