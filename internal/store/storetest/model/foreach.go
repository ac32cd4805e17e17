package model

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// expand starts to make the items of a held foreach task.
func (tx *tx) expand(t *task, items []json.RawMessage) {
	t.Expanding, t.Items, t.making, t.NotBefore = true, len(items), items, time.Time{}
	tx.delay(t)
	tx.touch(t)
	tx.due = append(tx.due, t)
}

// insertItems makes the next of the items, as far as the budget reaches. They are held until all are in.
func (tx *tx) insertItems(t *task) error {
	params, byRef, err := t.itemParams()
	if err != nil {
		return tx.apply(t, rules.InputFailed(t.Status, err))
	}
	for i := len(t.items); i < len(t.making) && tx.budget > 0; i++ {
		tx.insertItem(t, &t.Task, t.making[i], params, byRef)
		tx.budget--
	}
	if len(t.items) < len(t.making) {
		tx.due = append(tx.due, t)
		return nil
	}
	tx.count(t, -1)
	t.Expanding, t.Expanded, t.making = false, true, nil
	tx.count(t, 1)
	tx.touch(t)
	tx.due = append(tx.due, t.items...)
	for _, c := range t.children {
		if c.goesAlong() && rules.Pending(c.Status) {
			tx.due = append(tx.due, c)
		}
	}
	return nil
}

// itemParams returns the params of items, but for the item, and whether these read the outputs of the foreach task's parents by reference.
func (t *task) itemParams() (params json.RawMessage, byRef bool, err error) {
	switch {
	case t.goesAlong():
		return t.own, false, nil
	case len(t.parents) == 0:
		return t.own, false, nil
	case !rules.MayCopyIntoItems(t.Foreach, t.inputSizes()):
		return t.own, true, nil
	}
	in := t.itemInputs()
	if !rules.CopiedIntoItems(in) {
		return t.own, true, nil
	}
	params, err = rules.Deliver(t.own, in)
	return params, false, err
}

// insertItem makes the next item of a foreach task, held. of has the definition and the queue that it gets.
func (tx *tx) insertItem(t *task, of *plan.Task, value, params json.RawMessage, byRef bool) {
	i, parents := len(t.items), []*task(nil)
	if t.goesAlong() {
		for _, p := range t.parents {
			if rules.GoesAlong(t.Foreach, p.Name) && p.itemsIn() > 0 {
				p = p.items[i]
				value = rules.ItemOf(p.own)
			}
			parents = append(parents, p)
		}
	}
	item := &task{
		Task: rules.ItemTask(of, i, value, params, tx.at),
		plan: t.plan, queue: tx.queues[of.Queue], of: t, ready: parents == nil, byRef: byRef, parents: parents,
	}
	item.own = item.Params
	for _, p := range parents {
		item.Needs = append(item.Needs, p.ID)
	}
	tx.insert(item)
	t.items = append(t.items, item)
}

// itemsState is what the rules ask of the items of a foreach task.
func (t *task) itemsState() rules.Items {
	return rules.Items{Count: t.Items, Left: t.Items - t.done, Failed: t.failed, Seen: t.outcomes, Allowed: plan.AllowedFailures(t.MaxFailures, t.Items)}
}

// crosses reports whether an item that ended so is a failure that a foreach task does not allow.
func (t *task) crosses(o rules.Outcome) bool {
	items := t.itemsState()
	return t.MaxFailures != "" && o == rules.OutcomeFailed && items.Over()
}

// gather takes notice of an item that has finished.
func (t *task) gather(item *task) {
	outcome := rules.OutcomeOfTask(&item.Task)
	t.done++
	t.outcomes |= outcome
	if outcome == rules.OutcomeFailed {
		t.failed++
	}
	t.bytes += len(item.Output)
}

// recount gathers anew after items were taken back.
func (t *task) recount() {
	t.done, t.outcomes, t.failed, t.bytes = 0, 0, 0, 0
	for _, item := range t.items {
		if item.Status.Finished() {
			t.gather(item)
		}
	}
}

// dropItems deletes the items of a held foreach task, which makes new ones when its parents let it.
func (tx *tx) dropItems(t *task) {
	for _, item := range t.items {
		tx.delete(item)
		for _, p := range item.parents {
			p.children = slices.DeleteFunc(p.children, func(c *task) bool { return c.gone })
		}
	}
	if p := t.plan; p != nil && len(t.items) > 0 {
		p.tasks = slices.DeleteFunc(p.tasks, func(t *task) bool { return t.gone })
	}
	tx.count(t, -1)
	t.Expanding, t.Expanded, t.Items, t.items, t.making = false, false, 0, nil, nil
	tx.count(t, 1)
}

// list returns the outputs of the items.
func (t *task) list() json.RawMessage {
	in := make([]plan.Input, len(t.items))
	for i, item := range t.items {
		in[i].Output = item.Output
	}
	return rules.List(in)
}
