package live

import (
	"cmp"
	"slices"
	"strings"

	"goodput_exporter/probe"
)

// Pressing puts first what somebody must look at first: by state, then what wakes people, then by how fast the error budget
// of goodput burned in the last hour.
func Pressing(a, b *SeriesStatus) int {
	return cmp.Or(
		cmp.Compare(slices.Index(States, a.State), slices.Index(States, b.State)),
		cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
		cmp.Compare(b.burnOfLastHour(), a.burnOfLastHour()),
		strings.Compare(a.Key, b.Key),
	)
}

var severities = []Severity{Critical, Warning, ""}

func (st *SeriesStatus) burnOfLastHour() float64 {
	for _, slo := range st.SLOs {
		for _, w := range slo.Windows {
			if slo.Name == probe.SLOGoodput && w.Name == windowNames[h1] && w.BurnRate != nil {
				return *w.BurnRate
			}
		}
	}
	return 0
}
