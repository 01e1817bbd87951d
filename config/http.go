package config

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	promconfig "github.com/prometheus/common/config"
)

// SecretManager resolves the *_ref keys of the HTTP settings: a reference names an environment variable. Give it to
// every client that is built from a Target's HTTP settings (promconfig.WithSecretManager).
var SecretManager promconfig.SecretManager = environment{}

// ErrUnset says that a reference names an environment variable that is not set, or empty.
var ErrUnset = errors.New("environment variable is not set")

type environment struct{}

// Fetch returns the value of the environment variable; an empty one counts as not set.
func (environment) Fetch(_ context.Context, name string) (string, error) {
	value := os.Getenv(name)
	if value == "" {
		return "", fmt.Errorf("%w: %s", ErrUnset, name)
	}
	return value, nil
}

// credential is one secret or certificate of the HTTP settings: given inline under its key, or as a file or a
// reference under the key with the suffix _file or _ref.
type credential struct {
	key       string
	plaintext bool // a secret, inline
	file      string
	ref       string
}

// credentials lists all that a client of these settings reads or sends to identify itself.
func credentials(c *promconfig.HTTPClientConfig) []credential {
	list := []credential{{"http.bearer_token", c.BearerToken != "", c.BearerTokenFile, ""}}
	if a := c.Authorization; a != nil {
		list = append(list, credential{"http.authorization.credentials", a.Credentials != "", a.CredentialsFile, a.CredentialsRef})
	}
	if b := c.BasicAuth; b != nil {
		list = append(list,
			credential{"http.basic_auth.username", false, b.UsernameFile, b.UsernameRef},
			credential{"http.basic_auth.password", b.Password != "", b.PasswordFile, b.PasswordRef})
	}
	if o := c.OAuth2; o != nil {
		list = append(list,
			credential{"http.oauth2.client_secret", o.ClientSecret != "", o.ClientSecretFile, o.ClientSecretRef},
			credential{"http.oauth2.client_certificate_key", o.ClientCertificateKey != "", o.ClientCertificateKeyFile, o.ClientCertificateKeyRef})
		list = append(list, tlsCredentials("http.oauth2.tls_config", &o.TLSConfig)...)
		list = append(list, proxyCredentials("http.oauth2", &o.ProxyConfig)...)
	}
	list = append(list, tlsCredentials("http.tls_config", &c.TLSConfig)...)
	list = append(list, proxyCredentials("http", &c.ProxyConfig)...)
	if c.HTTPHeaders != nil {
		for name, h := range c.HTTPHeaders.Headers {
			key := "http.http_headers." + name
			list = append(list, credential{key: key + ".secrets", plaintext: len(h.Secrets) > 0})
			for i, file := range h.Files {
				list = append(list, credential{key: fmt.Sprintf("%s.files[%d]", key, i), file: file})
			}
		}
	}
	return list
}

func tlsCredentials(key string, c *promconfig.TLSConfig) []credential {
	return []credential{
		{key + ".ca", false, c.CAFile, c.CARef},
		{key + ".cert", false, c.CertFile, c.CertRef},
		{key + ".key", c.Key != "", c.KeyFile, c.KeyRef},
	}
}

func proxyCredentials(key string, c *promconfig.ProxyConfig) []credential {
	return []credential{
		{key: key + ".proxy_url", plaintext: c.ProxyURL.URL != nil && c.ProxyURL.User != nil},
		{key: key + ".proxy_connect_header", plaintext: len(c.ProxyConnectHeader) > 0},
	}
}

// fileKey is the key that names the file. A header's files are a list without a suffix.
func (c credential) fileKey() string {
	if strings.HasSuffix(c.key, "]") {
		return c.key
	}
	return c.key + "_file"
}

// checkHTTP reports settings that no client can be built from.
func checkHTTP(c *promconfig.HTTPClientConfig, r report) {
	before := len(r.errors)
	for _, cred := range credentials(c) {
		if cred.file != "" {
			if _, err := os.ReadFile(cred.file); err != nil {
				r.errorf(cred.fileKey(), "cannot read %s: %w; it must be a file that the user of this process may read", cred.file, cause(err))
			}
		}
		if cred.ref != "" {
			if _, err := SecretManager.Fetch(context.Background(), cred.ref); err != nil {
				r.errorf(cred.key+"_ref", "%w; a reference names a variable of this process", err)
			}
		}
	}
	if o := c.OAuth2; o != nil {
		checkTLS("http.oauth2.tls_config", &o.TLSConfig, r, before)
		if err := o.ProxyConfig.Validate(); err != nil {
			r.errorf("http.oauth2", "%w", err)
		}
	}
	checkTLS("http.tls_config", &c.TLSConfig, r, before)
	if err := c.Validate(); err != nil {
		r.errorf("http", "%w", err)
	}
}

// checkTLS builds the client's TLS settings once. Files that cannot be read, reported since before, need no second
// error.
func checkTLS(key string, c *promconfig.TLSConfig, r report, before int) {
	if err := c.Validate(); err != nil {
		r.errorf(key, "%w", err)
	} else if len(r.errors) == before {
		if _, err := promconfig.NewTLSConfig(c, promconfig.WithSecretManager(SecretManager)); err != nil {
			r.errorf(key, "%w", err)
		}
	}
}

// checkURL reports an endpoint's URL that cannot be used. It never repeats it: secrets stand in URLs.
func checkURL(s string, r report) {
	u, err := url.Parse(s)
	switch {
	case s == "":
		r.errorf("url", "missing: give the base URL or the full URL of the endpoint, such as https://llm.example.net/v1")
	case err != nil:
		r.errorf("url", "not a URL: write one such as https://llm.example.net/v1")
	case u.Scheme != "http" && u.Scheme != "https":
		r.errorf("url", "must begin with http:// or https://")
	case u.User != nil:
		r.errorf("url", "must not hold a user name or password: put them under http.basic_auth")
	case u.Hostname() == "":
		r.errorf("url", "has no host: write one such as https://llm.example.net/v1")
	}
}

// warnPlaintext points at secrets that stand in a file.
func warnPlaintext(t *Target, r report) {
	for _, c := range credentials(&t.HTTP) {
		if c.plaintext {
			r.warnf(c.key, "a secret in plain text: prefer a file or an environment variable (the keys that end in _file, files or _ref)")
		}
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return
	}
	for name := range u.Query() {
		if secretName(name) {
			r.warnf("url", "a secret in plain text, in its query: prefer http.authorization or http.http_headers with files")
		}
	}
}

// secretName reports whether a parameter of this name usually holds a secret.
func secretName(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"key", "secret", "password", "credential", "authorization", "signature"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "token")
}
