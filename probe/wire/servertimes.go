package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// serverTimeHeaders are the headers in which servers and gateways tell their own times, and the unit of each.
// Sources: the documentation of Fireworks, TGI and TEI, OpenAI, LiteLLM.
var serverTimeHeaders = []struct {
	name string
	kind ServerKind
	unit time.Duration
}{
	{"Fireworks-Server-Time-To-First-Token", ServerTTFT, time.Second},
	{"Fireworks-Server-Processing-Time", ServerTotal, time.Second},
	{"X-Queue-Time", ServerQueue, time.Millisecond},
	{"X-Inference-Time", ServerDecode, time.Millisecond},
	{"X-Total-Time", ServerTotal, time.Millisecond},
	{"Openai-Processing-Ms", ServerTotal, time.Millisecond},
	{"X-Litellm-Response-Duration-Ms", ServerTotal, time.Millisecond},
}

// ServerTimes reads the times that a server tells in its response's head. What is no time is left out.
func ServerTimes(h http.Header) []ServerTime {
	var times []ServerTime
	for _, t := range serverTimeHeaders {
		value := strings.TrimSpace(h.Get(t.name))
		if value == "" { // parsing it would make an error
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if took, ok := duration(v, t.unit); err == nil && ok {
			times = append(times, ServerTime{t.kind, took})
		}
	}
	return times
}

// duration returns v units as a duration. False: it is none that a request can take.
func duration(v float64, unit time.Duration) (time.Duration, bool) {
	s := v * unit.Seconds()
	if !(s >= 0 && s < 24*60*60) {
		return 0, false
	}
	return time.Duration(s * float64(time.Second)), true
}
