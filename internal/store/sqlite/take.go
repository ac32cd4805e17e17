package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// holderOf is what a take has to know of a task besides its row: its name, and the instance that has it.
const holderOf = "SELECT t.name, i.id, i.node, i.body FROM tasks AS t LEFT JOIN instances AS i ON i.n = t.instance WHERE t.n = ?"

// Take implements store.Node.
func (s *Store) Take(ctx context.Context, k plan.Take) (claimed plan.ClaimedTask, err error) {
	var cancelled error // of a task that it ended
	err = s.write(ctx, func(t *tx) error {
		i, err := t.instance(k.Instance)
		if err != nil {
			return err
		}
		r, err := t.taskByID(k.Task)
		if err != nil {
			return err
		}
		now := plan.Task{ID: r.id, Status: r.status, Reason: r.reason, Cancel: r.cancel}
		var holder plan.Instance
		if h := t.query(holderOf, r.n); h.one() {
			now.Name = h.text(0)
			if !h.null(1) {
				now.Instance, now.Node = plan.InstanceID{ID: h.id(1)}, plan.NodeName(h.text(2))
				if err := json.Unmarshal(h.bytes(3), &holder); err != nil {
					return fmt.Errorf("instance %s: %w", now.Instance, err)
				}
			}
		}
		if err := rules.CheckTake(&now, &plan.Instance{ID: i.id, Node: i.node}, holder.Runner); err != nil {
			return err
		}
		if cancelled = rules.CheckTakeCancelled(&now); cancelled != nil {
			t.step(&r, rules.Stopped(r.status))
			t.work()
			return nil
		}
		token, status, started := r.token, r.status, any(nil)
		if now.Instance != i.id {
			token = t.s.newToken()
		}
		if k.Start && status == plan.Claimed {
			status, started = plan.Running, t.now
		}
		claimed = t.readClaims(t.queue(r.queue), []int64{r.n}, r.status, status, token)[0]
		if token != r.token || status != r.status {
			t.exec("UPDATE tasks SET status = ?, token = ?, instance = ?, started = coalesce(?, started), modified = ? WHERE n = ?",
				int64(status), token, i.n, started, t.now, r.n)
			t.changed = append(t.changed, r.n)
		}
		return nil
	})
	if err = cmp.Or(err, cancelled); err != nil {
		return plan.ClaimedTask{}, err
	}
	return claimed, nil
}
