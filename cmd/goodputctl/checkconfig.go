package main

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kingpin/v2"

	"goodput_exporter/config"
)

// checkConfigCommand is `goodputctl check-config FILE…`: it says all that is wrong with configuration files, or
// what they add up to.
func checkConfigCommand(app *kingpin.Application) (string, func(context.Context, io.Writer, io.Writer) int) {
	cmd := app.Command("check-config", "Check configuration files: print every error, and what will not work well.")
	files := cmd.Arg("file", "Configuration file.").Required().Strings()
	return cmd.FullCommand(), func(_ context.Context, stdout, stderr io.Writer) int {
		code := exitGood
		for _, file := range *files {
			if !checkConfig(file, stdout, stderr) {
				code = exitNotGood
			}
		}
		return code
	}
}

func checkConfig(file string, stdout, stderr io.Writer) bool {
	cfg, err := config.Load(file)
	if err != nil {
		fmt.Fprintf(stderr, "%v\n%s: FAILED\n", err, file)
		return false
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintf(stderr, "warning: %s\n", w)
	}
	requests, tokens := dailyCost(cfg)
	fmt.Fprintf(stdout, "%s: ok: %d targets, %d series; a day: %.0f requests, at most %s\n",
		file, len(cfg.Targets), len(cfg.Series), requests, tokens)
	return true
}

// dailyCost returns how many requests a day a configuration schedules, and in words the most output tokens that
// they can cost.
func dailyCost(cfg *config.Config) (requests float64, tokens string) {
	const day = 24 * 60 * 60
	var output float64
	unbounded := false
	for _, s := range cfg.Series {
		n := day / s.Scenario.Interval.Seconds()
		requests += n
		limit := s.Scenario.LongestAnswer()
		unbounded = unbounded || limit == 0
		output += n * float64(limit)
	}
	if unbounded {
		return requests, "as many output tokens as the models like (a scenario has no max_tokens)"
	}
	return requests, fmt.Sprintf("%.0f output tokens", output)
}
