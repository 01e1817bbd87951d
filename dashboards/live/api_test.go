package page

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/collector/live"
	"goodput_exporter/probe"
)

func decodeBody(t *testing.T, a answer, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
}

func TestStatusSelects(t *testing.T) {
	p := newPage(t, Options{})
	for name, tc := range map[string]struct {
		query string
		want  []string
	}{
		"all":      {"", []string{"ok/chat", "burning/chat", "down/chat", "no_data/chat", "paused/chat"}},
		"one":      {"?target=down&scenario=chat", []string{"down/chat"}},
		"target":   {"?target=ok&probes=3", []string{"ok/chat"}},
		"scenario": {"?scenario=chat", []string{"ok/chat", "burning/chat", "down/chat", "no_data/chat", "paused/chat"}},
	} {
		t.Run(name, func(t *testing.T) {
			var st struct {
				Version string             `json:"version"`
				Summary map[live.State]int `json:"summary"`
				Series  []struct {
					Key    string     `json:"key"`
					State  live.State `json:"state"`
					Probes []any      `json:"probes"`
				} `json:"series"`
			}
			decodeBody(t, get(t, p, "/api/v1/status"+tc.query), &st)
			var keys []string
			counts := map[live.State]int{live.Down: 0, live.Burning: 0, live.NoData: 0, live.Paused: 0, live.OK: 0}
			for _, s := range st.Series {
				keys = append(keys, s.Key)
				counts[s.State]++
				if want := 3 * strings.Count(tc.query, "probes=3"); len(s.Probes) != want {
					t.Errorf("%s has %d probes, want %d", s.Key, len(s.Probes), want)
				}
			}
			if diff := cmp.Diff(tc.want, keys); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(counts, st.Summary); diff != "" {
				t.Errorf("the summary is not that of the series (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResultsPageThroughHistory(t *testing.T) {
	p := newPage(t, Options{})
	var seen []string
	before := ""
	for range 100 {
		var doc struct {
			Results []struct {
				ID     string `json:"id"`
				Key    string `json:"key"`
				Result struct {
					Outcome string `json:"outcome"`
				} `json:"result"`
			} `json:"results"`
			Next string `json:"next"`
		}
		decodeBody(t, get(t, p, "/api/v1/results?target=burning&scenario=chat&outcome=not_good&limit=7&before="+before), &doc)
		for _, r := range doc.Results {
			if r.Key != "burning/chat" || r.Result.Outcome != string(probe.SLOViolation) {
				t.Errorf("%s: %s, %s", r.ID, r.Key, r.Result.Outcome)
			}
			seen = append(seen, r.ID)
		}
		if before = doc.Next; before == "" {
			break
		}
	}
	if len(seen) != live.DefaultMaxNotGood {
		t.Errorf("%d results, want %d", len(seen), live.DefaultMaxNotGood)
	}
	var one struct {
		ID string `json:"id"`
	}
	decodeBody(t, get(t, p, "/api/v1/results/"+seen[0]), &one)
	if one.ID != seen[0] {
		t.Errorf("id %q, want %q", one.ID, seen[0])
	}
}

func TestErrorsAreJSON(t *testing.T) {
	p := newPage(t, Options{Silences: &silences{}})
	typed := []string{"Content-Type", "application/json"}
	long := strings.Repeat("x", maxBody)
	for name, tc := range map[string]struct {
		request *http.Request
		want    int
	}{
		"unknown path":         {request("GET", "/api/v1/none", ""), 404},
		"unknown version":      {request("GET", "/api/v2/status", ""), 404},
		"wrong method":         {request("POST", "/api/v1/results", ""), 405},
		"unknown target":       {request("GET", "/api/v1/status?target=none", ""), 404},
		"unknown series":       {request("GET", "/api/v1/status?target=ok&scenario=none", ""), 404},
		"unknown parameter":    {request("GET", "/api/v1/status?tarhet=ok", ""), 400},
		"given twice":          {request("GET", "/api/v1/status?target=ok&target=down", ""), 400},
		"too many probes":      {request("GET", "/api/v1/status?probes=100000", ""), 400},
		"no number":            {request("GET", "/api/v1/results?limit=many", ""), 400},
		"no outcome":           {request("GET", "/api/v1/results?outcome=fine", ""), 400},
		"forgotten":            {request("GET", "/api/v1/results/none-1", ""), 404},
		"long query":           {request("GET", "/api/v1/status?target="+long, ""), 400},
		"too many rows":        {request("GET", "/rows?key="+strings.Repeat("&key=", maxKeys), ""), 400},
		"form for JSON":        {request("POST", "/api/v1/silences", "target=ok", "Content-Type", typeForm), 400},
		"no JSON":              {request("POST", "/api/v1/silences", "{", typed...), 400},
		"two values":           {request("POST", "/api/v1/silences", "{}{}", typed...), 400},
		"unknown key":          {request("POST", "/api/v1/silences", `{"url":"http://x"}`, typed...), 400},
		"body too long":        {request("POST", "/api/v1/silences", `{"reason":"`+long+`"}`, typed...), 413},
		"probe body too long":  {request("POST", "/probe", `{"target":"`+long+`"}`, append(typed, "Accept", typeJSON)...), 413},
		"nothing to delete":    {request("DELETE", "/api/v1/silences/none", ""), 404},
		"probe is not offered": {request("POST", "/probe?target=ok&scenario=chat", "", "Accept", typeJSON), 503},
	} {
		t.Run(name, func(t *testing.T) {
			a := do(p, tc.request)
			var e struct {
				Error string `json:"error"`
			}
			decodeBody(t, a, &e)
			if a.code != tc.want || e.Error == "" {
				t.Errorf("%d %q, want %d", a.code, e.Error, tc.want)
			}
			if got := a.header.Get("Content-Type"); got != "application/json; charset=utf-8" {
				t.Errorf("Content-Type %q", got)
			}
			if a.code == http.StatusMethodNotAllowed && a.header.Get("Allow") != "GET" {
				t.Errorf("Allow %q", a.header.Get("Allow"))
			}
		})
	}
}

// A page of another origin can make a browser send forms, but not change anything.
func TestOtherOriginsAreRefused(t *testing.T) {
	kept := &silences{list: []Silence{{ID: "a", Target: "ok", Until: time.Now().Add(time.Hour)}}}
	p := newPage(t, Options{Silences: kept, Probe: goodProbe})
	silence := `{"target":"ok","duration_seconds":60,"reason":"x"}`
	for _, r := range []*http.Request{
		request("POST", "/probe?target=ok&scenario=chat", ""),
		request("POST", "/silences", "target=ok&scenario=chat&for=1h&reason=x", "Content-Type", typeForm),
		request("POST", "/silences/a/end", "", "Content-Type", typeForm),
		request("POST", "/api/v1/silences", silence, "Content-Type", typeJSON),
		request("DELETE", "/api/v1/silences/a", ""),
	} {
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			foreign := r.Clone(t.Context())
			foreign.Header.Set(name, value)
			if a := do(p, foreign); a.code != http.StatusForbidden {
				t.Errorf("%s %s with %s=%s: %d", r.Method, r.URL, name, value, a.code)
			}
		}
	}
	if len(kept.list) != 1 {
		t.Errorf("the silences were changed: %v", kept.list)
	}
	own := request("POST", "/api/v1/silences", silence, "Content-Type", typeJSON, "Sec-Fetch-Site", "same-origin")
	if a := do(p, own); a.code != http.StatusCreated {
		t.Errorf("from the page itself: %d %s", a.code, a.body)
	}
}

func TestSilences(t *testing.T) {
	kept := &silences{}
	p := newPage(t, Options{Silences: kept})
	create := func(body string) answer {
		return do(p, request("POST", "/api/v1/silences", body, "Content-Type", typeJSON))
	}
	for name, body := range map[string]string{
		"of nothing":        `{"duration_seconds":60,"reason":"x"}`,
		"without an end":    `{"target":"ok","reason":"x"}`,
		"with two ends":     `{"target":"ok","duration_seconds":60,"until":"2030-01-01T00:00:00Z","reason":"x"}`,
		"over already":      `{"target":"ok","until":"2020-01-01T00:00:00Z","reason":"x"}`,
		"negative":          `{"target":"ok","duration_seconds":-1e300,"reason":"x"}`,
		"endless":           `{"target":"ok","duration_seconds":1e300,"reason":"x"}`,
		"without a reason":  `{"target":"ok","duration_seconds":60}`,
		"with a long story": `{"target":"ok","duration_seconds":60,"reason":"` + strings.Repeat("x", maxReason+1) + `"}`,
	} {
		if a := create(body); a.code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, a.code, a.body)
		}
	}
	a := create(`{"target":"ok","scenario":"chat","duration_seconds":3600,"reason":"new GPUs","by":"ada"}`)
	var made Silence
	decodeBody(t, a, &made)
	if a.code != http.StatusCreated || a.header.Get("Location") != "/api/v1/silences/"+made.ID {
		t.Fatalf("%d, Location %q: %s", a.code, a.header.Get("Location"), a.body)
	}
	if length := made.Until.Sub(made.Start); length != time.Hour || made.Reason != "new GPUs" || made.By != "ada" {
		t.Errorf("made %+v", made)
	}
	// The form names who is logged in, unless it says otherwise.
	form := request("POST", "/silences", "target=ok&scenario=chat&for=4h&reason=more+GPUs&by=", "Content-Type", typeForm)
	form.SetBasicAuth("grace", "secret")
	if a := do(p, form); a.code != http.StatusSeeOther || a.header.Get("Location") != "/series?scenario=chat&target=ok" {
		t.Fatalf("form: %d, Location %q: %s", a.code, a.header.Get("Location"), a.body)
	}
	said := text(parse(t, get(t, p, "/series?target=ok&scenario=chat").body)[0].Parent)
	for _, part := range []string{"by ada: new GPUs", "by grace: more GPUs", "Resume"} {
		if !strings.Contains(said, part) {
			t.Errorf("the page does not say %q: %s", part, said)
		}
	}
	var doc silencesDocument
	decodeBody(t, get(t, p, "/api/v1/silences"), &doc)
	if len(doc.Silences) != 2 {
		t.Fatalf("%d silences, want 2", len(doc.Silences))
	}
	if a := do(p, request("DELETE", "/api/v1/silences/"+made.ID, "")); a.code != http.StatusNoContent {
		t.Errorf("DELETE: %d", a.code)
	}
	end := request("POST", "/silences/"+doc.Silences[1].ID+"/end", "target=ok&scenario=chat", "Content-Type", typeForm)
	if a := do(p, end); a.code != http.StatusSeeOther {
		t.Errorf("the button: %d %s", a.code, a.body)
	}
	if len(kept.list) != 0 {
		t.Errorf("there still are %v", kept.list)
	}
}

func TestMaintenanceWindowCannotBeEnded(t *testing.T) {
	p := newPage(t, Options{Silences: &silences{list: []Silence{
		{ID: "a", Scenario: "chat", Start: time.Now().Add(time.Hour), Until: time.Now().Add(2 * time.Hour), Reason: "nightly", Origin: OriginConfig},
		{ID: "b", Target: "other", Until: time.Now().Add(time.Hour), Reason: "elsewhere"},
	}}})
	body := get(t, p, "/series?target=ok&scenario=chat").body
	if said := text(parse(t, body)[0].Parent); !strings.Contains(said, "to be paused from") || strings.Contains(said, "Resume") || strings.Contains(said, "elsewhere") {
		t.Errorf("the page says: %s", said)
	}
}
