package v1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/api"
	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// weighed is a store that notes how many bytes of params are read from it at once at most.
type weighed struct {
	*model.Store
	plans, tasks int
}

func (w *weighed) Plans(ctx context.Context, q store.PlanQuery) ([]plan.Plan, error) {
	found, err := w.Store.Plans(ctx, q)
	bytes := 0
	for i := range found {
		bytes += len(found[i].Params)
	}
	w.plans = max(w.plans, bytes)
	return found, err
}

func (w *weighed) Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error) {
	found, err := w.Store.Tasks(ctx, q)
	bytes := 0
	for i := range found {
		bytes += len(found[i].Params)
	}
	w.tasks = max(w.tasks, bytes)
	return found, err
}

// A list of large plans comes in pages of some MiB that together are all, in order, and is read in portions; a search reads no params.
func TestListsOfLargeParamsComeInParts(t *testing.T) {
	st := &weighed{Store: model.New(model.Options{})}
	s := serveStore(t, st, v1.Config{Store: st})
	const plans, size = 100, 1_000_000
	large := json.RawMessage(`{"x":"` + strings.Repeat("x", size) + `"}`)
	var want []string
	for i := range plans {
		p, err := st.CreatePlan(t.Context(), plan.Plan{Name: fmt.Sprint("p", i), Params: large})
		if err != nil {
			t.Fatal(err)
		}
		want = append([]string{p.ID.String()}, want...)
	}
	var got []string
	pages := 0
	for before := ""; ; pages++ {
		var list struct {
			Plans []api.Plan
			Next  string
		}
		s.must("GET", "/plans?limit=5000&before="+before, "", &list)
		for _, p := range list.Plans {
			got = append(got, p.ID.String())
		}
		if n := len(list.Plans); n > 9 || n < 9 && list.Next != "" {
			t.Fatalf("a page has %d plans of %d bytes", n, size)
		}
		if before = list.Next; before == "" {
			break
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || pages != 11 {
		t.Errorf("after %d pages the plans are %v, want %v", pages, got, want)
	}
	if st.plans > 33*(size+10) {
		t.Errorf("%d bytes were read at once", st.plans)
	}
	st.plans = 0
	for text, most := range map[string]int{"zzz": 0, "p": plans} {
		var found struct{ Plans []api.Plan }
		if s.must("GET", "/search/plans?text="+text, "", &found); len(found.Plans) != most || st.plans > 0 {
			t.Errorf("a search for %s found %d plans and read %d bytes of params", text, len(found.Plans), st.plans)
		}
	}
}

// The params and outputs of tasks count in their lists, too.
func TestListsOfLargeTasksComeInParts(t *testing.T) {
	st := &weighed{Store: model.New(model.Options{})}
	s := serveStore(t, st, v1.Config{Store: st})
	q, err := st.AddQueue(t.Context(), "q", "demo")
	if err != nil {
		t.Fatal(err)
	}
	const size = 1_000_000
	now, err := st.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids := plan.NewIDs(now, 40)
	tasks := make([]plan.Task, 40)
	for i := range tasks {
		tasks[i] = plan.Task{ID: plan.TaskID{ID: ids.Next()}, Name: fmt.Sprint("t", i), Queue: q, Params: json.RawMessage(`{"x":"` + strings.Repeat("x", size) + `"}`)}
	}
	if err := st.AddTasks(t.Context(), plan.PlanID{}, tasks); err != nil {
		t.Fatal(err)
	}
	all := 0
	for after := ""; ; {
		var list struct {
			Tasks []api.Task
			Next  string
		}
		s.must("GET", "/tasks?with=params&state=queued,cancelled&limit=5000&after="+after, "", &list)
		for _, got := range list.Tasks {
			if got.ID != tasks[all].ID {
				t.Fatalf("task %d is %s, want %s", all, got.ID, tasks[all].ID)
			}
			all++
		}
		if n := len(list.Tasks); n > 9 {
			t.Fatalf("a page has %d tasks of %d bytes", n, size)
		}
		if after = list.Next; after == "" {
			break
		}
	}
	if all != len(tasks) || st.tasks > 18*size {
		t.Errorf("there are %d tasks, and %d bytes were read at once", all, st.tasks)
	}
}
