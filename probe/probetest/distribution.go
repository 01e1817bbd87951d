package probetest

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"
)

// Distribution draws one value.
type Distribution func(*rand.Rand) float64

// Fixed always draws v.
func Fixed(v float64) Distribution { return func(*rand.Rand) float64 { return v } }

// Uniform draws from low to high.
func Uniform(low, high float64) Distribution {
	return func(r *rand.Rand) float64 { return low + (high-low)*r.Float64() }
}

// Normal draws from the normal distribution, and 0 instead of what is less.
func Normal(mean, deviation float64) Distribution {
	return func(r *rand.Rand) float64 { return max(0, mean+deviation*r.NormFloat64()) }
}

// Lognormal draws from the lognormal distribution with these quantiles.
func Lognormal(p50, p95 float64) Distribution {
	const z95 = 1.6448536269514722 // the 0.95 quantile of the normal distribution
	sigma := math.Log(p95/p50) / z95
	return func(r *rand.Rand) float64 { return p50 * math.Exp(sigma*r.NormFloat64()) }
}

// Recorded draws one of the values, each as likely as the others. There must be at least one.
func Recorded(values []float64) Distribution {
	return func(r *rand.Rand) float64 { return values[r.IntN(len(values))] }
}

// ParseDurations reads a distribution of seconds: "fixed:200ms", "uniform:100ms,300ms" (from, to),
// "normal:200ms,50ms" (mean, deviation), "lognormal:200ms,500ms" (median, 95th percentile), "recorded:FILE" (one value
// a line), or "200ms", which is fixed.
func ParseDurations(s string) (Distribution, error) {
	return parse(s, func(value string) (float64, error) {
		d, err := time.ParseDuration(value)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration such as 200ms", value)
		}
		return d.Seconds(), nil
	})
}

// ParseCounts reads a distribution of numbers, in the forms of ParseDurations: "fixed:64", or "64".
func ParseCounts(s string) (Distribution, error) {
	return parse(s, func(value string) (float64, error) {
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return 0, fmt.Errorf("%q is no number", value)
		}
		return n, nil
	})
}

// shapes are the distributions by name: how many values each has, and what they must be.
var shapes = map[string]struct {
	values int
	check  func(v []float64) error
	make   func(v []float64) Distribution
}{
	"fixed":   {1, nil, func(v []float64) Distribution { return Fixed(v[0]) }},
	"normal":  {2, nil, func(v []float64) Distribution { return Normal(v[0], v[1]) }},
	"uniform": {2, rising, func(v []float64) Distribution { return Uniform(v[0], v[1]) }},
	"lognormal": {2, func(v []float64) error {
		if v[0] == 0 {
			return errors.New("the median must be more than 0")
		}
		return rising(v)
	}, func(v []float64) Distribution { return Lognormal(v[0], v[1]) }},
}

func rising(v []float64) error {
	if v[1] < v[0] {
		return errors.New("the second value must not be less than the first")
	}
	return nil
}

func parse(s string, value func(string) (float64, error)) (Distribution, error) {
	name, list, named := strings.Cut(s, ":")
	if !named {
		name, list = "fixed", s
	}
	if name == "recorded" {
		return readRecorded(list, value)
	}
	shape, ok := shapes[name]
	if !ok {
		return nil, fmt.Errorf("%q is no distribution: it must be fixed, uniform, normal, lognormal or recorded", name)
	}
	texts := strings.Split(list, ",")
	if len(texts) != shape.values {
		return nil, fmt.Errorf("%s has %d values, not %d", name, shape.values, len(texts))
	}
	values := make([]float64, len(texts))
	for i, text := range texts {
		v, err := notNegative(strings.TrimSpace(text), value)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	if shape.check != nil {
		if err := shape.check(values); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	return shape.make(values), nil
}

func notNegative(text string, value func(string) (float64, error)) (float64, error) {
	v, err := value(text)
	if err == nil && v < 0 {
		err = fmt.Errorf("%s is negative", text)
	}
	return v, err
}

// readRecorded reads a file with one value a line. Blank lines and lines that begin with # say nothing.
func readRecorded(file string, value func(string) (float64, error)) (Distribution, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("recorded values: %w", err)
	}
	defer f.Close()
	var values []float64
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		v, err := notNegative(text, value)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number, err)
		}
		values = append(values, v)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("recorded values: %w", err)
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("%s has no values: write one a line", file)
	}
	return Recorded(values), nil
}

func draw(d Distribution, r *rand.Rand, absent float64) float64 {
	if d == nil {
		return absent
	}
	return d(r)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
