package sqlite

import "github.com/seed-1177d267/sluice/internal/rules"

// checkedAtOnce is how many held tasks a check has in memory.
const checkedAtOnce = 1000

// eachHeld hands over the held tasks, and what they wait for, of plans p that are like that, or of none.
func (c *conn) eachHeld(like string, do func(k *facts, r *taskRow)) error {
	for past := int64(0); ; {
		var held []taskRow
		for r := c.query("SELECT "+taskColumns+" FROM tasks AS t LEFT JOIN plans AS p ON p.n = t.plan WHERE t."+isHeld+" AND t.n > ? AND "+like+
			" ORDER BY t.n LIMIT ? + 0", past, checkedAtOnce); r.next(); {
			held = append(held, r.task())
		}
		if len(held) == 0 || c.err != nil {
			return c.err
		}
		past = held[len(held)-1].n
		k := c.knownOf(held)
		for i := range held {
			do(k, &held[i])
		}
	}
}

// countedAnew is the schema whose migration calls countAnew.
const countedAnew = 21

// countAnew writes the counts of parents and items of held tasks as the tasks say.
func (c *conn) countAnew() {
	_ = c.eachHeld("1", func(k *facts, r *taskRow) { // the connection keeps the error
		switch {
		case r.is(flagExpanding | flagExpanded):
			f := c.countItems(r)
			c.exec(writeForeach, f.n, f.items, f.made, f.undone, f.failed, int64(f.seen), f.bytes)
		case len(k.parents[r.n]) > 0:
			g := k.join(r)
			c.exec("UPDATE gates SET waits = ?, bytes = ?, largest = ? WHERE n = ?", g.waits, g.bytes, g.largest, g.child)
		}
	})
}

// facts are what says what tasks wait for.
type facts struct {
	parents map[int64][]int64
	ended   map[int64]fact
	joins   map[int64]join     // as they are kept
	of      map[int64]*taskRow // foreach tasks of items
}

func (c *conn) knownOf(held []taskRow) *facts {
	ns := numbers(held)
	k := &facts{parents: c.parentsOf(ns), joins: map[int64]join{}, of: map[int64]*taskRow{}}
	k.ended = c.factsOf(k.parents)
	for r := c.query("SELECT n, waits, bytes, largest FROM gates WHERE n IN (SELECT value FROM json_each(?))", list(ns)); r.next(); {
		k.joins[r.int(0)] = join{child: r.int(0), waits: r.int(1), bytes: r.int(2), largest: r.int(3)}
	}
	for _, r := range c.taskRows(distinct(each(held, func(r *taskRow) int64 { return r.of }))) { // 0 is none's
		k.of[r.n] = &r
	}
	return k
}

// join returns the join of a task as its parents say.
func (k *facts) join(r *taskRow) join {
	g := countParents(r.n, r.rule, r.goesAlong(), k.parents[r.n], k.ended)
	g.look = false
	return g
}

// countItems says how the items of a held foreach task did.
func (c *conn) countItems(r *taskRow) foreachRow {
	f := foreachRow{n: r.n}
	for q := c.query(`SELECT outcome, count(*), sum(CASE outcome WHEN 0 THEN 0 ELSE max(out_len, 4) END) FROM tasks INDEXED BY tasks_of
		WHERE of = ? AND of <> 0 GROUP BY outcome`, r.n); q.next(); {
		f.count(rules.Outcome(q.int(0)), q.int(1), q.int(2))
	}
	f.made = f.items
	if !r.is(flagExpanding) {
		return f
	}
	if r.goesAlong() {
		a, _, _ := c.along(r, func(n int64) int { return int(c.storedForeach(n).items) })
		f.undone += int64(a.Items) - f.items
		f.items = int64(a.Items)
		return f
	}
	if q := c.query("SELECT first + json_array_length(CAST(items AS TEXT)) FROM lists WHERE of = ? ORDER BY first DESC LIMIT 1", r.n); q.one() {
		f.undone += q.int(0) - f.items
		f.items = q.int(0)
	}
	return f
}
