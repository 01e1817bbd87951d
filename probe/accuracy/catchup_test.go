//go:build bench && linux

package accuracy

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	catchUpStreams = 64
	catchUpTime    = 2 * time.Second // of one client in one repeat
)

// catchUp is how many streams a client on one core follows that come as fast as it asks for them.
type catchUp struct {
	plain, ours []catchUpFigures
}

type catchUpFigures struct {
	rate           float64 // streams a second
	cpu            float64 // seconds per 1,000 streams
	allocsPerEvent float64
}

// runCatchUp lets the clients take whole streams, each of one write, in turns. The server has a core of its own.
func runCatchUp(t *testing.T, out io.Writer, repeats int) catchUp {
	t.Helper()
	long := startTruthServer(t, truthSettings{Mode: "batch", Tokens: pacedTokens}, "GOMAXPROCS=1")
	short := startTruthServer(t, truthSettings{Mode: "batch", Tokens: 28}, "GOMAXPROCS=1")
	defer apart(t, out, long, short)()

	var c catchUp
	for i := range repeats {
		fmt.Fprintf(out, "repeat %d of %d: catch-up\n", i+1, repeats)
		c.plain = append(c.plain, measureCatchUp(t, newPlain, long, short))
		c.ours = append(c.ours, measureCatchUp(t, newOurs, long, short))
	}
	return c
}

// apart confines this process to one core and the servers to another, until the returned function is called.
func apart(t *testing.T, out io.Writer, servers ...*truthServer) (again func()) {
	t.Helper()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	if before.Count() < 2 {
		fmt.Fprintln(out, "there are no two cores, so client and server share one")
	}
	for _, s := range servers {
		pin(t, s.cmd.Process.Pid, core(1%before.Count()))
	}
	procs := runtime.GOMAXPROCS(1)
	pin(t, os.Getpid(), core(0))
	return func() {
		pin(t, os.Getpid(), before)
		runtime.GOMAXPROCS(procs)
	}
}

func measureCatchUp(t *testing.T, newClient func(*testing.T, *truthServer) client, long, short *truthServer) catchUpFigures {
	t.Helper()
	take := func(s *truthServer, d time.Duration) run {
		c := newClient(t, s)
		defer c.close()
		end := time.Now().Add(d)
		return follow(t, c, catchUpStreams, func(int) bool { return time.Now().Before(end) })
	}
	r, few := take(long, catchUpTime), take(short, catchUpTime/4)
	perStream := func(r run) float64 { return float64(r.allocs) / float64(len(r.streams)) }
	return catchUpFigures{
		rate: float64(len(r.streams)) / r.took.Seconds(), cpu: r.cpuPer1000(),
		allocsPerEvent: (perStream(r) - perStream(few)) / (pacedTokens - 28),
	}
}

func (c catchUp) figures(figure func(catchUpFigures) float64) (plain, ours, ratio []float64) {
	for i := range c.ours {
		p, o := figure(c.plain[i]), figure(c.ours[i])
		plain, ours, ratio = append(plain, p), append(ours, o), append(ratio, o/p)
	}
	return plain, ours, ratio
}

func (c catchUp) goals() []goal {
	_, _, rate := c.figures(func(f catchUpFigures) float64 { return f.rate })
	_, allocs, _ := c.figures(func(f catchUpFigures) float64 { return f.allocsPerEvent })
	return []goal{
		atLeast(0.8, "x plain", "catch-up on one core: streams a second", rate),
		// encoding/json allocates ten times and more for an event.
		atMost(1, "allocations", "no JSON decoding of each event", allocs),
	}
}

func (c catchUp) print(w io.Writer) {
	fmt.Fprintln(w, "catch-up\tplain\tours\tours / plain")
	for _, row := range []struct {
		name   string
		figure func(catchUpFigures) float64
	}{
		{"streams/s", func(f catchUpFigures) float64 { return f.rate }},
		{"CPU-s/1,000", func(f catchUpFigures) float64 { return f.cpu }},
		{"allocations per event", func(f catchUpFigures) float64 { return f.allocsPerEvent }},
	} {
		plain, ours, ratio := c.figures(row.figure)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", row.name, spread(plain), spread(ours), spread(ratio))
	}
}
