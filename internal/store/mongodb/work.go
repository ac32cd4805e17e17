package mongodb

import (
	"context"
	"fmt"
	"slices"
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

// open reads the beginning of a round in one command: what earlier rounds left, the instance's own
// and what is nobody's, and for a turn the queues that it may serve, fewQueues or less if these are
// all. The handle knows the node's name only after it has seen the instance. Before that, the queues
// may include some that the node does not serve.
func (r *round) open(ctx context.Context, instance plan.InstanceID, v *preview, ask asking) (left []workDoc, queues []queueDoc, err error) {
	parts, err := ask(ctx)
	if err != nil {
		return nil, nil, err
	}
	there := false
	for _, p := range parts {
		switch {
		case r.tell(v, &p.Told, &err):
		case p.Work != nil:
			left = append(left, decoded[workDoc](p.Work, &err))
		case p.Audit != nil:
			audit := decoded[auditDoc](p.Audit, &err)
			r.audited = &audit
		case p.Queue != nil:
			queues = append(queues, decoded[queueDoc](p.Queue, &err))
		default:
			there, r.instance, r.node = true, p.ID, p.Node
		}
	}
	if err == nil && !there {
		err = fmt.Errorf("instance %s: %w", instance, plan.ErrInstanceGone)
	}
	return left, queues, wire.Translate(err)
}

// opened is a part of what open reads.
type opened struct {
	ID          bson.ObjectID `bson:"_id"`
	Node        plan.NodeName `bson:"node"`
	Work, Queue bson.Raw
	Audit       bson.Raw

	Told told `bson:",inline"` // of a preview
}

// asking is the command of open.
type asking func(context.Context) ([]opened, error)

// opening returns the command of open.
func (r *round) opening(instance plan.InstanceID, t *protocol.Turn, v *preview) asking {
	pipeline := bson.A{
		d("$match", d("_id", oid(instance.ID), "gone", nil)), d("$project", ones("node")),
		wire.Union(r.work, bson.A{
			d("$match", d("owner", d("$in", bson.A{nil, oid(instance.ID)}), "_id", wire.Addressable)),
			d("$sort", d("_id", 1)), d("$limit", mostResumed), d("$project", d("work", "$$ROOT")),
		}),
	}
	if t == nil {
		pipeline = append(pipeline, wire.Union(r.meta, bson.A{d("$match", d("_id", auditKey)), d("$project", d("_id", 0, "audit", "$$ROOT"))}))
	} else if len(t.Plugins) > 0 && t.Slots > 0 {
		pipeline = append(pipeline, wire.Union(r.queues, bson.A{
			d("$match", r.mayServe(t)), d("$sort", d("_id", 1)), d("$limit", fewQueues+1), d("$project", d("queue", "$$ROOT")),
		}))
	}
	if v != nil {
		pipeline = append(pipeline, v.stages...)
	}
	return func(ctx context.Context) ([]opened, error) { return wire.Aggregate[opened](ctx, r.instances, pipeline) }
}

// begin begins a round for an instance, with the remaining work of earlier rounds of anybody. A
// busy instance postpones, for a while, work without an owner that would only queue more tasks.
// begin returns plan.ErrInstanceGone if the instance is not registered. For a turn it also returns
// the queues that it may claim from. The caller calls end.
func (s *Store) begin(ctx context.Context, instance plan.InstanceID, budget int, busy bool, t *protocol.Turn) (r *round, queues []queueDoc, err error) {
	if r, err = s.newRound(ctx, budget); err == nil {
		queues, err = r.start(ctx, instance, busy, nil, r.opening(instance, t, nil))
	}
	if err != nil {
		r.end()
		return nil, nil, err
	}
	return r, queues, nil
}

// start is what begin does with a round. It reads a preview, too, if there is to be one.
func (r *round) start(ctx context.Context, instance plan.InstanceID, busy bool, v *preview, ask asking) (queues []queueDoc, err error) {
	left, queues, err := r.open(ctx, instance, v, ask)
	if err != nil {
		return nil, err
	}
	r.locked(func() {
		r.nodeOf[instance] = r.node
		busy = busy && r.ample && time.Since(r.resumed) < passBy
		if !busy {
			r.resumed = time.Now()
		}
	})
	for _, w := range left {
		if w.Owner.IsZero() && busy && (w.Kind == workRelease || w.Kind == workLook) {
			r.passed = true
			continue
		}
		if w.Owner.IsZero() {
			err = r.takeNote(ctx, w)
		} else if r.take(w.ID) {
			r.resume(w)
		}
		if err != nil {
			return nil, err
		}
	}
	return queues, nil
}

// Budget implements engine.Worker.
func (r *round) Budget() *int { return &r.budget }

// Remembered implements engine.Worker. The round takes up what earlier ones left as it begins, in a small turn once the endings are written.
func (r *round) Remembered(ctx context.Context) (children, jobs bool, err error) {
	if read := r.turn.unread; read != nil {
		r.turn.unread = nil
		if err := read(ctx); err != nil {
			return false, false, err
		}
	}
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
	done, w := true, &r.jobs[0]
	switch w.Kind {
	case workLook:
		done, err = r.look(ctx, w.Target)
	case workItems:
		done, err = r.makeItems(ctx, w.Target)
	case workCancel:
		done, err = r.cancelItems(ctx, w)
	case workClose:
		done, err = r.clear(ctx, w.Target)
	}
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
	g := r.Series(ctx)
	for _, w := range []workDoc{left, {ID: bson.NewObjectID(), Owner: r.instance, Kind: workRelease, Tasks: r.unsure}} {
		if len(w.Tasks) > 0 {
			g.Insert(r.work, w)
		}
	}
	for _, w := range r.jobs {
		let := d("$unset", ones("owner"))
		let = addIf(let, w.From > 0, "$set", d("from", w.From))
		g.UpdateOne(r.work, d("_id", w.ID), let)
	}
	return more, g.Err
}

// wrapUp ends plans, and then deletes what says that there is work, which has been done or was left.
func (r *round) wrapUp(ctx context.Context) error {
	for begun := -1; begun < r.begun; { // what a plan released may have ended at once
		begun = r.begun
		if err := r.endPlans(ctx); err != nil {
			return err
		}
		if r.begun > begun {
			if _, err := engine.Work(ctx, r); err != nil {
				return err
			}
		}
	}
	if err := r.unmarkAll(ctx); err != nil || len(r.docs) == 0 {
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
	_, err := engine.Work(ctx, r)
	if err == nil {
		err = r.wrapUp(ctx)
	}
	if err == nil {
		err = r.wake(ctx)
	}
	return err
}

// wake moves the counter that nodes read with their heartbeat, if this round queued more than it took itself, or what it cannot take.
func (r *round) wake(ctx context.Context) error {
	return r.wakeOthers(ctx, r.queued > r.taken || r.forOthers)
}

// wakeOthers moves the counter for a reason of now, or for one that came too soon after the last.
func (s *Store) wakeOthers(ctx context.Context, why bool) error {
	s.mu.Lock()
	s.owed = s.owed || why
	now := s.owed && time.Since(s.woken) >= wakeEvery
	if now {
		s.owed, s.woken = false, time.Now()
	}
	s.mu.Unlock()
	if !now {
		return nil
	}
	return s.Upsert(ctx, s.meta, d("_id", "wake"), d("$inc", d("n", int64(1))))
}

// isOver reports whether the one plan of a node has ended, or is not there any more.
func (s *Store) isOver(ctx context.Context, only plan.PlanID) (bool, error) {
	if only.IsZero() {
		return false, nil
	}
	p, err := wire.FindOne[planDoc](ctx, s.plans, d("_id", oid(only.ID)), wire.Query{Fields: ones("state")})
	return err == nil && (p == nil || p.State.Ended()), err
}

// planOver is isOver where the preview may tell.
func (r *round) planOver(ctx context.Context, only plan.PlanID) (bool, error) {
	if r.preview == nil || !slices.Contains(r.preview.plans, oid(only.ID)) {
		return r.isOver(ctx, only)
	}
	p := r.known[oid(only.ID)]
	return p == nil || p.State.Ended() || slices.ContainsFunc(r.over, func(e protocol.EndedPlan) bool { return e.ID == only }), nil
}

// wakeEvery is how often one process wakes the others at most: they read the counter once a second.
const wakeEvery = 250 * time.Millisecond
