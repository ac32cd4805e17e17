package sqlite

import (
	"context"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// SQLite's transactions keep jobs, joins, counters and places right, so that no sweep looks for faults in them. A person may, after the
// disk or somebody else damaged the file.

// Check implements store.Checker: SQLite's own check of the file, and then of each held or queued task what it waits for, the count of its
// parents or items, and its place.
func (s *Store) Check(ctx context.Context) (faults []string, err error) {
	err = s.read(ctx, func(c *conn) error {
		for r := c.query("PRAGMA integrity_check(100)"); r.next(); {
			if text := r.text(0); text != "ok" {
				faults = append(faults, "the database file: "+text)
			}
		}
		for r := c.query(misplaced); r.next(); {
			faults = append(faults, fmt.Sprintf("task %s is queued in another place than its queue and plan say", plan.TaskID{ID: r.id(0)}))
		}
		return c.eachWrong(func(r *taskRow, why string) {
			faults = append(faults, fmt.Sprintf("task %s: %s", r.id, why))
		})
	})
	return faults, err
}

// place is, in SQL, whether a queued task t of a queue q and a plan p is where it belongs.
const placed = "t.lane = CASE WHEN p.own THEN t.plan ELSE 0 END AND t.prio = CASE q.sort WHEN '' THEN -t.rank ELSE 0 END"

// misplaced are queued tasks in a wrong place, unless a job is left that is about to put them right.
const misplaced = `SELECT t.id FROM tasks AS t INDEXED BY tasks_ready CROSS JOIN queues AS q ON q.n = t.queue LEFT JOIN plans AS p ON p.n = t.plan
	WHERE t.` + isReady + ` AND NOT (` + placed + `)
		AND NOT (coalesce(p.own, 0) AND EXISTS (SELECT 1 FROM jobs WHERE kind = 6 AND ref = t.plan))`

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
		w.State, w.Closing = p.State, p.Closing
	}
	noted := false
	switch of := k.of[r.of]; {
	case w.Making || w.Made:
		are := c.countItems(r)
		if is := c.storedForeach(r.n); is != are {
			return fmt.Sprintf("its items are counted as %+v, and are %+v", is, are)
		}
		w.Items.Left, noted = int(are.undone), c.noted(jobItems, r.n)
	case of != nil:
		w.Item, w.Alone, noted = true, !of.is(flagExpanded), r.hold == forOthers && c.noted(jobOpen, r.of)
	case len(k.parents[r.n]) > 0:
		g := k.join(r)
		if is := k.joins[r.n]; is != g {
			return fmt.Sprintf("it is said to wait for %d parents, and waits for %d; their outcomes are %b, and %b; their outputs %d bytes, and %d", is.waiting(), g.waiting(), is.seen(), g.seen(), is.bytes, g.bytes)
		}
		w.Seen, w.All = g.seen(), g.waiting() == 0
	}
	waits := w.For(noted)
	if r.hold == forPlan && c.noted(jobRoots, r.plan) {
		if waits == rules.ForParents {
			return "it is said to wait for its plan, and waits for parents"
		}
		return ""
	}
	if hold, some := holdOf[waits]; !some || r.hold != hold {
		return fmt.Sprintf("it is said to wait for one thing (%d), and waits for another (%d)", r.hold, hold)
	}
	return ""
}

func (c *conn) noted(kind, ref int64) bool {
	return c.query("SELECT 1 FROM jobs WHERE kind = ? AND ref = ?", kind, ref).one()
}

var holdOf = map[rules.Hold]int64{
	rules.ForParents: forParents, rules.ForInstant: forInstant, rules.ForItems: forItems, rules.ForOthers: forOthers, rules.ForPlan: forPlan,
}
