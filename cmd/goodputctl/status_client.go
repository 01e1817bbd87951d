package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	promconfig "github.com/prometheus/common/config"

	"goodput_exporter/collector/live"
	"goodput_exporter/probe"
)

// statusClient asks a daemon for its status.
type statusClient struct {
	http    *http.Client
	url     string
	timeout time.Duration
	last    time.Time // the daemon's time of the last status
}

// maxStatus is how long an answer may be, in bytes: ten times that of 3,000 series.
const maxStatus = 256 << 20

func newStatusClient(f *statusFlags) (*statusClient, error) {
	u, err := url.Parse(f.url)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("--url: not a URL of a daemon: write one such as http://localhost:10042")
	case u.User != nil:
		return nil, errors.New("--url: must not hold a user name or password: write them into a file for --http.config.file")
	case f.timeout <= 0:
		return nil, fmt.Errorf("--timeout=%s: it must be positive", f.timeout)
	}
	u = u.JoinPath("api/v1/status")
	query := url.Values{}
	for name, value := range map[string]string{"target": f.target, "scenario": f.scenario} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.brief {
		query.Set("brief", "1")
	}
	u.RawQuery = query.Encode()

	settings := &promconfig.DefaultHTTPClientConfig
	if f.httpConfigFile != "" {
		if settings, _, err = promconfig.LoadHTTPConfigFile(f.httpConfigFile); err != nil {
			return nil, fmt.Errorf("--http.config.file: %s: %w", f.httpConfigFile, oneLine(err))
		}
	}
	client, err := promconfig.NewClientFromConfig(*settings, "goodputctl", promconfig.WithUserAgent(probe.UserAgent("goodputctl")))
	if err != nil {
		return nil, fmt.Errorf("--http.config.file: %s: %w", f.httpConfigFile, oneLine(err))
	}
	return &statusClient{http: client, url: u.String(), timeout: f.timeout}, nil
}

func (c *statusClient) close() { c.http.CloseIdleConnections() }

// look asks for the status once.
func (c *statusClient) look(ctx context.Context) look {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer of %s within %s", c.url, c.timeout))
	defer cancel()
	body, err := c.get(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return look{err: context.Cause(ctx)}
	case err != nil:
		return look{err: oneLine(err)}
	}
	var s live.Status
	if err := json.Unmarshal(body, &s); err != nil || s.Version != live.APIVersion || s.Now.IsZero() {
		return look{err: fmt.Errorf("the answer of %s is no status %s of goodput_exporter but %s", c.url, live.APIVersion, beginOf(body))}
	}
	slices.SortStableFunc(s.Series, func(a, b live.SeriesStatus) int { return live.Pressing(&a, &b) })
	l := look{text: string(bytes.TrimSpace(body)), status: &s, err: stale(&s, c.last)}
	c.last = s.Now
	return l
}

func (c *statusClient) get(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Cache-Control", "no-cache")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	if resp.StatusCode == http.StatusOK {
		return body, err
	}
	var doc struct {
		Error string `json:"error"`
	}
	said := beginOf(body)
	if json.Unmarshal(body, &doc) == nil && doc.Error != "" {
		said = printable(doc.Error)
	}
	text := fmt.Sprintf("%s answers %s: %s", c.url, printable(resp.Status), said)
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		text += "; give credentials by --http.config.file"
	}
	return nil, errors.New(text)
}

// beginOf quotes the begin of a text that is not what was asked for.
func beginOf(text []byte) string {
	const most = 60
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return fmt.Sprintf("%q", text)
}

// oneLine is an error whose text is one line.
func oneLine(err error) error {
	return errors.New(printable(strings.Join(strings.Fields(err.Error()), " ")))
}

// printable replaces what a terminal might obey: people may name things, and pauses give reasons.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// stale returns an error for a status that says nothing of now: the clock of the daemon stands still since the last status,
// or no series that it has data of was probed lately. Both clocks are the daemon's: ours may differ.
func stale(s *live.Status, last time.Time) error {
	if !s.Now.After(last) {
		return fmt.Errorf("stale: the status is still that of %s; is there a cache before the daemon?", s.Now.UTC().Format(time.RFC3339))
	}
	judged := false
	var newest time.Time
	for i := range s.Series {
		one := &s.Series[i]
		if one.State == live.NoData || one.State == live.Paused {
			continue
		}
		judged = true
		if one.LastProbe == nil {
			continue
		}
		if s.Now.Sub(*one.LastProbe) <= patience(one) {
			return nil
		}
		if one.LastProbe.After(newest) {
			newest = *one.LastProbe
		}
	}
	switch {
	case !judged:
		return nil
	case newest.IsZero():
		return errors.New("stale: the daemon never probed what it judges")
	}
	return fmt.Errorf("stale: the daemon sent its last probe %s before its status", s.Now.Sub(newest).Round(time.Second))
}

// patience is how old the last probe of a series may be. The daemon counts from the end of a probe, which comes up to a
// timeout after it was sent, and its slots may jitter by less than an interval.
func patience(s *live.SeriesStatus) time.Duration {
	return time.Duration((max(3*s.Interval, s.Timeout+2*s.Interval) + s.Timeout + s.Interval) * float64(time.Second))
}
