package mongodb

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// passBy is how long a node that has enough to do lets lie what is to be queued. A task that is held costs a claim nothing, while servers
// that do not keep order in indexes sort all that is queued.
const passBy = time.Second

// An opening is what a round is begun with.
type opening struct {
	node   *instanceDoc // nil: the instance is not registered
	left   []workDoc    // by earlier rounds: the instance's own and what is nobody's
	queues []queueDoc   // that a turn may serve, if it was asked for: fewQueues or less if these are all
	audit  *auditDoc    // of a sweep; nil: there was none
}

// open reads the beginning of a round in one command. The handle knows the node's name only after
// it has seen the instance. Before that, the queues may include some that the node does not serve.
func (s *Store) open(ctx context.Context, instance plan.InstanceID, t *protocol.Turn) (o opening, err error) {
	type part struct {
		ID          bson.ObjectID `bson:"_id"`
		Node        plan.NodeName `bson:"node"`
		Work, Queue bson.Raw
		Audit       bson.Raw
	}
	pipeline := bson.A{
		d("$match", d("_id", oid(instance.ID), "gone", nil)), d("$project", ones("node")),
		wire.Union(s.work, bson.A{
			d("$match", d("owner", d("$in", bson.A{nil, oid(instance.ID)}), "_id", wire.Addressable)),
			d("$sort", d("_id", 1)), d("$limit", mostResumed), d("$project", d("work", "$$ROOT")),
		}),
	}
	if t == nil {
		pipeline = append(pipeline, wire.Union(s.meta, bson.A{d("$match", d("_id", auditKey)), d("$project", d("_id", 0, "audit", "$$ROOT"))}))
	} else if len(t.Plugins) > 0 && t.Slots > 0 {
		pipeline = append(pipeline, wire.Union(s.queues, bson.A{
			d("$match", s.mayServe(t)), d("$sort", d("_id", 1)), d("$limit", fewQueues+1), d("$project", d("queue", "$$ROOT")),
		}))
	}
	parts, err := wire.Aggregate[part](ctx, s.instances, pipeline)
	if err != nil {
		return o, err
	}
	for _, p := range parts {
		switch {
		case p.Work != nil:
			o.left = append(o.left, workDoc{})
			err = wire.Decode(p.Work, &o.left[len(o.left)-1])
		case p.Audit != nil:
			o.audit = &auditDoc{}
			err = wire.Decode(p.Audit, o.audit)
		case p.Queue != nil:
			o.queues = append(o.queues, queueDoc{})
			err = wire.Decode(p.Queue, &o.queues[len(o.queues)-1])
		default:
			o.node = &instanceDoc{ID: p.ID, Node: p.Node}
		}
		if err != nil {
			return o, wire.Translate(err)
		}
	}
	return o, nil
}

// begin begins a round for an instance, with the remaining work of earlier rounds of anybody. A
// busy instance postpones, for a while, work without an owner that would only queue more tasks.
// begin returns plan.ErrInstanceGone if the instance is not registered. For a turn it also returns
// the queues that it may claim from. The caller calls end.
func (s *Store) begin(ctx context.Context, instance plan.InstanceID, budget int, busy bool, t *protocol.Turn) (r *round, queues []queueDoc, err error) {
	if r, err = s.newRound(ctx, budget); err != nil {
		return nil, nil, err
	}
	o, err := s.open(ctx, instance, t)
	if err != nil {
		return nil, nil, err
	}
	i := o.node
	if i == nil {
		return nil, nil, fmt.Errorf("instance %s: %w", instance, plan.ErrInstanceGone)
	}
	r.instance, r.node, r.audited = i.ID, i.Node, o.audit
	s.mu.Lock()
	s.nodeOf[instance] = i.Node
	busy = busy && s.ample && time.Since(s.resumed) < passBy
	if !busy {
		s.resumed = time.Now()
	}
	s.mu.Unlock()
	for _, w := range o.left {
		if w.Owner.IsZero() && busy && (w.Kind == workRelease || w.Kind == workLook) {
			r.passed = true
			continue
		}
		if w.Owner.IsZero() {
			err = r.takeNote(ctx, w)
		} else if s.take(w.ID) {
			r.resume(w)
		}
		if err != nil {
			r.end()
			return nil, nil, err
		}
	}
	return r, o.queues, nil
}

// Budget implements engine.Worker.
func (r *round) Budget() *int { return &r.budget }

// Remembered implements engine.Worker. The round has taken up what earlier ones left.
func (r *round) Remembered(context.Context) (children, jobs bool, err error) {
	return false, len(r.jobs) > 0, nil
}

// Release implements engine.Worker.
func (r *round) Release(ctx context.Context) error {
	for len(r.queue) > 0 && r.budget > 0 {
		if err := r.release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ReleaseKept implements engine.Worker.
func (r *round) ReleaseKept(context.Context) (more bool, err error) { return false, nil }

// Job implements engine.Worker.
func (r *round) Job(ctx context.Context) (was bool, err error) {
	if len(r.jobs) == 0 {
		return false, nil
	}
	done, err := r.work1(ctx, &r.jobs[0])
	if err == nil && done {
		r.docs = append(r.docs, r.jobs[0])
		r.jobs = r.jobs[1:]
	}
	return true, err
}

// Portion implements engine.Worker. Nobody waits for a round.
func (r *round) Portion() int { return max(r.budget, 1) }

// Yield implements engine.Worker.
func (r *round) Yield() bool { return false }

// work1 does one piece of work as far as the budget reaches, and reports whether it is done.
func (r *round) work1(ctx context.Context, w *workDoc) (done bool, err error) {
	switch w.Kind {
	case workLook:
		return r.look(ctx, w.Target)
	case workItems:
		return r.makeItems(ctx, w.Target)
	case workCancel:
		w.From, done, err = r.cancelItems(ctx, w.Target, w.From)
		return done, err
	case workClose:
		return r.clear(ctx, w.Target)
	}
	return true, nil
}

// Keep implements engine.Worker. The next round of any instance takes up what is left.
func (r *round) Keep(ctx context.Context) (more bool, err error) {
	more = len(r.queue)+len(r.jobs) > 0
	left := workDoc{ID: bson.NewObjectID(), Kind: workRelease}
	for _, e := range r.queue {
		switch {
		case e.own && !e.known && !e.many:
			r.unsure = append(r.unsure, e.id) // nobody else is to find that it has not ended yet
			continue
		case len(left.Tasks) == 0:
			left.Many, left.Paged, left.After = e.many, e.paged, e.after
		}
		left.Tasks = append(left.Tasks, e.id)
	}
	for _, w := range []workDoc{left, {ID: bson.NewObjectID(), Owner: r.instance, Kind: workRelease, Tasks: r.unsure}} {
		if len(w.Tasks) == 0 {
			continue
		}
		if _, err := r.Insert(ctx, r.work, w); err != nil {
			return false, err
		}
	}
	for _, w := range r.jobs {
		let := d("$unset", ones("owner"))
		if w.From > 0 {
			let = append(let, bson.E{Key: "$set", Value: d("from", w.From)})
		}
		if _, err := r.UpdateOne(ctx, r.work, d("_id", w.ID), let); err != nil {
			return false, err
		}
	}
	return more, nil
}

// wrapUp ends plans, and then deletes what says that there is work, which has been done or was left.
func (r *round) wrapUp(ctx context.Context) error {
	if err := r.endPlans(ctx); err != nil || len(r.docs) == 0 {
		return err
	}
	ids := idsFrom(r.docs, func(w workDoc) bson.ObjectID { return w.ID })
	_, err := r.Remove(ctx, r.work, d("_id", d("$in", ids)))
	return err
}

// inRound is a call of Admin in a round of its own, which then does what the call left to do.
func (s *Store) inRound(ctx context.Context, budget int, call func(*round) error) error {
	r, err := s.newRound(ctx, budget)
	if err != nil {
		return err
	}
	defer r.end()
	if err := call(r); err != nil {
		return err
	}
	return r.finishUp(ctx)
}

// finishUp runs and leaves, for calls that do not say what is left.
func (r *round) finishUp(ctx context.Context) error {
	if _, err := engine.Work(ctx, r); err != nil {
		return err
	}
	if err := r.wrapUp(ctx); err != nil {
		return err
	}
	return r.wake(ctx)
}
