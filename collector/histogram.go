package collector

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	// nativeSchema gives 8 native buckets per power of two: each is a factor of 1.09 wide. It is what
	// client_golang makes of NativeHistogramBucketFactor 1.1.
	nativeSchema = 3

	// maxNativeBuckets are 20 powers of two at that schema, 1 µs to 1 s. A histogram that needs more halves its
	// resolution. It is never reset, so that its classic buckets are not either.
	maxNativeBuckets = 160
)

// nativeBounds divide the interval from 0.5 to 1 at nativeSchema: the same numbers as client_golang's, so that
// buckets of both are the same ones.
var nativeBounds = []float64{
	0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048,
	0.7071067811865475, 0.7711054127039704, 0.8408964152537144, 0.9170040432046711,
}

// histogram is a classic and native histogram of one series. Its values are not negative.
type histogram struct {
	family    *family
	labels    []*dto.LabelPair
	count     uint64
	sum       float64
	classic   []uint64 // one for each bound, not cumulative
	zero      uint64
	coarser   int            // halvings of the native resolution
	native    []nativeBucket // sorted by index
	exemplars []exemplar     // the latest of each classic bucket, that of +Inf last; nil before the first
}

// nativeBucket counts observations up to 2^(index / 2^schema), and above that of the index before.
type nativeBucket struct {
	index int
	count int64
}

// exemplar names the trace of an observation.
type exemplar struct {
	value   float64
	traceID string // "": there is none
	time    time.Time
}

// observe counts a value. A clock that stepped can make it negative: it is then 0.
func (h *histogram) observe(v float64) {
	v = max(v, 0)
	h.count++
	h.sum += v
	if i := h.bucket(v); i < len(h.classic) {
		h.classic[i]++
	}
	if v <= prometheus.DefNativeHistogramZeroThreshold {
		h.zero++
		return
	}
	index := coarsen(nativeIndex(v), h.coarser)
	i, ok := slices.BinarySearchFunc(h.native, index, func(b nativeBucket, index int) int { return b.index - index })
	if !ok {
		h.native = slices.Insert(h.native, i, nativeBucket{index: index})
	}
	h.native[i].count++
	if len(h.native) > maxNativeBuckets {
		h.halve()
	}
}

// observeWithExemplar counts a value and remembers the trace that it is from.
func (h *histogram) observeWithExemplar(v float64, traceID string, t time.Time) {
	h.observe(v)
	if h.exemplars == nil {
		h.exemplars = make([]exemplar, len(h.classic)+1)
	}
	h.exemplars[h.bucket(v)] = exemplar{v, traceID, t}
}

// bucket returns the index of the classic bucket of v, len(h.classic) for +Inf.
func (h *histogram) bucket(v float64) int { return sort.SearchFloat64s(h.family.bounds, v) }

// nativeIndex returns the index of the bucket of a positive value at nativeSchema.
func nativeIndex(v float64) int {
	fraction, exponent := math.Frexp(v)
	return sort.SearchFloat64s(nativeBounds, fraction) + (exponent-1)*len(nativeBounds)
}

// coarsen returns the index of the bucket that holds the bucket of index after n halvings of the resolution.
func coarsen(index, n int) int { return (index + 1<<n - 1) >> n }

// halve makes every native bucket twice as wide, in powers of two.
func (h *histogram) halve() {
	h.coarser++
	merged := h.native[:0]
	for _, b := range h.native {
		b.index = coarsen(b.index, 1)
		if n := len(merged); n > 0 && merged[n-1].index == b.index {
			merged[n-1].count += b.count
		} else {
			merged = append(merged, b)
		}
	}
	h.native = merged
}

func (h *histogram) snapshot(created *timestamppb.Timestamp) snapshot {
	out := &dto.Histogram{
		SampleCount:      new(h.count),
		SampleSum:        new(h.sum),
		Bucket:           h.classicBuckets(),
		Schema:           new(int32(nativeSchema - h.coarser)),
		ZeroThreshold:    new(float64(prometheus.DefNativeHistogramZeroThreshold)),
		ZeroCount:        new(h.zero),
		CreatedTimestamp: created,
	}
	out.PositiveSpan, out.PositiveDelta = h.nativeBuckets()
	return snapshot{desc: h.family.desc, labels: h.labels, histogram: out}
}

// classicBuckets returns cumulative buckets. The one of +Inf is left to the encoder but where it has an exemplar.
// A server takes the exemplars of these buckets for the native histogram too.
func (h *histogram) classicBuckets() []*dto.Bucket {
	buckets := make([]*dto.Bucket, 0, len(h.classic)+1)
	var cumulative uint64
	for i, n := range h.classic {
		cumulative += n
		buckets = append(buckets, &dto.Bucket{
			UpperBound: &h.family.bounds[i], CumulativeCount: new(cumulative), Exemplar: h.exemplar(i),
		})
	}
	if e := h.exemplar(len(h.classic)); e != nil {
		buckets = append(buckets, &dto.Bucket{UpperBound: new(math.Inf(1)), CumulativeCount: new(h.count), Exemplar: e})
	}
	return buckets
}

func (h *histogram) exemplar(bucket int) *dto.Exemplar {
	if len(h.exemplars) == 0 || h.exemplars[bucket].traceID == "" {
		return nil
	}
	e := h.exemplars[bucket]
	return &dto.Exemplar{
		Label:     []*dto.LabelPair{{Name: new("trace_id"), Value: new(e.traceID)}},
		Value:     new(e.value),
		Timestamp: timestamppb.New(e.time),
	}
}

// nativeBuckets returns the buckets in the encoding of the protocol: runs of buckets, and of each count the
// difference to the count before. A gap of up to two buckets is cheaper filled with zeros than as a new run.
func (h *histogram) nativeBuckets() (spans []*dto.BucketSpan, deltas []int64) {
	var next int
	var previous int64
	for i, b := range h.native {
		gap := b.index - next
		if i == 0 || gap > 2 {
			spans = append(spans, &dto.BucketSpan{Offset: new(int32(gap)), Length: new(uint32(0))})
			gap = 0
		}
		for range gap {
			deltas = append(deltas, -previous)
			previous = 0
		}
		deltas = append(deltas, b.count-previous)
		previous = b.count
		*spans[len(spans)-1].Length += uint32(gap + 1)
		next = b.index + 1
	}
	return spans, deltas
}
