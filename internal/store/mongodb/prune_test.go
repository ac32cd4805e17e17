package mongodb

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// endedPlan makes a plan of one task, and has it cancelled, and a task of no plan that needs that one and runs whatever became of it.
func endedPlan(t *testing.T, s *Store) (plan.PlanID, plan.Task) {
	t.Helper()
	ctx, no := t.Context(), noError(t)
	q, err := s.EnsureQueue(ctx, plan.Queue{Name: "q", Plugin: "x", Unlimited: true})
	no(err)
	p, err := s.CreatePlan(ctx, plan.Plan{Name: "wanted"})
	no(err)
	parent := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "parent", Queue: q.ID}
	no(s.AddTasks(ctx, p.ID, []plan.Task{parent}))
	no(s.Ready(ctx, p.ID))
	no(s.CancelPlan(ctx, p.ID))
	child := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Needs: []plan.TaskID{parent.ID}}
	child.When = plan.AllDone
	return p.ID, child
}

// TestADeletionAndWhoComesToNeedThePlanNoticeEachOther does all of the one before, or after, each single write of the other.
func TestADeletionAndWhoComesToNeedThePlanNoticeEachOther(t *testing.T) {
	s, _, no := openTest(t)
	ctx := t.Context()
	add := func(s *Store, child plan.Task) error { return s.AddTasks(ctx, plan.PlanID{}, []plan.Task{child}) }
	retry := func(s *Store, child plan.Task) error {
		return s.Retry(ctx, plan.PlanID{}, []rules.Retried{{ID: child.ID, Status: plan.Cancelled}}, nil, nil)
	}
	for _, c := range []struct {
		name    string
		retried bool  // the child was there before, and was cancelled
		refused error // if it comes too late
		inside  bool  // the deletion is done amid the writes of the other, else the other amid those of the deletion
	}{
		{"a deletion while a task is added", false, plan.ErrNotFound, true},
		{"a task that is added while a plan is deleted", false, plan.ErrNotFound, false},
		{"a deletion while a task is taken back", true, plan.ErrConflict, true},
		{"a task that is taken back while a plan is deleted", true, plan.ErrConflict, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for at := 1; !t.Failed(); at++ {
				p, child := endedPlan(t, s)
				come := add
				if c.retried {
					no(add(s, child))
					no(s.CancelTask(ctx, child.ID))
					come = retry
				}
				var came, deleted error
				waits := false // the child, when the deletion began
				needs := func(s *Store) { came = come(s, child) }
				deletes := func(s *Store) {
					now, _ := s.Task(ctx, child.ID)
					waits = c.retried && !now.Status.Finished()
					_, deleted = s.DeletePlan(ctx, p, 100)
				}
				outer, inner := deletes, needs
				if c.inside {
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
				if deleted != nil && !errors.Is(deleted, plan.ErrPlanActive) || came != nil && !errors.Is(came, c.refused) {
					t.Errorf("at %d: deleted with error %v, came with error %v", at, deleted, came)
				}
				if deleted != nil && came != nil || waits && deleted == nil {
					t.Errorf("at %d: deleted with error %v, came with error %v; taken back before the deletion: %v", at, deleted, came, waits)
				}
				if came != nil {
					if got, err := s.Task(ctx, child.ID); c.retried && got.Status != plan.Cancelled || !c.retried && !errors.Is(err, plan.ErrNotFound) {
						t.Errorf("at %d: the task that was refused is %v, %v", at, got.Status, err)
					}
					continue
				}
				got, err := s.Task(ctx, child.ID)
				no(err)
				_, err = s.Plan(ctx, p)
				kept, sees := err == nil, strings.Contains(string(got.Params), `"parent"`)
				if got.Status != plan.Queued || kept != sees || kept != (deleted != nil) || !kept && !c.retried {
					t.Errorf("at %d: the task is %v with params %s, the plan is there: %v; deleted with error %v", at, got.Status, got.Params, kept, deleted)
				}
			}
		})
	}
}

// TestWhatWasAddedHalfNeedsThePlanOrGoes kills who adds a task of no plan before, or after, each write, and has another process sweep.
func TestWhatWasAddedHalfNeedsThePlanOrGoes(t *testing.T) {
	s, _, no := openTest(t)
	ctx := t.Context()
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(ctx, plan.Instance{ID: id, Node: "n1"}))
	killed := errors.New("killed by its test")
	for _, deletes := range []bool{false, true} {
		for at := 1; !t.Failed(); at++ {
			p, child := endedPlan(t, s)
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
			var deleted error
			if deletes {
				_, deleted = s.DeletePlan(ctx, p, 100)
			}
			for range 2 {
				_, err := s.Sweep(ctx, protocol.Sweep{Instance: id})
				no(err)
			}
			got, there := s.Task(ctx, child.ID)
			_, kept := s.Plan(ctx, p)
			switch {
			case kept == nil && there == nil && got.Status == plan.Queued && strings.Contains(string(got.Params), `"parent"`):
			case kept == nil && errors.Is(there, plan.ErrNotFound) && at == 1: // it was not inserted
			case kept != nil && errors.Is(there, plan.ErrNotFound) && deleted == nil:
			default:
				t.Errorf("killed at %d: the task is %v with params %s (%v), the plan is there: %v; deleted with error %v", at, got.Status, got.Params, there, kept, deleted)
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
