package v1_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/plan"
)

// What a list is given again for is wanted beside the rest; what takes one value is not given two, of which one would be ignored.
func TestAFilterGivenTwiceIsHeededTwiceOrRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		p := s.large(t, "p", 4)
		s.run(t, p, func(name string, e *plan.Ending) {
			if name == "t-1" {
				e.Status = plan.Failed
			}
		})
		s.large(t, "q", 2)
		for path, want := range map[string]string{
			"/tasks?state=failed&state=queued":                            "t-1 t-0",
			"/tasks?state=failed&state=held,queued":                       "t-1 t-0 t-1",
			"/tasks?state=failed&state=":                                  "t-1",
			"/plans/p/tasks?state=failed&state=2&state=held":              "t-1",
			"/plans/p/search?state=failed&state=succeeded&text=t":         "t-0 t-1 t-2 t-3",
			"/plans/q/tasks?with=needs&with=params&state=held&limit=5000": "t-1",
		} {
			var found struct{ Tasks []api.Task }
			s.must("GET", path, "", &found)
			var names []string
			for _, f := range found.Tasks {
				names = append(names, f.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		}
		for path, locations := range map[string][]string{
			"/plans?state=failed&state=running":           {"query.state"},
			"/plans?name=p&name=p":                        {"query.name"},
			"/tasks?queue=a&queue=b&limit=1&limit=2":      {"query.limit", "query.queue"},
			"/tasks?state=failed&state=held&limit=&limit": {"query.limit"},
			"/search/plans?text=a&text=b":                 {"query.text"},
			"/changes?wait=1s&wait=2s":                    {"query.wait"},
		} {
			status, text := s.ask("GET", path, "")
			var p api.Problem
			if err := json.Unmarshal([]byte(text), &p); err != nil || status != 422 || p.Code != "invalid" || !strings.Contains(p.Detail, "ask once for each") {
				t.Errorf("%s: %d %s", path, status, text)
				continue
			}
			var got []string
			for _, f := range p.Fields {
				got = append(got, f.Location)
			}
			if slices.Sort(got); !slices.Equal(got, locations) {
				t.Errorf("%s is refused for %v, want %v", path, got, locations)
			}
		}
	})
}
