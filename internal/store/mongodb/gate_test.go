package mongodb

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// TestWhoLooksAtParentsMeetsARetry has a process release children of a task, and, before each of its commands, another one retry that
// task: what the first has read of it by then is not to queue a child any more.
func TestWhoLooksAtParentsMeetsARetry(t *testing.T) {
	for _, c := range []struct {
		name string
		many int  // further parents of the children
		ends bool // the first process ends another parent of theirs, instead of adding them
	}{
		{name: "who adds a late task"},
		{name: "who adds a late task with many parents", many: joinSize},
		{name: "who ends another parent of a late task", ends: true},
		{name: "who ends another parent of a late task with many", ends: true, many: joinSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			uri, _ := database(t)
			asked, at := 0, 0
			var meanwhile func()
			s, ctx := stepped(t, uri, func(*event.CommandStartedEvent) {
				if asked++; asked == at {
					meanwhile()
				}
			})
			other, no := openAt(t, uri), noError(t)
			q, err := s.EnsureQueue(ctx, plan.Queue{Name: "q", Plugin: "x", Unlimited: true})
			no(err)
			made := func(name string, needs ...plan.TaskID) plan.Task {
				return plan.Task{
					ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: name, Queue: q.ID, Needs: needs, Definition: plan.Definition{When: plan.AllDone},
				}
			}
			retried, refused := 0, 0
			for at = 1; ; at++ {
				p, err := other.CreatePlan(t.Context(), plan.Plan{Name: "p"})
				no(err)
				first, second, third := made("first"), made("second"), made("third")
				tasks := []plan.Task{first, second, third}
				var many []plan.TaskID
				for k := range c.many {
					skipped := made(fmt.Sprint("skipped", k), third.ID)
					skipped.When = plan.AnyFailed
					tasks, many = append(tasks, skipped), append(many, skipped.ID)
				}
				no(other.AddTasks(t.Context(), p.ID, tasks))
				no(other.Ready(t.Context(), p.ID))
				i := plan.InstanceID{ID: plan.NewID(time.Now())}
				no(s.Register(t.Context(), plan.Instance{ID: i, Node: plan.NodeName(fmt.Sprint("n", at)), Plugins: []string{"x"}}))
				did, err := s.Turn(t.Context(), protocol.Turn{Instance: i, Plan: p.ID, Slots: 3, Plugins: []string{"x"}, Start: true})
				no(err)
				claims := map[plan.TaskID]protocol.Claim{}
				for _, c := range did.Claimed {
					claims[c.Task] = c.Claim
				}
				turn := func(ctx context.Context, id plan.TaskID, status plan.Status) error {
					_, err := s.Turn(ctx, protocol.Turn{Instance: i, Ended: []protocol.Ending{{Claim: claims[id], Status: status}}})
					return err
				}
				no(turn(t.Context(), first.ID, plan.Failed))
				no(turn(t.Context(), third.ID, plan.Succeeded))
				child := made("child", append(many, first.ID)...)
				if c.ends {
					child.Needs = append(child.Needs, second.ID)
					no(other.AddTasks(t.Context(), p.ID, []plan.Task{child}))
				}
				met := false
				meanwhile = func() {
					met = true
					_, err := other.Retry(t.Context(), p.ID, rules.Ask{Tasks: []plan.TaskID{first.ID}})
					switch {
					case err == nil:
						retried++
					case errors.Is(err, plan.ErrConflict):
						refused++
					default:
						t.Error(err)
					}
				}
				asked = 0
				if c.ends {
					no(turn(ctx, second.ID, plan.Succeeded))
				} else {
					no(s.AddTasks(ctx, p.ID, []plan.Task{child}))
				}
				if !met {
					break
				}
				parent, err := other.Task(t.Context(), first.ID)
				no(err)
				got, err := other.Task(t.Context(), child.ID)
				no(err)
				if (got.Status == plan.Queued) != parent.Status.Finished() {
					t.Errorf("retried before command %d: the child is %s, its parent %s", at, got.State(), parent.State())
				}
			}
			t.Logf("%d retries were made and %d refused", retried, refused)
			if retried < 3 || refused == 0 != c.ends { // a child that was queued before the retry goes with it
				t.Errorf("%d retries were made and %d refused: this tests too little", retried, refused)
			}
			left, err := other.Tasks(t.Context(), store.TaskQuery{Statuses: []plan.Status{plan.Held}})
			no(err)
			if len(left) != retried {
				t.Errorf("%d tasks are held, want one for each retry: %d", len(left), retried)
			}
		})
	}
}

// TestATaskKeepsItsGateWhileARetryIsUndone has a process undo the retry of another one, and, before
// each of its commands, the other one hold the failed task that the retry takes. The task is never
// held without a gate, and the other process puts it back when it undoes the retry itself.
func TestATaskKeepsItsGateWhileARetryIsUndone(t *testing.T) {
	uri, _ := database(t)
	asked, at := 0, 0
	var meanwhile func()
	s, ctx := stepped(t, uri, func(*event.CommandStartedEvent) {
		if asked++; asked == at {
			meanwhile()
		}
	})
	other := openAt(t, uri)
	held := 0
	for at = 1; ; at++ {
		r := newRescued(t, other, plan.Continue, plan.TaskSpec{Name: "a"})
		id := oid(r.plan.ID.ID)
		tasks, err := other.Tasks(t.Context(), store.TaskQuery{Plan: r.plan.ID})
		r.no(err)
		a := tasks[0]
		doc := retryDoc{
			ID: bson.NewObjectID(), Plan: id, At: time.Now(), Fate: undone, State: plan.PlanFailed, Ended: time.Now(),
			Tasks: []retriedDoc{{ID: oid(a.ID.ID), Status: plan.Failed}},
		}
		doc.Retry = doc.ID
		r.set(other.tasks, d("_id", oid(a.ID.ID)), d("$set", d("status", plan.Failed, "complete", true, "ended", time.Now(), "gate", doc.ID), "$unset", d("open", 1)))
		r.set(other.plans, d("_id", id), d("$set", d("retry", doc.ID)))
		_, err = other.retries.InsertOne(t.Context(), doc)
		r.no(err)
		task := func() (got taskDoc) {
			r.no(other.tasks.FindOne(t.Context(), d("_id", oid(a.ID.ID))).Decode(&got))
			return got
		}
		met := false
		meanwhile = func() {
			met = true
			g := other.gating(t.Context())
			if g.holdFinished(&doc); g.Err != nil && !errors.Is(g.Err, plan.ErrConflict) {
				t.Error(g.Err)
			}
		}
		asked = 0
		if err := s.goOn(ctx, doc.ID); !errors.Is(err, plan.ErrConflict) {
			t.Fatal(err)
		}
		if !met {
			break
		}
		if got := task(); got.Hold == holdRetry {
			if held++; got.Gate.IsZero() {
				t.Errorf("before command %d: the task is held by a retry, and in no gate", at)
			}
		}
		r.no(other.undo(t.Context(), []retryDoc{doc}))
		if got := task(); got.Status != plan.Failed || !got.Gate.IsZero() {
			t.Errorf("before command %d: the task has status %d, hold %q and gate %v after all was undone", at, got.Status, got.Hold, got.Gate)
		}
	}
	if held == 0 {
		t.Error("the task was held by none of the commands: this tests nothing")
	}
}
