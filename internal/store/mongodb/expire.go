package mongodb

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Expire implements store.Node. Many may share the database: plans, and tasks of queues, that do not say how long stay for ever.
func (s *Store) Expire(ctx context.Context, budget int) (gone protocol.Expired, err error) {
	err = s.inRound(ctx, budget, func(r *round) error {
		gone, err = engine.Expire(ctx, r, 0, budget)
		return err
	})
	return gone, err
}

// CompleteDeletions implements engine.Expirer.
func (r *round) CompleteDeletions(ctx context.Context) (n int, done bool, err error) {
	begun, err := wire.Find[taskDoc](ctx, r.tasks, d("deleting", true), wire.Query{Fields: ones("_id"), Hint: indexDeleting, Limit: r.budget})
	if err == nil {
		n, err = r.deleteMarked(ctx, begun)
	}
	return n, r.budget > 0, err
}

// Settings implements engine.Expirer.
func (r *round) Settings(ctx context.Context) (map[bson.ObjectID]plan.QueueSettings, error) {
	queues, err := wire.Find[queueDoc](ctx, r.queues, d("settings", d("$exists", true)), wire.Query{Fields: ones("settings")})
	settings := map[bson.ObjectID]plan.QueueSettings{}
	for i := range queues {
		settings[queues[i].ID] = queues[i].domain().QueueSettings
	}
	return settings, err
}

// DeleteExpired implements engine.Expirer.
func (r *round) DeleteExpired(ctx context.Context, limits map[rules.Kept[bson.ObjectID]]time.Duration) (n int, err error) {
	for of, limit := range limits {
		some, err := r.expireQueue(ctx, of.Queue, of.Status, r.at.Add(-limit))
		if n += some; err != nil {
			return n, err
		}
	}
	return n, nil
}

// expireQueue deletes tasks of a queue that ended so before an instant. It reads no more at once than the budget may delete.
func (r *round) expireQueue(ctx context.Context, queue bson.ObjectID, status plan.Status, before time.Time) (n int, err error) {
	old, q := endedBefore(queue, status, before), wire.Query{Fields: unneededFields, Sort: d("ended", 1)}
	for r.budget > 0 {
		q.Limit = min(r.budget, deleteAtOnce)
		docs, err := wire.Find[taskDoc](ctx, r.tasks, old, q)
		if err != nil || len(docs) == 0 {
			return n, err
		}
		marked, err := r.markUnneeded(ctx, docs, r.id, "deleting")
		if err != nil {
			return n, err
		}
		some, err := r.deleteMarked(ctx, marked)
		if n += some; err != nil || len(docs) < q.Limit {
			return n, err
		}
		q.Skip += len(docs) - len(marked)
	}
	return n, nil
}

// endedBefore matches the finished tasks of no plan of a queue that ended so before an instant.
func endedBefore(queue bson.ObjectID, status plan.Status, before time.Time) bson.D {
	return d("queue", queue, "status", codes(status), "ended", d("$exists", true, "$lt", before), "plan", nil, "open", nil, "gate", nil)
}

// unneededFields are those that markUnneeded asks for.
var unneededFields = ones("status ended shared")

// markUnneeded marks the tasks that no task needs: their deletion or their batch begins. It returns those
// that have the mark. A marked task has a gate, as in a retry, so that nobody takes it back. An adder of a child first inserts the
// child and then counts it: see keepNeeded. So either markUnneeded sees the child, or the count has
// changed.
func (r *round) markUnneeded(ctx context.Context, docs []taskDoc, gate bson.ObjectID, mark string) (marked []taskDoc, err error) {
	free := make(map[bson.ObjectID]*taskDoc, len(docs))
	for i := range docs {
		free[docs[i].ID] = &docs[i]
	}
	ids := idsOfTasks(docs)
	if err := r.eachNeeded(ctx, ids, func(id bson.ObjectID) { delete(free, id) }); err != nil {
		return nil, err
	}
	// Nearly always nobody has added a task that needs one of them, and one command marks all. A task that ran again has ended later.
	var alike idList
	var latest time.Time
	var changes []wire.Change
	as := d("plan", nil, "open", nil, "gate", nil, "deleting", nil, "rolling", nil)
	for _, t := range free {
		if marked = append(marked, *t); t.Shared > 0 {
			where := append(as[:len(as):len(as)], d("status", t.Status, "ended", t.Ended, "shared", t.Shared)...)
			changes = append(changes, wire.Change{ID: t.ID, Where: where, Update: d("$set", d(mark, true, "gate", gate))})
			continue
		}
		if alike = append(alike, t.ID); t.Ended.After(latest) {
			latest = t.Ended
		}
	}
	made, err := r.Bulk(ctx, r.tasks, changes)
	if err == nil && len(alike) > 0 {
		ended := append(as[:len(as):len(as)], d("_id", d("$in", alike), "shared", nil, "ended", d("$exists", true, "$lte", latest), "$nor", bson.A{onlyUnfinished(nil)})...)
		n, failed := r.UpdateMany(ctx, r.tasks, ended, d("$set", d(mark, true, "gate", gate)))
		made, err = made+n, failed
	}
	if err != nil || made == len(marked) {
		return marked, err
	}
	return wire.Find[taskDoc](ctx, r.tasks, d("_id", d("$in", ids), "gate", gate), wire.Query{Fields: ones("_id")})
}

// eachNeeded calls do with the tasks that tasks of no plan need, whatever the state of these. It
// may pass a task more than once.
func (r *round) eachNeeded(ctx context.Context, ids idList, do func(bson.ObjectID)) error {
	asked := make(map[bson.ObjectID]bool, len(ids))
	for _, id := range ids {
		asked[id] = true
	}
	tell := func(needs []bson.ObjectID) {
		for _, id := range needs {
			if asked[id] {
				delete(asked, id)
				do(id)
			}
		}
	}
	g := r.Series(ctx)
	for len(asked) > 0 { // each answer tells of one at least, however many need it
		left := slices.Collect(maps.Keys(asked))
		children := wire.FindIn[taskDoc](g, r.tasks, d("needs", wire.AnyOf(left), "batch", d("$exists", true)),
			wire.Query{Fields: ones("needs"), Hint: indexLate, Limit: addAtOnce})
		joins := wire.FindIn[joinDoc](g, r.joins, d("needs", wire.AnyOf(left)), wire.Query{Fields: ones("needs"), Hint: "needs", Limit: addAtOnce})
		if g.Err != nil || len(children)+len(joins) == 0 {
			break
		}
		for i := range children {
			tell(children[i].Needs)
		}
		for i := range joins {
			tell(joins[i].Needs)
		}
	}
	return g.Err
}

// deleteMarked deletes tasks whose deletion has begun, with all that is kept beside them, as far as the budget reaches, and returns how many
// went.
func (r *round) deleteMarked(ctx context.Context, docs []taskDoc) (n int, err error) {
	ids := idsOfTasks(docs[:min(len(docs), max(r.budget, 0))])
	if len(ids) == 0 {
		return 0, nil
	}
	r.budget -= len(ids)
	return len(ids), r.forgetTasks(ctx, ids, ids)
}

// keepNeeded counts on finished tasks of no plan that tasks, held by now, need them, and reports whether all parents are there.
func (s *Store) keepNeeded(ctx context.Context, parents idList) (kept bool, err error) {
	g := s.Series(ctx)
	for ids := range slices.Chunk(parents, addAtOnce) {
		there := d("_id", d("$in", ids), "deleting", nil, "rolling", nil)
		g.UpdateMany(s.tasks, append(there[:3:3], d("ended", d("$exists", true))...), d("$inc", d("shared", 1)))
		if left := wire.FindIn[taskDoc](g, s.tasks, there, wire.Query{Fields: ones("_id")}); len(left) < len(ids) {
			return false, g.Err
		}
	}
	return true, nil
}

// DeletePlan implements store.Admin.
func (s *Store) DeletePlan(ctx context.Context, id plan.PlanID, budget int) (more bool, err error) {
	err = s.inRound(ctx, budget, func(r *round) error {
		more, err = engine.DeletePlan(ctx, r, id, budget)
		return err
	})
	return more, err
}

// Prune implements store.Admin. The server gives freed room back by itself.
func (s *Store) Prune(ctx context.Context, keep time.Duration, budget int) (plans int, more bool, err error) {
	err = s.inRound(ctx, budget, func(r *round) error {
		plans, more, err = engine.Prune(ctx, r, keep, budget)
		return err
	})
	return plans, more, err
}

// ToDelete implements engine.Deleter.
func (r *round) ToDelete(ctx context.Context, id plan.PlanID) (*planDoc, error) {
	return r.plan(ctx, id)
}

// Deletion implements engine.Deleter.
func (r *round) Deletion(p *planDoc) rules.Deletion {
	return rules.Deletion{Title: p.title(), State: p.State, Retrying: !p.Retry.IsZero(), Begun: p.Deleting}
}

// BeginDeletion implements engine.Deleter. It marks the plan unless it is retried at this moment.
func (r *round) BeginDeletion(ctx context.Context, p *planDoc) (bool, error) {
	return r.UpdateOne(ctx, r.plans, d("_id", p.ID, "state", p.State, "edits", p.Edits, "retry", nil),
		d("$set", d("deleting", true, "until", r.at)))
}

// DeleteEmpty implements engine.Deleter.
func (r *round) DeleteEmpty(ctx context.Context, p *planDoc) error {
	g := r.Series(ctx)
	g.Do(func(ctx context.Context) error {
		return r.Upsert(ctx, r.runs, d("_id", p.Name), d("$max", d("run", p.Run)))
	})
	g.Do(func(ctx context.Context) error { return r.dropPack(ctx, p.ID) })
	g.Remove(r.plans, d("_id", p.ID))
	return g.Err
}

// ExpiredPlans implements engine.Expirer.
func (r *round) ExpiredPlans(ctx context.Context, byDefault time.Duration) iter.Seq2[*planDoc, error] {
	return func(yield func(*planDoc, error) bool) {
		if r.eachPlan(ctx, "until", d("until", d("$lt", r.at)), yield) && byDefault > 0 {
			r.eachPlan(ctx, "ended", d("ended", d("$lt", r.at.Add(-byDefault)), "keep", nil, "deleting", nil), yield)
		}
	}
}

// eachPlan yields plans in the order of an index, while it may. It reads no more at once than the
// budget may delete, and passes by the plans that cost nothing, because they stayed.
func (r *round) eachPlan(ctx context.Context, index string, match bson.D, yield func(*planDoc, error) bool) (all bool) {
	q := wire.Query{
		Fields: ones("name run state edits ended deleting retry"),
		Hint:   index, Sort: d(index, 1),
	}
	for {
		q.Limit = max(1, min(r.budget, deleteAtOnce))
		docs, err := wire.Find[planDoc](ctx, r.plans, match, q)
		if err != nil {
			return yield(nil, err)
		}
		for i := range docs {
			before := r.budget
			if !yield(&docs[i], nil) {
				return false
			}
			if r.budget == before {
				q.Skip++
			}
		}
		if len(docs) < q.Limit {
			return true
		}
	}
}

// DeleteTasks implements engine.Deleter.
func (r *round) DeleteTasks(ctx context.Context, p *planDoc) (done bool, err error) {
	for r.budget > 0 {
		docs, err := wire.Find[taskDoc](ctx, r.tasks, d("plan", p.ID), wire.Query{Fields: ones("_id"), Hint: indexList, Limit: min(deleteAtOnce, r.budget)})
		if err != nil || len(docs) == 0 {
			return err == nil, err
		}
		ids := idsOfTasks(docs)
		if err := r.forgetTasks(ctx, ids, ids); err != nil {
			return false, err
		}
		r.budget -= len(docs)
	}
	return false, nil
}
