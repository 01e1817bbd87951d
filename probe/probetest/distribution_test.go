package probetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// quantiles draws many values and returns three of their quantiles.
func quantiles(d Distribution) (p05, p50, p95 float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 4000)
	for i := range values {
		values[i] = d(rng)
	}
	slices.Sort(values)
	return values[200], values[2000], values[3800]
}

func TestParseDistributions(t *testing.T) {
	recorded := filepath.Join(t.TempDir(), "ttft")
	if err := os.WriteFile(recorded, []byte("# of Monday\n100ms\n\n100ms\n  1s\n100ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text          string
		p05, p50, p95 float64
	}{
		{"200ms", 0.2, 0.2, 0.2},
		{"fixed:1.5s", 1.5, 1.5, 1.5},
		{"uniform:100ms,300ms", 0.11, 0.2, 0.29},
		{"normal:200ms,50ms", 0.118, 0.2, 0.282},
		{"normal:1s,1s", 0, 1, 2.64},
		{"lognormal:200ms, 500ms", 0.08, 0.2, 0.5},
		{"recorded:" + recorded, 0.1, 0.1, 1},
	} {
		d, err := ParseDurations(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		p05, p50, p95 := quantiles(d)
		for i, q := range [][2]float64{{p05, tc.p05}, {p50, tc.p50}, {p95, tc.p95}} {
			if q[0] < q[1]*0.9-1e-9 || q[0] > q[1]*1.1+0.03 {
				t.Errorf("%s: quantile %d is %v, want about %v", tc.text, i, q[0], q[1])
			}
		}
	}
	d, err := ParseCounts("uniform:20,48")
	if err != nil {
		t.Fatal(err)
	}
	if p05, _, p95 := quantiles(d); p05 < 20 || p95 > 48 {
		t.Errorf("counts from %v to %v", p05, p95)
	}
}

func TestParseDistributionsRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(content string) string {
		name := filepath.Join(dir, fmt.Sprint(len(content)))
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return "recorded:" + name
	}
	for text, want := range map[string]string{
		"":                        `"" is no duration`,
		"soon":                    `"soon" is no duration such as 200ms`,
		"200":                     `"200" is no duration such as 200ms`,
		"fixed:-1s":               "-1s is negative",
		"gauss:1s,1s":             `"gauss" is no distribution: it must be fixed, uniform, normal, lognormal or recorded`,
		"normal:1s":               "normal has 2 values, not 1",
		"uniform:2s,1s":           "the second value must not be less than the first",
		"lognormal:0s,1s":         "the median must be more than 0",
		"recorded:" + dir + "/no": "no such file",
		file("# nothing\n"):       "has no values: write one a line",
		file("1s\nsoon\n"):        `:2: "soon" is no duration`,
	} {
		if _, err := ParseDurations(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := ParseCounts("many"); err == nil || !strings.Contains(err.Error(), `"many" is no number`) {
		t.Errorf("many: %v", err)
	}
}
