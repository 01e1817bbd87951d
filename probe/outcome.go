package probe

// Outcome is what became of one probe. Every probe has exactly one.
type Outcome string

// The outcomes of an attempt.
const (
	Good            Outcome = "good"             // succeeded and met every criterion that applies
	SLOViolation    Outcome = "slo_violation"    // succeeded, but missed a criterion
	Truncated       Outcome = "truncated"        // clean end of the body without the protocol's terminal signal
	Interrupted     Outcome = "interrupted"      // the transport broke inside the body
	Timeout         Outcome = "timeout"          // one of the probe's own limits ran out
	RateLimited     Outcome = "rate_limited"     // 429, or the same told inside a 200
	ServerError     Outcome = "server_error"     // 5xx, or the same told inside a 200
	ClientError     Outcome = "client_error"     // 4xx or an unfollowed redirect, or the same told inside a 200
	ConnectionError Outcome = "connection_error" // no response at all
	ContentFiltered Outcome = "content_filtered" // the answer was withheld or cut by a filter, or refused
	InvalidResponse Outcome = "invalid_response" // an answer that is none
)

// The prober's own failures. They are never attempts and stand in no SLO.
const (
	Canceled   Outcome = "canceled"    // by shutdown or reload
	LocalError Outcome = "local_error" // out of file descriptors, unreadable secret file, a stalled prober
)

// Outcomes lists every outcome of an attempt, in the order of the documentation.
var Outcomes = []Outcome{
	Good, SLOViolation, Truncated, Interrupted, Timeout, RateLimited, ServerError, ClientError,
	ConnectionError, ContentFiltered, InvalidResponse,
}

// AbortedOutcomes lists the outcomes of probes that were no attempt.
var AbortedOutcomes = []Outcome{Canceled, LocalError}

// Attempt reports whether a probe with this outcome counts as an attempt.
func (o Outcome) Attempt() bool { return o != Canceled && o != LocalError }

// Success reports whether the request was answered in full, whatever the SLO says.
func (o Outcome) Success() bool { return o == Good || o == SLOViolation }

// Reason says more about an outcome. The set is closed: a reason is a metric label.
type Reason string

// The reasons, by outcome.
const (
	ReasonTLS Reason = "tls" // timeout, connection_error

	ReasonConnect    Reason = "connect"     // timeout: DNS or connect
	ReasonHeaders    Reason = "headers"     // timeout: connected, no response headers
	ReasonFirstToken Reason = "first_token" // timeout: headers, no token
	ReasonIdle       Reason = "idle"        // timeout: too long between tokens
	ReasonTotal      Reason = "total"       // timeout: the whole answer

	ReasonDNS         Reason = "dns"         // connection_error
	ReasonRefused     Reason = "refused"     // connection_error
	ReasonReset       Reason = "reset"       // connection_error, interrupted
	ReasonClosed      Reason = "closed"      // connection_error
	ReasonUnreachable Reason = "unreachable" // connection_error: no route
	ReasonProxy       Reason = "proxy"       // connection_error: the configured proxy refused
	ReasonProtocol    Reason = "protocol"    // connection_error, interrupted: not the HTTP that was agreed on

	ReasonUnexpectedEOF Reason = "unexpected_eof" // interrupted
	ReasonH2GoAway      Reason = "h2_goaway"      // interrupted
	ReasonH2Reset       Reason = "h2_reset"       // interrupted: RST_STREAM with a code that RFC 9113 does not name

	ReasonH2NoError         Reason = "h2_no_error" // interrupted: RST_STREAM with this code, as the others
	ReasonH2Protocol        Reason = "h2_protocol_error"
	ReasonH2Internal        Reason = "h2_internal_error"
	ReasonH2FlowControl     Reason = "h2_flow_control_error"
	ReasonH2SettingsTimeout Reason = "h2_settings_timeout"
	ReasonH2StreamClosed    Reason = "h2_stream_closed"
	ReasonH2FrameSize       Reason = "h2_frame_size_error"
	ReasonH2Refused         Reason = "h2_refused_stream"
	ReasonH2Cancel          Reason = "h2_cancel"
	ReasonH2Compression     Reason = "h2_compression_error"
	ReasonH2Connect         Reason = "h2_connect_error"
	ReasonH2Calm            Reason = "h2_enhance_your_calm"
	ReasonH2Security        Reason = "h2_inadequate_security"
	ReasonH2HTTP11          Reason = "h2_http_1_1_required"

	ReasonLimit Reason = "limit" // rate_limited
	ReasonQuota Reason = "quota" // rate_limited: money or quota is used up

	ReasonOverloaded     Reason = "overloaded"      // server_error: 503, 529, or said so
	ReasonInternal       Reason = "internal"        // server_error: 500 and the rest
	ReasonBadGateway     Reason = "bad_gateway"     // server_error: 502
	ReasonGatewayTimeout Reason = "gateway_timeout" // server_error: 504

	ReasonRedirect Reason = "redirect"  // client_error: 3xx that is not followed
	ReasonAuth     Reason = "auth"      // client_error: 401, 403
	ReasonNotFound Reason = "not_found" // client_error: 404, 405, 410
	ReasonRequest  Reason = "request"   // client_error: the rest

	ReasonFilter  Reason = "filter"  // content_filtered
	ReasonRefusal Reason = "refusal" // content_filtered

	ReasonEmpty         Reason = "empty" // invalid_response
	ReasonMalformed     Reason = "malformed"
	ReasonHTML          Reason = "html"
	ReasonNotStreamed   Reason = "not_streamed"
	ReasonEventTooLarge Reason = "event_too_large"
	ReasonCRC           Reason = "crc"
	ReasonContentCheck  Reason = "content_check"

	ReasonUnterminated Reason = "unterminated" // truncated
)

// Reasons lists, for every outcome that is a failure, the reasons it can have. An outcome always has one of
// them, so that goodput_probe_failures_total can be born complete.
var Reasons = map[Outcome][]Reason{
	Truncated: {ReasonUnterminated},
	Interrupted: {
		ReasonUnexpectedEOF, ReasonReset, ReasonProtocol, ReasonH2GoAway, ReasonH2Reset,
		ReasonH2NoError, ReasonH2Protocol, ReasonH2Internal, ReasonH2FlowControl, ReasonH2SettingsTimeout, ReasonH2StreamClosed, ReasonH2FrameSize,
		ReasonH2Refused, ReasonH2Cancel, ReasonH2Compression, ReasonH2Connect, ReasonH2Calm, ReasonH2Security, ReasonH2HTTP11,
	},
	Timeout:         {ReasonConnect, ReasonTLS, ReasonHeaders, ReasonFirstToken, ReasonIdle, ReasonTotal},
	RateLimited:     {ReasonLimit, ReasonQuota},
	ServerError:     {ReasonInternal, ReasonOverloaded, ReasonBadGateway, ReasonGatewayTimeout},
	ClientError:     {ReasonRequest, ReasonRedirect, ReasonAuth, ReasonNotFound},
	ConnectionError: {ReasonDNS, ReasonRefused, ReasonTLS, ReasonReset, ReasonClosed, ReasonUnreachable, ReasonProxy, ReasonProtocol},
	ContentFiltered: {ReasonFilter, ReasonRefusal},
	InvalidResponse: {
		ReasonEmpty, ReasonMalformed, ReasonHTML, ReasonNotStreamed, ReasonEventTooLarge, ReasonCRC, ReasonContentCheck,
	},
}

// Flag marks something worth knowing that does not change the outcome.
type Flag string

// The flags.
const (
	FlagLengthLimited     Flag = "length_limited"           // ended by the token limit
	FlagDoneMissing       Flag = "done_missing"             // finished, but the protocol's sentinel never came
	FlagDuplicateFinish   Flag = "duplicate_finish"         // more than one finish
	FlagUnterminatedEvent Flag = "unterminated_final_event" // the last event had no end, but was whole
	FlagBuffered          Flag = "buffered"                 // several token events, all at one instant: a proxy held them
	FlagReasoningOnly     Flag = "reasoning_only"           // tokens, but none of them visible
	FlagUsageMissing      Flag = "usage_missing"            // the server reported no output tokens
	FlagUsageImplausible  Flag = "usage_implausible"        // it reported some that cannot be; they were counted instead
	FlagLingering         Flag = "lingering"                // the answer was over, the body was not
	FlagResetAfterFinish  Flag = "reset_after_finish"       // the transport broke after the finish
	FlagStaleRetry        Flag = "stale_retry"              // a kept-alive connection was dead; sent again on a new one
	FlagEncodedGzip       Flag = "encoded_gzip"             // gzip, although identity was asked for
	FlagTruncated         Flag = "truncated"                // the text is incomplete
	FlagOwnLag            Flag = "own_lag"                  // the prober read late: its chunk gaps are its own, not the endpoint's
)
