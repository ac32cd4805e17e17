package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// instance returns plan.ErrInstanceGone for one that is not registered. It also reads what shift returns, which each turn needs.
func (t *tx) instance(id plan.InstanceID) (*instanceRow, error) {
	r := t.query("SELECT n, node, coalesce((SELECT value FROM meta WHERE key = ?), 0) FROM instances WHERE id = ? AND gone = 0", shiftKey, id.ID[:])
	if !r.one() {
		return nil, fmt.Errorf("instance %s: %w", id, plan.ErrInstanceGone)
	}
	if t.moved == nil {
		by := r.int(2)
		t.moved = &by
	}
	return &instanceRow{r.int(0), id, plan.NodeName(r.text(1))}, nil
}

func (s *Store) Register(ctx context.Context, i plan.Instance) error {
	i.Beats, i.Age = 0, 0
	body, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("instance %s: %w", i.ID, err)
	}
	return s.write(ctx, func(t *tx) error {
		const taken = `SELECT 1 FROM instances WHERE node = ? AND gone = 0 AND json_extract(CAST(body AS TEXT), '$.sole')
			AND NOT EXISTS (SELECT 1 FROM instances WHERE id = ?)` // which registers again
		if i.Sole && t.query(taken, string(i.Node), i.ID.ID[:]).one() {
			return fmt.Errorf("register node %s: %w", i.Node, plan.ErrNameTaken)
		}
		t.exec("INSERT INTO instances (id, node, body, beat) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
			i.ID.ID[:], string(i.Node), body, t.now)
		return nil
	})
}

func (s *Store) Beat(ctx context.Context, b protocol.Beat) (told protocol.Beaten, err error) {
	err = s.write(ctx, func(t *tx) error {
		i, err := t.instance(b.Instance)
		if err != nil {
			return err
		}
		t.exec("UPDATE instances SET beats = beats + 1, beat = ? WHERE n = ?", t.now, i.n)
		if b.Plugins != nil {
			names, _ := json.Marshal(b.Plugins) // texts have JSON
			t.exec("UPDATE instances SET body = CAST(json_set(CAST(body AS TEXT), '$.plugins', json(?)) AS BLOB) WHERE n = ?", string(names), i.n)
		}
		if b.Pauses != nil {
			pauses, _ := json.Marshal(b.Pauses) // texts and numbers have JSON
			t.exec("UPDATE instances SET body = CAST(json_set(CAST(body AS TEXT), '$.pauses', json(?)) AS BLOB) WHERE n = ?", string(pauses), i.n)
		}
		if b.Progress != nil {
			t.keepProgress(i.n, b.Progress)
		}
		told.MaxThreads, told.Wake, told.Over, told.Due = -1, int64(s.turn.notices()), t.over(b.Plan), t.scheduleDue()
		if r := t.query("SELECT max_threads FROM nodes WHERE name = ?", string(i.node)); r.one() {
			told.MaxThreads = int(r.int(0))
		}
		for r := t.query("SELECT id FROM tasks INDEXED BY tasks_cancel WHERE cancel = 1 AND instance = ?", i.n); r.next(); {
			told.Cancel = append(told.Cancel, plan.TaskID{ID: r.id(0)})
		}
		return nil
	})
	return told, err
}

func (s *Store) Leave(ctx context.Context, i plan.InstanceID) error {
	_, err := s.Rescue(ctx, i, -1)
	return err
}

func (s *Store) Rescue(ctx context.Context, id plan.InstanceID, beats int64) (n int, err error) {
	err = s.write(ctx, func(t *tx) error {
		r := t.query("SELECT n, beats FROM instances WHERE id = ? AND gone = 0", id.ID[:])
		if !r.one() {
			return nil
		}
		instance := r.int(0)
		if beats >= 0 && r.int(1) != beats {
			return fmt.Errorf("rescue of instance %s, which beat again: %w", id, plan.ErrConflict)
		}
		t.exec("UPDATE instances SET gone = ?, last = (SELECT value FROM meta WHERE key = 'task') WHERE n = ?", t.now, instance)
		t.keepProgress(instance, nil)
		lost := t.active(instance)
		if err := engine.Lose(ctx, t, lost); err != nil {
			return err
		}
		n = len(lost)
		t.work()
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (t *tx) LossView(r *taskRow) rules.Loss {
	b := t.body(r)
	return rules.Loss{Claim: t.ClaimView(r), InPlan: r.plan != 0, Definition: &b.Definition, Queue: t.queue(r.queue).OnLost, Rescues: int(b.rescues)}
}

func (s *Store) Instances(ctx context.Context) (out []plan.Instance, err error) {
	now := s.now()
	err = s.read(ctx, func(c *conn) error {
		for r := c.query("SELECT body, beats, beat FROM instances WHERE gone = 0 ORDER BY id"); r.next(); {
			var i plan.Instance
			if err := json.Unmarshal(r.bytes(0), &i); err != nil {
				return fmt.Errorf("instance: %w", err)
			}
			i.Beats, i.Age = r.int(1), max(now.Sub(instant(r.int(2))), 0)
			out = append(out, i)
		}
		return nil
	})
	return out, err
}

func (s *Store) SetMaxThreads(ctx context.Context, n plan.NodeName, most int) error {
	return s.write(ctx, func(t *tx) error {
		if most < 0 {
			t.exec("DELETE FROM nodes WHERE name = ?", string(n))
		} else {
			t.exec("INSERT OR REPLACE INTO nodes (name, max_threads) VALUES (?, ?)", string(n), most)
		}
		return nil
	})
}

func (s *Store) MaxThreads(ctx context.Context) (map[plan.NodeName]int, error) {
	limits := map[plan.NodeName]int{}
	err := s.read(ctx, func(c *conn) error {
		for r := c.query("SELECT name, max_threads FROM nodes"); r.next(); {
			limits[plan.NodeName(r.text(0))] = int(r.int(1))
		}
		return nil
	})
	return limits, err
}

// goneFor is how long an instance that is gone is known at least: a call of Register that is made again may come so late.
const goneFor = 10 * time.Minute

// forgetInstances deletes instances that are gone and that no task can name any more.
func (t *tx) forgetInstances() {
	t.exec("DELETE FROM instances WHERE gone > 0 AND gone < ? AND last < coalesce((SELECT min(n) FROM tasks), last + 1)", t.now-goneFor.Microseconds())
}
