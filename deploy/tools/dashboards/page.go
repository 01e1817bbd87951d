package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// tag is on every dashboard; their links to one another go by it.
const tag = "goodput"

// gridWidth is the number of columns of Grafana's grid.
const gridWidth = 24

// classicDashboard is what every Grafana imports and provisions; the SDK would rather have us write its newest format.
type classicDashboard = dashboard.Dashboard //nolint:staticcheck // deprecated in favour of that format

// page is one dashboard: what differs between ours.
type page struct {
	uid, title, description string
	from, refresh           string // of the time picker, such as now-6h; how often to draw anew
	variables               []cog.Builder[dashboard.VariableModel]
	sections                []section
}

// section is a row and the panels under it. They flow from left to right, line by line.
type section struct {
	title     string
	collapsed bool
	repeat    string // variable: one row for each of its values
	panels    []placed
}

// placed is a panel and its size in grid units.
type placed struct {
	width, height uint32
	panel         cog.Builder[dashboard.Panel]
}

// build gives the whole dashboard, with everything that all have in common, and that the SDK's builders leave to
// Grafana's editor: ids, positions, data sources, names of queries.
func (p page) build() (classicDashboard, error) {
	b := dashboard.NewDashboardBuilder(p.title). //nolint:staticcheck // see classicDashboard
							Uid(p.uid).
							Description(p.description).
							Tags([]string{tag}).
							Readonly().
							Tooltip(dashboard.DashboardCursorSyncCrosshair).
							Time(p.from, "now").
							Refresh(p.refresh).
							Timezone("browser").
							Variables(slices.Concat([]cog.Builder[dashboard.VariableModel]{dataSourceVariable()}, p.variables)).
							Annotations(annotations()).
							Link(dashboard.NewDashboardLinkBuilder("Goodput").Type(dashboard.DashboardLinkTypeDashboards).
								Tags([]string{tag}).IncludeVars(true).KeepTime(true)).
							Link(dashboard.NewDashboardLinkBuilder("Runbooks").Type(dashboard.DashboardLinkTypeLink).
								Icon("doc").Url(runbooks).TargetBlank(true))
	d, err := b.Build()
	if err != nil {
		return classicDashboard{}, err
	}

	l := layout{}
	for _, s := range p.sections {
		if err := l.add(s); err != nil {
			return classicDashboard{}, fmt.Errorf("row %q: %w", s.title, err)
		}
	}
	d.Panels = l.panels

	// The SDK puts links and annotations into the menu of Grafana 13; ours are to be seen.
	for i := range d.Links {
		d.Links[i].Placement = nil
	}
	for i := range d.Annotations.List {
		d.Annotations.List[i].Placement = nil
	}
	return d, nil
}

// layout places panels on the grid and numbers them.
type layout struct {
	panels []dashboard.PanelOrRowPanel
	id, y  uint32
}

func (l *layout) add(s section) error {
	row := dashboard.NewRowPanel()
	row.Id = l.nextID()
	row.Title = &s.title
	row.Collapsed = s.collapsed
	row.GridPos = &dashboard.GridPos{X: 0, Y: l.y, W: gridWidth, H: 1}
	if s.repeat != "" {
		row.Repeat = &s.repeat
	}
	l.y++

	panels := make([]dashboard.Panel, 0, len(s.panels))
	var x, height uint32
	for _, p := range s.panels {
		if x+p.width > gridWidth {
			l.y += height
			x, height = 0, 0
		}
		panel, err := l.finish(p)
		if err != nil {
			return err
		}
		panel.GridPos = &dashboard.GridPos{X: x, Y: l.y, W: p.width, H: p.height}
		x += p.width
		height = max(height, p.height)
		panels = append(panels, panel)
	}
	l.y += height

	// Grafana keeps the panels of a closed row inside the row, and those of an open one behind it. Closed rows come last
	// on our pages, so that they leave no gap.
	if s.collapsed {
		row.Panels = panels
	}
	l.panels = append(l.panels, dashboard.PanelOrRowPanel{RowPanel: row})
	if !s.collapsed {
		for i := range panels {
			l.panels = append(l.panels, dashboard.PanelOrRowPanel{Panel: &panels[i]})
		}
	}
	return nil
}

// finish builds a panel, and gives it and its queries what makes them whole.
func (l *layout) finish(p placed) (dashboard.Panel, error) {
	panel, err := p.panel.Build()
	if err != nil {
		return dashboard.Panel{}, err
	}
	id := l.nextID()
	panel.Id = &id
	if panel.Type == "text" {
		return panel, nil
	}
	source := dataSource()
	panel.Datasource = &source
	metrics := map[string]struct{}{}
	for i, target := range panel.Targets {
		query := target.(prometheus.Dataquery)
		name := string(rune('A' + i))
		query.RefId = &name
		query.Datasource = &source
		panel.Targets[i] = query
		for _, m := range metricName.FindAllString(query.Expr, -1) {
			metrics[m] = struct{}{}
		}
	}
	description := *panel.Description + "\n\nMetrics: `" + strings.Join(slices.Sorted(maps.Keys(metrics)), "`, `") + "`"
	panel.Description = &description
	return panel, nil
}

// metricName finds the metrics of an expression, macros in their names included.
var metricName = regexp.MustCompile(`\b(slo:|goodput_|vllm:|inference_|go_|process_|scrape_|promhttp_|up\b|ALERTS)[\w:]*(\$\{\w+\}\w*)?`)

func (l *layout) nextID() uint32 {
	l.id++
	return l.id
}

// dataSource is the one that the reader chooses at the top: nothing else is to be edited on import.
func dataSource() common.DataSourceRef {
	kind, uid := "prometheus", "${datasource}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}

// annotations mark firing alerts and loads of the configuration on every time axis.
func annotations() []cog.Builder[dashboard.AnnotationQuery] {
	return []cog.Builder[dashboard.AnnotationQuery]{
		dashboard.NewAnnotationQueryBuilder().Name("Firing alerts").Datasource(dataSource()).Enable(true).IconColor("red").
			Expr(`ALERTS{alertname=~"Goodput.*",alertstate="firing",severity=~"critical|warning"}`).Step("60s").
			TitleFormat("{{alertname}} ({{severity}})").TextFormat("{{target}} {{scenario}} {{slo}}").TagKeys("severity"),
		dashboard.NewAnnotationQueryBuilder().Name("Configuration loaded").Datasource(dataSource()).Enable(true).IconColor("blue").
			Expr(`goodput_config_last_reload_success_timestamp_seconds{job=~"$job"} * 1000`).Step("60s").UseValueForTime(true).
			TitleFormat("Configuration loaded").TextFormat("{{instance}}"),
	}
}
