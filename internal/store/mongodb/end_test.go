package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// stepped opens a store that calls step before each command that it sends for a call that is given the context of its second result; one
// at a time, though a store sends some side by side.
func stepped(t *testing.T, uri string, step func(e *event.CommandStartedEvent)) (*Store, context.Context) {
	t.Helper()
	type key struct{}
	var mu sync.Mutex
	s := openMonitored(t, uri, &event.CommandMonitor{Started: func(ctx context.Context, e *event.CommandStartedEvent) {
		if ctx.Value(key{}) != nil {
			mu.Lock()
			defer mu.Unlock()
			step(e)
		}
	}})
	return s, context.WithValue(t.Context(), key{}, true)
}

// TestAPlanDoesNotEndWhileATaskOfItGoesBack has a node end the last task but one of a plan, and, before each of the questions that it asks
// then, another node have the last task back where it came from, or where it waits for its next attempt.
func TestAPlanDoesNotEndWhileATaskOfItGoesBack(t *testing.T) {
	for name, back := range map[string]func(s *Store, i plan.InstanceID, c protocol.ClaimedTask) error{
		"for its next attempt": func(s *Store, i plan.InstanceID, c protocol.ClaimedTask) error {
			_, err := s.Turn(t.Context(), protocol.Turn{Instance: i, Ended: []protocol.Ending{{Claim: c.Claim, Status: plan.Held, Delay: time.Minute}}})
			return err
		},
		"to be made into items": func(s *Store, i plan.InstanceID, c protocol.ClaimedTask) error {
			_, err := s.Turn(t.Context(), protocol.Turn{Instance: i, Ended: []protocol.Ending{{
				Claim: c.Claim, Status: plan.Held, Expand: true, Items: []json.RawMessage{[]byte(`"x"`), []byte(`"y"`)},
			}}})
			return err
		},
		"given back": func(s *Store, i plan.InstanceID, c protocol.ClaimedTask) error {
			_, err := s.Turn(t.Context(), protocol.Turn{Instance: i, Ended: []protocol.Ending{{Claim: c.Claim, Status: plan.Queued}}})
			return err
		},
		"rescued": func(s *Store, i plan.InstanceID, _ protocol.ClaimedTask) error {
			_, err := s.Rescue(t.Context(), i, -1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri, _ := database(t)
			other, no := openAt(t, uri), noError(t)
			asked, at := 0, 0
			var meanwhile func()
			s, ctx := stepped(t, uri, func(e *event.CommandStartedEvent) {
				if c, _ := e.Command.Index(0).Value().StringValueOK(); e.CommandName == "find" && c == "tasks" {
					if asked++; asked == at {
						meanwhile()
					}
				}
			})
			q, err := other.EnsureQueue(t.Context(), plan.Queue{Name: "q", Plugin: "x", Unlimited: true})
			no(err)
			for at = 1; ; at++ {
				p, err := other.CreatePlan(t.Context(), plan.Plan{Name: "p"})
				no(err)
				no(other.AddTasks(t.Context(), p.ID, []plan.Task{
					{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "a", Queue: q.ID},
					{
						ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "b", Queue: q.ID,
						Definition: plan.Definition{Foreach: &plan.Foreach{Lines: "/list"}},
					},
				}))
				no(other.Ready(t.Context(), p.ID))
				claim := func(s *Store, n plan.NodeName) (plan.InstanceID, protocol.ClaimedTask) {
					t.Helper()
					i := plan.InstanceID{ID: plan.NewID(time.Now())}
					no(s.Register(t.Context(), plan.Instance{ID: i, Node: n}))
					did, err := s.Turn(t.Context(), protocol.Turn{Instance: i, Plan: p.ID, Slots: 1, Plugins: []string{"x"}, Start: true})
					no(err)
					if len(did.Claimed) != 1 {
						t.Fatalf("claimed %d tasks, want 1", len(did.Claimed))
					}
					return i, did.Claimed[0]
				}
				one, a := claim(s, plan.NodeName(fmt.Sprint("one", at)))
				two, b := claim(other, plan.NodeName(fmt.Sprint("two", at)))
				meanwhile = func() {
					if err := back(other, two, b); err != nil {
						t.Error(err)
					}
				}
				asked = 0
				did, err := s.Turn(ctx, protocol.Turn{Instance: one, Ended: []protocol.Ending{{Claim: a.Claim, Status: plan.Succeeded}}})
				no(err)
				if asked < at {
					break
				}
				got, err := other.Plan(t.Context(), p.ID)
				no(err)
				if len(did.Ended) > 0 || got.State != plan.PlanRunning {
					t.Errorf("b went back before question %d, and the plan is %v with %+v", at, got.State, got.Counts)
				}
			}
			if at < 2 {
				t.Error("the turn asked nothing about tasks: this tests nothing")
			}
		})
	}
}

// TestAPlanEndsThoughALateTaskWasTakenBack has a late task whose name is taken stand in a plan for a moment, and the plan's last task end at
// that moment.
func TestAPlanEndsThoughALateTaskWasTakenBack(t *testing.T) {
	uri, _ := database(t)
	var writes int
	var before, after func()
	no := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	adder, err := Open(t.Context(), uri, Options{Hook: func(written bool) error {
		switch {
		case before == nil:
		case !written:
			if writes++; writes == 1 {
				before()
			}
		case writes == 1:
			after()
		}
		return nil
	}})
	no(err)
	t.Cleanup(func() { _ = adder.Close() })
	s, err := Open(t.Context(), uri, Options{})
	no(err)
	t.Cleanup(func() { _ = s.Close() })
	id := flatPlan(t, s, 1)
	p := onlyPlan(t, s)
	turn := protocol.Turn{Instance: id, Slots: 1, Plugins: []string{"x"}, Start: true}
	did, err := s.Turn(t.Context(), turn)
	no(err)
	q := did.Claimed[0].Queue
	late := func() []plan.Task {
		return []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "late", Queue: q}}
	}
	before = func() {
		no(s.AddTasks(t.Context(), p, late()))
		turn.Ended = endings(did.Claimed)
		did, err = s.Turn(t.Context(), turn)
		no(err)
		if len(did.Claimed) != 1 || did.Claimed[0].Name != "late" {
			t.Fatalf("claimed %v, want the late task", did.Claimed)
		}
	}
	after = func() {
		turn.Ended, turn.Slots = endings(did.Claimed), 0
		did, err = s.Turn(t.Context(), turn)
		no(err)
	}
	if err := adder.AddTasks(t.Context(), p, late()); !errors.Is(err, plan.ErrExists) {
		t.Errorf("adding a task of a name that was taken meanwhile: got error %v, want %v", err, plan.ErrExists)
	}
	if got, err := s.Plan(t.Context(), p); err != nil || got.State != plan.PlanSucceeded {
		t.Errorf("the plan is %v with %+v, %v; want succeeded", got.State, got.Counts, err)
	}
}

// onlyPlan returns the plan that there is.
func onlyPlan(t *testing.T, s *Store) plan.PlanID {
	t.Helper()
	plans, err := s.Plans(t.Context(), store.PlanQuery{})
	if err != nil || len(plans) != 1 {
		t.Fatalf("there are %d plans, %v; want 1", len(plans), err)
	}
	return plans[0].ID
}

// TestAForeachThatIsCancelledWhileItIsMadeCountsItsItems has a person cancel a foreach task before each of
// the writes that make its items.
func TestAForeachThatIsCancelledWhileItIsMadeCountsItsItems(t *testing.T) {
	uri, _ := database(t)
	s, no := openAt(t, uri), noError(t)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q", Plugin: "x", Unlimited: true})
	no(err)
	node := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(t.Context(), plan.Instance{ID: node, Node: "n", Plugins: []string{"x"}}))
	for at, met := 1, true; met; at++ {
		p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "p"})
		no(err)
		id := plan.TaskID{ID: plan.NewID(time.Now())}
		no(s.AddTasks(t.Context(), p.ID, []plan.Task{{
			ID: id, Name: "each", Queue: q.ID,
			Definition: plan.Definition{Foreach: &plan.Foreach{List: json.RawMessage("[1,2,3]")}},
		}}))
		writes := 0
		met = false
		making := newStore(s.Client, s.DB.Name(), Options{Hook: func(written bool) error {
			if written {
				return nil
			}
			if writes++; writes == at {
				met = true
				return s.CancelTask(t.Context(), id)
			}
			return nil
		}})
		no(making.prepare(t.Context(), false))
		no(making.Ready(t.Context(), p.ID))
		for range 3 {
			_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: node})
			no(err)
		}
		task, err := s.Task(t.Context(), id)
		no(err)
		items, err := s.Tasks(t.Context(), store.TaskQuery{Of: id, Limit: 10})
		no(err)
		if task.Items != len(items) || met && task.Status != plan.Cancelled {
			t.Errorf("cancelled before write %d it is %v and says that it has %d items, of which %d are in the store", at, task.Status, task.Items, len(items))
		}
	}
}
