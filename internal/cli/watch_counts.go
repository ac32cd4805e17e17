package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/feed"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// The cost of reading counts: a fiftieth of the time, so that a large plan, or a far store, is
// asked less often. A wait may notice the end late by a hundredth of its duration. Counts are read
// at least every two seconds. A look at all tasks finds failures. It may cost as much again, and
// shows a failure at most ten seconds late.
const (
	countsShare     = 50
	countsLate      = 100
	countsAtLeast   = 2 * time.Second
	troublesAtLeast = 10 * time.Second
)

// stepCounts is step of a view that has no line for most tasks. It reads no changes, which cost as much as their tasks do to run.
func (w *watcher) stepCounts(ctx context.Context) error {
	began := time.Now()
	if began.Before(w.due) {
		return w.show(ctx, nil)
	}
	if err := w.reread(ctx); err != nil {
		return err
	}
	if err := w.lookRunning(ctx, w.live); err != nil {
		return err
	}
	now := time.Now()
	w.due = now.Add(min(max(countsShare*now.Sub(began), now.Sub(w.begun)/countsLate, pollEvery), countsAtLeast))
	if err := errors.Join(w.look(ctx), w.wonder(ctx)); err != nil {
		return err
	}
	if w.counts || now.Before(w.tried) && !w.p.State.Ended() {
		return w.show(ctx, nil)
	}
	events, err := w.troubles(ctx)
	if err != nil {
		w.due = time.Time{}
		return err
	}
	w.tried = time.Now().Add(min(max(countsShare*time.Since(now), pollEvery), troublesAtLeast))
	return w.tellEvents(ctx, events)
}

// noItems returns the tasks of the plan that are no items, if these are at most fewTasks.
func (w *watcher) noItems(ctx context.Context) ([]plan.Task, error) {
	if w.few == nil {
		found, err := w.st.Tasks(ctx, store.TaskQuery{Plan: w.p.ID, NoItems: true, Limit: fewTasks + 1})
		if err != nil {
			return nil, err
		}
		if w.few = map[plan.TaskID]bool{}; len(found) <= fewTasks {
			for i := range found {
				w.few[found[i].ID] = true
			}
		}
	}
	return store.TasksByID(ctx, w.st, store.TaskQuery{}, slices.Collect(maps.Keys(w.few)))
}

// troubles returns the new events of tasks with failures, and of those that are no items if these are few. It
// leaves out those from before the watch.
func (w *watcher) troubles(ctx context.Context) ([]view.Event, error) {
	var changes []store.Change
	began := map[plan.TaskID]time.Time{}
	stamps := map[plan.TaskID]feed.Stamp{}
	take := func(t *plan.Task) error {
		is := feed.Stamp{At: t.Modified.UnixNano(), Status: t.Status, Attempt: t.Attempt}
		if makesItems := t.Expanding || t.Expanded; w.seen[t.ID] == is || makesItems && !t.Status.Finished() {
			return nil
		}
		stamps[t.ID] = is
		if !t.Started.IsZero() {
			began[t.ID] = t.Started
		}
		changes = append(changes, changeOf(t))
		return nil
	}
	err := store.EachTask(ctx, w.st, store.TaskQuery{Plan: w.p.ID, Troubled: true}, take)
	if err != nil {
		return nil, err
	}
	few, err := w.noItems(ctx)
	if err != nil {
		return nil, err
	}
	for i := range few {
		if t := &few[i]; t.Status.Finished() && stamps[t.ID].At == 0 {
			_ = take(t) // which cannot fail
		}
	}
	names, err := w.values(ctx, changes)
	if err != nil {
		return nil, err
	}
	maps.Copy(w.seen, stamps)
	var events []view.Event
	for _, c := range changes {
		events = w.add(events, c, began, names)
		events[len(events)-1].Stays = w.few[c.Task]
	}
	if !w.known && !w.fresh {
		return nil, nil
	}
	return events, nil
}

// changeOf is how the feed would tell of the task as it is.
func changeOf(t *plan.Task) store.Change {
	return store.Change{
		At: t.Modified, Plan: t.Plan, Task: t.ID, Name: t.Name, Of: t.Of, Status: t.Status, Reason: t.Reason, Allowed: t.Allowed(),
		Attempt: t.Attempt, Node: t.Node, Detail: t.Detail,
	}
}

// eventOf is an event that a change makes.
func eventOf(c *store.Change) view.Event {
	return view.Event{
		At: c.At, Task: c.Task, Of: c.Of, Name: c.Name, Status: c.Status, Reason: c.Reason, Allowed: c.Allowed, Detail: c.Detail, Attempt: c.Attempt, Node: c.Node,
	}
}

// lookRunning reads which tasks run, for a view that shows them.
func (w *watcher) lookRunning(ctx context.Context, shown bool) error {
	if !shown {
		return nil
	}
	tasks, err := w.st.Tasks(ctx, store.TaskQuery{Plan: w.p.ID, Statuses: []plan.Status{plan.Running}, Limit: mostRuns})
	if err == nil {
		w.model.SetRunning(tasks, len(tasks) == mostRuns)
	}
	return err
}

// flaky returns the tasks that succeeded after their first attempt, since the watch began if others
// ran the plan before.
func (w *watcher) flaky(ctx context.Context) (ids []plan.TaskID, err error) {
	if w.p.Counts.Succeeded == 0 {
		return nil, nil
	}
	err = store.EachTask(ctx, w.st, store.TaskQuery{Plan: w.p.ID, Statuses: []plan.Status{plan.Succeeded}, Retried: true, Brief: true}, func(t *plan.Task) error {
		if !t.Ended.Before(w.from) {
			ids = append(ids, t.ID)
		}
		return nil
	})
	return ids, err
}

// know reads the failures from before the watch, so that none of them is shown as news.
func (w *watcher) know(ctx context.Context) error {
	if w.most == 0 || w.known || w.fresh {
		return nil
	}
	if _, err := w.troubles(ctx); err != nil {
		return err
	}
	w.known = true
	return nil
}
