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
	"github.com/prometheus/exporter-toolkit/web"

	livepage "goodput_exporter/dashboards/live"
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
	handler, err := routes(d, f)
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

func routes(d *daemon, f *flags) (http.Handler, error) {
	mux := http.NewServeMux()
	const root = "/{$}" // and nothing below it
	metrics := f.telemetryPath
	if metrics == "/" {
		metrics = root
	}
	mux.Handle("GET "+metrics, d.collector.Handler())
	d.registerHealth(mux)
	mux.Handle("POST /-/reload", http.NewCrossOriginProtection().Handler(http.HandlerFunc(d.serveReload)))
	mux.HandleFunc("GET /config", d.serveConfig)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol) // what go tool pprof asks
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	live, err := newPage(d, f)
	if err != nil {
		return nil, fmt.Errorf("live page: %w", err)
	}
	if metrics != root {
		mux.Handle("GET "+root, live)
	}
	for _, path := range livepage.Paths {
		mux.Handle(path, live)
	}
	return mux, nil
}

// registerHealth adds the pages that say how the process is.
func (d *daemon) registerHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "goodput_exporter is healthy.") })
	mux.HandleFunc("GET /-/ready", d.serveReady)
}

// serveHealth serves only how the process is, on an address of its own, until ctx ends: without the password that the
// other pages may have. An empty address is none.
func (d *daemon) serveHealth(ctx context.Context, address string) error {
	if address == "" {
		<-ctx.Done()
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--web.health-address: %w", err)
	}
	mux := http.NewServeMux()
	d.registerHealth(mux)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
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
