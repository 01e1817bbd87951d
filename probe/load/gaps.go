package load

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Gaps counts chunk gaps in buckets of equal ratio: there are hundreds in a request, too many to keep. Their
// quantiles are right to 0.3 %, and gaps of several runs merge exactly.
type Gaps struct {
	Counts map[int]int // by bucket: gaps between 2^(b/128) and 2^((b+1)/128) nanoseconds
	Count  int
	Sum    time.Duration
}

const gapBuckets = 128 // to a factor of 2

// Add counts one gap.
func (g *Gaps) Add(gap time.Duration) {
	if g.Counts == nil {
		g.Counts = map[int]int{}
	}
	b := 0
	if gap > 1 {
		b = int(math.Floor(math.Log2(float64(gap)) * gapBuckets))
	}
	g.Counts[b]++
	g.Count++
	g.Sum += gap
}

// Merge counts the gaps of another run too.
func (g *Gaps) Merge(other Gaps) {
	if g.Counts == nil {
		g.Counts = map[int]int{}
	}
	for b, n := range other.Counts {
		g.Counts[b] += n
	}
	g.Count += other.Count
	g.Sum += other.Sum
}

// distribution describes the gaps in seconds, each by the middle of its bucket; the mean is exact. Nil: there are none.
func (g *Gaps) distribution() *Distribution {
	if g.Count == 0 {
		return nil
	}
	buckets := slices.Sorted(maps.Keys(g.Counts))
	quantile := func(q float64) Value {
		left := nearestRank(q, g.Count)
		for _, b := range buckets {
			if left -= g.Counts[b]; left <= 0 {
				return gapOf(b)
			}
		}
		return gapOf(buckets[len(buckets)-1])
	}
	return &Distribution{
		Count: g.Count, Mean: Value(g.Sum.Seconds() / float64(g.Count)),
		Min: gapOf(buckets[0]), P50: quantile(0.50), P95: quantile(0.95), P99: quantile(0.99), Max: gapOf(buckets[len(buckets)-1]),
	}
}

// gapOf is the middle of a bucket, by ratio, in seconds.
func gapOf(bucket int) Value {
	return Value(math.Exp2((float64(bucket)+0.5)/gapBuckets) / float64(time.Second))
}
