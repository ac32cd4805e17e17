package engine

import (
	"context"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// An Instance is the unit of a call that a registered instance makes.
type Instance[T any] interface {
	Ender[T]
	Worker

	// Attempts returns those of the endings whose claims hold, in their order, with their tasks,
	// and the tasks of the others. The second of two endings of one claim does not hold.
	Attempts(ctx context.Context, endings []protocol.Ending) (held []Attempt[T], lost []plan.TaskID, err error)

	// EndDelays settles tasks whose delay is over, at most so many, and reports whether there may
	// be more.
	EndDelays(ctx context.Context, most int) (more bool, err error)

	// Claim claims tasks for the instance, each with the step.
	Claim(ctx context.Context, t *protocol.Turn, s rules.Step) ([]protocol.ClaimedTask, error)

	// Finish ends plans in which nothing is unfinished, and returns what the unit did. over reports
	// whether the plan has ended or is deleted. It is false without a plan.
	Finish(ctx context.Context, only plan.PlanID) (did Did, err error)
}

// Did is what a unit did for an instance.
type Did struct {
	More    bool // the driver knows of more to do
	Queued  int
	Ended   []protocol.EndedPlan
	Over    bool
	Refused []string
	Rest    time.Duration
}

// CheckTurn refuses a turn with a malformed ending.
func CheckTurn(t *protocol.Turn) error {
	for i := range t.Ended {
		if err := rules.CheckEnding(&t.Ended[i]); err != nil {
			return err
		}
	}
	return nil
}

// Turn does a turn of an instance, which CheckTurn accepts, in the unit of a driver.
func Turn[T any](ctx context.Context, u Instance[T], t *protocol.Turn) (did protocol.Turned, err error) {
	setBudget(u, t.Budget)
	if did, err = applyEndings(ctx, u, t.Ended); err != nil {
		return did, err
	}
	due, err := u.EndDelays(ctx, max(1, *u.Budget()/2)) // the rest is for children of what ended
	if err != nil {
		return did, err
	}
	more, err := Work(ctx, u)
	if err != nil {
		return did, err
	}
	did.More = more || due
	if did.Claimed, err = u.Claim(ctx, t, rules.Claimed(t.Start)); err != nil {
		return did, err
	}
	all, err := u.Finish(ctx, t.Plan)
	did.More = did.More || all.More
	did.Queued, did.Ended, did.Over, did.Refused, did.Rest = all.Queued, all.Ended, all.Over, all.Refused, all.Rest
	return did, err
}

func setBudget(u interface{ Budget() *int }, budget int) {
	if budget > 0 {
		*u.Budget() = budget
	}
}

// applyEndings applies the endings of a turn.
func applyEndings[T any](ctx context.Context, u Instance[T], endings []protocol.Ending) (did protocol.Turned, err error) {
	held, lost, err := u.Attempts(ctx, endings)
	if err != nil {
		return did, err
	}
	refused, delay, err := End(ctx, u, held)
	did.Lost, did.Delay = append(lost, refused...), delay
	return did, err
}

// A Starter is a unit that starts claimed tasks.
type Starter[T any] interface {
	Instance[T]

	// Start writes the step of these tasks.
	Start(ctx context.Context, tasks []T, s rules.Step) error
}

// Start starts those of the claimed tasks that have not started, and returns the tasks whose claims
// are lost.
func Start[T any](ctx context.Context, u Starter[T], claims []protocol.Claim) (lost []plan.TaskID, err error) {
	endings := make([]protocol.Ending, len(claims))
	for i := range claims {
		endings[i].Claim = claims[i]
	}
	held, lost, err := u.Attempts(ctx, endings)
	if err != nil {
		return nil, err
	}
	var tasks []T
	for _, a := range held {
		if u.ClaimView(a.Task).Status == plan.Claimed {
			tasks = append(tasks, a.Task)
		}
	}
	return lost, u.Start(ctx, tasks, rules.Started())
}

// A Sweeper is the unit of a sweep.
type Sweeper[T any] interface {
	Instance[T]

	// Audit repairs what the unit's store keeps besides the states of tasks and plans.
	Audit(ctx context.Context) error

	// Unknown returns the claims of the instance that are not among those that it holds.
	Unknown(ctx context.Context, holding []plan.TaskID) ([]T, error)

	// Strays returns claims whose owner is not registered, as many as the budget allows.
	Strays(ctx context.Context) ([]T, error)

	// Inherit takes up the notes of work of instances that are gone, after their claims were taken
	// away.
	Inherit(ctx context.Context) error

	// Resume closes plans whose Deadline is over (TimeOut). It continues what a dead process left half-way:
	// submissions that nobody touches any more, retries, and what else a driver makes in several writes.
	Resume(ctx context.Context) error

	// Pending returns the time until the next delay, or the time of the next plan, is over, or 0 or less
	// if that is the case now. waits is false if there is none, or none for so short a time that it is known.
	Pending(ctx context.Context) (left time.Duration, waits bool, err error)
}

// Sweep does a sweep of an instance in the unit of a driver.
func Sweep[T any](ctx context.Context, u Sweeper[T], w *protocol.Sweep) (did protocol.Swept, err error) {
	setBudget(u, w.Budget)
	if err := u.Audit(ctx); err != nil {
		return did, err
	}
	unknown, err := u.Unknown(ctx, w.Holding)
	if err == nil {
		err = GiveBack(ctx, u, unknown)
	}
	if err != nil {
		return did, err
	}
	strays, err := u.Strays(ctx)
	if err == nil {
		err = Lose(ctx, u, strays)
	}
	if err == nil {
		err = u.Inherit(ctx)
	}
	if err != nil {
		return did, err
	}
	due, err := u.EndDelays(ctx, max(1, *u.Budget()))
	if err != nil {
		return did, err
	}
	if err := u.Resume(ctx); err != nil {
		return did, err
	}
	more, err := Work(ctx, u)
	if err != nil {
		return did, err
	}
	left, waits, err := u.Pending(ctx)
	if err != nil {
		return did, err
	}
	if waits {
		did.Pending = max(left, 1)
	}
	did.More = more || due || waits && left <= 0
	all, err := u.Finish(ctx, w.Plan)
	did.More = did.More || all.More
	did.Queued, did.Ended, did.Over, did.Refused = all.Queued, all.Ended, all.Over, all.Refused
	return did, err
}
