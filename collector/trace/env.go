package trace

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const prefix = "OTEL_EXPORTER_OTLP_"

// checkEnvironment finds what the SDK would pass over, with a line on stderr that holds the value: half of a header, say,
// which is a secret. It returns the secrets, which have to be kept out of messages.
func checkEnvironment() (secrets []string, err error) {
	var errs []error
	check := func(variable string, check func(value string) error) {
		if value := env(variable); value != "" {
			errs = append(errs, in(variable, check(value)))
		}
	}
	checkHeaders := func(value string) error {
		headers, err := pairs(value)
		for _, h := range headers {
			secrets = append(secrets, secretsOf(h.value)...)
			if !httpguts.ValidHeaderFieldName(h.name) || !httpguts.ValidHeaderFieldValue(h.value) {
				err = errors.New("a name or a value cannot stand in a header: want name=value, the value percent-encoded")
			}
		}
		return err
	}
	for _, of := range []string{prefix, prefix + "TRACES_"} {
		check(of+"ENDPOINT", checkEndpoint)
		check(of+"HEADERS", checkHeaders)
		check(of+"TIMEOUT", checkTimeout)
		check(of+"CERTIFICATE", checkCertificate)
		errs = append(errs, in(of+"CLIENT_CERTIFICATE", checkClient(env(of+"CLIENT_CERTIFICATE"), env(of+"CLIENT_KEY"))))
	}
	errs = append(errs, checkProtocol(cmp.Or(env(prefix+"TRACES_PROTOCOL"), env(prefix+"PROTOCOL"))))
	check("OTEL_RESOURCE_ATTRIBUTES", func(value string) error { _, err := pairs(value); return err })
	return secrets, errors.Join(errs...)
}

func env(variable string) string { return strings.TrimSpace(os.Getenv(variable)) }

func in(variable string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("environment variable %s: %w", variable, err)
}

func checkEndpoint(value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("not the URL of a collector: want one such as http://localhost:4318")
	}
	return nil
}

func checkTimeout(value string) error {
	if ms, err := strconv.Atoi(value); err != nil || ms <= 0 {
		return fmt.Errorf("%q is no timeout: want milliseconds, such as 10000", value)
	}
	return nil
}

func checkProtocol(value string) error {
	if slices.Contains([]string{"", "http/protobuf", "http/json"}, value) {
		return nil
	}
	return fmt.Errorf("protocol %q is not supported: set %sTRACES_PROTOCOL to http/protobuf or http/json", value, prefix)
}

func checkCertificate(file string) error {
	pem, err := os.ReadFile(file)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		err = fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return err
}

func checkClient(certificate, key string) error {
	switch {
	case certificate == "" && key == "":
		return nil
	case certificate == "" || key == "":
		return errors.New("the certificate needs its _CLIENT_KEY, and the key its certificate")
	}
	_, err := tls.LoadX509KeyPair(certificate, key)
	return err
}

type pair struct{ name, value string }

// pairs reads a list of name=value. Its errors hold nothing of the list.
func pairs(list string) ([]pair, error) {
	var all []pair
	for i, entry := range strings.Split(list, ",") {
		name, encoded, ok := strings.Cut(entry, "=")
		value, err := url.PathUnescape(encoded)
		if !ok || strings.TrimSpace(name) == "" || err != nil {
			return all, fmt.Errorf("entry %d is not name=value, with the value percent-encoded", i+1)
		}
		all = append(all, pair{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return all, nil
}

// secretsOf returns what is secret in the value of a header, the longest first: all of it, and the credentials behind a
// scheme. What is very short would be found in any text.
func secretsOf(value string) []string {
	secrets := []string{value}
	if _, credentials, ok := strings.Cut(value, " "); ok {
		secrets = append(secrets, credentials)
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return len(s) < 4 })
}
