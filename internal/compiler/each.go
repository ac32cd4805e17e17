package compiler

import (
	"slices"

	"github.com/seed-1177d267/sluice/plan"
)

// mostAlong is how many tasks a task with each may need. Each of its items needs as many.
const mostAlong = 200

// sourcesOf returns, for each task of a spec, the task whose foreach makes the items that it goes over: itself,
// or the one at the end of its each. It returns -1 for a task that has no items, and for each in a circle.
func sourcesOf(s *plan.Spec, index map[string]int) []int {
	const unknown, entered = -3, -2
	sources := make([]int, len(s.Tasks))
	for i := range sources {
		sources[i] = unknown
	}
	var of func(i int) int
	of = func(i int) int {
		switch f := s.Tasks[i].Foreach; {
		case sources[i] == entered:
			return -1
		case sources[i] != unknown:
		case f == nil:
			sources[i] = -1
		case len(f.Each) == 0:
			sources[i] = i
		default:
			sources[i] = entered
			source := -1
			if head, there := index[f.Each[0]]; there {
				source = of(head)
			}
			sources[i] = source
		}
		return sources[i]
	}
	for i := range s.Tasks {
		of(i)
	}
	return sources
}

// validateEach checks the tasks that a task goes along with.
func validateEach(s *plan.Spec, i int, index map[string]int, sources []int, names func() []string, add addProblem) {
	t := &s.Tasks[i]
	if t.Foreach == nil || len(t.Foreach.Each) == 0 {
		return
	}
	each := t.Foreach.Each
	first := -1
	for k, name := range each {
		head, there := index[name]
		switch {
		case name == t.Name:
			add(i, "each", k, "task %q goes along with itself; name the task whose items it goes over", t.Name)
		case !there:
			p := add(i, "each", k, "task %q goes along with %q, which is not in the plan; add it or drop it", t.Name, name)
			p.Word, p.Known = name, names()
		case slices.Contains(each[:k], name):
			add(i, "each", k, "task %q names %q twice; once is enough", t.Name, name)
		case slices.Contains(t.Needs, name):
			add(i, "each", k, "task %q has %q in each and in needs; drop it from needs, as each item needs the item with its index alone", t.Name, name)
		case t.Finally && !s.Tasks[head].Finally:
			add(i, "each", k, "task %q is one of finally, and goes along with %q, which is not; give it a foreach of its own", t.Name, name)
		case s.Tasks[head].Finally && !t.Finally:
			add(i, "each", k, "task %q goes along with %q, which is one of finally and runs when all tasks have ended; move this task there", t.Name, name)
		case s.Tasks[head].Foreach == nil:
			add(i, "each", k, "task %q goes along with %q, which has no items; give that a foreach, or write needs: %s", t.Name, name, name)
		case sources[head] < 0: // the circle, or what that one names, is a problem of its own
		case first < 0:
			first = head
		case sources[head] != sources[first]:
			add(i, "each", k, "task %q goes along with %q and %q, which go over different items: those of %q and those of %q; name tasks of one foreach",
				t.Name, s.Tasks[first].Name, name, s.Tasks[sources[first]].Name, s.Tasks[sources[head]].Name)
		}
	}
	if n := len(t.Parents()); n > mostAlong {
		add(i, "each", -1, "task %q needs %d tasks, and with each it may need %d; put a task between them", t.Name, n, mostAlong)
	}
}

// stepsFirst ranks a task that goes along with others above these: an item that has begun goes on before others
// begin.
func stepsFirst(s *plan.Spec, g *plan.Graph, ranks []int64) {
	if !slices.ContainsFunc(s.Tasks, func(t plan.TaskSpec) bool { return t.Foreach != nil && len(t.Foreach.Each) > 0 }) {
		return
	}
	order, _ := g.Order()
	for _, i := range order {
		for k, head := range g.Parents(i) {
			if f := s.Tasks[i].Foreach; f != nil && k < len(f.Each) {
				ranks[i] = max(ranks[i], ranks[head]+1)
			}
		}
	}
}
