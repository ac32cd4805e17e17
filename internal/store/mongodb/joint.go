package mongodb

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// One command reads what is next of many small plans: with 16 commands for as many plans a claim of 256 tasks took twice as long. It has one
// limit for all of them. If most of what comes first is of few plans, claims read each plan by itself for a while.

const (
	fewParts   = 4  // fewer parts are read each by itself
	mostJoint  = 16 // so many parts of one queue are read together, or half as many of several: MongoDB merges up to 200 ranges of an index
	moreJoint  = 2  // how many times as many tasks are read as the claim asks for, since parts have more
	apartAfter = 64 // how many claims read each plan by itself after a command that was of little use
)

// readJoint reads parts together, and returns those of which it has not read enough.
func (c *claimer) readJoint(ctx context.Context, parts []*part, fields bson.D) (rest []*part, err error) {
	apart := len(parts) < fewParts || slices.ContainsFunc(parts, func(p *part) bool { return !p.turns })
	c.locked(func() {
		if !apart && c.apart > 0 {
			c.apart--
			apart = true
		}
	})
	if apart {
		return parts, nil
	}
	most := mostJoint
	if slices.ContainsFunc(parts, func(p *part) bool { return p.queue.ID != parts[0].queue.ID }) {
		most /= 2
	}
	for some := range slices.Chunk(parts, most) {
		left, err := c.readTogether(ctx, some, fields)
		if err != nil {
			return nil, err
		}
		rest = append(rest, left...)
	}
	if len(rest) > len(parts)/2 {
		c.locked(func() { c.apart = apartAfter })
	}
	return rest, nil
}

// readTogether reads these parts with one command.
func (c *claimer) readTogether(ctx context.Context, parts []*part, fields bson.D) (rest []*part, err error) {
	var queues idSet
	var plans bson.A
	ask := 0
	for _, p := range parts {
		queues.add(p.queue.ID)
		plans = append(plans, c.plansOf(p)...)
		ask += p.ask
	}
	filter, look := c.nextIn(parts[0], fields)
	for i := range filter {
		switch filter[i].Key {
		case "queue":
			filter[i].Value = d("$in", queues.list)
		case "plan":
			filter[i].Value = d("$in", plans)
		}
	}
	look.Limit = moreJoint * ask
	docs, err := wire.Find[taskDoc](ctx, c.tasks, filter, look)
	if err != nil {
		return nil, err
	}
	of := map[ofPlan][]taskDoc{}
	for _, t := range docs {
		key := ofPlan{t.Queue, t.Plan}
		of[key] = append(of[key], t)
	}
	for _, p := range parts {
		p.docs, p.whole = of[p.key()], len(docs) < look.Limit
		if !p.whole && len(p.docs) < p.ask {
			rest = append(rest, p)
			continue
		}
		p.read = p.docs
		p.docs = p.docs[:min(len(p.docs), p.ask)]
	}
	return rest, nil
}
