package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// many submits a plan of n tasks alike, with a priority.
func (w *world) many(name string, n, priority int) plan.Plan {
	w.Helper()
	spec := plan.New(name)
	spec.Priority = priority
	for i := range n {
		spec.Add(task(fmt.Sprint(name, i)))
	}
	return w.submitSpec(spec)
}

// shares says of how many tasks of each plan these are, by the first letter of their names.
func shares(claimed []protocol.ClaimedTask) string {
	counts := map[string]int{}
	for _, c := range claimed {
		counts[c.Name[:1]]++
	}
	var out []string
	for name, n := range counts {
		out = append(out, fmt.Sprint(name, n))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

var planTurnCases = []testCase{
	{"plans that share a queue take turns, one task of each before a second of any", func(w *world) {
		w.queue("exec", 0)
		n := w.node("n1")
		w.many("big", 60, 0)
		w.equal("of the plan alone", shares(n.claim(4)), "b4")
		w.many("small", 3, 0)
		w.equal("beside the new one", shares(append(n.claim(4), n.claim(4)...)), "b5 s3")
		w.many("other", 20, 0)
		w.equal("beside one that is over", shares(append(n.claim(4), n.claim(4)...)), "b4 o4")
	}},
	{"small plans end in a turn in which a task of a large plan ends", func(w *world) {
		w.queue("exec", 0)
		n := w.node("n1")
		w.many("big", 60, 0)
		for i := range 6 {
			w.many(fmt.Sprint("small", i), 1, 0)
		}
		claimed := n.claim(8)
		w.equal("claimed", shares(claimed), "b2 s6")
		var ended []protocol.Ending
		for _, c := range claimed {
			ended = append(ended, ok(c))
		}
		w.equal("plans that ended", len(n.end(ended...).Ended), 6)
	}},
	{"a plan takes turns by its priority, which changes while it runs", func(w *world) {
		w.queue("exec", 0)
		n := w.node("n1")
		a := w.many("a", 200, 30)
		w.many("b", 200, 0)
		w.equal("its priority", w.plan(a.ID).Priority, 30)
		w.equal("three times as many", shares(n.claim(40)), "a30 b10")
		w.no(w.s.SetPriority(w.ctx, a.ID, plan.DefaultPriority))
		n.claim(4) // which a store may deal by what it knew
		if got := shares(n.claim(20)); !slices.Contains([]string{"a9 b11", "a10 b10", "a11 b9"}, got) {
			w.Errorf("with the same priority the plans got %s, want as many", got)
		}
		w.equal("its priority", w.plan(a.ID).Priority, plan.DefaultPriority)
		w.is(w.s.SetPriority(w.ctx, plan.PlanID{ID: plan.NewID(time.Now())}, 3), plan.ErrNotFound)
	}},
	{"one task at a time, the turns are the same", func(w *world) {
		w.queue("exec", 0)
		n := w.node("n1")
		w.many("a", 30, 1)
		w.many("b", 30, 2)
		w.many("c", 30, 4)
		var all []protocol.ClaimedTask
		for range 28 {
			all = append(all, n.claim(1)...)
		}
		w.equal("1, 2 and 4", shares(all), "a4 b8 c16")
	}},
	{"tasks of no plan take turns as one plan", func(w *world) {
		q := w.queue("exec", 0)
		n := w.node("n1")
		w.many("a", 40, 0)
		w.many("b", 40, 0)
		for i := range 40 {
			w.add(plan.PlanID{}, w.newTask(q, fmt.Sprint("plain", i)))
		}
		w.equal("three in turn", shares(n.claim(30)), "a10 b10 p10")
	}},
	{"each of many plans has a turn before any has a second", func(w *world) {
		w.queue("exec", 0)
		n := w.node("n1")
		for i := range 50 {
			w.many(fmt.Sprint("p", i), 4, 0)
		}
		seen := map[plan.PlanID]int{}
		for claims, most := 0, 0; len(seen) < 50; claims++ {
			for _, c := range n.claim(10) {
				seen[c.Plan]++
				most = max(most, seen[c.Plan])
			}
			if most > 1 || claims > 9 {
				w.Fatalf("after %d claims %d of 50 plans had a turn, and one had %d", claims+1, len(seen), most)
			}
		}
	}},
	{"a plan whose turn it is and that is closed holds up nobody", func(w *world) {
		w.queue("exec", 0)
		n := w.node("n1")
		a := w.many("a", 20, plan.MaxPriority)
		w.many("b", 20, 1)
		w.equal("all are there", shares(n.claim(11)), "a10 b1")
		w.no(w.s.CancelPlan(w.ctx, a.ID, false))
		w.equal("the others go on", shares(n.claim(5)), "b5")
	}},
	{"in order of age plans take no turns", func(w *world) {
		q := w.queue("exec", 0)
		n := w.node("n1")
		w.many("a", 10, 1)
		w.many("b", 10, plan.MaxPriority)
		for _, by := range []struct {
			sort plan.QueueSort
			want string
		}{{plan.SortFIFO, "a6"}, {plan.SortLIFO, "b6"}, {plan.SortDefault, "a2 b4"}} {
			q.Sort = by.sort
			w.no(w.s.SetQueue(w.ctx, q))
			w.equal("sort "+string(by.sort), shares(n.claim(6)), by.want)
		}
	}},
	{"plans that come and go starve nobody, on several nodes", func(w *world) {
		w.queue("exec", 0)
		nodes := []*node{w.node("n1"), w.nodeOn(w.reopen(nil), "n2")}
		r := rand.New(rand.NewPCG(1, 2))
		old := w.many("old", 40, 0)
		left, made := 40, 0
		for round := 0; left > 0; round++ {
			if round > 400 {
				w.Fatalf("%d tasks of the first plan have not started after %d claims", left, round)
			}
			if made < 30 && r.IntN(2) == 0 {
				w.many(fmt.Sprint("new", made), 1+r.IntN(6), 1+r.IntN(20))
				made++
			}
			n := nodes[r.IntN(2)]
			claimed := n.claim(1 + r.IntN(3))
			var ended []protocol.Ending
			for _, c := range claimed {
				if c.Plan == old.ID {
					left--
				}
				ended = append(ended, ok(c))
			}
			n.end(ended...)
		}
	}},
}
