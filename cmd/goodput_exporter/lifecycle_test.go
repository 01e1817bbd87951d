package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-kit/log"

	"goodput_exporter/config"
	"goodput_exporter/probe/probetest"
	"goodput_exporter/probe/schedule"
)

// withoutEnvironment keeps what the tests' own environment says of an endpoint from them.
func withoutEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"LLM_URL", "LLM_MODEL", "LLM_API_KEY"} {
		t.Setenv(name, "")
	}
}

func TestBadUsageEndsWith2(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--nonsense"},
		{"--log.level=loud"},
		{"--log.format=xml"},
		{"--probe.grace=soon"},
		{"--probe.max-in-flight=many"},
		{"extra"},
		{"--demo", "--config.file=goodput.yml"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			code, said := exited(t, args...)
			if code != 2 || !strings.HasPrefix(said, "goodput_exporter: ") || strings.Count(said, "\n") != 1 {
				t.Errorf("code %d, said:\n%s", code, said)
			}
		})
	}
}

func TestHelpAndVersionEndWith0(t *testing.T) {
	t.Parallel()
	for flag, holds := range map[string]string{"--help": "--config.file", "-h": "--web.config.file", "--version": "goodput_exporter, version"} {
		code, said := exited(t, flag)
		if code != 0 || !strings.Contains(said, holds) {
			t.Errorf("%s: code %d, said:\n%s", flag, code, said)
		}
	}
}

func TestBadConfigurationEndsWith1(t *testing.T) {
	t.Parallel()
	t.Run("a wrong value and an unknown key", func(t *testing.T) {
		t.Parallel()
		file := configure(t, "targets:\n- name: a\n  url: ftp://example.net\n  model: m\n  modle: m\n")
		code, said := exited(t, "--config.file="+file)
		if code != 1 {
			t.Errorf("code %d, want 1", code)
		}
		for _, holds := range []string{
			"level=error", file + ":3: targets[0].url: must begin with http", file + ":5: targets[0].modle",
		} {
			if !strings.Contains(said, holds) {
				t.Errorf("no %q in:\n%s", holds, said)
			}
		}
	})
	t.Run("no file", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "none.yml")
		if code, said := exited(t, "--config.file="+file); code != 1 || !strings.Contains(said, file+": cannot read the file") {
			t.Errorf("code %d, said:\n%s", code, said)
		}
	})
	t.Run("the web configuration", func(t *testing.T) {
		t.Parallel()
		web := configure(t, "basic_auth_users: {anna: not-a-hash}\n")
		if code, said := exited(t, "--demo", "--web.config.file="+web); code != 1 || !strings.Contains(said, "level=error") {
			t.Errorf("code %d, said:\n%s", code, said)
		}
	})
}

func TestNothingToProbe(t *testing.T) {
	withoutEnvironment(t)
	code, said := exited(t)
	if code != 1 {
		t.Errorf("code %d, want 1", code)
	}
	for _, way := range []string{"nothing to probe", "--config.file", "LLM_URL", "--demo"} {
		if !strings.Contains(said, way) {
			t.Errorf("no %q in:\n%s", way, said)
		}
	}
}

func TestEnvironment(t *testing.T) {
	withoutEnvironment(t)
	var key atomic.Value
	handler, err := probetest.NewHandler(probetest.Config{Models: oneModel})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key.Store(r.Header.Get("Authorization"))
		handler.ServeHTTP(w, r)
	}))
	defer endpoint.Close()

	t.Run("without a model", func(t *testing.T) {
		t.Setenv("LLM_URL", endpoint.URL)
		if code, said := exited(t); code != 1 || !strings.Contains(said, "LLM_MODEL") {
			t.Errorf("code %d, said:\n%s", code, said)
		}
	})
	t.Run("with the full URL", func(t *testing.T) {
		t.Setenv("LLM_URL", endpoint.URL+"/v1/chat/completions")
		t.Setenv("LLM_MODEL", "m")
		t.Setenv("LLM_API_KEY", "key-of-the-environment")
		d := launch(t, "--probe.vantage="+soon(t))
		if said := d.logs.String(); strings.Contains(said, "key-of-the-environment") {
			t.Errorf("the key is in the log:\n%s", said)
		}
		scrape(t, d.url).of(t, "goodput_slo_events_total", "target", "llm", "model", "m", "scenario", "chat", "slo", "ttft", "result", "good")
		eventually(t, "the first probe is good", func() bool {
			return scrape(t, d.url).of(t, "goodput_probes_total", "target", "llm", "outcome", "good") == 1
		})
		if got := key.Load(); got != "Bearer key-of-the-environment" {
			t.Errorf("Authorization %q", got)
		}
	})
}

// soon returns a vantage whose first slot within the default interval comes soon.
func soon(t *testing.T) string {
	t.Helper()
	for i := range 1000 {
		vantage := fmt.Sprint(i)
		s := schedule.New(schedule.Options{Vantage: vantage})
		task := &schedule.Task{Key: "any", Interval: config.DefaultInterval, Run: func(context.Context, schedule.Slot) int { return 0 }}
		if err := s.Update(t.Context(), []*schedule.Task{task}); err != nil {
			t.Fatal(err)
		}
		if next, _ := s.Next("any"); time.Until(next) > time.Second && time.Until(next) < 2*time.Second {
			return vantage
		}
	}
	t.Fatal("no vantage has its first slot within 2 s")
	return ""
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	url := simulate(t, probetest.Config{Models: oneModel, Observe: func(probetest.Served) { seen.Add(1) }})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	code, said := exited(t, "--config.file="+configure(t, oneTarget(url)), "--web.listen-address="+address)
	if code != 1 || !strings.Contains(said, "level=error") || !strings.Contains(said, address+": bind: address already in use") {
		t.Errorf("code %d, said:\n%s", code, said)
	}
	if n := seen.Load(); n != 0 {
		t.Errorf("%d probes whose results nobody could see", n)
	}
}

func TestStopIsGraceful(t *testing.T) {
	t.Parallel()
	const grace = 500 * time.Millisecond
	for _, c := range []struct {
		name             string
		ttft             float64 // seconds, of the probe that runs at the stop
		attempts, cancel float64
	}{
		{"a probe that ends within the grace is an attempt", 0.2, 1, 0},
		{"a probe that does not is canceled, and none", 60, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			received := make(chan struct{}, 1)
			handler, err := probetest.NewHandler(probetest.Config{Models: []probetest.Model{{Name: "m", TTFT: probetest.Fixed(c.ttft)}}})
			if err != nil {
				t.Fatal(err)
			}
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select {
				case received <- struct{}{}:
				default:
				}
				handler.ServeHTTP(w, r)
			}))
			defer endpoint.Close()
			h := newHarness(t, &flags{grace: grace}, configure(t, strings.Replace(oneTarget(endpoint.URL), "timeout: 10s", "timeout: 100s", 1)))
			h.reload(t)
			h.start()
			<-received
			asked := time.Now()
			h.stop(t)
			if took := time.Since(asked); took > grace+5*time.Second {
				t.Errorf("the stop took %s with a grace of %s", took, grace)
			}

			m := scrape(t, h.url)
			if err := m.balance(); err != nil {
				t.Error(err)
			}
			if got := m.of(t, "goodput_probes_total"); got != c.attempts {
				t.Errorf("%v attempts, want %v", got, c.attempts)
			}
			if got := m.of(t, "goodput_aborted_probes_total", "reason", "canceled"); got != c.cancel {
				t.Errorf("%v canceled, want %v", got, c.cancel)
			}
			if got := m.of(t, "goodput_probes_in_flight"); got != 0 {
				t.Errorf("%v probes in flight", got)
			}
		})
	}
}

func TestStopDoesNotWaitForALongProfile(t *testing.T) {
	t.Parallel()
	d := launch(t, "--config.file="+configure(t, oneTarget(simulate(t, probetest.Config{Models: oneModel}))), "--probe.grace=0s")
	got := make(chan int, 1)
	go func() { got <- get(t, d.url+"/debug/pprof/trace?seconds=60").status }()
	eventually(t, "the trace has begun", func() bool {
		return strings.Contains(get(t, d.url+"/debug/pprof/goroutine?debug=2").body, "pprof.Trace(")
	})
	asked := time.Now()
	if code := d.stop(t); code != 0 {
		t.Errorf("code %d", code)
	}
	if took := time.Since(asked); took > stopWait {
		t.Errorf("the stop took %s", took)
	}
	<-got
}

// harness is a daemon whose pages stay there when its probes have ended.
type harness struct {
	*daemon
	url  string
	end  context.CancelFunc
	done chan struct{}
}

func newHarness(t *testing.T, f *flags, file string) *harness {
	t.Helper()
	f.telemetryPath = "/metrics"
	d := newDaemon(f, func() (*config.Config, error) { return config.Load(file) }, log.NewNopLogger(), nothingOutside(t))
	handler, err := routes(d, f)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	h := &harness{daemon: d, url: server.URL, end: func() {}, done: make(chan struct{})}
	t.Cleanup(func() {
		h.end()
		server.Close()
		d.close()
	})
	return h
}

// nothingOutside is a daemon's world that ends with it.
func nothingOutside(t *testing.T) outside {
	t.Helper()
	o, err := (&flags{}).open(t.Context(), log.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// reload reloads over HTTP, as it is done in production.
func (h *harness) reload(t *testing.T) {
	t.Helper()
	if p := request(t, http.MethodPost, h.url+"/-/reload"); p.status != http.StatusOK {
		t.Fatalf("reload: status %d: %s", p.status, p.body)
	}
}

// start starts the probes.
func (h *harness) start() {
	ctx, cancel := context.WithCancel(context.Background())
	h.end = cancel
	listening := make(chan struct{})
	close(listening)
	go func() {
		defer close(h.done)
		_ = h.probe(ctx, listening)
	}()
}

// stop ends the probes as the daemon does, and waits for the last.
func (h *harness) stop(t *testing.T) {
	t.Helper()
	h.end()
	select {
	case <-h.done:
	case <-time.After(patience):
		t.Fatal("probes run on")
	}
}

// process is the daemon as a process of its own.
type process struct {
	cmd  *exec.Cmd
	logs *output
	url  string
}

func spawn(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.CommandContext(t.Context(), self, append([]string{"--web.listen-address=127.0.0.1:0"}, args...)...), logs: &output{}}
	p.cmd.Env = append(os.Environ(), asDaemon+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.logs, p.logs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("the daemon said:\n%s", p.logs)
		}
	})
	eventually(t, "the daemon listens", func() (ok bool) {
		p.url, ok = addressIn(p.logs.String())
		return ok
	})
	return p
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	url := simulate(t, probetest.Config{Models: oneModel})
	for _, last := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			t.Parallel()
			file := configure(t, oneTarget(url))
			p := spawn(t, "--config.file="+file)
			scrape(t, p.url).of(t, "goodput_slots_total", "target", "one")

			write(t, file, strings.Replace(oneTarget(url), "name: one", "name: two", 1))
			p.signal(t, syscall.SIGHUP)
			eventually(t, "SIGHUP has reloaded", func() bool {
				_, found := scrape(t, p.url).sum("goodput_slots_total", "target", "two")
				return found == 1
			})
			write(t, file, "targets: [")
			p.signal(t, syscall.SIGHUP)
			eventually(t, "the reload has failed", func() bool {
				return scrape(t, p.url).of(t, "goodput_config_last_reload_successful") == 0
			})

			p.signal(t, last)
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("the process ended with %v", err)
			}
			if said := p.logs.String(); !strings.HasSuffix(said, "msg=stopped\n") {
				t.Errorf("the last line is not that of an orderly end:\n%s", said)
			}
		})
	}
}
