package rules

import (
	"fmt"
	"slices"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// ErrOnlyAllowed is a plan.ErrConflict of SelectRetry.
var ErrOnlyAllowed = refusal.New(plan.ErrConflict, "nothing to retry: nothing failed but what the plan allows, which runs again if it is named")

// SelectRetry chooses the tasks that a retry takes back to held. tasks are all tasks of the plan,
// with ID, Name, Status, Reason, Needs, When, Finally, Of, Foreach, Expanded, Items, Ran, Attempt, Rescues, Detail and
// ContinueOnError. chosen are the
// tasks that a person named. If chosen is empty, SelectRetry chooses every task that did not succeed,
// except tasks that were skipped because of their own When, such as a clean-up that nothing made
// necessary, tasks whose own attempt ended as skipped, and failures that the plan allows. The plan went on without these: to run one again would
// make its children stale, and make the items of a foreach task below again. A task with
// continue-on-error that was stopped before a child of it began is chosen.
//
// With each chosen task go the tasks below it that were skipped, cancelled, held or queued. A task
// below that made items of another parent's list, or its own, does not, because it would make these again. A task
// below whose When is not AllSucceeded goes too, however it ended, because its question is asked
// again. The tasks below such a task go with it, because their input may change. Other tasks below
// that succeeded or failed go only with downstream.
//
// SelectRetry refuses to take a foreach task together with such a parent, unless with downstream: its items would
// not wait for the parent, and to make them again would lose those that succeeded.
//
// A chosen foreach task that succeeded although items of it failed, by continue-on-error, stands for
// these items.
//
// A foreach task goes along with its heads (Foreach.Each) item by item: an item is below the item of a
// head, and only if a head makes its items again, the task makes its own again. The caller may leave out
// all items, to learn what becomes of the other tasks.
//
// With an item goes its foreach task, and those of the other items that have not finished, or did not
// start because others failed. With a
// foreach task go its items that did not succeed. With downstream all items go if the task had
// succeeded or is chosen. A chosen foreach task over files makes its items again with downstream,
// because the files may have changed.
//
// A task that ran and did not succeed keeps Ran while a clean-up below it that is to run has not
// succeeded. If the plan is stopped before the task begins again, the task then counts as stopped,
// and Unrun names the clean-up as before. A foreach task ran if one of its items did.
//
// With any task go all tasks of finally that have ended, because the end of the plan is asked again. A
// retry does not begin with a task of finally that was skipped. A foreach task of finally makes its items
// again, so that none of them is held while the plan runs its other tasks.
//
// Children come first in the order, so that no task is held by a parent that is about to be held.
//
// SelectRetry returns ErrPlanActive while a task to take is claimed or running. It returns
// ErrConflict if a chosen task has not finished, and if there is nothing to retry.
func SelectRetry(tasks []plan.Task, chosen []plan.TaskID, downstream bool) ([]Retried, error) {
	r := newSelection(tasks, downstream)
	if len(chosen) == 0 {
		r.takeFailed()
	}
	for _, id := range chosen {
		i, ok := r.Index(id)
		if !ok {
			return nil, fmt.Errorf("task %s is not in the plan: %w", id, plan.ErrNotFound)
		}
		t := &tasks[i]
		switch {
		case !t.Status.Finished():
			return nil, refusal.New(plan.ErrConflict, "task %q is %s: only what has finished can be retried", t.Key(), states.OfTask(t))
		case Gone(t.Status, t.Reason):
			return nil, refusal.New(plan.ErrConflict, "task %q is not in its list any more; once the list has it again, retry with --items", t.Key())
		}
		if t.Status == plan.Succeeded && !downstream {
			failed := r.failedItems(i)
			for _, k := range failed {
				r.take(k)
			}
			if len(failed) > 0 {
				continue
			}
			return nil, refusal.New(plan.ErrConflict, "task %q succeeded; to run it and what is below it again add --downstream", t.Key())
		}
		r.take(i)
		r.whole[i] = downstream
		r.anew[i] = downstream && t.Foreach != nil && t.Foreach.OnNode()
	}
	if err := r.spread(); err != nil {
		return nil, err
	}
	if err := r.checkItems(); err != nil {
		return nil, err
	}
	if len(r.queue) == 0 {
		unfinished := 0
		for i := range tasks {
			if !tasks[i].Status.Finished() {
				unfinished++
			}
		}
		switch unfinished {
		case 0:
		case 1:
			return nil, refusal.New(plan.ErrConflict, "nothing to retry: what has finished succeeded, and 1 task has not finished")
		default:
			return nil, refusal.New(plan.ErrConflict, "nothing to retry: what has finished succeeded, and %d tasks have not finished", unfinished)
		}
		if allowed := slices.ContainsFunc(tasks, func(t plan.Task) bool { return t.Allowed() }); allowed {
			return nil, ErrOnlyAllowed
		}
		if skipped := slices.ContainsFunc(tasks, func(t plan.Task) bool { return OutcomeOfTask(&t) == OutcomeSkipped }); skipped {
			return nil, refusal.New(plan.ErrConflict, "nothing to retry: nothing failed; what was skipped runs again if it is named")
		}
		return nil, refusal.New(plan.ErrConflict, "nothing to retry: every task succeeded")
	}
	return r.childrenFirst(), nil
}

func newSelection(tasks []plan.Task, downstream bool) *retrySelection {
	r := &retrySelection{Graph: plan.NewGraph(tasks), tasks: tasks, downstream: downstream, taken: make([]bool, len(tasks)), asked: make([]bool, len(tasks))}
	r.items, r.byItem, r.whole, r.anew = map[plan.TaskID][]int32{}, map[int]bool{}, map[int]bool{}, map[int]bool{}
	r.remade, r.gone = map[int]bool{}, map[int]bool{}
	for i := range tasks {
		if !tasks[i].Of.IsZero() {
			r.items[tasks[i].Of] = append(r.items[tasks[i].Of], int32(i))
		}
	}
	return r
}

// takeFailed takes what a retry takes when nobody names any task.
func (r *retrySelection) takeFailed() {
	if !r.anyFailed() {
		return
	}
	for i := range r.tasks {
		switch {
		case !r.retryable(i):
		case r.tasks[i].Finally && OutcomeOfTask(&r.tasks[i]) == OutcomeSkipped: // takeFinally takes it
		case !r.needless(i):
			r.take(i)
		}
	}
}

// takeFinally takes all tasks of finally that have ended, if the retry takes any task.
func (r *retrySelection) takeFinally() {
	if len(r.queue) == 0 {
		return
	}
	for i := range r.tasks {
		if t := &r.tasks[i]; t.Finally && t.Of.IsZero() && t.Status.Finished() {
			r.take(i)
			r.anew[i] = t.Foreach != nil
		}
	}
}

// failed reports whether a task did not succeed, and is no item that has left its list.
func (r *retrySelection) failed(i int) bool {
	t := &r.tasks[i]
	return t.Status != plan.Succeeded && !Gone(t.Status, t.Reason)
}

// failedItems returns the items of a foreach task that did not succeed.
func (r *retrySelection) failedItems(index int) (failed []int) {
	for _, i := range r.items[r.tasks[index].ID] {
		if r.failed(int(i)) {
			failed = append(failed, int(i))
		}
	}
	return failed
}

// anyFailed reports whether a task is retried when nobody names any, and is none that was skipped.
func (r *retrySelection) anyFailed() bool {
	for i := range r.tasks {
		if r.retryable(i) && OutcomeOfTask(&r.tasks[i]) != OutcomeSkipped {
			return true
		}
	}
	return false
}

// retryable reports whether a task may be retried when nobody names any.
func (r *retrySelection) retryable(i int) bool {
	switch t := &r.tasks[i]; {
	case !t.Status.Finished() || !r.failed(i):
		return false
	case t.Allowed():
		return t.Status == plan.Terminated && !r.passed(i)
	}
	return true
}

// passed reports whether a child of a task, or of the foreach task that it is an item of, began.
func (r *retrySelection) passed(i int) bool {
	if of, ok := r.Index(r.tasks[i].Of); ok && !r.tasks[i].Of.IsZero() && r.passed(of) {
		return true
	}
	return slices.ContainsFunc(r.Children(i), func(c int32) bool {
		t := &r.tasks[c]
		return HasRun(t) || t.Status == plan.Queued || t.Status.Active() || len(r.items[t.ID]) > 0
	})
}

// needless reports whether a task was skipped because its When or its attempt said so, and not because its plan was
// closed. It is skipped again unless something above it is retried, with which it goes.
func (r *retrySelection) needless(i int) bool {
	t := &r.tasks[i]
	if SkippedItself(t) {
		return true
	}
	if OutcomeOfTask(t) != OutcomeSkipped || !t.Of.IsZero() && len(t.Needs) == 0 || len(r.Parents(i)) < len(t.Needs) {
		return false
	}
	var seen Outcome
	for _, p := range r.Parents(i) {
		seen |= OutcomeOfTask(&r.tasks[p])
	}
	if items := r.items[t.ID]; len(items) > 0 {
		return !slices.ContainsFunc(items, func(k int32) bool { return !r.needless(int(k)) })
	}
	return Decide(t.When, seen, true) == ToSkip
}

// along reports whether a task goes along with a parent item by item.
func (r *retrySelection) along(parent, i int) bool {
	return GoesAlong(r.tasks[i].Foreach, r.tasks[parent].Name)
}

// remake notes that a taken foreach task makes its items again, if that is so: a head makes its own again
// (r.anew has it), or Remakes says so. It visits the task once more, because those that go along with it
// make theirs again too.
func (r *retrySelection) remake(i int) {
	t := &r.tasks[i]
	if t.Foreach == nil || !r.taken[i] || r.remade[i] {
		return
	}
	waits := slices.ContainsFunc(r.Parents(i), func(p int32) bool {
		return !r.along(int(p), i) && (r.taken[p] || !r.tasks[p].Status.Finished())
	})
	if Remakes(&Retried{Anew: r.anew[i]}, t, true, waits) {
		r.remade[i] = true
		r.work = append(r.work, i)
	}
}

// checkItems refuses a retry that would make items again only because another parent than the one that makes
// their list is to run first. The items that succeeded would be lost, and the others cannot wait for that parent.
func (r *retrySelection) checkItems() error {
	for i := range r.tasks {
		t := &r.tasks[i]
		if !r.remade[i] || r.downstream || r.asked[i] || r.anew[i] || Remakes(&Retried{}, t, true, false) || !slices.ContainsFunc(r.items[t.ID], func(k int32) bool { return r.tasks[k].Status == plan.Succeeded }) {
			continue
		}
		var first *plan.Task
		for _, p := range r.Parents(i) {
			if r.taken[p] || !r.tasks[p].Status.Finished() {
				if first = &r.tasks[p]; !r.keepsItems(int(p), i) {
					first = nil
					break
				}
			}
		}
		if first != nil {
			return refusal.New(plan.ErrConflict, "task %q keeps its items, and they would not wait for %q, which runs first; retry that, and then %q, or make all items again with --downstream",
				t.Key(), first.Key(), t.Key())
		}
	}
	return nil
}

type retrySelection struct {
	*plan.Graph
	tasks      []plan.Task
	downstream bool
	items      map[plan.TaskID][]int32
	taken      []bool
	asked      []bool       // tasks whose own question is asked again, and what is below them
	byItem     map[int]bool // foreach tasks that only one of their items brought in
	whole      map[int]bool // tasks that are chosen with all of their items
	anew       map[int]bool
	remade     map[int]bool         // taken foreach tasks that make their items again
	gone       map[int]bool         // items that leave their list
	only       map[plan.TaskID]bool // unless it is nil: nothing else is taken, but for items of these
	queue      []int                // what is taken
	work       []int                // tasks that remain to be visited
}

// takes reports whether a task is taken.
func (r *retrySelection) takes(id plan.TaskID) bool {
	i, ok := r.Index(id)
	return ok && r.taken[i]
}

func (r *retrySelection) take(i int) {
	if t := &r.tasks[i]; r.only != nil && !r.only[t.ID] && !r.only[t.Of] {
		return
	}
	if !r.taken[i] {
		r.taken[i] = true
		r.queue = append(r.queue, i)
		r.work = append(r.work, i)
	}
}

// ask notes that the question of a task is asked again. It visits a task that was taken before for
// another reason once more, because the tasks below go with it now.
func (r *retrySelection) ask(i int) {
	if !r.asked[i] && r.taken[i] {
		r.work = append(r.work, i)
	}
	r.asked[i] = true
}

// takeItems takes those items of the foreach task with the index that go with it.
func (r *retrySelection) takeItems(index int) {
	of := &r.tasks[index]
	for _, i := range r.items[of.ID] {
		if t := &r.tasks[i]; r.failed(int(i)) || t.Status == plan.Succeeded && (of.Status == plan.Succeeded && r.downstream || r.whole[index]) {
			r.take(int(i))
		}
	}
}

// takeOpenItems takes the unfinished items of a foreach task, and those that did not start because others
// failed or their plan was closed. They go with it also if only a finished item brought it in, because the
// foreach task is to be held while they are unfinished, and is not to succeed without them.
func (r *retrySelection) takeOpenItems(of *plan.Task) {
	for _, i := range r.items[of.ID] {
		t := &r.tasks[i]
		if !t.Status.Finished() || OutcomeOfTask(t) == OutcomeSkipped && !r.needless(int(i)) {
			r.take(int(i))
		}
	}
}

// spread takes what goes with what is taken.
func (r *retrySelection) spread() error {
	r.takeFinally()
	for len(r.work) > 0 {
		i := r.work[0]
		r.work = r.work[1:]
		t := &r.tasks[i]
		if t.Status.Active() {
			return refusal.New(plan.ErrPlanActive, "task %q is %s: wait for it, or cancel it", t.Key(), states.OfTask(t))
		}
		if of, ok := r.Index(t.Of); ok && !t.Of.IsZero() && !r.taken[of] {
			r.byItem[of] = true
			r.take(of)
		}
		if r.byItem[i] {
			r.takeOpenItems(t)
		} else {
			r.takeItems(i)
		}
		r.remake(i)
		for _, c := range r.Children(i) {
			if r.along(i, int(c)) {
				r.takeAlong(i, int(c))
			} else {
				r.takeChild(i, int(c))
			}
		}
	}
	return nil
}

// takeAlong takes a foreach task that goes along with one that is taken, if this makes its items again, or
// if the task still waits for its own. Otherwise the items decide. Where the items are left out, the task
// goes if it was cancelled or skipped, as some of its items were.
func (r *retrySelection) takeAlong(head, i int) {
	switch {
	case r.remade[head]:
		r.take(i)
		r.anew[i] = true
		r.remake(i)
	case !r.tasks[i].Status.Finished() && !r.taken[i]:
		r.byItem[i] = true
		r.take(i)
	case r.tasks[i].Status == plan.Cancelled && r.tasks[i].HasItems() && len(r.items[r.tasks[i].ID]) == 0:
		r.take(i)
	}
}

// takeChild takes a child of a task that is taken, if it goes with that.
func (r *retrySelection) takeChild(parent, i int) {
	t := &r.tasks[i]
	switch {
	case r.asked[parent] || TellsResults(t.When):
		r.ask(i)
	case r.downstream:
	case t.Status != plan.Cancelled && t.Status.Finished(), r.keepsItems(parent, i):
		return
	}
	r.take(i)
	r.remake(i)
	if r.byItem[i] { // it is below as well as above something that is taken
		delete(r.byItem, i)
		r.takeItems(i)
	}
}

// keepsItems reports whether a foreach task has items, and a parent did not make their list. Taken with that
// parent, the task would make all of them again.
func (r *retrySelection) keepsItems(parent, i int) bool {
	t := &r.tasks[i]
	return t.Foreach != nil && t.HasItems() && InputName(r.tasks[parent].Name, !r.tasks[parent].Of.IsZero()) != ListFrom(t.Foreach)
}

// childrenFirst returns what was taken with every child before its parents, foreach tasks before their items.
func (r *retrySelection) childrenFirst() []Retried {
	below := make([]int32, len(r.tasks)) // taken tasks that must come before
	each := func(i int, do func(parent int)) {
		for _, p := range r.Parents(i) {
			if r.taken[p] {
				do(int(p))
			}
		}
		for _, item := range r.items[r.tasks[i].ID] {
			if r.taken[item] {
				do(int(item))
			}
		}
	}
	for _, i := range r.queue {
		each(i, func(p int) { below[p]++ })
	}
	var order []int
	for _, i := range r.queue {
		if below[i] == 0 {
			order = append(order, i)
		}
	}
	out := make([]Retried, 0, len(r.queue))
	end := seeEnd(r.Graph, r.tasks, plan.ClosedByPerson) // what was cancelled is to run as well
	for k := 0; k < len(order); k++ {
		t := &r.tasks[order[k]]
		ran := end.ran[t.ID] && t.Status != plan.Succeeded && !t.Finally && r.owed(end, order[k])
		out = append(out, Retried{ID: t.ID, Status: t.Status, Ran: ran, Anew: r.anew[order[k]], Gone: r.gone[order[k]]})
		each(order[k], func(p int) {
			if below[p]--; below[p] == 0 {
				order = append(order, p)
			}
		})
	}
	return out
}

// owed reports whether a clean-up of a task, or of the foreach task that it is an item of, is to run
// and has not succeeded.
func (r *retrySelection) owed(end *unrunning, i int) bool {
	if of, ok := r.Index(r.tasks[i].Of); ok && !r.tasks[i].Of.IsZero() && r.owed(end, of) {
		return true
	}
	return slices.ContainsFunc(r.Children(i), func(c int32) bool { return end.owes(int(c)) })
}
