// Command manifests copies into the Helm chart what a chart cannot read from outside of itself: the rules and the
// dashboards. The tests beside it check everything in deploy that is no Go and no rule.
//
//	go generate ./manifests
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . -root ../../..

const chart = "deploy/helm/goodput-exporter"

func main() {
	root := flag.String("root", "../..", "root of the repository")
	flag.Parse()
	if err := update(*root); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

// copies returns what the chart must hold, by path below the chart's directory files.
func copies(root string) (map[string][]byte, error) {
	dashboards, err := filepath.Glob(filepath.Join(root, "dashboards", "*.json"))
	if err != nil {
		return nil, err
	}
	sources := map[string]string{"prometheusrule.yaml": root + "/deploy/rules/prometheusrule.yaml"}
	for _, path := range dashboards {
		sources["dashboards/"+filepath.Base(path)] = path
	}
	files := make(map[string][]byte, len(sources))
	for name, path := range sources {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	return files, nil
}

// update makes the directory files of the chart hold the copies, and nothing else.
func update(root string) error {
	files, err := copies(root)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, chart, "files")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
