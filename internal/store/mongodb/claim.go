package mongodb

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// claimedFields are what a node has to know of a task.
var claimedFields = d("plan", 1, "name", 1, "queue", 1, "rank", 1, "def", 1, "params", 1, "text", 1, "byref", 1, "rescues", 1, "index", 1,
	"attempt", 1, "token", 1)

// claim takes up to t.Slots tasks, of each queue that has work its share.
func (r *round) claim(ctx context.Context, t *plan.Turn) ([]plan.ClaimedTask, error) {
	if t.Slots <= 0 {
		return nil, nil
	}
	queues, err := r.offering(ctx, t)
	if err != nil {
		return nil, err
	}
	c := claimer{round: r, turn: t, token: bson.NewObjectID()}
	byQueue := make([][]taskDoc, len(queues))
	left := t.Slots
	// A queue that gave all it was asked for may have more: what others did not need is offered to it in another go.
	for again := len(queues); again > 0 && left > 0; {
		var more int
		for k := range queues {
			if queues[k].ID.IsZero() {
				continue
			}
			want := (left + again - 1) / again
			if again--; want == 0 {
				continue
			}
			got, err := c.take(ctx, &queues[k], want)
			if err != nil {
				return nil, err
			}
			byQueue[k] = append(byQueue[k], got...)
			left -= len(got)
			if len(got) == want {
				more++
			} else {
				queues[k].ID = bson.NilObjectID
			}
		}
		again = more
	}
	return c.claimed(queues, byQueue)
}

type claimer struct {
	*round
	turn   *plan.Turn
	token  bson.ObjectID
	closed bson.A // plans whose tasks are not to be claimed
}

// tries is how often a claimer that others outran looks for other tasks.
const tries = 4

// take claims up to want tasks of a queue. Where others were faster it chooses among more of them, so that claimers do not run after the
// same ones; but not where they run after the same slots. There the first task is where one waits for the other: two that want one slot
// for different tasks can wait for each other crosswise.
func (c *claimer) take(ctx context.Context, q *queueDoc, want int) (taken []taskDoc, err error) {
	for try := 0; try < tries && len(taken) < want; try++ {
		n := want - len(taken)
		var slots []int
		if !q.Unlimited {
			if slots, err = c.freeSlots(ctx, q); err != nil {
				return nil, err
			}
			if n = min(n, len(slots)); n == 0 {
				return taken, nil
			}
		}
		ask := n
		if try > 0 && slots == nil {
			ask = n*4 + 16
		}
		ids, all, err := c.candidates(ctx, q, n, ask)
		if err != nil || len(ids) == 0 {
			return taken, err
		}
		got, err := c.mark(ctx, q, ids, slots)
		if err != nil {
			return nil, err
		}
		taken = append(taken, got...)
		if all && len(got) == len(ids) {
			break
		}
	}
	return taken, nil
}

// waiting matches the queue's tasks that may be claimed. Other programs write null or -1 for nobody's.
func (c *claimer) waiting(q *queueDoc) bson.D {
	filter := append(queuedOf(c.turn.Plan), d("queue", q.ID, "node", d("$in", bson.A{nil, -1}))...)
	if c.turn.Plan.IsZero() && len(c.closed) > 0 {
		filter = append(filter, bson.E{Key: "plan", Value: d("$nin", c.closed)})
	}
	return filter
}

// queuedOf matches the queued tasks of a plan, or of all if it is none.
func queuedOf(p plan.PlanID) bson.D {
	if p.IsZero() {
		return d("status", plan.Queued)
	}
	return d("plan", oid(p.ID), "status", plan.Queued)
}

// candidates returns n of the ask tasks that are next in the queue, and whether these are all that there are.
func (c *claimer) candidates(ctx context.Context, q *queueDoc, n, ask int) (ids bson.A, all bool, err error) {
	look := query{fields: d("_id", 1), limit: ask, hint: indexReady}
	switch {
	case q.Sort == plan.SortFIFO:
		look.sort, look.hint = d("_id", 1), ""
	case q.Sort == plan.SortLIFO:
		look.sort, look.hint = d("_id", -1), ""
	default:
		look.sort = d("rank", -1, "_id", 1)
	}
	if !c.turn.Plan.IsZero() {
		look.hint = indexPlan
	}
	docs, err := find[taskDoc](ctx, c.tasks, c.waiting(q), look)
	if err != nil {
		return nil, false, err
	}
	all = len(docs) < ask
	if len(docs) > n {
		rand.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		docs = docs[:n]
	}
	ids = make(bson.A, len(docs))
	for i := range docs {
		ids[i] = docs[i].ID
	}
	return ids, all, nil
}

// mark claims those of the tasks that are still to be had, each with a slot if there are slots, and returns them.
func (c *claimer) mark(ctx context.Context, q *queueDoc, ids bson.A, slots []int) ([]taskDoc, error) {
	set := d("status", plan.Claimed, "node", c.node, "instance", c.instance, "token", c.token)
	dates, unset := d("mtime", true), d("started", 1)
	if c.turn.Start {
		set[0].Value, dates, unset = plan.Running, append(dates, bson.E{Key: "started", Value: true}), nil
	}
	update := d("$set", set, "$inc", d("attempt", 1), "$currentDate", dates)
	if unset != nil {
		update = append(update, bson.E{Key: "$unset", Value: unset})
	}
	// Slots ascend with the ids, which is the order of the writes: who takes some of them never waits crosswise for another.
	slices.SortFunc(ids, func(a, b any) int {
		x, y := a.(bson.ObjectID), b.(bson.ObjectID)
		return bytes.Compare(x[:], y[:])
	})
	changes := make([]change, len(ids))
	for i, id := range ids {
		changes[i] = change{id.(bson.ObjectID), c.waiting(q), update}
		if slots != nil {
			changes[i].update = slices.Clone(update)
			changes[i].update[0].Value = append(slices.Clip(set), bson.E{Key: "slot", Value: slots[i]})
		}
	}
	if _, err := c.bulk(ctx, c.tasks, changes); err != nil {
		return nil, err
	}
	taken, err := find[taskDoc](ctx, c.tasks, d("_id", d("$in", ids), "token", c.token), query{fields: claimedFields})
	if err != nil {
		return nil, err
	}
	return c.sound(ctx, q, taken)
}

// sound returns the claimed tasks in the queue's order, without those of plans that were closed before: these end at once, and no more of
// them are looked for.
func (c *claimer) sound(ctx context.Context, q *queueDoc, taken []taskDoc) ([]taskDoc, error) {
	plans := make([]bson.ObjectID, len(taken))
	for i := range taken {
		plans[i] = taken[i].Plan
	}
	if err := c.readPlans(ctx, plans); err != nil {
		return nil, err
	}
	slices.SortFunc(taken, q.order)
	closed := map[bson.ObjectID]bson.A{}
	sound := taken[:0]
	for _, t := range taken {
		if p := c.known[t.Plan]; p != nil && p.Closing != plan.Open {
			closed[t.Plan] = append(closed[t.Plan], t.ID)
		} else {
			sound = append(sound, t)
		}
	}
	for id, tasks := range closed {
		c.closed = append(c.closed, id)
		reason, detail := closedEnd(c.known[id].Closing)
		end := append(cancelled(reason, detail, stillOpen), bson.E{Key: "$inc", Value: d("attempt", -1)})
		if _, err := c.updateMany(ctx, c.tasks, d("_id", d("$in", tasks), "token", c.token), end); err != nil {
			return nil, err
		}
	}
	return sound, nil
}

// order is the order in which the queue's tasks are claimed.
func (q *queueDoc) order(a, b taskDoc) int {
	oldest := bytes.Compare(a.ID[:], b.ID[:])
	switch {
	case q.Sort == plan.SortLIFO:
		return -oldest
	case q.Sort == plan.SortFIFO:
		return oldest
	}
	return cmp.Or(cmp.Compare(b.Rank, a.Rank), oldest)
}

// claimed makes what the node gets: of each queue one task in turn, and then the greatest rank first.
func (c *claimer) claimed(queues []queueDoc, byQueue [][]taskDoc) ([]plan.ClaimedTask, error) {
	var out []plan.ClaimedTask
	for i := 0; ; i++ {
		before := len(out)
		for k, tasks := range byQueue {
			if i >= len(tasks) {
				continue
			}
			t := &tasks[i]
			def, err := t.definition()
			if err != nil {
				return nil, err
			}
			params, err := t.params()
			if err != nil {
				return nil, err
			}
			claimed := plan.ClaimedTask{
				Claim: plan.Claim{Task: taskID(t.ID), Attempt: t.Attempt, Token: plan.Token(t.Token)},
				Plan:  planID(t.Plan), Name: t.Name, Queue: plan.QueueID{ID: plan.ID(t.Queue)}, QueueName: queues[k].Name, Plugin: queues[k].Plugin,
				Definition: def, Params: params, ByReference: t.ByRef, Rescues: t.Rescues, Index: t.Index,
			}
			if p := c.known[t.Plan]; p != nil {
				claimed.PlanName = p.title()
			}
			out = append(out, claimed)
		}
		if len(out) == before {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b plan.ClaimedTask) int { return cmp.Compare(b.Rank, a.Rank) })
	c.taken += len(out)
	return out, nil
}
