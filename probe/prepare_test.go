package probe_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goodput_exporter/config"
	"goodput_exporter/probe/workload"
)

// lengthsAsked are the fields of a request that bound its answer.
type lengthsAsked struct {
	MaxTokens int  `json:"max_tokens"`
	MinTokens int  `json:"min_tokens"`
	IgnoreEOS bool `json:"ignore_eos"`
}

func TestLengthOfTheAnswerIsThatOfThePrompt(t *testing.T) {
	input := config.Quantiles{P50: 20, P95: 20}
	tests := []struct {
		name     string
		scenario config.Scenario
		recorded *workload.TraceEntry // a request to replay; nil: the scenario's prompts
		want     lengthsAsked
	}{
		{"a ceiling", config.Scenario{Synthetic: &config.Synthetic{InputTokens: input}, MaxTokens: 90}, nil, lengthsAsked{90, 0, false}},
		{"pinned by the scenario", config.Scenario{Synthetic: &config.Synthetic{InputTokens: input}, OutputTokens: 70}, nil, lengthsAsked{70, 70, true}},
		{
			"drawn",
			config.Scenario{Synthetic: &config.Synthetic{InputTokens: input, OutputTokens: &config.Quantiles{P50: 50, P95: 50}}},
			nil,
			lengthsAsked{50, 50, true},
		},
		{
			"recorded, over the scenario's",
			config.Scenario{Synthetic: &config.Synthetic{InputTokens: input}, MaxTokens: 90},
			&workload.TraceEntry{InputTokens: 20, OutputTokens: 30},
			lengthsAsked{30, 30, true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked := make(chan lengthsAsked, 1)
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var lengths lengthsAsked
				if err := json.NewDecoder(r.Body).Decode(&lengths); err != nil {
					t.Errorf("request body: %v", err)
				}
				asked <- lengths
				w.WriteHeader(http.StatusTeapot)
			}))
			t.Cleanup(h.Close)
			s := seriesFor(h.URL)
			s.Scenario.Prompts, s.Scenario.Synthetic = nil, tt.scenario.Synthetic
			s.Scenario.MaxTokens, s.Scenario.OutputTokens = tt.scenario.MaxTokens, tt.scenario.OutputTokens
			prober := newProber(t, s)
			if tt.recorded == nil {
				prober.Probe(context.Background())
			} else {
				source, err := workload.New(s.Scenario, 1)
				if err != nil {
					t.Fatal(err)
				}
				prober.Ask(context.Background(), source.Recorded(*tt.recorded))
			}
			if diff := cmp.Diff(tt.want, <-asked); diff != "" {
				t.Errorf("lengths in the request (-want +got):\n%s", diff)
			}
		})
	}
}
