package sluice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/failures"
	"github.com/seed-1177d267/sluice/internal/items"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Plan returns a plan with its Counts, or plan.ErrNotFound.
func (s *Store) Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	return s.shown.Plan(ctx, id)
}

// PlanFile returns the text of the plan file that a plan was submitted from, which ParseFile reads, and
// the folder of the file. It is empty for a plan that a program built.
func (s *Store) PlanFile(ctx context.Context, id plan.PlanID) (plan.File, error) {
	return s.shown.PlanFile(ctx, id)
}

// A PlanQuery selects plans. The zero value of a field selects all.
type PlanQuery struct {
	Name   string
	Run    int             // with Name: as in nightly#3
	Source string          // the absolute path of the plan file
	State  *plan.Lifecycle // as in new(plan.PlanRunning)
	Before plan.PlanID     // those that follow this one in the order of Plans
}

// Plans returns the plans that the query selects, newest first, with their Counts. The loop reads them
// in pages; it ends after an error.
func (s *Store) Plans(ctx context.Context, q PlanQuery) iter.Seq2[plan.Plan, error] {
	query := store.PlanQuery{Name: q.Name, Run: q.Run, Source: q.Source, State: q.State, Before: q.Before, Limit: 100}
	return paged(query.Limit, func() ([]plan.Plan, error) { return s.shown.Plans(ctx, query) },
		func(last plan.Plan) { query.Before = last.ID })
}

// Task returns everything about a task, its params, needs and output included, or plan.ErrNotFound. The
// output of a foreach task may be too much to read: the task comes with plan.ErrTooMuchOutput then.
func (s *Store) Task(ctx context.Context, id plan.TaskID) (plan.Task, error) {
	t, err := s.shown.Task(ctx, id)
	if err == nil || errors.Is(err, plan.ErrTooMuchOutput) {
		one := []plan.Task{t}
		if failed := s.label(ctx, one); failed != nil {
			return t, failed
		}
		t = one[0]
	}
	return t, err
}

// label fills in the labels of items.
func (s *Store) label(ctx context.Context, tasks []plan.Task) error {
	values, err := items.ReadKeys(ctx, s.shown, tasks)
	if err != nil {
		return err
	}
	for i := range tasks {
		tasks[i].ItemLabel = values.Label(tasks[i].ID, "…")
	}
	return nil
}

// A TaskQuery selects tasks. The zero value of a field selects all.
type TaskQuery struct {
	Plan     plan.PlanID
	NoPlan   bool // tasks of no plan
	Name     string
	Subject  string // exactly; of unfinished tasks an index finds them
	Queue    plan.QueueID
	Statuses []plan.Status // plan.Failed means every status above 1
	Of       plan.TaskID   // the items of this foreach task, by index
	NoItems  bool          // no items of foreach tasks
	After    plan.TaskID   // those that follow this one in the order of Tasks
	Newest   bool          // newest first; else oldest first
	Details  bool          // with Needs, Params and Output, which is much to read of many tasks; and ItemLabel
	Labels   bool          // with ItemLabel, which takes one more read of each page with items
}

// Tasks returns the tasks that the query selects. The loop reads them in pages; it ends after an error.
func (s *Store) Tasks(ctx context.Context, q TaskQuery) iter.Seq2[plan.Task, error] {
	query := store.TaskQuery{
		Plan: q.Plan, NoPlan: q.NoPlan, Name: q.Name, Subject: q.Subject, Queue: q.Queue, Statuses: q.Statuses, Of: q.Of, NoItems: q.NoItems, After: q.After,
		Newest: q.Newest, Needs: q.Details, Params: q.Details, Output: q.Details, Limit: 1000,
	}
	if q.Details {
		query.Limit = 100
	}
	read := func() ([]plan.Task, error) {
		tasks, err := s.shown.Tasks(ctx, query)
		if err == nil && (q.Details || q.Labels) {
			err = s.label(ctx, tasks)
		}
		return tasks, err
	}
	return paged(query.Limit, read, func(last plan.Task) { query.After = last.ID })
}

// mostAlike is how many tasks of each kind of failure Failures returns.
const mostAlike = 10

// A Failure is a kind of failure: tasks that failed in one way. Their details may differ in numbers, ids
// and quoted text.
type Failure struct {
	// Title says how they failed, in one line. # stands for a number or an id that differs, and … for
	// quoted text.
	Title   string
	Status  plan.Status // of the first of the tasks
	Reason  plan.Reason
	Allowed bool        // the plan allows the failures, by ContinueOnError of the tasks
	Count   int         // how many tasks failed so
	Tasks   []plan.Task // the first ten of them, with Detail, Exit and ItemLabel
}

// Failures returns how tasks of a plan failed, were stopped or were lost, by kind: the largest kinds
// first, and those that the plan allows last. A foreach task that failed because of its items is left
// out, because the items are there. Failures reads all failed tasks of the plan. It returns
// plan.ErrNotFound for a missing plan.
func (s *Store) Failures(ctx context.Context, id plan.PlanID) ([]Failure, error) {
	if _, err := s.shown.Plan(ctx, id); err != nil {
		return nil, err
	}
	ways, err := failures.Read(ctx, s.shown, id, mostAlike)
	if err != nil {
		return nil, err
	}
	out := make([]Failure, len(ways.Kinds))
	for i, k := range ways.Kinds {
		if err := s.label(ctx, k.First); err != nil {
			return nil, err
		}
		out[i] = Failure{Title: k.Told(), Status: k.First[0].Status, Reason: k.Reason, Allowed: k.Allowed, Count: k.Count, Tasks: k.First}
	}
	return out, nil
}

// paged returns the results of read, page by page, until a page is not full. next gets the last
// result of a page.
func paged[T any](full int, read func() ([]T, error), next func(last T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			page, err := read()
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range page {
				if !yield(v, nil) {
					return
				}
			}
			if len(page) < full {
				return
			}
			next(page[len(page)-1])
		}
	}
}

// Output returns what the task of that name in the plan returned, as JSON; nil is null. A foreach task
// returns the list of what its items returned. The name of an item is as in "copy[3]". Output returns
// plan.ErrNotFound if there is no such task, and plan.ErrTooMuchOutput for a list of more than
// plan.MaxInputs bytes.
func (s *Store) Output(ctx context.Context, p plan.PlanID, task string) (json.RawMessage, error) {
	found, err := s.shown.Tasks(ctx, store.TaskQuery{Plan: p, Name: task, Limit: 1})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("task %q: %w", task, plan.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	t, err := s.shown.Task(ctx, found[0].ID)
	return t.Output, err
}

// A Reason is one link of the chain that says why a task is not running now.
type Reason struct {
	Task plan.Task
	Why  string // for people
}

// Explain returns why a task is not running now, as a chain of reasons. The chain begins with the
// task and the task that it waits for. It leads to a limit, a delay, a missing node or a running
// task.
func (s *Store) Explain(ctx context.Context, id plan.TaskID) ([]Reason, error) {
	links, err := explain.Task(ctx, s.shown, id)
	reasons := make([]Reason, len(links))
	for i := range links {
		reasons[i] = Reason{links[i].Task, links[i].Why}
	}
	return reasons, err
}

// Log returns what a task has printed, oldest entry first. The loop ends after an error.
func (s *Store) Log(ctx context.Context, id plan.TaskID) iter.Seq2[plan.LogEntry, error] {
	return s.log(ctx, id, false)
}

// FollowLog is Log that continues until the task has finished, or until ctx ends, with its error.
func (s *Store) FollowLog(ctx context.Context, id plan.TaskID) iter.Seq2[plan.LogEntry, error] {
	return s.log(ctx, id, true)
}

const (
	logPage  = 1000
	logPause = 500 * time.Millisecond // as often as nodes write logs
)

func (s *Store) log(ctx context.Context, id plan.TaskID, follow bool) iter.Seq2[plan.LogEntry, error] {
	return func(yield func(plan.LogEntry, error) bool) {
		var after int64
		for {
			over := !follow
			if follow { // before the log is read: a task that finishes after that may have printed more
				t, err := s.shown.Task(ctx, id)
				if err != nil && !errors.Is(err, plan.ErrTooMuchOutput) {
					yield(plan.LogEntry{}, err)
					return
				}
				over = t.Status.Finished()
			}
			for {
				entries, next, err := s.shown.Log(ctx, id, after, logPage)
				if err != nil {
					yield(plan.LogEntry{}, err)
					return
				}
				for _, e := range entries {
					if !yield(e, nil) {
						return
					}
				}
				if after = next; len(entries) < logPage {
					break
				}
			}
			if over {
				return
			}
			if err := pause(ctx, logPause); err != nil {
				yield(plan.LogEntry{}, err)
				return
			}
		}
	}
}

// pause waits for d, or returns why ctx ended before that.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
