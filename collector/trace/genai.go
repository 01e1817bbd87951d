package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"goodput_exporter/config"
	"goodput_exporter/probe"
)

// api is what the semantic conventions for generative AI call a protocol. They moved to a repository of their own after
// version 1.41.0, which is the last that the SDK has names of.
type api struct{ operation, provider attribute.KeyValue }

// apis has every protocol of config.Protocols. Where the conventions have no name, it is the protocol's own.
var apis = map[string]api{
	"anthropic-messages": {semconv.GenAIOperationNameChat, semconv.GenAIProviderNameAnthropic},
	"azure-openai":       {semconv.GenAIOperationNameChat, semconv.GenAIProviderNameAzureAIOpenAI},
	"bedrock-converse":   {semconv.GenAIOperationNameChat, semconv.GenAIProviderNameAWSBedrock},
	"cohere":             {semconv.GenAIOperationNameChat, semconv.GenAIProviderNameCohere},
	"gemini":             {semconv.GenAIOperationNameGenerateContent, semconv.GenAIProviderNameGCPGenAI},
	"ollama":             {semconv.GenAIOperationNameChat, semconv.GenAIProviderNameKey.String("ollama")},
	"openai-chat":        {semconv.GenAIOperationNameChat, semconv.GenAIProviderNameOpenAI},
	"openai-completions": {semconv.GenAIOperationNameTextCompletion, semconv.GenAIProviderNameOpenAI},
	"openai-embeddings":  {semconv.GenAIOperationNameEmbeddings, semconv.GenAIProviderNameOpenAI},
	"openai-responses":   {semconv.GenAIOperationNameChat, semconv.GenAIProviderNameOpenAI},
	"rerank":             {semconv.GenAIOperationNameKey.String("rerank"), semconv.GenAIProviderNameKey.String("rerank")},
	"tgi":                {semconv.GenAIOperationNameTextCompletion, semconv.GenAIProviderNameKey.String("tgi")},
}

// spanName is the operation and the model, by the conventions.
func spanName(r *probe.Result) string {
	operation := apis[r.Protocol].operation.Value.AsString()
	if r.Model == "" {
		return operation
	}
	return operation + " " + text(r.Model)
}

// genAI holds what the conventions for generative AI have a name for. Tokens are those that the server reported: counted
// ones are no usage.
func genAI(target *config.Target, r *probe.Result) []attribute.KeyValue {
	list := []attribute.KeyValue{apis[r.Protocol].operation, apis[r.Protocol].provider}
	if target.Provider != "" {
		list[1] = semconv.GenAIProviderNameKey.String(text(target.Provider))
	}
	if r.Model != "" {
		list = append(list, semconv.GenAIRequestModel(text(r.Model)))
	}
	if r.FinishReason != "" {
		list = append(list, semconv.GenAIResponseFinishReasons(text(r.FinishReason)))
	}
	outputTokens := r.OutputTokens
	if r.OutputTokensSource != probe.TokensUsage {
		outputTokens = nil
	}
	for _, t := range []struct {
		key    attribute.Key
		tokens *int
	}{
		{semconv.GenAIUsageInputTokensKey, r.InputTokens},
		{semconv.GenAIUsageOutputTokensKey, outputTokens},
		{semconv.GenAIUsageCacheReadInputTokensKey, r.CachedInputTokens},
		{semconv.GenAIUsageReasoningOutputTokensKey, r.ReasoningTokens},
	} {
		if t.tokens != nil {
			list = append(list, t.key.Int(*t.tokens))
		}
	}
	return list
}

// sentIDs gives a span the ids that its request has carried, instead of new ones. It implements sdktrace.IDGenerator.
type sentIDs struct{}

type idsKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// withIDs hands the ids of a result to the generator. False: it has none.
func withIDs(ctx context.Context, r *probe.Result) (context.Context, bool) {
	traceID, err := trace.TraceIDFromHex(r.TraceID)
	if err != nil {
		return nil, false
	}
	spanID, err := trace.SpanIDFromHex(r.SpanID)
	if err != nil {
		return nil, false
	}
	return context.WithValue(ctx, idsKey{}, ids{traceID, spanID}), true
}

// NewIDs implements sdktrace.IDGenerator.
func (sentIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	sent := ctx.Value(idsKey{}).(ids)
	return sent.trace, sent.span
}

// NewSpanID implements sdktrace.IDGenerator. It is for spans inside others, which we make none of.
func (sentIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	return ctx.Value(idsKey{}).(ids).span
}
