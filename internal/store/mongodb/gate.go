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

// A gating holds the tasks of a retry, or puts them back.
type gating struct {
	*Store
	*wire.Series
}

func (s *Store) gating(ctx context.Context) *gating { return &gating{s, s.Series(ctx)} }

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
	g := s.gating(ctx)
	all := func(step func(*retryDoc)) {
		for i := range docs {
			if time.Since(said) > deadRetry/6 {
				g.UpdateOne(s.retries, d("_id", first.ID), d("$currentDate", d("at", true)))
				said = time.Now()
			}
			step(&docs[i])
		}
	}
	all(g.holdWaiting)
	all(g.mark)
	all(func(r *retryDoc) {
		var marked idList
		for _, some := range r.groups(true) {
			marked = append(marked, some.ids...)
		}
		g.fence(d("$in", marked), check)
	})
	g.Do(func(ctx context.Context) error { return s.checkBelow(ctx, first.Plan, taken, check) })
	all(g.holdFinished)
	return g.Err
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

// take updates tasks of the retry that are in the state that they were in, and as the filter says. It fails unless the gate has all of them then.
func (g *gating) take(r *retryDoc, finished bool, as, update bson.D, has ...bson.E) {
	for _, some := range r.groups(finished) {
		filter := append(d("_id", d("$in", some.ids), "status", some.status), as...)
		g.UpdateMany(g.tasks, addIf(filter, !finished && some.hold != "", "hold", some.hold), update)
		got := wire.FindIn[taskDoc](g.Series, g.tasks, append(d("_id", d("$in", some.ids), "gate", r.Retry), has...), wire.Query{Fields: ones("_id")})
		if len(got) < len(some.ids) {
			g.Fail(refusal.New(plan.ErrConflict, "tasks changed while they were taken back"))
		}
	}
}

func (g *gating) holdWaiting(r *retryDoc) { g.take(r, false, d("gate", nil), r.hold()) }

func (g *gating) holdFinished(r *retryDoc) {
	g.take(r, true, d("gate", r.Retry), r.hold(), bson.E{Key: "hold", Value: holdRetry})
}

// mark marks what has finished, and opens the joins that it is in: who looks at these waits as well, and who read one before that, and
// writes it after, finds it of another generation.
func (g *gating) mark(r *retryDoc) {
	g.take(r, true, d("gate", nil), d("$set", d("gate", r.Retry)))
	tasks := g.gated(r, ones("of"))
	var joins idList
	for _, t := range tasks {
		if !t.Of.IsZero() {
			joins = append(joins, itemJoin(t.Of, itemIndex(t.ID)/joinSize))
		}
	}
	g.UpdateMany(g.joins, d("needs", wire.AnyOf(idsOfTasks(tasks))), uncounted())
	if len(joins) > 0 {
		g.UpdateMany(g.joins, d("_id", d("$in", joins)), uncounted())
	}
}

// fence has the held children of what was marked, as far as the retry does not take them, count their generation up.
func (g *gating) fence(parents bson.D, check engine.BelowCheck) {
	joined := g.joined(parents)
	q := wire.Query{Fields: ones("status hold plan name"), Hint: indexNeeds}
	held := wire.FindIn[taskDoc](g.Series, g.tasks, onlyHeld(d("needs", parents), "gate", nil), q)
	if len(joined) > 0 {
		q.Hint = ""
		held = append(held, wire.FindIn[taskDoc](g.Series, g.tasks, onlyHeld(d("_id", d("$in", joined)), "gate", nil), q)...)
	}
	for i := range held {
		t := &held[i]
		g.Fail(check(t.named(), t.Hold != holdNeeds && t.Hold != holdAdding))
	}
	if len(held) > 0 {
		g.UpdateMany(g.tasks, onlyHeld(d("_id", d("$in", idsOfTasks(held))), "gate", nil), d("$inc", d("gen", 1)))
	}
}

// ungate puts tasks back: finished ones first, so that no child is queued under a held parent, and
// items before the foreach tasks that continue with them. Waiting tasks have to be checked again,
// because their parents may have finished meanwhile.
func (s *Store) ungate(ctx context.Context, docs []retryDoc) error {
	g := s.gating(ctx)
	put := func(r *retryDoc, some group, set bson.D) {
		unset := addIf(ones("gate"), some.hold == "", "hold", 1)
		set = addIf(append(set, bson.E{Key: "status", Value: some.status}), some.hold != "", "hold", some.hold)
		g.UpdateMany(s.tasks, d("_id", d("$in", some.ids), "gate", r.Retry, "hold", holdRetry), d("$set", set, "$unset", unset, "$currentDate", d("mtime", true)))
	}
	for i := range docs {
		for _, some := range docs[i].groups(true) {
			put(&docs[i], some, nil)
			// The retry's own process may hold a task between these two writes. That task keeps its gate,
			// by which the process finds it when it undoes the retry, and an audit if the process is dead.
			marked := d("_id", d("$in", some.ids), "gate", docs[i].Retry, "hold", d("$ne", holdRetry))
			g.UpdateMany(s.tasks, marked, d("$unset", d("gate", 1)))
		}
	}
	for i := range slices.Backward(docs) {
		for _, some := range slices.Backward(docs[i].groups(false)) {
			put(&docs[i], some, addIf(nil, some.hold == holdNeeds || some.hold == holdItems, "adding", docs[0].target()))
		}
	}
	return g.Err
}

// joined returns the tasks that wait for some of the parents in joins.
func (g *gating) joined(parents bson.D) (children idList) {
	return childrenOf(wire.FindIn[joinDoc](g.Series, g.joins, d("needs", wire.Present(parents)), wire.Query{Fields: ones("child"), Hint: "needs"}))
}

// gated reads those tasks of a part of a retry that its gate still holds, and those that it has only marked yet.
func (g *gating) gated(doc *retryDoc, fields bson.D) []taskDoc {
	return wire.FindIn[taskDoc](g.Series, g.tasks, d("_id", d("$in", doc.ids()), "gate", doc.Retry), wire.Query{Fields: fields})
}

// checkBelow asks check of the tasks below what a retry takes that are queued, claimed or running.
func (s *Store) checkBelow(ctx context.Context, of bson.ObjectID, taken map[bson.ObjectID]bool, check engine.BelowCheck) error {
	g := s.gating(ctx)
	below := func(filter bson.D, hint string, is func(*taskDoc) bool) {
		q := wire.Query{Fields: ones("status plan name needs of"), Hint: hint}
		g.Do(func(ctx context.Context) error {
			return wire.Each(ctx, s.tasks, onlyQueuedOrActive(filter), q, func(t *taskDoc) error {
				if !is(t) {
					return nil
				}
				return check(t.named(), false)
			})
		})
	}
	yes := func(*taskDoc) bool { return true }
	if !of.IsZero() && len(taken) > addAtOnce { // the server is not to go through the same tasks once for each part of what is taken
		below(d("plan", of), indexPlan, func(t *taskDoc) bool {
			return taken[t.Of] || slices.ContainsFunc(t.Needs, func(id bson.ObjectID) bool { return taken[id] })
		})
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(taken)), addAtOnce) {
		parents := d("$in", ids)
		below(d("needs", wire.Present(parents), "batch", d("$exists", true)), indexLate, yes)
		if joined := g.joined(parents); len(joined) > 0 {
			below(d("_id", d("$in", joined)), "", yes)
		}
		if !of.IsZero() && len(taken) <= addAtOnce {
			below(d("plan", of, "$or", bson.A{d("needs", parents), d("of", parents)}), indexPlan, yes)
		}
	}
	return g.Err
}
