package model

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

func (s *Store) CreatePlan(ctx context.Context, p plan.Plan) (made plan.Plan, err error) {
	if err := cmp.Or(rules.CheckPlanParams(len(p.Params)), rules.CheckFile(p.File)); err != nil {
		return plan.Plan{}, err
	}
	err = s.write(ctx, func(tx *tx) error {
		if p.ID.IsZero() {
			p.ID.ID = plan.NewID(tx.at)
		}
		there, ok := tx.plans[p.ID]
		for _, other := range tx.plans {
			if !ok && p.Key != "" && other.Key == p.Key {
				there, ok = other, true
			}
		}
		if ok {
			made = there.seen()
			return nil
		}
		if err := rules.CheckOverlap(&p, tx.otherRun(&p)); err != nil {
			return err
		}
		tx.runs[p.Name]++
		p.Run, p.State, p.Closing, p.Edits, p.Counts = tx.runs[p.Name], plan.PlanSubmitting, plan.Open, 0, plan.Counts{}
		p.Retried, p.Ended, p.Ending, p.Stopped = time.Time{}, time.Time{}, plan.PlanRunning, plan.Open
		p.Created = tx.at.UTC()
		tx.made++
		row := &planRow{file: p.File, n: tx.made, byName: map[string]*task{}}
		p.File = plan.File{}
		row.Plan = p
		tx.plans[p.ID], tx.submitting[p.ID] = row, row
		tx.touchPlan(row)
		made = row.seen()
		return nil
	})
	return made, err
}

// otherRun returns what rules.CheckOverlap asks about.
func (tx *tx) otherRun(p *plan.Plan) *plan.Plan {
	for _, other := range tx.plans {
		if p.Overlap == plan.OverlapSkip && other.Name == p.Name && other.ID != p.ID && !other.State.Ended() {
			return &other.Plan
		}
	}
	return nil
}

func (s *Store) AddTasks(ctx context.Context, id plan.PlanID, tasks []plan.Task) error {
	return s.write(ctx, func(tx *tx) error {
		var p *planRow
		if !id.IsZero() {
			var err error
			if p, err = tx.plan(id); err != nil {
				return err
			}
			if err := rules.CheckTakesTasks(&p.Plan); err != nil {
				return err
			}
		}
		added, err := tx.check(p, tasks)
		if err != nil || len(added) == 0 {
			return err
		}
		for _, t := range added {
			tx.insert(t)
		}
		if p != nil {
			tx.touchPlan(p)
		}
		if p != nil && p.State == plan.PlanSubmitting {
			return nil
		}
		if p != nil {
			p.Edits++
		}
		_, err = engine.Settle(ctx, tx, added)
		return err
	})
}

// check makes rows of those tasks that are not in the store yet, and changes nothing.
func (d *db) check(p *planRow, tasks []plan.Task) ([]*task, error) {
	added := make([]*task, 0, len(tasks))
	byID := make(map[plan.TaskID]*task, len(tasks))
	names := map[string]bool{}
	for i := range tasks {
		if tasks[i].ID.IsZero() {
			return nil, fmt.Errorf("task %q has no id; mint one", tasks[i].Name)
		}
		there := d.tasks[tasks[i].ID]
		if there == nil {
			there = byID[tasks[i].ID]
		}
		if there != nil {
			if err := d.checkSame(there, p, tasks[i]); err != nil {
				return nil, err
			}
			continue
		}
		t := newTask(&tasks[i])
		if t.plan = p; p != nil {
			t.Plan = p.ID
			if _, taken := p.byName[t.Name]; taken || names[t.Name] {
				return nil, fmt.Errorf("task %q of plan %s: %w", t.Name, p.Title(), plan.ErrExists)
			}
			names[t.Name] = true
		}
		if t.queue = d.queues[t.Queue]; t.queue == nil {
			return nil, fmt.Errorf("task %q: queue %s: %w", t.Key(), t.Queue, plan.ErrNotFound)
		}
		var of *plan.Plan
		if p != nil {
			of = &p.Plan
		}
		if err := rules.CheckAdded(&t.Task, of); err != nil {
			return nil, err
		}
		for _, id := range t.Needs {
			parent := byID[id]
			if parent == nil {
				parent = d.tasks[id]
			}
			var needed *rules.Needed
			if _, rolled := d.rolled[id]; parent != nil && !rolled {
				needed = &rules.Needed{Plan: parent.Plan, Item: parent.of != nil, Finally: parent.Finally}
			}
			if err := rules.CheckNeed(&t.Task, t.Plan, id, needed); err != nil {
				return nil, err
			}
			t.parents = append(t.parents, parent)
		}
		byID[t.ID] = t
		added = append(added, t)
	}
	return added, nil
}

// checkSame refuses a task whose id another one has.
func (d *db) checkSame(there *task, p *planRow, again plan.Task) error {
	was := there.Task
	if was.Params, again.Plan = there.own, (plan.PlanID{}); p != nil {
		again.Plan = p.ID
	}
	var queues []plan.Queue
	for _, q := range d.queues {
		queues = append(queues, q.Queue)
	}
	return secret.CheckSame(&was, &again, secret.Of(queues))
}

// newTask keeps of a submitted task what its submitter may say.
func newTask(t *plan.Task) *task {
	params := orNone(t.Params)
	return &task{own: params, Task: plan.Task{
		ID: t.ID, Name: t.Name, Queue: t.Queue, Definition: t.Definition, Params: params, Needs: slices.Clone(t.Needs),
		Status: rules.FirstStatus, NotBefore: t.NotBefore.UTC(), Created: t.Created.UTC(),
	}}
}

// orNone returns params, an empty object where there are none.
func orNone(params json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		return json.RawMessage("{}")
	}
	return params
}

// insert puts a held task among the others.
func (tx *tx) insert(t *task) {
	if t.Created.IsZero() {
		t.Created = tx.at
	}
	tx.tasks[t.ID] = t
	if t.plan != nil {
		t.plan.tasks = append(t.plan.tasks, t)
		t.plan.byName[t.Name] = t
	}
	for _, p := range t.parents {
		p.children = append(p.children, t)
	}
	t.look()
	tx.count(t, 1)
	tx.delay(t)
	tx.touch(t)
}

// look counts the task's parents.
func (t *task) look() {
	t.waiting, t.seen = 0, 0
	for _, p := range t.parents {
		if p.Status.Finished() {
			t.seen |= rules.OutcomeOfTask(&p.Task)
		} else {
			t.waiting++
		}
	}
}

func (s *Store) Ready(ctx context.Context, id plan.PlanID) error {
	return s.write(ctx, func(tx *tx) error {
		p, err := tx.plan(id)
		switch {
		case err != nil:
			return err
		case p.State != plan.PlanSubmitting && p.State != plan.PlanAbandoned:
			return nil
		case p.Closing != plan.Open || p.State == plan.PlanAbandoned:
			return fmt.Errorf("plan %s: %w", p.Title(), plan.ErrPlanEnded)
		}
		if err := rules.CheckReady(&p.Plan, p.Counts.Stored()); err != nil {
			return err
		}
		delete(tx.submitting, id)
		tx.openPlan(p)
		rules.Begin(&p.Plan, tx.at.UTC())
		for _, t := range p.tasks {
			if rules.Decide(t.When, t.seen, t.waiting == 0) != rules.ToWait { // a parent may have been cancelled before
				tx.due = append(tx.due, t)
			}
		}
		if err := engine.EndPlan(ctx, tx, p); err != nil {
			return err
		}
		return tx.work()
	})
}

func (s *Store) CancelPlan(ctx context.Context, id plan.PlanID, seen bool) error {
	return s.write(ctx, func(tx *tx) error { return engine.CancelPlan[*task](ctx, tx, id, seen) })
}

func (tx *tx) PlanToCancel(_ context.Context, id plan.PlanID) (p *planRow, named plan.Plan, err error) {
	if p, err = tx.plan(id); err != nil {
		return nil, named, err
	}
	return p, p.Plan, nil
}

func (s *Store) CancelTask(ctx context.Context, id plan.TaskID) error {
	return s.write(ctx, func(tx *tx) error { return engine.CancelTask(ctx, tx, id) })
}

func (s *Store) AnswerTask(ctx context.Context, id plan.TaskID, a rules.Answer) error {
	return s.write(ctx, func(tx *tx) error { return engine.AnswerTask(ctx, tx, id, &a) })
}

func (tx *tx) TaskToCancel(_ context.Context, id plan.TaskID) (t *task, named plan.Task, w *rules.Waiter, err error) {
	if t, err = tx.task(id); err != nil {
		return nil, named, nil, err
	}
	return t, t.Task, tx.Waiter(t), nil
}

func (tx *tx) Mark(_ context.Context, t *task) (done bool, err error) {
	tx.mark(t)
	tx.cancelItems(t)
	return true, nil
}

func (tx *tx) Cancel(_ context.Context, t *task, s rules.Step) (done bool, err error) {
	err = tx.apply(t, s)
	tx.cancelItems(t)
	return true, err
}

// cancelItems marks the items that a node has, and has the others looked at.
func (tx *tx) cancelItems(of *task) {
	for _, item := range of.items {
		if item.Status.Active() {
			tx.mark(item)
		}
		tx.due = append(tx.due, item)
	}
}

// mark notes that a person wants a task ended.
func (tx *tx) mark(t *task) {
	if !t.Cancel {
		t.Cancel = true
		tx.touch(t)
	}
}

func (s *Store) SetPriority(ctx context.Context, id plan.PlanID, priority int) error {
	return s.write(ctx, func(tx *tx) error {
		p, err := tx.plan(id)
		if err == nil && p.Priority != priority {
			p.Priority = priority
			tx.touchPlan(p)
		}
		return err
	})
}

func (s *Store) Adopt(ctx context.Context, id plan.PlanID) error {
	return s.write(ctx, func(tx *tx) error {
		p, err := tx.plan(id)
		if err == nil && !p.Own {
			p.Own = true
			tx.touchPlan(p)
		}
		return err
	})
}
