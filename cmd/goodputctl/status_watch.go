package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"goodput_exporter/collector/live"
)

// watchInterval is how often --watch looks.
const watchInterval = 2 * time.Second

// watchStatus looks again and again until ctx ends, and returns the exit code of the last look.
func (f *statusFlags) watchStatus(ctx context.Context, client *statusClient, stdout, stderr io.Writer) (int, error) {
	show := (&changes{stdout: stdout, stderr: stderr}).show
	if f.output == "json" {
		show = func(seen look) error {
			if seen.err != nil {
				fmt.Fprintf(stderr, "goodputctl status: %v\n", seen.err)
			}
			return f.print(stdout, seen)
		}
	} else if file, ok := stdout.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		show = func(seen look) error { return redraw(file, seen) }
	}
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	code := exitUsage
	for {
		seen := client.look(ctx)
		if ctx.Err() != nil {
			return code, nil
		}
		code = seen.code()
		if err := show(seen); err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return code, nil
		case <-ticker.C:
		}
	}
}

// redraw draws a look on a cleared terminal, as far as it has room: lines are cut by the terminal itself, which is told
// not to wrap them meanwhile.
func redraw(terminal *os.File, seen look) error {
	text := ""
	if seen.status != nil {
		text = describeStatus(seen.status, newCanvas(terminal))
	}
	if seen.err != nil {
		text = "unknown: " + seen.err.Error() + "\n" + text
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if _, height, err := term.GetSize(int(terminal.Fd())); err == nil && height > 2 && len(lines) > height-1 {
		hidden := len(lines) - (height - 2)
		lines = append(lines[:height-2], fmt.Sprintf("and %d more lines: choose by --target or --scenario", hidden))
	}
	_, err := fmt.Fprintf(terminal, "\x1b[?7l\x1b[H\x1b[2J%s\x1b[?7h\n", strings.Join(lines, "\n"))
	return err
}

// changes writes what changed from look to look, a line each.
type changes struct {
	stdout, stderr io.Writer

	states  map[string]string // by the key of the series; nil before the first look
	unknown string            // the error of the last look; "" where there was none
}

func (c *changes) show(seen look) error {
	now := time.Now().UTC().Format(time.RFC3339)
	unknown := ""
	if seen.err != nil {
		unknown = seen.err.Error()
	}
	if unknown != c.unknown {
		c.states = nil // all is told anew once it is known again
	}
	if unknown != "" && unknown != c.unknown {
		fmt.Fprintf(c.stderr, "%s unknown: %s\n", now, unknown)
	}
	c.unknown = unknown
	if unknown != "" {
		return nil
	}
	return c.compare(seen.status, now)
}

// compare writes the series that are in another state than at the last look, or that came or went.
func (c *changes) compare(s *live.Status, now string) error {
	var b strings.Builder
	if c.states == nil {
		fmt.Fprintf(&b, "%s %s\n", now, summarize(s))
	}
	states := make(map[string]string, len(s.Series))
	for i := range s.Series {
		one := &s.Series[i]
		state := strings.TrimSpace(fmt.Sprintf("%s %s", one.State, one.Severity))
		if states[one.Key] = state; c.states[one.Key] != state {
			fmt.Fprintf(&b, "%s %s\n", now, printable(fmt.Sprintf("%s %s: %s", one.Key, state, one.Reason)))
		}
	}
	for key := range c.states {
		if states[key] == "" {
			fmt.Fprintf(&b, "%s %s is gone\n", now, printable(key))
		}
	}
	c.states = states
	_, err := io.WriteString(c.stdout, b.String())
	return err
}
