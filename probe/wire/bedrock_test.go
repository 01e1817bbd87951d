package wire

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// The examples that AWS publishes: of its Signature Version 4 test suite, and of the documentation of IAM's ListUsers.
func TestSignEqualsPublishedExamples(t *testing.T) {
	const suite, session = "https://example.amazonaws.com/", "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
	for name, tc := range map[string]struct {
		method, url, service, contentType, session string
		signed, signature                          string
	}{
		"get-vanilla": {
			method: http.MethodGet, url: suite, service: "service",
			signed: "host;x-amz-date", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		},
		"post-vanilla": {
			method: http.MethodPost, url: suite, service: "service",
			signed: "host;x-amz-date", signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		},
		"get-vanilla-query-order-key-case": {
			method: http.MethodGet, url: suite + "?Param2=value2&Param1=value1", service: "service",
			signed: "host;x-amz-date", signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
		},
		"post-sts-header-before": {
			method: http.MethodPost, url: suite, service: "service", session: session,
			signed: "host;x-amz-date;x-amz-security-token", signature: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
		},
		"ListUsers": {
			method: http.MethodGet, url: "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", service: "iam",
			contentType: "application/x-www-form-urlencoded; charset=utf-8",
			signed:      "content-type;host;x-amz-date", signature: "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, tc.url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if tc.contentType != "" {
				req.Header.Set("Content-Type", tc.contentType)
			}
			credentials := aws.Credentials{
				AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", SessionToken: tc.session,
			}
			if err := sign(req, nil, credentials, tc.service, "us-east-1", time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)); err != nil {
				t.Fatal(err)
			}
			want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/" + tc.service + "/aws4_request, SignedHeaders=" + tc.signed + ", Signature=" + tc.signature
			if got := req.Header.Get("Authorization"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// The bytes of the path that is signed are those that are sent: the colon of a model's name is escaped in both.
func TestSignedPath(t *testing.T) {
	p := protocolFor(t, "bedrock-converse", "https://bedrock-runtime.eu-west-1.amazonaws.com")
	u := p.URL(Request{Model: "arn:aws:bedrock:eu-west-1:1:inference-profile/m-v1:0", Stream: true})
	const want = "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fm-v1%3A0/converse-stream"
	if got := u.EscapedPath(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if again, err := u.Parse(u.String()); err != nil || again.EscapedPath() != want || !strings.HasSuffix(u.String(), want) {
		t.Errorf("the path changes on its way: %s", u)
	}
}
