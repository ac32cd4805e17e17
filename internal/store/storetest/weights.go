package storetest

import (
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// weigh makes a queue with a weight in a group, or in none, and puts n tasks of a plan into it.
func (w *world) weigh(queue string, weight int, group string, n int) {
	w.Helper()
	q := w.queue(queue, 0)
	q.Weight, q.Group = weight, group
	w.no(w.s.SetQueue(w.ctx, q))
	w.fill(queue, n)
}

// fill submits a plan of n tasks in a queue; none if that is 0.
func (w *world) fill(queue string, n int) {
	w.Helper()
	spec := plan.New(queue)
	for i := range n {
		spec.Add(in(queue, fmt.Sprint(queue, i)))
	}
	if n > 0 {
		w.submitSpec(spec)
	}
}

// claims claims so many tasks, in claims of these sizes in turn, and says how many are of each queue.
func (n *node) claims(all int, sizes ...int) string {
	n.w.Helper()
	var claimed []protocol.ClaimedTask
	for i := 0; len(claimed) < all; i++ {
		some := n.turn(protocol.Turn{Slots: min(sizes[i%len(sizes)], all-len(claimed)), Start: true}).Claimed
		if len(some) == 0 {
			break
		}
		var ended []protocol.Ending
		for _, c := range some {
			ended = append(ended, ok(c))
		}
		n.end(ended...)
		claimed = append(claimed, some...)
	}
	return shares(claimed)
}

var weightCases = []testCase{
	{"queues share a node by their weights", func(w *world) {
		n := w.node("n1")
		w.weigh("a", 1, "", 60)
		w.weigh("b", 2, "", 120)
		w.weigh("c", 4, "", 200)
		w.equal("1, 2 and 4", n.claims(140, 1, 7, 20, 3), "a20 b40 c80")
		q := w.queueNamed("a")
		q.Weight = 4
		w.no(w.s.SetQueue(w.ctx, q))
		w.equal("4, 2 and 4", n.claims(50, 5, 10), "a20 b10 c20")
	}},
	{"groups share a node by their weights, and the queues of a group what it gets", func(w *world) {
		n := w.node("n1")
		w.group("light", plan.GroupSettings{Weight: 1})
		w.group("heavy", plan.GroupSettings{Weight: 4})
		w.weigh("a", 0, "light", 60)
		w.weigh("b", 3, "light", 60)
		w.weigh("c", 0, "heavy", 200)
		w.equal("of 1 and 4", n.claims(100, 1, 4, 15), "a5 b15 c80")
	}},
	{"a group in a group has its part of that", func(w *world) {
		n := w.node("n1")
		w.group("company", plan.GroupSettings{})
		w.group("solution", plan.GroupSettings{Parent: "company", Weight: 3})
		w.weigh("a", 0, "solution", 100)
		w.weigh("b", 0, "company", 100)
		w.weigh("c", 0, "", 100)
		w.equal("half for the company", n.claims(80, 2, 9), "a30 b10 c40")
	}},
	{"who has no work leaves its part to the others, and collects nothing", func(w *world) {
		n := w.node("n1")
		w.weigh("a", 9, "", 0)
		w.weigh("b", 1, "", 200)
		w.equal("alone", n.claims(100, 10), "b100")
		w.fill("a", 50)
		w.equal("nine of ten", n.claims(40, 4), "a36 b4")
		w.equal("the rest, and then the other", n.claims(54, 9), "a14 b40")
	}},
	{"who has its part of the threads running waits while others have work", func(w *world) {
		n := w.node("n1")
		w.weigh("slow", 1, "", 40)
		w.weigh("quick", 1, "", 12)
		slow := w.queueNamed("slow").ID
		w.equal("half of the threads are taken", shares(n.turn(protocol.Turn{Slots: 4, Start: true, Running: protocol.Tally{slow: 4}}).Claimed), "q4")
		w.equal("one is free", shares(n.turn(protocol.Turn{Slots: 5, Start: true, Running: protocol.Tally{slow: 4}}).Claimed), "q4 s1")
		w.equal("the other has no more", shares(n.turn(protocol.Turn{Slots: 6, Start: true, Running: protocol.Tally{slow: 4}}).Claimed), "q4 s2")
	}},
	{"that holds for queues without a weight as well", func(w *world) {
		n := w.node("n1")
		w.weigh("slow", 0, "", 40)
		w.weigh("quick", 0, "", 12)
		w.weigh("third", 0, "", 0)
		slow, quick := w.queueNamed("slow").ID, w.queueNamed("quick").ID
		w.equal("none runs its part", shares(n.turn(protocol.Turn{Slots: 4, Start: true, Running: protocol.Tally{slow: 1}}).Claimed), "q2 s2")
		w.equal("one does", shares(n.turn(protocol.Turn{Slots: 4, Start: true, Running: protocol.Tally{slow: 4}}).Claimed), "q4")
		w.equal("one thread is free", shares(n.turn(protocol.Turn{Slots: 1, Start: true, Running: protocol.Tally{slow: 2, quick: 1}}).Claimed), "q1")
		w.equal("the other has no more", shares(n.turn(protocol.Turn{Slots: 8, Start: true, Running: protocol.Tally{slow: 4, quick: 2}}).Claimed), "q5 s3")
	}},
	{"a paused group and a spent rate leave their part to the others", func(w *world) {
		n := w.node("n1")
		w.group("off", plan.GroupSettings{Paused: true})
		w.group("slow", plan.GroupSettings{Rate: plan.Rate{Starts: 1, Per: hourly.Per, Burst: 3}})
		w.weigh("a", 0, "off", 20)
		w.weigh("b", 0, "slow", 20)
		w.weigh("c", 0, "", 60)
		w.equal("what may start", n.claims(40, 8), "b3 c37")
	}},
	{"what a rate lets start of a group is shared by weight, however many threads are free", func(w *world) {
		n := w.node("n1")
		w.group("g", plan.GroupSettings{Rate: plan.Rate{Starts: 2, Per: hourly.Per, Burst: 2}})
		w.group("g3", plan.GroupSettings{Parent: "g", Weight: 3})
		w.group("g1", plan.GroupSettings{Parent: "g"})
		w.weigh("a", 3, "g3", 20)
		w.weigh("b", 1, "g3", 20)
		w.weigh("c", 0, "g1", 20)
		var claimed []protocol.ClaimedTask
		for range 8 {
			did := n.turn(protocol.Turn{Slots: 16, Start: true})
			w.equal("starts, and a rest", []any{len(did.Claimed), did.Rest > 0}, []any{2, true})
			for _, c := range did.Claimed {
				n.end(ok(c))
			}
			claimed = append(claimed, did.Claimed...)
			w.pass(2 * time.Hour)
		}
		w.equal("of 16 starts", shares(claimed), "a9 b3 c4")
	}},
	{"many queues share by their weights", func(w *world) {
		n := w.node("n1")
		w.group("g", plan.GroupSettings{Weight: 10})
		for i := range 10 {
			w.weigh(fmt.Sprint("x", i), 0, "", 10)
		}
		w.weigh("g1", 0, "g", 150)
		w.equal("half of all", n.claims(120, 20), "g60 x60")
	}},
}
