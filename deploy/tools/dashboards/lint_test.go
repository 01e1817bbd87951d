package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// load decodes the committed dashboards as strictly as the SDK can: unknown keys, wrong types and missing ones fail.
func load(t *testing.T) map[string]classicDashboard {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	files, err := filepath.Glob(filepath.Join(committed, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards in %s: %v", committed, err)
	}
	loaded := map[string]classicDashboard{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var strict, d classicDashboard
		if err := strict.UnmarshalJSONStrict(data); err != nil && err.Error() != "" {
			t.Errorf("%s: %v", file, err)
			continue
		}
		// The SDK's strict decoding returns an empty list of errors as an error, and loses what it belongs to.
		if err := json.Unmarshal(data, &d); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		loaded[filepath.Base(file)] = d
	}
	return loaded
}

// panelsOf lists all panels, those of closed rows among them.
func panelsOf(d classicDashboard) []dashboard.Panel {
	var all []dashboard.Panel
	for _, p := range d.Panels {
		if p.Panel != nil {
			all = append(all, *p.Panel)
		} else {
			all = append(all, p.RowPanel.Panels...)
		}
	}
	return all
}

func queriesOf(p dashboard.Panel) []prometheus.Dataquery {
	all := make([]prometheus.Dataquery, 0, len(p.Targets))
	for _, target := range p.Targets {
		switch q := target.(type) {
		case prometheus.Dataquery:
			all = append(all, q)
		case *prometheus.Dataquery:
			all = append(all, *q)
		default:
			panic(fmt.Sprintf("%s: a query of type %T", *p.Title, target))
		}
	}
	return all
}

func TestCommittedDashboardsAreCurrent(t *testing.T) {
	built, err := all()
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range built {
		want, err := encode(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(committed, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("dashboards/%s is stale: run go run ./dashboards -out ../../dashboards in deploy/tools", name)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(committed, "*.json")); len(files) != len(built) {
		t.Errorf("%d files in dashboards, %d dashboards built", len(files), len(built))
	}
}

var uid = regexp.MustCompile(`^[a-z-]{8,40}$`)

func TestDashboardsHaveWhatAllOfThemNeed(t *testing.T) {
	seen := map[string]string{}
	for name, d := range load(t) {
		problem := func(ok bool, what string) {
			if !ok {
				t.Errorf("%s: %s", name, what)
			}
		}
		problem(d.Uid != nil && uid.MatchString(*d.Uid), "uid is missing, or no short slug")
		problem(seen[*d.Uid] == "", "uid is that of "+seen[*d.Uid])
		seen[*d.Uid] = name
		problem(d.Id == nil, "id is set: Grafana gives it")
		problem(d.Title != nil && *d.Title != "" && d.Description != nil && *d.Description != "", "no title or description")
		problem(slices.Equal(d.Tags, []string{tag}), "tags are not the common one")
		problem(d.Editable != nil && !*d.Editable, "is editable")
		problem(d.GraphTooltip != nil && *d.GraphTooltip == dashboard.DashboardCursorSyncCrosshair, "no shared crosshair")
		problem(d.Refresh != nil && regexp.MustCompile(`^\d+[sm]$`).MatchString(*d.Refresh), "no refresh")
		problem(d.SchemaVersion >= 39, "schemaVersion is too old")
		problem(len(d.Annotations.List) == 2, "lacks the annotations")
		for _, a := range d.Annotations.List {
			problem(*a.Datasource.Uid == "${datasource}", "annotation "+a.Name+" has a data source of its own")
		}
	}
}

func TestVariablesAskTheChosenDataSource(t *testing.T) {
	for name, d := range load(t) {
		all := d.Templating.List
		if v := all[0]; v.Name != "datasource" || v.Type != "datasource" || *v.Label != "Data source" || *v.Query.String != "prometheus" {
			t.Errorf("%s: the first variable is not the data source", name)
		}
		text, err := encode(d)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, v := range all {
			if seen[v.Name] {
				t.Errorf("%s: two variables %s", name, v.Name)
			}
			seen[v.Name] = true
			if v.Label == nil || *v.Label == "" {
				t.Errorf("%s: variable %s has no label", name, v.Name)
			}
			if !regexp.MustCompile(`\$\{?` + v.Name + `\b`).Match(text) {
				t.Errorf("%s: variable %s is used nowhere", name, v.Name)
			}
			switch v.Type {
			case "query":
				if *v.Datasource.Uid != "${datasource}" || *v.Refresh != dashboard.VariableRefreshOnTimeRangeChanged {
					t.Errorf("%s: variable %s asks another data source, or only once", name, v.Name)
				}
				if *v.Multi && (!*v.IncludeAll || v.AllValue == nil || *v.AllValue != ".+") {
					t.Errorf("%s: variable %s takes several values, but not all by .+", name, v.Name)
				}
			case "custom":
				if len(v.Options) < 2 || v.Current == nil {
					t.Errorf("%s: variable %s has no choice", name, v.Name)
				}
			}
		}
		if !seen["job"] {
			t.Errorf("%s: no variable job", name)
		}
		for _, use := range regexp.MustCompile(`\$\{?(\w+)`).FindAllSubmatch(text, -1) {
			if v := string(use[1]); !seen[v] && !strings.HasPrefix(v, "__") {
				t.Errorf("%s: $%s is no variable", name, v)
			}
		}
	}
}

func TestPanelsStandInTheGrid(t *testing.T) {
	for name, d := range load(t) {
		var taken [][4]uint32
		ids := map[uint32]bool{}
		place := func(id uint32, title string, g *dashboard.GridPos) {
			if ids[id] || id == 0 {
				t.Errorf("%s: %s: id %d is not its own", name, title, id)
			}
			ids[id] = true
			if g.W == 0 || g.H == 0 || g.X+g.W > gridWidth {
				t.Errorf("%s: %s is out of the grid", name, title)
			}
			for _, o := range taken {
				if g.X < o[0]+o[2] && o[0] < g.X+g.W && g.Y < o[1]+o[3] && o[1] < g.Y+g.H {
					t.Errorf("%s: %s overlaps another panel", name, title)
				}
			}
			taken = append(taken, [4]uint32{g.X, g.Y, g.W, g.H})
		}
		for _, p := range d.Panels {
			if p.RowPanel != nil {
				place(p.RowPanel.Id, *p.RowPanel.Title, p.RowPanel.GridPos)
				if p.RowPanel.Panels == nil {
					t.Errorf("%s: row %s: panels is null", name, *p.RowPanel.Title)
				}
			}
		}
		for _, p := range panelsOf(d) {
			place(*p.Id, *p.Title, p.GridPos)
		}
	}
}

// units are those of Grafana that we use; the decoder takes any string.
var units = map[string]bool{
	"s": true, "percentunit": true, "none": true, "short": true, "reqps": true, "bytes": true, "currencyUSD": true, "dateTimeFromNow": true,
}

func knownUnit(u string) bool {
	return units[u] || strings.HasPrefix(u, "suffix:") && len(u) > len("suffix:")
}

// propertyIDs are what an override may set; Grafana ignores others without a word.
var propertyIDs = map[string]bool{
	"unit": true, "decimals": true, "min": true, "max": true, "color": true, "thresholds": true, "mappings": true, "links": true,
	"custom.width": true, "custom.cellOptions": true, "custom.lineWidth": true, "custom.lineStyle": true, "custom.fillOpacity": true,
	"custom.fillBelowTo": true, "custom.hideFrom": true, "custom.axisPlacement": true,
}

func TestPanelsSayWhatTheyShow(t *testing.T) {
	kinds := []string{"timeseries", "stat", "table", "heatmap", "state-timeline", "text"}
	for name, d := range load(t) {
		titles := map[string]bool{}
		for _, p := range panelsOf(d) {
			where := name + ": " + *p.Title
			if *p.Title == "" || titles[*p.Title] {
				t.Errorf("%s: the title is empty, or another panel's too", where)
			}
			titles[*p.Title] = true
			if !slices.Contains(kinds, p.Type) {
				t.Errorf("%s: unknown kind %q", where, p.Type)
			}
			if p.Type == "text" {
				continue
			}
			if p.Description == nil || len(*p.Description) < 40 || !strings.Contains(*p.Description, "Metrics: `") {
				t.Errorf("%s: no description that names its metrics", where)
			}
			if *p.Datasource.Uid != "${datasource}" {
				t.Errorf("%s: a data source of its own", where)
			}
			lintFields(t, where, p)
			lintTargets(t, where, p)
		}
	}
}

func lintFields(t *testing.T, where string, p dashboard.Panel) {
	t.Helper()
	config := p.FieldConfig
	if p.Type != "heatmap" && p.Type != "state-timeline" && (config.Defaults.Unit == nil || !knownUnit(*config.Defaults.Unit)) {
		t.Errorf("%s: no unit, or none of Grafana's", where)
	}
	names := legendsOf(p)
	for _, o := range config.Overrides {
		for _, property := range o.Properties {
			if !propertyIDs[property.Id] {
				t.Errorf("%s: an override sets %q", where, property.Id)
			}
			if u, ok := property.Value.(string); ok && property.Id == "unit" && !knownUnit(u) {
				t.Errorf("%s: an override's unit is %q", where, u)
			}
		}
		if name, ok := o.Matcher.Options.(string); ok && o.Matcher.Id == "byName" && !names[name] && !byLabel(names) {
			t.Errorf("%s: an override is for %q, which the panel does not have", where, name)
		}
	}
}

// byLabel says whether series are named by a label alone, whose values are not known here.
func byLabel(names map[string]bool) bool {
	return names["{{outcome}}"] || names["{{slo}}"]
}

// legendsOf lists the names that a panel's series or columns can have.
func legendsOf(p dashboard.Panel) map[string]bool {
	names := map[string]bool{}
	for _, q := range queriesOf(p) {
		names[*q.LegendFormat] = true
	}
	for _, transformation := range p.Transformations {
		options, _ := transformation.Options.(map[string]any)
		for _, key := range []string{"renameByName", "indexByName"} {
			renamed, _ := options[key].(map[string]any)
			for from, to := range renamed {
				names[from] = true
				if s, ok := to.(string); ok {
					names[s] = true
				}
			}
		}
	}
	return names
}

func lintTargets(t *testing.T, where string, p dashboard.Panel) {
	t.Helper()
	formats := map[string]prometheus.PromQueryFormat{"table": prometheus.PromQueryFormatTable, "heatmap": prometheus.PromQueryFormatHeatmap}
	want, ok := formats[p.Type]
	if !ok {
		want = prometheus.PromQueryFormatTimeSeries
	}
	refs := map[string]bool{}
	for _, q := range queriesOf(p) {
		if q.RefId == nil || refs[*q.RefId] {
			t.Errorf("%s: a refId is missing, or there twice", where)
		}
		refs[*q.RefId] = true
		if *q.Datasource.Uid != "${datasource}" || *q.Datasource.Type != "prometheus" {
			t.Errorf("%s: query %s has a data source of its own", where, *q.RefId)
		}
		if *q.Format != want {
			t.Errorf("%s: query %s has the format %s", where, *q.RefId, *q.Format)
		}
	}
	if len(refs) == 0 {
		t.Errorf("%s: no query", where)
	}
}

// expand puts values for macros and variables into an expression: each window and each form of histogram once, since
// they make other names of metrics.
func expand(d classicDashboard, expr string) []string {
	expanded := []string{strings.NewReplacer("$__rate_interval", "1m", "$__interval", "1m").Replace(expr)}
	for _, v := range d.Templating.List {
		var values []string
		for _, o := range v.Options {
			values = append(values, *o.Value.String)
		}
		if len(values) == 0 {
			values = []string{".+"}
		}
		use := regexp.MustCompile(`\$\{` + v.Name + `\}|\$` + v.Name + `\b`)
		var next []string
		for _, e := range expanded {
			if !use.MatchString(e) {
				next = append(next, e)
				continue
			}
			for _, value := range values {
				next = append(next, use.ReplaceAllLiteralString(e, value))
			}
		}
		expanded = next
	}
	return expanded
}

// exceptions are queries that may break a rule, each with the reason.
var exceptions = map[string]string{
	"no job: slo:goodput_slo_error_budget:ratio":   "joined on the key of the SLO, of which job is a part",
	"no job: slo:goodput_slo_window_fill:ratio_1h": "joined on the key of the SLO, of which job is a part",
	"no job: ALERTS":                                            "absent exporters have alerts without the chosen job, and must be seen; other uses are joined on the key of the SLO",
	"no job: ALERTS_FOR_STATE":                                  "joined with ALERTS",
	"no job: vllm:time_to_first_token_seconds_bucket":           "the server is another job",
	"no job: vllm:request_time_per_output_token_seconds_bucket": "the server is another job",
	"no job: vllm:num_requests_running":                         "the server is another job",
	"no job: vllm:num_requests_waiting":                         "the server is another job",
	"no job: vllm:kv_cache_usage_perc":                          "the server is another job",
}

// ranges are what a counter may be rated over. $__rate_interval is a few probes only: it is for the strip of single
// minutes and for the process. $__interval gives bars that count what happened in their own width.
var ranges = []string{"$window", "$__rate_interval", "$__interval", "5m", "30m", "1h", "6h"}

func TestQueriesAskForWhatThereIs(t *testing.T) {
	known := loadCatalogue(t)
	used := map[string]bool{}
	for name, d := range load(t) {
		for _, p := range panelsOf(d) {
			for _, q := range queriesOf(p) {
				where := fmt.Sprintf("%s: %s: query %s", name, *p.Title, *q.RefId)
				for _, m := range regexp.MustCompile(`\b(?:rate|irate|increase)\([^\[]*\[([^\]]*)\]`).FindAllStringSubmatch(q.Expr, -1) {
					if !slices.Contains(ranges, m[1]) {
						t.Errorf("%s: a rate over %s", where, m[1])
					}
				}
				for _, expr := range expand(d, q.Expr) {
					lintExpr(t, where, expr, known, used)
				}
				lintLegend(t, where, q, d, known)
			}
		}
		for _, a := range d.Annotations.List {
			for _, expr := range expand(d, *a.Expr) {
				lintExpr(t, name+": annotation "+a.Name, expr, known, used)
			}
		}
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				m := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(*v.Query.String)
				if m == nil {
					t.Errorf("%s: variable %s is no label_values", name, v.Name)
					continue
				}
				for _, expr := range expand(d, m[1]) {
					lintExpr(t, name+": variable "+v.Name, expr, known, nil)
				}
			}
		}
	}
	for e := range exceptions {
		if !used[e] {
			t.Errorf("exception %q is not needed", e)
		}
	}
}

// lintExpr parses one expression and checks its metrics, their labels, and that counters are rated. used marks the
// exceptions that it needs; nil asks for no job.
func lintExpr(t *testing.T, where, expr string, known catalogue, used map[string]bool) {
	t.Helper()
	parsed, err := parse(expr)
	if err != nil {
		t.Errorf("%s: %v\n%s", where, err, expr)
		return
	}
	may := map[string]bool{}
	parser.Inspect(parsed, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		m, err := known.find(selector.Name)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			return nil
		}
		hasJob := false
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel && !m.labels[matcher.Name] {
				t.Errorf("%s: %s has no label %s", where, selector.Name, matcher.Name)
			}
			hasJob = hasJob || matcher.Name == "job"
		}
		if e := "no job: " + selector.Name; !hasJob && used != nil {
			if exceptions[e] == "" {
				t.Errorf("%s: %s is not selected by job", where, selector.Name)
			}
			used[e] = true
		}
		for l := range m.labels {
			may[l] = true
		}
		if within := functionAround(path); used != nil && isRate(within) != (m.kind == "counter" || m.kind == "histogram") {
			t.Errorf("%s: %s is a %s, within %q", where, selector.Name, m.kind, within)
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		var names []string
		switch n := node.(type) {
		case *parser.AggregateExpr:
			names = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				names = n.VectorMatching.MatchingLabels
			}
		}
		for _, l := range names {
			// le is asked for where a histogram may be native, which has none.
			if !may[l] && l != "le" {
				t.Errorf("%s: no metric of it has the label %s", where, l)
			}
		}
		return nil
	})
}

func isRate(function string) bool {
	return function == "rate" || function == "irate" || function == "increase"
}

// functionAround names the function whose range a selector is, if it is one.
func functionAround(path []parser.Node) string {
	if len(path) < 2 {
		return ""
	}
	if _, ok := path[len(path)-1].(*parser.MatrixSelector); !ok {
		return ""
	}
	if call, ok := path[len(path)-2].(*parser.Call); ok {
		return call.Func.Name
	}
	if len(path) > 2 {
		if call, ok := path[len(path)-3].(*parser.Call); ok {
			return call.Func.Name
		}
	}
	return ""
}

// lintLegend checks that a legend names labels that the query keeps.
func lintLegend(t *testing.T, where string, q prometheus.Dataquery, d classicDashboard, known catalogue) {
	t.Helper()
	parsed, err := parse(expand(d, q.Expr)[0])
	if err != nil {
		return // told already
	}
	keeps := map[string]bool{}
	parser.Inspect(parsed, func(node parser.Node, path []parser.Node) error {
		for _, above := range path {
			if _, ok := above.(*parser.AggregateExpr); ok {
				return nil
			}
		}
		switch n := node.(type) {
		case *parser.AggregateExpr:
			for _, l := range n.Grouping {
				keeps[l] = true
			}
		case *parser.VectorSelector:
			m, _ := known.find(n.Name)
			for l := range m.labels {
				keeps[l] = true
			}
		}
		return nil
	})
	for _, use := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(*q.LegendFormat, -1) {
		if !keeps[use[1]] {
			t.Errorf("%s: the legend names %s, which the query does not keep", where, use[1])
		}
	}
}

var (
	dashboardLink = regexp.MustCompile(`/d/([\w-]+)`)
	runbookLink   = regexp.MustCompile(regexp.QuoteMeta(runbooks) + `#(\w+)`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	loaded := load(t)
	uids, anchors := map[string]bool{}, map[string]bool{}
	for _, d := range loaded {
		uids[*d.Uid] = true
	}
	alerts := map[string]bool{}
	for _, r := range loadRules(t) {
		if r.Alert != "" {
			alerts[strings.ToLower(r.Alert)] = true
		}
	}
	sections, err := os.ReadFile(runbookFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range regexp.MustCompile(`(?m)^#+ (\w+)\s*$`).FindAllStringSubmatch(string(sections), -1) {
		anchors[strings.ToLower(h[1])] = true
	}
	found := map[string]bool{}
	for name, d := range loaded {
		text, err := encode(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range dashboardLink.FindAllSubmatch(text, -1) {
			if !uids[string(m[1])] {
				t.Errorf("%s: a link to %s, which is no dashboard", name, m[0])
			}
		}
		for _, m := range runbookLink.FindAllSubmatch(text, -1) {
			anchor := string(m[1])
			found[anchor] = true
			if !alerts[anchor] || !anchors[anchor] {
				t.Errorf("%s: a link to the runbook %s, which is not there", name, anchor)
			}
		}
	}
	for a := range alerts {
		if !found[a] {
			t.Errorf("no link to the runbook of %s", a)
		}
	}
}
