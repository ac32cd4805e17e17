package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// takenFields are what a take has to know of a task, and an ending.
var takenFields = slices.Concat(claimedFields, d("status", 1, "node", 1, "instance", 1, "cancel", 1, "last", 1))

// Take implements store.Node. A task whose claim has no token was claimed by another program.
func (s *Store) Take(ctx context.Context, k protocol.Take) (protocol.ClaimedTask, error) {
	claimed, err := engine.Take(ctx, &k, func(do func(engine.Taker[*ending]) error) error {
		r, err := s.newRound(ctx, 0)
		if err != nil {
			return err
		}
		defer r.end()
		if err := do(r); err != nil {
			return err
		}
		if err := r.wrapUp(ctx); err != nil {
			return err
		}
		return r.wake(ctx)
	})
	if err != nil {
		return protocol.ClaimedTask{}, fmt.Errorf("take of task %s: %w", k.Task, err)
	}
	return claimed, nil
}

// ToTake implements engine.Taker.
func (r *round) ToTake(ctx context.Context, k *protocol.Take) (e *ending, v engine.Taken, err error) {
	i, err := wire.FindOne[instanceDoc](ctx, r.instances, d("_id", oid(k.Instance.ID), "gone", nil), wire.Query{Fields: d("node", 1)})
	if err == nil && i == nil {
		err = fmt.Errorf("instance %s: %w", k.Instance, plan.ErrInstanceGone)
	}
	if err != nil {
		return nil, v, err
	}
	r.taking.by = i
	t, err := wire.FindOne[taskDoc](ctx, r.tasks, d("_id", oid(k.Task.ID)), wire.Query{Fields: takenFields})
	if err == nil && t == nil {
		err = plan.ErrNotFound
	}
	if err != nil {
		return nil, v, err
	}
	v.By = plan.Instance{ID: instanceID(i.ID), Node: i.Node}
	v.Task = plan.Task{ID: k.Task, Name: t.Name, Status: t.Status, Reason: t.Reason, Node: plan.NodeName(t.Node), Cancel: t.Cancel}
	if !t.Token.IsZero() {
		v.Task.Instance = instanceID(t.Instance)
		other, err := wire.FindOne[instanceDoc](ctx, r.instances, d("_id", t.Instance), wire.Query{Fields: d("runner", 1)})
		if err != nil {
			return nil, v, err
		}
		v.Other = other != nil && other.Runner
	}
	return &ending{task: t}, v, nil
}

// Take implements engine.Taker.
func (r *round) Take(ctx context.Context, e *ending, start *rules.Step) (taken bool, err error) {
	r.taking.q, err = wire.FindOne[queueDoc](ctx, r.queues, d("_id", e.task.Queue), wire.Query{})
	if err == nil && r.taking.q == nil {
		err = fmt.Errorf("its queue %s: %w", e.task.Queue.Hex(), plan.ErrNotFound)
	}
	if err != nil {
		return false, err
	}
	return r.takeTask(ctx, r.taking.by, e.task, start)
}

// Handed implements engine.Taker. Another program that runs the task reads the outputs of its parents
// in its params.
func (r *round) Handed(ctx context.Context, e *ending, k *protocol.Take) (protocol.ClaimedTask, error) {
	if !k.Start && e.task.ByRef {
		if err := r.copyWhole(ctx, e.task); err != nil {
			return protocol.ClaimedTask{}, err
		}
	}
	return r.takenTask(ctx, e.task, r.taking.q)
}

// copyWhole copies the outputs of a taken task's parents into its params, because another program
// runs it and reads nothing else. If they do not fit, the task fails.
func (r *round) copyWhole(ctx context.Context, t *taskDoc) error {
	set, err := r.wholeParams(ctx, t)
	if _, fails := errors.AsType[damage](err); fails || errors.Is(err, plan.ErrTooMuchInput) {
		return r.failTaken(ctx, t, d("token", t.Token), err)
	}
	if err != nil {
		return err
	}
	kept, misfits, err := r.BulkEach(ctx, r.tasks, []wire.Change{{ID: t.ID, Where: d("token", t.Token), Update: d("$set", set, "$unset", d("byref", 1, "ours", 1))}})
	switch {
	case err == nil && len(misfits) > 0:
		return r.failTaken(ctx, t, d("token", t.Token), misfits[0].Err)
	case err == nil && kept == 0:
		return plan.ErrConflict
	}
	return err
}

// wholeParams returns the fields that keep the params of a task with all outputs of its parents in them, and sets those of t.
func (r *round) wholeParams(ctx context.Context, t *taskDoc) (bson.D, error) {
	inputs, err := r.Inputs(ctx, taskID(t.ID))
	if err != nil {
		return nil, err
	}
	params, err := t.params()
	if err == nil {
		params, err = rules.Deliver(params, inputs)
	}
	if err != nil {
		return nil, damage{err}
	}
	t.ByRef = false
	return t.wholeFields(params)
}

// takeTask makes the task the instance's, if it is still as it was read, and changes t likewise. It reports whether it is.
func (r *round) takeTask(ctx context.Context, i *instanceDoc, t *taskDoc, start *rules.Step) (taken bool, err error) {
	foreign, has := t.Token.IsZero(), any(t.Token)
	token, attempt, update := t.Token, t.Attempt, takes
	switch {
	case foreign:
		if err := r.mend(ctx, []taskDoc{*t}, onlyClaimed); err != nil {
			return false, err
		}
		has = d("$not", d("$type", "objectId")) // there may be anything else
		token, attempt, update = bson.NewObjectID(), attempt+1, claims
	case t.Instance != i.ID:
		token = bson.NewObjectID()
	case start == nil:
		return true, nil
	}
	where := onlyClaimed(nil, "node", i.Node, "token", has, "attempt", wire.OrNone(t.Attempt), "gen", wire.OrNone(t.Gen))
	where = addIf(where, !t.Cancel, "cancel", d("$ne", true)) // a mark that a person sets meanwhile is looked at again
	n, misfits, err := r.BulkEach(ctx, r.tasks, []wire.Change{{ID: t.ID, Where: where, Update: update(d("instance", i.ID, "token", token), start != nil)}})
	if err == nil && len(misfits) > 0 {
		err = r.failTaken(ctx, t, where, fmt.Errorf("it cannot be claimed: %w", misfits[0].Err))
	}
	if t.Instance, t.Token, t.Attempt = i.ID, token, attempt; start != nil {
		t.Status = start.Status
	}
	return n > 0, err
}

// takenTask makes of a task that was taken what its runner gets.
func (r *round) takenTask(ctx context.Context, t *taskDoc, q *queueDoc) (protocol.ClaimedTask, error) {
	if err := r.readPlans(ctx, []bson.ObjectID{t.Plan}); err != nil {
		return protocol.ClaimedTask{}, err
	}
	claimed, err := r.handed(t, q)
	if err != nil {
		return protocol.ClaimedTask{}, r.failTaken(ctx, t, d("token", t.Token), err)
	}
	return claimed, nil
}

// failTaken ends a task that cannot be run as it is, and returns the error that says so.
func (r *round) failTaken(ctx context.Context, t *taskDoc, where bson.D, why error) error {
	if err := r.fail(ctx, t.ID, where, why.Error()); err != nil {
		return err
	}
	return refusal.New(plan.ErrConflict, "task %q failed: %v", t.key(), why)
}
