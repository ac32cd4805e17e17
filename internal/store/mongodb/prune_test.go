package mongodb

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// endedTask makes a task of no plan that is kept no longer, and a task that needs it and runs whatever became of it.
func endedTask(t *testing.T, s *Store) (parent, child plan.Task) {
	t.Helper()
	ctx, no := t.Context(), noError(t)
	q, err := s.EnsureQueue(ctx, plan.Queue{Name: "q", Plugin: "x", Unlimited: true})
	no(err)
	q.Keep = plan.Keep{Cancelled: plan.Duration(time.Minute)}
	no(s.SetQueue(ctx, q))
	parent = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "parent", Queue: q.ID}
	no(s.AddTasks(ctx, plan.PlanID{}, []plan.Task{parent}))
	no(s.CancelTask(ctx, parent.ID))
	_, err = s.tasks.UpdateByID(ctx, oid(parent.ID.ID), d("$set", d("ended", time.Now().Add(-time.Hour))))
	no(err)
	child = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Needs: []plan.TaskID{parent.ID}}
	child.When = plan.AllDone
	return parent, child
}

// TestADeletionAndWhoComesToNeedTheTaskNoticeEachOther does all of the one before, or after, each single write of the other.
func TestADeletionAndWhoComesToNeedTheTaskNoticeEachOther(t *testing.T) {
	s, _, no := openTest(t)
	ctx := t.Context()
	for _, inside := range []bool{true, false} { // the deletion is done amid the writes of the other, or the other way round
		t.Run(fmt.Sprint("the deletion inside ", inside), func(t *testing.T) {
			for at := 1; !t.Failed(); at++ {
				parent, child := endedTask(t, s)
				var came error
				needs := func(s *Store) { came = s.AddTasks(ctx, plan.PlanID{}, []plan.Task{child}) }
				deletes := func(s *Store) {
					_, err := s.Expire(ctx, 100)
					no(err)
				}
				outer, inner := deletes, needs
				if inside {
					outer, inner = needs, deletes
				}
				calls := 0
				hooked := newStore(s.Client, s.DB.Name(), Options{Hook: func(bool) error {
					if calls++; calls == at {
						inner(s)
					}
					return nil
				}})
				no(hooked.prepare(ctx, false))
				outer(hooked)
				if calls < at {
					break
				}
				got, err := s.Task(ctx, child.ID)
				_, gone := s.Task(ctx, parent.ID)
				switch {
				case came == nil && err == nil && gone == nil && got.Status == plan.Queued && strings.Contains(string(got.Params), `"parent"`):
					no(s.CancelTask(ctx, child.ID))
				case errors.Is(came, plan.ErrNotFound) && errors.Is(err, plan.ErrNotFound):
				default:
					t.Errorf("at %d: added with error %v: the task is %v with params %s (%v), what it needs: %v", at, came, got.Status, got.Params, err, gone)
				}
			}
		})
	}
}

// TestWhatWasAddedHalfNeedsTheTaskOrGoes kills who adds a task of no plan before, or after, each write, and has another process sweep.
func TestWhatWasAddedHalfNeedsTheTaskOrGoes(t *testing.T) {
	s, _, no := openTest(t)
	ctx := t.Context()
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(ctx, plan.Instance{ID: id, Node: "n1"}))
	killed := errors.New("killed by its test")
	for _, deletes := range []bool{false, true} {
		for at := 1; !t.Failed(); at++ {
			parent, child := endedTask(t, s)
			calls := 0
			hooked := newStore(s.Client, s.DB.Name(), Options{Hook: func(bool) error {
				if calls++; calls >= at {
					return killed
				}
				return nil
			}})
			no(hooked.prepare(ctx, false))
			if err := hooked.AddTasks(ctx, plan.PlanID{}, []plan.Task{child}); err == nil {
				break
			} else if !errors.Is(err, killed) {
				t.Fatal(err)
			}
			if deletes {
				_, err := s.Expire(ctx, 100)
				no(err)
			}
			for range 2 {
				_, err := s.Sweep(ctx, protocol.Sweep{Instance: id})
				no(err)
			}
			got, there := s.Task(ctx, child.ID)
			_, kept := s.Task(ctx, parent.ID)
			switch {
			case kept == nil && there == nil && got.Status == plan.Queued && strings.Contains(string(got.Params), `"parent"`):
			case errors.Is(there, plan.ErrNotFound) && (at == 1 || kept != nil): // it was not inserted, or finds its parent gone
			default:
				t.Errorf("killed at %d: the task is %v with params %s (%v), what it needs: %v", at, got.Status, got.Params, there, kept)
			}
		}
	}
}

// TestExpireReadsNoMoreThanItMayDelete has many plans whose time is over, and, before those in the order in which they are looked at, some that
// stay for now.
func TestExpireReadsNoMoreThanItMayDelete(t *testing.T) {
	s, read := counting(t)
	var docs []any
	over := time.Now().Add(-time.Hour)
	const stay, all, budget = 12, 300, 5
	for i := range all {
		p := d("_id", bson.NewObjectID(), "name", "old", "run", i+1, "state", plan.PlanSucceeded, "edits", 0, "ctime", over, "mtime", over,
			"ended", over, "until", over.Add(time.Duration(i)*time.Second))
		if i < stay {
			p = append(p, bson.E{Key: "retry", Value: bson.NewObjectID()})
		}
		docs = append(docs, p)
	}
	if _, err := s.plans.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < all-stay; {
		read.Store(0)
		gone, err := s.Expire(t.Context(), budget)
		plans := gone.Plans
		if err != nil || plans == 0 || gone.More != (n+plans < all-stay) {
			t.Fatalf("after %d plans %+v went, %v", n, gone, err)
		}
		if got := read.Load(); got > stay+3*budget {
			t.Fatalf("to delete %d plans %d were read, want %d at most", plans, got, stay+3*budget)
		}
		n += plans
	}
	if left, err := s.plans.CountDocuments(t.Context(), d()); err != nil || left != stay {
		t.Errorf("%d plans are left, %v; want %d", left, err, stay)
	}
}
