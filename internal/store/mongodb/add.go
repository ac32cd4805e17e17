package mongodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// addAtOnce is how many tasks one command inserts, or reads to check them.
const addAtOnce = 1000

// newTask makes the document of a submitted task, and the joins of its parents if these are many.
func newTask(t *plan.Task, hold string, now time.Time) (doc taskDoc, joins []any, err error) {
	doc = taskDoc{
		ID: oid(t.ID.ID), Queue: oid(t.Queue.ID), Status: plan.Held, Ctime: t.Created, Mtime: now, Plan: oid(t.Plan.ID), Name: t.Name,
		Of: oid(t.Of.ID), Index: t.Index, Hold: hold, NotBefore: t.NotBefore, Open: true,
	}
	if doc.Ctime.IsZero() {
		doc.Ctime = now
	}
	if err := doc.setDefinition(t.Definition); err != nil {
		return doc, nil, err
	}
	if err := doc.setParams(t.Params); err != nil {
		return doc, nil, err
	}
	for _, need := range t.Needs {
		doc.Needs = append(doc.Needs, oid(need.ID))
	}
	if len(doc.Needs) > joinSize {
		joins = joinParents(&doc, t.When)
		doc.Needs, doc.Joins = nil, len(joins)
	}
	return doc, joins, nil
}

// An addition is the tasks of one call, checked.
type addition struct {
	plan    *planDoc // nil: tasks of no plan
	tasks   []*plan.Task
	batches []bson.ObjectID               // of earlier calls that died before all was done, whose tasks are among those asked for
	of      map[plan.TaskID]bson.ObjectID // of tasks of no plan: the plan of each parent that is of one,
	plans   map[bson.ObjectID]bool        // and all of these, those of the batches included
}

// plansOf returns the plans that the parents of a task of no plan are of: few, however many parents it has.
func (a *addition) plansOf(t *plan.Task) []bson.ObjectID {
	var plans []bson.ObjectID
	for _, need := range t.Needs {
		if of, is := a.of[need]; is && !slices.Contains(plans, of) {
			plans = append(plans, of)
		}
	}
	return plans
}

// AddTasks implements store.Admin.
func (s *Store) AddTasks(ctx context.Context, id plan.PlanID, tasks []plan.Task) error {
	for {
		a, err := s.check(ctx, id, tasks)
		if err != nil {
			return err
		}
		again := false
		if a.plan != nil && a.plan.State == plan.PlanSubmitting {
			again, err = s.addSubmitting(ctx, a)
		} else {
			again, err = s.addLate(ctx, a)
		}
		if err != nil || !again {
			return err
		}
	}
}

// addSubmitting adds tasks to a plan that is not ready. again is true if it became ready meanwhile, or was closed: then they are late.
func (s *Store) addSubmitting(ctx context.Context, a *addition) (again bool, err error) {
	p := a.plan
	touched, err := s.updateOne(ctx, s.plans, d("_id", p.ID, "state", plan.PlanSubmitting, "closing", nil), d("$currentDate", d("mtime", true)))
	if err != nil || !touched {
		return true, err
	}
	err = s.insertTasks(ctx, a, holdNeeds, func(doc *taskDoc) {
		if !doc.hasParents() {
			doc.Adding = p.ID // what Ready releases
		}
	})
	if err != nil {
		return false, err
	}
	now, err := s.plan(ctx, planID(p.ID))
	if err != nil {
		return false, err
	}
	switch {
	case now.State == plan.PlanSubmitting && now.Closing == plan.Open:
		return false, nil
	case now.State == plan.PlanRunning:
		// It was made ready while its tasks were being added. Those without parents may have come too late for that.
		if _, err := s.updateOne(ctx, s.plans, d("_id", p.ID, "state", plan.PlanRunning), d("$set", d("fresh", true), "$inc", d("edits", 1))); err != nil {
			return false, err
		}
		return false, s.start(ctx, p.ID)
	}
	return false, s.takeBack(ctx, a, now)
}

// addLate adds tasks to a plan that runs, or to none, and looks at their parents. again is true if parents went meanwhile.
func (s *Store) addLate(ctx context.Context, a *addition) (again bool, err error) {
	batch := bson.NewObjectID()
	batches := a.batches
	if len(a.tasks) > 0 {
		batches = append(batches, batch)
	}
	if len(batches) == 0 {
		return false, nil
	}
	hold := holdAdding
	switch {
	case a.plan == nil && len(a.plans) == 0:
		hold = holdNeeds // nobody has to take them
	case a.plan != nil && len(a.plan.Adds) > 0:
		if err := s.forgetAdds(ctx, a.plan); err != nil {
			return false, err
		}
	}
	mark := func(doc *taskDoc) { doc.Adding, doc.Batch = batch, len(a.tasks) }
	if err := s.insertTasks(ctx, a, hold, mark); err != nil {
		return false, err
	}
	if a.plan == nil {
		kept, err := s.share(ctx, a.plans)
		if err != nil {
			return false, err
		}
		if !kept {
			return true, s.dropBatches(ctx, batches)
		}
		if err := s.watch(ctx, a); err != nil {
			return false, err
		}
	} else {
		// A task of the same name, added by another process since the names were checked, may have been queued by now, and then no
		// index stood in the way.
		if err := s.checkNames(ctx, a); err != nil {
			return false, errors.Join(s.takeBack(ctx, a, nil), err)
		}
		taken, err := s.confirm(ctx, a.plan.ID, batches)
		if err != nil {
			return false, err
		}
		if !taken {
			return false, s.takeBack(ctx, a, a.plan)
		}
	}
	r, err := s.newRound(ctx, 0)
	if err != nil {
		return false, err
	}
	defer r.end()
	for _, b := range batches {
		if err := r.admit(ctx, b); err != nil {
			return false, err
		}
	}
	if err := r.finishUp(ctx); err != nil || a.plan == nil || len(r.jobs) > 0 {
		return false, err
	}
	_, err = s.updateOne(ctx, s.plans, d("_id", a.plan.ID), d("$pullAll", d("adds", batches)))
	return false, err
}

// confirm has a plan take tasks that were added late, and reports whether it does. Insert first, look second: whoever ends the plan either
// sees the tasks, or this write does not find the plan running.
func (s *Store) confirm(ctx context.Context, id bson.ObjectID, batches []bson.ObjectID) (taken bool, err error) {
	return s.updateOne(ctx, s.plans, d("_id", id, "state", plan.PlanRunning, "closing", nil),
		d("$inc", d("edits", 1), "$addToSet", d("adds", d("$each", batches)), "$currentDate", d("mtime", true)))
}

// share counts on plans that tasks of no plan, held by now, need some of them, and reports whether all are there and none is being
// deleted. Insert first, look second: whoever deletes a plan either sees the tasks, or does not find the count that it read before it
// looked.
func (s *Store) share(ctx context.Context, plans map[bson.ObjectID]bool) (kept bool, err error) {
	n := 0
	for chunk := range slices.Chunk(slices.Collect(maps.Keys(plans)), addAtOnce) {
		some, err := s.updateMany(ctx, s.plans, d("_id", d("$in", chunk), "deleting", nil), d("$inc", d("shared", 1)))
		if err != nil {
			return false, err
		}
		n += some
	}
	return n == len(plans), nil
}

// deleting returns those of the plans whose deletion has begun.
func (s *Store) deleting(ctx context.Context, plans map[bson.ObjectID]bool) (map[bson.ObjectID]bool, error) {
	gone := map[bson.ObjectID]bool{}
	for chunk := range slices.Chunk(slices.Collect(maps.Keys(plans)), addAtOnce) {
		docs, err := find[planDoc](ctx, s.plans, d("_id", d("$in", chunk), "deleting", true), query{fields: d("_id", 1)})
		if err != nil {
			return nil, err
		}
		for i := range docs {
			gone[docs[i].ID] = true
		}
	}
	return gone, nil
}

// dropBatches deletes the tasks of late additions that nobody took.
func (s *Store) dropBatches(ctx context.Context, batches []bson.ObjectID) error {
	for _, b := range batches {
		for {
			if n, err := s.dropBatch(ctx, b, addAtOnce); err != nil {
				return err
			} else if n == 0 {
				break
			}
		}
	}
	return nil
}

// dropBatch deletes up to most of the tasks of a late addition that nobody took, and returns how many it found.
func (s *Store) dropBatch(ctx context.Context, batch bson.ObjectID, most int) (n int, err error) {
	unadmitted := d("adding", batch, "hold", holdAdding)
	docs, err := find[taskDoc](ctx, s.tasks, unadmitted, query{fields: d("_id", 1), hint: indexAdding, limit: most})
	if err != nil || len(docs) == 0 {
		return 0, err
	}
	ids := make(bson.A, len(docs))
	for i := range docs {
		ids[i] = docs[i].ID
	}
	if _, err := s.remove(ctx, s.joins, d("child", d("$in", ids))); err != nil {
		return 0, err
	}
	_, err = s.remove(ctx, s.tasks, append(d("_id", d("$in", ids)), unadmitted...))
	return len(docs), err
}

// forgetAdds takes late additions off the plan's list of which all tasks were looked at: of those that added them some have died before
// that.
func (s *Store) forgetAdds(ctx context.Context, p *planDoc) error {
	done := slices.Clone(p.Adds)
	left, err := find[taskDoc](ctx, s.tasks, d("adding", d("$in", p.Adds)), query{fields: d("adding", 1), hint: indexAdding, limit: addAtOnce})
	if err != nil {
		return err
	}
	for i := range left {
		done = slices.DeleteFunc(done, func(b any) bool { return b == left[i].Adding })
	}
	if len(done) == 0 || len(left) == addAtOnce {
		return nil
	}
	_, err = s.updateOne(ctx, s.plans, d("_id", p.ID), d("$pullAll", d("adds", done)))
	return err
}

// admit lets tasks that were added late, and that their plan took, be held for their parents, and looks at these.
func (r *round) admit(ctx context.Context, batch bson.ObjectID) error {
	if _, err := r.updateMany(ctx, r.tasks, d("adding", batch, "hold", holdAdding), d("$set", d("hold", holdNeeds))); err != nil {
		return err
	}
	return r.job(ctx, workLook, batch)
}

// watch marks the parents of tasks of no plan, so that their end is noticed even if another program made them and ends them.
func (s *Store) watch(ctx context.Context, a *addition) error {
	var ids bson.A
	for _, t := range a.tasks {
		for _, need := range t.Needs {
			ids = append(ids, oid(need.ID))
		}
	}
	for chunk := range slices.Chunk(ids, addAtOnce) {
		if _, err := s.updateMany(ctx, s.tasks, d("_id", d("$in", chunk), "open", nil, "status", d("$in", openStatuses)), d("$set", d("open", true))); err != nil {
			return err
		}
	}
	return nil
}

// insertTasks inserts the tasks of an addition, all or, as far as this process lives, none.
func (s *Store) insertTasks(ctx context.Context, a *addition, hold string, mark func(*taskDoc)) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(a.tasks, addAtOnce) {
		docs, joins := make([]any, 0, len(chunk)), []any(nil)
		ids := make(bson.A, 0, len(chunk))
		for _, t := range chunk {
			doc, own, err := newTask(t, hold, now)
			if err != nil {
				return fmt.Errorf("task %q: %w", t.Key(), err)
			}
			doc.Plans = a.plansOf(t)
			mark(&doc)
			docs, joins, ids = append(docs, doc), append(joins, own...), append(ids, doc.ID)
		}
		for some := range slices.Chunk(joins, addAtOnce) {
			if _, err := s.insert(ctx, s.joins, some...); err != nil {
				return err
			}
		}
		taken, err := s.insert(ctx, s.tasks, docs...)
		if err != nil {
			return err
		}
		if taken == 0 {
			continue
		}
		there, err := find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids)), query{fields: d("_id", 1)})
		if err != nil {
			return err
		}
		if len(there) < len(ids) { // not the ids were taken, but names, by somebody else at this moment
			if err := s.takeBack(ctx, a, nil); err != nil {
				return err
			}
			return fmt.Errorf("plan %s: names of tasks: %w", a.plan.title(), plan.ErrExists)
		}
	}
	return nil
}

// takeBack deletes the tasks of an addition that the plan did not take, and says why. A plan that runs may have ended but for them.
func (s *Store) takeBack(ctx context.Context, a *addition, ended *planDoc) error {
	runs := false
	if a.plan != nil {
		var err error
		if runs, err = s.refresh(ctx, a.plan.ID); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(a.tasks, addAtOnce) {
		ids := make(bson.A, len(chunk))
		for i, t := range chunk {
			ids[i] = oid(t.ID.ID)
		}
		if _, err := s.remove(ctx, s.tasks, d("_id", d("$in", ids), "status", plan.Held)); err != nil {
			return err
		}
		if _, err := s.remove(ctx, s.joins, d("child", d("$in", ids))); err != nil {
			return err
		}
	}
	if runs {
		if err := s.start(ctx, a.plan.ID); err != nil {
			return err
		}
	}
	if ended == nil {
		return nil
	}
	return fmt.Errorf("plan %s takes no tasks any more: %w", ended.title(), plan.ErrPlanEnded)
}

// refresh has a plan, if it runs, looked at by whoever sweeps, and reports whether it runs.
func (s *Store) refresh(ctx context.Context, id bson.ObjectID) (runs bool, err error) {
	return s.updateOne(ctx, s.plans, d("_id", id, "state", plan.PlanRunning), d("$set", d("fresh", true)))
}

// check finds which of the tasks are not there yet, and refuses what cannot be added. It changes nothing.
func (s *Store) check(ctx context.Context, id plan.PlanID, tasks []plan.Task) (*addition, error) {
	a := &addition{of: map[plan.TaskID]bson.ObjectID{}, plans: map[bson.ObjectID]bool{}}
	empty := false // the plan has no tasks yet, so neither ids nor names need to be looked for
	if !id.IsZero() {
		p, err := s.plan(ctx, id)
		if err != nil {
			return nil, err
		}
		if p.State.Ended() || p.Closing != plan.Open {
			return nil, fmt.Errorf("plan %s is %v and takes no tasks: %w", p.title(), p.State, plan.ErrPlanEnded)
		}
		first, err := findOne[taskDoc](ctx, s.tasks, d("plan", p.ID), query{fields: d("_id", 1), hint: indexList})
		if err != nil {
			return nil, err
		}
		a.plan, empty = p, first == nil
	}
	place := make(map[plan.TaskID]int, len(tasks)) // the first of each id
	for i := range tasks {
		if tasks[i].ID.IsZero() {
			return nil, fmt.Errorf("task %q has no id; mint one", tasks[i].Name)
		}
		if _, twice := place[tasks[i].ID]; !twice {
			place[tasks[i].ID] = i
		}
	}
	there := map[plan.TaskID]bool{}
	if !empty {
		var err error
		if there, err = s.present(ctx, a, tasks); err != nil {
			return nil, err
		}
	}
	names := map[string]bool{}
	queues := map[plan.QueueID]bool{}
	outside := map[plan.TaskID]*plan.Task{} // parents that are not among the tasks: which task needs them
	for i := range tasks {
		t := &tasks[i]
		if there[t.ID] || place[t.ID] != i {
			continue
		}
		own := plan.Task{
			ID: t.ID, Plan: id, Name: t.Name, Queue: t.Queue, Definition: t.Definition, Params: t.Params, Needs: t.Needs,
			NotBefore: t.NotBefore, Created: t.Created,
		}
		if a.plan != nil && names[t.Name] {
			return nil, fmt.Errorf("task %q is there twice: %w", t.Name, plan.ErrExists)
		}
		if err := fits(&own); err != nil {
			return nil, err
		}
		names[t.Name], queues[t.Queue] = true, true
		for _, need := range t.Needs {
			if k, ok := place[need]; !ok || k >= i || a.plan == nil && there[need] { // what is there may be of a plan
				outside[need] = t
			}
		}
		a.tasks = append(a.tasks, &own)
	}
	if !empty && a.plan != nil {
		if err := s.checkNames(ctx, a); err != nil {
			return nil, err
		}
	}
	if err := s.checkQueues(ctx, tasks, queues); err != nil {
		return nil, err
	}
	return a, s.checkParents(ctx, a, outside)
}

// present returns which of the tasks are in the store.
func (s *Store) present(ctx context.Context, a *addition, tasks []plan.Task) (map[plan.TaskID]bool, error) {
	there := map[plan.TaskID]bool{}
	for chunk := range slices.Chunk(tasks, addAtOnce) {
		ids := make(bson.A, len(chunk))
		for i := range chunk {
			ids[i] = oid(chunk[i].ID.ID)
		}
		docs, err := find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids)), query{fields: d("adding", 1, "hold", 1, "plans", 1)})
		if err != nil {
			return nil, err
		}
		for i := range docs {
			there[taskID(docs[i].ID)] = true
			b := docs[i].Adding
			if !b.IsZero() && (a.plan == nil || b != a.plan.ID) && !slices.Contains(a.batches, b) {
				a.batches = append(a.batches, b)
			}
			if docs[i].Hold == holdAdding {
				docs[i].addPlans(a.plans)
			}
		}
	}
	return there, nil
}

func (s *Store) checkNames(ctx context.Context, a *addition) error {
	for chunk := range slices.Chunk(a.tasks, addAtOnce) {
		names := make(bson.A, len(chunk))
		own := make(map[bson.ObjectID]bool, len(chunk))
		for i, t := range chunk {
			names[i], own[oid(t.ID.ID)] = t.Name, true
		}
		docs, err := find[taskDoc](ctx, s.tasks, d("plan", a.plan.ID, "name", anyOf(names)), query{fields: d("name", 1), hint: indexName})
		if err != nil {
			return err
		}
		for i := range docs {
			if !own[docs[i].ID] {
				return fmt.Errorf("task %q of plan %s: %w", docs[i].Name, a.plan.title(), plan.ErrExists)
			}
		}
	}
	return nil
}

func (s *Store) checkQueues(ctx context.Context, tasks []plan.Task, queues map[plan.QueueID]bool) error {
	var ids bson.A
	for q := range queues {
		ids = append(ids, oid(q.ID))
	}
	if len(ids) == 0 {
		return nil
	}
	docs, err := find[queueDoc](ctx, s.queues, d("_id", d("$in", ids)), query{fields: d("_id", 1)})
	if err != nil {
		return err
	}
	for _, q := range docs {
		delete(queues, plan.QueueID{ID: plan.ID(q.ID)})
	}
	for i := range tasks {
		if queues[tasks[i].Queue] {
			return fmt.Errorf("task %q: queue %s: %w", tasks[i].Key(), tasks[i].Queue, plan.ErrNotFound)
		}
	}
	return nil
}

// checkParents finds the parents that are not among the tasks. Those of a plan that is being deleted are none.
func (s *Store) checkParents(ctx context.Context, a *addition, outside map[plan.TaskID]*plan.Task) error {
	var all bson.A
	for id := range outside {
		all = append(all, oid(id.ID))
	}
	for ids := range slices.Chunk(all, addAtOnce) {
		docs, err := find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids)), query{fields: d("plan", 1)})
		if err != nil {
			return err
		}
		for i := range docs {
			id, of := taskID(docs[i].ID), docs[i].Plan
			switch {
			case a.plan == nil && !of.IsZero():
				a.of[id], a.plans[of] = of, true
			case a.plan == nil, of == a.plan.ID:
				delete(outside, id)
			}
		}
	}
	gone, err := s.deleting(ctx, a.plans)
	if err != nil {
		return err
	}
	for id, of := range a.of {
		if !gone[of] {
			delete(outside, id)
		}
	}
	for id, t := range outside {
		return fmt.Errorf("task %q needs task %s: %w", t.Key(), id, plan.ErrNotFound)
	}
	return nil
}

// look looks at the parents of tasks that were added, or taken back, and queues those that can run; it reports whether all were looked at.
func (r *round) look(ctx context.Context, target bson.ObjectID) (done bool, err error) {
	if err := r.readPlans(ctx, []bson.ObjectID{target}); err != nil {
		return false, err
	}
	p := r.known[target] // nil: the target is no plan
	if p != nil && (p.State == plan.PlanSubmitting || !p.Retry.IsZero()) {
		return true, nil // Ready, or the end of the retry, comes back to it
	}
	for r.budget > 0 {
		held, err := find[taskDoc](ctx, r.tasks, d("adding", target, "status", plan.Held, "hold", d("$ne", holdAdding)),
			query{fields: childFields, limit: min(r.budget, addAtOnce), hint: indexAdding})
		if err != nil {
			return false, err
		}
		if len(held) == 0 {
			break
		}
		if err := r.lookAt(ctx, target, held); err != nil {
			return false, err
		}
	}
	if r.budget <= 0 {
		return false, nil
	}
	if p == nil {
		return true, nil
	}
	if !r.busy[target] {
		if err := r.endPlan(ctx, target); err != nil {
			return false, err
		}
	}
	_, err = r.updateOne(ctx, r.plans, d("_id", target, "fresh", true), d("$unset", d("fresh", 1)))
	return true, err
}

// lookAt settles tasks that were added, and takes the mark off those that wait.
func (r *round) lookAt(ctx context.Context, target bson.ObjectID, held []taskDoc) error {
	var joined bson.A
	ids := make(bson.A, len(held))
	for i := range held {
		ids[i] = held[i].ID
		if held[i].Joins > 0 || held[i].Hold == holdItems {
			joined = append(joined, held[i].ID)
		}
	}
	if len(joined) > 0 {
		joins, err := find[joinDoc](ctx, r.joins, d("child", d("$in", joined)), query{})
		if err != nil {
			return err
		}
		if err := r.finishJoins(ctx, joins); err != nil {
			return err
		}
	}
	waiting, err := r.settle(ctx, held)
	if err != nil || waiting == 0 {
		return err
	}
	n, err := r.updateMany(ctx, r.tasks, d("_id", d("$in", ids), "adding", target, "status", plan.Held), d("$unset", d("adding", 1)))
	r.budget -= n
	return err
}
