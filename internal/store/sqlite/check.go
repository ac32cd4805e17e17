package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// SQLite's transactions keep jobs, joins, counters and places right, so that no sweep looks for faults in them. A person may, after the
// disk or somebody else damaged the file.

// Check implements store.Checker: SQLite's own check of the file, its tables and indexes, and then the rows of each task, the counts of
// plans and queues, and of each held or queued task what it waits for, the count of its parents or items, and its place. If the file is
// damaged, or a table or an index is not there, that is all.
func (s *Store) Check(ctx context.Context) (faults []string, exact bool, err error) {
	err = s.read(ctx, func(c *conn) error {
		for r := c.query("PRAGMA integrity_check(100)"); r.next(); {
			if text := r.text(0); text != "ok" {
				faults = append(faults, "the database file: "+text)
			}
		}
		return c.err
	})
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultCorrupt {
		return append(faults, "the database file: "+err.Error()), true, nil
	}
	if err != nil || len(faults) > 0 {
		return faults, true, err
	}
	whole, err := schemaNames()
	if err != nil {
		return nil, true, err
	}
	err = s.read(ctx, func(c *conn) error {
		there := c.names()
		for name, kind := range whole {
			if there[name] == "" {
				faults = append(faults, fmt.Sprintf("the %s %s is not there", kind, name))
			}
		}
		if len(faults) > 0 {
			return nil // the rest may ask for it
		}
		for r := c.query(lostRows, flagGathered); r.next(); {
			faults = append(faults, fmt.Sprintf("task %q (%s): %s", r.text(1), plan.TaskID{ID: r.id(0)}, r.text(2)))
		}
		faults = append(faults, c.lostEdges()...)
		faults = append(faults, c.wrongCounts()...)
		for r := c.query(misplaced); r.next(); {
			faults = append(faults, fmt.Sprintf("task %q (%s) is queued in another place than its queue and plan say", r.text(1), plan.TaskID{ID: r.id(0)}))
		}
		for r := c.query(misrolled); r.next(); {
			faults = append(faults, fmt.Sprintf("batch %s is to hand over a task of the row %d, where no finished task of no plan is", plan.ID(r.id(0)), r.int(1)))
		}
		return c.eachWrong(func(r *taskRow, why string) {
			faults = append(faults, fmt.Sprintf("task %q (%s): %s", c.named(r).Name, r.id, why))
		})
	})
	return faults, true, err
}

// schemaNames returns which tables and indexes the present schema has, by name.
func schemaNames() (map[string]string, error) {
	c, err := dial("file:/schema?vfs=memdb")
	if err != nil {
		return nil, err
	}
	c.script(present)
	names := c.names()
	return names, errors.Join(c.err, c.close())
}

// names returns which tables and indexes there are, by name.
func (c *conn) names() map[string]string {
	names := map[string]string{}
	for r := c.query("SELECT name, type FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"); r.next(); {
		names[r.text(0)] = r.text(1)
	}
	return names
}

// lostRows are tasks of which a row of another table is not there, with what that row has.
const lostRows = `SELECT id, name, 'its definition and params are not there' FROM tasks WHERE n NOT IN (SELECT n FROM bodies)
	UNION ALL SELECT id, name, 'its output is not there' FROM tasks
		WHERE out_len > 0 AND output IS NULL AND flags & ? = 0 AND n NOT IN (SELECT n FROM outputs)`

// misrolled are tasks of batches that cannot be in one.
const misrolled = `SELECT r.batch, r.task FROM rolled AS r LEFT JOIN tasks AS t ON t.n = r.task
	WHERE t.n IS NULL OR t.plan <> 0 OR t.of <> 0 OR t.ended <= 0`

// lostEdges names the held tasks that some of their parents would not release.
func (c *conn) lostEdges() (faults []string) {
	edges, ids := map[int64]int{}, map[int64]plan.TaskID{}
	for r := c.query(`SELECT t.n, coalesce(k.edges, 0), t.id FROM tasks AS t CROSS JOIN bodies AS b ON b.n = t.n
		LEFT JOIN (SELECT child, count(*) AS edges FROM kids GROUP BY child) AS k ON k.child = t.n
		WHERE t.of = 0 AND t.` + isHeld + ` AND b.parents <> coalesce(k.edges, 0)`); r.next(); {
		edges[r.int(0)], ids[r.int(0)] = int(r.int(1)), plan.TaskID{ID: r.id(2)}
	}
	for n, parents := range c.parentsOf(slices.Sorted(maps.Keys(edges))) {
		slices.Sort(parents)
		if needed := len(slices.Compact(parents)); needed != edges[n] { // a need may be said twice
			t := c.named(&taskRow{n: n, id: ids[n]})
			faults = append(faults, fmt.Sprintf("task %q (%s): it needs %d tasks, and %d of them know it", t.Name, t.ID, needed, edges[n]))
		}
	}
	return faults
}

// wrongCounts returns what is wrong with the counts of plans and queues.
func (c *conn) wrongCounts() (faults []string) {
	has := map[int64]*plan.Counts{}
	queues := map[int64][2]int{}
	for r := c.query("SELECT plan, queue, status, reason, flags & ?, count(*) FROM tasks GROUP BY 1, 2, 3, 4, 5", flagContinue|flagItems|flagBudget); r.next(); {
		t := taskRow{status: plan.Status(r.int(2)), reason: plan.Reason(r.text(3)), flags: r.int(4)}
		if has[r.int(0)] == nil {
			has[r.int(0)] = &plan.Counts{}
		}
		rules.Count(has[r.int(0)], t.counted(), int(r.int(5)))
		n := queues[r.int(1)]
		if rules.Claimable(t.status) {
			n[0] += int(r.int(5))
		} else if t.status.Active() {
			n[1] += int(r.int(5))
		}
		queues[r.int(1)] = n
	}
	for r := c.query("SELECT " + planColumns + " FROM plans"); r.next(); {
		p := r.plan()
		if has[p.n] == nil {
			has[p.n] = &plan.Counts{}
		}
		if *has[p.n] != p.Counts {
			faults = append(faults, fmt.Sprintf("the counts of plan %s: %s", p.Title(), rules.Differ(p.Counts, *has[p.n])))
		}
		delete(has, p.n)
	}
	delete(has, 0) // of no plan
	for range has {
		faults = append(faults, "there are tasks of a plan that is not there")
	}
	for r := c.query("SELECT n, name, queued, active FROM queues"); r.next(); {
		if n := queues[r.int(0)]; int64(n[0]) != r.int(2) || int64(n[1]) != r.int(3) {
			faults = append(faults, fmt.Sprintf("queue %q says that it has %d queued and %d active, but has %d and %d", r.text(1), r.int(2), r.int(3), n[0], n[1]))
		}
	}
	return faults
}

// misplaced are queued tasks that are not where the order of their queue has them.
const misplaced = `SELECT t.id, t.name FROM tasks AS t INDEXED BY tasks_ready CROSS JOIN queues AS q ON q.n = t.queue
	WHERE t.` + isReady + ` AND (t.lane, t.prio) <> (CASE q.sort WHEN '' THEN t.plan ELSE 0 END, CASE q.sort WHEN '' THEN -t.rank ELSE 0 END)`

// eachWrong hands over the held tasks whose hold, or count of parents or items, does not follow from the others, with what is wrong. It
// passes by plans that are closed, deleted or retried at this moment: jobs are left that look at their tasks.
func (c *conn) eachWrong(do func(r *taskRow, why string)) error {
	return c.eachHeld("coalesce(p.ended = 0 AND p.closing = '' AND p.leaving = 0 AND p.retry = 0, NOT EXISTS (SELECT 1 FROM retries))", func(k *facts, r *taskRow) {
		if of := k.of[r.of]; of != nil && rules.StopsItems(of.status, of.cancel) {
			return
		}
		var p *planRow
		if q := c.query("SELECT "+planColumns+" FROM plans WHERE n = ?", r.plan); q.next() {
			p = q.plan()
			q.close()
		}
		if why := c.wrong(k, p, r); why != "" {
			do(r, why)
		}
	})
}

// wrong says what is wrong with a held task; "" if it waits for something that will come to it, and its row and its join say for what.
func (c *conn) wrong(k *facts, p *planRow, r *taskRow) string {
	w := rules.Waiter{
		Status: r.status, When: r.rule, All: true, Early: r.notBefore != 0, Making: r.is(flagExpanding), Made: r.is(flagExpanded), InPlan: p != nil,
	}
	if p != nil {
		w.State, w.Closing, w.Ending = p.State, p.Closing, p.Ending
	}
	w.Finally = r.is(flagFinally)
	noted := false
	if r.goesAlong() {
		if slices.ContainsFunc(k.parents[r.n], func(p int64) bool { f := k.ended[p]; return f.outcome != 0 && f.waits(r.n) }) {
			return "" // it is still to be told of an end, and looks at all parents then
		}
		w.Along, w.Seen, w.All = c.along(r, func(n int64) int { return int(c.storedForeach(n).items) })
	}
	switch of := k.of[r.of]; {
	case w.Making || w.Made:
		are := c.countItems(r)
		if is := c.storedForeach(r.n); is != are {
			return "the counts of its items: " + rules.Differ(is, are)
		}
		w.Items.Left, noted = int(are.undone), c.noted(jobItems, r.n)
	case of != nil && (r.hold == forOthers || len(k.parents[r.n]) == 0):
		w.Item, w.Alone, noted = true, !of.is(flagExpanded), r.hold == forOthers && c.noted(jobOpen, r.of)
	case len(k.parents[r.n]) > 0:
		g := k.join(r)
		if is := k.joins[r.n]; is != g {
			return fmt.Sprintf("the counts of its parents: it is said to wait for %d, and waits for %d (%s)", is.waiting(), g.waiting(), rules.Differ(is, g))
		}
		if !r.goesAlong() {
			w.Seen, w.All = g.seen(), g.waiting() == 0
		}
	}
	waits := w.For(noted)
	if (r.hold == forPlan || r.hold == forEnd && !w.AwaitsEnd()) && c.noted(jobRoots, r.plan) {
		if r.hold == forPlan && waits == rules.ForParents {
			return "it is said to wait for its plan, and waits for parents"
		}
		return ""
	}
	switch hold, some := holdOf[waits]; {
	case !some:
		return "it is said to wait for " + awaited[r.hold] + ", and waits for nothing"
	case r.hold != hold:
		return "it is said to wait for " + awaited[r.hold] + ", and waits for " + awaited[hold]
	}
	return ""
}

// awaited has the words for what held tasks wait for.
var awaited = map[int64]string{
	forPlan: "its plan", forInstant: "an instant", forItems: "its items", forParents: "its parents", forOthers: "the other items", forRetry: "a retry",
	forEnd: "the end of all tasks that are none of finally",
}

func (c *conn) noted(kind, ref int64) bool {
	return c.query("SELECT 1 FROM jobs WHERE kind = ? AND ref = ?", kind, ref).one()
}

var holdOf = map[rules.Hold]int64{
	rules.ForParents: forParents, rules.ForInstant: forInstant, rules.ForItems: forItems, rules.ForOthers: forOthers, rules.ForPlan: forPlan,
	rules.ForEnd: forEnd,
}
