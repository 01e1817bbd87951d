package page

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"goodput_exporter/collector/live"
	"goodput_exporter/probe"
)

func goodProbe(_ context.Context, key string) (*probe.Result, error) {
	target, scenario, _ := strings.Cut(key, "/")
	return result(time.Now(), probe.Good, func(r *probe.Result) { r.Target, r.Scenario = target, scenario }), nil
}

func TestProbeOnDemand(t *testing.T) {
	const series = "target=ok&scenario=chat"
	for name, tc := range map[string]struct {
		request *http.Request
		code    int
		says    string
	}{
		"text for a terminal": {request("POST", "/probe?"+series, ""), 200, "ok/chat\nGood: answered in full"},
		"JSON":                {request("POST", "/probe?"+series, "", "Accept", typeJSON), 200, `"outcome":"good"`},
		"by a form":           {request("POST", "/probe", series, "Content-Type", typeForm, "Accept", "text/html,*/*;q=0.8"), 303, ""},
		"by JSON":             {request("POST", "/probe", `{"target":"ok","scenario":"chat"}`, "Content-Type", typeJSON), 200, "Good"},
		"never a URL":         {request("POST", "/probe?url=http://169.254.169.254/", ""), 400, "no parameter"},
		"a URL beside":        {request("POST", "/probe?"+series+"&url=http://x/", ""), 400, "no parameter"},
		"half a series":       {request("POST", "/probe?target=ok", ""), 400, "must be given"},
		"no such series":      {request("POST", "/probe?target=ok&scenario=none", ""), 404, "no series ok/none"},
		"another body":        {request("POST", "/probe", "<x/>", "Content-Type", "text/xml"), 400, "Content-Type"},
		"not by a link":       {request("GET", "/probe?"+series, ""), 405, ""},
		"error as a page":     {request("POST", "/probe?target=no", "", "Accept", typeHTML), 400, "<h1>400 Bad Request</h1>"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage(t, Options{Probe: goodProbe})
			a := do(p, tc.request)
			if a.code != tc.code || !strings.Contains(a.body, tc.says) {
				t.Fatalf("%d, want %d with %q: %s", a.code, tc.code, tc.says, a.body)
			}
			if a.code == http.StatusSeeOther {
				if said := text(parse(t, get(t, p, a.header.Get("Location")).body)[0].Parent); !strings.Contains(said, "Good: answered in full") {
					t.Errorf("the page says: %s", said)
				}
			}
		})
	}
}

// A probe on demand is seen, but counts nowhere.
func TestProbeOnDemandIsOutsideTheSLO(t *testing.T) {
	l := newLive(t)
	p := newPage(t, Options{Live: l, Probe: goodProbe})
	before := get(t, p, "/api/v1/results?target=ok").body
	var st live.Story
	a := do(p, request("POST", "/probe?target=ok&scenario=chat", "", "Accept", typeJSON))
	id, _, _ := strings.Cut(strings.TrimPrefix(a.body, `{"id":"`), `"`)
	st, ok := p.story(id)
	if !ok || st.Key != "ok/chat" {
		t.Fatalf("there is no story %q: %s", id, a.body)
	}
	if after := get(t, p, "/api/v1/results?target=ok").body; after != before {
		t.Error("it stands among the results of the series")
	}
	nodes := parse(t, get(t, p, "/series?target=ok&scenario=chat").body)
	if len(with(nodes, "data-id", id)) != 1 {
		t.Error("the page of the series does not list it")
	}
	get(t, p, "/api/v1/results/"+id)
}

func TestProbesOnDemandAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, release := make(chan string), make(chan struct{})
		p := newPage(t, Options{Probe: func(ctx context.Context, key string) (*probe.Result, error) {
			started <- key
			<-release
			return goodProbe(ctx, key)
		}})
		ask := func(target string) answer {
			return do(p, request("POST", "/probe?target="+target+"&scenario=chat", ""))
		}
		first := make(chan answer)
		go func() { first <- ask("ok") }()
		<-started
		if a := ask("ok"); a.code != http.StatusConflict {
			t.Errorf("a second probe of the series at once: %d %s", a.code, a.body)
		}
		other := make(chan answer)
		go func() { other <- ask("down") }()
		<-started
		close(release)
		for _, a := range []answer{<-first, <-other} {
			if a.code != http.StatusOK {
				t.Errorf("%d %s", a.code, a.body)
			}
		}

		go func() {
			for range started {
			}
		}()
		defer close(started)
		for range demandBurst - 2 {
			if a := ask("ok"); a.code != http.StatusOK {
				t.Fatalf("within the rate: %d %s", a.code, a.body)
			}
		}
		if a := ask("ok"); a.code != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
			t.Errorf("above the rate: %d, Retry-After %q", a.code, a.header.Get("Retry-After"))
		}
		time.Sleep(time.Second)
		if a := ask("ok"); a.code != http.StatusOK {
			t.Errorf("a second later: %d %s", a.code, a.body)
		}
	})
}

func TestRefusedProbe(t *testing.T) {
	for err, want := range map[error]int{
		fmt.Errorf("%w: 6000 requests a day", ErrBudget): http.StatusTooManyRequests,
		fmt.Errorf("%w: shutting down", ErrUnavailable):  http.StatusServiceUnavailable,
	} {
		p := newPage(t, Options{Probe: func(context.Context, string) (*probe.Result, error) { return nil, err }})
		if a := do(p, request("POST", "/probe?target=ok&scenario=chat", "")); a.code != want || a.body != err.Error()+"\n" {
			t.Errorf("%v: %d %q, want %d", err, a.code, a.body, want)
		}
	}
}
