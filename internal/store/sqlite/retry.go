package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-1177d267/sluice/plan"
)

// retry is what one retry takes back to held.
type retry struct {
	*tx
	plan    *planRow // nil: tasks of no plan
	rows    []taskRow
	taken   map[int64]bool
	foreach []*taskRow     // those that are foreach tasks, before anything is replaced
	remade  map[int64]bool // those of them that are to make their items anew
	held    []int64        // children that are not taken and wait for one of those that are
}

// Retry implements store.Admin. All of it is one transaction, except that what it lets run again is queued by later ones if it is much.
//
// The items of a foreach task stay, and run with what replace says of them, each by its own id; but when its parents run again, when it
// was cancelled before all were in, or when the caller wants it, they are deleted and made anew.
func (s *Store) Retry(ctx context.Context, id plan.PlanID, chosen []plan.Retried, replace []plan.Task, params json.RawMessage) error {
	return s.write(ctx, func(t *tx) error {
		r := &retry{tx: t, taken: map[int64]bool{}, remade: map[int64]bool{}}
		if err := r.check(id, chosen, replace); err != nil || len(r.rows) == 0 {
			return err
		}
		queues := make([]int64, len(replace))
		for i := range replace {
			var err error
			if queues[i], err = t.queueNumber(replace[i].Queue); err != nil {
				return fmt.Errorf("task %q: %w", replace[i].Key(), err)
			}
		}
		r.reopen(params)
		r.freezeBelow()
		r.hold()
		taken := make(map[plan.TaskID]*taskRow, len(r.rows))
		for i := range r.rows {
			taken[r.rows[i].id] = &r.rows[i]
		}
		for i := range replace {
			if row := taken[replace[i].ID]; row != nil {
				r.rewrite(row, &replace[i], queues[i])
			}
		}
		r.look()
		t.work()
		return nil
	})
}

// check finds the tasks, and what is wrong with taking them back. It changes nothing.
func (r *retry) check(id plan.PlanID, chosen []plan.Retried, replace []plan.Task) error {
	n := int64(0)
	if !id.IsZero() {
		var err error
		if r.plan, err = r.planByID(id); err != nil {
			return err
		}
		if err := r.plan.CheckRetry(r.plan.Counts.Total()); err != nil {
			return err
		}
		n = r.plan.n
	}
	ids := make([]plan.TaskID, len(chosen))
	for i := range chosen {
		ids[i] = chosen[i].ID
	}
	found, anew := map[plan.TaskID]taskRow{}, map[int64]bool{}
	for q := r.query("SELECT "+taskColumns+" FROM tasks AS t WHERE t.id IN (SELECT unhex(value) FROM json_each(?))", listIDs(ids)); q.next(); {
		row := q.task()
		found[row.id] = row
	}
	for _, c := range chosen {
		row, ok := found[c.ID]
		switch {
		case !ok, row.plan != n:
			return fmt.Errorf("task %s: %w", c.ID, plan.ErrNotFound)
		case row.status != c.Status, row.status.Active():
			return c.Check(r.named(&row))
		}
		r.take(row)
		anew[row.n] = c.Anew
	}
	// With an item goes its foreach task, or nobody would notice when it ends.
	for i := range r.rows {
		if of := r.rows[i].of; of != 0 && !r.taken[of] {
			head := r.tasks([]int64{of})
			if len(head) == 0 { // it is deleted, and the item goes as well
				return fmt.Errorf("task %s: %w", r.rows[i].id, plan.ErrNotFound)
			}
			r.take(head[0])
		}
	}
	if err := r.checkParents(); err != nil {
		return err
	}
	if err := r.checkQueues(replace); err != nil {
		return err
	}
	r.remake(anew, replace)
	return r.checkBelow()
}

// remake finds the foreach tasks that are to make their items anew. anew has those of which the caller wants it.
func (r *retry) remake(anew map[int64]bool, replace []plan.Task) {
	replaced := make(map[plan.TaskID]*plan.Task, len(replace))
	for i := range replace {
		replaced[replace[i].ID] = &replace[i]
	}
	var ns []int64
	for i := range r.rows {
		if r.rows[i].is(flagForeach) {
			ns = append(ns, r.rows[i].n)
		}
	}
	parents := r.parentsOf(ns)
	facts := r.factsOf(parents)
	for i := range r.rows {
		row := &r.rows[i]
		if !row.is(flagForeach) {
			continue
		}
		foreach := true
		if with := replaced[row.id]; with != nil {
			foreach = with.Foreach != nil
		}
		waits := slices.ContainsFunc(parents[row.n], func(p int64) bool {
			f, there := facts[p]
			return there && (r.taken[p] || f.waits(row.n))
		})
		t := plan.Task{Expanded: row.is(flagExpanded), Items: int(r.tx.foreach(row.n).items)}
		r.remade[row.n] = (&plan.Retried{Anew: anew[row.n]}).Remakes(&t, foreach, waits)
	}
}

// checkQueues refuses tasks whose queue was deleted, and that are not replaced.
func (r *retry) checkQueues(replace []plan.Task) error {
	replaced := make(map[plan.TaskID]bool, len(replace))
	for i := range replace {
		replaced[replace[i].ID] = true
	}
	there := map[int64]bool{}
	for i := range r.rows {
		row := &r.rows[i]
		is, asked := there[row.queue]
		if !asked {
			q := r.query("SELECT 1 FROM queues WHERE n = ? AND "+isQueue, row.queue)
			is = q.one()
			there[row.queue] = is
		}
		if !is && !replaced[row.id] {
			return plan.QueueDeleted(r.named(row))
		}
	}
	return nil
}

// checkParents refuses tasks of no plan that need some of a plan that is being deleted.
func (r *retry) checkParents() error {
	if r.plan != nil {
		return nil
	}
	parents := r.parentsOf(r.numbers())
	for i := range r.rows {
		row := &r.rows[i]
		if r.query(`SELECT 1 FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.n = j.value CROSS JOIN plans AS p ON p.n = t.plan
			WHERE p.leaving = 1 LIMIT 1`, list(parents[row.n])).one() {
			return plan.NeedsDeleted(r.named(row))
		}
	}
	return nil
}

func (r *retry) take(row taskRow) {
	if !r.taken[row.n] {
		r.taken[row.n] = true
		r.rows = append(r.rows, row)
	}
}

// numbers returns what is taken.
func (r *retry) numbers() []int64 {
	ns := make([]int64, len(r.rows))
	for i := range r.rows {
		ns[i] = r.rows[i].n
	}
	return ns
}

// checkBelow reads the children and items that are not taken, and the children of items that are deleted. A task that waits goes on
// waiting. A task that is queued is too late to be held.
func (r *retry) checkBelow() error {
	all := list(r.numbers())
	remade := slices.DeleteFunc(slices.Collect(maps.Keys(r.remade)), func(n int64) bool { return !r.remade[n] })
	for q := r.query(`SELECT t.n, t.status, t.name, t.of, t.id, t.gate FROM json_each(?) AS j CROSS JOIN kids AS k ON k.parent = j.value CROSS JOIN tasks AS t ON t.n = k.child
		UNION SELECT t.n, t.status, t.name, t.of, t.id, t.gate FROM json_each(?) AS j CROSS JOIN tasks AS t INDEXED BY tasks_of ON t.of = j.value AND t.of <> 0
		UNION SELECT t.n, t.status, t.name, t.of, t.id, t.gate FROM json_each(?) AS j CROSS JOIN tasks AS i INDEXED BY tasks_of ON i.of = j.value AND i.of <> 0
			CROSS JOIN kids AS k ON k.parent = i.n CROSS JOIN tasks AS t ON t.n = k.child`,
		all, all, list(remade)); q.next(); {
		n, below := q.int(0), plan.Task{ID: plan.TaskID{ID: q.id(4)}, Status: plan.Status(q.int(1)), Name: q.text(2)}
		if r.taken[n] {
			continue
		}
		gate := q.int(5)
		if err := plan.CheckBelow(&below, gate == gateDelay || gate == gateItems); err != nil {
			q.close()
			return err
		}
		if below.Status == plan.Held && q.int(3) == 0 {
			r.held = append(r.held, n)
		}
	}
	return r.err
}

// reopen lets the plan run again, with other params if there are any.
func (r *retry) reopen(params json.RawMessage) {
	if p := r.plan; p != nil {
		p.State, p.Closing, p.Ended = plan.PlanRunning, plan.Open, instant(0)
		p.Edits++
		r.touch(p)
		r.drop(jobClose, p.n)
		if params != nil {
			r.exec("UPDATE plans SET params = ? WHERE n = ?", []byte(params), p.n)
		}
	}
}

// freezeBelow keeps the inputs of finished children, whose parents are about to lose their outputs.
func (r *retry) freezeBelow() {
	var children []int64
	for q := r.query(`SELECT DISTINCT t.n FROM json_each(?) AS j CROSS JOIN kids AS k ON k.parent = j.value CROSS JOIN tasks AS t ON t.n = k.child
		WHERE t.outcome <> 0 AND t.flags & ? <> 0`, list(r.numbers()), flagDelivered|flagExpanded); q.next(); {
		if n := q.int(0); !r.taken[n] {
			children = append(children, n)
		}
	}
	r.freeze(children)
}

// hold takes the tasks back to held and forgets their last attempts. Those with parents wait for them, until look.
func (r *retry) hold() {
	for i := range r.rows {
		row := &r.rows[i]
		if row.status != plan.Held {
			r.move(row, plan.Held, "")
		}
		r.changed = append(r.changed, row.n)
		if row.attempt > 0 {
			r.log(row.n, 0, []plan.LogEntry{plan.RetriedEntry(r.at)})
		}
		if row.is(flagForeach) {
			r.foreach = append(r.foreach, row)
		}
		row.flags &^= flagDelivered | flagGathered | flagExpanding
	}
	all := list(r.numbers())
	// What a foreach task was making is dropped, and made anew: look sees to it.
	r.exec(`UPDATE tasks SET status = -4, gate = CASE WHEN EXISTS (SELECT 1 FROM gates AS g WHERE g.n = tasks.n) THEN ? ELSE ? END,
		flags = flags & ~ ?, outcome = 0, out_len = 0, attempt = 0, token = 0, instance = 0, cancel = 0, rescues = 0, not_before = 0, started = 0,
		ended = 0, reason = NULL, detail = NULL, exit = NULL, output = NULL, modified = ? WHERE n IN (SELECT value FROM json_each(?))`,
		gateParents, gateNone, flagDelivered|flagGathered|flagExpanding, r.now, all)
	r.dropResults(all)
	r.exec("DELETE FROM outputs WHERE n IN (SELECT value FROM json_each(?))", all)
	r.exec("DELETE FROM frozen WHERE n IN (SELECT value FROM json_each(?))", all)
	r.exec("DELETE FROM lists WHERE of IN (SELECT value FROM json_each(?))", all)
	r.exec("DELETE FROM jobs WHERE kind IN (?, ?, ?, ?) AND ref IN (SELECT value FROM json_each(?))", jobRelease, jobItems, jobOpen, jobDrop, all)
}

// rewrite changes what a person wrote about a task.
func (r *retry) rewrite(row *taskRow, with *plan.Task, queue int64) {
	def, err := packDefinition(with.Definition)
	if err != nil {
		r.fail(fmt.Errorf("task %s: %w", row.id, err))
		return
	}
	row.flags &^= flagContinue | flagForeach | flagOnNode | flagBadParams
	row.flags |= definitionFlags(&with.Definition)
	withParents := r.exec("UPDATE gates SET waits = waits & ~ ? | ? WHERE n = ?", neverBits, never(with.When), row.n) > 0
	if _, err := plan.Deliver(with.Params, nil); err != nil && withParents {
		row.flags |= flagBadParams
	}
	row.queue, row.rule = queue, with.When
	r.exec("UPDATE tasks SET queue = ?, rank = ?, rule = ?, flags = ? WHERE n = ?", queue, with.Rank, orNull(row.rule), row.flags, row.n)
	r.exec("UPDATE bodies SET def = ?, params = ? WHERE n = ?", def, []byte(with.Params), row.n)
}

// look counts the parents of what was taken and of what waits for it, and lets later transactions release what is ready.
func (r *retry) look() {
	var waiting []gate
	var ready []int64
	blocked := map[int64]bool{} // wait for parents
	for _, g := range r.recount(append(r.numbers(), r.held...)) {
		if blocked[g.child] = g.waiting() > 0; blocked[g.child] {
			waiting = append(waiting, g)
		} else if r.taken[g.child] {
			ready = append(ready, g.child)
		}
	}
	r.exec("UPDATE tasks SET gate = ? WHERE n IN (SELECT value FROM json_each(?))", gateNone, list(ready))
	for _, row := range r.foreach {
		r.lookAtItems(row)
	}
	r.decideAll(waiting)
	of := int64(0)
	if r.plan != nil {
		of = r.plan.n
	}
	r.add(jobRoots, of)
}

// lookAtItems counts what the items of a foreach task did, or deletes them if it is to make new ones.
func (r *retry) lookAtItems(row *taskRow) {
	f := &foreachRow{n: row.n, dirty: true}
	for q := r.query(`SELECT outcome, count(*), sum(CASE outcome WHEN 0 THEN 0 ELSE max(out_len, 4) END) FROM tasks INDEXED BY tasks_of
		WHERE of = ? AND of <> 0 GROUP BY outcome`, row.n); q.next(); {
		outcome, count := plan.Outcome(q.int(0)), q.int(1)
		f.items += count
		f.bytes += q.int(2)
		f.seen |= outcome
		switch outcome {
		case 0:
			f.undone += count
		case plan.OutcomeFailed:
			f.failed += count
		}
	}
	f.made = f.items
	if !r.remade[row.n] {
		r.foreachs[row.n] = f
		r.exec("UPDATE tasks SET gate = ? WHERE n = ?", gateItems, row.n)
		r.add(jobOpen, row.n) // of items that were not queued yet
		return
	}
	r.exec("UPDATE tasks SET flags = flags & ~ ? WHERE n = ?", flagExpanded, row.n)
	r.deleteItems(row.n)
}

func (r *retry) deleteItems(of int64) {
	var items []taskRow
	for q := r.query("SELECT "+taskColumns+" FROM tasks AS t INDEXED BY tasks_of WHERE t.of = ? AND t.of <> 0", of); q.next(); {
		items = append(items, q.task())
	}
	r.deleteRows(items)
	r.exec("DELETE FROM foreachs WHERE n = ?", of)
}
