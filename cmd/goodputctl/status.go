package main

import (
	"context"
	"io"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"goodput_exporter/collector/live"
)

// statusFlags are the flags of `goodputctl status`.
type statusFlags struct {
	url, target, scenario string
	brief, watch          bool
	output                string
	httpConfigFile        string
	timeout               time.Duration
}

// statusCommand is `goodputctl status`: how the series of a running goodput_exporter are doing.
func statusCommand(app *kingpin.Application) (string, func(context.Context, io.Writer, io.Writer) int) {
	cmd := app.Command("status", "Say whether the series of a running goodput_exporter meet their SLOs now, the most pressing first. "+
		"Exits 1 when one is burning or down; otherwise 2 when that is unknown of one or all of them: no data, no answer, an error, a stale status; "+
		"otherwise 0. Paused series count as ok.")
	f := &statusFlags{}
	cmd.Flag("url", "URL of goodput_exporter.").Default("http://localhost:10042").StringVar(&f.url)
	cmd.Flag("target", "Only series of this target.").StringVar(&f.target)
	cmd.Flag("scenario", "Only series of this scenario.").StringVar(&f.scenario)
	cmd.Flag("brief", "Without latencies and single criteria: a third of the size, for thousands of series.").BoolVar(&f.brief)
	cmd.Flag("watch", "Look every 2 s until interrupted: redraw a terminal, or write elsewhere what changed, a line each. "+
		"The exit code is that of the last look.").BoolVar(&f.watch)
	cmd.Flag("output", "Output: text, or json as the API has it, one object a look.").Default("text").EnumVar(&f.output, "text", "json")
	cmd.Flag("http.config.file", "HTTP client configuration as Prometheus has it: credentials, TLS, proxy.").
		PlaceHolder("FILE").StringVar(&f.httpConfigFile)
	cmd.Flag("timeout", "Longest time for one answer.").Default("10s").DurationVar(&f.timeout)
	return cmd.FullCommand(), saying(cmd.FullCommand(), f.status)
}

func (f *statusFlags) status(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	client, err := newStatusClient(f)
	if err != nil {
		return 0, err
	}
	defer client.close()
	if f.watch {
		return f.watchStatus(ctx, client, stdout, stderr)
	}
	seen := client.look(ctx)
	if err := f.print(stdout, seen); err != nil {
		return 0, err
	}
	return seen.code(), seen.err
}

// print writes what there is to say of a look. A stale status is shown all the same: its error is told beside it.
func (f *statusFlags) print(w io.Writer, seen look) error {
	var text string
	switch {
	case seen.status == nil:
		return nil
	case f.output == "json":
		text = seen.text + "\n"
	default:
		text = describeStatus(seen.status, newCanvas(w))
	}
	_, err := io.WriteString(w, text)
	return err
}

// look is what one look at the daemon found.
type look struct {
	text   string       // the status as JSON on one line
	status *live.Status // with the most pressing series first; nil where the answer is none
	err    error        // why nothing is known of now: there is no status, or it is stale
}

// code returns the exit code. Whatever is wrong for certain outweighs what is unknown.
func (l look) code() int {
	if l.err != nil || len(l.status.Series) == 0 {
		return exitUsage
	}
	code := exitGood
	for i := range l.status.Series {
		switch l.status.Series[i].State {
		case live.Down, live.Burning:
			return exitNotGood
		case live.OK, live.Paused:
		default: // no data, or a state that only later versions know
			code = exitUsage
		}
	}
	return code
}
