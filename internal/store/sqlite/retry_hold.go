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

// holdsUp reports whether a retry that is being made keeps a task from being queued: one of the task's plan, or one of tasks of no plan.
func (t *tx) holdsUp(r *taskRow) bool { return t.noted(t.plan(r.plan)) != 0 }
