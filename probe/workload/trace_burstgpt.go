package workload

import (
	"fmt"
	"strconv"
	"time"
)

// burstGPTTrace is the form of BurstGPT. Later files have the columns Session ID and Elapsed time besides.
//
//	Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
//	5,ChatGPT,472,18,490,Conversation log
//
// Times are seconds. A request that failed has 0 response tokens.
var burstGPTTrace = csvTrace{
	at: "Timestamp", input: "Request tokens", output: "Response tokens", parseTime: parseSeconds,
}.format("burstgpt")

func parseSeconds(s string) (time.Duration, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0) {
		return 0, fmt.Errorf("%.40q is not a number of seconds, 0 or more", s)
	}
	return seconds(v), nil
}
