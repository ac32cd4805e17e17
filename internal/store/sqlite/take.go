package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// holderOf is what a take has to know of a task besides its row: its name, and the instance that has it.
const holderOf = "SELECT t.name, i.id, i.node, i.body FROM tasks AS t LEFT JOIN instances AS i ON i.n = t.instance WHERE t.n = ?"

func (s *Store) Take(ctx context.Context, k protocol.Take) (protocol.ClaimedTask, error) {
	return engine.Take(ctx, &k, func(do func(engine.Taker[*taskRow]) error) error {
		return s.write(ctx, func(t *tx) error { return do(t) })
	})
}

func (t *tx) ToTake(_ context.Context, k *protocol.Take) (r *taskRow, v engine.Taken, err error) {
	if t.by, err = t.instance(k.Instance); err != nil {
		return nil, v, err
	}
	row, err := t.taskByID(k.Task)
	if err != nil {
		return nil, v, err
	}
	v.By = plan.Instance{ID: t.by.id, Node: t.by.node}
	v.Task = plan.Task{ID: row.id, Status: row.status, Reason: row.reason, Cancel: row.cancel}
	if h := t.query(holderOf, row.n); h.one() {
		v.Task.Name = h.text(0)
		if !h.null(1) {
			var holder plan.Instance
			v.Task.Instance, v.Task.Node = plan.InstanceID{ID: h.id(1)}, plan.NodeName(h.text(2))
			if err := json.Unmarshal(h.bytes(3), &holder); err != nil {
				return nil, v, fmt.Errorf("instance %s: %w", v.Task.Instance, err)
			}
			v.Other = holder.Runner
		}
	}
	t.holder = v.Task.Instance
	return &row, v, t.err
}

func (t *tx) Take(ctx context.Context, r *taskRow, start *rules.Step) (taken bool, err error) {
	if t.holder != t.by.id {
		r.token = t.s.newToken()
		t.exec("UPDATE tasks SET token = ?, instance = ?, modified = ? WHERE n = ?", r.token, t.by.n, t.now, r.n)
		t.changed = append(t.changed, r.n)
	}
	if start != nil {
		return true, t.Start(ctx, []*taskRow{r}, *start)
	}
	return true, t.err
}

func (t *tx) Handed(_ context.Context, r *taskRow, _ *protocol.Take) (protocol.ClaimedTask, error) {
	return t.readClaims(claims{t.queue(r.queue), r.token, []int64{r.n}})[0], t.err
}
