package mongodb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// parentFields are what a held task has to know of its parents: small outputs come along, so that most tasks need no second read.
var parentFields = ones("name of status reason coe budget open complete gate mtime ended noticed output bytes gathered expanded items")

// settle settles held tasks, and returns how many stay as they are. It leaves out tasks that
// something else brings on: the job that closes their plan, Ready, their delay, or their items.
func (r *round) settle(ctx context.Context, held []taskDoc) (waiting int, err error) {
	if len(held) == 0 {
		return 0, nil
	}
	plans := idsFrom(held, func(t taskDoc) bson.ObjectID { return t.Plan })
	var waiters []waiter
	var parents map[bson.ObjectID]*taskDoc
	var g errgroup.Group
	g.Go(func() error { return r.loadPlans(ctx, plans) })
	g.Go(func() (err error) { waiters, parents, err = r.waiters(ctx, held); return err })
	if err := g.Wait(); err != nil {
		return 0, err
	}
	r.settling = settling{parents: parents, early: map[bson.ObjectID]idList{}}
	due := make([]*waiter, 0, len(waiters))
	for i := range waiters {
		w := &waiters[i]
		w.plan = r.known[w.Plan]
		closed := w.plan != nil && (w.plan.Closing != plan.Open || w.plan.State == plan.PlanSubmitting && w.damage != nil)
		if (closed || w.Hold != holdNeeds && w.damage == nil) && !w.endsWithItems() {
			r.settling.waiting++
		} else {
			due = append(due, w)
		}
	}
	slices.SortFunc(due, func(a, b *waiter) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	left, err := engine.Settle(ctx, r, due)
	return left + r.settling.waiting, err
}

// Waiter implements engine.Settler.
func (r *round) Waiter(w *waiter) *rules.Waiter {
	v := &rules.Waiter{
		Status: w.Status, When: w.def.When, Seen: w.seen, All: w.all, Early: w.NotBefore.After(r.at), Damage: w.damage,
		List: w.def.Foreach != nil && !w.def.Foreach.OnNode(), Made: w.endsWithItems(), Cancel: w.Cancel, Ran: w.Ran, Allow: w.Lenient && !w.Budget, Leaves: w.Leaves, Finally: w.Finally,
		Items: rules.Items{Count: w.Items, Failed: w.failed, Seen: w.seen, Allowed: plan.AllowedFailures(w.def.MaxFailures, w.Items)}, Along: w.along,
	}
	if !w.all {
		v.Items.Left = 1 // or more
	}
	if w.plan != nil {
		v.InPlan, v.State, v.Closing, v.Ending = true, w.plan.State, w.plan.Closing, w.plan.Ending
	}
	return v
}

// Gathered implements engine.Settler.
func (r *round) Gathered(ctx context.Context, w *waiter) (json.RawMessage, error) {
	if w.bytes > plan.MaxCopiedOne {
		return nil, nil
	}
	return r.gathered(ctx, w.ID, w.Items)
}

// Wait implements engine.Settler. Tasks whose plan is not ready are marked all together.
func (r *round) Wait(_ context.Context, w *waiter, next rules.Next) error {
	switch next {
	case rules.Ready:
		r.settling.waiting++
		r.settling.early[w.Plan] = append(r.settling.early[w.Plan], w.ID)
	case rules.Delay:
		r.settling.changes = append(r.settling.changes, w.held(d("$set", d("hold", holdDelay), "$unset", ones("adding gate"))))
		r.stays(w.Plan)
	}
	return nil
}

// Step implements engine.Settler.
func (r *round) Step(ctx context.Context, w *waiter, s rules.Step) error {
	p := &r.settling
	switch {
	case len(s.Items) > 0:
		keep := s.Items
		if w.Along { // whose items are those of its heads
			keep = nil
		}
		list, err := r.keepList(ctx, w.taskDoc, keep)
		if err != nil {
			return err
		}
		return r.expand(ctx, w.taskDoc, list, &s)
	case s.Finishes():
		e := stepDoc{doc: w.taskDoc, step: s}
		switch {
		case w.damage != nil && w.Hold == holdItems:
			items, err := r.itemsMade(ctx, w.taskDoc)
			if err != nil {
				return err
			}
			e.items = items
		case w.endsWithItems():
			e.bytes = w.bytes
			e.gathered = len(s.Output) == 0
		}
		p.ends = append(p.ends, e)
		if w.plan != nil && engine.Stops(r.PlanView(w.plan), &s, w.Lenient) {
			return r.stopNow(ctx, w.Plan)
		}
		return nil
	}
	r.markQueued(w.Queue, w.Plan)
	set := append(w.set, d("status", s.Status, "node", w.nobody())...)
	set = addIf(set, w.Ours, "ours", true)
	p.changes = append(p.changes, w.held(d("$unset", ones("hold adding gate notbefore"), "$currentDate", d("mtime", true), "$set", set)))
	p.queued = append(p.queued, w)
	r.stays(w.Plan)
	if p.size += len(w.Params.document) + len(w.Text); w.copies() {
		p.size += 2 * w.bytes
	}
	if p.size > wire.WholeBytes {
		return r.writeSettled(ctx)
	}
	return nil
}

// Written implements engine.Settler.
func (r *round) Written(ctx context.Context) error {
	if err := r.leaveToReady(ctx, r.settling.early); err != nil {
		return err
	}
	if err := r.writeSettled(ctx); err != nil {
		return err
	}
	ends := r.settling.ends
	r.settling.ends = nil
	return r.finishHeld(ctx, ends)
}

// stopNow writes the end of a task whose failure stops its plan, and closes the plan, so that the
// tasks after it are not started. If another round has changed the task, the plan stays open.
func (r *round) stopNow(ctx context.Context, id bson.ObjectID) error {
	if err := r.Written(ctx); err != nil || !r.queue[len(r.queue)-1].known {
		return err
	}
	return r.stopPlans(ctx, breakage{plan: id})
}

// writeSettled writes the tasks that are queued or delayed.
func (r *round) writeSettled(ctx context.Context) error {
	p := &r.settling
	n, misfits, err := r.BulkEach(ctx, r.tasks, p.changes)
	r.queued += max(0, n-(len(p.changes)-len(p.queued)))
	if n == len(p.changes) {
		r.preview.hasQueued(p.queued)
	} else {
		r.preview = nil // others changed some of them
	}
	r.budget -= len(p.changes)
	for _, m := range misfits {
		if err == nil {
			err = r.fail(ctx, m.ID, onlyHeld(nil), "it cannot be queued: "+m.Err.Error())
			r.queue = append(r.queue, parent{id: m.ID})
			k := slices.IndexFunc(p.queued, func(w *waiter) bool { return w.ID == m.ID })
			delete(r.busy, p.queued[k].Plan)
		}
	}
	p.changes, p.queued, p.size = nil, nil, 0
	return err
}

// leaveToReady has those tasks of plans that are being submitted looked at again once their plans are ready, by plan: a person cancelled a
// parent of theirs. Write first, look second: whoever makes the plan ready finds the marks, or is found here.
func (r *round) leaveToReady(ctx context.Context, early map[bson.ObjectID]idList) error {
	g := r.Series(ctx)
	for id, tasks := range early {
		g.UpdateMany(r.tasks, onlyHeld(d("_id", d("$in", tasks)), "hold", holdNeeds), d("$set", d("adding", id)))
		for _, p := range wire.FindIn[planDoc](g, r.plans, d("_id", id), wire.Query{Fields: ones("state")}) {
			if p.State != plan.PlanSubmitting {
				g.Do(func(ctx context.Context) error { return r.job(ctx, workLook, id) })
			}
		}
	}
	return g.Err
}

// waiters reads what held tasks wait for.
func (r *round) waiters(ctx context.Context, held []taskDoc) ([]waiter, map[bson.ObjectID]*taskDoc, error) {
	var ids idSet
	var joined idList
	for i := range held {
		ids.add(held[i].Needs...)
		if held[i].Joins > 0 || held[i].Hold == holdItems {
			joined = append(joined, held[i].ID)
		}
	}
	parents, err := r.parents(ctx, ids.list)
	if err != nil {
		return nil, nil, err
	}
	joins, err := r.joinsOf(ctx, joined)
	if err != nil {
		return nil, nil, err
	}
	waiters := make([]waiter, len(held))
	for i := range held {
		w := &waiters[i]
		w.taskDoc, w.all = &held[i], true
		w.def, w.damage = w.definition()
		for _, id := range w.Needs {
			w.seeParent(parents[id], r)
		}
		there := 0
		for _, j := range joins[w.ID] {
			if w.waitsFor(&j) {
				there++
				w.seen |= j.Seen
				w.all = w.all && j.Done
				w.failed, w.bytes, w.largest = w.failed+j.Failed, w.bytes+j.Bytes, max(w.largest, j.Largest)
			}
		}
		if w.damage == nil {
			w.damage = w.lacking(there)
		}
	}
	return waiters, parents, nil
}

// parents reads the parents of held tasks, but for those that the turn ended.
func (r *round) parents(ctx context.Context, ids idList) (map[bson.ObjectID]*taskDoc, error) {
	if len(r.turn.ended) == 0 {
		return r.tasksByID(ctx, ids, parentFields)
	}
	var unread idList
	for _, id := range ids {
		if r.turn.ended[id] == nil {
			unread = append(unread, id)
		}
	}
	parents, err := r.tasksByID(ctx, unread, parentFields)
	maps.Copy(parents, r.turn.ended)
	return parents, err
}

// waitsFor reports whether the join is one of those that the task waits for now: of its parents, or of its items as many as there are.
func (t *taskDoc) waitsFor(j *joinDoc) bool {
	if t.Hold != holdItems {
		return j.Count == 0
	}
	return j.Count > 0 && j.Count == min(joinSize, t.Items-j.N*joinSize)
}

// lacking returns the error if not all joins exist that the task waits for: the others do not tell
// when all has finished. Joins of parents are inserted before their task, and those of items before
// the items are complete.
func (t *taskDoc) lacking(there int) error {
	switch {
	case t.Hold == holdNeeds && there < t.Joins:
		return fmt.Errorf("of the %d documents that hold its parents %d are gone from the store", t.Joins, t.Joins-there)
	case t.Hold == holdItems && t.Expanded && (there == 0 || there*joinSize < t.Items):
		return errors.New("what counts its items is gone from the store, or damaged; retry it")
	}
	return nil
}

// finished reports whether children may count on the task's end. A task that another program ended
// counts only after a sweep has adopted it, even if its output is there: otherwise release would
// pass it by.
func (r *round) finished(t *taskDoc) bool { return t.adopted(r.at) || r.bare[t.ID] && t.counted(r.at) }

// seeParent takes notice of a parent, or of a head. Once the task waits for its items, only its heads matter.
func (w *waiter) seeParent(p *taskDoc, r *round) {
	if w.Along && p != nil && rules.GoesAlong(w.def.Foreach, p.Name) {
		items, o := 0, rules.Outcome(0)
		if p.Expanded {
			items = p.Items
		}
		if r.finished(p) {
			o = p.outcome()
		}
		if !w.along.See(items, o) {
			return
		}
	}
	if w.Hold != holdItems {
		w.see(p, r)
	}
}

// see takes notice of a parent, or an item. nil is one whose document is gone, as somebody damaged the store: it was asked for when the child
// was in, and parents are in before that. It counts as cancelled, so that nothing waits for ever.
func (w *waiter) see(p *taskDoc, r *round) {
	switch {
	case p == nil:
		w.seen |= rules.OutcomeCancelled
	case r.finished(p):
		w.seen |= p.outcome()
		w.bytes, w.largest = w.bytes+p.Bytes, max(w.largest, p.Bytes)
	default:
		w.all = false
	}
}

// stays notes that a plan has a task that has not finished, and that a later step of the round may end.
func (r *round) stays(p bson.ObjectID) {
	if !p.IsZero() {
		r.stayed[p] = true
	}
}

// comesBack notes that a claimed or delayed task of a plan waits to be claimed again.
func (r *round) comesBack(p bson.ObjectID) {
	if !p.IsZero() {
		r.busy[p], r.returned[p] = true, true
	}
}

// held changes the task as long as it is held for what it was held for when it was read, and its items are made if they were: whoever
// wrote first has decided.
func (t *taskDoc) held(update bson.D) wire.Change {
	where := onlyHeld(nil, "hold", t.Hold, "gen", t.Gen)
	where = addIf(where, t.Making, "making", true)
	return wire.Change{ID: t.ID, Where: where, Update: update}
}

// Deliver implements engine.Settler.
func (r *round) Deliver(ctx context.Context, w *waiter) (why, err error) {
	if err := r.mayBeOthers(ctx, w); err != nil {
		return nil, err
	}
	var inputs []plan.Input // that are copied: none, if they go by reference, or are refused
	if w.copies() && rules.CheckWhole(2*w.bytes) == nil {
		ids, err := r.parentIDs(ctx, w.taskDoc)
		if err == nil {
			inputs, err = r.inputsOf(ctx, ids, r.settling.parents)
		}
		if err != nil {
			return nil, err
		}
	}
	w.set, why = w.deliver(inputs)
	return why, nil
}

// mayBeOthers looks whether another program may claim the task, if that matters: it needs the whole of what Sluice may read by reference.
func (r *round) mayBeOthers(ctx context.Context, w *waiter) (err error) {
	small := rules.Copied(w.bytes, w.largest) && len(w.Params.document)+len(w.Text)+2*w.bytes <= surelyFits
	if w.hasParents() && w.def.Foreach == nil && !small {
		w.whole, err = r.othersServe(ctx, w.Queue)
	}
	return err
}

// copies reports whether outputs are copied into the task's params.
func (w *waiter) copies() bool {
	return w.hasParents() && (w.whole || rules.Copied(w.bytes, w.largest))
}

// deliver returns the fields that a task is queued with, beyond its status and node, and says whether only Sluice can run it.
func (w *waiter) deliver(inputs []plan.Input) (bson.D, error) {
	w.Ours = w.ByRef || w.def.Foreach != nil && w.def.Foreach.OnNode() // by reference already: an item that is retried
	if !w.hasParents() {
		return nil, nil
	}
	if !w.copies() {
		w.Ours = true
		return d("byref", true), nil
	}
	if w.whole && rules.CheckWhole(2*w.bytes) != nil {
		return nil, rules.CheckWhole(2 * w.bytes)
	}
	params, err := w.params()
	if err != nil {
		return nil, err
	}
	if params, err = rules.Deliver(params, inputs); err != nil {
		return nil, err
	}
	if w.whole {
		return w.wholeFields(params)
	}
	own := *w.taskDoc
	set, room, err := own.keepParams(params)
	if err == nil && !room {
		w.Ours = true
		set = d("byref", true)
	}
	return set, err
}

// wholeFields gives a task params that have its parents' outputs in them, and returns the fields that keep these, or an error if they are too
// large for a task that another program may run.
func (t *taskDoc) wholeFields(params json.RawMessage) (bson.D, error) {
	if err := rules.CheckWhole(len(params)); err != nil {
		return nil, damage{err}
	}
	set, room, err := t.keepParams(params)
	if err == nil && !room {
		err = fmt.Errorf("%w: with its parents' outputs its document would have more than the %d bytes that MongoDB takes, and another program "+
			"that may run it finds them nowhere else: let them write files and return the paths", plan.ErrTooMuchInput, largestDocument-spare)
	}
	if err != nil {
		return nil, damage{err}
	}
	return set, nil
}

// keepParams gives a task params, and returns the fields that keep these. room is false if its document would be too large by them.
func (t *taskDoc) keepParams(params json.RawMessage) (set bson.D, room bool, err error) {
	if err := t.setParams(params); err != nil {
		return nil, false, err
	}
	if set = d("params", t.Params); t.Text != nil {
		set = append(set, bson.E{Key: "text", Value: t.Text})
	}
	if len(params) > surelyFits {
		room, err = t.leaveRoom(set)
		return set, room, err
	}
	return set, true, nil
}

// finishHeld ends held tasks, whose own children then come next. They stay open until these are released, so that a sweep finds them if
// this process dies between.
func (r *round) finishHeld(ctx context.Context, ends []stepDoc) error {
	if len(ends) == 0 {
		return nil
	}
	changes := make([]wire.Change, len(ends))
	for i, e := range ends {
		u := e.update(stillOpen, "")
		if e.doc.Hold == holdItems && e.step.Reason == plan.ReasonInput { // it has not all of its items
			u.put("items", true, e.items)
			u.clear("expanded", "list")
		}
		changes[i] = e.doc.held(u.bson())
	}
	n, misfits, err := r.BulkEach(ctx, r.tasks, changes)
	if err == nil {
		err = r.failAll(ctx, misfits, onlyHeld(nil), "its end cannot be stored")
	}
	if err != nil {
		return err
	}
	r.budget -= len(ends)
	for i := range ends {
		t := *ends[i].doc
		p := parent{id: t.ID}
		if n == len(ends) {
			t.Status, t.Reason, t.Open, t.Items = ends[i].step.Status, ends[i].step.Reason, true, max(t.Items, ends[i].items)
			p.fill(&t)
		}
		r.queue = append(r.queue, p)
	}
	return nil
}
