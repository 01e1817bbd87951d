// Command goodputctl is the tool beside goodput_exporter: one probe by hand, a check of its configuration, and an
// endpoint to try both with. It means by every figure what the daemon means.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

// Exit codes.
const (
	exitGood    = 0
	exitNotGood = 1
	exitUsage   = 2 // also the prober's own failures

	exitInterrupted = 130 // by Ctrl-C, as shells have it
)

// command is one subcommand: it adds its flags to an application and returns what runs when it is chosen.
type command func(app *kingpin.Application) (name string, run func(ctx context.Context, stdout, stderr io.Writer) int)

var commands = []command{
	probeCommand, benchCommand, sweepCommand, compareCommand, mergeCommand, statusCommand, checkConfigCommand, simulateCommand,
}

// saying returns what runs a command and says on stderr why it could not be carried out.
func saying(name string, do func(ctx context.Context, stdout, stderr io.Writer) (code int, err error)) func(context.Context, io.Writer, io.Writer) int {
	return func(ctx context.Context, stdout, stderr io.Writer) int {
		code, err := do(ctx, stdout, stderr)
		if err != nil {
			fmt.Fprintf(stderr, "goodputctl %s: %v\n", name, err)
			return exitUsage
		}
		return code
	}
}

func main() {
	// net/http prints there what servers send unasked, which may repeat credentials.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("goodputctl", "Probe LLM endpoints by hand, as goodput_exporter does.")
	app.UsageWriter(stdout).ErrorWriter(stderr)
	app.Version(version.Print("goodputctl"))
	app.VersionFlag.Short('V')
	app.HelpFlag.Short('h')

	runs := map[string]func(context.Context, io.Writer, io.Writer) int{}
	for _, c := range commands {
		name, run := c(app)
		runs[name] = run
	}
	chosen, err := app.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "goodputctl: %v; try --help\n", err)
		return exitUsage
	}
	return runs[chosen](ctx, stdout, stderr)
}
