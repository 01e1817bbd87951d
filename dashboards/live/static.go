package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"

	"goodput_exporter/dashboards/chart"
)

//go:embed static
var files embed.FS

// asset is one file under /static/.
type asset struct {
	content []byte
	hash    string
}

// assets are the files by name.
var assets = func() map[string]asset {
	all := map[string]asset{"chart.css": newAsset([]byte(chart.CSS))}
	entries, err := fs.ReadDir(files, "static")
	if err != nil {
		panic(err) // they are a part of the program
	}
	for _, e := range entries {
		content, err := files.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		all[e.Name()] = newAsset(content)
	}
	return all
}()

func newAsset(content []byte) asset {
	sum := sha256.Sum256(content)
	return asset{content, hex.EncodeToString(sum[:8])}
}

// assetURL is where a page finds a file. It changes with the content, so that browsers may keep what they have.
func assetURL(name string) string { return "/static/" + name + "?v=" + assets[name].hash }

// static serves the files.
func static() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		a, ok := assets[name]
		if !ok || r.URL.Path != "/static/"+name {
			http.NotFound(w, r)
			return
		}
		caching := "no-cache"
		if r.URL.Query().Get("v") == a.hash {
			caching = "max-age=31536000, immutable"
		}
		w.Header().Set("Cache-Control", caching)
		w.Header().Set("ETag", `"`+a.hash+`"`)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(a.content))
	})
}
