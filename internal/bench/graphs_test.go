package bench

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A graph is what a scenario runs, by whatever runs it. Tasks are numbered from 0, parents before children.
type graph struct {
	needs [][]int
	lasts []time.Duration // of each task; nil: they do nothing
}

func (g *graph) tasks() int { return len(g.needs) }

// edges returns how many needs there are in all.
func (g *graph) edges() int {
	n := 0
	for _, parents := range g.needs {
		n += len(parents)
	}
	return n
}

// flat is n tasks that need nothing.
func flat(n int) *graph { return &graph{needs: make([][]int, n)} }

// chain is n tasks in a row.
func chain(n int) *graph {
	g := flat(n)
	for i := 1; i < n; i++ {
		g.needs[i] = []int{i - 1}
	}
	return g
}

// layered is n tasks in layers of the given width; each has 3 parents, chosen by chance from the layer before.
func layered(n, width int) *graph {
	g := flat(n)
	dice := rand.New(rand.NewPCG(1, 2)) // the same graph in every run
	for i := width; i < n; i++ {
		first := (i/width - 1) * width
		g.needs[i] = make([]int, 0, 3)
		for _, k := range distinct(dice, 3, width) {
			g.needs[i] = append(g.needs[i], first+k)
		}
	}
	return g
}

// fanOut is one task and n-1 that need it.
func fanOut(n int) *graph {
	g := flat(n)
	for i := 1; i < n; i++ {
		g.needs[i] = []int{0}
	}
	return g
}

// fanOutIn is one task, width that need it, and one that needs those.
func fanOutIn(width int) *graph {
	g := fanOut(width + 2)
	join := make([]int, width)
	for i := range join {
		join[i] = i + 1
	}
	g.needs[width+1] = join
	return g
}

// stressLasts is how long each task of zk-plan's stress test works.
const stressLasts = 100 * time.Millisecond

// stress is zk-plan's stress test (zk-plan 0.4.1, section 8): m tasks of 100 ms. Each but the first
// k has k parents, chosen at random from all before it.
func stress(m, k int) *graph {
	g := flat(m)
	g.lasts = make([]time.Duration, m)
	dice := rand.New(rand.NewPCG(3, 4))
	for i := range m {
		g.lasts[i] = stressLasts
		if i >= k {
			g.needs[i] = distinct(dice, k, i)
		}
	}
	return g
}

// distinct chooses k different numbers below n, which is at least k.
func distinct(dice *rand.Rand, k, n int) []int {
	chosen := make([]int, 0, k)
	seen := make(map[int]bool, k)
	for len(chosen) < k {
		if i := dice.IntN(n); !seen[i] {
			seen[i] = true
			chosen = append(chosen, i)
		}
	}
	return chosen
}

// spec makes a plan of the graph, all of whose tasks go to one plugin.
func (g *graph) spec(name, plugin string) *plan.Spec {
	s := plan.New(name)
	s.Tasks = make([]plan.TaskSpec, g.tasks())
	names := make([]string, g.tasks())
	for i := range names {
		names[i] = taskName(i)
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		t.Name, t.Plugin = names[i], plugin
		if len(g.needs[i]) > 0 {
			t.Needs = make([]string, len(g.needs[i]))
			for k, parent := range g.needs[i] {
				t.Needs[k] = names[parent]
			}
		}
		if g.lasts != nil {
			t.Estimate = g.lasts[i]
		}
	}
	return s
}

// graphOf returns the graph of a plan whose estimates are the durations of its tasks. It renumbers
// tasks if the plan names a child before its parent.
func graphOf(s *plan.Spec) *graph {
	number, g := make(map[string]int, len(s.Tasks)), &graph{}
	for i := 0; len(number) < len(s.Tasks); i++ {
		t := &s.Tasks[i%len(s.Tasks)]
		needs := make([]int, 0, len(t.Needs))
		for _, parent := range t.Needs {
			if p, done := number[parent]; done {
				needs = append(needs, p)
			}
		}
		if _, done := number[t.Name]; !done && len(needs) == len(t.Needs) {
			number[t.Name] = len(g.needs)
			g.needs, g.lasts = append(g.needs, needs), append(g.lasts, t.Estimate)
		}
	}
	return g
}

func taskName(i int) string { return fmt.Sprintf("t%d", i) }

// taskNames joins the names of some tasks.
func taskNames(tasks []int, sep string) string {
	names := make([]string, len(tasks))
	for i, n := range tasks {
		names[i] = taskName(n)
	}
	return strings.Join(names, sep)
}

// listSchedule returns how long the graph takes on the given number of slots without any overhead.
// A free slot at once takes the ready task with the longest path to the end. This is R. L. Graham's
// list scheduling (1966), with that list.
func (g *graph) listSchedule(slots int) time.Duration {
	rank, ends := make([]time.Duration, g.tasks()), make([]time.Duration, g.tasks())
	children := make([][]int, g.tasks())
	waits := make([]int, g.tasks())
	for i := len(rank) - 1; i >= 0; i-- { // children come after their parents
		rank[i] += g.lasts[i]
		for _, p := range g.needs[i] {
			rank[p] = max(rank[p], rank[i])
			children[p] = append(children[p], i)
		}
		waits[i] = len(g.needs[i])
	}
	var ready, running []int // the longest path first, and the first end first
	for i := range waits {
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for now := time.Duration(0); ; {
		slices.SortFunc(ready, func(a, b int) int { return cmp.Or(cmp.Compare(rank[b], rank[a]), a-b) })
		for len(running) < slots && len(ready) > 0 {
			running, ends[ready[0]] = append(running, ready[0]), now+g.lasts[ready[0]]
			ready = ready[1:]
		}
		if len(running) == 0 {
			return now
		}
		slices.SortFunc(running, func(a, b int) int { return cmp.Or(cmp.Compare(ends[a], ends[b]), a-b) })
		for now = ends[running[0]]; len(running) > 0 && ends[running[0]] == now; running = running[1:] {
			for _, c := range children[running[0]] {
				if waits[c]--; waits[c] == 0 {
					ready = append(ready, c)
				}
			}
		}
	}
}
