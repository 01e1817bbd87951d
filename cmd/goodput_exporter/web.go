package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
)

// stopWait is how long requests under way may take when the server stops.
const stopWait = 5 * time.Second

// server serves the daemon's pages.
type server struct {
	http      *http.Server
	flags     *web.FlagConfig
	logger    *slog.Logger
	listening chan struct{} // closed when it does
}

// newServer returns a server of the daemon's pages. The contexts of its requests end with ctx. plain is a logger
// without time and place.
func newServer(ctx context.Context, d *daemon, f *flags, plain log.Logger) (*server, error) {
	handler, err := routes(d, f.telemetryPath)
	if err != nil {
		return nil, err
	}
	s := &server{flags: f.web, logger: forLibraries(plain), listening: make(chan struct{})}
	once := sync.OnceFunc(func() { close(s.listening) })
	s.http = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { // called once for each listener, before it is served
			once()
			return ctx
		},
	}
	return s, nil
}

// serve serves until stop.
func (s *server) serve() error {
	err := web.ListenAndServe(s.http, s.flags, s.logger)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (s *server) stop(error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // cuts off what has not ended by then
	}
}

func routes(d *daemon, telemetryPath string) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle("GET "+telemetryPath, d.collector.Handler())
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "goodput_exporter is healthy.") })
	mux.HandleFunc("GET /-/ready", d.serveReady)
	mux.HandleFunc("POST /-/reload", d.serveReload)
	mux.HandleFunc("GET /config", d.serveConfig)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol) // what go tool pprof asks
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	landing, err := web.NewLandingPage(web.LandingConfig{
		Name:        "goodput_exporter",
		Description: "Prometheus exporter and continuous SLO prober for LLM endpoints",
		Version:     version.Info(),
		Links: []web.LandingLinks{
			{Address: telemetryPath, Text: "Metrics"},
			{Address: "/config", Text: "Configuration", Description: "in force, secrets masked"},
			{Address: "/-/healthy", Text: "Healthy", Description: "the process runs"},
			{Address: "/-/ready", Text: "Ready", Description: "every series has had its first slot"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("landing page: %w", err)
	}
	if telemetryPath != "/" {
		mux.Handle("GET /{$}", landing)
	}
	return mux, nil
}

func (d *daemon) serveReady(w http.ResponseWriter, _ *http.Request) {
	select {
	case <-d.scheduler.Ready():
		fmt.Fprintln(w, "goodput_exporter is ready.")
	default:
		http.Error(w, "not ready: not every series has had its first slot yet", http.StatusServiceUnavailable)
	}
}

func (d *daemon) serveReload(w http.ResponseWriter, r *http.Request) {
	level.Info(d.logger).Log("msg", "reloading", "why", "POST /-/reload")
	// The reload must not end half-way because the client went away.
	if err := d.reload(context.WithoutCancel(r.Context())); err != nil {
		level.Error(d.logger).Log("msg", "reload failed: the configuration before stays in force", "err", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (d *daemon) serveConfig(w http.ResponseWriter, _ *http.Request) {
	text, err := d.config.Load().Masked()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	_, _ = w.Write(text)
}
