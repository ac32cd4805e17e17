package telemetry

import (
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

// metrics returns the labels of each metric of ours, by the names that a query may use.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	described := regexp.MustCompile(`fqName: "(sluice_\w+)".*variableLabels: \{([^}]*)\}`)
	ch := make(chan *prometheus.Desc, 1000)
	NewMetrics(&stockless{}, slog.New(slog.DiscardHandler)).reg.Describe(ch)
	close(ch)
	all := map[string][]string{}
	for d := range ch {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			continue // of Go and of the process
		}
		all[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
	}
	if len(all) < 10 {
		t.Fatalf("the registry describes %v", all)
	}
	return all
}

// A stockless is a store that nobody asks.
type stockless struct{ Reader }

var (
	metric   = regexp.MustCompile(`\b(sluice_[a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\b(?:by|on|ignoring|without) \(([^)]*)\)`)
	part     = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// wrong returns what a query names that no metric has. Prometheus adds the labels job and instance, and a histogram has le.
func wrong(known map[string][]string, query string) (all []string) {
	labels := []string{"job", "instance", "le"}
	for _, m := range metric.FindAllStringSubmatch(query, -1) {
		own, ok := known[m[1]]
		if base := part.ReplaceAllString(m[1], ""); !ok && base != m[1] && strings.HasSuffix(base, "_seconds") {
			own, ok = known[base]
		}
		if !ok {
			all = append(all, m[1])
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(own, l[1]) {
				all = append(all, m[1]+"{"+l[1]+"}")
			}
		}
		labels = append(labels, own...)
	}
	for _, m := range grouping.FindAllStringSubmatch(query, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			if l = strings.TrimSpace(l); !slices.Contains(labels, l) {
				all = append(all, "by "+l)
			}
		}
	}
	return all
}

func TestQueriesThatNameNoMetricAreFound(t *testing.T) {
	known := metrics(t)
	for query, want := range map[string]int{
		`sum by (queue) (rate(sluice_tasks_lost_total[10m])) > 0`:                       0,
		`histogram_quantile(0.9, sum by (le) (rate(sluice_store_seconds_bucket[10m])))`: 0,
		`sluice_queue_tasks{state="queued",queue=~"a|b"}`:                               0,
		`sluice_queue_task{state="queued"}`:                                             2,
		`sluice_queue_tasks{status="queued"}`:                                           1,
		`sum by (node) (sluice_queue_tasks)`:                                            1,
		`sluice_store_up_count`:                                                         1,
	} {
		if got := wrong(known, query); len(got) != want {
			t.Errorf("%s: %q is wrong, want %d", query, got, want)
		}
	}
}

func TestTheDashboardAndTheAlertsNameMetricsThatAreThere(t *testing.T) {
	known := metrics(t)
	check := func(where, query string) {
		if query == "" {
			t.Errorf("%s has no query", where)
		}
		for _, name := range wrong(known, query) {
			t.Errorf("%s: there is no %s: %s", where, name, query)
		}
	}
	read := func(name string) []byte {
		text, err := os.ReadFile("../../examples/deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Query any }
		}
	}
	if err := json.Unmarshal(read("grafana/sluice.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			check("panel "+p.Title, target.Expr)
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read("prometheus/sluice.rules.yaml"), &rules); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) == 0 || len(rules.Groups) != 1 || len(rules.Groups[0].Rules) == 0 {
		t.Fatalf("there are %d panels and %d groups of rules", len(dashboard.Panels), len(rules.Groups))
	}
	for _, r := range rules.Groups[0].Rules {
		check("alert "+r.Alert, r.Expr)
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("alert %s says no summary, or no description", r.Alert)
		}
	}
}

// The table of the page has each metric, and no other.
func TestThePageOfMetricsHasEach(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known, told := metrics(t), map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`sluice_[^|]*) \\| .*\\|.*\\|$").FindAllStringSubmatch(string(text), -1) {
		for _, name := range metric.FindAllStringSubmatch(row[1], -1) {
			told[name[1]] = true
		}
	}
	for name := range known {
		if !told[name] {
			t.Errorf("the page does not have %s", name)
		}
	}
	for name := range told {
		if _, ok := known[name]; !ok {
			t.Errorf("the page has %s, which is no metric", name)
		}
	}
}
