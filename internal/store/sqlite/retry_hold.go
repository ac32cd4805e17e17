package sqlite

// retryOfNone finds the retry of tasks of no plan.
const retryOfNone = "SELECT n FROM retries WHERE plan = 0"

// noted returns the retry that a plan notes, or (nil) that is made of tasks of no plan; 0 is none.
func (t *tx) noted(p *planRow) int64 {
	if p != nil {
		return p.retry
	}
	if t.apart == nil {
		n := int64(0)
		if q := t.query(retryOfNone); q.one() {
			n = q.int(0)
		}
		t.apart = &n
	}
	return *t.apart
}

const anyRetry = "SELECT 1 FROM plans INDEXED BY plans_retry WHERE retry <> 0 LIMIT 1"

// holdsUp reports whether a retry that is being made keeps a task from being queued: one of the task's plan, or, of a task of no plan, one
// of any such tasks, or of a plan that it needs some of.
func (t *tx) holdsUp(r *taskRow) bool {
	if p := t.plan(r.plan); t.noted(p) != 0 {
		return true
	} else if p != nil {
		return false
	}
	if t.retrying == nil {
		t.flushClosings()
		some := t.query(anyRetry).one()
		t.retrying = &some
	}
	if !*t.retrying {
		return false
	}
	return t.query(`SELECT 1 FROM json_each(?1) AS j CROSS JOIN tasks AS t ON t.n = j.value CROSS JOIN plans AS p ON p.n = t.plan WHERE p.retry <> 0
		UNION ALL SELECT 1 FROM json_each(?1) AS j CROSS JOIN missing AS m ON m.n = j.value CROSS JOIN tasks AS t ON t.n = m.of
			CROSS JOIN plans AS p ON p.n = t.plan WHERE p.retry <> 0
		LIMIT 1`, list(t.parentsOf([]int64{r.n})[r.n])).one()
}
