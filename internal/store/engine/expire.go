package engine

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A Deleter is a unit that deletes plans. P is a plan as the driver read it. Every method that
// deletes subtracts from the budget what it deleted.
type Deleter[P any] interface {
	// Budget is how many documents the unit may still delete.
	Budget() *int

	// ToDelete reads the plan, also one whose deletion has begun.
	ToDelete(ctx context.Context, id plan.PlanID) (P, error)

	// Deletion returns what rules.Deletion asks of the plan.
	Deletion(p P) rules.Deletion

	// BeginDeletion notes that the deletion has begun, so that nobody retries the plan. It does
	// nothing, and returns false, if the plan is not as it was read.
	BeginDeletion(ctx context.Context, p P) (begun bool, err error)

	// DeleteTasks deletes tasks of the plan, with all that belongs to them, and reports whether all
	// are gone.
	DeleteTasks(ctx context.Context, p P) (done bool, err error)

	// DeleteEmpty deletes the plan, which has no tasks any more.
	DeleteEmpty(ctx context.Context, p P) error
}

// errChanged says that a plan is not as it was read.
var errChanged = errors.New("the plan has changed")

// DeletePlan is DeletePlan of store.Admin.
func DeletePlan[P any](ctx context.Context, u Deleter[P], id plan.PlanID, budget int) (more bool, err error) {
	setBudget(u, budget)
	for {
		p, err := u.ToDelete(ctx, id)
		if err != nil {
			return false, err
		}
		if more, err = deletePlan(ctx, u, p); !errors.Is(err, errChanged) {
			return more, err
		}
	}
}

// deletePlan deletes the tasks of a plan, and then the plan, as far as the budget reaches.
func deletePlan[P any](ctx context.Context, u Deleter[P], p P) (more bool, err error) {
	if is := u.Deletion(p); !is.Begun {
		if err := is.Check(); err != nil {
			return false, err
		}
		if begun, err := u.BeginDeletion(ctx, p); err != nil {
			return false, err
		} else if !begun {
			return false, errChanged
		}
	}
	if done, err := u.DeleteTasks(ctx, p); err != nil || !done || *u.Budget() <= 0 {
		return true, err
	}
	*u.Budget()--
	return false, u.DeleteEmpty(ctx, p)
}

// An Expirer is a unit that deletes what is kept no longer. Q names a queue.
type Expirer[P any, Q comparable] interface {
	Deleter[P]

	// ExpiredPlans looks for plans whose deletion has begun, and for plans that rules.KeptUntil does
	// not keep. Plans that are refused, and stay, are passed by.
	ExpiredPlans(ctx context.Context, byDefault time.Duration) iter.Seq2[P, error]

	// CompleteDeletions completes deletions of tasks of no plan that stopped half-way. It returns how
	// many tasks went, and whether that was all.
	CompleteDeletions(ctx context.Context) (tasks int, done bool, err error)

	// Settings returns what queues say. It may leave out queues that say nothing, if the driver has no
	// default.
	Settings(ctx context.Context) (map[Q]plan.QueueSettings, error)

	// Groups is that of store.Reader.
	Groups(ctx context.Context) ([]plan.Group, error)

	// DeleteExpired deletes tasks of no plan that ended longer ago than these limits, and returns how
	// many tasks went. A task stays while a task that needs it is in the store. So does a task that a
	// retry may take.
	DeleteExpired(ctx context.Context, limits map[rules.Kept[Q]]time.Duration) (tasks int, err error)
}

// Prune is Prune of store.Admin.
func Prune[P any, Q comparable](ctx context.Context, u Expirer[P, Q], keep time.Duration, budget int) (plans int, more bool, err error) {
	setBudget(u, budget)
	for p, err := range u.ExpiredPlans(ctx, keep) {
		if *u.Budget() <= 0 {
			break
		}
		if err == nil {
			more, err = deletePlan(ctx, u, p)
		}
		switch {
		case errors.Is(err, errChanged), errors.Is(err, plan.ErrPlanActive):
			continue // another caller deletes it, or retries it: it stands in nobody's way
		case err != nil || more:
			return plans, more, err
		}
		plans++
	}
	return plans, *u.Budget() <= 0, nil
}

// Expire is Expire of store.Node, for a driver that keeps things for byDefault if nothing says how
// long. Plans go first. Each task of no plan that goes may free the tasks that it needed.
func Expire[P any, Q comparable](ctx context.Context, u Expirer[P, Q], byDefault time.Duration, budget int) (gone protocol.Expired, err error) {
	if gone.Plans, gone.More, err = Prune(ctx, u, byDefault, budget); err != nil || gone.More {
		return gone, err
	}
	completed, done, err := u.CompleteDeletions(ctx)
	if gone.Tasks, gone.More = completed, true; err != nil || !done {
		return gone, err
	}
	queues, err := u.Settings(ctx)
	if err != nil {
		return gone, err
	}
	groups, err := u.Groups(ctx)
	if err != nil {
		return gone, err
	}
	expired, err := u.DeleteExpired(ctx, rules.KeepLimits(queues, groups, byDefault))
	gone.Tasks += expired
	gone.More = gone.Tasks > 0 || *u.Budget() <= 0
	return gone, err
}
