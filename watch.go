package sluice

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Wait returns when the plan has ended, with the plan as it is then; its State says how it ended. It
// returns plan.ErrNotFound for a plan that is not there or was deleted meanwhile, and the error of ctx
// with the plan as it was last seen. Nothing runs a plan but nodes: without one Wait waits on.
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
	Status  plan.Status   // its state,
	Reason  plan.Reason   // and why it has that state,
	Detail  string        // for people
	Attempt int           // of the last or present claim; the first is 1
	Node    plan.NodeName // that has the claim, or had it last
}

// How long Watch waits where nothing has changed, and where it asks a server.
const (
	watchPause = 100 * time.Millisecond
	farPause   = 500 * time.Millisecond
)

// Watch returns the changes of a plan from this call on, in order, and ends after the change that
// ends the plan. For a plan that has ended it returns that change alone. Every task that changes is
// told of at least once, in a state at least as new as its change. A state that lasts for an
// instant may be left out. The loop ends after an error: plan.ErrNotFound for a plan that does not
// exist or was deleted meanwhile, plan.ErrCursor if the store was restored from a backup, or the
// error of ctx.
func (s *Store) Watch(ctx context.Context, id plan.PlanID) iter.Seq2[Change, error] {
	cursor, err := s.shown.Latest(ctx)
	return func(yield func(Change, error) bool) {
		err := err
		if err == nil {
			err = s.watch(ctx, id, cursor, func(c Change) bool { return yield(c, nil) })
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(Change{}, err)
		}
	}
}

// errEnough means that the loop over the changes was left.
var errEnough = errors.New("enough")

func (s *Store) watch(ctx context.Context, id plan.PlanID, cursor store.Cursor, tell func(Change) bool) error {
	const page = 1000
	rest := watchPause
	if s.far {
		rest = farPause
	}
	seen := map[plan.TaskID]Change{}
	for {
		p, err := s.shown.Plan(ctx, id) // before its changes are read, so that the changes before its end are told
		if err != nil {
			return err
		}
		idle := true
		for {
			var changes []store.Change
			if changes, cursor, err = s.shown.Changes(ctx, cursor, page); err != nil {
				return err
			}
			for i := range changes {
				c := &changes[i]
				if c.Plan != id || c.Task.IsZero() {
					continue
				}
				is := Change{At: c.At, Task: c.Task, Name: c.Name, Of: c.Of, Status: c.Status, Reason: c.Reason, Detail: c.Detail, Attempt: c.Attempt, Node: c.Node}
				if seen[c.Task] == is { // stores may tell twice
					continue
				}
				seen[c.Task], idle = is, false
				if !tell(is) {
					return errEnough
				}
			}
			if len(changes) < page {
				break
			}
		}
		if p.State.Ended() {
			if !tell(Change{At: p.Ended, State: p.State}) {
				return errEnough
			}
			return nil
		}
		if idle {
			if err := pause(ctx, rest); err != nil {
				return err
			}
		}
	}
}
