package mongodb

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// weighted reports whether a queue may have a share of its own: a weight, or a group.
func weighted(q queueDoc) bool {
	return q.grouped() || strings.Contains(string(q.Settings), `"weight"`)
}

// offering returns what gives the queues to be asked, each once, some with each call. Each time a claim begins with another queue. If queues have
// weights, or the node runs more of one queue than of others, it gives all at once: those that are served or, where these are many, those that
// are known to have work, and some that a search finds.
func (c *claimer) offering(ctx context.Context, served []queueDoc) (next func(ctx context.Context, n int) ([]queueDoc, error), err error) {
	if len(served) <= fewQueues {
		if slices.ContainsFunc(served, weighted) || rules.Uneven(c.turn, len(served)) {
			return inParts(served, len(served)), nil
		}
		c.mu.Lock()
		c.rotation++
		first := c.rotation % max(1, len(served))
		c.mu.Unlock()
		return inParts(slices.Concat(served[first:], served[:first]), min(c.left, atOnce)), nil
	}
	s := c.search(c.turn)
	found, err := s.next(ctx, min(c.left, mostSought))
	if err != nil {
		return nil, err
	}
	uneven := rules.Uneven(c.turn, len(found)+len(c.shares.WithWork()))
	var byWeight bool
	c.locked(func() {
		c.weights = c.weights || slices.ContainsFunc(found, weighted)
		byWeight = c.weights || uneven
	})
	if byWeight {
		if found, err = c.withKnown(ctx, found); err != nil {
			return nil, err
		}
		weights := slices.ContainsFunc(found, weighted)
		c.locked(func() { c.weights = weights })
		return inParts(found, len(found)), nil
	}
	first := inParts(found, len(found))
	return func(ctx context.Context, n int) ([]queueDoc, error) {
		if some, err := first(ctx, n); len(some) > 0 {
			return some, err
		}
		return s.next(ctx, min(n, mostSought))
	}, nil
}

// inParts gives some queues first: a claim asks no more queues than it wants tasks, since it is likely that they have work. If they have not,
// it gives more with each further call.
func inParts(all []queueDoc, first int) func(context.Context, int) ([]queueDoc, error) {
	some := first
	return func(context.Context, int) (queues []queueDoc, err error) {
		n := min(len(all), some)
		queues, all, some = all[:n:n], all[n:], max(first, atOnce)
		return queues, nil
	}
}

// withKnown returns the queues, and before them those that the turn serves of which plans are known to have work.
func (c *claimer) withKnown(ctx context.Context, found []queueDoc) ([]queueDoc, error) {
	known := idsFrom(c.shares.WithWork(), func(id plan.QueueID) bson.ObjectID { return oid(id.ID) })
	docs, err := wire.Find[queueDoc](ctx, c.queues, d("$and", bson.A{d("_id", d("$in", known)), c.mayServe(c.turn)}), wire.Query{})
	if err != nil {
		return nil, err
	}
	docs = onlyServed(docs, c.turn, c.node)
	for _, q := range found {
		if !slices.Contains(known, q.ID) {
			docs = append(docs, q)
		}
	}
	return docs, nil
}

// share takes what is wanted from the queues by their weights and groups, by queue, and reports whether each may have more.
func (c *claimer) share(ctx context.Context, queues []queueDoc) (byQueue [][]taskDoc, more bool, err error) {
	byQueue = make([][]taskDoc, len(queues))
	draws := make([]*draw, len(queues))
	for k := range queues {
		draws[k] = &draw{queue: &queues[k]}
	}
	if err := c.look(ctx, draws, false); err != nil {
		return nil, false, err
	}
	sharers, lets := make([]rules.Sharer, len(queues)), map[string]int{}
	for k := range queues {
		draws[k].looked = true
		q := queues[k].domain()
		sharers[k] = rules.Sharer{Queue: q.ID, Weight: q.Weight, Running: c.turn.Running[q.ID]}
		if sharers[k].Room, err = c.rateRoom(ctx, &queues[k], c.left, lets); err != nil {
			return nil, false, err
		}
		if c.groupsOf != nil {
			sharers[k].Groups = c.groupsOf(&queues[k])
		}
		if known := c.sharing(&queues[k]); known != nil && !rules.AnyTurns(known.Of) {
			sharers[k].Room = 0
		}
	}
	sharing := rules.NewSharing(c.shares, sharers, c.turn.Threads(), lets)
	for closings := 0; c.left > 0 && !c.full && closings < tries; {
		for _, one := range draws {
			one.want, one.over = 0, false
		}
		dealt := 0
		for k := sharing.Next(); k >= 0; k = sharing.Next() {
			draws[k].want++
			if dealt++; dealt == c.left {
				break
			}
		}
		if dealt == 0 {
			return byQueue, false, nil
		}
		if err := c.drawDealt(ctx, draws); err != nil {
			return nil, false, err
		}
		got := make([][]taskDoc, len(draws))
		outrun, over := 0, false // how many tasks others were faster at; whether a queue has no more
		for k, one := range draws {
			if got[k], one.got = one.got, nil; len(got[k]) < one.want {
				sharing.Back(k, one.want-len(got[k]))
				outrun, over = outrun+one.want-len(got[k]), over || !one.more
			}
		}
		ended, err := c.sound(ctx, got)
		if err != nil {
			return nil, false, err
		}
		if ended > 0 {
			c.left += ended
			closings++
		}
		for k := range got {
			c.pass(&queues[k], got[k])
			c.leave(&queues[k])
			byQueue[k] = append(byQueue[k], got[k]...)
		}
		if outrun > 0 && !over && outrun*4 <= dealt { // the next turn has the rest: other queues would have more than their part
			return byQueue, false, nil
		}
	}
	return byQueue, !slices.ContainsFunc(draws, func(d *draw) bool { return d.want > 0 && !d.more }), nil
}

// drawDealt claims from queues, of each as much as it was dealt.
func (c *claimer) drawDealt(ctx context.Context, draws []*draw) error {
	var open []*draw
	want := 0
	for _, one := range draws {
		if one.want > 0 && !c.narrow(one.queue) {
			open, want = append(open, one), want+one.want
		}
	}
	if err := c.together(ctx, open, want); err != nil {
		return err
	}
	for _, one := range draws {
		if one.want == 0 || c.full || !c.narrow(one.queue) {
			continue
		}
		err := c.letBack(ctx) // they have no slots, and no rate was spent for them
		if err == nil {
			one.got, one.more, err = c.take(ctx, one.queue, one.want)
		}
		if err != nil {
			return err
		}
		c.left -= len(one.got)
	}
	return nil
}

// groupsNow returns the groups of queues, once as the preview has them.
func (c *claimer) groupsNow(ctx context.Context) (groups []plan.Group, err error) {
	if v := c.preview; v != nil && v.grouped {
		v.grouped = false
		return v.groups, nil
	}
	_, groups, err = c.readGroups(ctx)
	return groups, err
}

// startable leaves out the queues that are in a paused group. It reads the groups once, if any queue
// is in one.
func (c *claimer) startable(ctx context.Context, queues []queueDoc) (_ []queueDoc, err error) {
	if !slices.ContainsFunc(queues, func(q queueDoc) bool { return q.grouped() }) {
		return queues, nil
	}
	if c.groupsOf == nil {
		groups, err := c.groupsNow(ctx)
		if err != nil {
			return nil, err
		}
		c.groupsOf = func(q *queueDoc) []*plan.Group {
			if !q.grouped() {
				return nil
			}
			return rules.GroupsOf(groups, q.domain().Group)
		}
	}
	return slices.DeleteFunc(slices.Clone(queues), func(q queueDoc) bool { return rules.PausedGroup(c.groupsOf(&q)) != nil }), nil
}
