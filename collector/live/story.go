package live

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"goodput_exporter/probe"
)

// Story is all that is known of one probe.
type Story struct {
	ID        string        `json:"id"`     // changes when the process starts anew; the trace id of the result does not
	Key       string        `json:"key"`    // of its series
	Missed    []string      `json:"missed"` // criteria that were missed or could not be measured
	Result    *probe.Result `json:"result"` // not to be changed
	Gaps      []float64     `json:"first_chunk_gaps_seconds,omitempty"`
	Shortened bool          `json:"shortened,omitempty"` // the text or the error is longer than what is kept
}

// Filter selects stories. The zero value is the newest ones of all series.
type Filter struct {
	Target, Scenario string // "" for all
	Outcome          string // an outcome, NotGood, or "" for all
	TraceID          string // "" for all
	Before           string // an id: only older stories than that one, which may be forgotten already
	Limit            int    // 0 or less is DefaultLimit
}

// NotGood is the Filter.Outcome of all outcomes but good.
const NotGood = "not_good"

// DefaultLimit is how many stories a Filter without a limit selects.
const DefaultLimit = 100

// story is a result that is remembered.
type story struct {
	number    uint64
	result    *probe.Result
	bytes     int
	shortened bool
}

// stories are those of one series, the oldest first. Good ones do not push out others, nor they them.
type stories struct {
	good, notGood []story
	bytes         int
}

// What is kept of one story at most.
const (
	maxGaps = 128      // chunk gaps, the first ones
	maxText = 16 << 10 // bytes of the text, and of the error
)

// add remembers a story, and forgets others until the series is within its bounds: the good ones first, each the oldest
// first.
func (s *stories) add(l *Live, st story) {
	if st.result.Outcome == probe.Canceled {
		return // it would only push out what tells something
	}
	share := int(l.share.Load())
	st.shorten(share)
	list, most := &s.notGood, l.opts.MaxNotGood
	if st.result.Outcome == probe.Good {
		list, most = &s.good, l.opts.MaxGood
	}
	*list = append(*list, st)
	s.bytes += st.bytes
	for len(*list) > most {
		s.forget(list)
	}
	for s.bytes > share && len(s.good) > 0 && len(s.good)+len(s.notGood) > 1 {
		s.forget(&s.good)
	}
	for s.bytes > share && len(s.notGood) > 1 {
		s.forget(&s.notGood)
	}
}

func (s *stories) forget(list *[]story) {
	s.bytes -= (*list)[0].bytes
	*list = slices.Delete(*list, 0, 1)
}

// shorten cuts what is too long for a series' share of the memory, in a copy: results belong to everybody.
func (st *story) shorten(share int) {
	most := min(maxText, share/4)
	r := st.result
	if len(r.Text) > most || len(r.Error) > most || len(r.ChunkGaps) > maxGaps {
		short := *r
		short.Text, short.Error = head(r.Text, most), head(r.Error, most)
		short.ChunkGaps = slices.Clone(r.ChunkGaps[:min(len(r.ChunkGaps), maxGaps)])
		st.result, st.shortened = &short, len(short.Text) < len(r.Text) || len(short.Error) < len(r.Error)
	}
	st.bytes = size(st.result)
}

// head returns a copy of the first bytes of a text, without half a character at the end.
func head(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:most], ""))
}

// size is about what a result takes in memory, in bytes. Strings that all results of a series share are left out.
func size(r *probe.Result) int {
	n := int(unsafe.Sizeof(*r)) + len(r.Error) + len(r.FinishReason) + len(r.Text) + len(r.RequestID) + len(r.TraceID) + len(r.SpanID)
	n += cap(r.ChunkGaps)*int(unsafe.Sizeof(time.Duration(0))) + cap(r.Flags)*int(unsafe.Sizeof(probe.Flag("")))
	n += cap(r.Judgments)*int(unsafe.Sizeof(probe.Judgment{})) + cap(r.Phases)*int(unsafe.Sizeof(probe.Phase{}))
	n += cap(r.ServerTimes) * int(unsafe.Sizeof(probe.ServerTime{}))
	for name, values := range r.Header {
		n += 64 + len(name) // of the map and the slice
		for _, v := range values {
			n += int(unsafe.Sizeof(v)) + len(v)
		}
	}
	return n + 16*8 // figures, each an allocation of its own
}

// found is a story with its series.
type found struct {
	*Series
	story
}

// Results returns the stories that f selects, the newest first.
func (l *Live) Results(f Filter) []Story {
	before := uint64(math.MaxUint64)
	if f.Before != "" {
		before = l.numberOf(f.Before)
	}
	var all []found
	for _, s := range l.all() {
		if (f.Target == "" || f.Target == s.config.Target.Name) && (f.Scenario == "" || f.Scenario == s.config.Scenario.Name) {
			all = s.find(all, func(st *story) bool { return st.number < before && f.wants(st.result) })
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(b.number, a.number) })
	all = all[:min(len(all), cmp.Or(max(f.Limit, 0), DefaultLimit))]
	list := make([]Story, 0, len(all))
	for _, st := range all {
		list = append(list, st.tell())
	}
	return list
}

func (f *Filter) wants(r *probe.Result) bool {
	switch {
	case f.TraceID != "" && f.TraceID != r.TraceID:
		return false
	case f.Outcome == NotGood:
		return r.Outcome != probe.Good
	}
	return f.Outcome == "" || f.Outcome == string(r.Outcome)
}

// Story returns the story of an id, and false where it is forgotten or never was.
func (l *Live) Story(id string) (Story, bool) {
	number := l.numberOf(id)
	for _, s := range l.all() {
		if all := s.find(nil, func(st *story) bool { return st.number == number }); all != nil {
			return all[0].tell(), true
		}
	}
	return Story{}, false
}

// find appends the series' stories that are wanted.
func (s *Series) find(all []found, wanted func(*story) bool) []found {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range [][]story{s.stories.good, s.stories.notGood} {
		for i := range list {
			if wanted(&list[i]) {
				all = append(all, found{s, list[i]})
			}
		}
	}
	return all
}

func (f found) tell() Story {
	st := Story{ID: f.live.id(f.number), Key: f.key, Missed: []string{}, Result: f.result, Shortened: f.shortened}
	for _, j := range f.result.Judgments {
		criterion := j.SLO != probe.SLOGoodput && j.SLO != probe.SLOAvailability
		if criterion && (j.Verdict == probe.Missed || j.Verdict == probe.Unmeasurable) {
			st.Missed = append(st.Missed, j.SLO)
		}
	}
	for _, gap := range f.result.ChunkGaps[:min(len(f.result.ChunkGaps), maxGaps)] {
		st.Gaps = append(st.Gaps, gap.Seconds())
	}
	return st
}

// numberOf returns the number of an id of this process, 0, which no result has, of others.
func (l *Live) numberOf(id string) uint64 {
	i := strings.LastIndexByte(id, '-')
	number, err := strconv.ParseUint(id[i+1:], 10, 64)
	if err != nil || id != l.id(number) {
		return 0
	}
	return number
}
