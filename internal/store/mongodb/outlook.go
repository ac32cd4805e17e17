package mongodb

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	fewAsked   = 4   // of so many queues, and of so many plans of each, a preview has tasks to claim, mostSeen together
	mostServed = 100 // of how many instances a handle remembers the queues
)

// startSmall starts the round of a small turn, whose endings are written, with a preview.
func (r *round) startSmall(ctx context.Context, t *protocol.Turn, v *preview, ask asking) error {
	if v == nil {
		v = r.previewOf(t, r.queue)
		ask = r.opening(t.Instance, t, v)
	}
	queues, err := r.start(ctx, t.Instance, t.Slots > 0, v, ask)
	if err != nil {
		return err
	}
	r.serve(t, queues)
	return r.takePreview(ctx, v)
}

// previewOf returns a preview that is to be read, with what waits for these tasks.
func (r *round) previewOf(t *protocol.Turn, ends []parent) (v *preview) {
	v = &preview{at: time.Now(), outlooks: map[bson.ObjectID]*outlook{}}
	var plans idSet
	plans.add(r.only)
	if len(ends) > 0 && !slices.ContainsFunc(ends, func(p parent) bool { return !p.here || !p.of.IsZero() }) {
		v.ended = keys(ends)
		for _, p := range ends {
			plans.add(p.plan)
		}
	}
	above := v.ended
	for i := range r.guess.unsure {
		above = append(above, r.guess.unsure[i].ID)
	}
	if len(above) > 0 {
		v.stages = append(v.stages,
			tagged(r.tasks, "child", d("$match", onlyHeld(d("needs", d("$in", above)))), d("$limit", mostSeen+1), d("$project", childFields)),
			tagged(r.joins, "join", d("$match", d("needs", wire.AnyOf(above)))))
	}
	r.outlook(t, v, &plans)
	if v.plans = plans.list; len(v.plans) > 0 {
		v.stages = append(v.stages, tagged(r.plans, "plan", d("$match", d("_id", d("$in", v.plans))), d("$project", planFields)))
	}
	return v
}

// tagged is the stage that adds what a pipeline makes of a collection, each document under a name.
func tagged(c *mongo.Collection, name string, pipeline ...any) bson.D {
	return wire.Union(c, append(pipeline, d("$project", d("_id", 0, name, "$$ROOT"))))
}

// outlook adds what the turn is likely to claim, if it claims of few queues where nothing but their tasks counts. They are those of the
// instance's last turn. The plans of the tasks are added to plans.
func (r *round) outlook(t *protocol.Turn, v *preview, plans *idSet) {
	r.mu.Lock()
	queues := r.served[r.instance]
	limit, known := r.limits[r.node]
	r.mu.Unlock()
	wide := len(queues) > fewAsked || t.Slots*len(queues) > mostSeen
	if t.Slots <= 0 || wide || !known || limit.set || r.contended() || slices.ContainsFunc(queues, func(q queueDoc) bool {
		return !q.Unlimited || q.NodeThreads.n > 0 || q.rated()
	}) {
		return
	}
	if v.grouped = slices.ContainsFunc(queues, func(q queueDoc) bool { return q.grouped() }); v.grouped {
		v.stages = append(v.stages, tagged(r.groups, "group"))
	}
	c := claimer{round: r, turn: t, shares: cmp.Or(t.Shares, &protocol.Shares{})}
	for i := range queues {
		o := &outlook{queue: queues[i], parts: map[bson.ObjectID]*part{}, rest: map[bson.ObjectID][]taskDoc{}}
		ask := t.Slots + min(t.Slots, fewMarked) // the rest is for a guess
		one := &draw{queue: &o.queue, ask: ask, parts: map[plan.PlanID]*part{}}
		parts := []*part{{draw: one, ask: ask}}
		if known := c.sharing(one.queue); known != nil {
			o.scope = scopeOf(known, false)
			v.stages = append(v.stages, tagged(r.tasks, "share", o.looking(one.queue.ID)...))
			one.passed = maps.Clone(known.Of)
			if parts = one.deal(); len(parts) > fewAsked {
				parts = nil
			}
		}
		for _, p := range parts {
			o.parts[p.plan] = p
			plans.add(p.plan)
			v.stages = append(v.stages, c.next(p)...)
		}
		v.outlooks[one.queue.ID] = o
	}
}

// next are the stages that read what is next in a part. An aggregation cannot name the index of what it adds: there one stage for each side of
// an $or is faster than the $or.
func (c *claimer) next(p *part) (stages bson.A) {
	head := func(more ...bson.E) {
		stages = append(stages, tagged(c.tasks, "head", d("$match", append(c.waiting(p), more...)), d("$sort", p.queue.sort()), d("$limit", p.ask), d("$project", claimedFields)))
	}
	h, seeks := c.near(p)
	if h == nil {
		head()
	} else {
		for _, before := range h.before() {
			head(bson.E{Key: "$and", Value: bson.A{before}})
		}
		p.near = true
	}
	if seeks {
		stages = append(stages, tagged(c.tasks, "far", d("$match", c.waiting(p)), d("$sort", p.queue.sort()), d("$skip", c.reach), d("$limit", 1), d("$project", farFields)))
	}
	return stages
}

// takePreview takes what was read, now that it is known which queues the turn serves.
func (r *round) takePreview(ctx context.Context, v *preview) error {
	if len(v.children) > mostSeen {
		v.ended = nil
	}
	for _, q := range r.turn.queues {
		if o := v.outlooks[q.ID]; o != nil && !reflect.DeepEqual(o.queue, q) {
			delete(v.outlooks, q.ID)
		}
	}
	for _, o := range v.outlooks {
		for id, p := range o.parts {
			if p != nil && p.near && len(p.docs) < p.ask {
				o.parts[id] = nil
				r.locked(func() { delete(r.horizons, p.key()) })
			}
		}
	}
	r.preview, v.before = v, r.queued
	r.locked(func() {
		if r.served == nil || len(r.served) > mostServed {
			r.served = map[bson.ObjectID][]queueDoc{}
		}
		r.served[r.instance] = r.turn.queues
	})
	return r.takeGuessed(ctx, v)
}
