package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"goodput_exporter/probe/stream"
)

// What the protocols of AWS Bedrock have in common: URLs, signatures, exceptions.
// Source: Bedrock Runtime's API reference.

const awsEventStream = "application/vnd.amazon.eventstream"

func isBedrock(u *url.URL) bool {
	return strings.HasPrefix(u.Hostname(), "bedrock-runtime") || strings.HasPrefix(u.Path, "/model/")
}

// bedrockURL returns the URL of a model's operation: the one for whole answers, or the one for streams. A URL that
// names the model, or either operation, is completed. A model id may be a name of AWS with slashes and colons.
func bedrockURL(base *url.URL, r Request, whole, streamed string) *url.URL {
	u := *base
	operation := whole
	if r.Stream {
		operation = streamed
	}
	model := r.Model
	if _, path, ok := strings.Cut(u.Path, "/model/"); ok {
		model = strings.TrimSuffix(path, "/")
		for _, o := range []string{"/" + whole, "/" + streamed} {
			model = strings.TrimSuffix(model, o)
		}
	}
	u.Path = "/model/" + model + "/" + operation
	u.RawPath = "/model/" + strings.ReplaceAll(url.PathEscape(model), ":", "%3A") + "/" + operation
	return &u
}

// awsCredentials is the default chain of AWS' SDK: environment, shared files, roles. It is asked once, and then
// renews by itself.
var awsCredentials = sync.OnceValues(func() (aws.Config, error) {
	return awsconfig.LoadDefaultConfig(context.Background())
})

var regionOfHost = regexp.MustCompile(`^bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.`)

// signAWS signs a request, or gives it the bearer key of AWS_BEARER_TOKEN_BEDROCK. A request that has credentials
// already, by the configuration, stays as it is.
func signAWS(req *http.Request, body []byte, base *url.URL) error {
	if req.Header.Get("Authorization") != "" {
		return nil
	}
	if token := os.Getenv("AWS_BEARER_TOKEN_BEDROCK"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	cfg, err := awsCredentials()
	if err != nil {
		return fmt.Errorf("AWS configuration: %w", err)
	}
	credentials, err := cfg.Credentials.Retrieve(req.Context())
	if err != nil {
		return fmt.Errorf("AWS credentials: %w", err)
	}
	region := cfg.Region
	if m := regionOfHost.FindStringSubmatch(base.Hostname()); m != nil {
		region = m[1]
	}
	if region == "" {
		return fmt.Errorf("AWS region: neither the URL nor AWS_REGION names one")
	}
	return sign(req, body, credentials, "bedrock", region, time.Now())
}

// sign signs a request to a service by Signature Version 4.
func sign(req *http.Request, body []byte, credentials aws.Credentials, service, region string, now time.Time) error {
	sum := sha256.Sum256(body)
	return v4.NewSigner().SignHTTP(req.Context(), credentials, req, hex.EncodeToString(sum[:]), service, region, now)
}

// awsErrorClass returns the class of an error as a response's head names it, "" where it does not. Some services put a
// namespace and "#" before it, some a colon and a URL behind it.
func awsErrorClass(h http.Header) string {
	class, _, _ := strings.Cut(h.Get("X-Amzn-Errortype"), ":")
	return strings.TrimSpace(class[strings.LastIndexByte(class, '#')+1:])
}

// bedrockException reads an exception out of a stream: its type tells the status. A model that fails in the midst of
// an answer is the server's failure.
func bedrockException(f stream.Frame) *Error {
	fields := errorFields{Message: f.Event, Type: f.Event}
	if told := ParseError(f.Data); told != nil && told.Message != "" {
		fields.Message = told.Message
	}
	e := fields.toError()
	if e.Status == 0 {
		e.Status = http.StatusInternalServerError
	}
	return e
}
