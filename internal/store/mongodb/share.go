package mongodb

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// sharing returns who takes turns in a queue; nil if nobody does.
func (c *claimer) sharing(q *queueDoc) *protocol.PlanShares {
	if !q.ranked() || !c.turn.Plan.IsZero() {
		return nil
	}
	return c.shares.Plans(plan.QueueID{ID: plan.ID(q.ID)})
}

// look has plans that have work in the queues join those that take turns there: new ones, or any.
func (c *claimer) look(ctx context.Context, draws []*draw, all bool) error {
	var pipeline bson.A
	var found []shareDoc
	for _, one := range draws {
		known, looked := c.sharing(one.queue), one.looked
		one.looked = false
		if known == nil || looked && !all {
			continue
		}
		for of := range c.news[one.queue.ID] {
			c.join(known, of)
		}
		of := scopeOf(known, all)
		one.all = of.all
		known.Claims++
		if seen := c.preview.lookFor(one.queue.ID, of, known); seen != nil {
			one.all = one.all || seen.all
			found = append(found, seen.found...)
			continue
		}
		stages := bson.A(of.looking(one.queue.ID))
		if pipeline == nil {
			pipeline = stages
		} else {
			pipeline = append(pipeline, wire.Union(c.tasks, stages))
		}
	}
	if pipeline != nil {
		some, err := wire.Aggregate[shareDoc](ctx, c.tasks, pipeline)
		if err != nil {
			return err
		}
		found = append(found, some...)
	}
	if len(found) == 0 {
		return nil
	}
	var plans idList
	odd := map[bson.ObjectID]bson.A{}
	for _, s := range found {
		id, other := s.plan()
		if plans = append(plans, id); other {
			odd[s.Key.Queue] = append(odd[s.Key.Queue], s.Key.Plan)
		}
	}
	if len(odd) > 0 {
		c.locked(func() { c.oddPlans = odd })
	}
	if err := c.loadPlans(ctx, plans); err != nil {
		return err
	}
	for _, one := range draws {
		for _, s := range found {
			if id, _ := s.plan(); s.Key.Queue == one.queue.ID {
				c.join(c.sharing(one.queue), id)
			}
		}
	}
	return nil
}

// planOf matches the plan of a part.
func (c *claimer) planOf(p *part) any {
	plans := c.plansOf(p)
	if len(plans) == 1 {
		return plans[0]
	}
	return d("$in", plans)
}

// plansOf returns what the tasks of a part have for their plan. A task of no plan has none, or what another program put there.
func (c *claimer) plansOf(p *part) bson.A {
	if !p.plan.IsZero() {
		return bson.A{p.plan}
	}
	var odd bson.A
	c.locked(func() { odd = c.oddPlans[p.queue.ID] })
	return append(bson.A{nil}, odd...)
}

func comparePlans(a, b plan.PlanID) int { return bytes.Compare(a.ID[:], b.ID[:]) }

// join has a plan take turns, unless nothing of it is claimed now.
func (c *claimer) join(known *protocol.PlanShares, id bson.ObjectID) {
	weight := plan.DefaultPriority
	if p := c.known[id]; p != nil {
		weight = cmp.Or(p.Priority, weight)
	}
	if !slices.Contains(c.closed, id) && (c.known[id] == nil || c.known[id].Closing == plan.Open) {
		rules.JoinTurns(known.Of, planID(id), weight)
	}
}

// pass counts the starts of tasks that were claimed of a queue. The plans of earlier claims are known, with their weights.
func (c *claimer) pass(q *queueDoc, claimed []taskDoc) {
	known := c.sharing(q)
	if known == nil {
		return
	}
	for i := range claimed {
		id := planID(claimed[i].Plan)
		if p := c.known[claimed[i].Plan]; p != nil && !known.Of[id].Away {
			c.join(known, p.ID)
		}
		rules.PassTurn(known.Of, id, 1)
	}
}

// leave has plans that were closed take no turns in a queue.
func (c *claimer) leave(q *queueDoc) {
	if known := c.sharing(q); known != nil {
		for _, id := range c.closed {
			rules.LeaveTurns(known.Of, planID(id))
		}
	}
}

// deal returns the parts of which more is to be read.
func (o *draw) deal() (parts []*part) {
	n := o.ask
	for _, p := range o.parts {
		n -= len(p.docs)
	}
	for _, id := range rules.Deal(o.passed, n, rules.MostDealt, comparePlans) {
		p := o.parts[id]
		if p == nil {
			p = &part{draw: o, turns: true, plan: oid(id.ID)}
			o.parts[id] = p
		}
		if !slices.Contains(parts, p) {
			p.ask = len(p.docs)
			parts = append(parts, p)
		}
		p.ask++
	}
	return parts
}

// heads reads what is next in queues, of each as many tasks as it is asked for: whole, or what is needed to choose some. Where plans
// take turns and some have less than is theirs, a further command reads more of the others.
func (c *claimer) heads(ctx context.Context, draws []*draw, whole bool) error {
	if err := c.look(ctx, draws, false); err != nil {
		return err
	}
	var parts []*part
	for _, one := range draws {
		one.docs, one.parts, one.passed = nil, map[plan.PlanID]*part{}, nil
		if known := c.sharing(one.queue); known != nil {
			one.passed = maps.Clone(known.Of)
			parts = append(parts, one.deal()...)
		} else {
			one.parts[plan.PlanID{}] = &part{draw: one, ask: one.ask}
			parts = append(parts, one.parts[plan.PlanID{}])
		}
	}
	for len(parts) > 0 {
		had := make([]int, len(parts))
		for k, p := range parts {
			had[k] = len(p.docs)
		}
		if err := c.readParts(ctx, parts, whole); err != nil {
			return err
		}
		short := map[*draw]bool{}
		for k, p := range parts {
			if id := planID(p.plan); p.turns {
				rules.PassTurn(p.passed, id, len(p.docs)-had[k])
				if len(p.docs) < p.ask {
					rules.LeaveTurns(p.passed, id)
					rules.LeaveTurns(c.sharing(p.queue).Of, id)
					short[p.draw] = true
				}
			}
		}
		parts = nil
		var again []*draw
		for _, one := range draws {
			if short[one] {
				more := one.deal()
				if parts = append(parts, more...); len(more) == 0 && !one.all {
					again = append(again, one)
				}
			}
		}
		if len(again) == 0 {
			continue
		}
		// None that is known has more: there may be older plans that others have queued something of.
		if err := c.look(ctx, again, true); err != nil {
			return err
		}
		for _, one := range again {
			for id, s := range c.sharing(one.queue).Of {
				if !s.Away && one.parts[id] == nil {
					one.passed[id] = s
				}
			}
			parts = append(parts, one.deal()...)
		}
	}
	for _, one := range draws {
		one.collect(c.sharing(one.queue))
	}
	return nil
}

// collect puts what was read of the parts in the order in which it is to be claimed.
func (o *draw) collect(known *protocol.PlanShares) {
	if known == nil {
		o.docs = o.parts[plan.PlanID{}].docs
		return
	}
	at := map[bson.ObjectID]float64{} // how far its plan has passed when it is its turn
	for id, p := range o.parts {
		share := known.Of[id]
		for i := range p.docs {
			at[p.docs[i].ID] = share.Passed + float64(i)/float64(max(1, share.Weight))
		}
		o.docs = append(o.docs, p.docs...)
	}
	slices.SortStableFunc(o.docs, func(a, b taskDoc) int {
		return cmp.Or(cmp.Compare(at[a.ID], at[b.ID]), bytes.Compare(a.Plan[:], b.Plan[:]))
	})
	o.docs = o.docs[:min(o.ask, len(o.docs))]
}

// partsAtOnce is how many parts are read at the same time.
const partsAtOnce = 8

// readParts reads what is next in the parts: together, or each with a command of its own. One pipeline for all of them can name the index only
// for the first, and the server then took three times as long to plan and sort 16 parts as to answer 16 commands.
func (c *claimer) readParts(ctx context.Context, parts []*part, whole bool) error {
	if c.preview.heads(parts, oid(c.turn.Plan.ID), c.leftAlone()) {
		return nil
	}
	if err := c.letBack(ctx); err != nil { // what is read now does not have them
		return err
	}
	fields := choiceFields
	if whole {
		fields = claimedFields
	}
	unread := slices.DeleteFunc(slices.Clone(parts), func(p *part) bool {
		if p.whole {
			p.docs = p.read[:min(len(p.read), p.ask)]
		}
		return p.whole
	})
	rest, err := c.readJoint(ctx, unread, fields)
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(partsAtOnce)
	for _, p := range rest {
		h, seeks := c.near(p)
		g.Go(func() error { return c.readNext(ctx, p, h, fields) })
		if seeks {
			g.Go(func() error { return c.seek(ctx, p) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, p := range parts {
		if err := c.mendNext(ctx, p, fields); err != nil {
			return err
		}
	}
	return nil
}

// near returns the horizon for a read of a part.
func (s *Store) near(p *part) (h *horizon, seeks bool) {
	if p.turns {
		s.locked(func() { h, seeks = s.horizons.near(p.key(), p.ask) })
	}
	return h, seeks
}

// farFields are what has to be known of a task that is to be a horizon.
var farFields = ones("rank queue plan")

// seek looks for the horizon of a part.
func (c *claimer) seek(ctx context.Context, p *part) error {
	filter, look := c.nextIn(p, farFields)
	look.Limit, look.Skip = 1, c.reach
	found, err := wire.Find[taskDoc](ctx, c.tasks, filter, look)
	if len(found) > 0 && !nameless(found[0]) {
		c.locked(func() { c.horizons.found(p.key(), found[0].Rank, found[0].ID, c.reach) })
	}
	return err
}

// readNext reads what is next in a part, before its horizon if it has one.
func (c *claimer) readNext(ctx context.Context, p *part, h *horizon, fields bson.D) (err error) {
	filter, look := c.nextIn(p, fields)
	if h != nil {
		near := append(filter[:len(filter):len(filter)], bson.E{Key: "$or", Value: h.before()})
		if p.docs, err = wire.Find[taskDoc](ctx, c.tasks, near, look); err != nil || len(p.docs) == p.ask {
			return err
		}
		c.locked(func() { delete(c.horizons, p.key()) })
	}
	p.docs, err = wire.Find[taskDoc](ctx, c.tasks, filter, look)
	return err
}
