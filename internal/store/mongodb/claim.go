package mongodb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// claimedFields are what a node has to know of a task, and what says that it is the same still: see mark.
var claimedFields = ones("plan name queue rank def params parameters text byref reason rescues index attempt gen token of coe budget items lines ran ours started")

// claim takes up to t.Slots tasks, of each queue that has work its share.
func (r *round) claim(ctx context.Context, t *protocol.Turn, served []queueDoc) ([]protocol.ClaimedTask, error) {
	if t.Slots <= 0 {
		return nil, nil
	}
	c := claimer{round: r, turn: t, token: cmp.Or(r.guess.token, bson.NewObjectID()), left: t.Slots, shares: cmp.Or(t.Shares, &protocol.Shares{})}
	limit, err := r.limitOf(ctx, r.node)
	if err != nil {
		return nil, err
	}
	c.limit = limit
	var queues []queueDoc
	var byQueue [][]taskDoc
	ample := true
	offering, err := c.offering(ctx, served)
	if err != nil {
		return nil, err
	}
	for c.left > 0 && !c.full {
		some, err := offering(ctx, c.left)
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			break
		}
		if some, err = c.startable(ctx, some); err != nil {
			return nil, err
		}
		taken, more, err := c.share(ctx, some)
		if err == nil {
			err = c.noteRest(ctx, some)
		}
		if err != nil {
			return nil, err
		}
		queues, byQueue, ample = append(queues, some...), append(byQueue, taken...), ample && more
	}
	r.locked(func() { r.ample, r.claimedAt = c.left == 0 && ample, time.Now() })
	return c.claimed(ctx, queues, byQueue)
}

// take claims up to want tasks of a queue, in its order: others that are after the same slots are after the same tasks, and the first one is
// where one waits for the other. Two that want one slot for different tasks can wait for each other crosswise. More is whether there may be
// more that it could have taken.
func (c *claimer) take(ctx context.Context, q *queueDoc, want int) (taken []taskDoc, more bool, err error) {
	for try := 0; try < tries && len(taken) < want; try++ {
		n := want - len(taken)
		free, err := c.freeSlots(ctx, q, n)
		if err != nil {
			return nil, false, err
		}
		if n = free.atMost(n); n == 0 {
			return taken, false, nil
		}
		one := &draw{queue: q, ask: n}
		err = c.heads(ctx, []*draw{one}, true)
		docs := one.docs
		all := len(docs) < n
		if more = !all; err != nil || len(docs) == 0 {
			return taken, more, err
		}
		spent, err := c.spend(ctx, q, len(docs))
		if err != nil || spent == 0 {
			return taken, false, err
		}
		limited := spent < len(docs)
		docs = docs[:spent]
		got, err := c.mark(ctx, q, docs, free)
		if err == nil {
			got, err = c.keep(ctx, q, got)
		}
		if err == nil && len(got) < spent {
			err = c.giveBack(ctx, q, spent-len(got))
		}
		if err != nil {
			return nil, false, err
		}
		taken = append(taken, got...)
		if limited {
			return taken, false, nil
		}
		if all && len(got) == len(docs) {
			break
		}
	}
	return taken, more, nil
}

// noteRest notes when the rates of queues let the next task start that waits for nothing else. It asks the server whether a task waits in a
// queue, unless the rest that is noted already is as short.
func (c *claimer) noteRest(ctx context.Context, queues []queueDoc) error {
	for k := range queues {
		q := &queues[k]
		paces := c.pacesOf(q)
		if len(paces) == 0 || c.left == 0 || c.full || waitOf(paces, c.dealtAt) == 0 {
			continue
		}
		if known := c.sharing(q); known != nil && !rules.AnyTurns(known.Of) {
			continue
		}
		now, err := c.Now(ctx)
		if err != nil {
			return err
		}
		wait := max(waitOf(paces, now), time.Millisecond) // it may be over by now
		if c.rest > 0 && c.rest <= wait {
			continue
		}
		free, err := c.freeSlots(ctx, q, 1)
		if err != nil {
			return err
		}
		if free.atMost(1) == 0 {
			continue
		}
		one := &draw{queue: q, ask: 1, looked: true}
		if err := c.heads(ctx, []*draw{one}, false); err != nil {
			return err
		}
		if len(one.docs) > 0 {
			c.rest = wait
		}
	}
	return nil
}

// waiting matches the tasks of a part that may be claimed.
func (c *claimer) waiting(p *part) bson.D {
	filter := append(queuedOf(c.turn.Plan), d("queue", p.queue.ID, "node", nobodys)...)
	if left := c.leftAlone(); len(left) > 0 {
		filter = append(filter, bson.E{Key: "_id", Value: d("$nin", left)})
	}
	if p.turns {
		filter = append(filter, bson.E{Key: "plan", Value: c.planOf(p)})
	} else if c.turn.Plan.IsZero() && len(c.closed) > 0 {
		filter = append(filter, bson.E{Key: "plan", Value: d("$nin", c.closed)})
	}
	return filter
}

// nextIn is the query for what is next in a part.
func (c *claimer) nextIn(p *part, fields bson.D) (filter bson.D, look wire.Query) {
	look = wire.Query{Fields: fields, Limit: p.ask, Sort: p.queue.sort()}
	switch {
	case !c.turn.Plan.IsZero():
		look.Hint = indexPlan
	case p.turns:
		look.Hint = indexReady
	}
	return c.waiting(p), look
}

// mendNext mends what was read of a part. If nobody can say which task one is, that one fails, and the part is read again.
func (c *claimer) mendNext(ctx context.Context, p *part, fields bson.D) (err error) {
	if slices.ContainsFunc(p.docs, nameless) {
		p.whole = false
		filter, look := c.nextIn(p, fields)
		if err := c.failNameless(ctx, p.queue, filter); err != nil {
			return err
		}
		filter = append(filter, bson.E{Key: "$and", Value: bson.A{d("_id", wire.Addressable)}})
		if p.docs, err = wire.Find[taskDoc](ctx, c.tasks, filter, look); err != nil {
			return err
		}
	}
	return c.mend(ctx, p.docs, onlyQueued)
}

// mark claims those of the tasks that are still to be had, each with a slot, and returns them in the queue's order. The server
// refuses one of two claims that are after the same slots: mark reads what such a claim has.
func (c *claimer) mark(ctx context.Context, q *queueDoc, docs []taskDoc, free slots) ([]taskDoc, error) {
	one := &draw{queue: q, docs: docs}
	err := c.marked(ctx, []*draw{one}, true, func() (n int, misfits []wire.Misfit, err error) {
		if n, misfits, err = c.BulkInOrder(ctx, c.tasks, c.changes(q, docs, free)); wire.IsClash(err) {
			c.locked(func() { c.rests = time.Now().Add(rand.N(restsFor)) }) // it leaves slots alone for a while
		}
		return n, misfits, err
	})
	return one.got, err
}

// marked has the tasks of these draws claimed, and gives each draw those that it got, in the queue's order. A task of the same attempt and
// generation is as it was read: so if all were read whole, and are had, they are not read again.
func (c *claimer) marked(ctx context.Context, draws []*draw, whole bool, write func() (n int, misfits []wire.Misfit, err error)) error {
	of, byQueue := map[bson.ObjectID]*draw{}, map[bson.ObjectID]*draw{}
	var ids idList
	for _, one := range draws {
		byQueue[one.queue.ID] = one
		for i := range one.docs {
			of[one.docs[i].ID] = one
			ids = append(ids, one.docs[i].ID)
		}
	}
	n, misfits, err := write()
	if wire.IsClash(err) {
		n, err = -1, nil
	}
	if err != nil {
		return err
	}
	for _, m := range misfits {
		if of[m.ID] == nil {
			continue // it was no claim
		}
		where := onlyQueued(nil, "queue", of[m.ID].queue.ID)
		if err := c.fail(ctx, m.ID, where, "it cannot be claimed: "+m.Err.Error()); err != nil {
			return err
		}
	}
	if whole && n == len(ids) {
		for _, one := range draws {
			for i := range one.docs {
				one.docs[i].Token, one.docs[i].Attempt = c.token, one.docs[i].Attempt+1
			}
		}
	} else {
		var taken []taskDoc
		if n != 0 {
			taken, err = wire.Find[taskDoc](ctx, c.tasks, d("_id", d("$in", ids), "token", c.token), wire.Query{Fields: claimedFields})
		}
		for _, one := range draws {
			one.docs = one.docs[:0]
		}
		for _, t := range taken {
			one := cmp.Or(byQueue[t.Queue], of[t.ID]) // a retry may have moved it while the queues were read, so that it was read in two
			one.docs = append(one.docs, t)
		}
	}
	for _, one := range draws {
		one.queue.order(one.docs)
		one.got = append(one.got, one.docs...)
	}
	return err
}

// changes are the writes that claim tasks, which it puts in their order. Where there are slots this is the queue's, and they ascend with it: of
// two that are after the same tasks, however many each wants, both come for the same task and slot first, and never wait crosswise.
func (c *claimer) changes(q *queueDoc, docs []taskDoc, free slots) []wire.Change {
	if free.limited() {
		q.order(docs)
	} else {
		sort.Slice(docs, func(a, b int) bool { return bytes.Compare(docs[a].ID[:], docs[b].ID[:]) < 0 })
	}
	changes := make([]wire.Change, len(docs))
	for i := range docs {
		t := &docs[i]
		if i > 0 && !free.limited() && t.Attempt == docs[i-1].Attempt && t.Gen == docs[i-1].Gen {
			changes[i] = changes[i-1]
		} else {
			changes[i].Where = onlyQueued(nil, "queue", q.ID, "node", nobodys, "attempt", wire.OrNone(t.Attempt), "gen", wire.OrNone(t.Gen))
			set := d("node", c.node, "instance", c.instance, "token", c.token)
			if free.queue != nil {
				set = append(set, bson.E{Key: "slot", Value: free.queue[i]})
			}
			if free.node != nil {
				set = append(set, bson.E{Key: "nodeslot", Value: free.node[i]})
			}
			if free.both != nil {
				set = append(set, bson.E{Key: "qnslot", Value: free.both[i]})
			}
			changes[i].Update = claims(set, c.turn.Start)
		}
		changes[i].ID = t.ID
	}
	return changes
}

// claims is the update that claims a task, and sets more of it.
func claims(set bson.D, start bool) bson.D {
	return append(takes(set, start), bson.E{Key: "$inc", Value: d("attempt", 1)})
}

// sound leaves out, of what was just claimed of each queue, the tasks of plans that were closed before, and returns how many these were. They
// end at once, and no more of them are looked for.
func (c *claimer) sound(ctx context.Context, byQueue [][]taskDoc) (ended int, err error) {
	var plans []bson.ObjectID
	for _, taken := range byQueue {
		for i := range taken {
			plans = append(plans, taken[i].Plan)
		}
	}
	read := c.readPlans
	if c.preview != nil && time.Since(c.preview.at) < c.trusts {
		read = c.loadPlans
	}
	if err := read(ctx, plans); err != nil {
		return 0, err
	}
	closed := map[bson.ObjectID]idList{}
	for k, taken := range byQueue {
		sound := taken[:0]
		for _, t := range taken {
			if p := c.known[t.Plan]; p != nil && p.Closing != plan.Open {
				closed[t.Plan] = append(closed[t.Plan], t.ID)
				ended++
			} else {
				sound = append(sound, t)
				c.busy[t.Plan] = true // it has not ended
			}
		}
		c.give(sound)
		byQueue[k] = sound
	}
	c.closed = slices.AppendSeq(c.closed, maps.Keys(closed))
	return ended, c.notStarted(ctx, closed, c.token)
}

// notStarted ends claimed tasks of closed plans, by plan, as if nobody had claimed them.
func (r *round) notStarted(ctx context.Context, closed map[bson.ObjectID]idList, token bson.ObjectID) error {
	for id, tasks := range closed {
		for _, ran := range []bool{true, false} { // the second of what is left
			end := (&stepDoc{step: engine.NotStarted(r.PlanView(r.known[id]), ran), claimed: true}).update(stillOpen, "").bson()
			if _, err := r.UpdateMany(ctx, r.tasks, ranAlso(d("_id", d("$in", tasks), "token", token), ran), end); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimed makes the node's answer: higher ranks first, then older tasks. A task that cannot run,
// because another program or a damage left it so, fails.
func (c *claimer) claimed(ctx context.Context, queues []queueDoc, byQueue [][]taskDoc) ([]protocol.ClaimedTask, error) {
	var out []protocol.ClaimedTask
	for k, tasks := range byQueue {
		for i := range tasks {
			claimed, err := c.handed(&tasks[i], &queues[k])
			if err == nil {
				out = append(out, claimed)
			} else if err := c.fail(ctx, tasks[i].ID, d("token", c.token), err.Error()); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(out, func(a, b protocol.ClaimedTask) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), bytes.Compare(a.Task.ID[:], b.Task.ID[:]))
	})
	c.taken += len(out)
	return out, nil
}

// handed makes of a claimed task, whose plan is known, what its node gets. It returns an error by which the task fails.
func (r *round) handed(t *taskDoc, q *queueDoc) (protocol.ClaimedTask, error) {
	if bool(t.Parameters) && len(t.Params.document) == 0 {
		return protocol.ClaimedTask{}, errParameters
	}
	def, err := t.definition()
	if err != nil {
		return protocol.ClaimedTask{}, err
	}
	params, err := t.params()
	if err != nil {
		return protocol.ClaimedTask{}, err
	}
	if params == nil {
		params = json.RawMessage("{}")
	}
	said := q.domain()
	claimed := protocol.ClaimedTask{
		Claim: protocol.Claim{Task: taskID(t.ID), Attempt: t.Attempt, Token: protocol.Token(t.Token)},
		Plan:  planID(t.Plan), Name: t.Name, Queue: plan.QueueID{ID: plan.ID(t.Queue)}, QueueName: string(q.Name), Plugin: string(q.Plugin),
		Settings: said.QueueSettings, Definition: def, Params: params, ByReference: t.ByRef, Reason: t.Reason, Rescues: t.Rescues,
		Index: t.Index,
	}
	if p := r.known[t.Plan]; p != nil {
		claimed.PlanName = p.title()
	}
	return claimed, nil
}
