// Command rules writes the rules of deploy/rules as a PrometheusRule of the Prometheus operator, with the addresses of
// your runbooks and of your Grafana in their annotations.
//
//	go run ./rules -o ../rules/prometheusrule.yaml
//	go run ./rules -grafana=https://grafana.example.org/d -runbooks=https://wiki.example.org/goodput | kubectl apply -f -
package main

import (
	"flag"
	"fmt"
	"os"
)

//go:generate go run . -rules ../../rules -o ../../rules/prometheusrule.yaml

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("rules", "../rules", "directory of the rule files")
	output := flag.String("o", "", "file to write; standard output if empty")
	urls := defaultAddresses
	flag.StringVar(&urls.runbooks, "runbooks", urls.runbooks, "address of the page with a section for each alert")
	flag.StringVar(&urls.grafana, "grafana", urls.grafana, "address before the uid of a dashboard")
	flag.Parse()

	manifest, err := prometheusRule(*dir, urls)
	if err != nil {
		return err
	}
	if *output == "" {
		_, err = os.Stdout.Write(manifest)
		return err
	}
	return os.WriteFile(*output, manifest, 0o644)
}
