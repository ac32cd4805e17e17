package mongodb

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

func TestWhatWouldNotFitIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	m := newMessy(t)
	text := func(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", n))) }
	for _, c := range []struct {
		name   string
		params json.RawMessage
		want   string // no error
	}{
		{"small params", text(1 << 10), ""},
		{"large ones that leave room", text(15 << 20), ""},
		{"a document that would be full", text(largestDocument - 400), `task "a": its document would have 167`},
		{"more than a document", text(17 << 20), `task "a": its document would have 178`},
		{"what is kept twice", json.RawMessage(fmt.Sprintf(`{"a.b":1,"x":%q}`, strings.Repeat("x", 9<<20))), "its params twice"},
		{"a list that is larger as a document", json.RawMessage(`{"x":[` + strings.Repeat("1,", 2<<20) + `1]}`), `task "a": its document would have 2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &plan.Spec{Name: "p", Tasks: []plan.TaskSpec{{Name: "a", Plugin: "demo", Params: c.params}}}
			_, err := submit.Submit(t.Context(), m.s, spec, false)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				for _, name := range []string{"tasks", "plans", "queues"} {
					if _, err := m.db.Collection(name).DeleteMany(t.Context(), d()); err != nil {
						t.Error(err)
					}
				}
				return
			}
			if !errors.Is(err, plan.ErrTooLarge) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "at most 16711680: keep large values in files") {
				t.Errorf("got %v, want %s", err, c.want)
			}
			for _, name := range []string{"tasks", "plans", "queues"} {
				if n, err := m.db.Collection(name).CountDocuments(t.Context(), d()); err != nil || n != 0 {
					t.Errorf("there are %d %s, %v", n, name, err)
				}
			}
			q := m.queue("demo", 1)
			err = m.s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "a", Queue: q.ID, Params: c.params}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("a task of no plan: got %v, want %s", err, c.want)
			}
			_, err = m.db.Collection("queues").DeleteMany(t.Context(), d())
			m.no(err)
		})
	}
	if err := m.s.Fits(t.Context(), plan.Plan{Name: "p", Params: text(17 << 20)}, nil); err == nil || !strings.Contains(err.Error(), `the params of the plan have 178`) {
		t.Errorf("a plan with large params: %v", err)
	}
}

// TestInputsThatLeaveNoRoomGoByReference has a parent's output that would fit into the child, and children that it would make too large.
func TestInputsThatLeaveNoRoomGoByReference(t *testing.T) {
	w := &waiter{taskDoc: &taskDoc{}, bytes: 60 << 10, largest: 60 << 10}
	w.Needs = append(w.Needs, w.ID)
	output := []plan.Input{{Name: "a", Output: json.RawMessage(`"` + strings.Repeat("x", 60<<10) + `"`)}}
	for size, byRef := range map[int]bool{1 << 10: false, 9 << 20: false, largestDocument - spare - 500: true} {
		if err := w.setParams(json.RawMessage(fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", size)))); err != nil {
			t.Fatal(err)
		}
		set, err := w.deliver(output)
		if err != nil || len(set) != 1 || (set[0].Key == "byref") != byRef {
			t.Errorf("with params of %d bytes it is %s, %v; by reference: %v", size, set[0].Key, err, byRef)
		}
	}
}
