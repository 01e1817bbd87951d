package load

import (
	"strings"
	"testing"
)

func TestGates(t *testing.T) {
	r := Summarize(drawnRun(2, 400)) // testdata/report.json
	for _, tc := range []struct {
		gate   string
		failed bool
		why    string
	}{
		{"attainment<99%", true, "attainment<99%: attainment is 82.55 %"},
		{"attainment<80%", false, "not attainment<80%: attainment is 82.55 %"},
		{"slo_attainment < 0.99", true, "attainment is 82.55 %"},
		{"error_rate>10%", true, "error_rate is 10.8 %"},
		{"error_rate>=11%", false, "error_rate is 10.8 %"},
		{"goodput<7", true, "goodput is 6.693"},
		{"goodput_req_s<6.5", false, "goodput is 6.693"},
		{"throughput_req_s<=8.2", true, "throughput is 8.108"},
		{"ttft_p95>700ms", false, "ttft_p95 is 699.6ms"},
		{"ttft_p95>0.69", true, "ttft_p95 is 699.6ms"},
		{"ttft_with_failures_p95>1h", true, "ttft_with_failures_p95 is +Inf"},
		{"latency_p99_s>8s", true, "e2e_p99 is 8.62s"},
		{"e2e_p99>8s", true, "e2e_p99 is 8.62s"},
		{"attainment_ttft<95%", true, "attainment_ttft is 91.69 %"},
		{"timeouts>19", false, "timeouts is 19"},
		{"stall_p99>1s", true, "stall_p99>1s: the report has no stall_p99"},
		{"stall_p99<1s", true, "the report has no stall_p99"},
	} {
		g, err := ParseGate(tc.gate)
		if err != nil {
			t.Errorf("%s: %v", tc.gate, err)
			continue
		}
		if failed, why := g.Fails(r); failed != tc.failed || !strings.Contains(why, tc.why) {
			t.Errorf("%s: %v, %q; want %v, %q", tc.gate, failed, why, tc.failed, tc.why)
		}
	}
}

func TestBadGatesAreRefused(t *testing.T) {
	for gate, want := range map[string]string{
		"":                "not a condition: write one such as attainment<99%",
		"attainment=99%":  "not a condition",
		"attainment<":     "not a condition",
		"attainment<99":   `attainment: "99" is not a share: write one such as 99% or 0.99`,
		"attainment<NaN":  "is not a share",
		"ttft_p95>fast":   `ttft_p95: "fast" is not a time: write one such as 800ms`,
		"goodput<99%":     `goodput: "99%" is not a number`,
		"happiness<1":     `there is no figure "happiness"; known are attainment, availability, error_rate, attainment_ttft`,
		"ttft_p90>800ms ": "ttft_{mean,p50,p95,p99,max}",
	} {
		if _, err := ParseGate(gate); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", gate, err, want)
		}
	}
}

// Whoever reads the JSON can gate on what stands at its top by the same names.
func TestGatesKnowTheKeysOfTheReport(t *testing.T) {
	for _, key := range []string{
		"duration_seconds", "throughput_req_s", "successful_req_s", "goodput_req_s", "slo_attainment", "output_token_s", "good_output_token_s",
		"latency_mean_s", "latency_p50_s", "latency_p95_s", "latency_p99_s",
	} {
		if _, err := ParseGate(key + ">0.5"); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestFiguresHaveOneNameEach(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range allFigures() {
		for _, name := range []string{f.name, f.alias} {
			if name != "" && seen[name] {
				t.Errorf("%s names two figures", name)
			}
			seen[name] = true
		}
	}
}
