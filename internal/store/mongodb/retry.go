package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// A retry takes many tasks back at once, and nothing may run between the first and the last. So each is first held by a gate, which
// changes nothing else and can be undone; when all are, the retry is decided, their last attempts are forgotten and the gates come off.
// The retry's documents say what was chosen, so that a sweep ends what a crash left half-way: before that point by undoing it.

// retryDoc is a part of a retry: its first document has the id of the retry.
type retryDoc struct {
	ID    bson.ObjectID `bson:"_id"`
	Retry bson.ObjectID `bson:"retry"`
	Plan  bson.ObjectID `bson:"plan,omitempty"`
	N     int           `bson:"n"`
	At    time.Time     `bson:"at"`
	Fate  string        `bson:"fate,omitempty"` // in the first: done, once all are held, or undone

	// In the first: how the plan was.
	State   plan.Lifecycle `bson:"state"`
	Closing plan.Closing   `bson:"closing,omitempty"`
	Ended   time.Time      `bson:"ended,omitempty"`

	Tasks []retriedDoc `bson:"tasks"` // children first
}

type retriedDoc struct {
	ID      bson.ObjectID `bson:"id"`
	Status  plan.Status   `bson:"status"` // as it was,
	Hold    string        `bson:"hold,omitempty"`
	Replace text          `bson:"replace,omitempty"` // a task with a new definition, params and queue, as JSON
	Anew    bool          `bson:"anew,omitempty"`    // its items are made anew, whatever its parents do
}

// retryAtOnce is how many tasks are in one document of a retry.
const retryAtOnce = 500

// Retry implements store.Admin.
func (s *Store) Retry(ctx context.Context, id plan.PlanID, tasks []plan.Retried, replace []plan.Task) error {
	if len(tasks) == 0 {
		return nil
	}
	var p *planDoc
	var err error
	if !id.IsZero() {
		if p, err = s.plan(ctx, id); err != nil {
			return err
		}
		if !p.Retry.IsZero() { // one that was left half-way goes first
			if err := s.goOn(ctx, p.Retry); err != nil {
				return err
			}
			if p, err = s.plan(ctx, id); err != nil {
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
		if err := known.CheckRetry(n); err != nil {
			return err
		}
	}
	chosen, err := s.checkRetry(ctx, p, tasks, replace)
	if err != nil {
		return err
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	retry := bson.NewObjectID()
	// The first document comes last: a retry without it was never begun.
	for n := (len(chosen) - 1) / retryAtOnce; n >= 0; n-- {
		doc := retryDoc{ID: retry, Retry: retry, Plan: oid(id.ID), N: n, At: now, Tasks: chosen[n*retryAtOnce : min(len(chosen), (n+1)*retryAtOnce)]}
		if n > 0 {
			doc.ID = itemID(retry, n)
		} else if p != nil {
			doc.State, doc.Closing, doc.Ended = p.State, p.Closing, p.Ended
		}
		if _, err := s.insert(ctx, s.retries, doc); err != nil {
			return err
		}
	}
	if p != nil {
		noted, err := s.updateOne(ctx, s.plans, d("_id", p.ID, "edits", p.Edits, "state", p.State, "retry", nil), d(
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

// checkRetry refuses what cannot be taken back, and changes nothing.
func (s *Store) checkRetry(ctx context.Context, p *planDoc, tasks []plan.Retried, replace []plan.Task) ([]retriedDoc, error) {
	queues := map[plan.QueueID]bool{}
	news := map[plan.TaskID]*plan.Task{}
	for i := range replace {
		queues[replace[i].Queue], news[replace[i].ID] = true, &replace[i]
	}
	if err := s.checkQueues(ctx, replace, queues); err != nil {
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
		docs, err := find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids)),
			query{fields: d("status", 1, "hold", 1, "plan", 1, "plans", 1, "name", 1)})
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
			case t == nil, p == nil && !t.Plan.IsZero(), p != nil && t.Plan != p.ID:
				return nil, fmt.Errorf("task %s: %w", want.ID, plan.ErrNotFound)
			case t.Status.Active():
				return nil, fmt.Errorf("task %q is %v: %w", t.key(), t.Status, plan.ErrPlanActive)
			case t.Status != want.Status, t.Hold == holdAdding, t.Hold == holdRetry:
				return nil, fmt.Errorf("task %q is %v now: %w", t.key(), t.Status, plan.ErrConflict)
			case slices.ContainsFunc(t.Plans, func(id bson.ObjectID) bool { return gone[id] }):
				return nil, fmt.Errorf("task %q needs some of a plan that is being deleted: %w", t.key(), plan.ErrConflict)
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
	return chosen, s.checkBelow(ctx, p, taken)
}

// checkBelow refuses a retry while something below what it takes, and not taken itself, is queued, claimed or running.
func (s *Store) checkBelow(ctx context.Context, p *planDoc, taken map[bson.ObjectID]bool) error {
	busy := bson.A{plan.Queued, plan.Claimed, plan.Running}
	filter := d("plan", nil)
	q := query{fields: d("status", 1, "name", 1, "needs", 1, "joins", 1, "of", 1)}
	if p != nil {
		filter, q.hint = d("plan", p.ID, "status", d("$in", busy)), indexPlan
	} else {
		// By the index on queue and status: what is queued or active of no plan.
		queues, err := find[queueDoc](ctx, s.queues, d(), query{fields: d("_id", 1)})
		if err != nil {
			return err
		}
		ids := make(bson.A, len(queues))
		for i := range queues {
			ids[i] = queues[i].ID
		}
		filter = append(filter, d("queue", d("$in", ids), "status", d("$in", busy))...)
	}
	docs, err := find[taskDoc](ctx, s.tasks, filter, q)
	if err != nil {
		return err
	}
	for i := range docs {
		t := &docs[i]
		if taken[t.ID] {
			continue
		}
		parents, err := s.parentIDs(ctx, t)
		if err != nil {
			return err
		}
		if !taken[t.Of] && !slices.ContainsFunc(parents, func(id bson.ObjectID) bool { return taken[id] }) {
			continue
		}
		if t.Status.Active() {
			return fmt.Errorf("task %q below is %v: %w", t.key(), t.Status, plan.ErrPlanActive)
		}
		return fmt.Errorf("task %q below is queued now: %w", t.key(), plan.ErrConflict)
	}
	return nil
}

// goOn takes a retry to its end, or, if it is not decided yet and something changed meanwhile, takes it back.
func (s *Store) goOn(ctx context.Context, retry bson.ObjectID) error {
	docs, err := find[retryDoc](ctx, s.retries, d("retry", retry), query{sort: d("n", 1)})
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		_, err := s.updateMany(ctx, s.plans, d("retry", retry), d("$unset", d("retry", 1)))
		return err
	}
	first := &docs[0]
	all := true
	if first.Fate == "" {
		if all, err = s.gate(ctx, retry, docs); err == nil && all && first.Plan.IsZero() {
			all, err = s.shareAgain(ctx, docs)
		}
		if err != nil {
			return err
		}
	}
	if fate, err := s.seal(ctx, first, all); err != nil || fate == undone {
		if err == nil {
			err = s.undo(ctx, docs)
		}
		if err == nil {
			err = fmt.Errorf("tasks changed while they were taken back: %w", plan.ErrConflict)
		}
		return err
	}
	adding := retry
	if !first.Plan.IsZero() {
		adding = first.Plan
	}
	if err := s.dropItems(ctx, docs); err != nil {
		return err
	}
	if err := s.resetJoins(ctx, docs); err != nil {
		return err
	}
	for i := range docs {
		if err := s.forget(ctx, retry, adding, &docs[i]); err != nil {
			return err
		}
	}
	if err := s.endRetry(ctx, first, d("$set", d("fresh", true))); err != nil {
		return err
	}
	return s.start(ctx, adding)
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

// What becomes of a retry.
const (
	done   = "done"
	undone = "undone"
)

// seal decides what becomes of a retry, once and for all who are at it.
func (s *Store) seal(ctx context.Context, first *retryDoc, all bool) (fate string, err error) {
	if first.Fate != "" {
		return first.Fate, nil
	}
	if fate = done; !all {
		fate = undone
	}
	mine, err := s.updateOne(ctx, s.retries, d("_id", first.ID, "fate", nil), d("$set", d("fate", fate)))
	if err != nil || mine {
		return fate, err
	}
	other, err := findOne[retryDoc](ctx, s.retries, d("_id", first.ID), query{fields: d("fate", 1)})
	if err == nil && other == nil {
		err = fmt.Errorf("another process ended this retry: %w", plan.ErrConflict)
	}
	if err != nil {
		return "", err
	}
	return other.Fate, nil
}

// undo takes back a retry.
func (s *Store) undo(ctx context.Context, docs []retryDoc) error {
	if err := s.ungate(ctx, docs[0].Retry, docs); err != nil {
		return err
	}
	first := &docs[0]
	back := d("state", first.State)
	if first.Closing != plan.Open {
		back = append(back, bson.E{Key: "closing", Value: first.Closing})
	}
	if !first.Ended.IsZero() {
		back = append(back, bson.E{Key: "ended", Value: first.Ended})
	}
	return s.endRetry(ctx, first, d("$set", back))
}

// endRetry deletes what is noted of a retry, and changes its plan.
func (s *Store) endRetry(ctx context.Context, first *retryDoc, update bson.D) error {
	if !first.Plan.IsZero() {
		update = append(update, d("$unset", d("retry", 1), "$currentDate", d("mtime", true))...)
		if _, err := s.updateOne(ctx, s.plans, d("_id", first.Plan, "retry", first.Retry), update); err != nil {
			return err
		}
	}
	_, err := s.remove(ctx, s.retries, d("retry", first.Retry))
	return err
}

// gate holds all tasks of the retry, those first that others could take from it: the queued ones. all is false if one was changed.
func (s *Store) gate(ctx context.Context, retry bson.ObjectID, docs []retryDoc) (all bool, err error) {
	hold := d("status", plan.Held, "hold", holdRetry, "gate", retry)
	if docs[0].Plan.IsZero() {
		// By this a deletion finds that it needs some of a plan. Should it go back to where it had finished, it is released once more.
		hold = append(hold, bson.E{Key: "open", Value: true})
	}
	for _, waits := range []bool{true, false} {
		for i := range docs {
			for group, ids := range docs[i].groups() {
				if group.finished() == waits {
					continue
				}
				filter := d("_id", d("$in", ids), "status", group.status, "gate", nil)
				if group.hold != "" {
					filter = append(filter, bson.E{Key: "hold", Value: group.hold})
				}
				if _, err := s.updateMany(ctx, s.tasks, filter,
					d("$set", hold, "$inc", d("gen", 1), "$currentDate", d("mtime", true))); err != nil {
					return false, err
				}
				held, err := find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids), "gate", retry), query{fields: d("_id", 1)})
				if err != nil || len(held) < len(ids) {
					return false, err
				}
			}
		}
	}
	return true, nil
}

// ungate puts tasks back to where they were.
func (s *Store) ungate(ctx context.Context, retry bson.ObjectID, docs []retryDoc) error {
	for i := range docs {
		for group, ids := range docs[i].groups() {
			set, unset := d("status", group.status), d("gate", 1)
			if group.hold != "" {
				set = append(set, bson.E{Key: "hold", Value: group.hold})
			} else {
				unset = append(unset, bson.E{Key: "hold", Value: 1})
			}
			if _, err := s.updateMany(ctx, s.tasks, d("_id", d("$in", ids), "gate", retry),
				d("$set", set, "$unset", unset, "$currentDate", d("mtime", true))); err != nil {
				return err
			}
		}
	}
	return nil
}

// group is tasks of a retry that were in the same state.
type group struct {
	status plan.Status
	hold   string
}

func (g group) finished() bool { return g.status.Finished() }

func (r *retryDoc) groups() map[group]bson.A {
	groups := map[group]bson.A{}
	for _, t := range r.Tasks {
		g := group{t.Status, t.Hold}
		groups[g] = append(groups[g], t.ID)
	}
	return groups
}

// deadRetry is how long a retry is left alone that is not decided yet: whoever makes it may be at it.
const deadRetry = time.Minute

// sweepRetries ends retries that were left half-way: those that were decided are made, the others undone.
func (r *round) sweepRetries(ctx context.Context) error {
	docs, err := find[retryDoc](ctx, r.retries, d("n", 0), query{fields: d("retry", 1, "plan", 1, "at", 1, "fate", 1)})
	if err != nil {
		return err
	}
	for i := range docs {
		if id := docs[i].Plan; !id.IsZero() {
			p, err := findOne[planDoc](ctx, r.plans, d("_id", id), query{fields: d("retry", 1)})
			if err != nil {
				return err
			}
			if p == nil || p.Retry != docs[i].Retry {
				if r.at.Sub(docs[i].At) > lateAfter { // else it may be about to be noted
					_, err = r.remove(ctx, r.retries, d("retry", docs[i].Retry))
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
			if _, err := r.seal(ctx, &docs[i], false); err != nil && !errors.Is(err, plan.ErrConflict) {
				return err
			}
		}
		if err := r.goOn(ctx, docs[i].Retry); err != nil && !errors.Is(err, plan.ErrConflict) {
			return err
		}
	}
	return nil
}
