package v1_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/plan"
)

// labelled has the fields of a task that this test checks, on any route.
type labelled struct {
	ID        plan.TaskID
	Name      string
	ItemLabel string `json:"item_label"`
}

func labels(tasks []labelled) (said []string) {
	for _, t := range tasks {
		said = append(said, strings.TrimSpace(t.Name+" "+t.ItemLabel))
	}
	slices.Sort(said)
	return said
}

func TestItemsSayWhatTheyAreFor(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		p := submitted(t, s.st, migration())
		w := worker{t, s.st, registered(t, s.st)}
		w.run(1)
		same := func(what string, got []labelled, want ...string) {
			t.Helper()
			if !slices.Equal(labels(got), want) {
				t.Errorf("%s: got %q, want %q", what, labels(got), want)
			}
		}
		var list struct{ Tasks []labelled }
		s.must("GET", "/plans/migrate/search?text=copy", "", &list)
		same("the search", list.Tasks, "copy", "copy[0] ann", "copy[1] bob")
		ann := list.Tasks[slices.IndexFunc(list.Tasks, func(t labelled) bool { return t.Name == "copy[0]" })].ID.String()
		s.must("GET", "/tasks?with=item_label&of="+s.named(p, "copy"), "", &list)
		same("the list", list.Tasks, "copy[0] ann", "copy[1] bob")
		list.Tasks = nil
		s.must("GET", "/plans/migrate/tasks?name=copy%5B0%5D", "", &list)
		same("the list, where it is not asked for", list.Tasks, "copy[0]")
		list.Tasks = nil
		s.must("GET", "/plans/migrate/tasks?name=copy%5Bbob%5D", "", &list)
		same("the list by a key", list.Tasks, "copy[1]")
		list.Tasks = nil
		s.must("GET", "/plans/migrate/search?order=plan&text=copy%5Bbob%5D", "", &list)
		same("the search by a key", list.Tasks, "copy[1] bob")
		list.Tasks = nil
		s.must("GET", "/plans/migrate/tasks?name=copy%5Bnobody%5D", "", &list)
		same("the list by a key that no item has", list.Tasks)
		var one labelled
		s.must("GET", "/tasks/"+ann, "", &one)
		same("a task", []labelled{one}, "copy[0] ann")
		var why struct{ Reasons []labelled }
		s.must("GET", "/tasks/"+ann+"/explain", "", &why)
		same("why it does not run", why.Reasons[:1], "copy[0] ann")
		var waiting struct {
			Waiting int
			Groups  []struct {
				Count int
				For   labelled
				Tasks []labelled
			}
		}
		s.must("GET", "/plans/migrate/waiting", "", &waiting)
		var waits []labelled
		all := 0
		for _, g := range waiting.Groups {
			all += g.Count
			waits = append(waits, append(g.Tasks, g.For)...)
		}
		if all != waiting.Waiting {
			t.Errorf("%d tasks wait, and %d are told for what", waiting.Waiting, all)
		}
		if !slices.Contains(labels(waits), "copy[1] bob") {
			t.Errorf("what waits is called %q", labels(waits))
		}
		var g api.Graph
		s.must("GET", "/plans/migrate/graph?open=of:copy", "", &g)
		if len(g.ItemLabels) != len(g.Names) || g.ItemLabels[slices.Index(g.Names, "copy[1]")] != "bob" || g.ItemLabels[slices.Index(g.Names, "list")] != "" {
			t.Errorf("the graph has %q for %q", g.ItemLabels, g.Names)
		}

		s.run(t, p.ID, func(name string, e *protocol.Ending) {
			if strings.HasPrefix(name, "copy[") {
				e.Status = plan.Failed
			}
		})
		var failures struct{ Kinds []struct{ Tasks []labelled } }
		s.must("GET", "/plans/migrate/failures", "", &failures)
		same("what failed", failures.Kinds[0].Tasks, "copy[0] ann", "copy[1] bob")
		var l api.Timeline
		s.must("GET", "/plans/migrate/timeline?open=of:copy", "", &l)
		if len(l.ItemLabels) != len(l.Names) || l.ItemLabels[slices.Index(l.Names, "copy[0]")] != "ann" || l.ItemLabels[slices.Index(l.Names, "report")] != "" {
			t.Errorf("the time line has %q for %q", l.ItemLabels, l.Names)
		}
		for _, link := range l.Path {
			if (link.ItemLabel != "") != strings.HasPrefix(link.Name, "copy[") {
				t.Errorf("on the path %s is for %q", link.Name, link.ItemLabel)
			}
		}

		// A param that is secret from now on is hidden, even if it was shown before.
		queue, err := s.st.Queues(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.must("PUT", "/queues/"+queue[0].Name, `{"threads": null, "secrets": ["item"]}`, nil)
		for _, path := range []string{"/plans/migrate/search", "/plans/migrate/tasks?with=item_label", "/tasks/" + ann, "/plans/migrate/failures", "/plans/migrate/graph?open=of:copy", "/plans/migrate/timeline?open=of:copy"} {
			if _, text := s.ask("GET", path, ""); strings.Contains(strings.ReplaceAll(text, `"list":["ann","bob"]`, ""), "ann") || !strings.Contains(text, `"***"`) {
				t.Errorf("%s: %s", path, text)
			}
		}
	})
}

// named returns the id of a plan's task.
func (s *site) named(p plan.Plan, name string) string {
	s.Helper()
	var list struct{ Tasks []labelled }
	s.must("GET", "/plans/"+p.ID.String()+"/tasks?name="+name, "", &list)
	return list.Tasks[0].ID.String()
}

// fans is a plan with two foreach tasks among others, in an order that is not that of their names.
func fans() *plan.Spec {
	s := plan.New("fans")
	each := func(name, list string, needs ...string) plan.TaskSpec {
		return plan.TaskSpec{Name: name, Plugin: "demo", Needs: needs, Foreach: &plan.Foreach{List: json.RawMessage(list)}}
	}
	s.Add(plan.TaskSpec{Name: "zero", Plugin: "demo"})
	s.Add(each("copy", `["a", "b", "c", "d"]`, "zero"))
	s.Add(plan.TaskSpec{Name: "mid", Plugin: "demo", Queue: "other", Needs: []string{"copy"}, When: plan.AllDone})
	s.Add(each("none", `[]`))
	s.Add(each("again", `[1, 2]`, "mid"))
	s.Add(plan.TaskSpec{Name: "last", Plugin: "demo", Needs: []string{"again"}, When: plan.AllDone})
	return s
}

// search returns the names that a search finds, a page after the other.
func (s *site) search(t *testing.T, query string, limit int) (names []string) {
	t.Helper()
	for next := ""; ; {
		var found struct {
			Tasks []api.Task
			Next  plan.TaskID
		}
		s.must("GET", fmt.Sprintf("/plans/fans/search?%s&limit=%d&after=%s", query, limit, next), "", &found)
		for _, f := range found.Tasks {
			names = append(names, f.Name)
		}
		if next = found.Next.String(); found.Next.IsZero() {
			return names
		}
		if len(found.Tasks) > limit || len(names) > 100 {
			t.Fatalf("%s: pages of %d come to %q", query, limit, names)
		}
	}
}

func TestTasksAreFoundInThePlansOrder(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		s.must("POST", "/queues", `{"name": "other", "plugin": "demo", "threads": null}`, nil)
		p := submitted(t, s.st, fans())
		s.run(t, p.ID, func(name string, e *protocol.Ending) {
			if name == "copy[1]" || name == "copy[3]" || name == "again[0]" {
				e.Status = plan.Failed
			}
		})
		for _, c := range []struct {
			query string
			want  []string
		}{
			{"order=plan", []string{"zero", "copy", "copy[0]", "copy[1]", "copy[2]", "copy[3]", "mid", "none", "again", "again[0]", "again[1]", "last"}},
			{"order=plan&folded=true", []string{"zero", "copy", "mid", "none", "again", "last"}},
			{"order=plan&folded=true&open=" + s.named(p, "again"), []string{"zero", "copy", "mid", "none", "again", "again[0]", "again[1]", "last"}},
			{"order=plan&folded=true&open=" + s.named(p, "copy") + "," + s.named(p, "again"), []string{"zero", "copy", "copy[0]", "copy[1]", "copy[2]", "copy[3]", "mid", "none", "again", "again[0]", "again[1]", "last"}},
			{"order=plan&state=failed", []string{"copy", "copy[1]", "copy[3]", "again", "again[0]"}},
			{"order=plan&state=succeeded,skipped", []string{"zero", "copy[0]", "copy[2]", "mid", "none", "again[1]", "last"}},
			{"order=plan&queue=other", []string{"mid"}},
			{"order=plan&queue=demo&state=failed", []string{"copy", "copy[1]", "copy[3]", "again", "again[0]"}},
			{"order=plan&text=A", []string{"again", "again[0]", "again[1]", "last"}},
			{"order=plan&text=%5B", []string{"copy[0]", "copy[1]", "copy[2]", "copy[3]", "again[0]", "again[1]"}},
			{"order=plan&text=nosuch", nil},
			{"order=plan&state=skipped", nil},
		} {
			for _, few := range []int{1000, 0} { // of few that are selected these are sorted, of many the plan is gone through: that is the same
				restore := v1.SortAtMost(few)
				for _, limit := range []int{1, 2, 3, 5, 100} {
					if got := s.search(t, c.query, limit); !slices.Equal(got, c.want) {
						t.Errorf("%s, %d at a time, sorted up to %d: got %q, want %q", c.query, limit, few, got, c.want)
					}
				}
				restore()
			}
		}
		var each struct {
			Tasks []api.ForeachState `json:"foreach_tasks"`
		}
		s.must("GET", "/plans/fans/foreach-tasks", "", &each)
		for i := range each.Tasks {
			each.Tasks[i].ID = plan.TaskID{}
		}
		if want := []api.ForeachState{{State: "failed", Items: 4, Done: 4}, {State: "failed", Items: 2, Done: 2}}; !slices.Equal(each.Tasks, want) {
			t.Errorf("the foreach tasks are %+v, want %+v", each.Tasks, want)
		}
		// Ids have an order of their own, whatever the plan's is.
		byID := s.search(t, "order=id", 5)
		var listed struct{ Tasks []api.Task }
		s.must("GET", "/plans/fans/tasks", "", &listed)
		for i, l := range listed.Tasks {
			if byID[i] != l.Name {
				t.Fatalf("by id there are %q, and the list has %s at %d", byID, l.Name, i)
			}
		}
		// A task that no longer exists keeps the place of its id.
		var none struct{ Tasks []api.Task }
		if s.must("GET", "/plans/fans/search?order=plan&after="+strings.Repeat("f", 24), "", &none); len(none.Tasks) != 0 {
			t.Errorf("after what is not there: %+v", none.Tasks)
		}
		for query, want := range map[string]string{
			"folded=true":                                               "query.folded: it has no effect without order=plan",
			"order=id&folded=true":                                      "query.folded: it has no effect without order=plan",
			"order=plan&folded=true&state=failed":                       "query.folded: it has no effect with state, queue or failure",
			"order=plan&folded=true&queue=demo":                         "query.folded: it has no effect with state, queue or failure",
			"order=plan&open=xx":                                        "query.open: it has no effect without folded=true",
			"open=" + s.named(p, "copy"):                                "query.open: it has no effect without folded=true",
			"order=plan&folded=false&open=xx":                           "query.open: it has no effect without folded=true",
			"order=plan&folded=true&open=xx":                            "query.open: ",
			"order=plan&folded=true&failure=" + strings.Repeat("0", 16): "query.folded: it has no effect with state, queue or failure",
		} {
			if status, text := s.ask("GET", "/plans/fans/search?"+query, ""); status != 422 || !strings.Contains(text, want) {
				t.Errorf("%s: %d %s, want 422 and %q", query, status, text, want)
			}
		}
		if status, text := s.ask("GET", "/plans/fans/search?order=name", ""); status != 422 {
			t.Errorf("an order that there is not: %d %s", status, text)
		}
	})
}

func TestTheGraphTellsWhichTasksGoOverTheSameItems(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		steps := plan.New("steps")
		steps.Add(plan.TaskSpec{Name: "copy", Plugin: "demo", Foreach: &plan.Foreach{List: json.RawMessage(`[1,2]`)}})
		steps.Add(plan.TaskSpec{Name: "check", Plugin: "demo", Foreach: &plan.Foreach{Each: []string{"copy"}}})
		steps.Add(plan.TaskSpec{Name: "total", Plugin: "demo", Needs: []string{"check"}})
		submitted(t, s.st, steps)
		w := worker{t, s.st, registered(t, s.st)}
		w.run(1)
		var g struct {
			Names        []string
			Edges, Along []int
		}
		s.must("GET", "/plans/steps/graph", "", &g)
		if len(g.Along) != 1 || g.Names[g.Edges[3*g.Along[0]]] != "copy" || g.Names[g.Edges[3*g.Along[0]+1]] != "check" {
			t.Errorf("along is %v of the edges %v of %q, want that from copy to check", g.Along, g.Edges, g.Names)
		}
	})
}
