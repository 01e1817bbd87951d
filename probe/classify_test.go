package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"os"
	"syscall"
	"testing"

	"goodput_exporter/probe/arrival"
)

// What loopback does not do by itself: routers, and kernels without resources.
func TestTransportErrors(t *testing.T) {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for _, tc := range []struct {
		err     error
		outcome Outcome
		reason  Reason
	}{
		{dial(syscall.EHOSTUNREACH), ConnectionError, ReasonUnreachable},
		{dial(syscall.ENETUNREACH), ConnectionError, ReasonUnreachable},
		{dial(syscall.ETIMEDOUT), Timeout, ReasonConnect},
		{dial(syscall.EMFILE), LocalError, ""},
		{dial(syscall.ENFILE), LocalError, ""},
		{dial(syscall.EADDRNOTAVAIL), LocalError, ""},
		{&net.DNSError{Err: "no such host", Name: "llm", IsNotFound: true}, ConnectionError, ReasonDNS},
		{&net.DNSError{Err: "dial udp 10.0.0.1:53: socket: too many open files", Name: "llm"}, LocalError, ""},
		{fmt.Errorf("wrapped: %w", io.EOF), ConnectionError, ReasonClosed},
		{errors.New("something new"), ConnectionError, ReasonProtocol},
	} {
		x := arrival.NewExchange()
		httptrace.ContextClientTrace(x.Context(context.Background())).GetConn("llm:80")
		if f := ofTransport(tc.err, x); f.outcome != tc.outcome || f.reason != tc.reason {
			t.Errorf("%v: got %s (%s), want %s (%s)", tc.err, f.outcome, f.reason, tc.outcome, tc.reason)
		}
	}
}
