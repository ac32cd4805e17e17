package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A retry takes many tasks back at once, and nothing may run between the first and the last. So each is first held by a gate, which
// changes nothing else and can be undone; when all are, the retry is decided, their last attempts are forgotten and the gates come off.
// The retry's documents say what was chosen, so that a sweep ends what a crash left half-way: before that point by undoing it. As long as
// the plan notes the retry it does not end, and what is released in it finds gates; so both is made up for when the retry is over.

// Retry implements store.Admin.
func (s *Store) Retry(ctx context.Context, id plan.PlanID, tasks []plan.Retried, replace []plan.Task, params json.RawMessage) error {
	if len(tasks) == 0 {
		return nil
	}
	var p *planDoc
	var err error
	if !id.IsZero() {
		if p, err = s.kept(ctx, id); err != nil {
			return err
		}
		if !p.Retry.IsZero() { // one that was left half-way goes first
			if err := s.goOn(ctx, p.Retry); err != nil {
				return err
			}
			if p, err = s.kept(ctx, id); err != nil {
				return err
			}
		}
	}
	if p != nil {
		n, err := s.in(ctx, p)
		if err != nil {
			return err
		}
		known := p.domain()
		if err := rules.CheckRetry(&known, n); err != nil {
			return err
		}
	}
	chosen, err := s.checkRetry(ctx, id, tasks, replace)
	if err != nil {
		return err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	retry := bson.NewObjectID()
	// The first document comes last: a retry without it was never begun.
	for n, part := range slices.Backward(retryParts(chosen)) {
		doc := retryDoc{ID: retry, Retry: retry, Plan: oid(id.ID), N: n, At: now, Tasks: part}
		if n > 0 {
			doc.ID = itemID(retry, n)
		} else if p != nil {
			doc.State, doc.Closing, doc.Ended, doc.Edits, doc.Params = p.State, p.Closing, p.Ended, p.Edits+1, text(params)
		}
		if _, err := s.Insert(ctx, s.retries, doc); err != nil {
			return err
		}
	}
	if p != nil {
		noted, err := s.UpdateOne(ctx, s.plans, d("_id", p.ID, "edits", p.Edits, "state", p.State, "retry", nil, "deleting", nil), d(
			"$set", d("retry", retry, "state", plan.PlanRunning), "$unset", d("closing", 1, "ended", 1), "$inc", d("edits", 1),
			"$currentDate", d("mtime", true)))
		if err == nil && !noted {
			err = fmt.Errorf("plan %s: %w", p.title(), plan.ErrConflict)
		}
		if err != nil {
			return err // a sweep deletes the documents of a retry that no plan notes
		}
	}
	return s.goOn(ctx, retry)
}

// kept returns a plan whose deletion has not begun.
func (s *Store) kept(ctx context.Context, id plan.PlanID) (*planDoc, error) {
	p, err := s.plan(ctx, id)
	if err == nil && p.Deleting {
		err = fmt.Errorf("plan %s is being deleted: %w", p.title(), plan.ErrNotFound)
	}
	return p, err
}

// checkRetry refuses what cannot be taken back, and changes nothing.
func (s *Store) checkRetry(ctx context.Context, id plan.PlanID, tasks []plan.Retried, replace []plan.Task) ([]retriedDoc, error) {
	queues := map[plan.QueueID]bool{}
	news := map[plan.TaskID]*plan.Task{}
	for i := range replace {
		queues[replace[i].Queue], news[replace[i].ID] = true, &replace[i]
	}
	if err := s.checkQueues(ctx, replace, queues); err != nil {
		return nil, err
	}
	there, err := s.queueIDs(ctx)
	if err != nil {
		return nil, err
	}
	taken := make(map[bson.ObjectID]bool, len(tasks))
	for _, t := range tasks {
		taken[oid(t.ID.ID)] = true
	}
	chosen := make([]retriedDoc, 0, len(tasks))
	for chunk := range slices.Chunk(tasks, addAtOnce) {
		ids := make(bson.A, len(chunk))
		for i := range chunk {
			ids[i] = oid(chunk[i].ID.ID)
		}
		docs, err := wire.Find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids)),
			wire.Query{Fields: d("status", 1, "hold", 1, "gate", 1, "plan", 1, "plans", 1, "name", 1, "queue", 1)})
		if err != nil {
			return nil, err
		}
		byID := make(map[bson.ObjectID]*taskDoc, len(docs))
		plans := map[bson.ObjectID]bool{}
		for i := range docs {
			byID[docs[i].ID] = &docs[i]
			docs[i].addPlans(plans)
		}
		gone, err := s.deleting(ctx, plans)
		if err != nil {
			return nil, err
		}
		for _, want := range chunk {
			t := byID[oid(want.ID.ID)]
			switch {
			case t == nil, t.Plan != oid(id.ID):
				return nil, fmt.Errorf("task %s: %w", want.ID, plan.ErrNotFound)
			case t.Status != want.Status, t.Status.Active():
				return nil, rules.CheckRetried(&want, t.named())
			case t.Hold == holdAdding, !t.Gate.IsZero(): // somebody else is at it
				return nil, fmt.Errorf("task %q is %v now: %w", t.key(), t.Status, plan.ErrConflict)
			case slices.ContainsFunc(t.Plans, func(id bson.ObjectID) bool { return gone[id] }):
				return nil, rules.NeedsDeleted(t.named())
			case !there[t.Queue] && news[want.ID] == nil:
				return nil, rules.QueueDeleted(t.named())
			}
			doc := retriedDoc{ID: t.ID, Status: t.Status, Hold: t.Hold, Anew: want.Anew}
			if r := news[want.ID]; r != nil {
				raw, err := json.Marshal(r)
				if err != nil {
					return nil, fmt.Errorf("task %q: %w", t.key(), err)
				}
				doc.Replace = raw
			}
			chosen = append(chosen, doc)
		}
	}
	dropped, err := s.drops(ctx, chosen, taken)
	if err != nil {
		return nil, err
	}
	missing, err := s.remade(ctx, chosen)
	if err != nil {
		return nil, err
	}
	return append(chosen, dropped...), s.checkBelow(ctx, oid(id.ID), taken, missing)
}

// queueIDs returns which queues there are.
func (s *Store) queueIDs(ctx context.Context) (map[bson.ObjectID]bool, error) {
	docs, err := wire.Find[queueDoc](ctx, s.queues, d(), wire.Query{Fields: d("_id", 1)})
	there := make(map[bson.ObjectID]bool, len(docs))
	for i := range docs {
		there[docs[i].ID] = true
	}
	return there, err
}

// goOn takes a retry to its end, or, if it is not decided yet and something changed meanwhile, takes it back.
func (s *Store) goOn(ctx context.Context, retry bson.ObjectID) error {
	docs, err := wire.Find[retryDoc](ctx, s.retries, d("retry", retry), wire.Query{Sort: d("n", 1)})
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		_, err := s.UpdateMany(ctx, s.plans, d("retry", retry), d("$set", d("fresh", true), "$unset", d("retry", 1)))
		return err
	}
	first := &docs[0]
	refused := refusal.New(plan.ErrConflict, "tasks changed while they were taken back")
	fate, mine := first.Fate, true
	if fate == "" {
		if err = s.gate(ctx, docs); err != nil && !errors.Is(err, plan.ErrConflict) && !errors.Is(err, plan.ErrPlanActive) {
			return err
		}
		want := done
		if err != nil {
			want, refused = undone, err
		}
		if fate, mine, err = s.seal(ctx, first, want); err != nil {
			return err
		}
	}
	if fate == undone {
		if err := s.undo(ctx, docs); err != nil {
			return err
		}
		return refused
	}
	if err := s.dropItems(ctx, docs); err != nil {
		return err
	}
	for i := range docs {
		if err := s.forget(ctx, retry, first.target(), &docs[i]); err != nil {
			return err
		}
	}
	if !mine { // what this process gated after another one had forgotten it
		if err := s.ungate(ctx, docs); err != nil {
			return err
		}
	}
	set := d("fresh", true)
	if len(first.Params) > 0 {
		set = append(set, bson.E{Key: "params", Value: first.Params})
	}
	if err := s.endRetry(ctx, first, wire.Change{Update: d("$set", set)}); err != nil {
		return err
	}
	return s.start(ctx, first.target())
}

// shareAgain is share for tasks of no plan that a retry holds. Plans of theirs may be gone for long: it reports whether none is being
// deleted.
func (s *Store) shareAgain(ctx context.Context, docs []retryDoc) (bool, error) {
	plans := map[bson.ObjectID]bool{}
	for i := range docs {
		tasks, err := s.gated(ctx, &docs[i], d("plans", 1))
		if err != nil {
			return false, err
		}
		for k := range tasks {
			tasks[k].addPlans(plans)
		}
	}
	if kept, err := s.share(ctx, plans); err != nil || kept {
		return kept, err
	}
	gone, err := s.deleting(ctx, plans)
	return len(gone) == 0, err
}

// The decisions about a retry.
const (
	done   = "done"
	undone = "undone"
)

// seal decides a retry, once and for all processes that work on it. mine is false if another
// process decided. A process that finds the retry decided takes back its later gates.
func (s *Store) seal(ctx context.Context, first *retryDoc, want string) (fate string, mine bool, err error) {
	mine, err = s.UpdateOne(ctx, s.retries, d("_id", first.ID, "fate", nil), d("$set", d("fate", want)))
	if err != nil || mine {
		return want, mine, err
	}
	other, err := wire.FindOne[retryDoc](ctx, s.retries, d("_id", first.ID), wire.Query{Fields: d("fate", 1)})
	if err != nil || other == nil {
		return undone, false, err
	}
	return other.Fate, false, nil
}

// undo takes back a retry, and sees to it that what passed by meanwhile is made up for: the children of what had finished are released,
// what waited is looked at, and so is whether the plan has ended.
func (s *Store) undo(ctx context.Context, docs []retryDoc) error {
	if err := s.ungate(ctx, docs); err != nil {
		return err
	}
	r, err := s.newRound(ctx, 0)
	if err != nil {
		return err
	}
	defer r.end()
	for i := range docs {
		var finished []bson.ObjectID
		for _, t := range docs[i].Tasks {
			if t.Status.Finished() {
				finished = append(finished, t.ID)
				r.queue = append(r.queue, ended{id: t.ID})
			}
		}
		if err := r.note(ctx, finished); err != nil {
			return err
		}
	}
	first := &docs[0]
	if err := s.endRetry(ctx, first, first.reversals()...); err != nil {
		return err
	}
	if err := r.job(ctx, workLook, first.target()); err != nil {
		return err
	}
	return r.finishUp(ctx)
}

// reversals are the changes that take back what a retry did to its plan; the first that applies is made. A plan that had ended has ended
// as it had, unless a task was added since; one that was closed is closed, unless somebody closed it meanwhile.
func (r *retryDoc) reversals() []wire.Change {
	look := wire.Change{Update: d("$set", d("fresh", true))}
	switch {
	case r.State.Ended():
		was := d("state", r.State, "ended", r.Ended)
		if r.Closing != plan.Open {
			was = append(was, bson.E{Key: "closing", Value: r.Closing})
		}
		return []wire.Change{{Where: d("edits", r.Edits, "closing", nil), Update: d("$set", was)}, look}
	case r.Closing != plan.Open:
		return []wire.Change{{Where: d("closing", nil), Update: d("$set", d("fresh", true, "closing", r.Closing))}, look}
	}
	return []wire.Change{look}
}

// endRetry deletes what is noted of a retry, and makes the first of the changes to its plan that applies.
func (s *Store) endRetry(ctx context.Context, first *retryDoc, changes ...wire.Change) error {
	for _, c := range changes {
		if first.Plan.IsZero() {
			break
		}
		made, err := s.UpdateOne(ctx, s.plans, append(d("_id", first.Plan, "retry", first.Retry), c.Where...),
			append(c.Update, d("$unset", d("retry", 1), "$currentDate", d("mtime", true))...))
		if err != nil {
			return err
		}
		if made {
			break
		}
	}
	_, err := s.Remove(ctx, s.retries, d("retry", first.Retry))
	return err
}

// sweepRetries ends retries that were left half-way: those that were decided are made, the others undone.
func (r *round) sweepRetries(ctx context.Context) error {
	docs, err := wire.Find[retryDoc](ctx, r.retries, d("n", 0), wire.Query{Fields: d("retry", 1, "plan", 1, "at", 1, "fate", 1)})
	if err != nil {
		return err
	}
	for i := range docs {
		if id := docs[i].Plan; !id.IsZero() {
			p, err := wire.FindOne[planDoc](ctx, r.plans, d("_id", id), wire.Query{Fields: d("retry", 1)})
			if err != nil {
				return err
			}
			if p == nil || p.Retry != docs[i].Retry {
				if r.at.Sub(docs[i].At) > lateAfter { // else it may be about to be noted
					_, err = r.Remove(ctx, r.retries, d("retry", docs[i].Retry))
				}
				if err != nil {
					return err
				}
				continue
			}
		}
		if docs[i].Fate == "" {
			if r.at.Sub(docs[i].At) < deadRetry {
				continue
			}
			if _, _, err := r.seal(ctx, &docs[i], undone); err != nil {
				return err
			}
		}
		if err := r.goOn(ctx, docs[i].Retry); err != nil && !errors.Is(err, plan.ErrConflict) {
			return err
		}
	}
	return nil
}
