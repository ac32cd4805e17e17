package mongodb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// check finds which of the tasks are not there yet, and refuses what cannot be added. It changes nothing.
func (s *Store) check(ctx context.Context, id plan.PlanID, tasks []plan.Task) (*addition, error) {
	a := &addition{of: map[plan.TaskID]bson.ObjectID{}, plans: map[bson.ObjectID]bool{}, waiting: map[plan.TaskID]bool{}}
	empty := false // the plan has no tasks yet, so neither ids nor names need to be looked for
	if !id.IsZero() {
		p, err := s.plan(ctx, id)
		if err != nil {
			return nil, err
		}
		if p.State.Ended() || p.Closing != plan.Open {
			return nil, fmt.Errorf("plan %s is %v and takes no tasks: %w", p.title(), p.State, plan.ErrPlanEnded)
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
	for chunk := range slices.Chunk(tasks, addAtOnce) {
		ids := idsFrom(chunk, func(t plan.Task) bson.ObjectID { return idOf(&t) })
		docs, err := wire.Find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids)), wire.Query{Fields: ones("adding batch hold plans")})
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
				a.waiting[taskID(docs[i].ID)] = true
				docs[i].addPlans(a.plans)
				if docs[i].Batch > 1 && !slices.Contains(a.halves, b) {
					a.halves = append(a.halves, b)
				}
			}
		}
	}
	return there, nil
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
	for chunk := range slices.Chunk(a.tasks, addAtOnce) {
		names := make(bson.A, len(chunk))
		own := make(map[bson.ObjectID]bool, len(chunk))
		for i, t := range chunk {
			names[i], own[oid(t.ID.ID)] = t.Name, true
		}
		docs, err := wire.Find[taskDoc](ctx, s.tasks, d("plan", a.plan.ID, "name", wire.AnyOf(names)), wire.Query{Fields: ones("name"), Hint: indexName})
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

// checkParents finds the parents that are not among the tasks. Tasks of a plan that is being
// deleted cannot be parents.
func (s *Store) checkParents(ctx context.Context, a *addition, outside map[plan.TaskID]*plan.Task) error {
	all := idsFrom(slices.Collect(maps.Keys(outside)), func(id plan.TaskID) bson.ObjectID { return oid(id.ID) })
	for ids := range slices.Chunk(all, addAtOnce) {
		docs, err := wire.Find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids)), wire.Query{Fields: ones("plan of")})
		if err != nil {
			return err
		}
		going, err := s.going(ctx, docs)
		if err != nil {
			return err
		}
		for i := range docs {
			id, of := taskID(docs[i].ID), docs[i].Plan
			switch {
			case a.plan == nil && !of.IsZero():
				a.of[id], a.plans[of] = of, true
			case a.plan == nil && !going[docs[i].alone()], a.plan != nil && of == a.plan.ID:
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
