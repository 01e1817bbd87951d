package load

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Gate is a condition under which a report is not good enough, such as attainment<99%.
type Gate struct {
	text   string
	figure quantity
	op     string
	bound  float64
}

var gateForm = regexp.MustCompile(`^\s*([a-z0-9_]+)\s*(<=|>=|<|>)\s*(\S+)\s*$`)

// ParseGate reads a condition: the name of a figure, one of < <= > >=, and a value in the figure's unit: a share (99% or
// 0.99), a time (800ms, or 0.8 in seconds), or a number. Figures are named as the keys at the top of a report's JSON, or
// shorter: attainment, goodput, error_rate, ttft_p95, e2e_with_failures_p99, and so on.
func ParseGate(text string) (Gate, error) {
	m := gateForm.FindStringSubmatch(text)
	if m == nil {
		return Gate{}, errors.New("not a condition: write one such as attainment<99% or ttft_p95>800ms")
	}
	figures := allFigures()
	for _, f := range figures {
		if m[1] != f.name && m[1] != f.alias {
			continue
		}
		bound, err := f.parse(m[3])
		if err != nil {
			return Gate{}, fmt.Errorf("%s: %w", f.name, err)
		}
		return Gate{strings.TrimSpace(text), f, m[2], bound}, nil
	}
	return Gate{}, fmt.Errorf("there is no figure %q; known are %s", m[1], knownFigures(figures))
}

// parse reads a value in the figure's unit.
func (f *quantity) parse(text string) (float64, error) {
	switch f.unit {
	case unitRatio:
		number, isPercent := strings.CutSuffix(text, "%")
		v, err := strconv.ParseFloat(number, 64)
		if isPercent {
			v /= 100
		}
		if err != nil || !(v >= 0 && v <= 1) {
			return 0, fmt.Errorf("%q is not a share: write one such as 99%% or 0.99", text)
		}
		return v, nil
	case unitSeconds:
		if d, err := time.ParseDuration(text); err == nil {
			return d.Seconds(), nil
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) {
			return 0, fmt.Errorf("%q is not a time: write one such as 800ms or 2.5s, or a number of seconds", text)
		}
		return v, nil
	case unitNumber:
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) {
		return 0, fmt.Errorf("%q is not a number: write one such as 12.5", text)
	}
	return v, nil
}

// format writes a value of the figure for a person.
func (f *quantity) format(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case f.unit == unitRatio:
		return percent(v)
	case f.unit == unitSeconds:
		return short(toDuration(Value(v))).String()
	}
	return plain(v)
}

// Fails reports whether the condition holds, and says why in words. A figure that the report does not have fails: what was
// not measured is not known to be good.
func (g Gate) Fails(r *Report) (failed bool, why string) {
	v := g.figure.value(r)
	if v == nil {
		return true, fmt.Sprintf("%s: the report has no %s", g.text, g.figure.name)
	}
	switch g.op {
	case "<":
		failed = *v < g.bound
	case "<=":
		failed = *v <= g.bound
	case ">":
		failed = *v > g.bound
	case ">=":
		failed = *v >= g.bound
	}
	if failed {
		return true, fmt.Sprintf("%s: %s is %s", g.text, g.figure.name, g.figure.format(*v))
	}
	return false, fmt.Sprintf("not %s: %s is %s", g.text, g.figure.name, g.figure.format(*v))
}

// knownFigures lists the names, the many of one kind in short.
func knownFigures(figures []quantity) string {
	var names []string
	for _, f := range figures {
		base, isMean := strings.CutSuffix(f.name, "_mean")
		switch {
		case isMean:
			names = append(names, base+"_{mean,p50,p95,p99,max}")
		case f.unit == unitSeconds && f.name != "duration": // in the braces above
		default:
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ", ")
}
