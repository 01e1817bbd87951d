package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/text"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// The colours of a meaning are the same on every panel.
const (
	green, yellow, orange, red = "green", "yellow", "orange", "red"
	blue, purple, grey         = "blue", "purple", "#8e8e8e"
)

type queries = []cog.Builder[variants.Dataquery]

// line is a query over time, with the name of its series.
func line(legend, expr string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(expr).LegendFormat(legend).Range().
		Format(prometheus.PromQueryFormatTimeSeries).EditorMode(prometheus.QueryEditorModeCode)
}

// now is a query of this instant.
func now(legend, expr string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(expr).LegendFormat(legend).Instant().
		Format(prometheus.PromQueryFormatTimeSeries).EditorMode(prometheus.QueryEditorModeCode)
}

// timeSeries draws lines.
func timeSeries(title, description, unit string, q queries) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().
		Title(title).Description(description).Unit(unit).Targets(q).
		NoValue("No data").
		LineWidth(1.5).FillOpacity(0).ShowPoints(common.VisibilityModeNever).
		AxisBorderShow(false).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
}

// bars draws counts, each bar what happened in its own width, stacked.
func bars(title, description string, q queries) *timeseries.PanelBuilder {
	return timeSeries(title, description, "short", q).
		Interval("1m").MaxDataPoints(72).Min(0).Decimals(0).
		DrawStyle(common.GraphDrawStyleBars).FillOpacity(80).LineWidth(0).BarWidthFactor(0.8).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// stats draws the last values of queries as big figures.
func stats(title, description, unit string, q queries) *stat.PanelBuilder {
	return stat.NewPanelBuilder().
		Title(title).Description(description).Unit(unit).Targets(q).
		NoValue("No data").
		ReduceOptions(lastValue()).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeValue).
		TextMode(common.BigValueTextModeAuto).JustifyMode(common.BigValueJustifyModeAuto).
		Orientation(common.VizOrientationAuto).
		WideLayout(true).ShowPercentChange(false).PercentChangeColorMode(common.PercentChangeColorModeStandard)
}

func lastValue() cog.Builder[common.ReduceDataOptions] {
	return common.NewReduceDataOptionsBuilder().Values(false).Calcs([]string{"lastNotNull"}).Fields("")
}

// column is one column of a table: its name and the query of its values.
type column struct {
	name, expr string
	properties []dashboard.DynamicConfigValue
}

// tableOf draws one row for each combination of the labels, with the labels first. Queries that lack a combination
// leave its cell empty.
func tableOf(title, description string, labels []string, columns ...column) *table.PanelBuilder {
	b := table.NewPanelBuilder().
		Title(title).Description(description).Unit("none").
		NoValue("–").ShowHeader(true).CellHeight(common.TableCellHeightSm).Align("auto").
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{}).CountRows(false))
	names, order, hidden := map[string]string{}, map[string]int{}, map[string]bool{"Time": true}
	for _, l := range labels {
		order[l] = len(order)
	}
	for i, c := range columns {
		b.WithTarget(now("", c.expr).Format(prometheus.PromQueryFormatTable))
		field := "Value"
		if len(columns) > 1 {
			field += " #" + string(rune('A'+i))
		}
		names[field] = c.name
		order[field] = len(order)
		if len(c.properties) > 0 {
			b.OverrideByName(c.name, c.properties)
		}
	}
	if len(columns) > 1 {
		b.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	}
	return b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": hidden, "indexByName": order, "renameByName": names,
	}})
}

// heat draws how a histogram's observations, in seconds, move over time.
func heat(title, description, metric, selector string) *heatmap.PanelBuilder {
	expr := `sum by (le) (increase(` + metric + `{` + selector + `}[$__interval]))`
	return heatmap.NewPanelBuilder().
		Title(title).Description(description).
		WithTarget(line("{{le}}", expr).Format(prometheus.PromQueryFormatHeatmap)).
		Interval("1m").MaxDataPoints(90).
		Calculate(false).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").
			Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.5).Steps(64).Reverse(false).Fill("dark-orange")).
		FilterValues(heatmap.NewFilterValueRangeBuilder().Le(1e-9)).
		RowsFrame(heatmap.NewRowsHeatmapOptionsBuilder().Layout(common.HeatmapCellLayoutAuto)).
		ShowValue(common.VisibilityModeNever).CellGap(1).
		CellValues(heatmap.NewCellValuesBuilder().Unit("short")).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit("s").Reverse(false).AxisPlacement(common.AxisPlacementLeft)).
		ShowLegend().ExemplarsColor("rgba(31,96,196,0.9)").
		Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).YHistogram(false).ShowColorScale(false)).
		SelectionMode(heatmap.HeatmapSelectionModeX)
}

// strip draws the states of series over time.
func strip(title, description string, q queries) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().
		Title(title).Description(description).Targets(q).
		NoValue("No probes").Interval("1m").MaxDataPoints(60).
		ShowValue(common.VisibilityModeNever).MergeValues(false).RowHeight(0.85).
		AlignValue(common.TimelineValueAlignmentCenter).FillOpacity(85).LineWidth(1).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone))
}

// note is prose.
func note(title, markdown string) *text.PanelBuilder {
	return text.NewPanelBuilder().Title(title).Description(title).Mode(text.TextModeMarkdown).Content(markdown).
		Code(text.NewCodeOptionsBuilder().Language(text.CodeLanguagePlaintext).ShowLineNumbers(false).ShowMiniMap(false))
}

// steps are thresholds: the first colour below the first value, then pairs of value and colour.
func steps(base string, pairs ...step) cog.Builder[dashboard.ThresholdsConfig] {
	all := []dashboard.Threshold{{Color: base}}
	for _, p := range pairs {
		all = append(all, dashboard.Threshold{Value: ptr(p.from), Color: p.color})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(all)
}

type step struct {
	from  float64
	color string
}

// plainColor is that of text, for figures that are neither good nor bad.
func plainColor() cog.Builder[dashboard.FieldColor] {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdFixed).FixedColor("text")
}

// value is one entry of a mapping from numbers to words.
type value struct {
	number, text, color string
}

func words(values ...value) []dashboard.ValueMapping {
	options := map[string]dashboard.ValueMappingResult{}
	for i, v := range values {
		options[v.number] = dashboard.ValueMappingResult{Text: ptr(v.text), Color: ptr(v.color), Index: ptr(int32(i))}
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}}
}

// The properties of overrides.

func property(id string, v any) dashboard.DynamicConfigValue {
	if b, ok := v.(cog.Builder[dashboard.ThresholdsConfig]); ok {
		v, _ = b.Build() // steps never fails
	}
	return dashboard.DynamicConfigValue{Id: id, Value: v}
}

func colored(color string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{property("color", map[string]any{"mode": "fixed", "fixedColor": color})}
}

func width(pixels int) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{property("custom.width", pixels)}
}

// dashed is a reference line, such as a limit or an objective: not measured.
func dashed(color string) []dashboard.DynamicConfigValue {
	return append(colored(color),
		property("custom.lineStyle", map[string]any{"fill": "dash", "dash": []int{8, 6}}),
		property("custom.lineWidth", 2),
		property("custom.fillOpacity", 0))
}

func thresholds(t cog.Builder[dashboard.ThresholdsConfig]) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{property("thresholds", t), property("color", map[string]any{"mode": "thresholds"})}
}

// listOnTheRight is a legend for many series with long names.
func listOnTheRight() cog.Builder[common.VizLegendOptions] {
	return common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).
		Placement(common.LegendPlacementRight).Calcs([]string{})
}

// besideThroughput draws throughput thin and dashed, and goodput as the figure that counts.
func besideThroughput(b *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return b.
		OverrideByRegexp("/throughput$/", append(colored(orange), property("custom.lineWidth", 1),
			property("custom.lineStyle", map[string]any{"fill": "dash", "dash": []int{6, 6}}))).
		OverrideByRegexp("/goodput$/", append(colored(green), property("custom.lineWidth", 2.5), property("custom.fillOpacity", 12)))
}
