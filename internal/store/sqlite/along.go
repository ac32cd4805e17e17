package sqlite

import (
	"errors"
	"slices"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// seeAlong fills a Waiter as rules.Along says.
func (t *tx) seeAlong(r *taskRow, w *rules.Waiter) {
	t.flushTasks() // the ends of parents
	w.Along, w.Seen, w.All = t.along(r, func(n int64) int { return int(t.foreach(n).items) })
}

// tellAlong settles those that go along with a foreach task whose items are all in.
func (t *tx) tellAlong(n int64) {
	var found []taskRow
	for r := t.fresh("SELECT "+taskColumns+" FROM kids AS k CROSS JOIN tasks AS t ON t.n = k.child WHERE k.parent = ? AND t.flags & ? <> 0", n, flagAlong); r.next(); {
		if row := r.task(); row.goesAlong() && row.waitsFor(forParents) {
			found = append(found, row)
		}
	}
	t.budget -= len(found)
	t.settle(found)
}

var errHeadItems = errors.New("the items that it goes along with are gone; retry it")

// makeAlong inserts the next items of a task that goes along with others, held, as many as the budget
// allows. Each needs the items with its index of the heads, and what else the task needs.
func (t *tx) makeAlong(r *taskRow, of *plan.Task, b *body, f *foreachRow) error {
	t.flushTasks() // the ends of parents
	needs := t.parentsOf([]int64{r.n})[r.n]
	heads := make(map[int64]bool, len(needs)) // those that have items
	for q := t.query("SELECT t.n, t.name, t.flags & ? <> 0 FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.n = j.value", flagExpanded, list(needs)); q.next(); {
		heads[q.int(0)] = rules.GoesAlong(b.Foreach, q.text(1)) && q.bool(2)
	}
	for n := range heads {
		heads[n] = heads[n] && t.foreach(n).items > 0
	}
	count := min(int64(t.budget), f.items-f.made, listBatch)
	parents := make([][]int64, count)
	values := make([][]byte, count)
	for _, need := range needs {
		if !heads[need] {
			for i := range parents {
				parents[i] = append(parents[i], need)
			}
			continue
		}
		i := 0
		for q := t.query(`SELECT t.n, b.params FROM tasks AS t INDEXED BY tasks_of CROSS JOIN bodies AS b ON b.n = t.n
			WHERE t.of = ? AND t.of <> 0 AND t.idx >= ? ORDER BY t.idx LIMIT ? + 0`, need, f.made, count); q.next(); i++ {
			parents[i] = append(parents[i], q.int(0))
			values[i] = rules.ItemOf(q.bytes(1))
		}
		if i < len(parents) {
			return errHeadItems
		}
	}
	x := newTask{n: t.number(count), plan: r.plan, queue: r.queue, hold: forOthers, flags: r.flags&(flagContinue|flagBadParams) | flagAlong, of: r.n}
	children := make(map[int64][]int64, count)
	for i := range parents {
		children[x.n+int64(i)] = parents[i]
	}
	facts := t.factsOf(children)
	for _, p := range t.ends { // which are still to be told to their children, and so to these
		if ended, is := facts[p.n]; is {
			ended.told = min(ended.told, p.past)
			facts[p.n] = ended
		}
	}
	var in inserts
	var edges []edge
	joins := make([]join, 0, count)
	for i := range parents {
		task := rules.ItemTask(of, int(f.made), values[i], b.params, t.at)
		x.index, x.parents = f.made, parents[i]
		row := t.rowsOf(&in, &task, x)
		t.count(&row)
		for _, p := range distinct(slices.Clone(parents[i])) {
			edges = append(edges, edge{p, x.n})
		}
		joins = append(joins, countParents(x.n, task.When, false, x.parents, facts))
		x.n++
		f.made++
	}
	t.insertEdges(&in, edges)
	t.insertRows(insertTask, in.tasks)
	t.insertRows(insertBody, in.bodies)
	t.writeJoins(joins)
	t.budget -= len(parents)
	return t.err
}

// openAlong has items of a task that goes along with others, which are all in, wait for their own parents.
func (t *tx) openAlong(n, from int64) (past any, done bool) {
	var ns []int64
	looked := 0
	for r := t.fresh("SELECT t.n, t.idx, t."+isHeld+" AND t.gate = ? FROM tasks AS t INDEXED BY tasks_of WHERE t.of = ? AND t.of <> 0 AND t.idx >= ? ORDER BY t.idx LIMIT ? + 0",
		forOthers, n, from, t.budget); r.next(); {
		looked++
		from = r.int(1) + 1
		if r.bool(2) {
			ns = append(ns, r.int(0))
		}
	}
	done = looked < t.budget
	t.budget -= looked
	if len(ns) == 0 {
		return from, done
	}
	t.execEach("UPDATE tasks SET gate = ? WHERE n", ns, forParents)
	var joins []join
	for r := t.query("SELECT n, waits, bytes, largest FROM gates WHERE n IN (SELECT value FROM json_each(?))", list(ns)); r.next(); {
		joins = append(joins, join{child: r.int(0), waits: r.int(1), bytes: r.int(2), largest: r.int(3)})
	}
	t.decideAll(joins)
	return from, done
}
