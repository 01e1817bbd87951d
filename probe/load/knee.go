package load

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"goodput_exporter/probe"
)

// The knobs of the answers. They are definitions, so they stand here and not among the flags.
const (
	// growth is what throughput must gain for each doubling of the load to count as growing.
	growth = 0.05
	// reach is how far the levels beyond one must go, as a ratio of the load, before they can tell that it saturates.
	reach = 1.25
	// DefaultHeadroom is how far below the limit the recommended level is.
	DefaultHeadroom = 0.25
)

// Answers are what a sweep is made for. They are kept apart: the level of greatest goodput is often one at which the
// objective has long been missed, and throughput often goes on growing beyond both.
type Answers struct {
	GoodputPeak Answer `json:"goodput_peak"` // the level of greatest goodput
	SLOCapacity Answer `json:"slo_capacity"` // the highest level that holds every objective, with all levels below it
	// Saturation is the first level beyond which throughput gains less than 5 % for each doubling of the load, up to
	// every later level. The later levels must reach at least 1.25 times its load.
	Saturation  Answer `json:"saturation"`
	Recommended Answer `json:"recommended"` // with headroom below the SLO capacity and saturation
}

// Answer is the answer to one question. Level is nil where there is none in the range that was tested.
type Answer struct {
	Level *float64 `json:"level,omitempty"` // in the unit of the sweep
	// Value at the level: goodput of the peak, attainment of the capacity, throughput of saturation.
	Value      *float64   `json:"value,omitempty"`
	Confidence Confidence `json:"confidence,omitempty"` // of the capacity
	Similar    []float64  `json:"similar,omitempty"`    // other levels that statistics cannot tell from it
	Reason     string     `json:"reason"`               // in words
}

// Confidence says how sure it is that a level holds its objectives, by the 95 % interval of its attainment.
type Confidence string

// The confidences.
const (
	Proven   Confidence = "proven"   // the whole interval is at or above the objective
	Likely   Confidence = "likely"   // the attainment is, the interval reaches below it
	Unlikely Confidence = "unlikely" // the attainment is below the objective, the interval reaches it
	Refuted  Confidence = "refuted"  // the whole interval is below
)

// Confidence returns how sure it is that the level holds all objectives of its SLO: that of the least sure. It is ""
// where there is no objective.
func (r *Report) Confidence() Confidence {
	if r.Duration == nil {
		return ""
	}
	_, c := pointOf(r).hardest()
	return c
}

// Holds reports whether the level counts as holding its objectives.
func (c Confidence) Holds() bool { return c == Proven || c == Likely }

// point is what the answers need of a level.
type point struct {
	load         float64
	throughput   float64 // a second
	goodput      float64 // a second
	goodputError float64 // standard error of it
	objectives   []attained
}

// points returns what there is to know of the valid levels.
func (s *sweep) points() []point {
	var points []point
	for _, r := range s.report.Levels {
		if r.Valid && r.Duration != nil && r.Counts.Attempts > 0 {
			points = append(points, pointOf(r))
		}
	}
	return points
}

// pointOf makes the point of a report that has a duration.
func pointOf(r *Report) point {
	p := point{load: r.Load.Level().Value(), throughput: *r.Throughput, goodput: *r.Goodput}
	// What the run itself varied is the better measure; without it, good requests are taken for independent.
	p.goodputError = math.Sqrt(float64(max(r.Counts.Good, 1))) / *r.Duration
	if i := r.RateIntervals.Goodput; i != nil {
		p.goodputError = (float64(i.High) - p.goodput) / z95
	}
	if o := r.SLO.Objective; o != nil {
		p.objectives = appendAttained(p.objectives, probe.SLOGoodput, *o, r.SLO.Attainment)
	}
	for _, c := range r.SLO.Criteria {
		if c.Objective != nil {
			p.objectives = appendAttained(p.objectives, c.Name, *c.Objective, c.Attainment)
		}
	}
	return p
}

// appendAttained adds how far a level came with an objective, unless it applied to no request.
func appendAttained(all []attained, name string, objective float64, s Share) []attained {
	if s.Ratio == nil || s.Interval == nil {
		return all
	}
	return append(all, attained{name, objective, *s.Ratio, float64(s.Interval.Low), float64(s.Interval.High)})
}

// attained is how far a level came with one objective.
type attained struct {
	name      string // SLOGoodput, or a criterion
	objective float64
	ratio     float64
	low, high float64 // 95 % interval of the ratio
}

// hardest returns the objective with the least confidence, and among those the one that is missed the most.
func (p point) hardest() (attained, Confidence) {
	var worst attained
	confidence := Confidence("")
	for _, a := range p.objectives {
		c := a.confidence()
		if confidence == "" || c.below(confidence) || c == confidence && a.margin() < worst.margin() {
			worst, confidence = a, c
		}
	}
	return worst, confidence
}

func (a attained) confidence() Confidence {
	switch {
	case a.low >= a.objective:
		return Proven
	case a.ratio >= a.objective:
		return Likely
	case a.high >= a.objective:
		return Unlikely
	}
	return Refuted
}

// margin is the part of the error budget that is left.
func (a attained) margin() float64 { return (a.ratio - a.objective) / (1 - a.objective) }

func (a attained) String() string {
	text := fmt.Sprintf("%s [%s, %s] against %s", percent(a.ratio), percent(a.low), percent(a.high), percent(a.objective))
	if a.name != probe.SLOGoodput {
		text = a.name + " " + text
	}
	return text
}

// ascending has the confidences from the least sure to the surest.
var ascending = []Confidence{Refuted, Unlikely, Likely, Proven}

func (c Confidence) below(d Confidence) bool {
	return slices.Index(ascending, c) < slices.Index(ascending, d)
}

// unit is what the levels of a sweep are counted in.
type unit string

// The units.
const (
	unitConcurrency unit = "concurrency"
	unitRate        unit = "requests_per_second"
)

func (u unit) level(load float64) string {
	if u == unitRate {
		return Level{Rate: load}.String()
	}
	return Level{Concurrency: int(load)}.String()
}

func (u unit) levels(loads []float64) string {
	names := make([]string, len(loads))
	for i, load := range loads {
		names[i] = strconv.FormatFloat(load, 'g', -1, 64)
	}
	return strings.Join(names, ", ")
}

// answer answers all questions. The points are of valid levels, in ascending order of the load.
func answer(points []point, u unit, headroom float64) Answers {
	a := Answers{
		GoodputPeak: goodputPeak(points, u),
		SLOCapacity: sloCapacity(points, u),
		Saturation:  saturation(points, u),
	}
	a.Recommended = recommended(points, u, a, headroom)
	return a
}

func goodputPeak(points []point, u unit) Answer {
	if len(points) == 0 {
		return Answer{Reason: "no valid level was measured"}
	}
	best := 0
	for i, p := range points {
		if p.goodput > points[best].goodput {
			best = i
		}
	}
	peak, last := points[best], len(points)-1
	switch {
	case peak.goodput == 0:
		return Answer{Reason: "none in this range: no request was good at any level"}
	case len(points) == 1:
		return Answer{Reason: fmt.Sprintf("one level has no peak: %s is the only one", u.level(peak.load))}
	case best == last && different(points[last-1], peak):
		return Answer{Reason: fmt.Sprintf("none in this range: goodput was still growing at the highest level, %s (%s/s)",
			u.level(peak.load), figure(peak.goodput))}
	}
	a := found(peak.load, peak.goodput, fmt.Sprintf("%s good requests a second at %s", figure(peak.goodput), u.level(peak.load)))
	for i, p := range points {
		if i != best && !different(p, peak) {
			a.Similar = append(a.Similar, p.load)
		}
	}
	if len(a.Similar) > 0 {
		a.Reason += fmt.Sprintf("; statistically no different at %s", u.levels(a.Similar))
	}
	switch {
	case best == 0 && (u == unitRate || peak.load > 1):
		a.Reason += "; it is the lowest level tested, so a lower one may do better"
	case best == last:
		a.Reason += "; it is the highest level tested, but goodput no longer grows"
	}
	return a
}

// different reports whether the goodputs of two levels differ, at 95 %.
func different(a, b point) bool {
	return math.Abs(a.goodput-b.goodput) > z95*math.Hypot(a.goodputError, b.goodputError)
}

func sloCapacity(points []point, u unit) Answer {
	if len(points) == 0 {
		return Answer{Reason: "no valid level was measured"}
	}
	if len(points[0].objectives) == 0 {
		return Answer{Reason: "no objective was given"}
	}
	holding := 0
	for holding < len(points) && holds(points[holding]) {
		holding++
	}
	if holding == 0 {
		worst, c := points[0].hardest()
		return Answer{Confidence: c, Reason: fmt.Sprintf("none in this range: the lowest level, %s, misses the objective: %s%s",
			u.level(points[0].load), worst, above(points, 0, u))}
	}
	p := points[holding-1]
	worst, confidence := p.hardest()
	a := found(p.load, worst.ratio, fmt.Sprintf("%s holds the objective (%s): %s", u.level(p.load), confidence, worst))
	a.Confidence = confidence
	if confidence == Likely {
		a.Reason += "; more requests would be needed to prove it"
	}
	if holding == len(points) {
		a.Reason += "; it is the highest level tested, so the capacity may be higher"
		return a
	}
	next, missed := points[holding].hardest()
	a.Reason += fmt.Sprintf("; %s misses it: %s", u.level(points[holding].load), next)
	if missed == Unlikely {
		a.Reason += ", which may be chance"
	}
	a.Reason += above(points, holding, u)
	return a
}

// above names the levels that hold their objective although a lower one does not.
func above(points []point, missed int, u unit) string {
	var loads []float64
	for _, p := range points[missed+1:] {
		if holds(p) {
			loads = append(loads, p.load)
		}
	}
	if loads == nil {
		return ""
	}
	return fmt.Sprintf("; %s above hold it again and do not count, as %s does not", u.levels(loads), u.level(points[missed].load))
}

func holds(p point) bool {
	_, c := p.hardest()
	return c.Holds()
}

func saturation(points []point, u unit) Answer {
	if len(points) < 2 {
		return Answer{Reason: "it takes at least two valid levels to see throughput grow or stop growing"}
	}
	last := points[len(points)-1]
	if last.throughput == 0 {
		return Answer{Reason: "no request was completed at the highest level"}
	}
	for i, p := range points[:len(points)-1] {
		switch {
		case p.throughput == 0 || grows(p, points[i+1:]):
		case last.load < reach*p.load:
			return Answer{Reason: fmt.Sprintf("no knee in this range: throughput seems to stop growing at %s (%s/s), but levels of at least %g times it are needed to tell",
				u.level(p.load), figure(p.throughput), reach)}
		default:
			return found(p.load, p.throughput, fmt.Sprintf("%s requests a second at %s; up to %s no level gains %s for each doubling of the load",
				figure(p.throughput), u.level(p.load), u.level(last.load), percent(growth)))
		}
	}
	return Answer{Reason: fmt.Sprintf("no knee in this range: throughput was still growing towards the highest level, %s (%s/s)",
		u.level(last.load), figure(last.throughput))}
}

// grows reports whether throughput grows from p to any of the later points.
func grows(p point, later []point) bool {
	for _, q := range later {
		if gain(p, q) >= growth {
			return true
		}
	}
	return false
}

// gain is the relative gain in throughput from p to q for each doubling of the load.
func gain(p, q point) float64 {
	return math.Pow(q.throughput/p.throughput, 1/math.Log2(q.load/p.load)) - 1
}

func recommended(points []point, u unit, a Answers, headroom float64) Answer {
	if a.SLOCapacity.Level == nil {
		return Answer{Reason: "there is no SLO capacity to stay below"}
	}
	limit, why := *a.SLOCapacity.Level, "the SLO capacity"
	if s := a.Saturation.Level; s != nil && *s < limit {
		limit, why = *s, "saturation, beyond which more load only waits longer,"
	}
	level := limit * (1 - headroom)
	if u == unitConcurrency {
		level = max(math.Floor(level+1e-9), 1) // 0.8 × 10 is a little less than 8
	} else {
		level = significant(level, 3)
	}
	text := fmt.Sprintf("%.0f %% below %s at %s", 100*(1-level/limit), why, u.level(limit))
	if level == limit {
		text = fmt.Sprintf("%s, the limit itself: there is no lower level", u.level(limit))
	}
	if p, ok := nearest(points, level); ok {
		worst, _ := p.hardest()
		text += fmt.Sprintf("; at %s, the nearest level tested that is not above it, goodput was %s/s and attainment %s",
			u.level(p.load), figure(p.goodput), percent(worst.ratio))
	} else {
		text += "; no level as low was tested"
	}
	return Answer{Level: &level, Reason: text}
}

// nearest returns the highest point at or below a load.
func nearest(points []point, load float64) (p point, ok bool) {
	for _, q := range points {
		if q.load <= load {
			p, ok = q, true
		}
	}
	return p, ok
}

func found(level, value float64, reason string) Answer {
	return Answer{Level: &level, Value: &value, Reason: reason}
}

// figure prints a rate with three significant digits, or more where it is whole hundreds.
func figure(v float64) string {
	if v < 100 {
		v = significant(v, 3)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func significant(v float64, digits int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}

func percent(ratio float64) string {
	return strconv.FormatFloat(math.Round(ratio*1e4)/1e2, 'f', -1, 64) + " %"
}
