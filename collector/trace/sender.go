package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// sender stands between the SDK's queue and its OTLP client. It counts what becomes of the spans and logs what goes
// wrong, both of which the SDK would tell the whole process only: by its global meter and its global error handler, which
// prints to stderr.
type sender struct {
	client  sdktrace.SpanExporter
	logger  log.Logger
	secrets *strings.Replacer

	waiting      atomic.Int64 // spans in the queue, in the batch, and on their way
	sent, failed atomic.Uint64
	over         atomic.Bool   // nothing is sent any more
	drained      chan struct{} // closed when the queue has ended

	told   time.Time // of the last line in the log; ExportSpans is never called twice at once
	untold int       // spans that failed since
}

// untilTold is how often a failure is logged at most.
const untilTold = time.Minute

// maxTold is the length of what is logged of a failure, in characters: it may hold a page that a proxy sent.
const maxTold = 300

func newSender(client sdktrace.SpanExporter, logger log.Logger, secrets []string) *sender {
	if logger == nil {
		logger = log.NewNopLogger()
	}
	var replacements []string
	for _, s := range secrets {
		replacements = append(replacements, s, "<secret>")
	}
	return &sender{
		client: client, logger: logger, secrets: strings.NewReplacer(replacements...), drained: make(chan struct{}),
	}
}

// admit makes room for a span. False: there is none. The SDK's queue is as long as what is admitted, so that it never
// drops a span itself.
func (s *sender) admit() bool {
	if s.waiting.Add(1) <= queueLength {
		return true
	}
	s.waiting.Add(-1)
	return false
}

// ExportSpans implements sdktrace.SpanExporter. It returns no error: the SDK would hand it to the global handler.
func (s *sender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := errOver
	if !s.over.Load() { // else the client would encode them all before it fails
		err = s.client.ExportSpans(ctx, spans)
	}
	if err == nil {
		s.sent.Add(uint64(len(spans)))
	} else {
		s.failed.Add(uint64(len(spans)))
		s.tell(len(spans), err)
	}
	s.waiting.Add(-int64(len(spans)))
	return nil
}

var errOver = errors.New("the time to send them at the end was over")

// tell logs that spans were lost.
func (s *sender) tell(spans int, err error) {
	s.untold += spans
	if !s.told.IsZero() && time.Since(s.told) < untilTold {
		return
	}
	// The collector may have echoed the credentials of the request in its answer.
	text := fmt.Sprintf("%.*s", maxTold, s.secrets.Replace(err.Error()))
	level.Warn(s.logger).Log("msg", "spans could not be exported", "spans", s.untold, "err", text)
	s.told, s.untold = time.Now(), 0
}

// Shutdown implements sdktrace.SpanExporter. The SDK calls it once, when its queue has been drained.
func (s *sender) Shutdown(ctx context.Context) error {
	close(s.drained)
	s.cut(ctx)
	return nil
}

// cut ends the request that is on its way, and lets what comes after it fail at once. All that it could fail with itself
// is the end of ctx, which changes nothing.
func (s *sender) cut(ctx context.Context) {
	s.over.Store(true)
	_ = s.client.Shutdown(ctx)
}
