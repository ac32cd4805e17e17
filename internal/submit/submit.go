// Package submit owns how a plan gets into a store: its queues, the plan as submitting, its tasks in chunks, and only when all are in,
// the one write that makes it ready. A submission that dies half-way runs nothing.
package submit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// chunk is how many tasks are handed to the store at once; between chunks others get their turn.
const chunk = 1000

// Store is what a submission asks of a store.
type Store interface {
	store.Admin
	Queues(ctx context.Context) ([]plan.Queue, error)
}

// Submit validates the spec, puts it into the store and makes it ready. With own, a node of its own is going to run it. It returns
// plan.Problems for a spec that is not valid; for that, and for a queue that is not there or has another plugin, nothing is changed.
// When it fails later, what is in the store runs never, and is swept.
func Submit(ctx context.Context, s Store, spec *plan.Spec, own bool) (plan.Plan, error) {
	if err := spec.Validate(); err != nil {
		return plan.Plan{}, err
	}
	there, err := s.Queues(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	var missing []plan.Queue
	p, tasks, err := spec.Compile(time.Now(), func(need plan.QueueNeed) (plan.QueueID, error) {
		q, err := choose(slices.Concat(there, missing), need)
		if err == nil && q.ID.IsZero() {
			q.ID.ID = plan.NewID(time.Now())
			missing = append(missing, q)
		}
		return q.ID, err
	})
	if err != nil {
		return plan.Plan{}, err
	}
	for _, q := range missing {
		made, err := ensure(ctx, s, q)
		if err != nil {
			return plan.Plan{}, err
		}
		for i := range tasks {
			if tasks[i].Queue == q.ID {
				tasks[i].Queue = made.ID // another one, if somebody else was faster
			}
		}
	}
	p.Own = own
	if p, err = s.CreatePlan(ctx, p); err != nil {
		return p, fmt.Errorf("submit plan %q: %w", spec.Name, err)
	}
	for part := range slices.Chunk(tasks, chunk) {
		if err := s.AddTasks(ctx, p.ID, part); err != nil {
			return p, fmt.Errorf("submit plan %q: %w", spec.Name, err)
		}
	}
	if err := s.Ready(ctx, p.ID); err != nil {
		return p, fmt.Errorf("submit plan %q: %w", spec.Name, err)
	}
	p.State = plan.PlanRunning
	return p, nil
}

// Queues returns what Compile asks for queues with: a queue named as its plugin is made, unlimited, when it is missing, and so is one
// that the plan limits, with that limit; any other has to be there. It has to have the plugin, and no higher limit.
func Queues(ctx context.Context, s Store) func(plan.QueueNeed) (plan.QueueID, error) {
	return func(need plan.QueueNeed) (plan.QueueID, error) {
		there, err := s.Queues(ctx)
		if err != nil {
			return plan.QueueID{}, err
		}
		q, err := choose(there, need)
		if err == nil && q.ID.IsZero() {
			q, err = ensure(ctx, s, q)
		}
		return q.ID, err
	}
}

// choose returns the queue that tasks go to; one without an id is to be made.
func choose(there []plan.Queue, need plan.QueueNeed) (plan.Queue, error) {
	i := slices.IndexFunc(there, func(q plan.Queue) bool { return q.Name == need.Name })
	switch {
	case i >= 0:
		return there[i], fits(there[i], need)
	case need.Make:
		return plan.Queue{Name: need.Name, Plugin: need.Plugin, Threads: need.Threads, Unlimited: need.Threads == 0}, nil
	}
	return plan.Queue{}, fmt.Errorf("queue %q is not there; make it: sluice queue create %s --plugin %s: %w", need.Name, need.Name, need.Plugin, plan.ErrNotFound)
}

// ensure makes a queue, unless somebody else was faster, and returns the one there is.
func ensure(ctx context.Context, s Store, q plan.Queue) (plan.Queue, error) {
	made, err := s.EnsureQueue(ctx, q)
	if err != nil {
		return plan.Queue{}, fmt.Errorf("queue %q: %w", q.Name, err)
	}
	return made, fits(made, plan.QueueNeed{Name: q.Name, Plugin: q.Plugin, Threads: q.Threads})
}

// fits reports whether a queue that is there does for the plan, which never changes it: others use it too.
func fits(q plan.Queue, need plan.QueueNeed) error {
	if q.Plugin != need.Plugin {
		return fmt.Errorf("queue %q runs plugin %q, and the plan's tasks in it need %q; choose another queue", q.Name, q.Plugin, need.Plugin)
	}
	if need.Threads > 0 && (q.Unlimited || q.Threads > need.Threads) {
		has := fmt.Sprintf("runs %d tasks at once", q.Threads)
		if q.Unlimited {
			has = "has no limit"
		}
		return fmt.Errorf("queue %q %s, and this plan wants at most %d; lower it for all plans (sluice queue set %s --threads %d), or choose another queue",
			q.Name, has, need.Threads, q.Name, need.Threads)
	}
	return nil
}
