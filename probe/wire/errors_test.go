package wire

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseError(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want *Error
	}{
		"quota":              {`{"error":{"message":"no credit left","type":"insufficient_quota","code":"insufficient_quota"}}`, &Error{Status: 429, Quota: true, Message: "no credit left"}},
		"rate limit":         {`{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`, &Error{Status: 429, Message: "slow down"}},
		"a key":              {`{"error":{"message":"who?","type":"invalid_request_error","code":"invalid_api_key"}}`, &Error{Status: 401, Message: "who?"}},
		"Azure's filter":     {`{"error":{"message":"m","code":"content_filter","status":400}}`, &Error{Status: 400, Filtered: true, Message: "m"}},
		"Google's":           {`[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"36s"}]}}]`, &Error{Status: 429, Message: "m", RetryAfter: ptr(36 * time.Second)}},
		"TGI's":              {`{"error":"Model is overloaded","error_type":"overloaded"}`, &Error{Status: 529, Overloaded: true, Message: "Model is overloaded"}},
		"TGI's in a stream":  {`{"error":{"message":"m","http_status_code":422}}`, &Error{Status: 422, Message: "m"}},
		"FastAPI's":          {`{"detail":"Not Found"}`, &Error{Message: "Not Found"}},
		"FastAPI's list":     {`{"detail":[{"loc":["body"]}]}`, &Error{Message: `[{"loc":["body"]}]`}},
		"words":              {`{"error":{"message":"m","type":"Too Many Requests"}}`, &Error{Status: 429, Message: "m"}},
		"camel case":         {`{"error":{"message":"m","type":"RateLimitError"}}`, &Error{Status: 429, Message: "m"}},
		"bad gateway":        {`{"error":{"message":"m","type":"BadGatewayError"}}`, &Error{Status: 502, Message: "m"}},
		"a code as a float":  {`{"error":{"message":"m","code":404.0}}`, &Error{Status: 404, Message: "m"}},
		"no balance":         {`{"error":{"message":"m","type":"insufficient_balance"}}`, &Error{Status: 402, Quota: true, Message: "m"}},
		"a page":             {`<html><head><title>502 Bad &amp; Gateway</title></head></html>`, &Error{Message: "502 Bad & Gateway"}},
		"a page without one": {`<html></html>`, &Error{Message: "an HTML page without a title"}},
		"plain text":         {"upstream connect error\n", &Error{Message: "upstream connect error"}},
		"nothing":            {" ", nil},
		"an answer":          {`{"choices":[{"message":{"content":"a"}}]}`, nil},
		"some other JSON":    {`{"ok":true}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ParseError([]byte(tc.body))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResponseError(t *testing.T) {
	const message = `{"message":"why"}`
	for name, tc := range map[string]struct {
		status      int
		class, body string
		want        *Error
	}{
		"no class":                 {503, "", `{"error":{"message":"m","type":"overloaded_error"}}`, &Error{Status: 503, Overloaded: true, Message: "m"}},
		"neither class nor body":   {500, "", "", &Error{Status: 500}},
		"a status in the body":     {400, "", `{"error":{"message":"m","code":429}}`, &Error{Status: 400, Message: "m"}},
		"a quota by 400":           {400, "ServiceQuotaExceededException", message, &Error{Status: 429, Quota: true, Message: "why"}},
		"a limit by 400":           {400, "ThrottlingException", message, &Error{Status: 429, Message: "why"}},
		"a limit by 503":           {503, "TooManyRequestsException", message, &Error{Status: 429, Message: "why"}},
		"a limit by 429":           {429, "ThrottlingException", message, &Error{Status: 429, Message: "why"}},
		"a class behind a name":    {400, "com.amazonaws.bedrock#ThrottlingException", message, &Error{Status: 429, Message: "why"}},
		"a class before a URL":     {400, "ThrottlingException:http://internal.amazon.com/coral/#x", message, &Error{Status: 429, Message: "why"}},
		"a class between both":     {400, " aws.bedrock#ThrottlingException:http://a/", message, &Error{Status: 429, Message: "why"}},
		"a class alone":            {400, "ServiceQuotaExceededException", "", &Error{Status: 429, Quota: true, Message: "ServiceQuotaExceededException"}},
		"a class of no limit":      {400, "ValidationException", message, &Error{Status: 400, Message: "why"}},
		"a class that says less":   {403, "InvalidSignatureException", message, &Error{Status: 403, Message: "why"}},
		"a class that says more":   {500, "ServiceUnavailableException", message, &Error{Status: 500, Overloaded: true, Message: "why"}},
		"a class that is unheard":  {424, "ModelErrorException", message, &Error{Status: 424, Message: "why"}},
		"a class that names none":  {400, ":http://a/", message, &Error{Status: 400, Message: "why"}},
		"a quota that a body says": {429, "ThrottlingException", `{"error":{"message":"m","code":"insufficient_quota"}}`, &Error{Status: 429, Quota: true, Message: "m"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set("X-Amzn-ErrorType", tc.class)
			if diff := cmp.Diff(tc.want, ResponseError(tc.status, h, []byte(tc.body))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		header map[string]string
		want   *time.Duration
	}{
		"absent":             {nil, nil},
		"seconds":            {map[string]string{"Retry-After": "3"}, ptr(3 * time.Second)},
		"decimal seconds":    {map[string]string{"Retry-After": "0.5"}, ptr(500 * time.Millisecond)},
		"milliseconds first": {map[string]string{"Retry-After": "3", "Retry-After-Ms": "750"}, ptr(750 * time.Millisecond)},
		"a date":             {map[string]string{"Retry-After": "Sun, 01 Mar 2026 12:01:00 GMT"}, ptr(time.Minute)},
		"a date by RFC 850":  {map[string]string{"Retry-After": "Sunday, 01-Mar-26 12:01:00 GMT"}, ptr(time.Minute)},
		"asctime":            {map[string]string{"Retry-After": "Sun Mar  1 12:01:00 2026"}, ptr(time.Minute)},
		"by the server's clock": {
			map[string]string{"Retry-After": "Sun, 01 Mar 2026 12:01:00 GMT", "Date": "Sun, 01 Mar 2026 12:00:30 GMT"}, ptr(30 * time.Second),
		},
		"a date gone by": {map[string]string{"Retry-After": "Sun, 01 Mar 2026 11:00:00 GMT"}, ptr(time.Duration(0))},
		"negative":       {map[string]string{"Retry-After": "-1"}, nil},
		"nonsense":       {map[string]string{"Retry-After": "soon"}, nil},
		"not a number":   {map[string]string{"Retry-After": "NaN"}, nil},
		"endless":        {map[string]string{"Retry-After": "1e300"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range tc.header {
				h.Set(k, v)
			}
			if diff := cmp.Diff(tc.want, RetryAfter(h, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
