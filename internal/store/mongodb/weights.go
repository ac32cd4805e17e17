package mongodb

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// weighted reports whether the queue may have a share of its own: a weight, or a group.
func (q *queueDoc) weighted() bool {
	return q.grouped() || strings.Contains(string(q.Settings), `"weight"`)
}

// sharers returns the queues among which a claim deals its starts by their weights; none if all have the same share. These are all that are
// served or, where these are many, those that are known to have work, and some that are found to.
func (c *claimer) sharers(ctx context.Context, t *protocol.Turn, served []queueDoc) ([]queueDoc, error) {
	if len(served) <= fewQueues {
		if !slices.ContainsFunc(served, func(q queueDoc) bool { return q.weighted() }) {
			return nil, nil
		}
		return served, nil
	}
	known := idsFrom(c.shares.WithWork(), func(id plan.QueueID) bson.ObjectID { return oid(id.ID) })
	docs, err := wire.Find[queueDoc](ctx, c.queues, d("$and", bson.A{d("_id", d("$in", known)), c.mayServe(t)}), wire.Query{})
	if err != nil {
		return nil, err
	}
	docs = onlyServed(docs, t, c.node)
	more, err := c.search(t).next(ctx, min(max(c.left, mostSought), atOnce))
	if err != nil {
		return nil, err
	}
	for _, q := range more {
		if !slices.Contains(known, q.ID) {
			docs = append(docs, q)
		}
	}
	if !slices.ContainsFunc(docs, func(q queueDoc) bool { return q.weighted() }) {
		return nil, nil
	}
	return docs, nil
}

// shareByWeight takes what is wanted from the queues by their weights and groups, by queue, and reports whether each may have more.
func (c *claimer) shareByWeight(ctx context.Context, queues []queueDoc) (byQueue [][]taskDoc, more bool, err error) {
	byQueue = make([][]taskDoc, len(queues))
	draws := make([]*draw, len(queues))
	for k := range queues {
		draws[k] = &draw{queue: &queues[k]}
	}
	if err := c.look(ctx, draws); err != nil {
		return nil, false, err
	}
	sharers := make([]rules.Sharer, len(queues))
	for k := range queues {
		q := queues[k].domain()
		sharers[k] = rules.Sharer{Queue: q.ID, Weight: q.Weight, Running: c.turn.Running[q.ID], Room: c.left}
		if c.groupsOf != nil {
			sharers[k].Groups = c.groupsOf(&queues[k])
		}
		if known := c.sharing(&queues[k]); known != nil && !rules.AnyTurns(known.Of) {
			sharers[k].Room = 0
		}
	}
	sharing := rules.NewSharing(c.shares, sharers, c.turn.Threads())
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
		for k, one := range draws {
			got[k], one.got = one.got, nil
			if len(got[k]) < one.want {
				sharing.Back(k, one.want-len(got[k]))
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
			byQueue[k] = append(byQueue[k], got[k]...)
		}
	}
	return byQueue, false, nil
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
		var err error
		if one.got, one.more, err = c.take(ctx, one.queue, one.want); err != nil {
			return err
		}
		c.left -= len(one.got)
	}
	return nil
}

// startable leaves out the queues that are in a paused group. It reads the groups once, if any queue
// is in one.
func (c *claimer) startable(ctx context.Context, queues []queueDoc) (_ []queueDoc, err error) {
	if !slices.ContainsFunc(queues, func(q queueDoc) bool { return q.grouped() }) {
		return queues, nil
	}
	if c.groupsOf == nil {
		_, groups, err := c.readGroups(ctx)
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
