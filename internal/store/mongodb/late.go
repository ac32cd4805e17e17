package mongodb

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

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
	case a.plan == nil && len(a.parents) == 0:
		hold = holdNeeds // nobody has to take them
	case a.plan != nil && len(a.plan.Adds) > 0:
		if err := s.forgetAdds(ctx, a.plan); err != nil {
			return false, err
		}
	}
	several := hold == holdAdding && len(a.tasks) > 1
	mark := func(doc *taskDoc) {
		if doc.Adding, doc.Batch = batch, len(a.tasks); several && doc.ID == oid(a.tasks[0].ID.ID) {
			doc.Lead = leadAdding
		}
	}
	if err := s.insertTasks(ctx, a, 1, hold, mark); err != nil {
		return false, err
	}
	whole, err := s.sayWhole(ctx, a, several)
	if err == nil && !whole {
		if err = s.takeBack(ctx, a, nil); err == nil {
			err = refusal.New(plan.ErrConflict, "tasks were taken for dead while they were being added, and none is in; add them again")
		}
	}
	if err != nil {
		return false, err
	}
	if a.plan == nil {
		if kept, err := s.keepNeeded(ctx, a.parents); err != nil {
			return false, err
		} else if !kept {
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
	_, err = s.UpdateOne(ctx, s.plans, d("_id", a.plan.ID), d("$pullAll", d("adds", batches)))
	return false, err
}

// sayWhole writes down that the addition, if it has several tasks, and those that it goes on with are whole, and reports whether that is so:
// nobody has taken one of them for dead, and nobody will.
func (s *Store) sayWhole(ctx context.Context, a *addition, several bool) (whole bool, err error) {
	var leads []bson.D
	if several {
		leads = append(leads, d("_id", oid(a.tasks[0].ID.ID))) // a sweep that found them all in may have admitted it by now
	}
	for _, b := range a.halves {
		leads = append(leads, d("adding", b))
	}
	for _, lead := range leads {
		whole, err := s.UpdateOne(ctx, s.tasks, append(lead, bson.E{Key: "lead", Value: d("$in", bson.A{leadAdding, leadWhole})}), d("$set", d("lead", leadWhole)))
		if err != nil || !whole {
			return false, err
		}
	}
	return true, nil
}

// confirm has a plan take tasks that were added late, and reports whether it does. Insert first, look second: whoever ends the plan either
// sees the tasks, or this write does not find the plan running.
func (s *Store) confirm(ctx context.Context, id bson.ObjectID, batches []bson.ObjectID) (taken bool, err error) {
	return s.UpdateOne(ctx, s.plans, d("_id", id, "state", plan.PlanRunning, "closing", nil, "ending", nil),
		d("$inc", d("edits", 1), "$addToSet", d("adds", d("$each", batches)), "$currentDate", d("mtime", true)))
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
	g := s.Series(ctx)
	ids := idsOfTasks(wire.FindIn[taskDoc](g, s.tasks, unadmitted, wire.Query{Fields: ones("_id"), Hint: indexAdding, Limit: most}))
	if len(ids) > 0 {
		g.Remove(s.joins, d("child", d("$in", ids)))
		g.Remove(s.tasks, append(d("_id", d("$in", ids)), unadmitted...))
	}
	return len(ids), g.Err
}

// forgetAdds takes late additions off the plan's list of which all tasks were looked at: of those that added them some have died before
// that.
func (s *Store) forgetAdds(ctx context.Context, p *planDoc) error {
	done := slices.Clone(p.Adds)
	left, err := wire.Find[taskDoc](ctx, s.tasks, d("adding", wire.AnyOf(p.Adds)), wire.Query{Fields: ones("adding"), Hint: indexAdding, Limit: addAtOnce})
	if err != nil {
		return err
	}
	for i := range left {
		done = slices.DeleteFunc(done, func(b any) bool { return b == left[i].Adding })
	}
	if len(done) == 0 || len(left) == addAtOnce {
		return nil
	}
	_, err = s.UpdateOne(ctx, s.plans, d("_id", p.ID), d("$pullAll", d("adds", done)))
	return err
}

// admit lets tasks that were added late, and that their plan took, be held for their parents, and looks at these.
func (r *round) admit(ctx context.Context, batch bson.ObjectID) error {
	if _, err := r.UpdateMany(ctx, r.tasks, d("adding", batch, "hold", holdAdding), d("$set", d("hold", holdNeeds))); err != nil {
		return err
	}
	return r.job(ctx, workLook, batch)
}

// watch marks the parents of tasks of no plan, so that their end is noticed even if another program made them and ends them, or has ended
// them: then what they printed is not their output yet.
func (s *Store) watch(ctx context.Context, a *addition) error {
	var ids idList
	for _, t := range a.tasks {
		for _, need := range t.Needs {
			ids = append(ids, oid(need.ID))
		}
	}
	g := s.Series(ctx)
	for chunk := range slices.Chunk(ids, addAtOnce) {
		unmarked := d("_id", d("$in", chunk), "open", nil, "$or", bson.A{onlyUnfinished(nil), d("ended", nil)})
		g.UpdateMany(s.tasks, unmarked, d("$set", d("open", true)))
	}
	return g.Err
}
