package probe_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"
	"golang.org/x/net/http2"

	"goodput_exporter/config"
	"goodput_exporter/probe"
	"goodput_exporter/probe/probetest"
)

// No test asks a real name server: every name that /etc/hosts does not have fails at once.
func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
}

// outcomeTest is one server, and the verdict on it.
type outcomeTest struct {
	name      string
	server    server
	configure []option
	cancel    time.Duration // after which the probe is canceled; 0: it is not
	outcome   probe.Outcome
	reason    probe.Reason
	inBand    bool
	flags     []probe.Flag // all of them, sorted
	check     func(*testing.T, *probe.Result)
}

// option changes the series that is probed.
type option func(*config.Series)

// The parts of an answer of openai-chat.
var (
	hi      = write(`data: {"choices":[{"delta":{"content":"Hi"}}]}` + "\n\n")
	finish  = write(`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n")
	filter  = write(`data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}` + "\n\n")
	done    = write("data: [DONE]\n\n")
	end     = probetest.Step{Do: probetest.DoEnd}
	fin     = probetest.Step{Do: probetest.DoFin}
	rst     = probetest.Step{Do: probetest.DoRst}
	hold    = probetest.Step{Do: probetest.DoHold}
	answer  = []probetest.Step{hi, usage(1), finish, done, end}
	hidden  = write(`data: {"choices":[],"usage":{"completion_tokens":12,"completion_tokens_details":{"reasoning_tokens":12}}}` + "\n\n")
	refusal = write(`data: {"choices":[{"delta":{"refusal":"No"}}]}` + "\n\n")
)

func usage(tokens int) probetest.Step {
	return write(fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":%d}}`+"\n\n", tokens))
}

func write(s string) probetest.Step { return probetest.Step{Do: probetest.DoWrite, Write: []byte(s)} }

// at puts a step off by milliseconds from the request.
func at(ms int, s probetest.Step) probetest.Step {
	s.At = time.Duration(ms) * time.Millisecond
	return s
}

func resetStream(code http2.ErrCode) probetest.Step {
	return probetest.Step{Do: probetest.DoResetStream, Code: code}
}

func goAway(last uint32) probetest.Step { return probetest.Step{Do: probetest.DoGoAway, Last: &last} }

// inBand is an error in the midst of a stream.
func inBand(err string) server { return stream(hi, write("data: "+err+"\n\n"), done, end) }

// whole is a JSON answer of chat with that text.
func whole(text string) string {
	return `{"choices":[{"message":{"content":"` + text + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":1}}`
}

func TestOutcomes(t *testing.T) {
	tests := slices.Concat(connectionTests, statusTests, streamTests, interruptedTests, timeoutTests, wholeTests)
	var count tally
	t.Run("table", func(t *testing.T) {
		for _, tc := range tests {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				r := tc.probe(t)
				count.add(r)
				tc.compare(t, r)
				checkResult(t, r)
			})
		}
	})
	count.check(t, len(tests))
}

var connectionTests = []outcomeTest{
	{name: "unknown name", server: nobody("http://nobody.invalid"), outcome: probe.ConnectionError, reason: probe.ReasonDNS},
	{name: "refused", server: nobody("http://127.0.0.1:1"), outcome: probe.ConnectionError, reason: probe.ReasonRefused},
	{name: "reset before headers", server: raw(reset), outcome: probe.ConnectionError, reason: probe.ReasonReset},
	{name: "close before headers", server: raw(says("")), outcome: probe.ConnectionError, reason: probe.ReasonClosed},
	{name: "close in the headers", server: raw(says("HTTP/1.1 200 OK\r\nServer: x\r\n")), outcome: probe.ConnectionError, reason: probe.ReasonClosed},
	{name: "not HTTP", server: raw(says("SSH-2.0-OpenSSH_9.2\r\n")), outcome: probe.ConnectionError, reason: probe.ReasonProtocol},
	{name: "http to a TLS port that alerts", server: raw(says("\x15\x03\x01\x00\x02\x02\x28")), outcome: probe.ConnectionError, reason: probe.ReasonProtocol},
	{name: "http to a TLS port that explains", server: scheme("http", secure(untrusted)), outcome: probe.ClientError, reason: probe.ReasonRequest},
	{name: "https to a plain port", server: scheme("https", stream(answer...)), outcome: probe.ConnectionError, reason: probe.ReasonTLS},
	{name: "certificate of an unknown authority", server: secure(untrusted), outcome: probe.ConnectionError, reason: probe.ReasonTLS},
	{name: "certificate for another name", server: secure(otherName), outcome: probe.ConnectionError, reason: probe.ReasonTLS},
	{name: "expired certificate", server: secure(expired), outcome: probe.ConnectionError, reason: probe.ReasonTLS},
	{name: "client certificate missing, TLS 1.2", server: secure(clientCertificate12), outcome: probe.ConnectionError, reason: probe.ReasonTLS},
	{name: "client certificate missing, TLS 1.3", server: secure(clientCertificate13), outcome: probe.ConnectionError, reason: probe.ReasonTLS},
	{name: "close in the handshake", server: scheme("https", raw(says(""))), outcome: probe.ConnectionError, reason: probe.ReasonTLS},
	{name: "reset in the handshake", server: scheme("https", raw(reset)), outcome: probe.ConnectionError, reason: probe.ReasonReset},
	{name: "proxy is not there", server: stream(answer...), configure: []option{proxy("http://127.0.0.1:1")}, outcome: probe.ConnectionError, reason: probe.ReasonProxy},
	{name: "proxy refuses to connect", server: refusingProxy, outcome: probe.ConnectionError, reason: probe.ReasonProxy},
	{name: "HTTP/2: reset before headers", server: stream2(resetStream(http2.ErrCodeInternal)), outcome: probe.ConnectionError, reason: probe.ReasonReset},
	{name: "HTTP/2: going away before headers", server: stream2(goAway(0), fin), outcome: probe.ConnectionError, reason: probe.ReasonClosed},
}

var statusTests = []outcomeTest{
	{name: "301", server: redirect(301, "/v2"), outcome: probe.ClientError, reason: probe.ReasonRedirect},
	{name: "302", server: redirect(302, "/v2"), outcome: probe.ClientError, reason: probe.ReasonRedirect},
	{name: "303", server: redirect(303, "/v2"), outcome: probe.ClientError, reason: probe.ReasonRedirect},
	{name: "307", server: redirect(307, "/v2"), outcome: probe.ClientError, reason: probe.ReasonRedirect},
	{name: "308", server: redirect(308, "/v2"), outcome: probe.ClientError, reason: probe.ReasonRedirect},
	{name: "301, to follow", server: redirect(301, "/v2"), configure: []option{follow}, outcome: probe.ClientError, reason: probe.ReasonRedirect},
	{name: "303, to follow", server: redirect(303, "/v2"), configure: []option{follow}, outcome: probe.ClientError, reason: probe.ReasonRedirect},
	{name: "307, to follow", server: redirect(307, "/v2", answer...), configure: []option{follow}, outcome: probe.Good},
	{name: "308, to follow", server: redirect(308, "/v2", answer...), configure: []option{follow}, outcome: probe.Good},
	{name: "307 to itself, to follow", server: redirect(307, "/v1"), configure: []option{follow}, outcome: probe.ClientError, reason: probe.ReasonRedirect},
	{name: "307 to nowhere, to follow", server: redirect(307, ""), configure: []option{follow}, outcome: probe.ClientError, reason: probe.ReasonRedirect},
	{name: "400", server: status(400, `{"error":{"message":"bad","type":"invalid_request_error"}}`), outcome: probe.ClientError, reason: probe.ReasonRequest},
	{name: "400 by a filter", server: status(400, `{"error":{"message":"no","code":"content_filter"}}`), outcome: probe.ContentFiltered, reason: probe.ReasonFilter},
	{name: "401", server: status(401, ""), outcome: probe.ClientError, reason: probe.ReasonAuth},
	{name: "403", server: status(403, "<html><title>Forbidden</title></html>"), outcome: probe.ClientError, reason: probe.ReasonAuth, check: says403},
	{name: "404", server: status(404, ""), outcome: probe.ClientError, reason: probe.ReasonNotFound},
	{name: "405", server: status(405, ""), outcome: probe.ClientError, reason: probe.ReasonNotFound},
	{name: "408", server: status(408, ""), outcome: probe.ClientError, reason: probe.ReasonRequest},
	{name: "413", server: status(413, ""), outcome: probe.ClientError, reason: probe.ReasonRequest},
	{name: "422", server: status(422, `{"detail":[{"msg":"bad"}]}`), outcome: probe.ClientError, reason: probe.ReasonRequest},
	{name: "429", server: status(429, "", "Retry-After", "7"), outcome: probe.RateLimited, reason: probe.ReasonLimit, check: retryAfter(7 * time.Second)},
	{name: "429, without a delay", server: status(429, ""), outcome: probe.RateLimited, reason: probe.ReasonLimit, check: noRetryAfter},
	{name: "429, quota", server: status(429, `{"error":{"message":"pay","code":"insufficient_quota"}}`), outcome: probe.RateLimited, reason: probe.ReasonQuota},
	{name: "429, quota, in gzip", server: status(429, zip(`{"error":{"message":"pay","code":"insufficient_quota"}}`), "Content-Encoding", "gzip"), outcome: probe.RateLimited, reason: probe.ReasonQuota, flags: []probe.Flag{probe.FlagEncodedGzip}},
	{name: "429, in an encoding that is unknown", server: status(429, zip("{}"), "Content-Encoding", "br"), outcome: probe.RateLimited, reason: probe.ReasonLimit},
	{name: "400, quota by AWS", server: status(400, `{"message":"pay"}`, "X-Amzn-Errortype", "ServiceQuotaExceededException:http://a/"), outcome: probe.RateLimited, reason: probe.ReasonQuota, check: tells("pay")},
	{name: "429, milliseconds win", server: status(429, "", "Retry-After-Ms", "250", "Retry-After", "7"), outcome: probe.RateLimited, reason: probe.ReasonLimit, check: retryAfter(250 * time.Millisecond)},
	{name: "429, delay as a date", server: status(429, "", "Date", "Mon, 02 Nov 2026 10:00:00 GMT", "Retry-After", "Mon, 02 Nov 2026 10:00:05 GMT"), outcome: probe.RateLimited, reason: probe.ReasonLimit, check: retryAfter(5 * time.Second)},
	{name: "429, delay in the body", server: status(429, `{"error":{"code":429,"details":[{"retryDelay":"36s"}]}}`), outcome: probe.RateLimited, reason: probe.ReasonLimit, check: retryAfter(36 * time.Second)},
	{name: "500", server: status(500, "Internal Server Error"), outcome: probe.ServerError, reason: probe.ReasonInternal},
	{name: "500, overloaded", server: status(500, `{"error":{"type":"overloaded_error","message":"busy"}}`), outcome: probe.ServerError, reason: probe.ReasonOverloaded},
	{name: "502", server: status(502, ""), outcome: probe.ServerError, reason: probe.ReasonBadGateway},
	{name: "503", server: status(503, "", "Retry-After", "1.5"), outcome: probe.ServerError, reason: probe.ReasonOverloaded, check: retryAfter(1500 * time.Millisecond)},
	{name: "504", server: status(504, ""), outcome: probe.ServerError, reason: probe.ReasonGatewayTimeout},
	{name: "529", server: status(529, ""), outcome: probe.ServerError, reason: probe.ReasonOverloaded},
	{name: "500, body cut", server: script(500, "chunked", write("oops"), fin), outcome: probe.ServerError, reason: probe.ReasonInternal},
	{name: "500, body without end", server: script(500, "chunked", write("oops"), hold), configure: []option{firstToken}, outcome: probe.ServerError, reason: probe.ReasonInternal},
}

var streamTests = []outcomeTest{
	{name: "good", server: stream(answer...), outcome: probe.Good},
	{name: "good, HTTP/2", server: stream2(answer...), outcome: probe.Good},
	{name: "good, cut by its limit", server: stream(hi, usage(1), write(`data: {"choices":[{"finish_reason":"length"}]}`+"\n\n"), done, end), outcome: probe.Good, flags: []probe.Flag{probe.FlagLengthLimited}},
	{name: "good, then held", server: stream(hi, usage(1), finish, done, hold), outcome: probe.Good, flags: []probe.Flag{probe.FlagLingering}, check: soon},
	{name: "good, then reset", server: stream(hi, usage(1), finish, at(20, rst)), outcome: probe.Good, flags: []probe.Flag{probe.FlagDoneMissing, probe.FlagResetAfterFinish}},
	{name: "good, without a sentinel", server: stream(hi, usage(1), finish, end), outcome: probe.Good, flags: []probe.Flag{probe.FlagDoneMissing}},
	{name: "good, without usage", server: stream(hi, finish, done, end), outcome: probe.Good, flags: []probe.Flag{probe.FlagUsageMissing}, check: tokens(1, probe.TokensCounted)},
	{name: "usage of no tokens", server: stream(hi, usage(0), finish, done, end), outcome: probe.Good, flags: []probe.Flag{probe.FlagUsageImplausible}, check: tokens(1, probe.TokensCounted)},
	{name: "usage of less than none", server: stream(hi, usage(-1), finish, done, end), outcome: probe.Good, flags: []probe.Flag{probe.FlagUsageImplausible}, check: tokens(1, probe.TokensCounted)},
	{name: "usage over the limit", server: stream(hi, usage(5000), finish, done, end), outcome: probe.Good, flags: []probe.Flag{probe.FlagUsageImplausible}, check: tokens(1, probe.TokensCounted)},
	{name: "hidden reasoning", server: stream(hidden, finish, done, end), outcome: probe.SLOViolation, flags: []probe.Flag{probe.FlagReasoningOnly}, check: tokens(12, probe.TokensUsage)},
	{name: "gzip, flushed", server: zipped(hi, at(60, usage(1)), finish, done, end), outcome: probe.Good, flags: []probe.Flag{probe.FlagEncodedGzip}},
	{name: "gzip, cut", server: zipped(hi, fin), outcome: probe.Interrupted, reason: probe.ReasonUnexpectedEOF, flags: []probe.Flag{probe.FlagEncodedGzip, probe.FlagTruncated}},
	{name: "gzip that is none", server: encoded("gzip", answer...), outcome: probe.InvalidResponse, reason: probe.ReasonMalformed, flags: []probe.Flag{probe.FlagEncodedGzip}},
	{name: "br", server: encoded("br", answer...), outcome: probe.InvalidResponse, reason: probe.ReasonMalformed, check: tells("the body is compressed by br, though identity was asked for")},
	{name: "br over gzip", server: encoded("gzip, BR", answer...), outcome: probe.InvalidResponse, reason: probe.ReasonMalformed, check: tells("the body is compressed by gzip, br, though identity was asked for")},
	{name: "no compression by name", server: encoded("none", answer...), outcome: probe.Good},
	{name: "gzip of nothing", server: encoded("gzip", end), outcome: probe.InvalidResponse, reason: probe.ReasonEmpty, flags: []probe.Flag{probe.FlagEncodedGzip}},
	{name: "filtered", server: stream(hi, filter, done, end), outcome: probe.ContentFiltered, reason: probe.ReasonFilter},
	{name: "filtered at once", server: stream(filter, done, end), outcome: probe.ContentFiltered, reason: probe.ReasonFilter},
	{name: "refused by the model", server: stream(refusal, finish, done, end), outcome: probe.ContentFiltered, reason: probe.ReasonRefusal},
	{name: "in-band: code is a status", server: inBand(`{"error":{"message":"slow down","code":429}}`), outcome: probe.RateLimited, reason: probe.ReasonLimit, inBand: true},
	{name: "in-band: code is a word", server: inBand(`{"error":{"message":"pay","code":"insufficient_quota"}}`), outcome: probe.RateLimited, reason: probe.ReasonQuota, inBand: true},
	{name: "in-band: type", server: inBand(`{"error":{"type":"overloaded_error","message":"busy"}}`), outcome: probe.ServerError, reason: probe.ReasonOverloaded, inBand: true},
	{name: "in-band: text", server: inBand(`{"error":"CUDA out of memory"}`), outcome: probe.ServerError, reason: probe.ReasonInternal, inBand: true},
	{name: "in-band: TGI", server: inBand(`{"error":{"message":"too long","http_status_code":422}}`), outcome: probe.ClientError, reason: probe.ReasonRequest, inBand: true},
	{name: "in-band: finish_reason error", server: inBand(`{"choices":[{"delta":{},"finish_reason":"error"}]}`), outcome: probe.ServerError, reason: probe.ReasonInternal, inBand: true},
	{name: "in-band: Groq", server: inBand(`{"choices":[],"x_groq":{"error":"over capacity"}}`), outcome: probe.ServerError, reason: probe.ReasonInternal, inBand: true},
	{name: "in-band: a field error", server: stream(hi, write("error: {\"code\":503,\"message\":\"loading\"}\n\n"), end), outcome: probe.ServerError, reason: probe.ReasonOverloaded, inBand: true},
	{name: "in-band: a named event", server: stream(hi, write("event: error\ndata: it broke\n\n"), end), outcome: probe.ServerError, reason: probe.ReasonInternal, inBand: true},
	{name: "in-band: a bare line", server: stream(hi, write("{\"error\":{\"message\":\"it broke\",\"code\":500}}\n"), end), outcome: probe.ServerError, reason: probe.ReasonInternal, inBand: true},
	{name: "in-band: whole body", server: script(200, "length", write(`{"error":{"message":"no such model","code":404}}`), end), outcome: probe.ClientError, reason: probe.ReasonNotFound, inBand: true},
	{name: "in-band: with a delay", server: inBand(`{"error":{"code":429,"metadata":{"retry_after_seconds":3}}}`), outcome: probe.RateLimited, reason: probe.ReasonLimit, inBand: true, check: retryAfter(3 * time.Second)},
	{name: "in-band: then a reset", server: stream(hi, write(`data: {"error":{"code":429}}`+"\n\n"), at(20, rst)), outcome: probe.RateLimited, reason: probe.ReasonLimit, inBand: true},
	{name: "in-band: then held", server: stream(hi, write(`data: {"error":{"code":429}}`+"\n\n"), hold), outcome: probe.RateLimited, reason: probe.ReasonLimit, inBand: true, check: soon},
	{name: "empty", server: stream(end), outcome: probe.InvalidResponse, reason: probe.ReasonEmpty},
	{name: "white space", server: stream(write("\n\n \n"), end), outcome: probe.InvalidResponse, reason: probe.ReasonEmpty},
	{name: "204", server: raw(says("HTTP/1.1 204 No Content\r\n\r\n")), outcome: probe.InvalidResponse, reason: probe.ReasonEmpty},
	{name: "finish without tokens", server: stream(finish, done, end), outcome: probe.InvalidResponse, reason: probe.ReasonEmpty},
	{name: "usage without tokens", server: stream(usage(12), finish, done, end), outcome: probe.InvalidResponse, reason: probe.ReasonEmpty},
	{name: "bad JSON in an event", server: stream(hi, write("data: {\"choices\":]}\n\n"), finish, done, end), outcome: probe.InvalidResponse, reason: probe.ReasonMalformed},
	{name: "JSON that is no answer", server: script(200, "length", write(`{"status":"ok"}`), end), outcome: probe.InvalidResponse, reason: probe.ReasonMalformed},
	{name: "HTML", server: script(200, "length", write("<!doctype html><title>Welcome</title>"), end), outcome: probe.InvalidResponse, reason: probe.ReasonHTML},
	{name: "not streamed", server: script(200, "length", write(whole("Hi")), end), outcome: probe.InvalidResponse, reason: probe.ReasonNotStreamed},
	{name: "not streamed, which is accepted", server: script(200, "length", write(whole("Hi")), end), configure: []option{acceptNotStreamed}, outcome: probe.SLOViolation},
	{name: "event too large", server: stream(write("data: "), write(strings.Repeat("x", 9<<20)), end), outcome: probe.InvalidResponse, reason: probe.ReasonEventTooLarge},
	{name: "other text than expected", server: stream(answer...), configure: []option{expect("^Ho$")}, outcome: probe.InvalidResponse, reason: probe.ReasonContentCheck},
	{name: "text as expected", server: stream(answer...), configure: []option{expect("^Hi$")}, outcome: probe.Good},
	{name: "no visible text", server: stream(hidden, finish, done, end), configure: []option{requireText}, outcome: probe.InvalidResponse, reason: probe.ReasonContentCheck},
}

var interruptedTests = []outcomeTest{
	{name: "clean end", server: stream(hi, end), outcome: probe.Truncated, reason: probe.ReasonUnterminated, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "clean end in an event", server: stream(hi, write(`data: {"choi`), end), outcome: probe.Truncated, reason: probe.ReasonUnterminated, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/1.0 closes", server: http10(hi, fin), outcome: probe.Truncated, reason: probe.ReasonUnterminated, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "whole answer cut", server: http10(write(whole("Hi")[:40]), fin), outcome: probe.Truncated, reason: probe.ReasonUnterminated, configure: []option{notStreamed}, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "closed", server: stream(hi, fin), outcome: probe.Interrupted, reason: probe.ReasonUnexpectedEOF, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "closed before its length", server: script(200, "length", hi, fin), outcome: probe.Interrupted, reason: probe.ReasonUnexpectedEOF, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "reset", server: stream(hi, at(20, rst)), outcome: probe.Interrupted, reason: probe.ReasonReset, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "bad chunk", server: raw(says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n")), outcome: probe.Interrupted, reason: probe.ReasonProtocol, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: NO_ERROR", server: stream2(hi, resetStream(http2.ErrCodeNo)), outcome: probe.Interrupted, reason: probe.ReasonH2NoError, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: PROTOCOL_ERROR", server: stream2(hi, resetStream(http2.ErrCodeProtocol)), outcome: probe.Interrupted, reason: probe.ReasonH2Protocol, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: INTERNAL_ERROR", server: stream2(hi, resetStream(http2.ErrCodeInternal)), outcome: probe.Interrupted, reason: probe.ReasonH2Internal, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: FLOW_CONTROL_ERROR", server: stream2(hi, resetStream(http2.ErrCodeFlowControl)), outcome: probe.Interrupted, reason: probe.ReasonH2FlowControl, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: SETTINGS_TIMEOUT", server: stream2(hi, resetStream(http2.ErrCodeSettingsTimeout)), outcome: probe.Interrupted, reason: probe.ReasonH2SettingsTimeout, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: STREAM_CLOSED", server: stream2(hi, resetStream(http2.ErrCodeStreamClosed)), outcome: probe.Interrupted, reason: probe.ReasonH2StreamClosed, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: FRAME_SIZE_ERROR", server: stream2(hi, resetStream(http2.ErrCodeFrameSize)), outcome: probe.Interrupted, reason: probe.ReasonH2FrameSize, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: REFUSED_STREAM", server: stream2(hi, resetStream(http2.ErrCodeRefusedStream)), outcome: probe.Interrupted, reason: probe.ReasonH2Refused, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: CANCEL", server: stream2(hi, resetStream(http2.ErrCodeCancel)), outcome: probe.Interrupted, reason: probe.ReasonH2Cancel, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: COMPRESSION_ERROR", server: stream2(hi, resetStream(http2.ErrCodeCompression)), outcome: probe.Interrupted, reason: probe.ReasonH2Compression, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: CONNECT_ERROR", server: stream2(hi, resetStream(http2.ErrCodeConnect)), outcome: probe.Interrupted, reason: probe.ReasonH2Connect, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: ENHANCE_YOUR_CALM", server: stream2(hi, resetStream(http2.ErrCodeEnhanceYourCalm)), outcome: probe.Interrupted, reason: probe.ReasonH2Calm, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: INADEQUATE_SECURITY", server: stream2(hi, resetStream(http2.ErrCodeInadequateSecurity)), outcome: probe.Interrupted, reason: probe.ReasonH2Security, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: HTTP_1_1_REQUIRED", server: stream2(hi, resetStream(http2.ErrCodeHTTP11Required)), outcome: probe.Interrupted, reason: probe.ReasonH2HTTP11, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: no known code", server: stream2(hi, resetStream(http2.ErrCode(99))), outcome: probe.Interrupted, reason: probe.ReasonH2Reset, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: going away", server: stream2(hi, goAway(1), at(20, fin)), outcome: probe.Interrupted, reason: probe.ReasonH2GoAway, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "HTTP/2: closed", server: stream2(hi, fin), outcome: probe.Interrupted, reason: probe.ReasonUnexpectedEOF, flags: []probe.Flag{probe.FlagTruncated}},
}

var timeoutTests = []outcomeTest{
	{name: "no handshake", server: scheme("https", raw(holds)), configure: []option{firstToken}, outcome: probe.Timeout, reason: probe.ReasonTLS},
	{name: "no headers", server: raw(holds), configure: []option{firstToken}, outcome: probe.Timeout, reason: probe.ReasonHeaders},
	{name: "no token", server: stream(write(": ping\n\n"), hold), configure: []option{firstToken}, outcome: probe.Timeout, reason: probe.ReasonFirstToken},
	{name: "no next token", server: stream(hi, write(": ping\n\n"), hold), configure: []option{idle}, outcome: probe.Timeout, reason: probe.ReasonIdle},
	{name: "no end", server: stream(hi, at(50, hi), at(100, hi), at(150, hi), at(200, hi), at(250, hi), hold), configure: []option{total}, outcome: probe.Timeout, reason: probe.ReasonTotal},
	{name: "no end of a whole answer", server: script(200, "chunked", write(`{"cho`), hold), configure: []option{notStreamed, total}, outcome: probe.Timeout, reason: probe.ReasonTotal},
	{name: "no headers of a whole answer", server: raw(holds), configure: []option{notStreamed, total}, outcome: probe.Timeout, reason: probe.ReasonHeaders},
	{name: "canceled before headers", server: raw(holds), cancel: 100 * time.Millisecond, outcome: probe.Canceled},
	{name: "canceled in the body", server: stream(hi, hold), cancel: 100 * time.Millisecond, outcome: probe.Canceled},
	{name: "canceled in an error's body", server: script(500, "chunked", write("oops"), hold), cancel: 100 * time.Millisecond, outcome: probe.Canceled},
	{name: "credentials cannot be read", server: stream(answer...), configure: []option{removedCredentials}, outcome: probe.LocalError},
	{name: "credentials that are no header", server: stream(answer...), configure: []option{credentials("two\nlines")}, outcome: probe.LocalError},
	{name: "credentials are not set", server: stream(answer...), configure: []option{unsetCredentials}, outcome: probe.LocalError},
	{name: "no token for the token", server: stream(answer...), configure: []option{oauth("http://127.0.0.1:1")}, outcome: probe.LocalError},
}

var wholeTests = []outcomeTest{
	{name: "whole", server: script(200, "length", write(whole("Hi")), end), configure: []option{notStreamed}, outcome: probe.Good, check: noStreamFigures},
	{name: "whole, after blank lines", server: script(200, "chunked", write("\n"), at(20, write("\n\n")), at(40, write(whole("Hi"))), end), configure: []option{notStreamed}, outcome: probe.Good, check: noStreamFigures},
	{name: "whole, in pieces", server: script(200, "chunked", write(whole("Hi")[:30]), at(20, write(whole("Hi")[30:])), end), configure: []option{notStreamed}, outcome: probe.Good, check: noStreamFigures},
	{name: "whole, empty text", server: script(200, "length", write(strings.Replace(whole(""), `_tokens":1`, `_tokens":0`, 1)), end), configure: []option{notStreamed}, outcome: probe.InvalidResponse, reason: probe.ReasonEmpty},
	{name: "whole, completions", server: script(200, "length", write(`{"choices":[{"text":"Hi","finish_reason":"stop"}],"usage":{"completion_tokens":1}}`), end), configure: []option{notStreamed, completions}, outcome: probe.Good, check: noStreamFigures},
	{name: "streamed, completions", server: stream(write(`data: {"choices":[{"text":"Hi"}]}`+"\n\n"), usage(1), finish, done, end), configure: []option{completions}, outcome: probe.Good},
	{name: "whole, closed early", server: script(200, "length", write(whole("Hi")[:40]), fin), configure: []option{notStreamed}, outcome: probe.Interrupted, reason: probe.ReasonUnexpectedEOF, flags: []probe.Flag{probe.FlagTruncated}},
	{name: "whole, bad JSON", server: script(200, "length", write(`{"choices":]}`), end), configure: []option{notStreamed}, outcome: probe.InvalidResponse, reason: probe.ReasonMalformed},
}

// probe probes the server of a test once.
func (tc *outcomeTest) probe(t *testing.T) *probe.Result {
	t.Helper()
	s := config.NewSeries("", "m")
	s.Scenario.MaxTokens = 16
	s.Scenario.Timeout, s.Scenario.FirstTokenTimeout, s.Scenario.IdleTimeout = 20*time.Second, 10*time.Second, 5*time.Second
	s.Scenario.SLO = config.SLO{Objective: 0.99, Criteria: []config.Criterion{
		{Name: config.CriterionTTFT, Limit: 10 * time.Second}, {Name: config.CriterionE2E, Limit: 20 * time.Second},
	}}
	s.Target.URL = tc.server(t, s)
	for _, configure := range tc.configure {
		configure(s)
	}
	if !s.Scenario.Stream {
		s.Scenario.SLO.Criteria = s.Scenario.SLO.Criteria[1:]
	}
	ctx := context.Background()
	if tc.cancel > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, tc.cancel)
		defer cancel()
	}
	return newProber(t, s).Probe(ctx)
}

func (tc *outcomeTest) compare(t *testing.T, r *probe.Result) {
	t.Helper()
	if r.Outcome != tc.outcome || r.Reason != tc.reason || r.InBand != tc.inBand {
		t.Errorf("got %s (%s), in-band %v; want %s (%s), %v; error: %s", r.Outcome, r.Reason, r.InBand, tc.outcome, tc.reason, tc.inBand, r.Error)
	}
	flags := slices.DeleteFunc(slices.Clone(r.Flags), func(f probe.Flag) bool { return f == probe.FlagOwnLag })
	if !slices.Equal(flags, tc.flags) {
		t.Errorf("flags: got %v, want %v", flags, tc.flags)
	}
	if tc.check != nil {
		tc.check(t, r)
	}
}

// checkResult checks what holds for every result.
func checkResult(t *testing.T, r *probe.Result) {
	t.Helper()
	holds := func(what string, is bool) {
		t.Helper()
		if !is {
			t.Errorf("%s: it does not hold that %s; the result is %s", r.Outcome, what, toJSON(t, r))
		}
	}
	attempt, success := r.Outcome.Attempt(), r.Outcome.Success()
	slos := map[string]probe.Verdict{}
	for _, j := range r.Judgments {
		slos[j.SLO] = j.Verdict
	}
	holds("each SLO is judged once", len(slos) == len(r.Judgments))
	holds("an attempt has judgments, nothing else has", attempt == (len(slos) > 0))
	if attempt {
		holds("a success is available", slos[probe.SLOAvailability] == map[bool]probe.Verdict{true: probe.Met, false: probe.Missed}[success])
		holds("only what is good is goodput", slos[probe.SLOGoodput] == map[bool]probe.Verdict{true: probe.Met, false: probe.Missed}[r.Outcome == probe.Good])
		holds("its reason is of the closed set", success && r.Reason == "" || slices.Contains(probe.Reasons[r.Outcome], r.Reason))
	} else {
		holds("it has no reason", r.Reason == "")
	}
	holds("what failed has an error", success == (r.Error == ""))
	holds("a status has a first byte", r.TTFB != nil || r.StatusCode == 0)
	holds("an attempt has a duration", attempt == (r.E2E != nil))
	holds("a time per token needs success and two tokens", r.TPOT == nil || success && *r.OutputTokens > 1)
	holds("gaps need two tokens", (r.Stall == nil || r.TokenEvents > 1) && len(r.ChunkGaps) < max(1, r.TokenEvents))
	holds("a time to the first token needs a token", r.TTFT == nil || r.TokenEvents > 0)
	holds("tokens have a source", (r.OutputTokens == nil) == (r.OutputTokensSource == probe.TokensNone || r.OutputTokensSource == ""))
	holds("no count is 0", r.OutputTokens == nil || *r.OutputTokens > 0)
	holds("stamps have a source", r.TokenEvents == 0 || r.StampSource != "")
	holds("times are in order", ordered(r.TTFB, r.TTFT, r.FirstAnswer, r.E2E))
	holds("it has a trace", len(r.TraceID) == 32 && len(r.SpanID) == 16)
	for _, p := range r.Phases {
		holds("phases are not negative", p.Duration >= 0)
	}
	for key, value := range toMap(t, r) {
		zero := value == nil || value == 0.0 && strings.HasSuffix(key, "_seconds") && key != "own_lag_seconds"
		holds("no figure is null or 0: "+key, !zero)
	}
}

// ordered reports whether those of the durations that exist do not decrease.
func ordered(durations ...*time.Duration) bool {
	var last time.Duration
	for _, d := range durations {
		if d != nil {
			if *d < last {
				return false
			}
			last = *d
		}
	}
	return true
}

// tally sums up the results of a table.
type tally struct {
	mu       sync.Mutex
	results  int
	attempts int
	verdicts map[string]map[probe.Verdict]int
	seen     map[probe.Outcome]map[probe.Reason]bool
}

func (c *tally) add(r *probe.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.verdicts, c.seen = map[string]map[probe.Verdict]int{}, map[probe.Outcome]map[probe.Reason]bool{}
	}
	c.results++
	if r.Outcome.Attempt() {
		c.attempts++
	}
	for _, j := range r.Judgments {
		if c.verdicts[j.SLO] == nil {
			c.verdicts[j.SLO] = map[probe.Verdict]int{}
		}
		c.verdicts[j.SLO][j.Verdict]++
	}
	if c.seen[r.Outcome] == nil {
		c.seen[r.Outcome] = map[probe.Reason]bool{}
	}
	c.seen[r.Outcome][r.Reason] = true
}

// elsewhere are the reasons that cannot be had on loopback by what the table does.
var elsewhere = map[probe.Reason]string{
	probe.ReasonUnreachable: "needs a router: TestTransportErrors",
	probe.ReasonConnect:     "needs a full queue of connections: TestConnectTimeout",
	probe.ReasonCRC:         "no protocol with checksums",
}

// check checks that nothing was lost or counted twice, and that the table has every reason.
func (c *tally) check(t *testing.T, tests int) {
	t.Helper()
	if c.results != tests {
		return // some did not run, or did not get as far
	}
	for _, slo := range []string{probe.SLOGoodput, probe.SLOAvailability} {
		if sum := c.verdicts[slo][probe.Met] + c.verdicts[slo][probe.Missed]; sum != c.attempts || c.attempts == 0 {
			t.Errorf("%s: good + bad is %d, want the %d attempts; verdicts: %v", slo, sum, c.attempts, c.verdicts[slo])
		}
	}
	for outcome, reasons := range probe.Reasons {
		for _, reason := range reasons {
			if elsewhere[reason] == "" && !c.seen[outcome][reason] {
				t.Errorf("no test has the outcome %s with the reason %s", outcome, reason)
			}
		}
	}
	for _, outcome := range []probe.Outcome{probe.Good, probe.Canceled, probe.LocalError} {
		if !c.seen[outcome][""] {
			t.Errorf("no test has the outcome %s", outcome)
		}
	}
}

// The checks of single tests.

func says403(t *testing.T, r *probe.Result) {
	if r.Error != "Forbidden" || r.StatusCode != http.StatusForbidden {
		t.Errorf("error %q, status %d; want the title of the page, and 403", r.Error, r.StatusCode)
	}
}

func tells(want string) func(*testing.T, *probe.Result) {
	return func(t *testing.T, r *probe.Result) {
		if r.Error != want {
			t.Errorf("error %q, want %q", r.Error, want)
		}
	}
}

func retryAfter(want time.Duration) func(*testing.T, *probe.Result) {
	return func(t *testing.T, r *probe.Result) {
		if r.RetryAfter == nil || *r.RetryAfter != want {
			t.Errorf("retry after: got %v, want %v", r.RetryAfter, want)
		}
	}
}

func noRetryAfter(t *testing.T, r *probe.Result) {
	if r.RetryAfter != nil {
		t.Errorf("retry after: got %v, want none", *r.RetryAfter)
	}
}

func tokens(n int, source probe.TokensSource) func(*testing.T, *probe.Result) {
	return func(t *testing.T, r *probe.Result) {
		if r.OutputTokens == nil || *r.OutputTokens != n || r.OutputTokensSource != source {
			t.Errorf("output tokens: got %v, %s; want %d, %s", r.OutputTokens, r.OutputTokensSource, n, source)
		}
	}
}

// soon checks that a server which holds the connection does not lengthen the answer.
func soon(t *testing.T, r *probe.Result) {
	if *r.E2E > time.Second {
		t.Errorf("the end came after %v, which is too late", *r.E2E)
	}
}

func noStreamFigures(t *testing.T, r *probe.Result) {
	if r.Text != "Hi" || r.TTFT != nil || r.FirstAnswer != nil || r.TPOT != nil || r.Stall != nil {
		t.Errorf("got %s; want the text, and no figures of a stream", toJSON(t, r))
	}
}

// The options of single tests.

func follow(s *config.Series)            { s.Target.HTTP.FollowRedirects = true }
func completions(s *config.Series)       { s.Target.Protocol = "openai-completions" }
func notStreamed(s *config.Series)       { s.Scenario.Stream = false }
func acceptNotStreamed(s *config.Series) { s.Scenario.AcceptNotStreamed = true }
func requireText(s *config.Series)       { s.Scenario.RequireText = true }
func firstToken(s *config.Series)        { s.Scenario.FirstTokenTimeout = 200 * time.Millisecond }
func idle(s *config.Series)              { s.Scenario.IdleTimeout = 200 * time.Millisecond }
func total(s *config.Series)             { s.Scenario.Timeout = 200 * time.Millisecond }

func expect(re string) option {
	return func(s *config.Series) {
		s.Scenario.Prompts = []config.Prompt{{Text: "Hello", Weight: 1, Expect: regexp.MustCompile(re)}}
	}
}

func credentials(secret promconfig.Secret) option {
	return func(s *config.Series) {
		s.Target.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", Credentials: secret}
	}
}

func removedCredentials(s *config.Series) {
	s.Target.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: "/nonexistent"}
}

func unsetCredentials(s *config.Series) {
	s.Target.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsRef: "GOODPUT_NOT_SET"}
}

func oauth(tokenURL string) option {
	return func(s *config.Series) {
		s.Target.HTTP.OAuth2 = &promconfig.OAuth2{ClientID: "id", ClientSecret: "secret", TokenURL: tokenURL}
	}
}
