package mongodb

import (
	"context"
	"time"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A change of a task counts its generation up. So a claim, or the end of a delay, of somebody who read
// the task before is not written. The same holds for a release, and nobody else would look at the
// parents of the task again: the change does.

// SetTask implements store.Admin.
func (s *Store) SetTask(ctx context.Context, id plan.TaskID, c rules.TaskChange) error {
	return s.inRound(ctx, 0, func(r *round) error { return engine.SetTask(ctx, r, id, &c) })
}

// TaskToSet implements engine.Setter.
func (r *round) TaskToSet(ctx context.Context, id plan.TaskID) (t *taskDoc, now plan.Task, busy bool, at time.Time, err error) {
	if t, err = r.task(ctx, id, d("stdout", 0, "stderr", 0, "output", 0, "large", 0)); err != nil {
		return nil, now, false, at, err
	}
	if _, damaged := t.definition(); damaged != nil {
		return nil, now, false, at, refusal.New(plan.ErrConflict, "task %s cannot be changed: %v", t.key(), damaged)
	}
	now = t.domain()
	parents, err := r.parentIDs(ctx, t)
	now.Needs = needs(parents)
	return t, now, t.Hold == holdAdding || !t.Gate.IsZero(), r.at, err
}

// Set implements engine.Setter.
func (r *round) Set(ctx context.Context, t *taskDoc, s *rules.TaskSet) (done bool, err error) {
	u := &update{inc: d("gen", 1), dates: d("mtime", true)}
	if err := t.setAs(s, u); err != nil {
		return false, err
	}
	delayed := t.Hold == holdDelay
	switch {
	case s.Back:
		u.put("status", true, s.Step.Status)
		u.put("hold", true, holdDelay)
	case delayed && s.NotBefore.IsZero():
		s.NotBefore = r.at // it ends below
	case t.Hold == holdNeeds:
		if err := r.job(ctx, workLook, t.ID); err != nil {
			return false, err
		}
		u.put("adding", true, t.ID)
	}
	u.put("notbefore", !s.NotBefore.IsZero(), s.NotBefore)
	seen := d("_id", t.ID, "status", t.Status, "hold", wire.OrNone(t.Hold), "gen", wire.OrNone(t.Gen), "attempt", wire.OrNone(t.Attempt), "gate", nil)
	if done, err = r.UpdateOne(ctx, r.tasks, seen, u.bson()); err != nil || !done {
		return done, err
	}
	if s.Back || delayed && s.NotBefore.After(r.at) {
		r.noteDue(s.NotBefore.Sub(r.at))
	} else if delayed {
		t.Gen++
		return true, r.endDelays(ctx, []taskDoc{*t})
	}
	return true, nil
}

// setAs gives the task the definition and the params of a change, and has the update write them.
func (t *taskDoc) setAs(s *rules.TaskSet, u *update) error {
	if err := t.setDefinition(s.Definition); err != nil {
		return err
	}
	u.put("def", len(t.Def) > 0, t.Def)
	u.put("subject", t.Subject != "", t.Subject)
	if s.Params == nil {
		return nil
	}
	params := s.Params
	if was, err := t.params(); err == nil && t.hasParents() && !t.ByRef {
		if params, err = rules.KeepInputs(params, was); err != nil {
			return err
		}
	}
	is := t.domain()
	is.Params = params
	if err := fits(&is); err != nil {
		return err
	}
	if err := t.setParams(params); err != nil {
		return err
	}
	u.put("params", true, t.Params)
	u.put("text", len(t.Text) > 0, t.Text)
	return nil
}
