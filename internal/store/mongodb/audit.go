package mongodb

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// The remaining work follows from the states of tasks and plans. Notes, marks and counters make it
// cheap to find. An audit finds it without them: every few minutes one node reads the held tasks of
// running plans.

const (
	auditPause = time.Second // before an audit that looks at many plans goes on
	auditPlans = 100         // at so many plans one sweep looks,
	auditHeld  = 1000        // and at so many held tasks of one at a time
)

// auditFields are what an audit has to know of a held task.
var auditFields = ones("status hold def along rank needs joins of plan gen gate notbefore making expanded items adding finally")

// audit looks at some plans, if it is time to and no other node does.
func (r *round) audit(ctx context.Context) error {
	a := r.audited
	if a == nil {
		_, err := r.Insert(ctx, r.meta, d("_id", auditKey, "at", r.at))
		return err
	}
	if !rules.AuditDue(a.At, r.at) && (a.After.IsZero() || r.at.Sub(a.At) < auditPause) {
		return nil
	}
	plans, err := wire.Find[planDoc](ctx, r.plans, d("state", plan.PlanRunning, "_id", d("$gt", a.After)),
		wire.Query{Fields: ones("closing finally ending retry"), Sort: d("_id", 1), Hint: plansState, Limit: auditPlans})
	if err != nil {
		return err
	}
	update := d("$set", d("at", r.at), "$unset", ones("after"))
	if len(plans) == auditPlans {
		update = d("$set", d("at", r.at, "after", plans[len(plans)-1].ID))
	}
	mine, err := r.UpdateOne(ctx, r.meta, d("_id", auditKey, "at", a.At), update)
	if err != nil || !mine {
		return err
	}
	g := r.Series(ctx)
	g.Do(r.auditGates)
	for i := range plans {
		g.Do(func(ctx context.Context) error { return r.auditPlan(ctx, &plans[i]) })
	}
	if len(plans) < auditPlans {
		g.Do(r.auditApart)
		g.Do(r.auditGroups)
		g.Do(r.auditLists)
	}
	return g.Err
}

// auditPlan looks at what a plan holds: at all of it, if nothing else is going on in the plan, else at some.
func (r *round) auditPlan(ctx context.Context, p *planDoc) error {
	if p.ID.IsZero() { // another program's
		return nil
	}
	if !p.Retry.IsZero() {
		gone, err := r.withoutDoc(ctx, r.retries, idList{p.Retry})
		if err != nil || len(gone) == 0 {
			return err
		}
		if err := r.goOn(ctx, p.Retry); err != nil { // takes the note off
			return err
		}
	}
	if p.Closing != plan.Open {
		return r.auditClosed(ctx, p)
	}
	held := onlyHeld(p.inPhase())
	docs, err := wire.Find[taskDoc](ctx, r.tasks, held, wire.Query{Fields: auditFields, Hint: indexPlan, Limit: auditHeld})
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		r.touched[p.ID] = true // whether it has ended
		return nil
	}
	if len(docs) == auditHeld {
		busy, err := wire.FindOne[taskDoc](ctx, r.tasks, onlyQueuedOrActive(d("plan", p.ID)),
			wire.Query{Fields: ones("_id"), Hint: indexPlan})
		if err != nil {
			return err
		}
		if busy == nil {
			return r.auditStill(ctx, held)
		}
	}
	return r.auditTasks(ctx, docs)
}

// auditClosed has the items of a closed plan counted again that are said to have ended. A sweep ends the rest of the plan.
func (r *round) auditClosed(ctx context.Context, p *planDoc) error {
	docs, err := wire.Find[taskDoc](ctx, r.tasks, gathering(d("plan", p.ID)),
		wire.Query{Fields: ones("items"), Hint: indexPlan, Limit: auditHeld})
	for i := range docs {
		if err == nil {
			_, err = r.itemsLeft(ctx, &docs[i])
		}
	}
	return err
}

// auditStill looks at all held tasks of a plan in which nothing else goes on, until there is enough to do.
func (r *round) auditStill(ctx context.Context, held bson.D) error {
	var docs []taskDoc
	err := wire.Each(ctx, r.tasks, held, wire.Query{Fields: auditFields, Hint: indexPlan, Batch: auditHeld}, func(t *taskDoc) (err error) {
		if docs = append(docs, *t); len(docs) == auditHeld && r.budget > 0 {
			err, docs = r.auditTasks(ctx, docs), nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.auditTasks(ctx, docs)
}

// auditApart looks at held tasks that were added late, or are of no plan.
func (r *round) auditApart(ctx context.Context) error {
	docs, err := wire.Find[taskDoc](ctx, r.tasks, onlyHeld(d("batch", d("$exists", true)), "hold", holdNeeds),
		wire.Query{Fields: auditFields, Hint: indexApart, Limit: auditHeld})
	if err != nil {
		return err
	}
	return r.auditTasks(ctx, docs)
}

// auditTasks looks at held tasks, and does with those that are neglected as a release does.
func (r *round) auditTasks(ctx context.Context, docs []taskDoc) error {
	var ids idSet
	itemsHeld, looks := map[bson.ObjectID]bool{}, map[bson.ObjectID]bool{}
	for i := range docs {
		ids.add(docs[i].Needs...)
		if docs[i].Hold == holdItem {
			itemsHeld[docs[i].Of] = true
		}
	}
	parents, err := r.tasksByID(ctx, ids.list, append(ones("name expanded items"), memberFields...))
	if err != nil {
		return err
	}
	if err := r.loadPlans(ctx, idsFrom(slices.DeleteFunc(slices.Clone(docs), func(t taskDoc) bool { return !t.Finally }), func(t taskDoc) bson.ObjectID { return t.Plan })); err != nil {
		return err
	}
	var again idList
	var changes []wire.Change
	for i := range docs {
		t := &docs[i]
		w := rules.Waiter{Status: t.Status}
		seen := waiter{taskDoc: t, all: true}
		seen.def, _ = t.definition() // one that cannot be read ends as it is looked at
		for _, id := range t.Needs {
			seen.seeParent(parents[id], r)
		}
		w.Along = seen.along
		switch t.Hold {
		case holdAdding, holdItem: // what they wait for is looked at
			continue
		case holdEnd:
			if p := r.known[t.Plan]; p != nil && p.inFinally() && !looks[t.Plan] {
				looks[t.Plan] = true
				if err := r.job(ctx, workLook, t.Plan); err != nil {
					return err
				}
			}
			continue
		case holdRetry: // its retry ends that, if the task is in the gate of one
			if t.Gate.IsZero() {
				changes = append(changes, t.held(t.leaveGate()))
			}
			continue
		case holdDelay:
			if t.NotBefore.IsZero() {
				changes = append(changes, t.held(d("$set", d("notbefore", r.at))))
			}
			continue
		case holdItems:
			w.Making = !t.Expanded || itemsHeld[t.ID]
			if w.Made = !w.Making; w.Made && !t.Making {
				if w.Items.Left, err = r.itemsLeft(ctx, t); err != nil {
					return err
				}
			}
		case holdNeeds:
			if t.Joins > 0 {
				again = append(again, t.ID) // its joins say
				continue
			}
			w.When, w.Seen, w.All = seen.def.When, seen.seen, seen.all
			if p := r.known[t.Plan]; p != nil && t.Finally {
				w.Finally, w.State, w.Closing, w.Ending = true, p.State, p.Closing, p.Ending
			}
		}
		switch {
		case w.For(t.Making) != rules.ForNothing:
		case w.Making:
			changes = append(changes, t.held(d("$set", d("making", true), "$unset", ones("released"))))
		default:
			again = append(again, t.ID)
		}
	}
	if _, err := r.Bulk(ctx, r.tasks, changes); err != nil {
		return err
	}
	return r.lookAgain(ctx, again)
}

// itemsLeft returns how many items of a foreach task have not finished, 1,000 at most. It has joins
// counted again that say of some of these that they have.
func (r *round) itemsLeft(ctx context.Context, t *taskDoc) (int, error) {
	left, err := wire.Find[taskDoc](ctx, r.tasks, onlyUnfinished(d("_id", d("$gte", itemID(t.ID, 0), "$lt", itemID(t.ID, t.Items)))),
		wire.Query{Fields: ones("_id"), Limit: auditHeld})
	if err != nil || len(left) == 0 {
		return 0, err
	}
	var joins idSet
	for i := range left {
		joins.add(itemJoin(t.ID, itemIndex(left[i].ID)/joinSize))
	}
	_, err = r.UpdateMany(ctx, r.joins, d("_id", d("$in", joins.list), "done", true), uncounted())
	return len(left), err
}

// lookAgain looks at held tasks and counts again what they wait for, as many as the budget allows.
func (r *round) lookAgain(ctx context.Context, ids idList) error {
	for len(ids) > 0 && r.budget > 0 {
		n := min(len(ids), r.budget)
		held, more, err := wire.FindSome[taskDoc](ctx, r.tasks, onlyHeld(d("_id", d("$in", ids[:n])), "hold", d("$in", bson.A{holdNeeds, holdItems})),
			wire.Query{Fields: childFields})
		if err == nil {
			_, err = r.UpdateMany(ctx, r.joins, d("child", d("$in", ids[:n])), uncounted())
		}
		if err == nil {
			_, err = r.settleJoined(ctx, held)
		}
		if err != nil {
			return err
		}
		if more {
			break // the next audit finds the others
		}
		ids = ids[n:]
	}
	return nil
}

// auditGates removes gates of retries, and of batches, that do not exist any more. A round that meets
// a gate waits for the end of its retry.
func (r *round) auditGates(ctx context.Context) error {
	docs, err := wire.Find[taskDoc](ctx, r.tasks, d("gate", d("$exists", true)),
		wire.Query{Fields: ones("status hold gate gen of finally"), Hint: indexGate, Limit: auditHeld})
	if err != nil {
		return err
	}
	var gates idSet
	for i := range docs {
		gates.add(docs[i].Gate)
	}
	gone, err := r.withoutDoc(ctx, r.retries, gates.list)
	if err == nil {
		gone, err = r.withoutDoc(ctx, r.rolls, gone)
	}
	if err != nil || len(gone) == 0 {
		return err
	}
	var changes []wire.Change
	for i := range docs {
		switch t := &docs[i]; {
		case !slices.Contains(gone, t.Gate):
		case t.Hold == holdRetry:
			changes = append(changes, t.held(t.leaveGate()))
		default:
			changes = append(changes, wire.Change{ID: t.ID, Where: d("gate", t.Gate, "status", t.Status), Update: d("$unset", ones("gate rolling"))})
		}
	}
	_, err = r.Bulk(ctx, r.tasks, changes)
	return err
}

// leaveGate has a task wait for its parents in place of a retry that is gone.
func (t *taskDoc) leaveGate() bson.D {
	hold := holdNeeds
	if t.Finally && t.Of.IsZero() {
		hold = holdEnd
	}
	return d("$set", d("hold", hold), "$unset", d("gate", 1), "$inc", d("gen", 1))
}

// withoutDoc returns those of the ids that no document of the collection has.
func (r *round) withoutDoc(ctx context.Context, c *mongo.Collection, ids idList) (idList, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	there, err := wire.Find[struct {
		ID bson.ObjectID `bson:"_id"`
	}](ctx, c, d("_id", d("$in", ids)), wire.Query{Fields: ones("_id")})
	for _, is := range there {
		ids = slices.DeleteFunc(ids, func(id bson.ObjectID) bool { return id == is.ID })
	}
	return ids, err
}

// auditLists deletes lists of items that nobody will make any more: of tasks that have finished, or are gone.
func (r *round) auditLists(ctx context.Context) error {
	lists, err := wire.Find[listDoc](ctx, r.items, d(), wire.Query{Fields: ones("task list"), Limit: auditHeld})
	if err != nil || len(lists) == 0 {
		return err
	}
	tasks, err := r.tasksByID(ctx, idsFrom(lists, func(l listDoc) bson.ObjectID { return l.Task }), ones("status gate"))
	if err != nil {
		return err
	}
	var old bson.A
	for i := range lists {
		if t := tasks[lists[i].Task]; t == nil || t.Status.Finished() && t.Gate.IsZero() {
			old = append(old, lists[i].ID)
		}
	}
	if len(old) == 0 {
		return nil
	}
	_, err = r.Remove(ctx, r.items, d("_id", d("$in", old)))
	return err
}
