package sluice

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/internal/feed"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Wait returns when the plan has ended, with the plan as it is then; its State says how it ended.
// It returns plan.ErrNotFound for a plan that does not exist or was deleted meanwhile. When ctx
// ends, it returns the error of ctx, and the plan as it was last seen. Only nodes run a plan:
// without one, Wait waits on.
func (s *Store) Wait(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	wait := backoff.Poll{Idle: backoff.Idle{Initial: 5 * time.Millisecond, Max: 500 * time.Millisecond}}
	query := store.PlanQuery{Prefix: id.String(), NoCounts: true, NoParams: true, Limit: 1}
	var seen plan.Plan
	for {
		found, err := s.driver.Plans(ctx, query)
		switch {
		case err != nil:
			return seen, err
		case len(found) == 0:
			return seen, fmt.Errorf("wait for plan %s: %w", id, plan.ErrNotFound)
		case found[0].State.Ended():
			return s.shown.Plan(ctx, id)
		}
		seen = found[0]
		if err := pause(ctx, wait.Next()); err != nil {
			return seen, err
		}
	}
}

// A Change is what has become of a task, or, without one, of the plan.
type Change struct {
	At    time.Time      // by the store's clock
	State plan.Lifecycle // of the plan, where Task is zero

	Task    plan.TaskID
	Name    string        // of the task, as all that follows
	Of      plan.TaskID   // the foreach task that it is an item of
	Status  plan.Status   // its state, which is plan.Skipped of a skipped task,
	Reason  plan.Reason   // and why it has that state,
	Detail  string        // for people
	Attempt int           // of the last or present claim; the first is 1
	Node    plan.NodeName // that has the claim, or had it last
}

// watchPause is how long Watch waits where nothing has changed.
const watchPause = 100 * time.Millisecond

// Watch returns the changes of a plan from this call on, in order, and ends after the change that
// ends the plan. For a plan that has ended it returns that change alone. Every task that changes is
// told of at least once, in a state at least as new as its change. A state that lasts for an
// instant may be left out. The loop ends after an error. plan.ErrNotFound means that the plan does
// not exist or was deleted meanwhile. plan.ErrCursor means that the store was restored from a
// backup. Any other error is that of ctx.
func (s *Store) Watch(ctx context.Context, id plan.PlanID) iter.Seq2[Change, error] {
	begin, err := feed.Follow(ctx, s.shown, id)
	return func(yield func(Change, error) bool) {
		if err != nil {
			yield(Change{}, err)
			return
		}
		f := *begin // for each loop, of which there may be several
		f.Seen = map[plan.TaskID]feed.Stamp{}
		s.watch(ctx, id, &f, yield)
	}
}

func (s *Store) watch(ctx context.Context, id plan.PlanID, f *feed.Feed, yield func(Change, error) bool) {
	for {
		p, err := s.shown.Plan(ctx, id) // before its changes are read, so that those before its end are told
		if err == nil && p.State.Ended() {
			f.Wait = 0
		}
		var changes []store.Change
		if err == nil {
			changes, err = f.Next(ctx)
		}
		if err == nil && f.Anew {
			err = plan.ErrCursor
		}
		for i := range changes {
			c := &changes[i]
			if c.Task.IsZero() {
				continue
			}
			is := Change{At: c.At, Task: c.Task, Name: c.Name, Of: c.Of, Status: c.Status, Reason: c.Reason, Detail: c.Detail, Attempt: c.Attempt, Node: c.Node}
			if plan.State(c.Status, c.Reason) == plan.Skipped.String() {
				is.Status = plan.Skipped
			}
			if !yield(is, nil) {
				return
			}
		}
		switch {
		case err == nil && p.State.Ended() && len(changes) == 0:
			yield(Change{At: p.Ended, State: p.State}, nil)
			return
		case err == nil && len(changes) == 0:
			err = pause(ctx, watchPause)
		}
		if err != nil {
			yield(Change{}, err)
			return
		}
	}
}
