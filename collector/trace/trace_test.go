package trace

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/trace"
	otlpcollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

func newExporter(t *testing.T, opts Options) *Exporter {
	t.Helper()
	e, err := New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTheEnvironmentSaysWhereAndAsWhom(t *testing.T) {
	rec := newReceiver(t, nil)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20sesame-open,x-tenant=a")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod,service.name=other")
	t.Setenv("OTEL_SERVICE_NAME", "goodput-eu")
	e := newExporter(t, Options{Version: "1.2.3"})
	e.Observe(testTarget(), testResult(0))
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := rec.header.Get("Authorization") + " " + rec.header.Get("X-Tenant"); got != "Bearer sesame-open a" {
		t.Errorf("headers %q", got)
	}
	got := map[string]any{}
	for _, name := range []string{"service.name", "service.version", "deployment.environment.name", "telemetry.sdk.name"} {
		got[name] = rec.resource[name]
	}
	want := map[string]any{
		"service.name": "goodput-eu", "service.version": "1.2.3", "deployment.environment.name": "prod",
		"telemetry.sdk.name": "opentelemetry",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
}

func TestSpansAreSentWithoutWaitingForTheEnd(t *testing.T) {
	arrived := make(chan struct{}, 1)
	newReceiver(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} })
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	e := newExporter(t, Options{})
	e.Observe(testTarget(), testResult(0))
	select {
	case <-arrived:
	case <-time.After(10 * time.Second):
		t.Error("no span within 10 s")
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCloseSendsAllThatWaits(t *testing.T) {
	rec := newReceiver(t, nil)
	e := newExporter(t, Options{})
	const n = 1500 // more than a batch
	var observers sync.WaitGroup
	for i := range n {
		observers.Go(func() { e.Observe(testTarget(), testResult(i)) })
	}
	observers.Wait()
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range rec.received() {
		seen[factsOf(s).TraceID] = true
	}
	if len(seen) != n {
		t.Errorf("%d spans came, want %d", len(seen), n)
	}

	e.Observe(testTarget(), testResult(n))
	if got, want := e.Stats(), (Stats{Sent: n, Dropped: 1}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestNoSpanIsForgottenWhereCloseAndObserveMeet(t *testing.T) {
	newReceiver(t, nil)
	e := newExporter(t, Options{})
	const n = 400
	var observers sync.WaitGroup
	for i := range n {
		observers.Go(func() { e.Observe(testTarget(), testResult(i)) })
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	observers.Wait()
	if s := e.Stats(); s.Sent+s.Dropped != n || s.Failed != 0 {
		t.Errorf("of %d spans: %+v", n, s)
	}
}

func TestACollectorThatHangsBlocksNothing(t *testing.T) {
	release := make(chan struct{})
	newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	const patience = "300000" // ms, beyond all that the test waits for
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", patience)
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", patience)
	e := newExporter(t, Options{})
	const beyond = 1000
	start := time.Now()
	for i := range queueLength + beyond {
		e.Observe(testTarget(), testResult(i))
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("observing took %s", took)
	}
	if got, want := e.Stats(), (Stats{Dropped: beyond}); got != want {
		t.Errorf("stats while it hangs %+v, want %+v", got, want)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start = time.Now()
	err := e.Close(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "4096 spans") {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("closing took %s", took)
	}
	if got, want := e.Stats(), (Stats{Dropped: beyond, Failed: queueLength}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

func TestACollectorThatIsNotThereIsLoggedOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
	l.Close()
	var logged logs
	e := newExporter(t, Options{Logger: logged.logger()})
	const n = 1100 // three batches
	for i := range n {
		e.Observe(testTarget(), testResult(i))
	}
	if err := e.Close(t.Context()); err == nil {
		t.Error("closed without an error, although nothing was sent")
	}
	if got, want := e.Stats(), (Stats{Failed: n}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	if got := logged.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "connection refused") {
		t.Errorf("logged:\n%s", got)
	}
}

func TestABatchThatIsTakenInPartFailed(t *testing.T) {
	newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		body, _ := proto.Marshal(&otlpcollector.ExportTraceServiceResponse{
			PartialSuccess: &otlpcollector.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "too old"},
		})
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.Write(body)
	})
	var logged logs
	e := newExporter(t, Options{Logger: logged.logger()})
	e.Observe(testTarget(), testResult(0))
	e.Observe(testTarget(), testResult(1))
	if err := e.Close(t.Context()); err == nil {
		t.Error("closed without an error")
	}
	if got, want := e.Stats(), (Stats{Failed: 2}); got != want || !strings.Contains(logged.String(), "too old (1 spans rejected)") {
		t.Errorf("stats %+v, want %+v; logged %s", got, want, logged.String())
	}
}

func TestASecretThatTheCollectorEchoesIsNotLogged(t *testing.T) {
	newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		http.Error(w, "no such key: "+key+strings.Repeat(" and so on", 100), http.StatusUnauthorized)
	})
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Bearer sesame-open")
	var logged logs
	e := newExporter(t, Options{Logger: logged.logger()})
	e.Observe(testTarget(), testResult(0))
	err := e.Close(t.Context())
	if err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("close: %v", err)
	}
	got := logged.String()
	if strings.Contains(got, "sesame") || !strings.Contains(got, "no such key: <secret>") || !strings.Contains(got, "401") {
		t.Errorf("logged: %s", got)
	}
	if len(got) > 2*maxTold {
		t.Errorf("logged %d bytes", len(got))
	}
}

type refusing struct{ trace.SpanExporter }

func (refusing) ExportSpans(context.Context, []trace.ReadOnlySpan) error { return errors.New("no") }

func TestFailuresAreLoggedOnceAMinuteWithTheirNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged logs
		s := newSender(refusing{}, logged.logger(), nil)
		for range 25 {
			s.ExportSpans(t.Context(), make([]trace.ReadOnlySpan, 2))
			time.Sleep(5 * time.Second)
		}
		want := `level=warn msg="spans could not be exported" spans=2 err=no
level=warn msg="spans could not be exported" spans=24 err=no
level=warn msg="spans could not be exported" spans=24 err=no
`
		if diff := cmp.Diff(want, logged.String()); diff != "" {
			t.Errorf("logged (-want +got):\n%s", diff)
		}
	})
}

func TestAResultWithoutIDsHasNoSpan(t *testing.T) {
	newReceiver(t, nil)
	e := newExporter(t, Options{})
	r := testResult(0)
	r.SpanID = ""
	e.Observe(testTarget(), r)
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := e.Stats(); got != (Stats{}) {
		t.Errorf("stats %+v", got)
	}
}
