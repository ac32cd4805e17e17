package mongodb

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	insertsAway = 3      // commands that insert tasks of a plan that is being submitted, side by side
	submitBatch = 10_000 // tasks that a submission best hands over at once
)

// SubmitBatch returns how many tasks of a submission are best handed over at once: so many that inserts keep going side by side, as a server
// works on those of one connection with one thread, and so few that their documents are not many at a time.
func (s *Store) SubmitBatch() int { return submitBatch }

// An addition is the tasks of one call, checked.
type addition struct {
	plan    *planDoc // nil: tasks of no plan
	tasks   []*plan.Task
	batches []bson.ObjectID      // of earlier calls that died before all was done, whose tasks are among those asked for
	halves  []bson.ObjectID      // those of the batches that have several tasks and were not taken yet
	parents idList               // of tasks of no plan: what they need that does not come with them,
	waiting map[plan.TaskID]bool // and which of them are in and were not taken yet
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
	touched, err := s.UpdateOne(ctx, s.plans, d("_id", p.ID, "state", plan.PlanSubmitting, "closing", nil), d("$currentDate", d("mtime", true)))
	if err != nil || !touched {
		return true, err
	}
	// Which of them are in is all the same until the plan is ready, so any may be first.
	err = s.insertTasks(ctx, a, insertsAway, holdNeeds, func(doc *taskDoc) {
		if !doc.hasParents() && !doc.Finally {
			doc.Adding = p.ID // what Ready releases
		}
	})
	if err == nil {
		err = s.markBelowCancelled(ctx, a)
	}
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
		// The plan was made ready while its tasks were being added. Tasks without parents may have
		// come too late for that.
		if _, err := s.UpdateOne(ctx, s.plans, d("_id", p.ID, "state", plan.PlanRunning), d("$set", d("fresh", true), "$inc", d("edits", 1))); err != nil {
			return false, err
		}
		return false, s.start(ctx, p.ID)
	}
	return false, s.takeBack(ctx, a, now)
}

// markBelowCancelled has Ready look at added tasks whose parents a person has cancelled already. Their
// cancellation released its children before these were in. Insert first, look second: a later
// cancellation finds the tasks.
func (s *Store) markBelowCancelled(ctx context.Context, a *addition) error {
	if !slices.ContainsFunc(a.tasks, func(t *plan.Task) bool { return len(t.Needs) > 0 }) {
		return nil
	}
	cancelled := map[plan.TaskID]bool{}
	if err := wire.Each(ctx, s.tasks, onlyCancelled(d("plan", a.plan.ID)), wire.Query{Fields: ones("_id"), Hint: indexPlan}, func(t *taskDoc) error {
		cancelled[taskID(t.ID)] = true
		return nil
	}); err != nil || len(cancelled) == 0 {
		return err
	}
	var below idList
	for _, t := range a.tasks {
		if slices.ContainsFunc(t.Needs, func(id plan.TaskID) bool { return cancelled[id] }) {
			below = append(below, oid(t.ID.ID))
		}
	}
	g := s.Series(ctx)
	for some := range slices.Chunk(below, addAtOnce) {
		g.UpdateMany(s.tasks, onlyHeld(d("_id", d("$in", some)), "hold", holdNeeds), d("$set", d("adding", a.plan.ID)))
	}
	return g.Err
}

// insertTasks inserts the tasks of an addition, by so many commands side by side: all or, as far as this process lives, none.
func (s *Store) insertTasks(ctx context.Context, a *addition, abreast int, hold string, mark func(*taskDoc)) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	var over, taken atomic.Bool // an insert failed; a name was taken
	var g errgroup.Group        // those under way are not called off, so that none is when this returns: a server goes on with what it has begun
	g.SetLimit(abreast)
	for chunk := range slices.Chunk(a.tasks, addAtOnce) {
		g.Go(func() error {
			if over.Load() {
				return nil
			}
			in, err := s.insertChunk(ctx, a, chunk, now, hold, mark)
			if err != nil || !in {
				over.Store(true)
				taken.CompareAndSwap(false, err == nil)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil || !taken.Load() {
		return err
	}
	if err := s.takeBack(ctx, a, nil); err != nil {
		return err
	}
	return fmt.Errorf("plan %s: names of tasks: %w", a.plan.title(), plan.ErrExists)
}

// insertChunk inserts some tasks of an addition by one command. in is false if not all are there then: somebody else has taken a name at this
// moment.
func (s *Store) insertChunk(ctx context.Context, a *addition, chunk []*plan.Task, now time.Time, hold string, mark func(*taskDoc)) (in bool, err error) {
	docs, joins := make([]any, 0, len(chunk)), []any(nil)
	ids := idsFrom(chunk, idOf)
	for _, t := range chunk {
		doc, own, err := newTask(t, hold, now)
		if err != nil {
			return false, fmt.Errorf("task %q: %w", t.Key(), err)
		}
		mark(&doc)
		docs, joins = append(docs, doc), append(joins, own...)
	}
	g := s.Series(ctx)
	for some := range slices.Chunk(joins, addAtOnce) {
		g.Insert(s.joins, some...)
	}
	if taken := g.Insert(s.tasks, docs...); taken == 0 {
		return g.Err == nil, g.Err
	}
	// The conflict may be about the ids: the same call was made before or by another process.
	if there := wire.FindIn[taskDoc](g, s.tasks, d("_id", d("$in", ids)), wire.Query{Fields: ones("_id")}); len(there) < len(ids) {
		return false, g.Err
	}
	again, present := make([]plan.Task, len(chunk)), make(map[plan.TaskID]bool, len(chunk))
	for i, t := range chunk {
		again[i], present[t.ID] = *t, true
	}
	return true, s.checkSame(ctx, chunk[0].Plan, again, present, nil)
}

// takeBack deletes the tasks of an addition that the plan did not take, and says why. A plan that runs may have ended but for them.
func (s *Store) takeBack(ctx context.Context, a *addition, ended *planDoc) error {
	g := s.Series(ctx)
	runs := false
	if a.plan != nil {
		g.Do(func(ctx context.Context) (err error) { runs, err = s.refresh(ctx, a.plan.ID); return err })
	}
	for chunk := range slices.Chunk(a.tasks, addAtOnce) {
		ids := idsFrom(chunk, idOf)
		g.Remove(s.tasks, onlyHeld(d("_id", d("$in", ids))))
		g.Remove(s.joins, d("child", d("$in", ids)))
	}
	if runs {
		g.Do(func(ctx context.Context) error { return s.start(ctx, a.plan.ID) })
	}
	if ended != nil {
		g.Fail(fmt.Errorf("plan %s takes no tasks any more: %w", ended.title(), plan.ErrPlanEnded))
	}
	return g.Err
}

// refresh has a plan, if it runs, looked at by whoever sweeps, and reports whether it runs.
func (s *Store) refresh(ctx context.Context, id bson.ObjectID) (runs bool, err error) {
	return s.UpdateOne(ctx, s.plans, d("_id", id, "state", plan.PlanRunning), d("$set", d("fresh", true)))
}

// check finds which of the tasks are not there yet, and refuses what cannot be added. It changes nothing.
func (s *Store) check(ctx context.Context, id plan.PlanID, tasks []plan.Task) (*addition, error) {
	a := &addition{waiting: map[plan.TaskID]bool{}}
	var known *plan.Plan
	empty := false // the plan has no tasks yet, so neither ids nor names need to be looked for
	if !id.IsZero() {
		p, err := s.plan(ctx, id)
		if err != nil {
			return nil, err
		}
		is := p.domain()
		if known = &is; rules.CheckTakesTasks(known) != nil {
			return nil, rules.CheckTakesTasks(known)
		}
		first, err := wire.FindOne[taskDoc](ctx, s.tasks, d("plan", p.ID), wire.Query{Fields: ones("_id"), Hint: indexList})
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
	if err := s.checkSame(ctx, id, tasks, there, place); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	queues := map[plan.QueueID]bool{}
	needed := map[bson.ObjectID]bool{}
	outside := map[plan.TaskID]*plan.Task{} // parents that are not among the tasks: which task needs them
	for i := range tasks {
		t := &tasks[i]
		if place[t.ID] != i {
			continue
		}
		if a.plan == nil && (!there[t.ID] || a.waiting[t.ID]) {
			for _, need := range t.Needs {
				if _, own := place[need]; !own || there[need] {
					needed[oid(need.ID)] = true
				}
			}
		}
		if there[t.ID] {
			continue
		}
		own := plan.Task{
			ID: t.ID, Plan: id, Name: t.Name, Queue: t.Queue, Definition: t.Definition, Params: t.Params, Needs: t.Needs,
			NotBefore: t.NotBefore, Created: t.Created,
		}
		if a.plan != nil && names[t.Name] {
			return nil, fmt.Errorf("task %q is there twice: %w", t.Name, plan.ErrExists)
		}
		if err := cmp.Or(rules.CheckAdded(&own, known), fits(&own)); err != nil {
			return nil, err
		}
		names[t.Name], queues[t.Queue] = true, true
		for _, need := range t.Needs {
			if k, ok := place[need]; !ok || k >= i {
				outside[need] = &own
			} else if err := rules.CheckNeed(&own, id, need, &rules.Needed{Plan: id, Finally: tasks[k].Finally}); err != nil {
				return nil, err
			}
		}
		a.tasks = append(a.tasks, &own)
	}
	a.parents = slices.Collect(maps.Keys(needed))
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
	g := s.Series(ctx)
	for chunk := range slices.Chunk(tasks, addAtOnce) {
		ids := idsFrom(chunk, func(t plan.Task) bson.ObjectID { return idOf(&t) })
		docs := wire.FindIn[taskDoc](g, s.tasks, d("_id", d("$in", ids)), wire.Query{Fields: ones("adding batch hold")})
		for i := range docs {
			there[taskID(docs[i].ID)] = true
			b := docs[i].Adding
			if !b.IsZero() && (a.plan == nil || b != a.plan.ID) && !slices.Contains(a.batches, b) {
				a.batches = append(a.batches, b)
			}
			if docs[i].Hold == holdAdding {
				a.waiting[taskID(docs[i].ID)] = true
				if docs[i].Batch > 1 && !slices.Contains(a.halves, b) {
					a.halves = append(a.halves, b)
				}
			}
		}
	}
	return there, g.Err
}

// sameAtOnce is how many tasks are read whole to be compared.
const sameAtOnce = 100

// checkSame refuses tasks whose ids others have: tasks that are there, or earlier ones among these, whose first places are told.
func (s *Store) checkSame(ctx context.Context, p plan.PlanID, tasks []plan.Task, there map[plan.TaskID]bool, place map[plan.TaskID]int) error {
	var again []plan.Task // that are in the store
	var secrets secret.Names
	known := false
	check := func(there, again *plan.Task) error {
		if !known {
			queues, err := s.Queues(ctx)
			if err != nil {
				return err
			}
			secrets, known = secret.Of(queues), true
		}
		return secret.CheckSame(there, again, secrets)
	}
	for i := range tasks {
		t := tasks[i]
		t.Plan = p
		switch {
		case there[t.ID]:
			again = append(again, t)
		case place[t.ID] != i:
			first := tasks[place[t.ID]]
			first.Plan = p
			if err := check(&first, &t); err != nil {
				return err
			}
		}
	}
	for chunk := range slices.Chunk(again, sameAtOnce) {
		q := store.TaskQuery{Needs: true, Params: true, Limit: len(chunk)}
		for i := range chunk {
			q.IDs = append(q.IDs, chunk[i].ID)
		}
		found, err := s.Tasks(ctx, q)
		if err != nil {
			return err
		}
		stored := make(map[plan.TaskID]*plan.Task, len(found))
		for i := range found {
			stored[found[i].ID] = &found[i]
		}
		for i := range chunk {
			if was := stored[chunk[i].ID]; was != nil {
				if err := check(was, &chunk[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *Store) checkNames(ctx context.Context, a *addition) error {
	g := s.Series(ctx)
	for chunk := range slices.Chunk(a.tasks, addAtOnce) {
		names := make(bson.A, len(chunk))
		own := make(map[bson.ObjectID]bool, len(chunk))
		for i, t := range chunk {
			names[i], own[oid(t.ID.ID)] = t.Name, true
		}
		docs := wire.FindIn[taskDoc](g, s.tasks, d("plan", a.plan.ID, "name", wire.AnyOf(names)), wire.Query{Fields: ones("name"), Hint: indexName})
		for i := range docs {
			if !own[docs[i].ID] {
				g.Fail(fmt.Errorf("task %q of plan %s: %w", docs[i].Name, a.plan.title(), plan.ErrExists))
			}
		}
	}
	return g.Err
}

func (s *Store) checkQueues(ctx context.Context, tasks []plan.Task, queues map[plan.QueueID]bool) error {
	if len(queues) == 0 {
		return nil
	}
	ids := idsOf(slices.Collect(maps.Keys(queues)))
	docs, err := wire.Find[queueDoc](ctx, s.queues, d("_id", d("$in", ids)), wire.Query{Fields: ones("_id")})
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

// checkParents finds the parents that are not among the tasks. A task of no plan that is being
// deleted cannot be a parent.
func (s *Store) checkParents(ctx context.Context, a *addition, outside map[plan.TaskID]*plan.Task) error {
	all := idsFrom(slices.Collect(maps.Keys(outside)), func(id plan.TaskID) bson.ObjectID { return oid(id.ID) })
	there := make(map[plan.TaskID]*rules.Needed, len(all))
	g := s.Series(ctx)
	for ids := range slices.Chunk(all, addAtOnce) {
		docs := wire.FindIn[taskDoc](g, s.tasks, d("_id", d("$in", ids)), wire.Query{Fields: ones("plan of deleting rolling finally")})
		for i := range docs {
			if !docs[i].Deleting && !docs[i].Rolling {
				there[taskID(docs[i].ID)] = &rules.Needed{Plan: planID(docs[i].Plan), Item: !docs[i].Of.IsZero(), Finally: docs[i].Finally}
			}
		}
	}
	for id, t := range outside {
		g.Fail(rules.CheckNeed(t, t.Plan, id, there[id]))
	}
	return g.Err
}
