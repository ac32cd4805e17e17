package sqlite

import (
	"cmp"
	"context"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// SetTask implements store.Admin. A retry in progress may take the task.
func (s *Store) SetTask(ctx context.Context, id plan.TaskID, c rules.TaskChange) error {
	return engine.Past(ctx, func() error {
		return s.write(ctx, func(t *tx) error { return engine.SetTask(ctx, t, id, &c) })
	})
}

func (t *tx) TaskToSet(_ context.Context, id plan.TaskID) (r *taskRow, now plan.Task, busy bool, at time.Time, err error) {
	row, err := t.taskByID(id)
	if err != nil {
		return nil, now, false, at, err
	}
	if p := t.plan(row.plan); t.noted(p) != 0 {
		return nil, now, false, at, t.s.halfway(p)
	}
	w, index := taskQuery(&store.TaskQuery{IDs: []plan.TaskID{id}})
	found, err := t.readTasks(w, index, store.TaskQuery{Needs: true, Params: true, Limit: 1})
	if err != nil || len(found) == 0 {
		return nil, now, false, at, cmp.Or(err, t.err)
	}
	return &row, found[0].Task, false, t.at, nil
}

// Set implements engine.Setter. The time of the change is later than that of the change before, also
// by a clock that stands still. Readers put the outputs of parents into the params.
func (t *tx) Set(_ context.Context, r *taskRow, s *rules.TaskSet) (done bool, err error) {
	def, err := packDefinition(s.Definition)
	if err != nil {
		return false, err
	}
	t.exec("UPDATE bodies SET def = ?, params = coalesce(?, params) WHERE n = ?", def, []byte(s.Params), r.n)
	if s.Params != nil {
		r.flags &^= flagBadParams // the rule took them
	}
	if t.changed = append(t.changed, r.n); s.Back {
		t.move(r, s.Step.Status, r.reason)
		r.hold = forInstant
	}
	if r.notBefore = 0; !s.NotBefore.IsZero() {
		r.notBefore = t.unset(s.NotBefore.UnixMicro())
	}
	t.exec("UPDATE tasks SET status = ?, gate = ?, flags = ?, not_before = ?, subject = ?, modified = max(?, modified + 1) WHERE n = ?",
		int64(r.status), r.hold, r.flags, r.notBefore, orNull(s.Definition.Subject), t.now, r.n)
	if r.waitsFor(forInstant) {
		r.rule, r.all = plan.AllDone, true // its parents have decided
		t.settle([]taskRow{*r})
	}
	return true, t.err
}
