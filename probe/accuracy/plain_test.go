//go:build bench && linux

package accuracy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// plainClient is the client that one writes in an afternoon: net/http, a line reader, the time at each event. It
// is what the prober is compared with.
type plainClient struct {
	http *http.Client
	url  string
}

// newPlainClient returns a client of the endpoint at url. It trusts the authorities in pem, if there are any.
func newPlainClient(url string, pem []byte) *plainClient {
	transport := &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}
	if pem != nil {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &plainClient{&http.Client{Transport: transport}, url + "/v1/chat/completions"}
}

const plainBody = `{"model":"truth","stream":true,"stream_options":{"include_usage":true},"max_tokens":1024,` +
	`"messages":[{"role":"user","content":"Explain in three sentences why the sky is blue."}]}`

// stream sends one request and returns when it began and when each token arrived.
func (c *plainClient) stream(id string) (start time.Time, tokens []time.Time, err error) {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(plainBody))
	if err != nil {
		return start, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", id)
	start = time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return start, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return start, nil, fmt.Errorf("status %s", resp.Status)
	}
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return start, tokens, errors.Join(errors.New("no [DONE]"), err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case !ok:
		case bytes.HasPrefix(data, []byte("[DONE]")):
			_, _ = lines.ReadSlice('\n') // the empty line and
			_, _ = lines.ReadByte()      // the end, so that the connection is kept
			return start, tokens, nil
		case bytes.Contains(data, []byte(`"content":`)):
			tokens = append(tokens, time.Now())
		}
	}
}
