package sqlite

import (
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// countMoved counts in its plan what a task is in place of what it was.
func (t *tx) countMoved(r *taskRow, was rules.Counted) {
	if p := t.plan(r.plan); p != nil {
		rules.Count(&p.Counts, was, -1)
		rules.Count(&p.Counts, r.counted(), 1)
	}
}

// tasks returns the rows of tasks, in the order of the list; those that are not there are left out.
func (t *tx) tasks(ns []int64) []taskRow {
	if len(ns) == 0 {
		return nil
	}
	t.flushUnstarted()
	return t.taskRows(ns)
}

// move takes a task to another status in everything that counts tasks by it. Its row is the caller's to write.
func (t *tx) move(r *taskRow, to plan.Status, why plan.Reason) {
	if !r.status.CanBecome(to) {
		t.fail(fmt.Errorf("task %s: %v cannot become %v", r.id, r.status, to))
		return
	}
	q := t.queue(r.queue)
	rules.CountInQueue(&q.Queue, r.status, -1)
	rules.CountInQueue(&q.Queue, to, 1)
	if rules.Claimable(to) {
		t.queued++
	}
	was := r.counted()
	r.status, r.reason = to, why
	t.countMoved(r, was)
	t.changed = append(t.changed, r.n)
}

// step does with a task as a rule says.
func (t *tx) step(r *taskRow, s rules.Step) {
	if s.Attempts != 0 || s.Rescues != 0 {
		t.exec("UPDATE tasks SET attempt = attempt + ?, rescues = rescues + ? WHERE n = ?", s.Attempts, s.Rescues, r.n)
	}
	if s.Ran && !r.is(flagRan) && !s.Reset {
		r.flags |= flagRan
		t.exec("UPDATE tasks SET flags = flags | ? WHERE n = ?", flagRan, r.n)
	}
	switch {
	case s.Reset:
		if r.status != s.Status {
			t.move(r, s.Status, s.Reason)
		}
		t.changed, t.reset = append(t.changed, r.n), append(t.reset, r.n)
	case s.Finishes():
		t.finish(r, s)
	case len(s.Items) > 0:
		t.expand(r, s)
	case s.Delay > 0:
		t.delay(r, s)
	default:
		if !s.Keep {
			t.exec("UPDATE tasks SET reason = ?, detail = ?, exit = iif(?, ?, exit) WHERE n = ?", orNull(s.Reason), orNull(s.Detail), s.Attempted, t.exit(s.Exit), r.n)
			r.reason = s.Reason
		}
		t.enqueue(r, s)
	}
}

func (t *tx) ClaimView(r *taskRow) rules.Claim {
	c := rules.Claim{Status: r.status, Cancel: r.cancel, Ran: r.is(flagRan), List: r.is(flagForeach)}
	if p := t.plan(r.plan); p != nil {
		c.Closing = p.Closing
	}
	return c
}

// finish ends a task. Its children, its foreach task and its plan learn of it before the transaction ends.
func (t *tx) finish(r *taskRow, s rules.Step) {
	if len(s.Output) == 0 || string(s.Output) == "null" {
		s.Output = nil
	}
	if s.Empty {
		r.flags |= flagExpanded
	}
	if r.is(flagExpanding) {
		t.exec("DELETE FROM jobs WHERE kind = ? AND ref = ?", jobItems, r.n)
		t.exec("DELETE FROM lists WHERE of = ?", r.n)
		r.flags &^= flagExpanding
		f := t.foreach(r.n) // the others will not be made
		f.items, f.undone, f.dirty = f.made, f.undone-(f.items-f.made), true
	}
	was := r.status
	t.move(r, s.Status, s.Reason)
	outcome, size := rules.OutcomeOf(s.Status, s.Reason, r.allowed()), int64(len(s.Output))
	if r.is(flagGathered) {
		size = t.foreach(r.n).size()
	}
	switch {
	case s.Plain() && len(s.Output) <= inlineOutput && !r.is(flagForeach):
		t.done[string(s.Output)] = append(t.done[string(s.Output)], r.n)
	case s.Output == nil && !r.is(flagForeach) && rules.Pending(was) && !s.Attempted:
		how := unstarted{s.Status, s.Reason, s.Detail, outcome}
		t.unstarted[how] = append(t.unstarted[how], r.n)
	default:
		t.writeEnd(r, &s, outcome, size)
	}
	t.ends = append(t.ends, parent{n: r.n, outcome: outcome, size: size})
	if r.of != 0 {
		t.foreach(r.of).ended(outcome, size)
	}
	if p := t.plan(r.plan); p != nil {
		t.fail(engine.TaskEnded(t.ctx, t, p, rules.OutcomeOf(s.Status, s.Reason, r.is(flagContinue)), s.Reason))
	}
}

func (t *tx) writeEnd(r *taskRow, s *rules.Step, outcome rules.Outcome, size int64) {
	inline := s.Output
	if len(inline) > inlineOutput {
		inline = nil
		t.exec("INSERT OR REPLACE INTO outputs (n, output) VALUES (?, ?)", r.n, []byte(s.Output))
	}
	if s.Plain() { // fewer parameters: of most tasks that is all
		t.exec("UPDATE tasks SET "+setPlain+", flags = ?1, outcome = ?2, out_len = ?3, output = ?4, ended = ?5, modified = ?5 WHERE n = ?6",
			r.flags, int64(outcome), size, []byte(inline), t.now, r.n)
		return
	}
	t.exec(`UPDATE tasks SET status = ?, gate = 0, flags = ?, reason = ?, detail = ?, exit = iif(?, ?, exit), outcome = ?, out_len = ?, output = ?, cancel = 0,
		instance = iif(?, 0, instance), not_before = 0, ended = ?, modified = ? WHERE n = ?`,
		int64(s.Status), r.flags, orNull(s.Reason), orNull(s.Detail), s.Attempted, t.exit(s.Exit), int64(outcome), size, []byte(inline), s.LosesNode(), t.now, t.now, r.n)
}

// exit is an exit status as it is stored; NULL where there is none.
func (t *tx) exit(x *plan.Exit) any {
	if x == nil {
		return nil
	}
	b, err := json.Marshal(x)
	t.fail(err)
	return string(b)
}

// enqueue queues a held, claimed or running task. Its row is written by flushTasks, unless the same transaction claims it.
func (t *tx) enqueue(r *taskRow, s rules.Step) {
	at := place{queue: r.queue, delivered: r.of == 0 || r.is(flagAlong)}
	if t.queue(r.queue).Sort == plan.SortDefault {
		at.lane = r.plan
	}
	t.move(r, s.Status, r.reason)
	t.ready[at] = append(t.ready[at], candidate{n: r.n, plan: r.plan, prio: r.rank * t.ranked(r.queue), id: r.id.ID})
}

// fresh is query for rows of tasks that the transaction may have changed: it writes these first.
func (t *tx) fresh(text string, args ...any) *rows {
	t.flushTasks()
	return t.query(text, args...)
}

// flushTasks writes the rows that are written together.
func (t *tx) flushTasks() {
	t.flushDone()
	t.flushUnstarted()
	t.flushReady()
}

func (t *tx) flushUnstarted() {
	for how, ns := range t.unstarted {
		t.execEach(`UPDATE tasks SET status = ?, gate = 0, reason = ?, detail = ?, outcome = ?, out_len = 0, output = NULL, cancel = 0,
			instance = 0, not_before = 0, ended = ?, modified = ? WHERE n`, ns, int64(how.status), orNull(how.reason), orNull(how.detail), int64(how.outcome), t.now, t.now)
		delete(t.unstarted, how)
	}
}

func (t *tx) flushDone() {
	for text, ns := range t.done {
		var output []byte
		if text != "" {
			output = []byte(text)
		}
		t.execEach("UPDATE tasks SET "+setPlain+", outcome = ?, out_len = ?, output = ?, ended = ?, modified = ? WHERE n",
			ns, int64(rules.OutcomeSucceeded), len(output), output, t.now, t.now)
	}
	clear(t.done)
}

// delay holds a task until its next attempt.
func (t *tx) delay(r *taskRow, s rules.Step) {
	t.move(r, s.Status, s.Reason)
	t.exec(`UPDATE tasks SET status = ?, gate = ?, reason = ?, detail = ?, exit = ?, instance = 0, not_before = ?, modified = ? WHERE n = ?`,
		int64(s.Status), forInstant, orNull(s.Reason), orNull(s.Detail), t.exit(s.Exit), t.unset(t.now+s.Delay.Microseconds()), t.now, r.n)
}
