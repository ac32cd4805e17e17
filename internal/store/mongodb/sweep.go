package mongodb

import (
	"context"
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

// Sweep implements store.Node.
func (s *Store) Sweep(ctx context.Context, w protocol.Sweep) (did protocol.Swept, err error) {
	defer about(&err, "sweep of instance %s", w.Instance)
	r, _, err := s.begin(ctx, w.Instance, w.Budget, true, nil)
	if err != nil {
		return did, err
	}
	defer r.end()
	r.sweeping = true
	if did, err = engine.Sweep(ctx, r, &w); err != nil {
		return did, err
	}
	return did, r.wake(ctx)
}

// Audit implements engine.Sweeper. Resume audits, once it knows what work is under way.
func (r *round) Audit(context.Context) error { return nil }

// Resume implements engine.Sweeper.
func (r *round) Resume(ctx context.Context) error {
	g := r.Series(ctx)
	for _, step := range []func(context.Context) error{
		r.adoptEnded, r.adoptStopped, r.timeOut, r.sweepPlans, r.sweepRetries, r.sweepAdded, r.audit, r.tellStrangers, r.sweepMaking, r.clearClosed,
	} {
		g.Do(step)
	}
	return g.Err
}

// Unknown implements engine.Sweeper.
func (r *round) Unknown(ctx context.Context, holding []plan.TaskID) ([]*ending, error) {
	docs, err := wire.Find[taskDoc](ctx, r.tasks, claimsOf(&instanceDoc{ID: r.instance, Node: r.node}), wire.Query{Fields: claimFields})
	held := make(map[plan.TaskID]bool, len(holding))
	for _, id := range holding {
		held[id] = true
	}
	docs = slices.DeleteFunc(docs, func(t taskDoc) bool { return held[taskID(t.ID)] })
	if err == nil {
		err = r.whyMarked(ctx, maps.Values(byID(docs)))
	}
	return endingsOf(docs), err
}

// EndDelays implements engine.Instance. A turn looks only if a delay may be over.
func (r *round) EndDelays(ctx context.Context, most int) (more bool, err error) {
	if r.sweeping || r.mayBeDue() {
		r.waits, err = r.delays(ctx, most)
	}
	return r.mayBeDue(), err
}

// Pending implements engine.Sweeper.
func (r *round) Pending(context.Context) (left time.Duration, waits bool, err error) {
	return r.waits, r.waits > 0, nil
}

// timeOut closes plans whose time is over, and notes how long it is until that of the next one is.
func (r *round) timeOut(ctx context.Context) error {
	docs, err := wire.Find[planDoc](ctx, r.plans,
		d("deadline", d("$lte", r.at.Add(dueWithin)), "state", plan.PlanRunning, "closing", d("$in", bson.A{nil, plan.ClosedByFailure}), "ending", nil, "retry", nil), // as rules.TimesOut has it
		wire.Query{Fields: append(ones("deadline"), planFields...), Sort: d("deadline", 1), Hint: plansDeadline, Limit: addAtOnce})
	for i := range docs {
		left := docs[i].Deadline.Sub(r.at)
		if err != nil || left > 0 {
			if r.waits == 0 || left < r.waits {
				r.waits = left
			}
			break
		}
		err = engine.TimeOut(ctx, r, &docs[i])
	}
	return err
}

// sweepPlans goes on with plans that are between two states: closed ones, fresh ones, submissions that died. It asks for each kind by an index
// in which there is nearly never any, for plans that run may be thousands.
func (r *round) sweepPlans(ctx context.Context) error {
	g := r.Series(ctx)
	for _, kind := range []struct {
		job    string
		filter bson.D
		hint   string
	}{
		{workClose, d("closing", d("$exists", true), "state", d("$in", bson.A{plan.PlanSubmitting, plan.PlanRunning})), plansClosing},
		{workLook, d("fresh", true), plansFresh},
	} {
		docs := wire.FindIn[planDoc](g, r.plans, kind.filter, wire.Query{Fields: ones("_id"), Hint: kind.hint, Limit: addAtOnce})
		for i := range docs {
			if id := docs[i].ID; !id.IsZero() && !r.under[id] { // else it is another program's, or somebody is at it, or comes next
				g.Do(func(ctx context.Context) error { return r.job(ctx, kind.job, id) })
			}
		}
	}
	dead := wire.FindIn[planDoc](g, r.plans, d("state", plan.PlanSubmitting, "mtime", d("$lte", r.at.Add(-rules.AbandonAfter))),
		wire.Query{Fields: ones("mtime closing keep"), Hint: plansState, Limit: addAtOnce})
	for i := range dead {
		p := &dead[i]
		if p.ID.IsZero() || r.under[p.ID] || p.Closing != plan.Open {
			continue
		}
		g.UpdateOne(r.plans, d("_id", p.ID, "state", plan.PlanSubmitting, "mtime", p.Mtime),
			d("$set", append(d("state", plan.PlanAbandoned, "abandoned", true), r.until(p.Keep)...), "$currentDate", d("mtime", true, "ended", true)))
	}
	g.Do(r.clearAbandoned)
	return g.Err
}

// clearAbandoned deletes the tasks of submissions that died.
func (r *round) clearAbandoned(ctx context.Context) error {
	g := r.Series(ctx)
	docs := wire.FindIn[planDoc](g, r.plans, d("abandoned", true), wire.Query{Fields: ones("_id"), Hint: plansAbandoned, Limit: addAtOnce})
	for i := range docs {
		done := false
		g.Do(func(ctx context.Context) (err error) { done, err = r.DeleteTasks(ctx, &docs[i]); return err })
		if done {
			g.Do(func(ctx context.Context) error { return r.dropPack(ctx, docs[i].ID) })
			g.UpdateOne(r.plans, d("_id", docs[i].ID), d("$unset", ones("abandoned")))
		}
	}
	return g.Err
}

// sweepAdded goes on with late additions that died half-way.
func (r *round) sweepAdded(ctx context.Context) error {
	last := bson.NilObjectID
	for range 100 { // of those that there are nearly never
		t, err := wire.FindOne[taskDoc](ctx, r.tasks, d("adding", d("$gt", last)), wire.Query{
			Fields: ones("adding batch plan hold mtime"), Sort: d("adding", 1), Hint: indexAdding})
		if err != nil || t == nil {
			return err
		}
		if last = t.Adding; t.Adding == t.Plan || r.under[t.Adding] {
			continue // a plan that is not ready, or is fresh; or somebody is at it
		}
		if err := r.sweepBatch(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// sweepBatch goes on with the late addition that the task is of.
func (r *round) sweepBatch(ctx context.Context, t *taskDoc) error {
	if t.Hold != holdAdding {
		return r.job(ctx, workLook, t.Adding)
	}
	if t.Plan.IsZero() {
		return r.sweepShared(ctx, t)
	}
	p, err := wire.FindOne[planDoc](ctx, r.plans, d("_id", t.Plan), noFile)
	if err != nil {
		return err
	}
	if p != nil && slices.Contains(p.Adds, any(t.Adding)) {
		return r.admit(ctx, t.Adding)
	}
	if p != nil && !p.State.Ended() && p.Closing == plan.Open {
		state, _, err := r.judge(ctx, t)
		if err != nil || state == leadAdding {
			return err
		}
		if state == leadWhole {
			if taken, err := r.confirm(ctx, p.ID, idList{t.Adding}); err != nil {
				return err
			} else if taken {
				return r.admit(ctx, t.Adding)
			}
		}
	}
	if _, err := r.refresh(ctx, t.Plan); err != nil { // it may have ended but for them
		return err
	}
	if err := r.discard(ctx, t.Adding); err != nil {
		return err
	}
	return r.job(ctx, workLook, t.Plan)
}

// sweepShared goes on with the late addition, of tasks of no plan, that the task is of.
func (r *round) sweepShared(ctx context.Context, t *taskDoc) error {
	state, in, err := r.judge(ctx, t)
	if err != nil || state == leadAdding {
		return err
	}
	if state == leadWhole {
		own := byID(in)
		var needed idSet
		for i := range in {
			parents, err := r.parentIDs(ctx, &in[i])
			if err != nil {
				return err
			}
			needed.add(slices.DeleteFunc(slices.Clone(parents), func(id bson.ObjectID) bool { return own[id] != nil })...)
		}
		if kept, err := r.keepNeeded(ctx, needed.list); err != nil {
			return err
		} else if kept {
			return r.admit(ctx, t.Adding)
		}
	}
	return r.discard(ctx, t.Adding)
}

// judge says, of the late addition that the task is of, whether it is whole, dead, or may be under way, and returns its tasks. It is whole if
// all were inserted before their adder died, if that did; dead if they were not, for long. The adder finds what was decided.
func (r *round) judge(ctx context.Context, t *taskDoc) (state int, in []taskDoc, err error) {
	in, err = wire.Find[taskDoc](ctx, r.tasks, d("adding", t.Adding), wire.Query{Fields: ones("lead needs joins"), Hint: indexAdding})
	if err != nil {
		return 0, nil, err
	}
	late := r.at.Sub(t.Mtime) >= lateAfter
	k := slices.IndexFunc(in, func(t taskDoc) bool { return t.Lead > 0 })
	switch {
	case t.Batch == 1:
		return leadWhole, in, nil
	case k < 0 && late: // what is left of one that is dead
		return leadDead, in, nil
	case k >= 0 && in[k].Lead != leadAdding:
		return in[k].Lead, in, nil
	case k >= 0 && len(in) == t.Batch:
		state = leadWhole
	case k >= 0 && late:
		state = leadDead
	default:
		return leadAdding, in, nil
	}
	decided, err := r.UpdateOne(ctx, r.tasks, d("_id", in[k].ID, "adding", t.Adding, "lead", leadAdding), d("$set", d("lead", state)))
	if err != nil || !decided {
		return leadAdding, in, err // somebody else has just done so
	}
	return state, in, nil
}

// discard deletes the tasks of a late addition that nobody took.
func (r *round) discard(ctx context.Context, batch bson.ObjectID) error {
	for r.budget > 0 {
		n, err := r.dropBatch(ctx, batch, r.budget)
		if err != nil || n == 0 {
			return err
		}
		r.budget -= n
	}
	return nil
}

// sweepMaking goes on with foreach tasks whose items are not all made and queued, if nobody is at it.
func (r *round) sweepMaking(ctx context.Context) error {
	g := r.Series(ctx)
	docs := wire.FindIn[taskDoc](g, r.tasks, d("making", true), wire.Query{Fields: ones("status hold"), Hint: indexMaking, Limit: addAtOnce})
	for i := range docs {
		if !r.under[docs[i].ID] && docs[i].Hold == holdItems {
			g.Do(func(ctx context.Context) error { return r.job(ctx, workItems, docs[i].ID) })
		}
	}
	return g.Err
}
