package collector

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestHistogramIsThatOfClientGolang compares what both expose after the same observations.
func TestHistogramIsThatOfClientGolang(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		name  string
		n     int
		value func(i int) float64
	}{
		{"none", 0, nil},
		{"zeros", 3, func(int) float64 { return 0 }},
		{"powers of two, at the edges of buckets", 12, func(i int) float64 { return math.Ldexp(1, i-6) }},
		{"latencies", 1000, func(int) float64 { return 0.2 * math.Exp(random.NormFloat64()) }},
		{"single observations far apart", 20, func(i int) float64 { return math.Pow(1.7, float64(i-10)) }},
		{"lengths", 500, func(int) float64 { return float64(random.IntN(5000)) }},
		{"more buckets than may be", 5000, func(int) float64 { return math.Exp(random.Float64()*30 - 15) }},
		{"many more", 5000, func(int) float64 { return math.Exp(random.Float64()*120 - 60) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bounds := ttftBuckets.full
			ours := &histogram{family: &family{bounds: bounds}, classic: make([]uint64, len(bounds))}
			theirs := prometheus.NewHistogram(prometheus.HistogramOpts{
				Name: "h", Buckets: bounds, NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: maxNativeBuckets,
			})
			for i := range tc.n {
				v := tc.value(i)
				ours.observe(v)
				theirs.Observe(v)
			}
			var want dto.Metric
			if err := theirs.Write(&want); err != nil {
				t.Fatal(err)
			}
			got := ours.snapshot(nil).histogram
			want.Histogram.CreatedTimestamp = nil
			if diff := cmp.Diff(want.Histogram, got, cmpopts.IgnoreUnexported(
				dto.Histogram{}, dto.Bucket{}, dto.BucketSpan{},
			), cmpopts.EquateEmpty(), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Errorf("-client_golang +ours:\n%s", diff)
			}
		})
	}
}

func TestHistogramExemplars(t *testing.T) {
	h := &histogram{family: &family{bounds: []float64{1, 2}}, classic: make([]uint64, 2)}
	h.observe(0.5)
	h.observeWithExemplar(1.5, "first", sentAt)
	h.observeWithExemplar(1.6, "second", sentAt.Add(time.Second))
	h.observeWithExemplar(7, "third", sentAt)

	got := map[float64]string{}
	for _, b := range h.snapshot(nil).histogram.GetBucket() {
		if e := b.GetExemplar(); e != nil {
			got[b.GetUpperBound()] = e.GetLabel()[0].GetValue()
		}
	}
	if diff := cmp.Diff(map[float64]string{2: "second", math.Inf(1): "third"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHistogramOfAClockThatStepped(t *testing.T) {
	h := &histogram{family: &family{}}
	h.observe(-1)
	if got := h.snapshot(nil).histogram; got.GetSampleSum() != 0 || got.GetZeroCount() != 1 {
		t.Errorf("sum %g, %d zeros, want 0 and 1", got.GetSampleSum(), got.GetZeroCount())
	}
}
