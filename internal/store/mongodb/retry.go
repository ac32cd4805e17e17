package mongodb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A retry takes many tasks back at once, and nothing may run between the first and the last. So each is first held by a gate, which
// changes nothing else and can be undone; when all are, the retry is decided, their last attempts are forgotten and the gates come off.
// The retry's documents say what was chosen, so that a sweep ends what a crash left half-way: before that point by undoing it. As long as
// the plan notes the retry it does not end, and what is released in it finds gates; so both is made up for when the retry is over.

// Retry implements store.Admin.
func (s *Store) Retry(ctx context.Context, id plan.PlanID, ask rules.Ask) ([]rules.Retried, error) {
	return engine.Retry(ctx, id, &ask, func(do func(engine.Retrier) error) error {
		return do(&retrier{Store: s, id: id, params: ask.Params, docs: map[plan.TaskID]*taskDoc{}})
	})
}

// retrier makes a retry, as package engine says. Nothing is noted before Take.
type retrier struct {
	*Store
	id     plan.PlanID
	plan   *planDoc // nil: of tasks of no plan
	params json.RawMessage
	docs   map[plan.TaskID]*taskDoc // those of the skeleton
	takes  []retriedDoc             // the selection, and the finished items that it deletes
}

func (r *retrier) Begin(ctx context.Context, check engine.RetryCheck) (err error) {
	if r.id.IsZero() {
		return nil
	}
	r.plan, err = r.Store.plan(ctx, r.id)
	if err == nil && r.plan.Deleting {
		err = fmt.Errorf("plan %s is being deleted: %w", r.plan.title(), plan.ErrNotFound)
	}
	if err != nil {
		return err
	}
	if !r.plan.Retry.IsZero() {
		return &engine.Halfway{Finish: func(ctx context.Context) error { return r.goOn(ctx, r.plan.Retry) }}
	}
	n, err := r.in(ctx, r.plan)
	if err != nil {
		return err
	}
	known := r.plan.domain()
	other, err := r.otherRun(ctx, &known)
	if err != nil {
		return err
	}
	return check(&known, n, other)
}

func (r *retrier) Skeleton(ctx context.Context, named []plan.TaskID) (tasks []plan.Task, busy map[plan.TaskID]rules.Busy, err error) {
	filter := d("plan", oid(r.id.ID))
	q := wire.Query{
		Fields: ones("plan of index gen name status reason detail queue def coe needs joins ran hold gate items inserted expanded empty making rolling attempt rescues started ended noticed"), Sort: d("_id", 1), Hint: indexList,
	}
	if r.plan == nil {
		filter, _ = taskFilter(&store.TaskQuery{NoPlan: true, IDs: named})
		q.Hint = ""
	}
	found, err := wire.Find[taskDoc](ctx, r.tasks, filter, q)
	tasks, busy = make([]plan.Task, len(found)), map[plan.TaskID]rules.Busy{}
	for i := range found {
		t := &found[i]
		parents, err := r.parentIDs(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		tasks[i] = t.domain()
		tasks[i].Needs = needs(parents)
		switch {
		case t.Rolling:
			busy[tasks[i].ID] = rules.BusyRoll
		case t.Hold == holdAdding || !t.Gate.IsZero():
			busy[tasks[i].ID] = rules.BusyCall
		}
		r.docs[tasks[i].ID] = t
	}
	return tasks, busy, err
}

func (r *retrier) Queues(ctx context.Context) (map[plan.QueueID]bool, error) {
	docs, err := wire.Find[queueDoc](ctx, r.queues, d(), wire.Query{Fields: d("_id", 1)})
	there := make(map[plan.QueueID]bool, len(docs))
	for i := range docs {
		there[plan.QueueID{ID: plan.ID(docs[i].ID)}] = true
	}
	return there, err
}

// Below leaves held tasks to the gate. The items that go and have finished are taken too: a gate
// keeps tasks that need them from being queued until the retry is over.
func (r *retrier) Below(ctx context.Context, s *engine.Selection, check engine.BelowCheck) error {
	r.takes = nil
	above, remade := make(map[bson.ObjectID]bool, len(s.Tasks)), map[bson.ObjectID]bool{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		doc := retriedDoc{ID: oid(t.ID.ID), Status: t.Status, Hold: r.docs[t.ID].Hold, Ran: t.KeepsRan, Anew: t.Remakes, Leaves: t.Leaves}
		if t.With != nil {
			raw, err := json.Marshal(t.With)
			if err != nil {
				return fmt.Errorf("task %q: %w", t.With.Key(), err)
			}
			doc.Replace = raw
		}
		r.takes = append(r.takes, doc)
		above[doc.ID], remade[doc.ID] = true, doc.Anew
	}
	for _, t := range r.docs {
		if remade[t.Of] && t.Status.Finished() && !above[t.ID] {
			above[t.ID] = true
			r.takes = append(r.takes, retriedDoc{ID: t.ID, Status: t.Status})
		}
	}
	return r.checkBelow(ctx, oid(r.id.ID), above, check)
}

// Take notes the retry in its plan, and makes it.
func (r *retrier) Take(ctx context.Context, s *engine.Selection, reopen func(*plan.Plan, json.RawMessage, time.Time)) error {
	if err := r.fitJoins(ctx, s); err != nil {
		return err
	}
	now, err := r.Now(ctx)
	if err != nil {
		return err
	}
	p := r.plan
	var open plan.Plan
	if p != nil {
		open = p.domain()
		reopen(&open, nil, now)
	}
	retry := bson.NewObjectID()
	// The first document comes last: a retry without it was never begun.
	for n, part := range slices.Backward(retryParts(r.takes)) {
		doc := retryDoc{ID: retry, Retry: retry, Plan: oid(r.id.ID), N: n, At: now, Tasks: part}
		if n > 0 {
			doc.ID = itemID(retry, n)
		} else if p != nil {
			doc.State, doc.Closing, doc.Ending, doc.Ended, doc.Edits, doc.Params, doc.Retried, doc.Deadline = p.State, p.Closing, p.Ending, p.Ended, open.Edits, text(r.params), open.Retried, open.Deadline
			if open.Timeout != p.Timeout {
				doc.Timeout = &open.Timeout
			}
		}
		if _, err := r.Insert(ctx, r.retries, doc); err != nil {
			return err
		}
	}
	if p != nil {
		noted, err := r.UpdateOne(ctx, r.plans, d("_id", p.ID, "edits", p.Edits, "state", p.State, "ending", wire.OrNone(p.Ending), "retry", nil, "deleting", nil), d(
			"$set", d("retry", retry, "state", open.State, "edits", open.Edits), "$unset", d("closing", 1, "ending", 1, "ended", 1),
			"$currentDate", d("mtime", true)))
		if mongo.IsDuplicateKeyError(err) { // another run started since Begin asked
			other, unread := r.otherRun(ctx, &open)
			if err = cmp.Or(unread, rules.CheckOverlap(&open, other)); err == nil {
				err = plan.ErrConflict // it has ended
			}
		}
		if err == nil && !noted {
			err = fmt.Errorf("plan %s: %w", p.title(), plan.ErrConflict)
		}
		if err != nil {
			return err // a sweep deletes the documents of a retry that no plan notes
		}
	}
	return r.goOn(ctx, retry)
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
	g := s.Series(ctx)
	g.Do(func(ctx context.Context) error { return s.dropItems(ctx, docs) })
	for i := range docs {
		g.Do(func(ctx context.Context) error { return s.forget(ctx, retry, first.target(), &docs[i]) })
	}
	if !mine { // what this process gated after another one had forgotten it
		g.Do(func(ctx context.Context) error { return s.ungate(ctx, docs) })
	}
	set := d("fresh", true)
	set = addIf(set, len(first.Params) > 0, "params", first.Params)
	set = addIf(set, !first.Retried.IsZero(), "retried", first.Retried)
	set = addIf(set, !first.Deadline.IsZero(), "deadline", first.Deadline)
	unset := ones("stopped")
	switch {
	case first.Timeout == nil:
	case *first.Timeout == 0:
		unset = ones("stopped timeout deadline")
	default:
		set = append(set, bson.E{Key: "timeout", Value: *first.Timeout})
	}
	g.Do(func(ctx context.Context) error {
		return s.endRetry(ctx, first, wire.Change{Update: d("$set", set, "$unset", unset)})
	})
	g.Do(func(ctx context.Context) error { return s.start(ctx, first.target()) })
	return g.Err
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
	return s.inRound(ctx, 0, func(r *round) error {
		g := s.Series(ctx)
		for i := range docs {
			var finished []bson.ObjectID
			for _, t := range docs[i].Tasks {
				if t.Status.Finished() {
					finished = append(finished, t.ID)
					r.queue = append(r.queue, parent{id: t.ID})
				}
			}
			g.Do(func(ctx context.Context) error { return r.note(ctx, finished) })
		}
		first := &docs[0]
		g.Do(func(ctx context.Context) error { return s.endRetry(ctx, first, first.reversals()...) })
		g.Do(func(ctx context.Context) error { return r.job(ctx, workLook, first.target()) })
		return g.Err
	})
}

// reversals are the changes that take back what a retry did to its plan; the first that applies is made. A plan that had ended has ended
// as it had, unless a task was added since; one that was closed is closed, unless somebody closed it meanwhile.
func (r *retryDoc) reversals() []wire.Change {
	look := wire.Change{Update: d("$set", d("fresh", true))}
	switch {
	case r.State.Ended():
		was := d("state", r.State, "ended", r.Ended)
		was = addIf(was, r.Closing != plan.Open, "closing", r.Closing)
		was = addIf(was, r.Ending != plan.PlanRunning, "ending", r.Ending)
		return []wire.Change{{Where: d("edits", r.Edits, "closing", nil, "ending", nil), Update: d("$set", was)}, look}
	case r.Closing != plan.Open:
		return []wire.Change{{Where: d("closing", nil), Update: d("$set", d("fresh", true, "closing", r.Closing))}, look}
	}
	return []wire.Change{look}
}

// endRetry deletes what is noted of a retry, and makes the first of the changes to its plan that applies.
func (s *Store) endRetry(ctx context.Context, first *retryDoc, changes ...wire.Change) error {
	g := s.Series(ctx)
	for _, c := range changes {
		if first.Plan.IsZero() || g.UpdateOne(s.plans, append(d("_id", first.Plan, "retry", first.Retry), c.Where...),
			append(c.Update, d("$unset", d("retry", 1), "$currentDate", d("mtime", true))...)) {
			break
		}
	}
	g.Remove(s.retries, d("retry", first.Retry))
	return g.Err
}

// sweepRetries ends retries that were left half-way: those that were decided are made, the others undone.
func (r *round) sweepRetries(ctx context.Context) error {
	g := r.Series(ctx)
	for _, one := range wire.FindIn[retryDoc](g, r.retries, d("n", 0), wire.Query{Fields: ones("retry plan at fate")}) {
		noted := d("_id", one.Plan, "retry", one.Retry)
		if !one.Plan.IsZero() && len(wire.FindIn[planDoc](g, r.plans, noted, wire.Query{Fields: ones("_id")})) == 0 {
			if r.at.Sub(one.At) > lateAfter { // else it may be about to be noted
				g.Remove(r.retries, d("retry", one.Retry))
			}
			continue
		}
		if one.Fate == "" {
			if r.at.Sub(one.At) < deadRetry {
				continue
			}
			g.Do(func(ctx context.Context) error {
				_, _, err := r.seal(ctx, &one, undone)
				return err
			})
		}
		g.Do(func(ctx context.Context) error {
			if err := r.goOn(ctx, one.Retry); !errors.Is(err, plan.ErrConflict) {
				return err
			}
			return nil
		})
	}
	return g.Err
}
