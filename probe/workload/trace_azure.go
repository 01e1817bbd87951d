package workload

import (
	"fmt"
	"time"
)

// azureTrace is the form of the Azure LLM inference datasets of 2023 and 2024, and of the multimodal one of 2025:
//
//	TIMESTAMP,ContextTokens,GeneratedTokens
//	2023-11-16 18:15:46.6805900,374,44
//
// Times are in UTC where they have no zone, which those of 2024 have.
var azureTrace = csvTrace{
	at: "TIMESTAMP", input: "ContextTokens", output: "GeneratedTokens", parseTime: parseAzureTime,
}.format("azure")

func parseAzureTime(s string) (time.Duration, error) {
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04:05Z07:00", time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil { // takes fractions of a second with any of them
			return t.Sub(time.Unix(0, 0)), nil
		}
	}
	return 0, fmt.Errorf("%.40q is not a time such as 2023-11-16 18:15:46.68059 or 2024-05-10 00:00:00.00993+00:00", s)
}
