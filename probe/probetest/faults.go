package probetest

import (
	"net/http"
	"time"
)

// Fault is something that goes wrong with some requests. Requests are counted apart for each kind of request
// (protocol, streamed or not, order of magnitude of the limit), from 1.
type Fault struct {
	Kind       FaultKind
	Rate       float64       // share of requests, at random
	First      int           // this request has it for certain, so that a short run shows it; 0 is none
	Every      int           // and each Every-th one after First; 0 is none
	Delay      time.Duration // of FaultSlowFirstToken
	RetryAfter time.Duration // of faults with an error status, in whole seconds; 0 is none
}

// FaultKind is what goes wrong. An API that has no such thing answers as if nothing were wrong.
type FaultKind string

// Faults instead of an answer.
const (
	FaultNone           FaultKind = ""
	FaultRateLimited    FaultKind = "rate_limited"    // 429
	FaultQuota          FaultKind = "quota"           // 429, because money or quota is used up
	FaultUnauthorized   FaultKind = "unauthorized"    // 401; 403 at AWS
	FaultNotFound       FaultKind = "not_found"       // 404
	FaultBadRequest     FaultKind = "bad_request"     // 400
	FaultInternal       FaultKind = "internal"        // 500
	FaultUnavailable    FaultKind = "unavailable"     // 503; 529 at Anthropic
	FaultBadGateway     FaultKind = "bad_gateway"     // 502, a proxy's page
	FaultGatewayTimeout FaultKind = "gateway_timeout" // 504, a proxy's page
	FaultRedirect       FaultKind = "redirect"        // 307
	FaultHTML           FaultKind = "html"            // 200, a proxy's page
	FaultClosed         FaultKind = "closed"          // the connection is closed without a word
	FaultResetAtOnce    FaultKind = "reset_at_once"   // the connection is reset without a word
	FaultNoHeaders      FaultKind = "no_headers"      // silence
)

// Faults inside an answer.
const (
	FaultInBand         FaultKind = "in_band"          // an error object inside a 200, half-way
	FaultTruncated      FaultKind = "truncated"        // a clean end half-way
	FaultReset          FaultKind = "reset"            // a TCP reset half-way
	FaultCut            FaultKind = "cut"              // the connection ends half-way, in the midst of the body
	FaultStall          FaultKind = "stall"            // silence from half-way on
	FaultPingStall      FaultKind = "ping_stall"       // nothing but signs of life from half-way on
	FaultNoFirstToken   FaultKind = "no_first_token"   // the head, then silence
	FaultSlowFirstToken FaultKind = "slow_first_token" // Delay more until the first token
	FaultMalformed      FaultKind = "malformed"        // half-way, an event that is no JSON
	FaultTooLarge       FaultKind = "too_large"        // half-way, an event of more than 8 MiB
	FaultChecksum       FaultKind = "checksum"         // half-way, a message with a wrong checksum (AWS)
	FaultNotStreamed    FaultKind = "not_streamed"     // a whole answer, though a stream was asked for
	FaultLengthLimited  FaultKind = "length_limited"   // an answer as long as the limit allows
	FaultEmpty          FaultKind = "empty"            // an answer of no tokens
	FaultContentFilter  FaultKind = "content_filter"   // cut by a filter, half-way
	FaultRefusal        FaultKind = "refusal"          // the model refuses
	FaultStuck          FaultKind = "stuck"            // the same token again and again, to the limit
	FaultDoubleFinish   FaultKind = "duplicate_finish" // the finish twice
	FaultUsageMissing   FaultKind = "usage_missing"    // no report of usage
)

// FaultKinds lists all faults.
var FaultKinds = []FaultKind{
	FaultRateLimited, FaultQuota, FaultUnauthorized, FaultNotFound, FaultBadRequest, FaultInternal, FaultUnavailable,
	FaultBadGateway, FaultGatewayTimeout, FaultRedirect, FaultHTML, FaultClosed, FaultResetAtOnce, FaultNoHeaders,
	FaultInBand, FaultTruncated, FaultReset, FaultCut, FaultStall, FaultPingStall, FaultNoFirstToken, FaultSlowFirstToken,
	FaultMalformed, FaultTooLarge, FaultChecksum, FaultNotStreamed, FaultLengthLimited, FaultEmpty, FaultContentFilter,
	FaultRefusal, FaultStuck, FaultDoubleFinish, FaultUsageMissing,
}

// apiError is an error that each API tells in a form of its own.
type apiError struct {
	status     int
	quota      bool
	message    string
	retryAfter time.Duration // 0: it does not say
}

// refusals are the faults that an API tells by a status.
var refusals = map[FaultKind]int{
	FaultRateLimited:  http.StatusTooManyRequests,
	FaultQuota:        http.StatusTooManyRequests,
	FaultUnauthorized: http.StatusUnauthorized,
	FaultNotFound:     http.StatusNotFound,
	FaultBadRequest:   http.StatusBadRequest,
	FaultInternal:     http.StatusInternalServerError,
	FaultUnavailable:  http.StatusServiceUnavailable,
}

// pages are the faults that a proxy tells by a page.
var pages = map[FaultKind]int{
	FaultBadGateway:     http.StatusBadGateway,
	FaultGatewayTimeout: http.StatusGatewayTimeout,
	FaultHTML:           http.StatusOK,
}

// halfway are the faults that strike in the midst of an answer.
var halfway = map[FaultKind]bool{
	FaultInBand: true, FaultTruncated: true, FaultReset: true, FaultCut: true, FaultStall: true, FaultPingStall: true,
	FaultMalformed: true, FaultTooLarge: true, FaultChecksum: true,
}
