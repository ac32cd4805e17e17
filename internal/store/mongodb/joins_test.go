package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// TestAJoinIsWrittenWhenItDecides ends the parents of a task in parts: those of a join come in more than one.
func TestAJoinIsWrittenWhenItDecides(t *testing.T) {
	const parents = 2*joinSize + 10
	for _, c := range []struct {
		name   string
		older  bool                 // the joins do not say what decides
		fails  int                  // which parent does; 0: none
		writes [parents/100 + 1]int // of joins, after each hundred endings
		status plan.Status
	}{
		{name: "all succeed", writes: [...]int{0, 0, 1, 0, 1, 1}, status: plan.Queued},
		{name: "all succeed, with joins of an older version", older: true, writes: [...]int{1, 0, 2, 0, 1, 1}, status: plan.Queued},
		{name: "one fails", fails: 320, writes: [...]int{0, 0, 1, 1, 1, 1}, status: plan.Cancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			uri, _ := database(t)
			no := noError(t)
			var writes atomic.Int64
			s := openMonitored(t, uri, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
				if of, _ := e.Command.Index(0).Value().StringValueOK(); e.CommandName == "update" && of == "joins" {
					updates, err := e.Command.Lookup("updates").Array().Values()
					no(err)
					writes.Add(int64(len(updates)))
				}
			}})
			turn := protocol.Turn{Instance: flatPlan(t, s, parents), Slots: parents, Plugins: []string{"x"}, Start: true}
			did, err := s.Turn(t.Context(), turn)
			no(err)
			child := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: did.Claimed[0].Queue}
			for _, parent := range did.Claimed {
				child.Needs = append(child.Needs, parent.Task)
			}
			no(s.AddTasks(t.Context(), onlyPlan(t, s), []plan.Task{child}))
			if c.older {
				n, err := s.joins.UpdateMany(t.Context(), d("child", oid(child.ID.ID)), d("$unset", d("waits", 1)))
				if no(err); n.ModifiedCount != 3 {
					t.Fatalf("%d joins were changed, want 3", n.ModifiedCount)
				}
			}
			ended := endings(did.Claimed)
			turn.Slots = 0
			for i := 0; i*100 < parents; i++ {
				turn.Ended = ended[i*100 : min(parents, i*100+100)]
				if k := c.fails - i*100; c.fails > 0 && k >= 0 && k < 100 {
					turn.Ended[k].Status = plan.Failed
				}
				writes.Store(0)
				_, err := s.Turn(t.Context(), turn)
				no(err)
				if got := int(writes.Load()); got != c.writes[i] {
					t.Errorf("after %d endings joins were written %d times, want %d", i*100+len(turn.Ended), got, c.writes[i])
				}
				want := plan.Held
				if i*100+100 >= parents || c.fails > 0 && c.fails < i*100+100 {
					want = c.status
				}
				if got, err := s.Task(t.Context(), child.ID); err != nil || got.Status != want {
					t.Errorf("after %d endings the child is %v, %v; want %v", i*100+len(turn.Ended), got.Status, err, want)
				}
			}
		})
	}
}

// TestTheOnlyItemIsCancelledWhileItIsMade has a person cancel the item of a foreach task, as soon as it is there, before each write of who
// makes it.
func TestTheOnlyItemIsCancelledWhileItIsMade(t *testing.T) {
	s, _, no := openTest(t)
	id := flatPlan(t, s, 1) // which waits, so that its plan takes tasks
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q"})
	no(err)
	for at := 1; !t.Failed(); at++ {
		of := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("copy", at), Queue: q.ID}
		of.Foreach = &plan.Foreach{List: json.RawMessage(`[0]`)}
		writes, cancelled := 0, false
		hooked := newStore(s.Client, s.DB.Name(), Options{Hook: func(written bool) error {
			if written {
				return nil
			}
			if writes++; writes == at {
				err := s.CancelTask(t.Context(), rules.ItemID(of.ID, 0))
				if cancelled = err == nil; !cancelled && !errors.Is(err, plan.ErrNotFound) {
					t.Error(err)
				}
			}
			return nil
		}})
		no(hooked.prepare(t.Context(), false))
		no(hooked.AddTasks(t.Context(), onlyPlan(t, s), []plan.Task{of}))
		if writes < at {
			break
		}
		_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: id})
		no(err)
		if got, err := s.Task(t.Context(), of.ID); err != nil || (got.Status == plan.Cancelled) != cancelled {
			t.Errorf("at write %d: the item was cancelled: %v; its task is %v, %v", at, cancelled, got.Status, err)
		}
	}
}

// TestParentsThatAreStillToComeAreNotCancelledOnes adds parents and their child in one call, which are too many for one command. Before
// the second one the first parents run, and one that was there before.
func TestParentsThatAreStillToComeAreNotCancelledOnes(t *testing.T) {
	uri, _ := database(t)
	other, no := openAt(t, uri), noError(t)
	turn := protocol.Turn{Instance: flatPlan(t, other, 0), Slots: 2 * addAtOnce, Plugins: []string{"x"}, Start: true}
	run := func() {
		_, err := other.Sweep(t.Context(), protocol.Sweep{Instance: turn.Instance})
		no(err)
		did, err := other.Turn(t.Context(), turn)
		no(err)
		_, err = other.Turn(t.Context(), protocol.Turn{Instance: turn.Instance, Ended: endings(did.Claimed)})
		no(err)
	}
	inserts := 0
	s, ctx := stepped(t, uri, func(e *event.CommandStartedEvent) {
		if of, _ := e.Command.Index(0).Value().StringValueOK(); e.CommandName == "insert" && of == "tasks" {
			if inserts++; inserts == 2 {
				run()
			}
		}
	})
	q, err := s.EnsureQueue(ctx, plan.Queue{Name: "q"})
	no(err)
	newTask := func() plan.Task { return plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID} }
	before, child := newTask(), newTask()
	no(other.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{before}))
	child.Needs = []plan.TaskID{before.ID}
	var tasks []plan.Task
	for range addAtOnce + joinSize - 10 {
		tasks = append(tasks, newTask())
	}
	for _, parent := range tasks[addAtOnce-10:] {
		child.Needs = append(child.Needs, parent.ID)
	}
	no(s.AddTasks(ctx, plan.PlanID{}, append(tasks, child)))
	if inserts < 2 {
		t.Fatalf("the tasks were inserted by %d commands, want more", inserts)
	}
	if got, err := s.Task(ctx, child.ID); err != nil || got.Status != plan.Held {
		t.Errorf("before its last parents have ended the child is %v, %v", got.Status, err)
	}
	for range 3 {
		run()
	}
	if got, err := s.Task(ctx, child.ID); err != nil || got.Status != plan.Succeeded {
		t.Errorf("after all of its parents have succeeded the child is %v, %v", got.Status, err)
	}
}

func TestATaskFailsOfWhichAJoinIsGone(t *testing.T) {
	s, _, no := openTest(t)
	turn := protocol.Turn{Instance: flatPlan(t, s, joinSize+1), Slots: joinSize + 1, Plugins: []string{"x"}, Start: true}
	did, err := s.Turn(t.Context(), turn)
	no(err)
	whole := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "whole", Queue: did.Claimed[0].Queue}
	for _, parent := range did.Claimed {
		whole.Needs = append(whole.Needs, parent.Task)
	}
	child := whole
	child.ID, child.Name = plan.TaskID{ID: plan.NewID(time.Now())}, "child"
	no(s.AddTasks(t.Context(), onlyPlan(t, s), []plan.Task{whole, child}))
	_, err = s.joins.DeleteOne(t.Context(), d("child", oid(child.ID.ID), "n", 0))
	no(err)
	turn.Slots, turn.Ended = 0, endings(did.Claimed)[joinSize:]
	_, err = s.Turn(t.Context(), turn)
	no(err)
	got, err := s.Task(t.Context(), child.ID)
	if no(err); got.Status != plan.Failed || got.Reason != plan.ReasonInput || got.Detail != "of the 2 documents that hold its parents 1 are gone from the store" {
		t.Errorf("while %d parents run the child is %v, %s: %s", joinSize, got.Status, got.Reason, got.Detail)
	}
	if got, err := s.Task(t.Context(), whole.ID); err != nil || got.Status != plan.Held {
		t.Errorf("the other child is %v, %v; want held", got.Status, err)
	}
}

// TestAForeachTaskWhoseItemsAreBeingMadeWaits has the first items end before the join of the last ones is in, and joins go when all are.
func TestAForeachTaskWhoseItemsAreBeingMadeWaits(t *testing.T) {
	for _, gone := range []int64{0, 1, 2} {
		t.Run(fmt.Sprint(gone, " joins go"), func(t *testing.T) {
			const items = joinSize + 10
			s, _, no := openTest(t)
			q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q", Plugin: "x", Unlimited: true})
			no(err)
			id := plan.InstanceID{ID: plan.NewID(time.Now())}
			no(s.Register(t.Context(), plan.Instance{ID: id, Node: "n", Lease: time.Minute, Plugins: []string{"x"}}))
			of := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Definition: plan.Definition{Foreach: &plan.Foreach{Lines: "/list"}}}
			no(s.AddTasks(t.Context(), readyPlan(t, s), []plan.Task{of}))
			turn := protocol.Turn{Instance: id, Slots: 1, Plugins: []string{"x"}, Start: true}
			did, err := s.Turn(t.Context(), turn)
			no(err)
			e := protocol.Ending{Claim: did.Claimed[0].Claim, Status: plan.Held, Expand: true}
			for i := range items {
				e.Items = append(e.Items, fmt.Append(nil, i))
			}
			is := func(want plan.Status, when string) {
				t.Helper()
				if got, err := s.Task(t.Context(), of.ID); err != nil || got.Status != want {
					t.Errorf("%s it is %v, %v; want %v: %s", when, got.Status, err, want, got.Detail)
				}
			}
			turn.Slots, turn.Ended, turn.Budget = 0, []protocol.Ending{e}, joinSize+1 // the list is a document too
			_, err = s.Turn(t.Context(), turn)
			no(err)
			_, err = s.tasks.UpdateMany(t.Context(), d("of", oid(of.ID.ID), "_id", d("$ne", itemID(oid(of.ID.ID), 0))),
				d("$set", d("status", plan.Cancelled, "complete", true), "$unset", d("hold", 1, "open", 1)))
			no(err)
			no(s.CancelTask(t.Context(), rules.ItemID(of.ID, 0)))
			joins, err := s.joins.CountDocuments(t.Context(), d("child", oid(of.ID.ID), "done", true))
			if all, e := s.joins.CountDocuments(t.Context(), d("child", oid(of.ID.ID))); err != nil || e != nil || joins != 1 || all != 1 {
				t.Fatalf("%d of %d joins are done, %v, %v; want the first, alone", joins, all, err, e)
			}
			is(plan.Held, "when the items that are in have ended")
			turn.Ended = nil
			turn.Slots, turn.Budget = items, 0
			did, err = s.Turn(t.Context(), turn)
			if no(err); len(did.Claimed) != items-joinSize {
				t.Fatalf("%d items were claimed", len(did.Claimed))
			}
			for n := range gone {
				_, err = s.joins.DeleteOne(t.Context(), d("child", oid(of.ID.ID), "n", 1-n))
				no(err)
			}
			turn.Slots, turn.Ended = 0, endings(did.Claimed)
			_, err = s.Turn(t.Context(), turn)
			no(err)
			if gone > 0 {
				is(plan.Failed, "when all items have ended")
			} else {
				is(plan.Cancelled, "when all items have ended")
			}
		})
	}
}
