package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func newArrivals(t *testing.T, kind string, rate, burstiness float64, seed uint64) *Arrivals {
	t.Helper()
	a, err := NewArrivals(kind, rate, burstiness, seed)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// gapsOf returns the first n gaps in units of the mean gap.
func gapsOf(a *Arrivals, n int) []float64 {
	gaps := make([]float64, n)
	last := time.Duration(0)
	for i := range gaps {
		at := a.Next()
		gaps[i] = (at - last).Seconds() * a.rate
		last = at
	}
	return gaps
}

func TestConstantArrivalsDoNotDrift(t *testing.T) {
	a := newArrivals(t, Constant, 3, 1, 1)
	for n := range 3_000_000 {
		at := a.Next()
		if n%3 == 0 && at != time.Duration(n/3)*time.Second {
			t.Fatalf("arrival %d is due at %v, want %d s", n, at, n/3)
		}
		if n == 1 && at != 333_333_333*time.Nanosecond {
			t.Fatalf("the second arrival is due at %v, want a third of a second", at)
		}
	}
}

func TestSeedDecidesGaps(t *testing.T) {
	for _, kind := range []string{Poisson, Gamma} {
		draw := func(seed uint64) []float64 { return gapsOf(newArrivals(t, kind, 5, 1, seed), 100) }
		if !slices.Equal(draw(1), draw(1)) {
			t.Errorf("%s: one seed gave two schedules", kind)
		}
		if slices.Equal(draw(1), draw(2)) {
			t.Errorf("%s: two seeds gave the same schedule", kind)
		}
	}
}

// lowerGamma is the regularised lower incomplete gamma function P(a, x): the distribution function of the gamma
// distribution of shape a and scale 1, by its series.
func lowerGamma(a, x float64) float64 {
	if x <= 0 {
		return 0
	}
	term := 1 / a
	sum := term
	for n := 1.0; term > sum*1e-16; n++ {
		term *= x / (a + n)
		sum += term
	}
	lg, _ := math.Lgamma(a)
	return min(1, sum*math.Exp(a*math.Log(x)-x-lg))
}

func TestReferenceOfTheGammaDistribution(t *testing.T) {
	for _, x := range []float64{0.001, 0.1, 1, 3, 10, 30} {
		for _, tt := range []struct{ shape, want float64 }{
			{0.5, math.Erf(math.Sqrt(x))},
			{1, 1 - math.Exp(-x)},
			{4, 1 - math.Exp(-x)*(1+x+x*x/2+x*x*x/6)},
		} {
			if got := lowerGamma(tt.shape, x); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("P(%v, %v) = %v, want %v", tt.shape, x, got, tt.want)
			}
		}
	}
}

// distance is the Kolmogorov-Smirnov statistic of a sample and a distribution, times √n.
func distance(sample []float64, cdf func(float64) float64) float64 {
	sample = slices.Sorted(slices.Values(sample))
	n := float64(len(sample))
	d := 0.0
	for i, x := range sample {
		f := cdf(x)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	return d * math.Sqrt(n)
}

// critical is what the statistic exceeds in one of a thousand samples of the distribution.
const critical = 1.95

func TestGapsFollowTheirDistribution(t *testing.T) {
	exponential := func(x float64) float64 { return 1 - math.Exp(-x) }
	gammaOf := func(shape float64) func(float64) float64 {
		return func(x float64) float64 { return lowerGamma(shape, shape*x) }
	}
	tests := []struct {
		kind       string
		burstiness float64
		cdf        func(float64) float64
		wrong      func(float64) float64 // a near distribution, which the test must tell from it
	}{
		{Poisson, 1, exponential, gammaOf(0.9)},
		{Gamma, 1, exponential, gammaOf(1.1)},
		{Gamma, 0.25, gammaOf(0.25), gammaOf(0.28)},
		{Gamma, 0.5, gammaOf(0.5), exponential},
		{Gamma, 4, gammaOf(4), gammaOf(3.5)},
	}
	for _, tt := range tests {
		for _, seed := range []uint64{1, 2, 3, 4, 5} {
			t.Run(fmt.Sprintf("%s %v seed %d", tt.kind, tt.burstiness, seed), func(t *testing.T) {
				// A rate so low that the shortest gaps do not all round to 0 ns.
				const n, rate = 10000, 0.01
				gaps := gapsOf(newArrivals(t, tt.kind, rate, tt.burstiness, seed), n)
				if d := distance(gaps, tt.cdf); d > critical {
					t.Errorf("the distance from the distribution is %.2f/√n, want at most %.2f", d, critical)
				}
				if d := distance(gaps, tt.wrong); d < critical {
					t.Errorf("the distance from another distribution is only %.2f/√n", d)
				}
				mean, variation := moments(gaps)
				want := 1 / math.Sqrt(tt.burstiness)
				if off := math.Abs(mean - 1); off > 4*want/math.Sqrt(n) {
					t.Errorf("the mean gap is %.3f times 1/rate", mean)
				}
				if math.Abs(variation/want-1) > 0.1 {
					t.Errorf("the coefficient of variation is %.3f, want about %.3f", variation, want)
				}
			})
		}
	}
}

// moments returns the mean and the coefficient of variation.
func moments(sample []float64) (mean, variation float64) {
	for _, x := range sample {
		mean += x / float64(len(sample))
	}
	sum := 0.0
	for _, x := range sample {
		sum += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sum/float64(len(sample)-1)) / mean
}

func TestOffsetsOfExtremeRatesGoOnlyForward(t *testing.T) {
	for _, kind := range ArrivalKinds {
		for _, rate := range []float64{math.SmallestNonzeroFloat64, 1e-12, 1e12, math.MaxFloat64} {
			for _, burstiness := range []float64{math.SmallestNonzeroFloat64, 1, math.MaxFloat64} {
				if kind != Gamma && burstiness != 1 {
					continue
				}
				a := newArrivals(t, kind, rate, burstiness, 1)
				last := time.Duration(0)
				for range 1000 {
					at := a.Next()
					if at < last {
						t.Fatalf("%s, rate %v, burstiness %v: %v after %v", kind, rate, burstiness, at, last)
					}
					last = at
				}
			}
		}
	}
}

func TestArrivalsThatCannotBe(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		kind             string
		rate, burstiness float64
		want             string
	}{
		{"uniform", 1, 1, `unknown kind of arrivals "uniform": it must be one of constant, poisson, gamma`},
		{Poisson, 0, 1, "a rate of 0 requests a second: it must be a number more than 0"},
		{Poisson, -1, 1, "a rate of -1 "},
		{Constant, nan, 1, "a rate of NaN "},
		{Gamma, inf, 1, "a rate of +Inf "},
		{Gamma, 1, 0, "a burstiness of 0: it must be a number more than 0"},
		{Gamma, 1, -0.5, "a burstiness of -0.5: "},
		{Gamma, 1, nan, "a burstiness of NaN: "},
		{Gamma, 1, inf, "a burstiness of +Inf: "},
		{Poisson, 1, 0.5, "a burstiness of 0.5 with poisson arrivals: only gamma ones have a burstiness"},
		{Constant, 1, nan, "a burstiness of NaN with constant arrivals"},
	}
	for _, tt := range tests {
		if _, err := NewArrivals(tt.kind, tt.rate, tt.burstiness, 1); !strings.HasPrefix(fmt.Sprint(err), tt.want) {
			t.Errorf("%s, rate %v, burstiness %v: error %q, want %q", tt.kind, tt.rate, tt.burstiness, fmt.Sprint(err), tt.want)
		}
	}
}
