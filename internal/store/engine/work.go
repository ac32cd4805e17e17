package engine

import "context"

// A Worker is a unit that continues remembered work: the children of ended tasks, and jobs, which
// may take many units.
type Worker interface {
	// Budget is how many documents the unit may still change. The unit subtracts those that it
	// changed.
	Budget() *int

	// Remembered reports whether earlier units left children of ended tasks to be told, and jobs.
	Remembered(ctx context.Context) (children, jobs bool, err error)

	// Release tells the children of tasks that ended in this unit, until all are told or the budget
	// is used up. Children that end by this are released, too. A foreach task whose items have
	// finished ends after these children are told.
	Release(ctx context.Context) error

	// ReleaseKept tells children that earlier units left, as far as the budget allows, and reports
	// whether some may remain.
	ReleaseKept(ctx context.Context) (more bool, err error)

	// Job does as much of the next job as the budget allows. It reports whether there was one.
	Job(ctx context.Context) (was bool, err error)

	// Portion is how many documents of remembered work are changed before the unit looks whether it
	// is to yield, at first; then it doubles. Yield reports whether another writer waits.
	Portion() int
	Yield() bool

	// Keep writes down what is left, and reports whether anything is.
	Keep(ctx context.Context) (more bool, err error)
}

// Work releases the children of ended tasks, of this unit and earlier ones, and continues jobs,
// within the budget. The unit keeps the rest. Work reports whether there is a rest.
//
// Children of tasks that ended now go first. That is cheaper than to keep them for later, and a
// chain beside a large plan does not wait for that plan. But each kind of remembered work gets a
// quarter of every unit's budget.
func Work(ctx context.Context, u Worker) (more bool, err error) {
	w := worker{Worker: u, budget: u.Budget()}
	children, jobs, err := u.Remembered(ctx)
	if err != nil {
		return false, err
	}
	share := *w.budget / 4
	forChildren, forJobs := share*number(children), share*number(jobs)
	*w.budget -= forChildren + forJobs
	if err := u.Release(ctx); err != nil {
		return false, err
	}
	*w.budget += forChildren
	if err := w.repeat(ctx, children, u.ReleaseKept); err != nil {
		return false, err
	}
	*w.budget += forJobs
	// A release may leave a job, such as to end the tasks of a plan that a failure closed.
	if err := w.repeat(ctx, true, u.Job); err != nil {
		return false, err
	}
	return u.Keep(ctx)
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}

// A worker hands out the budget of one call of Work.
type worker struct {
	Worker
	budget  *int
	portion int
}

// repeat does portions of some kind of work while there is some, each followed by the release of
// what ended by it.
func (w *worker) repeat(ctx context.Context, some bool, do func(context.Context) (bool, error)) (err error) {
	for some && *w.budget > 0 {
		w.portion = max(w.Portion(), 2*w.portion)
		rest := max(0, *w.budget-w.portion)
		*w.budget -= rest
		some, err = do(ctx)
		*w.budget += rest
		if err == nil {
			err = w.Release(ctx)
		}
		if err != nil {
			return err
		}
		if *w.budget > 0 && w.Yield() {
			*w.budget = 0
		}
	}
	return nil
}
