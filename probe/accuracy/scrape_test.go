//go:build bench && linux

package accuracy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// scrape is how long a scrape of 1,000 series takes, in milliseconds, by peer and format. It is measured by the
// collector's own benchmark, whose peer is client_golang with as many series.
type scrape map[string][]float64

const (
	scrapePackage = "goodput_exporter/collector"
	scrapePattern = "^BenchmarkScrape$/./^text(-gzip)?$"
)

func runScrape(t *testing.T, out io.Writer, repeats int) scrape {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "collector.test")
	if output, err := exec.Command("go", "test", "-c", "-o", binary, scrapePackage).CombinedOutput(); err != nil {
		t.Fatalf("building the benchmark of the collector: %v\n%s", err, output)
	}
	s := scrape{}
	for i := range repeats {
		fmt.Fprintf(out, "repeat %d of %d: scrape\n", i+1, repeats)
		output, err := exec.Command(binary, "-test.run=^$", "-test.bench="+scrapePattern, "-test.benchtime=5x").CombinedOutput()
		if err != nil {
			t.Fatalf("the benchmark of the collector: %v\n%s", err, output)
		}
		for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
			s.add(lines.Text())
		}
	}
	return s
}

// add takes a line such as "BenchmarkScrape/collector/text-2  10  28123456 ns/op ...".
func (s scrape) add(line string) {
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[3] != "ns/op" {
		return
	}
	name, _ := strings.CutPrefix(fields[0], "BenchmarkScrape/")
	if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of cores; there is none where it is 1
		if _, err := strconv.Atoi(name[i+1:]); err == nil {
			name = name[:i]
		}
	}
	if ns, err := strconv.ParseFloat(fields[2], 64); err == nil {
		s[name] = append(s[name], ns/1e6)
	}
}

// ratio returns the collector's times as multiples of client_golang's.
func (s scrape) ratio(format string) []float64 {
	var values []float64
	for i, peer := range s["client_golang/"+format] {
		values = append(values, s["collector/"+format][i]/peer)
	}
	return values
}

func (s scrape) goals() []goal {
	return []goal{
		atMost(1, "x client_golang", "scrape, text", s.ratio("text")),
		atMost(1, "x client_golang", "scrape, gzip", s.ratio("text-gzip")),
	}
}

func (s scrape) print(w io.Writer) {
	fmt.Fprintln(w, "scrape, in process\tclient_golang ms\tours ms\tours / client_golang")
	for _, format := range []string{"text", "text-gzip"} {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", format, spread(s["client_golang/"+format]), spread(s["collector/"+format]), spread(s.ratio(format)))
	}
}
