package sluice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/approve"
	"github.com/seed-1177d267/sluice/internal/forsaken"
	"github.com/seed-1177d267/sluice/internal/halt"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// Cancel cancels a plan: nothing more of it is started, and what runs is stopped by its nodes. It
// returns the plan as it is then. If a node is still stopping tasks, the plan has not ended yet:
// Wait for it. Cancel itself ends a plan that no live node serves. That may take until the lease of
// a dead node is over, 30 s at most. Cancel returns plan.ErrPlanEnded for a plan that has ended. Tasks of
// finally run after the others all the same. If they run already, Cancel stops them.
func (s *Store) Cancel(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	p, err := s.shown.Plan(ctx, id)
	if err != nil {
		return p, err
	}
	if p.State.Ended() {
		return p, fmt.Errorf("cancel %s: %w", p.Title(), plan.ErrPlanEnded)
	}
	if p, err = halt.Cancel(ctx, s.shown, p); err != nil || p.State.Ended() || s.far {
		return p, err
	}
	if _, _, err = (forsaken.Config{Store: s.driver}).End(ctx, p); err != nil {
		return p, err
	}
	return s.shown.Plan(ctx, id)
}

// CancelRunning has the running tasks of a plan stopped, and leaves the plan open. A stopped task
// counts as failed, so that clean-ups run. A foreach task of which an item runs is stopped as a whole:
// its waiting items are cancelled. CancelRunning leaves the clean-ups and the tasks of finally that run. It returns how many
// tasks it stopped. It returns ErrNothingRuns if no other task runs, and ErrNoCleanUps for a plan
// whose on_failure is stop, in which nothing runs after a failure.
func (s *Store) CancelRunning(ctx context.Context, id plan.PlanID) (stopped int, err error) {
	p, err := s.shown.Plan(ctx, id)
	if err != nil {
		return 0, err
	}
	return halt.Running(ctx, s.shown, &p)
}

// CancelTask cancels a task that has not run. A task that ran and waits for its next attempt ends as
// plan.Terminated. So does a running task, a little later, when its node has stopped it. CancelTask
// returns plan.ErrConflict for a task that has finished.
func (s *Store) CancelTask(ctx context.Context, id plan.TaskID) error {
	return s.shown.CancelTask(ctx, id)
}

// An Answer is what a person says to a task that asks: see plan.Approval.
type Answer struct {
	Approve bool   // else it is a rejection
	By      string // who answers; a server takes who is logged in there instead
	Note    string // for people, at most 1000 bytes
}

// AnswerTask answers the question of a task, as the caller saw the task: see plan.Task.AwaitsAnswer. The
// task ends as succeeded or failed, and its output says who approved. AnswerTask returns
// plan.ErrConflict for a task that does not wait for the answer any more, or was asked again since.
func (s *Store) AnswerTask(ctx context.Context, t plan.Task, a Answer) error {
	answer := rules.Answer{Approve: a.Approve, By: a.By, Note: a.Note, Asked: t.Started}
	if s.far { // the server knows who answers, and when
		return s.driver.AnswerTask(ctx, t.ID, answer)
	}
	return approve.Answer(ctx, s.shown, &t, answer)
}

// A TaskChange is a change of a task of no plan. A field with its zero value leaves the task as it is.
type TaskChange struct {
	// NotBefore is the instant until which the task is held, to the millisecond. The zero instant, and
	// one that has passed, end the wait for an instant.
	NotBefore *time.Time
	// Params replace those of the submitter. They are encoded as JSON, and have to be an object. The
	// outputs of parents stay.
	Params any
	// Attempts is the largest number of attempts.
	Attempts int
	// Timeout limits one attempt; 0 is no limit of its own.
	Timeout *time.Duration
	// Subject says what the task is about; "" takes it away.
	Subject *string
}

// SetTask changes a task of no plan that waits: it is held or queued. A queued task with a NotBefore to
// come is held until then. SetTask returns plan.ErrConflict for a task of a plan, and for one that a
// node has claimed or that has finished, and then changes nothing. It returns plan.Problems for params
// that are not valid, and plan.ErrNotFound.
func (s *Store) SetTask(ctx context.Context, id plan.TaskID, c TaskChange) error {
	t, err := s.shown.Task(ctx, id)
	if err != nil && !errors.Is(err, plan.ErrTooMuchOutput) {
		return err
	}
	change := rules.TaskChange{NotBefore: c.NotBefore, Attempts: c.Attempts, Timeout: c.Timeout, Subject: c.Subject}
	if c.Params != nil {
		if change.Params, err = json.Marshal(c.Params); err != nil {
			return fmt.Errorf("params of task %s: %w", t.Key(), err)
		}
	}
	return submit.SetTask(ctx, s.shown, &t, change, s.refused)
}

// RetryOptions say what a retry runs again. The zero value is all tasks that did not succeed, with what
// was skipped or cancelled below them.
type RetryOptions struct {
	Tasks      []plan.TaskID // only these, with what was skipped or cancelled below them
	Downstream bool          // all tasks below them as well, what succeeded included
	DryRun     bool          // change nothing: only say what would run

	// With is the plan as it is now, with some of its tasks mended: the tasks that run again take their
	// definitions from it, and the plan its params and its timeout. It may change only tasks that run again, has the
	// tasks of the plan with the same needs, and keeps the same params secret. nil: the tasks run as they
	// were submitted. Tasks of no plan have none.
	With *plan.Spec
}

// A Foresight is what a retry does to the tasks of a plan. Each list is in the order of the plan.
type Foresight struct {
	Again   []plan.Task // run again, or are skipped if that is what their When says then
	Kept    []plan.Task // are below them, have ended, and stay as they are
	Dropped []plan.Task // items that are deleted: their foreach task makes new ones
	// Cleaned are tasks that succeeded and run only after a failure. They may have undone some of what
	// the retry keeps. A retry of the tasks in Undone with Downstream runs that again as well.
	Cleaned, Undone []plan.Task
	// Skipped are tasks of Again that are sure to be skipped: tasks of Missing, which failed, do not run
	// again. Stopped are those that ran before, and end as stopped for the same reason.
	Skipped, Stopped, Missing []plan.Task
}

// Retry runs finished tasks of a plan again, and returns what that does. With the zero ID it
// retries tasks of no plan, which RetryOptions.Tasks names. Attempts count from 1 again, and a plan
// that had ended runs again. Retry returns plan.ErrConflict if there is nothing to retry, if a
// task changed meanwhile, or if With is another plan or changes a task that does not run again. It
// returns plan.Problems for a With that is not valid. It returns plan.ErrPlanActive if a task that it would take runs, and
// plan.ErrPlanNotReady if nothing of the plan ever ran. A missing plan or task is plan.ErrNotFound.
func (s *Store) Retry(ctx context.Context, id plan.PlanID, o RetryOptions) (Foresight, error) {
	q := store.TaskQuery{Plan: id, Needs: true}
	if id.IsZero() {
		q.NoPlan, q.IDs = true, o.Tasks
	}
	tasks, err := store.AllTasks(ctx, s.shown, q)
	if err != nil {
		return Foresight{}, err
	}
	ask := rules.Ask{Tasks: o.Tasks, Downstream: o.Downstream, Check: o.DryRun}
	if o.With != nil {
		if err := s.mend(ctx, id, o.With, &ask); err != nil {
			return Foresight{}, err
		}
	}
	taken, err := s.shown.Retry(ctx, id, ask)
	if err != nil {
		return Foresight{}, err
	}
	return Foresight(rules.Foresee(tasks, taken)), nil
}

// Delete deletes a plan that has ended, with its tasks and logs. It returns plan.ErrPlanActive for
// a plan that has not ended. It returns the same error while an unfinished task of no plan needs a
// task of the plan. A plan whose submission died half-way may be deleted too.
func (s *Store) Delete(ctx context.Context, id plan.PlanID) error {
	p, err := s.shown.Plan(ctx, id)
	if err != nil {
		return err
	}
	return halt.Delete(ctx, s.shown, p)
}

// Prune deletes the plans whose end is longer ago than they say (plan.Plan.Keep), or, where they say
// nothing, than keep; 0: those stay. It returns how many plans it deleted. Nodes do the same all the
// time, with the default of the store: 30 days on SQLite, for ever in memory and on MongoDB.
func (s *Store) Prune(ctx context.Context, keep time.Duration) (plans int, err error) {
	for more := true; more && err == nil; {
		var n int
		n, more, err = s.shown.Prune(ctx, keep, protocol.DefaultBudget)
		plans += n
	}
	return plans, err
}

// Nodes returns the processes that run tasks of the store, and those that died a short while ago.
func (s *Store) Nodes(ctx context.Context) ([]plan.Instance, error) { return s.shown.Instances(ctx) }

// SetNodeThreads limits how many tasks all processes of a node run at once; less than 0 removes the
// limit. A node follows within about a second. Running tasks continue.
func (s *Store) SetNodeThreads(ctx context.Context, n plan.NodeName, threads int) error {
	return s.shown.SetMaxThreads(ctx, n, threads)
}
