package trace

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"
	"go.uber.org/goleak"
)

// TestMain fails where the SDK said anything by the ways that the whole process shares: by default, they end on stderr.
func TestMain(m *testing.M) {
	var told atomic.Int64
	tell := func(what string) {
		told.Add(1)
		fmt.Fprintln(os.Stderr, "told to the whole process:", what)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { tell(err.Error()) }))
	otel.SetLogger(funcr.New(func(prefix, args string) { tell(prefix + args) }, funcr.Options{}))

	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if told.Load() > 0 {
		code = 1
	}
	os.Exit(code)
}
