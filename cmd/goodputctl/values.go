package main

import (
	"fmt"
	"strconv"
	"strings"

	"goodput_exporter/config"
)

// tokensFlag is a length in tokens: "400", or "200,800", the p50 and the p95 of a distribution. "0" is none.
type tokensFlag struct{ config.Quantiles }

// Set implements kingpin.Value.
func (f *tokensFlag) Set(text string) error {
	first, second, two := strings.Cut(text, ",")
	p50, err := strconv.Atoi(first)
	p95, err2 := p50, error(nil)
	if two {
		p95, err2 = strconv.Atoi(second)
	}
	switch {
	case err != nil || err2 != nil:
		return fmt.Errorf("%q is no length in tokens: write 400, or 200,800 for its p50 and p95", text)
	case two && (p50 < 1 || p95 < p50), p50 < 0:
		return fmt.Errorf("%q: lengths must be positive, and the p95 at least the p50", text)
	}
	f.Quantiles = config.Quantiles{P50: p50, P95: p95}
	return nil
}

// String implements kingpin.Value.
func (f *tokensFlag) String() string {
	switch {
	case !f.set():
		return ""
	case f.fixed():
		return strconv.Itoa(f.P50)
	}
	return fmt.Sprintf("%d,%d", f.P50, f.P95)
}

func (f *tokensFlag) set() bool   { return f.P50 > 0 }
func (f *tokensFlag) fixed() bool { return f.set() && f.P50 == f.P95 }

// levelsFlag is a list of numbers: "1,2,4". It may be given several times.
type levelsFlag []float64

// Set implements kingpin.Value.
func (f *levelsFlag) Set(text string) error {
	for _, field := range strings.Split(text, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil || !(v > 0) || v > 1e6 {
			return fmt.Errorf("%q is no level of load: it must be a positive number, or a list of them such as 1,2,4,8", field)
		}
		*f = append(*f, v)
	}
	return nil
}

// String implements kingpin.Value.
func (f *levelsFlag) String() string {
	var fields []string
	for _, v := range *f {
		fields = append(fields, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return strings.Join(fields, ",")
}

// IsCumulative says that the flag may be repeated.
func (f *levelsFlag) IsCumulative() bool { return true }
