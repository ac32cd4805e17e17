package plan_test

import (
	"fmt"
	"slices"
	"testing"

	library "github.com/dominikbraun/graph"

	"github.com/seed-1177d267/sluice/plan"
)

func named(needs ...[]int) []plan.Task {
	tasks := make([]plan.Task, len(needs))
	for i := range tasks {
		tasks[i].ID.ID[0] = byte(i + 1)
	}
	for i, parents := range needs {
		for _, p := range parents {
			id := plan.TaskID{ID: plan.ID{255}} // which is not among them
			if p >= 0 {
				id = tasks[p].ID
			}
			tasks[i].Needs = append(tasks[i].Needs, id)
		}
	}
	return tasks
}

func TestAGraphKnowsWhoNeedsWhom(t *testing.T) {
	tasks := named([]int{2}, nil, []int{1, -1}, []int{2, 0}, nil)
	g := plan.NewGraph(tasks)
	if g.Len() != 5 || g.Needs() != 4 || g.Levels() != 4 {
		t.Errorf("%d tasks, %d needs, %d levels; want 5, 4, 4", g.Len(), g.Needs(), g.Levels())
	}
	if !slices.Equal(g.Parents(3), []int32{2, 0}) || !slices.Equal(g.Children(2), []int32{0, 3}) || len(g.Children(4)) != 0 {
		t.Errorf("parents of 3: %v; children of 2: %v, of 4: %v", g.Parents(3), g.Children(2), g.Children(4))
	}
	if order, cyclic := g.Order(); !slices.Equal(order, []int{1, 4, 2, 0, 3}) || len(cyclic) != 0 {
		t.Errorf("in order %v, without order %v", order, cyclic)
	}
	if below := g.Below([]int{0, 2}); !slices.Equal(below, []bool{true, false, false, true, false}) {
		t.Errorf("below 0 and 2: %v", below)
	}
	if above := g.Above([]int{0}); !slices.Equal(above, []bool{false, true, true, false, false}) {
		t.Errorf("above 0: %v", above)
	}
	if i, there := g.Index(tasks[3].ID); i != 3 || !there {
		t.Errorf("the fourth task is at %d, %v", i, there)
	}
	if _, there := g.Index(plan.TaskID{}); there {
		t.Error("a task that is not there has a place")
	}
}

func TestTasksOfACycleHaveNoOrder(t *testing.T) {
	order, cyclic := plan.NewGraph(named(nil, []int{0, 3}, []int{1}, []int{2}, []int{3})).Order()
	if !slices.Equal(order, []int{0}) || !slices.Equal(cyclic, []int{1, 2, 3, 4}) {
		t.Errorf("in order %v, without order %v", order, cyclic)
	}
}

// BenchmarkGraph orders 4,000 tasks with 3 needs each, by a Graph and by the library that finds cycles.
func BenchmarkGraph(b *testing.B) {
	const n = 4_000
	spec := plan.Spec{Name: "large"}
	for i := range n {
		t := plan.TaskSpec{Name: fmt.Sprint(i)}
		for k := 1; k <= 3 && i >= 1000; k++ {
			t.Needs = append(t.Needs, fmt.Sprint(i-1000+k*7-21))
		}
		spec.Add(t)
	}
	b.Run("Graph", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if order, _ := spec.Graph().Order(); len(order) != n {
				b.Fatal(len(order))
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g := library.New(library.StringHash, library.Directed())
			for i := range spec.Tasks {
				_ = g.AddVertex(spec.Tasks[i].Name)
			}
			for i := range spec.Tasks {
				for _, need := range spec.Tasks[i].Needs {
					_ = g.AddEdge(need, spec.Tasks[i].Name)
				}
			}
			if order, err := library.TopologicalSort(g); err != nil || len(order) != n {
				b.Fatal(len(order), err)
			}
		}
	})
}
