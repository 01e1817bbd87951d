package probe

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"time"

	"goodput_exporter/probe/arrival"
)

// conclude writes the outcome, the figures and the judgments into the result. f is nil for a success.
func (a *attempt) conclude(f *failure) {
	r := a.result
	if start, ok := a.start(); ok {
		// By the difference, since the wall clock may have been set since that of start was read.
		r.Time = r.Time.Add(start.Sub(r.Time))
		a.measure(start, f)
	}
	if f == nil {
		r.Outcome = Good
		a.flagSuccess()
	} else {
		r.Outcome, r.Reason, r.InBand, r.Error = f.outcome, f.reason, f.inBand, f.err.Error()
		if f.outcome == Truncated || f.outcome == Interrupted {
			a.flag(FlagTruncated)
		}
	}
	if a.answer.coalesced > 0 {
		a.flag(FlagOwnLag)
	}
	r.judge(a.scenario.SLO, a.answer.coalesced)
	slices.Sort(r.Flags)
	a.scrub()
}

// start returns t_send of the last exchange. False: nothing was sent.
func (a *attempt) start() (time.Time, bool) {
	if a.exchange == nil {
		return time.Time{}, false
	}
	return a.exchange.Start()
}

// measure writes the figures, which count from start.
func (a *attempt) measure(start time.Time, f *failure) {
	r := a.result
	_, r.ConnectionReused = a.exchange.Connected()
	if first, ok := a.exchange.FirstByte(); ok {
		r.TTFB = since(start, first.At)
	}
	for i, name := range PhaseNames {
		if took, ok := a.exchange.Took(arrival.Phase(i)); ok {
			r.Phases = append(r.Phases, Phase{name, took})
		}
	}
	a.answer.report(r, start, max(a.request.MaxTokens, a.request.OutputTokens))
	switch {
	case f == nil:
		r.E2E = since(start, a.answer.end())
		r.TPOT = a.answer.tpot(r.OutputTokens)
	case !f.outcome.Attempt():
	case f.inBand:
		r.E2E = since(start, a.answer.errAt)
	default:
		r.E2E = since(start, time.Now())
	}
}

// flagSuccess flags what is worth knowing of a complete answer.
func (a *attempt) flagSuccess() {
	ans, traits := &a.answer, a.protocol.Traits()
	for _, f := range []struct {
		flag Flag
		is   bool
	}{
		{FlagLengthLimited, ans.limited},
		{FlagDoneMissing, traits.Sentinel && !ans.done},
		{FlagDuplicateFinish, ans.finishes > 1},
		{FlagBuffered, !ans.whole && ans.coalesced == 0 && ans.buffered()},
		{FlagReasoningOnly, ans.onlyReasoning()},
		{FlagUsageMissing, !traits.Tokenless && ans.usage.Output == nil},
	} {
		if f.is {
			a.flag(f.flag)
		}
	}
}

// scrub keeps the credentials that were sent out of everything that a server may have echoed.
func (a *attempt) scrub() {
	r := a.result
	for _, secret := range a.secrets() {
		for _, s := range []*string{&r.Error, &r.Text, &r.FinishReason, &r.RequestID} {
			*s = redact(*s, secret)
		}
	}
}

// secrets returns the credentials that were sent.
func (a *attempt) secrets() []string {
	if a.exchange == nil {
		return nil
	}
	secrets := slices.Clip(a.query)
	for _, header := range a.exchange.Secrets() {
		secrets = append(secrets, secretsOf(header)...)
	}
	return secrets
}

// secretsOfQuery returns the values in a URL's query, as they stand there and as they are meant. Short ones are
// switches and versions.
func secretsOfQuery(endpoint string) []string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil
	}
	var secrets []string
	for _, values := range u.Query() {
		for _, v := range values {
			secrets = append(secrets, v, url.QueryEscape(v))
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return len(s) <= len("2006-01-02") })
}

const redacted = "<secret>"

// redact keeps a secret out of a text, and the beginning of one that the end of the text has cut.
func redact(text, secret string) string {
	text = strings.ReplaceAll(text, secret, redacted)
	kept := strings.TrimSuffix(text, "…") // of a message that was clipped
	for n := len(secret) - 1; n >= minPart; n-- {
		if head, ok := strings.CutSuffix(kept, secret[:n]); ok {
			return head + redacted
		}
	}
	return text
}

// secretsOf returns what is secret in the value of a credentials header: all of it, the credentials behind the
// scheme, with basic authentication the password, and its longer words, into which an error may have cut it.
func secretsOf(header string) []string {
	scheme, credentials, ok := strings.Cut(header, " ")
	if !ok {
		credentials = header
	}
	secrets := []string{header}
	if strings.EqualFold(scheme, "Basic") {
		if plain, err := base64.StdEncoding.DecodeString(credentials); err == nil {
			if _, password, ok := strings.Cut(string(plain), ":"); ok {
				secrets = append(secrets, password)
			}
		}
	}
	secrets = append(secrets, credentials)
	for _, word := range strings.Fields(header) {
		if len(word) >= minPart {
			secrets = append(secrets, word)
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return len(s) < minSecret })
}

// minSecret is the length from which on a secret is looked for, and minPart that of a part of one: a shorter one would
// be found in any text.
const (
	minSecret = 4
	minPart   = 8
)
