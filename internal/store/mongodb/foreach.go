package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// listDoc keeps some of the items of a foreach task until their tasks are in.
type listDoc struct {
	ID    string        `bson:"_id"` // list and from
	Task  bson.ObjectID `bson:"task"`
	List  string        `bson:"list"`
	From  int           `bson:"from"`
	Items []text        `bson:"items"`
}

// bound implements bounded.
func (l *listDoc) Bound() { wire.Within(&l.From) }

const (
	listSize  = 1000    // items in one document,
	listBytes = 4 << 20 // and their bytes, but one item may be larger
	// largestItem is what an item may have at most, so that its task fits into a document.
	largestItem = plan.MaxOutput
)

// List implements engine.Settler.
func (r *round) List(ctx context.Context, w *waiter) (items []json.RawMessage, none string, why, err error) {
	inputs, err := r.listInputs(ctx, w)
	if err != nil && !errors.Is(err, plan.ErrTooMuchInput) {
		return nil, "", nil, err
	}
	if why = err; why == nil {
		items, why = rules.ExpandItems(w.def.Foreach, inputs)
	}
	if why == nil {
		why = checkItems(items)
	}
	return items, rules.NoItemsDetail(w.def.Foreach, ""), why, nil
}

// listInputs returns the one input of a foreach task that its list comes from, if it comes from one.
func (r *round) listInputs(ctx context.Context, w *waiter) ([]plan.Input, error) {
	from := rules.ListFrom(w.def.Foreach)
	if from == "" {
		return nil, nil
	}
	h, err := r.heads(ctx, w.taskDoc)
	if err != nil {
		return nil, err
	}
	for _, id := range h.ids {
		if p := h.known[id]; p != nil && p.inputSize().Name == from {
			if err := rules.CheckInputs(p.Bytes); err != nil {
				return nil, err
			}
			return r.inputsOf(ctx, []bson.ObjectID{id}, h.known)
		}
	}
	return nil, nil
}

// checkItems returns an error if an item is too large for a document.
func checkItems(items []json.RawMessage) error {
	for i, item := range items {
		if len(item) > largestItem {
			return fmt.Errorf("item %d of foreach has %d bytes; at most %d are taken: write files and let the items be their paths", i, len(item), largestItem)
		}
	}
	return nil
}

// keepList keeps the items until their tasks are in, and returns the list's name. The name is the
// round's own, so that a round may drop its list without harm to another round's. A process that
// dies half-way leaves a list that nobody asks for.
func (r *round) keepList(ctx context.Context, t *taskDoc, items []json.RawMessage) (string, error) {
	list := t.ID.Hex() + "/" + r.id.Hex()
	for from := 0; from < len(items); {
		doc := listDoc{ID: fmt.Sprintf("%s/%d", list, from), Task: t.ID, List: list, From: from}
		for size := 0; from < len(items) && len(doc.Items) < listSize && (size == 0 || size+len(items[from]) < listBytes); from++ {
			doc.Items = append(doc.Items, text(items[from]))
			size += len(items[from])
		}
		if _, err := r.Insert(ctx, r.items, doc); err != nil {
			return "", err
		}
		r.budget--
	}
	return list, nil
}

// expand turns a held task into one that waits for its items, and begins to make them.
func (r *round) expand(ctx context.Context, t *taskDoc, list string, s *rules.Step) error {
	dates := d("mtime", true)
	if s.Begins(t.Status) {
		dates = append(dates, d("started", true)...)
	}
	matched, err := r.Bulk(ctx, r.tasks, []wire.Change{t.held(d(
		"$set", d("hold", holdItems, "making", true, "items", len(s.Items), "list", list),
		"$unset", ones("adding gate notbefore expanded inserted released"),
		"$currentDate", dates))})
	if err == nil && matched == 0 { // the task has changed since it was looked at: it takes no list of this round
		err = r.dropList(ctx, t.ID, list)
	}
	if err != nil || matched == 0 {
		return err
	}
	r.budget--
	r.stays(t.Plan)
	return r.job(ctx, workItems, t.ID)
}

// dropList deletes a list of this round that its task did not take.
func (r *round) dropList(ctx context.Context, task bson.ObjectID, list string) error {
	_, err := r.Remove(ctx, r.items, d("task", task, "list", list))
	return err
}

// makeItems inserts the next items of a foreach task, held, and queues them when all are in; it reports whether all of that is done.
func (r *round) makeItems(ctx context.Context, of bson.ObjectID) (done bool, err error) {
	t, err := wire.FindOne[taskDoc](ctx, r.tasks, d("_id", of), wire.Query{})
	if err != nil {
		return false, err
	}
	switch {
	case t == nil || t.Status.Finished():
		_, err := r.Remove(ctx, r.items, d("task", of))
		return true, err
	case !t.heldFor(holdItems) || !t.Making:
		return true, nil
	}
	if err := r.loadPlans(ctx, []bson.ObjectID{t.Plan}); err != nil {
		return false, err
	}
	if p := r.known[t.Plan]; p != nil && p.Closing != plan.Open && !(t.Finally && p.Ending == plan.PlanRunning) { // else it was read before it was opened for them
		return true, nil // the plan's end takes the task, and the items that are in
	}
	if t.Items == 0 || t.Inserted > t.Items || t.Released > t.Items {
		return true, r.failItems(ctx, t, fmt.Errorf("its items are miscounted: %d, of which %d are in and %d were queued; retry it", t.Items, t.Inserted, t.Released))
	}
	for !t.Expanded && r.budget > 0 {
		there, err := r.insertItems(ctx, t)
		if wrong, is := errors.AsType[damage](err); is {
			return true, r.failItems(ctx, t, wrong)
		}
		if err == nil && !there {
			_, err = r.Remove(ctx, r.items, d("task", of, "list", t.List))
		}
		if err != nil || !there {
			return !there, err
		}
	}
	g := r.Series(ctx)
	if t.Expanded && t.Released == 0 {
		g.Do(func(ctx context.Context) error { return r.gatherEarly(ctx, t) })
		g.Do(func(ctx context.Context) error { return r.tellAlong(ctx, t.ID) })
	}
	for t.Expanded && t.Released < t.Items && r.budget > 0 && g.Err == nil {
		g.Do(func(ctx context.Context) error { return r.queueItems(ctx, t) })
	}
	if !t.Expanded || t.Released < t.Items {
		return false, g.Err
	}
	g.Remove(r.items, d("task", of))
	return g.Err == nil, g.Err
}

// gatherEarly ends a foreach task whose items were all cancelled, one by one, before it was known that they are all in: whoever cancelled
// the last of them could not.
func (r *round) gatherEarly(ctx context.Context, t *taskDoc) error {
	open, err := wire.FindOne[joinDoc](ctx, r.joins, d("child", t.ID, "count", d("$gt", 0), "done", nil), wire.Query{Fields: ones("_id")})
	if err != nil || open != nil {
		return err
	}
	_, err = r.settle(ctx, []taskDoc{*t})
	return err
}

// failItems ends a foreach task whose items cannot be made.
func (r *round) failItems(ctx context.Context, t *taskDoc, why error) error {
	items, err := r.itemsMade(ctx, t)
	if err == nil {
		err = r.finishHeld(ctx, []stepDoc{{doc: t, step: rules.InputFailed(t.Status, why), items: items}})
	}
	if err == nil {
		_, err = r.Remove(ctx, r.items, d("task", t.ID, "list", t.List))
	}
	return err
}

// itemsMade returns how many items a foreach task may have that has not all of them, or cannot know
// when they have finished. Its items are then cancelled, and a retry makes them again. Both go by
// this number, since the one in the document may be damaged.
func (r *round) itemsMade(ctx context.Context, t *taskDoc) (int, error) {
	last, err := wire.FindOne[taskDoc](ctx, r.tasks, d("_id", d("$gte", itemID(t.ID, 0), "$lt", itemID(t.ID, plan.MaxItems)), "of", t.ID),
		wire.Query{Fields: ones("_id"), Sort: d("_id", -1)})
	if err != nil || last == nil {
		return t.Items, err
	}
	return max(t.Items, itemIndex(last.ID)+1), nil
}

// insertItems inserts items from t.Inserted on, as far as one list document and the budget reach. there is false if the task is not to
// be expanded any more.
func (r *round) insertItems(ctx context.Context, t *taskDoc) (there bool, err error) {
	items, needs, err := r.nextItems(ctx, t)
	if err != nil {
		return false, err
	}
	items = items[:min(len(items), r.budget, t.Items-t.Inserted)]
	docs, err := r.itemDocs(ctx, t, items, needs)
	if err != nil {
		return false, err
	}
	items = items[:len(docs)]
	joins, joinIDs := t.itemJoins(t.Inserted, t.Inserted+len(items))
	if err := r.insertMade(ctx, r.joins, t, joinIDs, joins); err != nil {
		return false, err
	}
	ids := itemIDs(t.ID, t.Inserted, t.Inserted+len(items))
	if err := r.insertMade(ctx, r.tasks, t, ids, docs); err != nil {
		return false, err
	}
	t.Inserted += len(items)
	t.Expanded = t.Inserted == t.Items
	r.budget -= len(items)
	// Insert first, look second: should the task have been cancelled between, its items are found and cancelled here or there; should it
	// have been taken back, they are deleted here or there.
	update := d("$max", d("inserted", t.Inserted), "$currentDate", d("mtime", true))
	update = addIf(update, t.Expanded, "$set", d("expanded", true))
	n, err := r.Bulk(ctx, r.tasks, []wire.Change{t.held(update)})
	if err == nil && n == 0 {
		if _, err = r.cancelItems(ctx, &workDoc{Target: t.ID}); err == nil {
			err = r.takeBackItems(ctx, t, ids, joinIDs)
		}
		if err == nil { // a task that was cancelled meanwhile has these items; readers count them
			_, err = r.UpdateOne(ctx, r.tasks, d("_id", t.ID, "gen", wire.OrNone(t.Gen), "list", t.List, "status", finished),
				d("$max", d("inserted", t.Inserted)))
		}
	}
	return n > 0, err
}

// nextItems returns some of the items from t.Inserted on, and what each of them needs.
func (r *round) nextItems(ctx context.Context, t *taskDoc) (items []text, needs [][]bson.ObjectID, err error) {
	if t.Along {
		return r.itemsOfHeads(ctx, t)
	}
	list, err := wire.FindOne[listDoc](ctx, r.items, d("task", t.ID, "list", t.List, "from", d("$lte", t.Inserted)), wire.Query{Sort: d("from", -1)})
	if err != nil {
		return nil, nil, err
	}
	if list == nil || t.Inserted >= list.From+len(list.Items) {
		return nil, nil, t.itemsGone()
	}
	return list.Items[t.Inserted-list.From:], nil, nil
}

// itemJoins returns the joins of a foreach task that stand for some of its items.
func (t *taskDoc) itemJoins(from, to int) (joins []any, ids idList) {
	for n := from / joinSize; n*joinSize < to; n++ {
		j := joinDoc{
			ID: itemJoin(t.ID, n), Child: t.ID, Plan: t.Plan, N: n, Count: min(joinSize, t.Items-n*joinSize), Made: t.made(),
			Waits: rules.Waits(plan.AllDone), // a foreach task ends with the last of its items, whatever becomes of them
		}
		joins, ids = append(joins, j), append(ids, j.ID)
	}
	return joins, ids
}

func (t *taskDoc) itemsGone() error {
	return damage{fmt.Errorf("of its %d items all but the first %d are gone from the store; retry it", t.Items, t.Inserted)}
}

// itemsOfHeads is nextItems for a task that goes along with others: an item needs the items with its index of
// the heads, and what else the task needs.
func (r *round) itemsOfHeads(ctx context.Context, t *taskDoc) (items []text, needs [][]bson.ObjectID, err error) {
	heads, err := r.headsOf(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	count := min(listSize, t.Items-t.Inserted)
	items, needs = make([]text, count), make([][]bson.ObjectID, count)
	for _, id := range t.Needs {
		if !heads[id] {
			for i := range needs {
				needs[i] = append(needs[i], id)
			}
			continue
		}
		ids := itemIDs(id, t.Inserted, t.Inserted+count)
		for i := range needs {
			needs[i] = append(needs[i], ids[i])
		}
		if items[0] != nil {
			continue
		}
		err := r.readAll(ctx, ids, ones("params text"), func(of *taskDoc) {
			if params, err := of.params(); err == nil {
				items[itemIndex(of.ID)-t.Inserted] = text(rules.ItemOf(params))
			}
		})
		if err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(items, func(item text) bool { return item == nil }) {
			return nil, nil, t.itemsGone()
		}
	}
	return items, needs, nil
}

// headsOf returns those parents of a task that it goes along with, and whose items are in.
func (r *round) headsOf(ctx context.Context, t *taskDoc) (map[bson.ObjectID]bool, error) {
	def, err := t.definition()
	if err != nil {
		return nil, damage{err}
	}
	parents, err := r.tasksByID(ctx, t.Needs, ones("name expanded items"))
	heads := make(map[bson.ObjectID]bool, len(parents))
	for id, p := range parents {
		heads[id] = rules.GoesAlong(def.Foreach, p.Name) && p.Expanded && p.Items > 0
	}
	return heads, err
}

// afterHeads returns those of the items of a task that goes along with others of which an item above has finished. Nothing is to be decided
// about others: what else they need has finished, and decided nothing for all of them.
func (r *round) afterHeads(ctx context.Context, t *taskDoc, from, to int) (decided idList, err error) {
	heads, err := r.headsOf(ctx, t)
	if _, damaged := errors.AsType[damage](err); damaged {
		return nil, nil // it fails as it is looked at
	}
	if err != nil {
		return nil, err
	}
	var found idSet
	for id, is := range heads {
		if !is {
			continue
		}
		ended, err := wire.Find[taskDoc](ctx, r.tasks, d("_id", d("$in", itemIDs(id, from, to)), "status", finished), wire.Query{Fields: ones("_id")})
		if err != nil {
			return nil, err
		}
		for i := range ended {
			found.add(itemID(t.ID, itemIndex(ended[i].ID)))
		}
	}
	return found.list, nil
}

// tellAlong looks at the tasks that go along with a foreach task whose items are all in.
func (r *round) tellAlong(ctx context.Context, of bson.ObjectID) error {
	held, err := wire.Find[taskDoc](ctx, r.tasks, onlyHeld(d("needs", of, "along", true), "hold", holdNeeds), wire.Query{Fields: childFields, Hint: indexNeeds})
	if err != nil {
		return err
	}
	_, err = r.settle(ctx, held)
	return err
}

// itemDocs makes the tasks of items from t.Inserted on. needs is nil for items without parents of their own.
func (r *round) itemDocs(ctx context.Context, t *taskDoc, items []text, needs [][]bson.ObjectID) ([]any, error) {
	of := t.domain()
	if _, err := t.definition(); err != nil {
		return nil, damage{err}
	}
	if _, err := t.params(); err != nil {
		return nil, damage{err}
	}
	if of.Foreach == nil {
		return nil, damage{errors.New("its items cannot be made: its definition has no foreach any more")}
	}
	params, byRef := of.Params, false
	if t.hasParents() && needs == nil {
		var err error
		if params, byRef, err = r.itemParams(ctx, t, &of); err != nil {
			return nil, err
		}
	}
	items = items[:max(1, min(len(items), wire.WholeBytes/max(1, len(params))))]
	docs := make([]any, len(items))
	for i, item := range items {
		task := rules.ItemTask(&of, t.Inserted+i, json.RawMessage(item), params, r.at)
		doc, _, err := newTask(&task, holdItem, r.at)
		if err == nil {
			err = fits(&task)
		}
		if err != nil {
			return nil, damage{fmt.Errorf("item %d: %w", t.Inserted+i, err)}
		}
		doc.ByRef, doc.Ours, doc.Made = byRef, byRef, t.made()
		if needs != nil {
			doc.Needs = needs[i]
		}
		doc.Node = doc.nobody()
		docs[i] = doc
	}
	return docs, nil
}

// wholeItems is how many bytes the items of one foreach task are given of large outputs, all together.
const wholeItems = 1 << 30

// itemParams returns the params of items, but for the item, or that their nodes read the outputs of the foreach task's parents by reference.
// Large ones are copied only where another program may run the items.
func (r *round) itemParams(ctx context.Context, t *taskDoc, of *plan.Task) (params json.RawMessage, byRef bool, err error) {
	h, err := r.heads(ctx, t)
	if err != nil {
		return nil, false, err
	}
	var inputs []plan.Input
	copied := rules.MayCopyIntoItems(of.Foreach, h.sizes)
	if copied {
		if inputs, err = r.itemInputs(ctx, h, of.Foreach); err != nil {
			return nil, false, err
		}
		copied = rules.CopiedIntoItems(inputs)
	}
	whole := false
	if !copied {
		if whole, err = r.othersServe(ctx, t.Queue); err != nil || !whole {
			return of.Params, true, err
		}
		if err := rules.CheckItemInputs(of.Foreach, h.sizes); err != nil {
			return nil, false, damage{err}
		}
		if inputs, err = r.itemInputs(ctx, h, of.Foreach); err != nil {
			return nil, false, err
		}
	}
	if params, err = rules.Deliver(of.Params, inputs); err != nil {
		return nil, false, damage{err}
	}
	if whole {
		if err := rules.CheckWhole(len(params)); err != nil {
			return nil, false, damage{err}
		}
		if all := len(params) * t.Items; all > wholeItems {
			return nil, false, damage{fmt.Errorf("%w: with the outputs that they are given the params of its %d items have %d bytes in all; "+
				"where other programs may run them it is at most %d: let parents write files and return the paths, or give it a queue that only "+
				"Sluice serves, as one without a limit is", plan.ErrTooMuchInput, t.Items, all, wholeItems)}
		}
	}
	return params, false, nil
}

// queueItems queues items from t.Released on. Items with parents of their own wait for these parents.
func (r *round) queueItems(ctx context.Context, t *taskDoc) error {
	to := min(t.Items, t.Released+r.budget, t.Released+outputsAtOnce)
	ids := itemIDs(t.ID, t.Released, to)
	var changed atomic.Int64
	update := queues("hold")
	if t.Along {
		update = d("$set", d("hold", holdNeeds))
	}
	g := r.Series(ctx)
	g.Do(func(ctx context.Context) error {
		return wire.Halves(ids, func(half idList) error {
			n, err := r.UpdateMany(ctx, r.tasks, onlyHeld(d("_id", d("$in", half)), "hold", holdItem), update)
			changed.Add(int64(n))
			return err
		})
	})
	if t.Along {
		g.Do(func(ctx context.Context) error { // write first, look second: a parent's end finds the item, or is found here
			decided, err := r.afterHeads(ctx, t, t.Released, to)
			if err == nil {
				err = r.settleHeld(ctx, decided)
			}
			return err
		})
	} else {
		r.queued += int(changed.Load())
		r.markQueued(t.Queue, t.Plan)
	}
	t.Released = to
	r.budget -= len(ids)
	r.stays(t.Plan)
	g.UpdateOne(r.tasks, d("_id", t.ID, "making", true, "gen", t.Gen), addIf(d("$max", d("released", to)), to == t.Items, "$unset", ones("making list")))
	return g.Err
}

// checkBudget counts the failed items of a foreach task with max_failures. If these are too many, the items that have not started are
// ended.
func (r *round) checkBudget(ctx context.Context, of bson.ObjectID) error {
	t, err := wire.FindOne[taskDoc](ctx, r.tasks, gathering(d("_id", of)), wire.Query{Fields: ones("def items")})
	if err != nil || t == nil {
		return err
	}
	def, err := t.definition()
	if err != nil {
		return nil // it fails as it is looked at
	}
	allowed := plan.AllowedFailures(def.MaxFailures, t.Items)
	failed, err := wire.Find[taskDoc](ctx, r.tasks, onlyWrong("_id", d("$gte", itemID(of, 0), "$lt", itemID(of, t.Items))),
		wire.Query{Fields: ones("_id"), Limit: allowed + 1})
	if err != nil || len(failed) <= allowed {
		return err
	}
	g := r.Series(ctx)
	g.UpdateOne(r.tasks, gathering(d("_id", of)), d("$set", d("over", true)))
	g.Do(func(ctx context.Context) error { return r.job(ctx, workCancel, of) })
	return g.Err
}

// cancelItems cancels the items of a foreach task, or marks them for their nodes to stop, from the one on that the job came to, if
// engine.DropItems says so. It releases what waits for them: the foreach task itself, if it has not ended.
func (r *round) cancelItems(ctx context.Context, w *workDoc) (done bool, err error) {
	t, err := wire.FindOne[taskDoc](ctx, r.tasks, d("_id", w.Target), wire.Query{Fields: append(ones("reason"), childFields...)})
	if err != nil || t == nil {
		return err == nil, err
	}
	of := plan.Task{Status: t.Status, Reason: t.Reason, Cancel: t.Cancel, Items: t.Items}
	return engine.DropItems(&of, t.endsWithItems(), t.Over, func(step func(ran bool) rules.Step) (bool, error) { return r.dropItems(ctx, t, w, step) })
}

func (r *round) dropItems(ctx context.Context, t *taskDoc, w *workDoc, step func(ran bool) rules.Step) (done bool, err error) {
	if !t.Plan.IsZero() {
		r.touched[t.Plan] = true // it may end with the last of them, rounds after the task did
	}
	g := r.Series(ctx)
	for ; w.From < t.Items; w.From += outputsAtOnce {
		if r.budget <= 0 {
			return false, nil
		}
		ids := itemIDs(t.ID, w.From, min(t.Items, w.From+outputsAtOnce))
		for _, ran := range []bool{true, false} { // the second of what is left
			r.budget -= g.UpdateMany(r.tasks, ranAlso(onlyWaiting(d("_id", d("$in", ids))), ran), unstarted(step(ran), released).bson())
		}
		if t.Cancel || t.Status.Finished() { // else too many items failed, and what runs goes on
			r.budget -= g.UpdateMany(r.tasks, onlyActive(d("_id", d("$in", ids)), "cancel", nil), marks())
		}
		// Cancel first, look second: who adds a child later finds the item cancelled. It is asked though none was cancelled here: whoever
		// did that may have died before it asked.
		waited := false
		if g.Do(func(ctx context.Context) (err error) { waited, err = r.waitedFor(ctx, ids); return err }); g.Err != nil {
			return false, g.Err
		}
		if waited || !t.Status.Finished() {
			for _, id := range ids {
				r.queue = append(r.queue, parent{id: id, dropped: true})
			}
		}
	}
	if !t.Status.Finished() { // all of them may have finished before, or what counts them may be damaged
		_, err = r.settle(ctx, []taskDoc{*t})
	}
	return true, err
}

// waitedFor reports whether any task is held for one of the tasks, or may be by joins of parents.
func (r *round) waitedFor(ctx context.Context, ids idList) (bool, error) {
	child, err := wire.FindOne[taskDoc](ctx, r.tasks, onlyHeld(d("needs", d("$in", ids))), wire.Query{Fields: ones("_id"), Hint: indexNeeds})
	if err != nil || child != nil {
		return child != nil, err
	}
	join, err := wire.FindOne[joinDoc](ctx, r.joins, d("needs", wire.AnyOf(ids)), wire.Query{Fields: ones("_id"), Hint: "needs"})
	return join != nil, err
}
