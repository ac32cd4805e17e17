package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// says has a node's beat say how far some of its tasks are, in place of what it said.
func (n *node) says(reached ...protocol.Reached) error {
	_, err := n.s.Beat(n.w.ctx, protocol.Beat{Instance: n.id, Progress: append([]protocol.Reached{}, reached...)})
	return err
}

func reached(c protocol.ClaimedTask, fraction float64, text string) protocol.Reached {
	return protocol.Reached{Claim: c.Claim, Progress: plan.Progress{Fraction: fraction, Text: text}}
}

// wantProgress compares what is shown of the plan's tasks, by every way of reading them.
func (w *world) wantProgress(when string, p plan.Plan, want ...string) {
	w.Helper()
	shown := func(tasks []plan.Task) string {
		var out []string
		for i := range tasks {
			if t := &tasks[i]; t.Progress != nil {
				out = append(out, fmt.Sprintf("%s %v", t.Name, t.Progress))
			}
		}
		slices.Sort(out)
		return strings.Join(out, "; ")
	}
	all := w.all(store.TaskQuery{Plan: p.ID})
	var single []plan.Task
	var ids []plan.TaskID
	for i := range all {
		single, ids = append(single, w.task(all[i].ID)), append(ids, all[i].ID)
	}
	for _, by := range []struct {
		way   string
		tasks []plan.Task
	}{
		{"Task", single}, {"Tasks", all}, {"Reached", w.all(store.TaskQuery{Reached: true})},
		{"Reached of the plan", w.all(store.TaskQuery{Plan: p.ID, Reached: true, Newest: true})},
		{"Reached of ids", w.all(store.TaskQuery{IDs: ids, Reached: true, Brief: true})},
	} {
		w.equal(when+": by "+by.way, shown(by.tasks), strings.Join(want, "; "))
		if strings.HasPrefix(by.way, "Reached") {
			w.equal(when+": tasks by "+by.way, len(by.tasks), len(want))
		}
	}
}

func progressIsShown(w *world) {
	p := w.submit(task("a"), task("b"), task("c"))
	n, other := w.node("n1"), w.node("n2")
	got := n.take("a", "b", "c")
	a, b, c := got[0], got[1], got[2]
	w.wantProgress("before anything is said", p)
	feed := must(w.s.Latest(w.ctx))(w)
	w.no(n.says(reached(a, 0.4, "copied 400 of 1000 $x"), reached(b, 0, "")))
	w.wantProgress("after a beat", p, "a 40% copied 400 of 1000 $x", "b 0%")
	must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w)
	w.wantProgress("after a beat with nothing new", p, "a 40% copied 400 of 1000 $x", "b 0%")
	w.no(n.says(reached(b, 0.5, "half")))
	w.wantProgress("after a beat in place of that", p, "b 50% half")
	changes, _, err := w.s.Changes(w.ctx, feed, 100)
	w.no(err)
	for _, ch := range changes {
		w.Errorf("the feed tells of %s, which only said how far it is", ch.Name)
	}

	// Reports of another attempt are shown for no task.
	w.no(n.says(reached(a, 0.9, "late"), reached(b, 0.9, "late"), reached(c, 0.9, "late")))
	n.end(fail(a), giveBack(b), ok(c))
	w.wantProgress("after what ended, and was given back", p)
	again := other.one()
	w.no(n.says(reached(b, 0.95, "later")))
	w.wantProgress("after another node has claimed what was given back", p)
	w.no(other.says(reached(again, 0.1, "anew")))
	w.wantProgress("after that has said something", p, "b 10% anew")
	w.no(w.tryRetry(p.ID, rules.Ask{Tasks: []plan.TaskID{a.Task}}))
	retried := n.one()
	w.no(n.says(reached(a, 0.99, "of the attempt before the retry")))
	w.wantProgress("after a retry", p, "b 10% anew")
	w.equal("attempts before and after the retry", retried.Attempt, a.Attempt)

	// A claim that is not started runs nothing, and an instance that is gone says nothing.
	other.end(giveBack(again))
	claimed := other.turn(protocol.Turn{Slots: 1}).Claimed
	w.no(other.says(reached(claimed[0], 0.2, "not begun")))
	w.wantProgress("of what is claimed", p)
	must(w.s.Start(w.ctx, []protocol.Claim{claimed[0].Claim}))(w)
	w.wantProgress("once that runs", p, "b 20% not begun")
	must(w.s.Rescue(w.ctx, other.id, -1))(w)
	if err := other.says(reached(claimed[0], 0.3, "dead")); !errors.Is(err, plan.ErrInstanceGone) {
		w.Errorf("an instance that is gone said something: %v", err)
	}
	w.wantProgress("after its rescue", p)
}
