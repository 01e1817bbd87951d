package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// describe tells a result to a person.
func describe(r *probe.Result, slo config.SLO) string {
	var b strings.Builder
	b.WriteString(headline(r))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range []struct {
		name, criterion string
		value           *time.Duration
	}{
		{"first byte", "", r.TTFB},
		{"TTFT", config.CriterionTTFT, r.TTFT},
		{"first answer", config.CriterionFirstAnswer, r.FirstAnswer},
		{"TPOT", config.CriterionTPOT, r.TPOT},
		{"stall", config.CriterionStall, r.Stall},
		{"E2E", config.CriterionE2E, r.E2E},
		{"complete", config.CriterionComplete, nil},
		{"retry after", "", r.RetryAfter},
	} {
		judged := judgment(r, slo, f.criterion)
		if f.value == nil && judged == "" {
			continue
		}
		value := "-"
		if f.value != nil {
			value = milliseconds(*f.value)
		}
		fmt.Fprintf(w, "  %s\t%s", f.name, value)
		if judged != "" {
			fmt.Fprintf(w, "\t%s", judged)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // to a strings.Builder
	b.WriteString(facts(r))
	return b.String()
}

func headline(r *probe.Result) string {
	line := string(r.Outcome)
	if r.Reason != "" {
		line += " (" + string(r.Reason) + ")"
	}
	if r.InBand {
		line += ", in band"
	}
	if r.StatusCode != 0 {
		line += fmt.Sprintf(", %s %d", r.HTTPVersion, r.StatusCode)
	}
	if r.FinishReason != "" {
		line += ", finish " + r.FinishReason
	}
	if r.Error != "" {
		line += ": " + r.Error
	}
	return line + "\n"
}

// judgment says what a criterion's limit is and whether it was met.
func judgment(r *probe.Result, slo config.SLO, criterion string) string {
	for _, c := range slo.Criteria {
		if c.Name != criterion {
			continue
		}
		limit := ""
		if c.Limit > 0 {
			limit = "limit " + milliseconds(c.Limit) + ": "
		}
		for _, j := range r.Judgments {
			if j.SLO == criterion {
				return limit + strings.ReplaceAll(string(j.Verdict), "_", " ")
			}
		}
	}
	return ""
}

func facts(r *probe.Result) string {
	var b strings.Builder
	if r.OutputTokens != nil {
		input := "?"
		if r.InputTokens != nil {
			input = fmt.Sprint(*r.InputTokens)
		}
		fmt.Fprintf(&b, "  tokens: %s in, %d out (%s)\n", input, *r.OutputTokens, r.OutputTokensSource)
	}
	if len(r.Phases) > 0 {
		b.WriteString("  phases:")
		for _, p := range r.Phases {
			fmt.Fprintf(&b, " %s %s", p.Name, milliseconds(p.Duration))
		}
		if r.ConnectionReused {
			b.WriteString(" (connection reused)")
		}
		b.WriteString("\n")
	}
	if len(r.Flags) > 0 {
		fmt.Fprintf(&b, "  flags: %s\n", strings.Trim(fmt.Sprint(r.Flags), "[]"))
	}
	if r.RequestID != "" {
		fmt.Fprintf(&b, "  request id: %s\n", r.RequestID)
	}
	fmt.Fprintf(&b, "  trace id: %s\n", r.TraceID)
	if r.Text != "" {
		fmt.Fprintf(&b, "  text: %q\n", r.Text)
	}
	return b.String()
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
