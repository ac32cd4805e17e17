package sqlite

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// selected is a task that a retry takes, as it was checked.
type selected struct {
	n, how int64
	queue  int64 // with what replaces it
	with   *plan.Task
	def    []byte
}

// selection finds out what a retry takes.
type selection struct {
	*conn
	of       int64 // the plan's n, or 0
	rows     []taskRow
	taken    map[int64]bool
	replaced map[plan.TaskID]*plan.Task
	remade   map[int64]bool // foreach tasks that make their items anew
}

// selectRetried returns what a retry takes, or what is wrong with that. It changes nothing.
func (c *conn) selectRetried(of int64, chosen []plan.Retried, replace []plan.Task) ([]selected, error) {
	r := &selection{conn: c, of: of, taken: make(map[int64]bool, len(chosen)), replaced: make(map[plan.TaskID]*plan.Task, len(replace)), remade: map[int64]bool{}}
	for i := range replace {
		r.replaced[replace[i].ID] = &replace[i]
	}
	anew, err := r.takeChosen(chosen)
	if err != nil || len(r.rows) == 0 {
		return nil, err
	}
	if err := cmp.Or(r.checkParents(), r.checkQueues()); err != nil {
		return nil, err
	}
	r.remake(anew)
	if err := r.checkBelow(); err != nil {
		return nil, err
	}
	out := make([]selected, len(r.rows))
	for i := range r.rows {
		row, s := &r.rows[i], &out[i]
		s.n = row.n
		if r.remade[row.n] {
			s.how = howRemakes
		} else if row.of != 0 && r.remade[row.of] {
			s.how = howGoes
		}
		if with := r.replaced[row.id]; with != nil {
			if s.queue, err = c.queueNumber(with.Queue); err == nil {
				s.def, err = packDefinition(with.Definition)
			}
			if err != nil {
				return nil, fmt.Errorf("task %q: %w", with.Key(), err)
			}
			s.with = with
		}
	}
	sort.Slice(out, func(a, b int) bool { return out[a].n < out[b].n })
	return out, c.err
}

// takeChosen takes what the caller chose, each in the state that the caller saw, and returns which foreach tasks are to make their items anew
// in any case.
func (r *selection) takeChosen(chosen []plan.Retried) (anew map[int64]bool, err error) {
	ids := make([]plan.TaskID, len(chosen))
	for i := range chosen {
		ids[i] = chosen[i].ID
	}
	found := make(map[plan.TaskID]taskRow, len(chosen))
	for q := r.query("SELECT "+taskColumns+" FROM tasks AS t WHERE t.id IN (SELECT unhex(value) FROM json_each(?))", listIDs(ids)); q.next(); {
		row := q.task()
		found[row.id] = row
	}
	anew = map[int64]bool{}
	for _, c := range chosen {
		row, ok := found[c.ID]
		switch {
		case !ok, row.plan != r.of:
			return nil, fmt.Errorf("task %s: %w", c.ID, plan.ErrNotFound)
		case row.status != c.Status, row.status.Active():
			return nil, rules.CheckRetried(&c, r.named(&row))
		}
		r.take(row)
		anew[row.n] = c.Anew
	}
	// With an item goes its foreach task, or nobody would notice when it ends.
	var ofs []int64
	for i := range r.rows {
		if of := r.rows[i].of; of != 0 && !r.taken[of] {
			ofs = append(ofs, of)
		}
	}
	for _, row := range r.taskRows(distinct(ofs)) {
		r.take(row)
	}
	for i := range r.rows {
		if of := r.rows[i].of; of != 0 && !r.taken[of] { // it is deleted, and the item goes as well
			return nil, fmt.Errorf("task %s: %w", r.rows[i].id, plan.ErrNotFound)
		}
	}
	return anew, r.err
}

func (r *selection) take(row taskRow) {
	if !r.taken[row.n] {
		r.taken[row.n] = true
		r.rows = append(r.rows, row)
	}
}

// remake finds the foreach tasks that are to make their items anew. anew has those of which the caller wants it.
func (r *selection) remake(anew map[int64]bool) {
	var ns []int64
	for i := range r.rows {
		if r.rows[i].is(flagForeach) {
			ns = append(ns, r.rows[i].n)
		}
	}
	parents := r.parentsOf(ns)
	facts := r.factsOf(parents)
	items := map[int64]int64{}
	for q := r.query("SELECT n, items FROM foreachs WHERE n IN (SELECT value FROM json_each(?))", list(ns)); q.next(); {
		items[q.int(0)] = q.int(1)
	}
	for i := range r.rows {
		row := &r.rows[i]
		if !row.is(flagForeach) {
			continue
		}
		foreach := true
		if with := r.replaced[row.id]; with != nil {
			foreach = with.Foreach != nil
		}
		waits := slices.ContainsFunc(parents[row.n], func(p int64) bool {
			f, there := facts[p]
			return there && (r.taken[p] || f.waits(row.n))
		})
		t := plan.Task{Expanded: row.is(flagExpanded), Items: int(items[row.n])}
		r.remade[row.n] = rules.Remakes(&plan.Retried{Anew: anew[row.n]}, &t, foreach, waits)
	}
}

// checkQueues refuses tasks whose queue was deleted, and that are not replaced.
func (r *selection) checkQueues() error {
	there := map[int64]bool{}
	for i := range r.rows {
		row := &r.rows[i]
		is, asked := there[row.queue]
		if !asked {
			is = r.query("SELECT 1 FROM queues WHERE n = ? AND "+isQueue, row.queue).one()
			there[row.queue] = is
		}
		if !is && r.replaced[row.id] == nil {
			return rules.QueueDeleted(r.named(row))
		}
	}
	return nil
}

// checkParents refuses tasks of no plan that need some of a plan that is being deleted.
func (r *selection) checkParents() error {
	if r.of != 0 {
		return nil
	}
	parents := r.parentsOf(numbers(r.rows))
	for i := range r.rows {
		row := &r.rows[i]
		if r.query(`SELECT 1 FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.n = j.value CROSS JOIN plans AS p ON p.n = t.plan
			WHERE p.leaving = 1 LIMIT 1`, list(parents[row.n])).one() {
			return rules.NeedsDeleted(r.named(row))
		}
	}
	return nil
}

// belowRetried finds what is below tasks (1) that a retry takes, and has not finished: their items, and the children of the tasks, of the items
// of those that make them again (2), and of missing items that come back. The last column tells children from items.
const belowRetried = `WITH above (n) AS (
		SELECT value FROM json_each(?1)
		UNION ALL SELECT i.n FROM json_each(?2) AS j CROSS JOIN tasks AS i INDEXED BY tasks_of ON i.of = j.value AND i.of <> 0
		UNION ALL SELECT m.n FROM json_each(?2) AS j CROSS JOIN missing AS m ON m.of = j.value)
	SELECT t.n, t.status, t.name, t.id, t.gate, 1 FROM above CROSS JOIN kids AS k ON k.parent = above.n CROSS JOIN tasks AS t ON t.n = k.child WHERE t.outcome = 0
	UNION ALL SELECT t.n, t.status, t.name, t.id, t.gate, 0 FROM json_each(?1) AS j CROSS JOIN tasks AS t INDEXED BY tasks_of ON t.of = j.value AND t.of <> 0
		WHERE t.outcome = 0`

// checkBelow asks rules.CheckBelow of what is below and is not taken. A task that waits goes on waiting. A task that is queued is too late to be
// held; so is one whose parents have had their say, while a retry holds it up.
func (r *selection) checkBelow() error {
	var remade []int64
	for n, is := range r.remade {
		if is {
			remade = append(remade, n)
		}
	}
	for q := r.query(belowRetried, list(numbers(r.rows)), list(remade)); q.next(); {
		if r.taken[q.int(0)] {
			continue
		}
		below := plan.Task{ID: plan.TaskID{ID: q.id(3)}, Status: plan.Status(q.int(1)), Name: q.text(2)}
		gate := q.int(4)
		if err := rules.CheckBelow(&below, gate == gateDelay || gate == gateItems || gate == gateNone && q.bool(5)); err != nil {
			q.close()
			return err
		}
	}
	return r.err
}
