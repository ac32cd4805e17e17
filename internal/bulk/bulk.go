// Package bulk cancels, changes and retries the tasks of no plan that a filter chooses, a portion at a
// time. Commands and servers use it. It asks stores for lists of tasks, and for what a person asks for
// one task.
package bulk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// MostTasks is how many tasks one portion has at most. It is as long as a request may last.
const MostTasks = 1000

// mostPages is how many pages of tasks one portion reads at most, if the filter chooses few of them.
const mostPages = 20

// atOnce is how many tasks a portion has a store change at a time: stores flush them together.
const atOnce = 8

// A Store is what a bulk operation needs of one.
type Store interface {
	Groups
	Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error)
	Now(ctx context.Context) (time.Time, error)
	CancelTask(ctx context.Context, id plan.TaskID) error
	SetTask(ctx context.Context, id plan.TaskID, c rules.TaskChange) error
	Retry(ctx context.Context, p plan.PlanID, ask rules.Ask) ([]rules.Retried, error)
}

// An Order says what is done to which tasks.
type Order struct {
	What   rules.Bulk
	Filter rules.TaskFilter
	Change rules.TaskChange // of BulkSet; Modified is not looked at
	Check  bool             // only count
	// After is the Next of the portion before; "" begins. Tasks that are added after the first portion
	// are left alone.
	After string
	// Keep, unless it is nil, says which of the tasks that the filter chooses the caller means. A server
	// that makes portions itself is not told.
	Keep func(*plan.Task) bool
	// Accept, unless it is nil, is asked about the tasks of a portion before they change. If it refuses
	// them, none of them changes.
	Accept func(ctx context.Context, tasks []plan.Task) error
	// Changed, unless it is nil, is told each task that was changed, one at a time.
	Changed func(plan.TaskID)
}

func (o *Order) changed(p *Portion, id plan.TaskID) {
	if p.Changed++; o.Changed != nil {
		o.Changed(id)
	}
}

// A Portion is what became of up to MostTasks tasks.
type Portion struct {
	Matched int    // tasks that the filter chose
	Changed int    // those of them that were cancelled, changed or retried
	Active  int    // of the cancelled, those that a node has: the node stops them
	LeftOut int    // tasks that a node claimed, or that ended or were deleted, since they were chosen; and those in a batch
	Next    string // continues; "": that was the last portion
}

// A Server is a store behind a server, which makes portions itself. So its audit log has an entry for
// each portion.
type Server interface {
	BulkPortion(ctx context.Context, o *Order) (Portion, error)
}

// Do makes one portion. If it fails, the Portion tells what was done before.
func Do(ctx context.Context, s Store, o *Order) (Portion, error) {
	if far, ok := s.(Server); ok {
		return far.BulkPortion(ctx, o)
	}
	var done Portion
	tasks, next, err := choose(ctx, s, o)
	if err != nil {
		return done, err
	}
	done.Matched, done.Next = len(tasks), next
	if o.Check || len(tasks) == 0 {
		return done, nil
	}
	if o.Accept != nil {
		if err := o.Accept(ctx, tasks); err != nil {
			return done, err
		}
	}
	switch o.What {
	case rules.BulkCancel:
		if err = done.each(o, tasks, func(t *plan.Task) error { return s.CancelTask(ctx, t.ID) }); err == nil {
			err = done.seeCancelled(ctx, s, tasks)
		}
	case rules.BulkSet:
		o.Change.Modified = time.Time{}
		err = done.each(o, tasks, func(t *plan.Task) error { return s.SetTask(ctx, t.ID, o.Change) })
	case rules.BulkRetry:
		err = done.retry(ctx, s, o, tasks)
	}
	return done, err
}

// All makes all portions, and adds them up.
func All(ctx context.Context, s Store, o Order) (sum Portion, err error) {
	for more := true; more && err == nil; more = o.After != "" {
		var p Portion
		p, err = Do(ctx, s, &o)
		sum.Matched, sum.Active, sum.LeftOut = sum.Matched+p.Matched, sum.Active+p.Active, sum.LeftOut+p.LeftOut
		sum.Changed += p.Changed
		o.After = p.Next
	}
	return sum, err
}

// choose returns the tasks of a portion, and where the next one begins.
func choose(ctx context.Context, s Store, o *Order) (tasks []plan.Task, next string, err error) {
	statuses, keep, err := o.Filter.Choose(o.What)
	if err == nil && o.What == rules.BulkSet {
		err = rules.CheckTaskChange(&o.Change)
	}
	if err != nil {
		return nil, "", err
	}
	in, err := QueuesOf(ctx, s, o.Filter.Group)
	if err != nil || in != nil && len(in) == 0 {
		return nil, "", err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, "", err
	}
	q := store.TaskQuery{NoPlan: true, Queue: o.Filter.Queue, Subject: o.Filter.Subject, Statuses: statuses, Limit: MostTasks}
	at, err := begin(ctx, s, q, o.After)
	if err != nil {
		return nil, "", err
	}
	for range mostPages {
		q.After = at.after
		found, err := s.Tasks(ctx, q)
		if err != nil {
			return nil, "", err
		}
		for i := range found {
			t := &found[i]
			if bytes.Compare(t.ID.ID[:], at.last.ID[:]) > 0 {
				return tasks, "", nil
			}
			if at.after = t.ID; !keep(t, now) || in != nil && !in[t.Queue] || o.Keep != nil && !o.Keep(t) {
				continue
			}
			if tasks = append(tasks, *t); len(tasks) == MostTasks {
				return tasks, at.String(), nil
			}
		}
		if len(found) < q.Limit {
			return tasks, "", nil
		}
	}
	return tasks, at.String(), nil
}

// A Groups is what QueuesOf needs of a store.
type Groups interface {
	Queues(ctx context.Context) ([]plan.Queue, error)
	Groups(ctx context.Context) ([]plan.Group, error)
}

// QueuesOf returns the queues of a group, and of the groups in it; nil, which means all, if the group
// is "".
func QueuesOf(ctx context.Context, s Groups, group string) (map[plan.QueueID]bool, error) {
	if group == "" {
		return nil, nil
	}
	groups, err := s.Groups(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := s.Queues(ctx)
	if err != nil {
		return nil, err
	}
	return rules.FilterQueues(groups, queues, group)
}

// A place is how far the portions have come, and the last task of the last one.
type place struct{ after, last plan.TaskID }

// String writes a place for parsePlace.
func (p place) String() string { return p.after.String() + "-" + p.last.String() }

// begin returns where a portion begins. The first one finds out where the last one ends.
func begin(ctx context.Context, s Store, q store.TaskQuery, after string) (at place, err error) {
	if after != "" {
		return parsePlace(after)
	}
	q.Newest, q.Limit = true, 1
	newest, err := s.Tasks(ctx, q)
	for i := range newest {
		at.last = newest[i].ID
	}
	return at, err
}

func parsePlace(text string) (p place, err error) {
	after, last, _ := strings.Cut(text, "-")
	if p.after.ID, err = plan.ParseID(after); err == nil {
		p.last.ID, err = plan.ParseID(last)
	}
	if err != nil || p.after.IsZero() || p.last.IsZero() {
		return p, &rules.FilterError{Condition: After, Err: fmt.Errorf("%q is not the next of an answer", text)}
	}
	return p, nil
}

// After is the Condition of an error about Order.After.
const After = "after"

// gone reports whether a task is not any more as it was chosen.
func gone(err error) bool {
	return errors.Is(err, plan.ErrConflict) || errors.Is(err, plan.ErrNotFound) || errors.Is(err, plan.ErrPlanActive)
}

// seeCancelled counts what became of the tasks of a portion that was cancelled: a node may have claimed one
// since it was chosen, and have ended it before it learned of the cancellation.
func (p *Portion) seeCancelled(ctx context.Context, s Store, tasks []plan.Task) error {
	ids := make([]plan.TaskID, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	now, err := store.TasksByID(ctx, s, store.TaskQuery{Brief: true}, ids)
	if err != nil {
		return err
	}
	p.Changed, p.LeftOut = 0, len(tasks)
	for i := range now {
		switch t := &now[i]; {
		case t.Status.Active():
			p.Active++
		case t.Status != plan.Cancelled && t.Status != plan.Terminated:
			continue
		}
		p.Changed++
		p.LeftOut--
	}
	return nil
}

// each does something with each task, some at a time, up to the first failure.
func (p *Portion) each(o *Order, tasks []plan.Task, do func(*plan.Task) error) error {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed error
		next   int
	)
	take := func() *plan.Task {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil || next == len(tasks) {
			return nil
		}
		next++
		return &tasks[next-1]
	}
	note := func(t *plan.Task, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			o.changed(p, t.ID)
		case gone(err):
			p.LeftOut++
		default:
			failed = cmp.Or(failed, err)
		}
	}
	for range min(atOnce, len(tasks)) {
		wg.Go(func() {
			for t := take(); t != nil; t = take() {
				note(t, do(t))
			}
		})
	}
	wg.Wait()
	return failed
}

// retry has the tasks run again, all at once. If one of them is not any more as it was, each is retried
// by itself.
func (p *Portion) retry(ctx context.Context, s Store, o *Order, tasks []plan.Task) error {
	ids := make([]plan.TaskID, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	_, err := s.Retry(ctx, plan.PlanID{}, rules.Ask{Tasks: ids})
	switch {
	case err == nil:
		for _, id := range ids {
			o.changed(p, id)
		}
		return nil
	case !gone(err):
		return err
	}
	return p.each(o, tasks, func(t *plan.Task) error {
		_, err := s.Retry(ctx, plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{t.ID}})
		return err
	})
}
