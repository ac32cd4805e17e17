package v1

import (
	"context"
	"slices"
	"sort"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A reading hands out the tasks that a query selects, some at a time.
type reading interface {
	// read returns the next tasks, at most limit and maybe none, and the number of tasks that it
	// looked at. more is false after the last task.
	read(ctx context.Context, limit int) (tasks []plan.Task, looked int, more bool, err error)
	// at is the task after which a later reading continues: the last one that was looked at.
	at() plan.TaskID
}

// byID reads tasks in the order of their ids.
type byID struct {
	a *API
	q store.TaskQuery
}

func (r *byID) read(ctx context.Context, limit int) ([]plan.Task, int, bool, error) {
	r.q.Limit = limit
	found, err := r.a.st.Tasks(ctx, r.q)
	if len(found) > 0 {
		r.q.After = found[len(found)-1].ID
	}
	return found, len(found), len(found) == limit, err
}

func (r *byID) at() plan.TaskID { return r.q.After }

// mostSorted is how many tasks are put in order after they were read; tests set it.
var mostSorted = 5000

// inPlanOrder reads in the order of the plan, after the task that the query names. If the store
// selects few tasks, such as the failures of a large plan, it reads and sorts these. To find them
// on a way through the whole plan would take as long as the plan is large.
func (a *API) inPlanOrder(ctx context.Context, q store.TaskQuery, folded *folded) (reading, error) {
	var after plan.Task // zero: not there
	if !q.After.IsZero() {
		found, err := a.st.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{q.After}, Limit: 1})
		if err != nil {
			return nil, err
		}
		after.ID = q.After // one that is not there any more is taken for no item
		if len(found) > 0 {
			after = found[0]
		}
	}
	if len(q.Statuses) > 0 || !q.Queue.IsZero() {
		few := q
		few.After, few.Limit = plan.TaskID{}, mostSorted+1
		found, err := a.st.Tasks(ctx, few)
		if err != nil {
			return nil, err
		}
		if len(found) <= mostSorted {
			sort.Slice(found, func(x, y int) bool { return rules.PlaceOf(&found[x]).Compare(rules.PlaceOf(&found[y])) < 0 })
			found = slices.DeleteFunc(found, func(t plan.Task) bool {
				return !q.After.IsZero() && rules.PlaceOf(&t).Compare(rules.PlaceOf(&after)) <= 0
			})
			return &sorted{found, q.After}, nil
		}
	}
	r := &asPlanned{a: a, q: q, folded: folded, last: q.After}
	switch {
	case !after.Of.IsZero():
		if r.q.After = after.Of; folded.shows(after.Of) {
			r.next = after.Of
		}
	case after.Items > 0 && folded.shows(after.ID):
		r.next = after.ID
	}
	return r, nil
}

// folded leaves out the items of all foreach tasks except the open ones. Nil leaves out none.
type folded struct{ open []plan.TaskID }

func (f *folded) shows(foreach plan.TaskID) bool { return f == nil || slices.Contains(f.open, foreach) }

// sorted hands out what was read.
type sorted struct {
	tasks []plan.Task
	last  plan.TaskID
}

func (r *sorted) read(_ context.Context, limit int) ([]plan.Task, int, bool, error) {
	n := min(limit, len(r.tasks))
	next := r.tasks[:n]
	if r.tasks = r.tasks[n:]; n > 0 {
		r.last = next[n-1].ID
	}
	return next, n, len(r.tasks) > 0, nil
}

func (r *sorted) at() plan.TaskID { return r.last }

// asPlanned reads the tasks of a plan in its order, each foreach task with its items after it. The
// ids of items lie anywhere among the others. asPlanned visits tasks that are no items even if they
// are not selected, because their items may be.
type asPlanned struct {
	a      *API
	folded *folded
	q      store.TaskQuery // of a plan
	last   plan.TaskID     // the last task that was visited
	next   plan.TaskID     // the foreach task whose items come next; none: what is no item does
	rest   []plan.Task     // tasks that are no items: read, and not yet visited
	done   bool            // no such is left in the store
}

func (r *asPlanned) at() plan.TaskID { return r.last }

func (r *asPlanned) read(ctx context.Context, limit int) (tasks []plan.Task, looked int, more bool, err error) {
	if !r.next.IsZero() {
		return r.items(ctx, limit)
	}
	if len(r.rest) == 0 && !r.done {
		found, err := r.a.st.Tasks(ctx, store.TaskQuery{Plan: r.q.Plan, NoItems: true, After: r.q.After, Limit: limit})
		if err != nil {
			return nil, 0, false, err
		}
		r.rest, r.done = found, len(found) < limit
	}
	n := len(r.rest)
	if i := slices.IndexFunc(r.rest, func(t plan.Task) bool { return t.Items > 0 && r.folded.shows(t.ID) }); i >= 0 {
		n, r.next = i+1, r.rest[i].ID
	}
	tasks = r.rest[:n:n]
	r.rest = r.rest[n:]
	if n > 0 {
		r.last = tasks[n-1].ID
		r.q.After = r.last
	}
	tasks = slices.DeleteFunc(tasks, func(t plan.Task) bool { return !r.selects(&t) })
	return tasks, n, r.more(), nil
}

func (r *asPlanned) more() bool { return !r.next.IsZero() || len(r.rest) > 0 || !r.done }

// items reads the next items of a foreach task.
func (r *asPlanned) items(ctx context.Context, limit int) (tasks []plan.Task, looked int, more bool, err error) {
	q := r.q
	q.Of, q.Limit, q.After = r.next, limit, plan.TaskID{}
	if r.last != r.next {
		q.After = r.last
	}
	if tasks, err = r.a.st.Tasks(ctx, q); err != nil {
		return nil, 0, false, err
	}
	if len(tasks) > 0 {
		r.last = tasks[len(tasks)-1].ID
	}
	if len(tasks) < limit {
		r.next = plan.TaskID{}
	}
	return tasks, len(tasks), r.more(), nil
}

// selects reports whether the query would, as far as it can here: by status and queue.
func (r *asPlanned) selects(t *plan.Task) bool {
	return (len(r.q.Statuses) == 0 || slices.Contains(r.q.Statuses, min(t.Status, plan.Failed))) && (r.q.Queue.IsZero() || r.q.Queue == t.Queue)
}
