package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func (t *tx) foreach(n int64) *foreachRow {
	if f, ok := t.foreachs[n]; ok {
		return f
	}
	f := t.storedForeach(n)
	t.foreachs[n] = &f
	return &f
}

// flushForeachs writes how the items of foreach tasks did, and ends those tasks whose items have all finished. It reports whether any
// ended, which may be one more thing to release.
func (t *tx) flushForeachs() (ended bool) {
	for n, f := range t.foreachs {
		if !f.dirty || t.err != nil {
			continue
		}
		f.dirty = false
		t.exec(writeForeach, n, f.items, f.made, f.undone, f.failed, int64(f.seen), f.bytes)
		if f.undone > 0 && f.fails {
			t.dropOver(n, f)
		}
		if f.undone > 0 || f.made < f.items {
			continue
		}
		for _, r := range t.tasks([]int64{n}) {
			if r.endsWithItems() {
				t.budget--
				t.settle([]taskRow{r})
				ended = true
			}
		}
	}
	return ended
}

// allowedFailures returns how many items of a foreach task may fail.
func (t *tx) allowedFailures(r *taskRow, f *foreachRow) int {
	if !r.is(flagBudget) {
		return 0
	}
	return plan.AllowedFailures(t.body(r).MaxFailures, int(f.items))
}

// overBudget reports whether more items of a foreach task failed than its max_failures allows.
func (t *tx) overBudget(r *taskRow, f *foreachRow) bool {
	items := rules.Items{Failed: int(f.failed), Allowed: t.allowedFailures(r, f)}
	return r.is(flagBudget) && r.endsWithItems() && items.Over()
}

// dropOver ends the items that have not started once too many others failed.
func (t *tx) dropOver(n int64, f *foreachRow) {
	f.fails = false
	for _, r := range t.tasks([]int64{n}) {
		if t.overBudget(&r, f) {
			t.add(jobDrop, n)
		}
	}
}

func (t *tx) Gathered(_ context.Context, r *taskRow) (json.RawMessage, error) {
	if t.foreach(r.n).bytes > plan.MaxCopiedOne {
		r.flags |= flagGathered
		return nil, t.err
	}
	t.flushTasks()
	return t.gathered(r.n), t.err
}

func (t *tx) List(_ context.Context, r *taskRow) (items []json.RawMessage, none string, why, err error) {
	b := t.body(r)
	if t.err != nil {
		return nil, "", nil, t.err
	}
	t.flushTasks() // the ends of parents
	list, all, why := t.listInputs(r.n, b.Foreach)
	if why == nil {
		items, why = rules.ExpandItems(b.Foreach, list)
	}
	if all && b.Foreach.Group != "" && r.plan != 0 {
		t.list = kept{r.n, int64(t.plan(r.plan).Edits), list}
	}
	return items, rules.NoItemsDetail(b.Foreach, ""), why, t.err
}

// listBatch is how many items lie together until they are made, so that no turn reads more of the list than it makes.
const listBatch = 256

// expand starts to make the items of a foreach task that is held, or claimed by a node that found them.
func (t *tx) expand(r *taskRow, s rules.Step) {
	begins := s.Begins(r.status)
	if r.status != s.Status {
		t.move(r, s.Status, s.Reason)
	}
	items := s.Items
	r.flags |= flagExpanding
	t.exec(`UPDATE tasks SET status = ?, gate = ?, flags = ?, instance = 0, not_before = 0, reason = NULL, detail = NULL, exit = NULL, modified = ?,
		started = iif(?, ?, started) WHERE n = ?`, int64(s.Status), forItems, r.flags, t.now, begins, t.now, r.n)
	t.changed = append(t.changed, r.n)
	t.foreachs[r.n] = &foreachRow{n: r.n, items: int64(len(s.Items)), undone: int64(len(s.Items)), dirty: true}
	if r.goesAlong() { // whose items are those of its heads
		items = nil
	}
	for first := 0; first < len(items); first += listBatch {
		batch := make([]plan.Input, 0, listBatch)
		for _, item := range items[first:min(first+listBatch, len(items))] {
			batch = append(batch, plan.Input{Output: item})
		}
		t.exec("INSERT INTO lists (of, first, items) VALUES (?, ?, ?)", r.n, first, []byte(rules.List(batch)))
	}
	t.add(jobItems, r.n)
}

// makeItems inserts the next of the items, held. They are queued when all are in.
func (t *tx) makeItems(n int64) (done bool) {
	rows := t.tasks([]int64{n})
	if len(rows) == 0 || !rows[0].is(flagExpanding) {
		return true
	}
	r := &rows[0]
	if t.settle(rows); !r.is(flagExpanding) {
		return true
	}
	b := t.body(r)
	of := plan.Task{ID: r.id, Name: b.name, Definition: b.Definition, Queue: t.queue(r.queue).ID}
	f := t.foreach(n)
	if r.goesAlong() {
		if err := t.makeAlong(r, &of, &b, f); err != nil {
			t.step(r, rules.InputFailed(r.status, err))
			return true
		}
		return t.madeItems(r, f)
	}
	batch := f.made / listBatch * listBatch
	for t.budget > 0 && f.made < f.items && t.err == nil {
		items := t.listAt(n, batch)
		if f.made-batch >= int64(len(items)) {
			t.fail(fmt.Errorf("task %s: its items from %d on are not there", r.id, f.made))
			return false
		}
		if err := t.insertItems(r, &of, &b, f, items[f.made-batch:]); err != nil {
			t.step(r, rules.InputFailed(r.status, err))
			return true
		}
		batch += listBatch
	}
	return t.madeItems(r, f)
}

// insertItems inserts the next items of a foreach task, held, as many as the budget allows.
func (t *tx) insertItems(r *taskRow, of *plan.Task, b *body, f *foreachRow, items []json.RawMessage) error {
	flags := r.flags & flagContinue
	params, byRef, err := t.itemParams(r.n, b.Foreach, b.params)
	if err != nil {
		return err
	}
	if byRef {
		flags |= flagByRef
	}
	items = items[:min(len(items), t.budget)]
	number := t.number(int64(len(items)))
	for _, item := range items {
		task := rules.ItemTask(of, int(f.made), item, params, t.at)
		t.insert(&task, newTask{n: number, plan: r.plan, queue: r.queue, hold: forOthers, flags: flags, of: r.n, index: f.made})
		number++
		f.made++
		t.budget--
	}
	return nil
}

// madeItems notes how many items are in, and reports whether all are.
func (t *tx) madeItems(r *taskRow, f *foreachRow) (done bool) {
	n := r.n
	f.dirty = true
	if f.made < f.items {
		return false
	}
	t.exec("DELETE FROM lists WHERE of = ?", n)
	was := r.counted()
	r.flags = r.flags&^flagExpanding | flagExpanded | flagItems
	t.countMoved(r, was)
	t.exec("UPDATE tasks SET flags = ?, modified = ? WHERE n = ?", r.flags, t.now, n)
	t.changed = append(t.changed, n)
	t.add(jobOpen, n)
	t.tellAlong(n)
	return true
}

// itemParams returns what the params of each item start from, and whether what items get of their foreach task's parents is too much to
// be in them.
func (t *tx) itemParams(n int64, f *plan.Foreach, params json.RawMessage) (json.RawMessage, bool, error) {
	if !t.query("SELECT 1 FROM gates WHERE n = ?", n).one() {
		return params, false, nil // it has no parents
	}
	t.flushTasks() // the ends of parents
	h := t.heads(n)
	if !rules.MayCopyIntoItems(f, h.all()) {
		return params, true, nil
	}
	in := t.itemInputs(h, f)
	if !rules.CopiedIntoItems(in) {
		return params, true, nil
	}
	params, err := rules.Deliver(params, in)
	return params, false, err
}

func (t *tx) listAt(n, first int64) []json.RawMessage {
	r := t.query("SELECT items FROM lists WHERE of = ? AND first = ?", n, first)
	if !r.one() {
		return nil
	}
	return rules.SplitList(r.bytes(0))
}

// openItems queues the items of a foreach task, which are all in.
func (t *tx) openItems(n, from int64) (past any, done bool) {
	rows := t.tasks([]int64{n})
	if len(rows) == 0 || !rows[0].is(flagExpanded) {
		return nil, true
	}
	if rows[0].goesAlong() {
		return t.openAlong(n, from)
	}
	return t.settleItems(n, from, func(r *taskRow) bool {
		r.rule, r.all = plan.AllDone, true
		return r.waitsFor(forOthers)
	})
}

// dropItems ends the items of a foreach task that was cancelled, or of which too many failed.
func (t *tx) dropItems(n, from int64) (past any, done bool) {
	of := t.tasks([]int64{n})
	switch {
	case len(of) == 0:
		return nil, true
	case rules.StopsItems(of[0].status, of[0].cancel):
	case t.overBudget(&of[0], t.foreach(n)):
		return t.settleItems(n, from, func(r *taskRow) bool {
			r.over = true
			return rules.Pending(r.status)
		})
	default:
		return nil, true
	}
	return t.settleItems(n, from, func(r *taskRow) bool {
		r.stopped = &of[0]
		return rules.Pending(r.status)
	})
}

// settleItems settles those items from an index on that it selects, as far as the budget allows, and
// returns where to continue.
func (t *tx) settleItems(n, from int64, selects func(*taskRow) bool) (past any, done bool) {
	var items []taskRow
	looked := 0
	for r := t.fresh("SELECT "+taskColumns+`, t.idx FROM tasks AS t INDEXED BY tasks_of
		WHERE t.of = ? AND t.of <> 0 AND t.idx >= ? ORDER BY t.idx LIMIT ? + 0`, n, from, t.budget); r.next(); {
		looked++
		from = r.int(taskWidth) + 1
		if row := r.task(); selects(&row) {
			items = append(items, row)
		}
	}
	done = looked < t.budget
	t.budget -= looked
	t.settle(items)
	return from, done
}
