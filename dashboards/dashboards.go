// Package dashboards holds the Grafana dashboards, as classic JSON. deploy/tools/dashboards generates them.
package dashboards

import "embed"

// JSON has one file a dashboard.
//
//go:embed *.json
var JSON embed.FS
