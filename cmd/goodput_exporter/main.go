// Command goodput_exporter sends steady, low-rate synthetic requests to LLM endpoints and exposes on /metrics how
// many of them a user would have called good.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"os"
	"os/signal"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/oklog/run"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"goodput_exporter/config"
	livepage "goodput_exporter/dashboards/live"
)

// flags are the flags of the daemon.
type flags struct {
	configFile    string
	demo          bool
	vantage       string
	shard         config.Shard
	maxInFlight   int
	grace         time.Duration
	fullMetrics   bool
	telemetryPath string
	logLevel      string
	logFormat     string
	journal       journalFlags
	silencesFile  string
	otlp          bool
	healthAddress string
	web           *web.FlagConfig
}

// gcPercent is the garbage that may gather, in percent of what is in use; GOGC overrules it.
const gcPercent = 50

func main() {
	// net/http prints there what servers send unasked. That is no line of ours, and it may repeat credentials.
	stdlog.SetOutput(io.Discard)
	// Nearly all of the heap is what the live state and the metrics remember. Half as much again for garbage, instead of
	// as much again, costs little for that.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := exitCode(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// exitCode runs the daemon until ctx ends: 0 after a graceful stop, 1 after a failure, 2 on bad usage.
func exitCode(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, app := &flags{}, kingpin.New("goodput_exporter", "Prometheus exporter and continuous SLO prober for LLM endpoints.")
	exited := -1
	app.Terminate(func(code int) { exited = code })
	app.UsageWriter(stdout).ErrorWriter(stderr)
	app.Version(version.Print("goodput_exporter"))
	app.HelpFlag.Short('h')
	f.register(app)
	app.Validate(func(*kingpin.Application) error { return f.check() })
	_, err := app.Parse(args)
	switch {
	case exited >= 0: // --help, --version
		return exited
	case err != nil:
		fmt.Fprintf(stderr, "goodput_exporter: %v; try --help\n", err)
		return 2
	}
	plain := newLogger(stderr, f.logLevel, f.logFormat)
	logger := decorated(plain)
	if err := f.run(ctx, logger, plain); err != nil {
		level.Error(logger).Log("msg", "goodput_exporter ends", "err", err)
		return 1
	}
	return 0
}

func (f *flags) register(app *kingpin.Application) {
	app.Flag("config.file", "Configuration file. Without one, LLM_URL, LLM_MODEL and LLM_API_KEY name the endpoint.").StringVar(&f.configFile)
	app.Flag("demo", "Start a simulated endpoint with a healthy and a degraded model, and probe both.").BoolVar(&f.demo)
	app.Flag("probe.vantage", "Name of this prober's place. Probers with different names probe at different instants.").StringVar(&f.vantage)
	app.Flag("shard", "Probe only a share of the targets, as i/n: shard i, from 0, of n. Give each of n processes the same configuration.").SetValue(&f.shard)
	app.Flag("probe.max-in-flight", "Bound on probes in flight; slots beyond it are skipped and counted. 0 is none.").Default("1000").IntVar(&f.maxInFlight)
	app.Flag("probe.grace", "At shutdown, how long running probes may take to end by themselves.").Default("5s").DurationVar(&f.grace)
	app.Flag("metrics.full", "Expose every failure reason from the start, and the full lists of classic histogram buckets.").BoolVar(&f.fullMetrics)
	app.Flag("web.telemetry-path", "Path under which to expose metrics.").Default("/metrics").StringVar(&f.telemetryPath)
	app.Flag("log.level", "Only log messages of this severity or above: debug, info, warn, error.").Default("info").EnumVar(&f.logLevel, "debug", "info", "warn", "error")
	app.Flag("log.format", "Format of log messages: logfmt or json.").Default("logfmt").EnumVar(&f.logFormat, "logfmt", "json")
	app.Flag("web.health-address", "Further address for /-/healthy and /-/ready alone, without the authentication of --web.config.file. Empty is none.").
		StringVar(&f.healthAddress)
	f.journal.register(app)
	app.Flag("silences.file", "File to keep silences in over a restart. Empty is none.").StringVar(&f.silencesFile)
	app.Flag("tracing.otlp", "Export a span of each probe by OTLP over HTTP, as the environment variables OTEL_EXPORTER_OTLP_* say.").BoolVar(&f.otlp)
	f.web = kingpinflag.AddFlags(app, ":10042")
}

// isPage reports whether a path is that of a page beside the metrics.
func isPage(p string) bool {
	return slices.ContainsFunc(append([]string{"/config", "/-/", "/debug/"}, livepage.Paths...), func(page string) bool {
		return p == page || strings.HasSuffix(page, "/") && strings.HasPrefix(p, page)
	})
}

// check refuses flags that contradict each other, and paths that cannot be.
func (f *flags) check() error {
	switch p := f.telemetryPath; {
	case f.demo && f.configFile != "":
		return errors.New("--demo and --config.file exclude each other")
	case !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsAny(p, "{} "):
		return fmt.Errorf("--web.telemetry-path: %q is no path such as /metrics", p)
	case isPage(p):
		return fmt.Errorf("--web.telemetry-path: %q is the path of another page", p)
	}
	return nil
}

// source returns where configurations come from, and what to close at the end.
func (f *flags) source() (func() (*config.Config, error), io.Closer, error) {
	load, closer, err := f.wholeSource()
	return func() (*config.Config, error) {
		cfg, err := load()
		if err != nil {
			return nil, err
		}
		return cfg.Keep(f.shard), nil
	}, closer, err
}

// wholeSource returns where configurations of all shards come from.
func (f *flags) wholeSource() (func() (*config.Config, error), io.Closer, error) {
	switch {
	case f.demo:
		return startDemo()
	case f.configFile != "":
		return func() (*config.Config, error) { return config.Load(f.configFile) }, io.NopCloser(nil), nil
	}
	return fromEnv, io.NopCloser(nil), nil
}

func fromEnv() (*config.Config, error) {
	cfg, ok, err := config.FromEnv(os.Getenv)
	if err == nil && !ok {
		err = errors.New("nothing to probe: give --config.file, or set LLM_URL and LLM_MODEL, or try --demo")
	}
	return cfg, err
}

// run runs the daemon until ctx ends. plain is the logger below logger.
func (f *flags) run(ctx context.Context, logger, plain log.Logger) error {
	load, closer, err := f.source()
	if err != nil {
		return err
	}
	defer closer.Close()
	outside, err := f.open(ctx, logger)
	if err != nil {
		return err
	}
	defer outside.close(logger)
	d := newDaemon(f, load, logger, outside)
	defer d.close()
	hup := make(chan os.Signal, 1) // from the start to the end, because otherwise it kills
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	level.Info(logger).Log("msg", "starting goodput_exporter", "version", version.Info(), "build", version.BuildContext())
	if err := d.reload(ctx); err != nil {
		return err
	}
	if err := d.restore(f.journal.path); err != nil {
		return err
	}
	server, err := newServer(ctx, d, f, plain)
	if err != nil {
		return err
	}
	var g run.Group
	add := func(actor func(context.Context) error) {
		ctx, cancel := context.WithCancel(ctx)
		g.Add(func() error { return actor(ctx) }, func(error) { cancel() })
	}
	add(func(ctx context.Context) error { return d.probe(ctx, server.listening) })
	add(func(ctx context.Context) error { return d.reloadOnSignal(ctx, hup) })
	add(d.reloadOnChange)
	add(func(ctx context.Context) error { return d.serveHealth(ctx, f.healthAddress) })
	g.Add(server.serve, server.stop)
	if err := g.Run(); err != nil && ctx.Err() == nil {
		return err
	}
	level.Info(logger).Log("msg", "stopped")
	return nil
}
