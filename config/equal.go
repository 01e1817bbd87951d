package config

import (
	"reflect"
	"regexp"
	"slices"

	promconfig "github.com/prometheus/common/config"
)

// Equal reports whether two series would do the same: the same target with the same settings, the same scenario with
// the same prompts. A reload leaves such a series alone. What secret files hold is no part of it: they are read for
// every request.
func (s *Series) Equal(o *Series) bool {
	t, u := *s.Target, *o.Target
	t.HTTP, u.HTTP = settings(t.HTTP), settings(u.HTTP)
	a, b := *s.Scenario, *o.Scenario
	if !slices.EqualFunc(a.Prompts, b.Prompts, Prompt.equal) {
		return false
	}
	a.Prompts, b.Prompts = nil, nil
	return reflect.DeepEqual(t, u) && reflect.DeepEqual(a, b)
}

func (p Prompt) equal(q Prompt) bool {
	return p.Text == q.Text && slices.Equal(p.Messages, q.Messages) && p.MaxTokens == q.MaxTokens &&
		p.Weight == q.Weight && expression(p.Expect) == expression(q.Expect)
}

func expression(re *regexp.Regexp) string {
	if re == nil {
		return ""
	}
	return re.String()
}

// settings returns the settings without what a client that uses them caches in them: the proxy function.
func settings(c promconfig.HTTPClientConfig) promconfig.HTTPClientConfig {
	c.ProxyConfig = plainProxy(&c.ProxyConfig)
	if c.OAuth2 != nil {
		o := *c.OAuth2
		o.ProxyConfig = plainProxy(&o.ProxyConfig)
		c.OAuth2 = &o
	}
	return c
}

func plainProxy(p *promconfig.ProxyConfig) promconfig.ProxyConfig {
	return promconfig.ProxyConfig{
		ProxyURL: p.ProxyURL, NoProxy: p.NoProxy, ProxyFromEnvironment: p.ProxyFromEnvironment, ProxyConnectHeader: p.ProxyConnectHeader,
	}
}
