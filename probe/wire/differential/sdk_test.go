package differential

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"goodput_exporter/probe/probetest"
)

// sdk reads a stream that a server at that URL sends.
type sdk func(ctx context.Context, url string) answer

func TestOpenAIChat(t *testing.T) { compare(t, openAIChat, "openai-chat", "azure-openai") }
func TestOpenAICompletions(t *testing.T) {
	compare(t, openAICompletions, "openai-completions")
}
func TestOpenAIResponses(t *testing.T)   { compare(t, openAIResponses, "openai-responses") }
func TestAnthropicMessages(t *testing.T) { compare(t, anthropicMessages, "anthropic-messages") }
func TestGemini(t *testing.T)            { compare(t, gemini, "gemini") }

// compare reads the well-formed streams of the cases both ways. Where they differ, the table says who is right.
func compare(t *testing.T, theirs sdk, protocols ...string) {
	t.Helper()
	for id, c := range wellFormed(t, protocols...) {
		t.Run(id+" "+c.Title, func(t *testing.T) {
			server := serve(t, c)
			want := theirs(t.Context(), server.URL)
			diff := cmp.Diff(want, ours(t, c))
			who, known := differences[id]
			switch {
			case diff != "" && !known:
				t.Errorf("(-SDK +ours):\n%s", diff)
			case diff == "" && known:
				t.Errorf("the table says that they differ: %s", who)
			}
		})
	}
}

// serve sends the body of a case as the answer to any request.
func serve(t *testing.T, c probetest.Case) *httptest.Server {
	t.Helper()
	body := bodyOf(c)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range c.Connections[0].Requests[0].HTTP.Headers {
			if !strings.EqualFold(h[0], "Content-Encoding") {
				w.Header().Set(h[0], h[1])
			}
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server
}

func (a *answer) fail(err error) {
	if err != nil {
		a.Error = err.Error()
	}
}

func openAIClient(url string) openai.Client {
	return openai.NewClient(openaioption.WithBaseURL(url), openaioption.WithAPIKey("key"), openaioption.WithMaxRetries(0))
}

func openAIChat(ctx context.Context, url string) (a answer) {
	client := openAIClient(url)
	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "m"})
	for stream.Next() {
		chunk := stream.Current()
		for _, c := range chunk.Choices {
			a.Text += c.Delta.Content
			if a.Finish == "" {
				a.Finish = string(c.FinishReason)
			}
		}
		if chunk.JSON.Usage.Valid() {
			a.Input, a.Output = chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens
		}
	}
	a.fail(stream.Err())
	return a
}

func openAICompletions(ctx context.Context, url string) (a answer) {
	client := openAIClient(url)
	stream := client.Completions.NewStreaming(ctx, openai.CompletionNewParams{Model: "m"})
	for stream.Next() {
		chunk := stream.Current()
		for _, c := range chunk.Choices {
			a.Text += c.Text
			if a.Finish == "" {
				a.Finish = string(c.FinishReason)
			}
		}
		if chunk.JSON.Usage.Valid() {
			a.Input, a.Output = chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens
		}
	}
	a.fail(stream.Err())
	return a
}

func openAIResponses(ctx context.Context, url string) (a answer) {
	client := openAIClient(url)
	stream := client.Responses.NewStreaming(ctx, responses.ResponseNewParams{Model: "m"})
	for stream.Next() {
		switch event := stream.Current(); event.Type {
		case "response.output_text.delta":
			a.Text += event.Delta
		case "response.completed", "response.incomplete":
			a.Finish = string(event.Response.Status)
			if reason := event.Response.IncompleteDetails.Reason; reason != "" {
				a.Finish = reason
			}
			a.Input, a.Output = event.Response.Usage.InputTokens, event.Response.Usage.OutputTokens
		}
	}
	a.fail(stream.Err())
	return a
}

func anthropicMessages(ctx context.Context, url string) (a answer) {
	client := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("key"), anthropicoption.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{Model: "m", MaxTokens: 16})
	for stream.Next() {
		switch event := stream.Current(); event.Type {
		case "message_start":
			a.Input = event.Message.Usage.InputTokens
		case "content_block_delta":
			a.Text += event.Delta.Text
		case "message_delta":
			if a.Finish == "" {
				a.Finish = string(event.Delta.StopReason)
			}
			a.Output = event.Usage.OutputTokens
		}
	}
	a.fail(stream.Err())
	return a
}

func gemini(ctx context.Context, url string) (a answer) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
	if err != nil {
		a.fail(err)
		return a
	}
	for response, err := range client.Models.GenerateContentStream(ctx, "m", genai.Text("hi"), nil) {
		if err != nil {
			a.fail(err)
			return a
		}
		for _, c := range response.Candidates {
			if c.Content != nil {
				for _, part := range c.Content.Parts {
					if !part.Thought {
						a.Text += part.Text
					}
				}
			}
			if a.Finish == "" {
				a.Finish = string(c.FinishReason)
			}
		}
		if u := response.UsageMetadata; u != nil {
			a.Input, a.Output = int64(u.PromptTokenCount), int64(u.CandidatesTokenCount+u.ThoughtsTokenCount)
		}
	}
	return a
}
