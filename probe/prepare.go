package probe

import (
	"fmt"
	"net/http"

	"goodput_exporter/config"
	"goodput_exporter/probe/workload"
)

// prepare makes the request of a prompt. A request that cannot be made is the prober's own failure.
func (a *attempt) prepare(prompt workload.Prompt) *failure {
	a.expect = prompt.Expect
	a.request = a.common
	a.request.Messages, a.request.MaxTokens, a.request.OutputTokens = prompt.Messages, prompt.MaxTokens, prompt.OutputTokens
	if prompt.Text != "" {
		a.request.Messages = []config.Message{{Role: "user", Content: prompt.Text}}
	}
	a.header = http.Header{}
	body, err := a.protocol.Request(a.request, a.header)
	if err != nil {
		return fail(LocalError, "", fmt.Errorf("request body: %w", err))
	}
	a.body = body
	return nil
}
