// Command dashboards writes the Grafana dashboards as classic JSON, which Grafana imports and provisions as it is.
//
//	go run ./dashboards -out ../../dashboards
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// all builds every dashboard, by the name of its file.
func all() (map[string]classicDashboard, error) {
	built := map[string]classicDashboard{}
	for name, page := range map[string]page{
		"goodput-overview.json": overview(),
		"goodput-target.json":   target(),
		"goodput-oncall.json":   onCall(),
		"goodput-prober.json":   prober(),
	} {
		d, err := page.build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		built[name] = d
	}
	return built, nil
}

var readable = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// encode gives the bytes of a dashboard's file.
func encode(d classicDashboard) ([]byte, error) {
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, err
	}
	// The SDK escapes for HTML, of which a query with a comparison is hard to read.
	return []byte(readable.Replace(string(data)) + "\n"), nil
}

func run(dir string) error {
	built, err := all()
	if err != nil {
		return err
	}
	for name, d := range built {
		data, err := encode(d)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	out := flag.String("out", ".", "directory to write the dashboards into")
	flag.StringVar(&runbooks, "runbooks", runbooks, "address of the runbooks, as in the alerts' runbook_url without its anchor")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}
