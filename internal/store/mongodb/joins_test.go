package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"

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
			turn := plan.Turn{Instance: flatPlan(t, s, parents), Slots: parents, Plugins: []string{"x"}, Start: true}
			did, err := s.Turn(t.Context(), turn)
			no(err)
			child := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: did.Claimed[0].Queue}
			for _, parent := range did.Claimed {
				child.Needs = append(child.Needs, parent.Task)
			}
			no(s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{child}))
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
	id := flatPlan(t, s, 0)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q"})
	no(err)
	for at := 1; !t.Failed(); at++ {
		of := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID}
		of.Foreach = &plan.Foreach{List: json.RawMessage(`[0]`)}
		writes, cancelled := 0, false
		hooked := newStore(s.client, s.db.Name(), Options{Hook: func(written bool) error {
			if written {
				return nil
			}
			if writes++; writes == at {
				err := s.CancelTask(t.Context(), plan.ItemID(of.ID, 0))
				if cancelled = err == nil; !cancelled && !errors.Is(err, plan.ErrNotFound) {
					t.Error(err)
				}
			}
			return nil
		}})
		no(hooked.prepare(t.Context(), false))
		no(hooked.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{of}))
		if writes < at {
			break
		}
		_, err = s.Sweep(t.Context(), plan.Sweep{Instance: id})
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
	turn := plan.Turn{Instance: flatPlan(t, other, 0), Slots: 2 * addAtOnce, Plugins: []string{"x"}, Start: true}
	run := func() {
		_, err := other.Sweep(t.Context(), plan.Sweep{Instance: turn.Instance})
		no(err)
		did, err := other.Turn(t.Context(), turn)
		no(err)
		_, err = other.Turn(t.Context(), plan.Turn{Instance: turn.Instance, Ended: endings(did.Claimed)})
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
