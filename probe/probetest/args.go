package probetest

import (
	"fmt"
	"strings"
	"time"
)

// Args returns the arguments with which `goodputctl probe` meets a case at the URL of its player.
func Args(c Case, url string) []string {
	args := []string{
		"--url=" + url,
		"--protocol=" + c.Protocol,
		"--model=m",
		"--output=json",
		duration("--timeout", float64(c.Limits.TotalMS)),
		duration("--first-token-timeout", float64(c.Limits.FirstTokenMS)),
		duration("--idle-timeout", float64(c.Limits.IdleMS)),
		fmt.Sprintf("--max-tokens=%d", c.Limits.MaxTokens),
	}
	if c.Stream {
		args = append(args, "--stream")
	} else {
		args = append(args, "--no-stream")
	}
	for _, criterion := range []struct {
		flag  string
		limit float64
	}{{"--slo.ttft", c.SLO.TTFTMS}, {"--slo.tpot", c.SLO.TPOTMS}, {"--slo.e2e", c.SLO.E2EMS}} {
		if criterion.limit > 0 {
			args = append(args, duration(criterion.flag, criterion.limit))
		}
	}
	for _, need := range c.Needs {
		args = append(args, "--"+strings.ReplaceAll(need, "_", "-"))
	}
	if c.Count > 1 {
		args = append(args, fmt.Sprintf("--count=%d", c.Count))
	}
	if c.HTTP2() {
		args = append(args, "--http2")
	}
	return args
}

func duration(flag string, ms float64) string {
	return fmt.Sprintf("%s=%v", flag, milliseconds(ms).Round(time.Microsecond))
}
