package wire

import (
	"bytes"
	"encoding/json"
	"html"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// MaxMessage is the longest error message that is kept, in bytes.
const MaxMessage = 1000

// ParseError reads an error out of a body: a JSON object of any family, the title of a page, or plain text. Nil: the
// body is JSON, but no error.
func ParseError(body []byte) *Error {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	switch body[0] {
	case '[': // Google's array of one
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			return ParseError(list[0])
		}
	case '{':
		var doc errorBody
		if unmarshal(body, &doc) == nil {
			return doc.toError()
		}
	case '<':
		return &Error{Message: pageTitle(body)}
	default:
		return &Error{Message: clip(string(body))}
	}
	return nil
}

// ResponseError reads the error of a response with a status other than 2xx: out of its body, and of the header in which AWS
// names the class. Its status is the response's, but that of a class that means a limit is 429, whatever the response has.
func ResponseError(status int, h http.Header, body []byte) *Error {
	e := ParseError(body)
	if e == nil {
		e = &Error{}
	}
	e.Status = status
	if class := awsErrorClass(h); class != "" {
		e.addClass(class)
	}
	return e
}

// addClass adds what the class of an error says.
func (e *Error) addClass(class string) {
	told := errorFields{Type: class}.toError()
	if told.Status == http.StatusTooManyRequests {
		e.Status = told.Status
	}
	if e.Message == "" {
		e.Message = told.Message
	}
	e.Quota = e.Quota || told.Quota
	e.Overloaded = e.Overloaded || told.Overloaded
	e.Filtered = e.Filtered || told.Filtered
}

// mustError is ParseError of what is known to be an error, whatever it looks like.
func mustError(body []byte) *Error {
	if e := ParseError(body); e != nil {
		return e
	}
	return &Error{Message: clip(string(body))}
}

// errorBody is the union of what the families send: {"error": {…}}, {"error": "text"}, {"detail": …} of FastAPI,
// and the error's fields without a cover.
type errorBody struct {
	Error     json.RawMessage `json:"error"`
	ErrorType string          `json:"error_type"`
	Object    string          `json:"object"`
	Detail    json.RawMessage `json:"detail"`
	Choices   json.RawMessage `json:"choices"`
	errorFields
}

type errorFields struct {
	Message    string          `json:"message"`
	Type       string          `json:"type"`
	Code       json.RawMessage `json:"code"`
	Status     json.RawMessage `json:"status"`
	HTTPStatus int             `json:"http_status_code"`
	Metadata   struct {
		RetryAfterSeconds *float64 `json:"retry_after_seconds"`
	} `json:"metadata"`
	Details []struct {
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
}

func (b errorBody) toError() *Error {
	if present(b.Error) {
		var fields errorFields
		if b.Error[0] == '{' && unmarshal(b.Error, &fields) == nil {
			return fields.toError()
		}
		fields = b.errorFields
		fields.Message = textOf(b.Error)
		if b.ErrorType != "" {
			fields.Type = b.ErrorType
		}
		return fields.toError()
	}
	if present(b.Choices) {
		return nil
	}
	if b.Object == "error" || b.Message != "" {
		return b.errorFields.toError()
	}
	if present(b.Detail) {
		return errorFields{Message: textOf(b.Detail)}.toError()
	}
	return nil
}

// present reports whether a JSON value is there and says anything: not null, false, "" or an empty object.
func present(v json.RawMessage) bool {
	switch string(v) {
	case "", "null", "false", `""`, "{}", "[]":
		return false
	}
	return true
}

// textOf returns a JSON string's text, and any other value as it stands.
func textOf(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

func (f errorFields) toError() *Error {
	told := strings.TrimSpace(strings.Join([]string{f.Type, textOf(f.Code), textOf(f.Status)}, " "))
	words := strings.Map(letters, told)
	e := &Error{
		Message:    clip(f.Message),
		Quota:      containsAny(words, "insufficientquota", "quotaexceeded", "billing", "credit", "insufficientbalance", "payment"),
		Overloaded: containsAny(words, "overloaded", "unavailable", "capacityexceeded", "insufficientsystemresource"),
		Filtered:   containsAny(words, "contentfilter", "contentpolicy", "responsibleaipolicy"),
	}
	if e.Message == "" {
		e.Message = clip(told)
	}
	e.Status = f.status(words)
	e.RetryAfter = f.retryAfter()
	return e
}

// letters makes one of the ways to write a type: RateLimitError, rate_limit_error, Rate Limit Error.
func letters(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return unicode.ToLower(r)
	}
	return -1
}

// status returns the HTTP status that says the same: a number that the error carries, else what its words mean.
func (f errorFields) status(words string) int {
	for _, n := range []int{f.HTTPStatus, number(f.Code), number(f.Status)} {
		if n >= 400 && n <= 599 {
			return n
		}
	}
	for _, known := range statusWords {
		if containsAny(words, known.words...) {
			return known.status
		}
	}
	return 0
}

// statusWords gives the meaning of error types and codes, in letters alone, the more telling ones first: OpenAI sends the type
// "invalid_request_error" beside a code that says more.
var statusWords = []struct {
	status int
	words  []string
}{
	{http.StatusPaymentRequired, []string{"insufficientbalance", "paymentrequired", "billingerror"}},
	{http.StatusTooManyRequests, []string{"ratelimit", "quota", "resourceexhausted", "toomanyrequests", "throttl", "billing", "credit", "requestslimit", "tokenslimit"}},
	{529, []string{"overloaded"}},
	{http.StatusServiceUnavailable, []string{"unavailable", "capacityexceeded", "insufficientsystemresource"}},
	{http.StatusBadGateway, []string{"badgateway"}},
	{http.StatusGatewayTimeout, []string{"timeout", "deadlineexceeded"}},
	{http.StatusUnauthorized, []string{"authentication", "unauthenticated", "invalidapikey", "unauthorized"}},
	{http.StatusForbidden, []string{"permission", "forbidden", "accessdenied"}},
	{http.StatusNotFound, []string{"notfound"}},
	{http.StatusRequestEntityTooLarge, []string{"requesttoolarge", "entitytoolarge"}},
	{http.StatusBadRequest, []string{"invalid", "badrequest", "unprocessable", "validation", "contextlength", "contextwindow", "exceedcontext", "contentfilter", "contentpolicy", "notsupported"}},
	{http.StatusInternalServerError, []string{"servererror", "internal", "apierror"}},
}

func (f errorFields) retryAfter() *time.Duration {
	if s := f.Metadata.RetryAfterSeconds; s != nil {
		return seconds(*s)
	}
	for _, d := range f.Details {
		if delay, err := time.ParseDuration(d.RetryDelay); err == nil && delay >= 0 {
			return &delay
		}
	}
	return nil
}

// number returns a JSON number, or a string of one, as an integer; 0 where it is none.
func number(v json.RawMessage) int {
	f, err := strconv.ParseFloat(textOf(v), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return 0
	}
	return int(f)
}

func seconds(s float64) *time.Duration {
	if s < 0 || math.IsNaN(s) || s > maxRetryAfter.Seconds() {
		return nil
	}
	d := time.Duration(s * float64(time.Second))
	return &d
}

func containsAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

var title = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// pageTitle returns the title of an HTML page, or what stands for one.
func pageTitle(page []byte) string {
	if m := title.FindSubmatch(page); m != nil {
		return clip(strings.Join(strings.Fields(html.UnescapeString(string(m[1]))), " "))
	}
	return "an HTML page without a title"
}

func clip(s string) string {
	if len(s) > MaxMessage {
		return strings.ToValidUTF8(s[:MaxMessage], "") + "…"
	}
	return s
}

// unmarshal decodes JSON and forgives a value of an unexpected type: the rest of the document counts.
func unmarshal(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if _, ok := err.(*json.UnmarshalTypeError); ok { //nolint:errorlint // encoding/json returns it bare
		return nil
	}
	return err
}

// maxRetryAfter is the longest delay that is believed.
const maxRetryAfter = 30 * 24 * time.Hour

// RetryAfter reads how long a server wants to be left alone: retry-after-ms, else Retry-After in seconds or as a
// date, which counts from the server's own Date where it tells one. Nil: it does not say.
func RetryAfter(h http.Header, now time.Time) *time.Duration {
	if value := strings.TrimSpace(h.Get("Retry-After-Ms")); value != "" {
		if ms, err := strconv.ParseFloat(value, 64); err == nil && seconds(ms/1000) != nil {
			return seconds(ms / 1000)
		}
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return nil
	}
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return seconds(s)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return nil
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return seconds(math.Ceil(max(at.Sub(now), 0).Seconds()))
}
