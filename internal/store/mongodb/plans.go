package mongodb

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A breakage is a failure of a task in a plan.
type breakage struct {
	plan   bson.ObjectID
	reason plan.Reason
}

// stopPlans closes those of the plans, in which something failed, that such a failure stops.
func (r *round) stopPlans(ctx context.Context, broken ...breakage) error {
	err := r.loadPlans(ctx, idsFrom(broken, func(b breakage) bson.ObjectID { return b.plan }))
	for _, b := range broken {
		if p := r.known[b.plan]; p != nil && err == nil {
			err = engine.TaskEnded(ctx, r, p, rules.OutcomeFailed, b.reason)
		}
	}
	return err
}

// PlanView implements engine.Closer.
func (r *round) PlanView(p *planDoc) engine.PlanView {
	return engine.PlanView{State: p.State, Closing: p.Closing, OnFailure: p.OnFailure, Retrying: !p.Retry.IsZero(), Finally: p.Finally, Ending: p.Ending}
}

// ClosePlan implements engine.Closer.
func (r *round) ClosePlan(ctx context.Context, p *planDoc, closing plan.Closing) (closed bool, err error) {
	closed, err = r.UpdateOne(ctx, r.plans, d("_id", p.ID, "state", p.State, "closing", wire.OrNone(p.Closing), "ending", wire.OrNone(p.Ending)),
		d("$set", d("closing", closing), "$currentDate", d("mtime", true)))
	if p.Closing = closing; err != nil || !closed {
		return false, err
	}
	return true, r.job(ctx, workClose, p.ID)
}

// clearClosed sees to claimed tasks that came back to plans that were closed meanwhile.
func (r *round) clearClosed(ctx context.Context) error {
	ids := slices.Collect(maps.Keys(r.returned))
	clear(r.returned)
	err := r.readPlans(ctx, ids)
	for _, id := range ids {
		if p := r.known[id]; p != nil && p.Closing != plan.Open && err == nil {
			err = r.job(ctx, workClose, id)
		}
	}
	return err
}

// clear ends what a closed plan does not start, and reports whether nothing of that is left.
func (r *round) clear(ctx context.Context, id bson.ObjectID) (done bool, err error) {
	if err := r.readPlans(ctx, []bson.ObjectID{id}); err != nil {
		return false, err
	}
	if p := r.known[id]; p != nil {
		return engine.Clear(ctx, r, p)
	}
	return true, nil
}

// inPhase matches the tasks of a plan without tasks of finally that it holds. A write by this filter may
// come when others have released these: it leaves them alone then, too.
func (p *planDoc) inPhase() bson.D {
	if p.holds() {
		return d("plan", p.ID, "finally", nil)
	}
	return d("plan", p.ID)
}

// holds reports whether a plan holds tasks of finally.
func (p *planDoc) holds() bool {
	v := (*round)(nil).PlanView(p)
	return v.Holds()
}

// MarkActive implements engine.Clearer.
func (r *round) MarkActive(ctx context.Context, p *planDoc) error {
	n, err := r.UpdateMany(ctx, r.tasks, onlyActive(p.inPhase(), "cancel", nil), marks())
	r.budget -= n
	return err
}

// EndWaiting implements engine.Clearer. A foreach task whose items are made ends with these.
func (r *round) EndWaiting(ctx context.Context, p *planDoc, step func(ran bool) rules.Step) (done bool, err error) {
	id := p.ID
	r.touched[id] = true
	delete(r.busy, id)
	notItems := bson.A{d("hold", d("$ne", holdItems)), d("expanded", nil)}
	g := r.Series(ctx)
	for _, waiting := range []bson.D{onlyQueued(p.inPhase()), onlyHeld(p.inPhase(), "$or", notItems)} {
		for r.budget > 0 {
			docs := wire.FindIn[taskDoc](g, r.tasks, waiting, wire.Query{Fields: ones("ran"), Hint: indexPlan, Limit: r.budget})
			if len(docs) == 0 {
				break
			}
			byRan := map[bool]idList{}
			for i := range docs {
				byRan[docs[i].Ran] = append(byRan[docs[i].Ran], docs[i].ID)
				r.queue = append(r.queue, parent{id: docs[i].ID, outside: true})
			}
			for ran, ids := range byRan {
				g.UpdateMany(r.tasks, onlyWaiting(d("_id", d("$in", ids), "ran", wire.OrNone(ran))), unstarted(step(ran), stillOpen).bson())
			}
			r.budget -= len(docs)
		}
	}
	if r.budget <= 0 {
		return false, g.Err
	}
	// For the others, all items may have finished before, or the count of items may be damaged.
	expanded := wire.FindIn[taskDoc](g, r.tasks, gathering(d("plan", id)), wire.Query{Fields: childFields, Hint: indexPlan})
	g.Do(func(ctx context.Context) error {
		_, err := r.settle(ctx, expanded)
		return err
	})
	return g.Err == nil, g.Err
}

const (
	plansAtOnce = 16 // are asked in one command whether they have ended,
	endsAtOnce  = 4  // and so many of them end at the same time
)

// endPlans ends those of the plans in which something finished that have nothing unfinished any more.
func (r *round) endPlans(ctx context.Context) error {
	var ids idList
	for id := range r.touched {
		if !r.busy[id] && !r.stayed[id] {
			ids = append(ids, id)
		}
	}
	return r.endOver(ctx, ids)
}

// endOver ends those of these plans that have nothing unfinished any more. It writes only if no task was added and no retry began since it
// read the plan.
func (r *round) endOver(ctx context.Context, ids idList) error {
	for some := range slices.Chunk(ids, plansAtOnce) {
		for _, id := range some {
			delete(r.known, id)
		}
		err := r.readPlans(ctx, some)
		if err == nil {
			r.seen, err = r.seePlans(ctx, some)
		}
		var g errgroup.Group
		g.SetLimit(endsAtOnce)
		for _, id := range some {
			switch p := r.known[id]; {
			case p == nil || err != nil:
			case r.seen[id].clean && !p.holds(): // it is one write
				g.Go(func() error { return engine.EndPlan(ctx, r, p) })
			default:
				err = engine.EndPlan(ctx, r, p)
			}
		}
		err = cmp.Or(err, g.Wait())
		if r.seen = nil; err != nil {
			return err
		}
	}
	return nil
}

// inPhase is that of a plan that the round has read.
func (r *round) inPhase(id bson.ObjectID) bson.D {
	if p := r.known[id]; p != nil {
		return p.inPhase()
	}
	return d("plan", id)
}

// seePlans asks of several plans at once what Finished asks of one. Nearly always no task is broken or cancelled.
func (r *round) seePlans(ctx context.Context, ids idList) (seen map[bson.ObjectID]seenPlan, err error) {
	if len(ids) < 2 {
		return nil, nil
	}
	if seen, err = r.seeOpen(ctx, ids); err != nil {
		return seen, err
	}
	over := slices.DeleteFunc(slices.Clone(ids), func(id bson.ObjectID) bool { return seen[id].open })
	if len(over) == 0 {
		return seen, nil
	}
	unclean := []bson.D{onlyUnfinished(nil), isBroken, isCutOff, isCancelled} // a plan that holds tasks of finally asks again
	found, err := wire.OneOfEach[taskDoc](ctx, r.tasks, len(unclean), ones("plan"), func(i int) bson.D { return append(d("plan", d("$in", over)), unclean[i]...) })
	if len(found) == 0 {
		for _, id := range over {
			seen[id] = seenPlan{clean: true}
		}
	}
	return seen, err
}

// fewOpen is how many unfinished tasks of each plan one query reads at most.
const fewOpen = 4

// seeOpen sees which plans have an unfinished task. Plans that are about to end have few of these, so one query reads them all. Plans of which
// it did not read any for others with many, and plans that hold tasks of finally, are each asked for one.
func (r *round) seeOpen(ctx context.Context, ids idList) (seen map[bson.ObjectID]seenPlan, err error) {
	seen = make(map[bson.ObjectID]seenPlan, len(ids))
	open := func(tasks []taskDoc) {
		for i := range tasks {
			seen[tasks[i].Plan] = seenPlan{open: true}
		}
	}
	var plain, rest idList
	for _, id := range ids {
		if p := r.known[id]; p != nil && p.holds() {
			rest = append(rest, id)
		} else {
			plain = append(plain, id)
		}
	}
	if len(plain) > 0 {
		q := wire.Query{Fields: ones("plan"), Hint: indexOpen, Limit: fewOpen * len(plain)}
		some, err := wire.Find[taskDoc](ctx, r.tasks, append(d("plan", d("$in", plain)), hasOpen...), q)
		if err != nil {
			return nil, err
		}
		if open(some); len(some) == q.Limit {
			rest = append(rest, slices.DeleteFunc(plain, func(id bson.ObjectID) bool { return seen[id].open })...)
		}
	}
	if len(rest) > 0 {
		left, err := wire.OneOfEach[taskDoc](ctx, r.tasks, len(rest), ones("plan"), func(i int) bson.D { return append(r.inPhase(rest[i]), hasOpen...) })
		if err != nil {
			return nil, err
		}
		open(left)
	}
	return seen, nil
}

// The filters of Finished, for tasks of a plan.
var (
	// hasOpen is one query, of an index in which a task keeps its place from its insertion until its
	// end. With one query for each status, a task that goes back for another attempt could move
	// from a status that is still to be asked for to one that was asked for. The query also finds
	// tasks that another program ended, and whose output may still come or is not adopted.
	hasOpen  = d("open", true, "$or", bson.A{onlyUnfinished(nil), d("ended", nil)})
	isBroken = onlyFailed("coe", nil)
	// A foreach task that has items was perhaps stopped though none of them was: they decide.
	isCutOff    = onlyCutOff(nil, "coe", nil, "$or", bson.A{d("expanded", nil), d("items", d("$in", bson.A{nil, 0})), d("budget", true)})
	isCancelled = onlyCancelled(nil, "reason", d("$nin", bson.A{plan.ReasonSkipped, plan.ReasonGone}))
)

// Finished implements engine.Closer.
func (r *round) Finished(ctx context.Context, p *planDoc) (all, broken, cancelled bool, err error) {
	id := p.ID
	switch seen := r.seen[id]; {
	case seen.open:
		return false, false, false, nil
	case seen.clean:
		return true, false, false, nil
	}
	g := r.Series(ctx)
	some := func(filter bson.D, hint string) bool {
		return len(wire.FindIn[taskDoc](g, r.tasks, append(p.inPhase(), filter...), wire.Query{Fields: ones("_id"), Hint: hint, Limit: 1})) > 0
	}
	if some(hasOpen, indexOpen) {
		return false, false, false, nil
	}
	// A mark that was lost is not to end the plan: once for a plan that seems to have ended, its tasks are asked without it.
	if some(onlyUnfinished(nil), indexPlan) {
		g.UpdateMany(r.tasks, onlyUnfinished(p.inPhase(), "open", nil), d("$set", d("open", true)))
		return false, false, false, g.Err
	}
	broken = some(isBroken, indexPlan) || some(isCutOff, indexPlan)
	cancelled = some(isCancelled, indexPlan)
	return g.Err == nil, broken, cancelled, g.Err
}

// asRead matches a plan as it was read, if no retry of it has begun.
func (p *planDoc) asRead() bson.D {
	return d("_id", p.ID, "state", p.State, "edits", p.Edits, "closing", wire.OrNone(p.Closing), "ending", wire.OrNone(p.Ending), "retry", nil)
}

// BeginFinally implements engine.Closer. If the process dies after the write, a sweep finds the plan as one
// that became ready, and looks at its tasks of finally.
func (r *round) BeginFinally(ctx context.Context, p *planDoc, ending plan.Lifecycle) error {
	set := d("ending", ending, "fresh", true)
	set = addIf(set, p.Closing != plan.Open, "stopped", p.Closing)
	begun, err := r.UpdateOne(ctx, r.plans, p.asRead(), d("$set", set, "$unset", ones("closing"), "$currentDate", d("mtime", true)))
	if err != nil || !begun {
		return err
	}
	p.Ending, p.Stopped, p.Closing = ending, p.Closing, plan.Open
	r.begun++
	return r.job(ctx, workLook, p.ID)
}

// letFinally has the tasks of finally of a plan that holds them no more looked at.
func (r *round) letFinally(ctx context.Context, id bson.ObjectID) error {
	n, err := r.UpdateMany(ctx, r.tasks, onlyHeld(d("plan", id), "hold", holdEnd), d("$set", d("hold", holdNeeds, "adding", id)))
	r.budget -= n
	return err
}

// EndPlan implements engine.Closer.
func (r *round) EndPlan(ctx context.Context, p *planDoc, state plan.Lifecycle) error {
	ended, err := r.UpdateOne(ctx, r.plans, p.asRead(),
		d("$set", append(d("state", state), r.until(p.Keep)...), "$unset", ones("fresh"), "$currentDate", d("mtime", true, "ended", true)))
	if err == nil && ended {
		r.locked(func() { r.over = append(r.over, protocol.EndedPlan{ID: planID(p.ID), State: state}) })
	}
	return err
}

// until is the field for when a plan that ends now is to be deleted. A retry leaves it as it is: the
// plan ends again.
func (r *round) until(keep time.Duration) bson.D {
	if until := rules.KeptUntil(r.at, keep, 0); !until.IsZero() {
		return d("until", until)
	}
	return nil
}
