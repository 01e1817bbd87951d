package probe

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"

	"golang.org/x/net/http2"
	"golang.org/x/oauth2"

	"goodput_exporter/config"
	"goodput_exporter/probe/arrival"
	"goodput_exporter/probe/stream"
	"goodput_exporter/probe/wire"
)

// failure is why a probe is not a success.
type failure struct {
	outcome Outcome
	reason  Reason
	inBand  bool
	err     error
}

func fail(o Outcome, r Reason, err error) *failure { return &failure{outcome: o, reason: r, err: err} }

// ofCause classifies the cancellation of a probe's context. Nil: it was not canceled.
func ofCause(ctx context.Context, ex *arrival.Exchange, headers bool) *failure {
	cause := context.Cause(ctx)
	if cause == nil {
		return nil
	}
	var limit *errLimit
	switch {
	case !errors.As(cause, &limit):
		return fail(Canceled, "", cause)
	case limit.late > stalledAfter:
		return fail(LocalError, "", fmt.Errorf("the prober itself stood still: it noticed %s late that a limit of %s had run out", limit.late, limit.limit))
	}
	reason := limit.reason
	if !headers {
		if !ex.Asked() {
			return fail(LocalError, "", fmt.Errorf("credentials: none within %s", limit.limit))
		}
		reason = waitedFor(ex)
	}
	return fail(Timeout, reason, &errLimit{reason: reason, limit: limit.limit})
}

// waitedFor returns what an exchange without response headers was waiting for.
func waitedFor(ex *arrival.Exchange) Reason {
	connected, _ := ex.Connected()
	switch {
	case connected:
		return ReasonHeaders
	case ex.Begun(arrival.TLS):
		return ReasonTLS
	}
	return ReasonConnect
}

// ofTransport classifies the error of a request that got no response headers. What went wrong before a connection was
// asked for, such as a secret file that cannot be read, is the prober's own.
func ofTransport(err error, ex *arrival.Exchange) *failure {
	var token *oauth2.RetrieveError
	if errors.As(err, &token) && token.Response != nil { // its text has the whole answer, which may repeat the client's secret
		return fail(LocalError, "", fmt.Errorf("oauth2: the token endpoint answered %s", token.Response.Status))
	}
	if isLocal(err) || !ex.Asked() {
		return fail(LocalError, "", err)
	}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return fail(ConnectionError, ReasonDNS, err)
	case errors.As(err, &op) && op.Op == "proxyconnect", endedAtProxy(ex):
		return fail(ConnectionError, ReasonProxy, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail(ConnectionError, ReasonRefused, err)
	case isTLS(err):
		return fail(ConnectionError, ReasonTLS, err)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), isH2Reset(err):
		return fail(ConnectionError, ReasonReset, err)
	case errors.Is(err, syscall.ETIMEDOUT), isTimeout(err):
		return fail(Timeout, waitedFor(ex), err)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fail(ConnectionError, ReasonUnreachable, err)
	case ex.Begun(arrival.TLS) && waitedFor(ex) == ReasonTLS:
		return fail(ConnectionError, ReasonTLS, err)
	case isClosed(err), isGoAway(err):
		return fail(ConnectionError, ReasonClosed, err)
	}
	return fail(ConnectionError, ReasonProtocol, err)
}

// endedAtProxy reports whether an exchange got as far as a connection that it could not use, and not to TLS: that is
// the proxy's, which would not connect on to the endpoint.
func endedAtProxy(ex *arrival.Exchange) bool {
	_, dialed := ex.Took(arrival.Connect)
	connected, _ := ex.Connected()
	return dialed && !connected && !ex.Begun(arrival.TLS)
}

// isLocal tells the prober's own failures from the endpoint's.
func isLocal(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL, syscall.EACCES, syscall.EPERM,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && strings.Contains(dns.Err, syscall.EMFILE.Error()) { // the text is all that it keeps
		return true
	}
	var file *fs.PathError
	return errors.Is(err, config.ErrUnset) || errors.As(err, &file)
}

func isTLS(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var header tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &verification), errors.As(err, &authority), errors.As(err, &host), errors.As(err, &header), errors.As(err, &alert):
		return true
	}
	text := err.Error() // net/http and crypto/tls keep these to themselves
	return strings.Contains(text, "server gave HTTP response to HTTPS client") ||
		strings.Contains(text, "remote error: tls:") || strings.HasPrefix(text, "tls: ")
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// isClosed tells a connection that the other side closed in order.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "server closed idle connection")
}

// isH2Reset and isGoAway tell what HTTP/2 says by frames. net/http hides the error where it could not send the
// request's body again.
func isH2Reset(err error) bool {
	var h2 http2.StreamError
	return errors.As(err, &h2) || strings.Contains(err.Error(), "stream error: stream ID")
}

func isGoAway(err error) bool { return strings.Contains(err.Error(), "GOAWAY") }

// isEncoding tells a body that is not encoded as its head says, or as nobody asked for.
func isEncoding(err error) bool {
	var corrupt flate.CorruptInputError
	var compressed errCompressed
	return errors.As(err, &compressed) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt)
}

// isStale reports whether err is what a kept-alive connection gives that was closed before a response byte.
func isStale(err error, ex *arrival.Exchange) bool {
	_, reused := ex.Connected()
	_, answered := ex.FirstByte()
	return reused && !answered &&
		(isClosed(err) || isGoAway(err) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// ofBody classifies an error inside the body.
func ofBody(err error) *failure {
	var h2 http2.StreamError
	switch {
	case errors.Is(err, stream.ErrTooLarge):
		return fail(InvalidResponse, ReasonEventTooLarge, err)
	case errors.Is(err, stream.ErrCRC):
		return fail(InvalidResponse, ReasonCRC, err)
	case errors.Is(err, wire.ErrCheck):
		return fail(InvalidResponse, ReasonContentCheck, err)
	case errors.Is(err, wire.ErrMalformed), errors.Is(err, wire.ErrCut), isEncoding(err):
		return fail(InvalidResponse, ReasonMalformed, err)
	case isLocal(err):
		return fail(LocalError, "", err)
	case errors.As(err, &h2):
		return fail(Interrupted, h2Reason(h2.Code), err)
	case isGoAway(err):
		return fail(Interrupted, ReasonH2GoAway, err)
	case errors.Is(err, syscall.ECONNRESET):
		return fail(Interrupted, ReasonReset, err)
	case isClosed(err):
		return fail(Interrupted, ReasonUnexpectedEOF, err)
	}
	return fail(Interrupted, ReasonProtocol, err)
}

// h2Reasons are the codes of RFC 9113, section 7.
var h2Reasons = map[http2.ErrCode]Reason{
	http2.ErrCodeNo:                 ReasonH2NoError,
	http2.ErrCodeProtocol:           ReasonH2Protocol,
	http2.ErrCodeInternal:           ReasonH2Internal,
	http2.ErrCodeFlowControl:        ReasonH2FlowControl,
	http2.ErrCodeSettingsTimeout:    ReasonH2SettingsTimeout,
	http2.ErrCodeStreamClosed:       ReasonH2StreamClosed,
	http2.ErrCodeFrameSize:          ReasonH2FrameSize,
	http2.ErrCodeRefusedStream:      ReasonH2Refused,
	http2.ErrCodeCancel:             ReasonH2Cancel,
	http2.ErrCodeCompression:        ReasonH2Compression,
	http2.ErrCodeConnect:            ReasonH2Connect,
	http2.ErrCodeEnhanceYourCalm:    ReasonH2Calm,
	http2.ErrCodeInadequateSecurity: ReasonH2Security,
	http2.ErrCodeHTTP11Required:     ReasonH2HTTP11,
}

func h2Reason(code http2.ErrCode) Reason {
	if r, ok := h2Reasons[code]; ok {
		return r
	}
	return ReasonH2Reset
}

// ofStatus classifies what a server says by a status other than 2xx, or by an error in the body that means one.
func ofStatus(told *wire.Error) *failure {
	status := told.Status
	err := errors.New(told.Message)
	if told.Message == "" {
		err = fmt.Errorf("%d %s", status, http.StatusText(status))
	}
	switch {
	case told.Filtered && status >= 400 && status < 500:
		return fail(ContentFiltered, ReasonFilter, err)
	case status == http.StatusTooManyRequests && told.Quota:
		return fail(RateLimited, ReasonQuota, err)
	case status == http.StatusTooManyRequests:
		return fail(RateLimited, ReasonLimit, err)
	case status >= 300 && status < 400:
		return fail(ClientError, ReasonRedirect, err)
	case status >= 400 && status < 500:
		return fail(ClientError, clientReason(status), err)
	case told.Overloaded, status == http.StatusServiceUnavailable, status == 529:
		return fail(ServerError, ReasonOverloaded, err)
	case status == http.StatusBadGateway:
		return fail(ServerError, ReasonBadGateway, err)
	case status == http.StatusGatewayTimeout:
		return fail(ServerError, ReasonGatewayTimeout, err)
	}
	return fail(ServerError, ReasonInternal, err)
}

func clientReason(status int) Reason {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ReasonAuth
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return ReasonNotFound
	}
	return ReasonRequest
}

// ofError classifies an error inside a body that came with status 200: as its own status would have been.
func ofError(e *wire.Error) *failure {
	told := *e
	if told.Status == 0 {
		told.Status = http.StatusInternalServerError
	}
	f := ofStatus(&told)
	f.inBand = true
	return f
}

// ofEnd classifies an answer whose body ended. Nil: it is a success.
func ofEnd(a *answer, streamed, acceptWhole bool) *failure {
	switch {
	case a.kind == stream.HTML:
		return fail(InvalidResponse, ReasonHTML, errors.New("the answer is an HTML page"))
	case a.kind == stream.Nothing:
		return fail(InvalidResponse, ReasonEmpty, errors.New("the body is empty"))
	case a.kind == stream.Unknown:
		return fail(InvalidResponse, ReasonMalformed, errors.New("the answer is neither a stream nor JSON"))
	case a.kind == stream.Events && !streamed:
		return fail(InvalidResponse, ReasonMalformed, errors.New("a whole answer was asked for, but a stream came"))
	case a.kind == stream.JSON && !a.over() && !a.cut:
		return fail(InvalidResponse, ReasonMalformed, errors.New("the answer is JSON, but no answer of the protocol"))
	case streamed && a.whole && !acceptWhole:
		return fail(InvalidResponse, ReasonNotStreamed, errors.New("a stream was asked for, but the answer came whole"))
	case !a.over():
		return fail(Truncated, ReasonUnterminated, errors.New("the body ended without the protocol's terminal signal"))
	case a.filtered:
		return fail(ContentFiltered, ReasonFilter, fmt.Errorf("the answer ended with %s", a.finish))
	case a.channels == wire.Refusal:
		return fail(ContentFiltered, ReasonRefusal, errors.New("the model refused"))
	case a.refused:
		return fail(ContentFiltered, ReasonRefusal, fmt.Errorf("the answer ended with %s", a.finish))
	case a.tokens == 0 && !a.tokenless && !a.hidTokens():
		return fail(InvalidResponse, ReasonEmpty, errors.New("the answer has no tokens"))
	}
	return nil
}
