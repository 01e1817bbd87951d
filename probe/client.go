package probe

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"sync"
	"time"

	promconfig "github.com/prometheus/common/config"

	"goodput_exporter/config"
	"goodput_exporter/probe/arrival"
)

// idleConnTimeout is how long an unused connection is kept: longer than the usual interval, shorter than the
// usual server's patience.
const idleConnTimeout = 90 * time.Second

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

// Client sends the requests of one or more targets. Credentials are read anew for each request.
type Client struct {
	rt   http.RoundTripper
	all  *Clients
	host string
	http promconfig.HTTPClientConfig
	conn config.Connection
	uses int
}

// Get returns the client of a target, whose settings must be valid. Release it when the target is gone.
func (cs *Clients) Get(t *config.Target) (*Client, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.Name, err)
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.byHost[u.Host] {
		if c.conn == t.Connection && reflect.DeepEqual(c.http, t.HTTP) {
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
	rt, err := promconfig.NewRoundTripperFromConfig(t.HTTP, t.Name, opts...)
	if err != nil {
		return nil, fmt.Errorf("target %s: HTTP client: %w", t.Name, err)
	}
	c := &Client{rt: rt, all: cs, host: u.Host, http: t.HTTP, conn: t.Connection, uses: 1}
	cs.byHost[u.Host] = append(cs.byHost[u.Host], c)
	return c, nil
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
