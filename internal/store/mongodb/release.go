package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// releaseAtOnce is of how many finished tasks the children are looked at together.
const releaseAtOnce = 256

// endedFields are what release has to know of a finished task.
var endedFields = ones("status plan of reason coe budget open complete gate mtime ended noticed items instance")

// release looks at the children of the tasks at the front of the queue, of as many as the budget allows.
func (r *round) release(ctx context.Context) error {
	chunk := r.queue[:min(len(r.queue), releaseAtOnce)]
	for i, e := range chunk {
		if e.many || e.outside != chunk[0].outside {
			chunk = chunk[:max(i, 1)]
			break
		}
	}
	if err := r.learn(ctx, chunk); err != nil {
		return err
	}
	children, joins, full, err := r.below(ctx, chunk)
	for err == nil && full && len(chunk) > 1 {
		chunk = fewer(chunk, children)
		children, joins, full, err = r.below(ctx, chunk)
	}
	if err != nil {
		return err
	}
	children = children[:min(len(children), r.budget)]
	waiting, err := r.settle(ctx, children)
	if err != nil {
		return err
	}
	if full {
		// Children that changed are not found again. If all did, the rest is found by the same
		// query; else in the order of their ids.
		e := &r.queue[0]
		if e.many = true; e.paged {
			e.after = children[len(children)-1].ID
		} else if waiting > 0 {
			e.paged = true
		}
		r.budget = 0 // a round that found more than it may change has done its part
		return nil
	}
	if err := r.releaseJoins(ctx, joins); err != nil {
		return err
	}
	done := r.queue[:len(chunk)]
	r.queue = r.queue[len(chunk):]
	return r.released(ctx, done)
}

// fewer returns the front of finished tasks that have too many children together: what comes before one that has most of those that were
// read, that one alone if nothing does, or a half.
func fewer(chunk []parent, children []taskDoc) []parent {
	of := map[bson.ObjectID]int{}
	for i := range children {
		for _, id := range children[i].Needs {
			of[id]++
		}
	}
	for i, e := range chunk {
		if of[e.id] > len(children)/2 {
			return chunk[:max(i, 1)]
		}
	}
	return chunk[:len(chunk)/2]
}

// below returns tasks that are held for one of the finished tasks, and the joins that those are in. full is true if there are more of the
// tasks than a round changes, or has in memory.
func (r *round) below(ctx context.Context, chunk []parent) (children []taskDoc, joins []joinDoc, full bool, err error) {
	r.turn.hint = false
	if children, joins, is := r.preview.belowEnded(chunk); is {
		r.turn.hint = r.preview.early
		return children, joins, len(children) > r.budget, nil
	}
	var g errgroup.Group
	g.Go(func() (err error) { children, full, err = r.children(ctx, chunk); return err })
	g.Go(func() (err error) { joins, err = r.joinsAbout(ctx, chunk); return err })
	err = g.Wait()
	return children, joins, full || len(children) > r.budget, err
}

// learn reads what is not known of finished tasks, and closes plans that a failure stops. A task that has not finished is left out of
// what follows: its end was only about to be written. It stays noted as long as that may be.
func (r *round) learn(ctx context.Context, chunk []parent) error {
	var unknown idList
	for _, e := range chunk {
		if !e.known {
			unknown = append(unknown, e.id)
		}
	}
	if len(unknown) > 0 {
		docs, err := wire.Find[taskDoc](ctx, r.tasks, d("_id", d("$in", unknown)), wire.Query{Fields: endedFields})
		if err != nil {
			return err
		}
		byID := byID(docs)
		for i := range chunk {
			e := &chunk[i]
			switch t := byID[e.id]; {
			case e.known || t == nil:
			case r.finished(t):
				e.fill(t)
			case e.own && t.Status.Active() && t.Instance == r.instance:
				r.unsure = append(r.unsure, e.id)
			}
		}
	}
	var broken []breakage
	for _, e := range chunk {
		if e.plan.IsZero() {
			continue
		}
		r.touched[e.plan] = true
		delete(r.stayed, e.plan) // what waited may be the task that has ended
		if e.outcome == rules.OutcomeFailed {
			broken = append(broken, breakage{e.plan, e.reason})
		}
	}
	over := map[bson.ObjectID]bool{}
	g := r.Series(ctx)
	for i := range chunk {
		if e := &chunk[i]; e.failed && !over[e.of] {
			over[e.of] = true
			g.Do(func(ctx context.Context) error { return r.checkBudget(ctx, e.of) })
		}
	}
	for i := range chunk {
		if e := &chunk[i]; e.items {
			e.items = false
			g.Do(func(ctx context.Context) error { return r.job(ctx, workCancel, e.id) })
		}
	}
	g.Do(func(ctx context.Context) error { return r.stopPlans(ctx, broken...) })
	return g.Err
}

// children returns tasks that are held for one of the finished tasks: one more than the budget, if there are more, and as many as FindSome
// reads.
func (r *round) children(ctx context.Context, chunk []parent) (children []taskDoc, more bool, err error) {
	q := wire.Query{Fields: childFields, Limit: r.budget + 1, Hint: indexNeeds}
	filter := onlyHeld(d("needs", d("$in", keys(chunk))))
	if e := chunk[0]; e.paged {
		q.Sort = ones("_id")
		filter = onlyHeld(d("needs", e.id, "_id", d("$gt", e.after)))
	}
	filter = addIf(filter, chunk[0].outside, "plan", nil)
	return wire.FindSome[taskDoc](ctx, r.tasks, filter, q)
}

// released takes the mark off tasks that were finished but open: nobody has to look for them any more.
func (r *round) released(ctx context.Context, done []parent) error {
	var open, ended idList
	for _, e := range done {
		switch {
		case !e.known || !e.open:
		case e.here:
			ended = append(ended, e.id)
		default:
			open = append(open, e.id)
		}
	}
	if r.turn.hint {
		r.turn.unsure = append(r.turn.unsure, r.unmark(ended)...)
	} else {
		r.unmarked = append(r.unmarked, r.unmark(ended)...)
	}
	if len(open) == 0 {
		return nil
	}
	_, err := r.UpdateMany(ctx, r.tasks, d("_id", d("$in", open), "open", true, "status", finished), d("$unset", ones("open")))
	return err
}

// unmark is the change that takes the mark off tasks that this round ended. A retry may have taken one of them back, and another round may
// have ended it again, before a late write of this change arrives: it names the round.
func (r *round) unmark(ids idList) []wire.Change {
	where, update := d("last", r.id, "open", true, "status", finished), d("$unset", ones("open"))
	changes := make([]wire.Change, len(ids))
	for i, id := range ids {
		changes[i] = wire.Change{ID: id, Where: where, Update: update}
	}
	return changes
}

// unmarkAll takes the marks off that are still to be taken off.
func (r *round) unmarkAll(ctx context.Context) error {
	changes := r.unmarked
	r.unmarked = nil
	_, _, err := r.BulkEach(ctx, r.tasks, changes)
	return err
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
	if p != nil && p.inFinally() {
		if err := r.letFinally(ctx, target); err != nil {
			return false, err
		}
	}
	for r.budget > 0 {
		held, _, err := wire.FindSome[taskDoc](ctx, r.tasks, onlyHeld(d("adding", target), "hold", d("$ne", holdAdding)),
			wire.Query{Fields: childFields, Limit: min(r.budget, addAtOnce), Hint: indexAdding})
		if err == nil && len(held) == 0 {
			break
		}
		if err == nil {
			err = r.lookAt(ctx, target, held)
		}
		if err != nil {
			return false, err
		}
	}
	if r.budget <= 0 || p == nil {
		return r.budget > 0, nil
	}
	g := r.Series(ctx)
	if !r.busy[target] && !r.stayed[target] {
		g.Do(func(ctx context.Context) error { return r.endOver(ctx, idList{target}) })
	}
	g.UpdateOne(r.plans, d("_id", target, "fresh", true, "ending", wire.OrNone(p.Ending)), d("$unset", ones("fresh")))
	return g.Err == nil, g.Err
}

// lookAt settles tasks that were added, and takes the mark off those that wait.
func (r *round) lookAt(ctx context.Context, target bson.ObjectID, held []taskDoc) error {
	ids := idsOfTasks(held)
	waiting, err := r.settleJoined(ctx, held)
	if err != nil || waiting == 0 {
		return err
	}
	n, err := r.UpdateMany(ctx, r.tasks, onlyHeld(d("_id", d("$in", ids), "adding", target)), d("$unset", ones("adding")))
	r.budget -= n
	return err
}

// settleJoined is settle of tasks whose joins are to be looked at first.
func (r *round) settleJoined(ctx context.Context, held []taskDoc) (waiting int, err error) {
	var joined idList
	for i := range held {
		if held[i].Joins > 0 || held[i].Hold == holdItems {
			joined = append(joined, held[i].ID)
		}
	}
	if len(joined) > 0 {
		joins, err := wire.Find[joinDoc](ctx, r.joins, d("child", d("$in", joined)), wire.Query{})
		if err == nil {
			_, err = r.finishJoins(ctx, joins)
		}
		if err != nil {
			return 0, err
		}
	}
	return r.settle(ctx, held)
}
