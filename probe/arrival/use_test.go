package arrival

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A connection may serve the next request before anybody has asked about the one before.
func TestExchangeKeepsItsOwnInstants(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	rt := client(t, dialer(t))
	exchange(t, rt, s.URL, nil) // so that the others are on a reused connection
	send := func() *Exchange {
		e := NewExchange()
		req, err := http.NewRequestWithContext(e.Context(context.Background()), http.MethodPost, s.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := send()
	start, _ := first.Start()
	stamp := first.Stamp()
	if _, reused := send().Connected(); !reused {
		t.Fatal("the second request has a connection of its own")
	}
	if after, _ := first.Start(); !after.Equal(start) {
		t.Errorf("the first request starts %v later, since there is a second one", after.Sub(start))
	}
	if after := first.Stamp(); after != stamp {
		t.Errorf("the first answer came %v later, since there is a second one", after.At.Sub(stamp.At))
	}
}
