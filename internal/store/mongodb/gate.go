package mongodb

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// gate holds all tasks of a retry. It returns plan.ErrConflict or plan.ErrPlanActive if something changed, or was let go on, since the
// caller looked; what it has gated by then is to be put back. It goes in steps, each for all tasks:
//
//  1. Waiting tasks are held, so that nobody queues or claims them.
//  2. Finished tasks are marked. They stay as they were, but a reader of such a parent waits.
//  3. A process that read the parent before that may be about to queue a child that the retry does
//     not take, because it was added late. Such children raise their generation, so that this
//     write fails. If one was queued already, the retry ends here.
//  4. Finished tasks are held. Now no child with one of them as a parent is queued.
func (s *Store) gate(ctx context.Context, docs []retryDoc) error {
	taken := map[bson.ObjectID]bool{}
	for i := range docs {
		for _, t := range docs[i].Tasks {
			taken[t.ID] = true
		}
	}
	first, said := &docs[0], time.Now()
	check := func(t *plan.Task, decided bool) error {
		if taken[oid(t.ID.ID)] {
			return nil
		}
		return rules.CheckBelow(t, decided)
	}
	all := func(step func(context.Context, *retryDoc) error) error {
		for i := range docs {
			if time.Since(said) > deadRetry/6 {
				if _, err := s.UpdateOne(ctx, s.retries, d("_id", first.ID), d("$currentDate", d("at", true))); err != nil {
					return err
				}
				said = time.Now()
			}
			if err := step(ctx, &docs[i]); err != nil {
				return err
			}
		}
		return nil
	}
	err := all(s.holdWaiting)
	if err == nil {
		err = all(s.mark)
	}
	if err != nil {
		return err
	}
	err = all(func(ctx context.Context, r *retryDoc) error {
		var marked idList
		for _, g := range r.groups(true) {
			marked = append(marked, g.ids...)
		}
		return s.fence(ctx, d("$in", marked), check)
	})
	if err == nil {
		err = s.checkBelow(ctx, first.Plan, taken, check)
	}
	if err == nil {
		err = all(s.holdFinished)
	}
	return err
}

// group is tasks of a retry that were in the same state.
type group struct {
	status plan.Status
	hold   string
	ids    idList
}

// groups returns the tasks by the states that they were in. Foreach tasks come before items that wait to be queued: whoever queues these
// counts in their task how far it came.
func (r *retryDoc) groups(finished bool) []group {
	var groups []group
	for _, t := range r.Tasks {
		if t.Status.Finished() != finished {
			continue
		}
		k := slices.IndexFunc(groups, func(g group) bool { return g.status == t.Status && g.hold == t.Hold })
		if k < 0 {
			k, groups = len(groups), append(groups, group{status: t.Status, hold: t.Hold})
		}
		groups[k].ids = append(groups[k].ids, t.ID)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.hold, a.hold) })
	return groups
}

// hold is the write by which the gate holds tasks.
func (r *retryDoc) hold() bson.D {
	return d("$set", onlyHeld(nil, "hold", holdRetry, "gate", r.Retry), "$inc", d("gen", 1), "$currentDate", d("mtime", true))
}

// gatedAll returns an error unless the gate has all of the tasks.
func (s *Store) gatedAll(ctx context.Context, r *retryDoc, ids idList, also ...bson.E) error {
	got, err := wire.Find[taskDoc](ctx, s.tasks, append(d("_id", d("$in", ids), "gate", r.Retry), also...), wire.Query{Fields: ones("_id")})
	if err == nil && len(got) < len(ids) {
		err = refusal.New(plan.ErrConflict, "tasks changed while they were taken back")
	}
	return err
}

func (s *Store) holdWaiting(ctx context.Context, r *retryDoc) error {
	for _, g := range r.groups(false) {
		filter := d("_id", d("$in", g.ids), "status", g.status, "gate", nil)
		filter = addIf(filter, g.hold != "", "hold", g.hold)
		if _, err := s.UpdateMany(ctx, s.tasks, filter, r.hold()); err != nil {
			return err
		}
		if err := s.gatedAll(ctx, r, g.ids); err != nil {
			return err
		}
	}
	return nil
}

// mark marks what has finished, and opens the joins that it is in: who looks at these waits as well, and who read one before that, and
// writes it after, finds it of another generation.
func (s *Store) mark(ctx context.Context, r *retryDoc) error {
	for _, g := range r.groups(true) {
		as := d("_id", d("$in", g.ids), "status", g.status, "gate", nil)
		if _, err := s.UpdateMany(ctx, s.tasks, as, d("$set", d("gate", r.Retry))); err != nil {
			return err
		}
		if err := s.gatedAll(ctx, r, g.ids); err != nil {
			return err
		}
	}
	tasks, err := s.gated(ctx, r, ones("of"))
	if err != nil {
		return err
	}
	ids := idsOfTasks(tasks)
	var joins idList
	for _, t := range tasks {
		if !t.Of.IsZero() {
			joins = append(joins, itemJoin(t.Of, itemIndex(t.ID)/joinSize))
		}
	}
	if _, err := s.UpdateMany(ctx, s.joins, d("needs", wire.AnyOf(ids)), uncounted()); err != nil || len(joins) == 0 {
		return err
	}
	_, err = s.UpdateMany(ctx, s.joins, d("_id", d("$in", joins)), uncounted())
	return err
}

// fence has the held children of what was marked, as far as the retry does not take them, count their generation up.
func (s *Store) fence(ctx context.Context, parents bson.D, check engine.BelowCheck) error {
	joined, err := s.joined(ctx, parents)
	if err != nil {
		return err
	}
	q := wire.Query{Fields: ones("status hold plan name"), Hint: indexNeeds}
	held, err := wire.Find[taskDoc](ctx, s.tasks, onlyHeld(d("needs", parents), "gate", nil), q)
	if err != nil {
		return err
	}
	if len(joined) > 0 {
		q.Hint = ""
		more, err := wire.Find[taskDoc](ctx, s.tasks, onlyHeld(d("_id", d("$in", joined)), "gate", nil), q)
		if err != nil {
			return err
		}
		held = append(held, more...)
	}
	if len(held) == 0 {
		return nil
	}
	for i := range held {
		t := &held[i]
		if err := check(t.named(), t.Hold != holdNeeds && t.Hold != holdAdding); err != nil {
			return err
		}
	}
	_, err = s.UpdateMany(ctx, s.tasks, onlyHeld(d("_id", d("$in", idsOfTasks(held))), "gate", nil), d("$inc", d("gen", 1)))
	return err
}

func (s *Store) holdFinished(ctx context.Context, r *retryDoc) error {
	for _, g := range r.groups(true) {
		if _, err := s.UpdateMany(ctx, s.tasks, d("_id", d("$in", g.ids), "status", g.status, "gate", r.Retry), r.hold()); err != nil {
			return err
		}
		if err := s.gatedAll(ctx, r, g.ids, bson.E{Key: "hold", Value: holdRetry}); err != nil {
			return err
		}
	}
	return nil
}

// ungate puts tasks back: finished ones first, so that no child is queued under a held parent, and
// items before the foreach tasks that continue with them. Waiting tasks have to be checked again,
// because their parents may have finished meanwhile.
func (s *Store) ungate(ctx context.Context, docs []retryDoc) error {
	put := func(r *retryDoc, g group, set bson.D) error {
		unset := ones("gate")
		if set = append(set, bson.E{Key: "status", Value: g.status}); g.hold != "" {
			set = append(set, bson.E{Key: "hold", Value: g.hold})
		} else {
			unset = append(unset, bson.E{Key: "hold", Value: 1})
		}
		_, err := s.UpdateMany(ctx, s.tasks, d("_id", d("$in", g.ids), "gate", r.Retry, "hold", holdRetry),
			d("$set", set, "$unset", unset, "$currentDate", d("mtime", true)))
		return err
	}
	for i := range docs {
		for _, g := range docs[i].groups(true) {
			if err := put(&docs[i], g, nil); err != nil {
				return err
			}
			// The retry's own process may hold a task between these two writes. That task keeps its gate,
			// by which the process finds it when it undoes the retry, and an audit if the process is dead.
			marked := d("_id", d("$in", g.ids), "gate", docs[i].Retry, "hold", d("$ne", holdRetry))
			if _, err := s.UpdateMany(ctx, s.tasks, marked, d("$unset", d("gate", 1))); err != nil {
				return err
			}
		}
	}
	for i := range slices.Backward(docs) {
		for _, g := range slices.Backward(docs[i].groups(false)) {
			var look bson.D
			if g.hold == holdNeeds || g.hold == holdItems {
				look = d("adding", docs[0].target())
			}
			if err := put(&docs[i], g, look); err != nil {
				return err
			}
		}
	}
	return nil
}

// joined returns the tasks that wait for some of the parents in joins.
func (s *Store) joined(ctx context.Context, parents bson.D) (children idList, err error) {
	joins, err := wire.Find[joinDoc](ctx, s.joins, d("needs", wire.Present(parents)), wire.Query{Fields: ones("child"), Hint: "needs"})
	return childrenOf(joins), err
}

// checkBelow asks check of the tasks below what a retry takes that are queued, claimed or running.
func (s *Store) checkBelow(ctx context.Context, of bson.ObjectID, taken map[bson.ObjectID]bool, check engine.BelowCheck) error {
	below := func(filter bson.D, hint string, is func(*taskDoc) bool) error {
		q := wire.Query{Fields: ones("status plan name needs of"), Hint: hint}
		return wire.Each(ctx, s.tasks, onlyQueuedOrActive(filter), q, func(t *taskDoc) error {
			if !is(t) {
				return nil
			}
			return check(t.named(), false)
		})
	}
	yes := func(*taskDoc) bool { return true }
	if !of.IsZero() && len(taken) > addAtOnce { // the server is not to go through the same tasks once for each part of what is taken
		err := below(d("plan", of), indexPlan, func(t *taskDoc) bool {
			return taken[t.Of] || slices.ContainsFunc(t.Needs, func(id bson.ObjectID) bool { return taken[id] })
		})
		if err != nil {
			return err
		}
	}
	late := func(parents bson.D) error {
		if err := below(d("needs", wire.Present(parents), "batch", d("$exists", true)), indexLate, yes); err != nil {
			return err
		}
		joined, err := s.joined(ctx, parents)
		if err == nil && len(joined) > 0 {
			err = below(d("_id", d("$in", joined)), "", yes)
		}
		return err
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(taken)), addAtOnce) {
		err := late(d("$in", ids))
		if err == nil && !of.IsZero() && len(taken) <= addAtOnce {
			err = below(d("plan", of, "$or", bson.A{d("needs", d("$in", ids)), d("of", d("$in", ids))}), indexPlan, yes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
