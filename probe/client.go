package probe

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"sync"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/version"

	"goodput_exporter/config"
	"goodput_exporter/probe/arrival"
)

// idleConnTimeout is how long an unused connection is kept: longer than the usual interval, shorter than the
// usual server's patience.
const idleConnTimeout = 90 * time.Second

// UserAgent returns the User-Agent by which endpoints recognise a program of ours.
func UserAgent(program string) string {
	v := version.Version
	if v == "" {
		v = "devel"
	}
	return program + "/" + v
}

// Clients shares HTTP clients, and with them connections, among the targets of one host that have equal HTTP
// settings. Its zero value is not usable: call NewClients, and Close it at the end.
type Clients struct {
	dialer *arrival.Dialer

	mu     sync.Mutex
	byHost map[string][]*Client
}

// NewClients returns an empty set of clients.
func NewClients() *Clients {
	return &Clients{dialer: arrival.NewDialer(), byHost: map[string][]*Client{}}
}

// UseReadStamps turns the kernel's receive times off: bytes are stamped when they are read. Call it before the
// first probe.
func (cs *Clients) UseReadStamps() { cs.dialer.ReadStamps = true }

// Client sends the requests of one or more targets. Credentials are read anew for each request.
type Client struct {
	rt   http.RoundTripper
	all  *Clients
	host string
	http promconfig.HTTPClientConfig
	conn config.Connection
	uses int

	secretHeaders []string // those whose values come from secrets or files
}

// Get returns the client of a target, whose settings must be valid. Release it when the target is gone.
func (cs *Clients) Get(t *config.Target) (*Client, error) {
	settings, err := httpSettings(t)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.Name, err)
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.byHost[u.Host] {
		if c.conn == t.Connection && reflect.DeepEqual(c.http, settings) {
			c.uses++
			return c, nil
		}
	}
	opts := []promconfig.HTTPClientOption{
		promconfig.WithDialContextFunc(cs.dialer.DialContext),
		promconfig.WithIdleConnTimeout(idleConnTimeout),
		promconfig.WithSecretManager(config.SecretManager),
	}
	if t.Connection == config.ConnectionNew {
		opts = append(opts, promconfig.WithKeepAlivesDisabled())
	}
	rt, err := promconfig.NewRoundTripperFromConfig(settings, t.Name, opts...)
	if err != nil {
		return nil, fmt.Errorf("target %s: HTTP client: %w", t.Name, err)
	}
	if u.Scheme == "https" {
		_, _ = x509.SystemCertPool() // read at the first use, which must not be inside a probe's time
	}
	c := &Client{rt: rt, all: cs, host: u.Host, http: settings, conn: t.Connection, uses: 1, secretHeaders: secretHeaders(settings.HTTPHeaders)}
	cs.byHost[u.Host] = append(cs.byHost[u.Host], c)
	return c, nil
}

// httpSettings returns a target's HTTP settings, with its credentials in the header where its protocol wants a key.
func httpSettings(t *config.Target) (promconfig.HTTPClientConfig, error) {
	protocol, err := protocolOf(t)
	if err != nil {
		return promconfig.HTTPClientConfig{}, err
	}
	settings, auth, name := t.HTTP, t.HTTP.Authorization, protocol.Traits().KeyHeader
	if name == "" || auth == nil || t.Bearer {
		return settings, nil
	}
	key := promconfig.Header{}
	switch {
	case auth.CredentialsFile != "":
		key.Files = []string{auth.CredentialsFile}
	case auth.CredentialsRef != "":
		value, err := config.SecretManager.Fetch(context.Background(), auth.CredentialsRef)
		if err != nil {
			return settings, fmt.Errorf("target %s: %w", t.Name, err)
		}
		key.Secrets = []promconfig.Secret{promconfig.Secret(value)}
	default:
		key.Secrets = []promconfig.Secret{auth.Credentials}
	}
	headers := map[string]promconfig.Header{name: key}
	if settings.HTTPHeaders != nil {
		maps.Copy(headers, settings.HTTPHeaders.Headers)
	}
	settings.Authorization, settings.HTTPHeaders = nil, &promconfig.Headers{Headers: headers}
	return settings, nil
}

// authorizes reports whether the client gives its requests credentials.
func (c *Client) authorizes() bool {
	return c.http.Authorization != nil || c.http.OAuth2 != nil || c.http.BasicAuth != nil
}

// secretHeaders names the configured headers that have a secret value.
func secretHeaders(headers *promconfig.Headers) []string {
	if headers == nil {
		return nil
	}
	var names []string
	for name, h := range headers.Headers {
		if len(h.Secrets)+len(h.Files) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// Release gives a client back. With its last use its idle connections are closed; probes in flight go on.
func (c *Client) Release() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.uses--
	if c.uses > 0 {
		return
	}
	clients := c.all.byHost[c.host]
	for i := range clients {
		if clients[i] == c {
			c.all.byHost[c.host] = append(clients[:i:i], clients[i+1:]...)
		}
	}
	c.dropIdle()
}

// dropIdle closes the idle connections.
func (c *Client) dropIdle() {
	if i, ok := c.rt.(interface{ CloseIdleConnections() }); ok {
		i.CloseIdleConnections()
	}
}

// Close closes all idle connections and gives back what the set holds.
func (cs *Clients) Close() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, clients := range cs.byHost {
		for _, c := range clients {
			c.dropIdle()
		}
	}
	cs.dialer.Close()
}
