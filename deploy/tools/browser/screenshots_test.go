package browser

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var (
	screenshots = flag.String("screenshots", "", "write the README's pictures into this folder")
	age         = flag.Duration("age", 4*time.Minute, "how long the demo runs before -screenshots")
)

// TestScreenshots writes the pictures of the README:
//
//	go test ./browser -run Screenshots -screenshots ../../../dashboards/live/pictures -timeout 15m
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no -screenshots=DIR")
	}
	browser := startBrowser(t)
	s := &site{startDaemon(t, "--journal.path="+writePast(t)), browser}
	time.Sleep(*age)
	const desktop = 1280
	for _, picture := range []struct {
		name, path    string
		width, height int64
		scale         float64
		scheme        string
	}{
		{"overview", overview, desktop, 560, 1, "light"},
		{"overview-dark", overview, desktop, 560, 1, "dark"},
		{"series", degradedSeries, desktop, 1080, 1, "light"},
		{"story", s.failure(t), desktop, 860, 1, "light"},
		{"phone", overview, 360, 780, 2, "light"},
	} {
		t.Run(picture.name, func(t *testing.T) {
			b := s.open(t, picture.path, chromedp.EmulateViewport(picture.width, picture.height, chromedp.EmulateScale(picture.scale)), scheme(picture.scheme))
			if b.all("main", "data-page")[0] != "story" {
				b.until(`document.querySelector("#connection[data-connection=live]")`)
			}
			shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(*screenshots, picture.name+".png"), shot)
		})
	}
}

// write writes a picture as small as it can be.
func write(t *testing.T, path string, shot []byte) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, picture); err != nil {
		t.Fatal(err)
	}
	if small.Len() > len(shot) {
		small = *bytes.NewBuffer(shot)
	}
	if small.Len() > 250<<10 {
		t.Errorf("%s has %d KiB, more than a README should load", path, small.Len()>>10)
	}
	if err := os.WriteFile(path, small.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
