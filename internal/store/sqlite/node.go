package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

func (s *Store) Turn(ctx context.Context, turn protocol.Turn) (did protocol.Turned, err error) {
	if err := engine.CheckTurn(&turn); err != nil {
		return did, err
	}
	err = s.write(ctx, func(t *tx) (err error) {
		if t.by, err = t.instance(turn.Instance); err == nil {
			did, err = engine.Turn(ctx, t, &turn)
			t.answer = func() { did.Claimed = t.handOver() }
		}
		return err
	})
	if err != nil {
		return protocol.Turned{}, err
	}
	return did, nil
}

func (t *tx) Finish(_ context.Context, only plan.PlanID) (engine.Did, error) {
	for t.endPlans() {
	}
	return engine.Did{More: t.begun > 0, Queued: t.queued, Ended: t.ended, Over: t.over(only), Rest: t.rest}, t.err
}

// claimed returns, for each of the claims, its task's row if the claim holds, else nil; of a claim that is there twice, the second is nil.
func (t *tx) claimed(count int, claim func(int) *protocol.Claim) []*taskRow {
	ns := make([]int64, count)
	for i := range ns {
		ns[i], _ = unpackToken(claim(i).Token)
	}
	found := slices.Grow(t.s.found[:0], count)
	at := make(map[int64]*taskRow, count)
	t.queryEach(tasksOf, slices.Clone(ns), func(r *rows) {
		found = append(found, r.task())
		at[r.int(0)] = &found[len(found)-1]
	})
	t.s.found = found
	out := make([]*taskRow, count)
	for i := range out {
		c, r := claim(i), at[ns[i]]
		if r == nil {
			continue
		}
		if _, token := unpackToken(c.Token); r.status.Active() && r.id == c.Task && r.attempt == int64(c.Attempt) && r.token == token {
			out[i] = r
			delete(at, r.n)
		}
	}
	return out
}

func (t *tx) Attempts(_ context.Context, endings []protocol.Ending) (held []engine.Attempt[*taskRow], lost []plan.TaskID, err error) {
	if len(endings) == 0 {
		return nil, nil, nil
	}
	held = slices.Grow(t.s.attempts[:0], len(endings))
	for i, r := range t.claimed(len(endings), func(i int) *protocol.Claim { return &endings[i].Claim }) {
		if r == nil {
			lost = append(lost, endings[i].Task)
		} else {
			held = append(held, engine.Attempt[*taskRow]{Task: r, Ending: &endings[i]})
		}
	}
	t.s.attempts = held
	return held, lost, t.err
}

func (t *tx) End(_ context.Context, a *engine.Attempt[*taskRow]) error {
	if e := a.Ending; e != nil {
		if e.Printed != nil {
			t.printed = append(t.printed, printed{a.Task.n, e.Printed})
		}
		t.log(a.Task.n, e.Attempt, e.Log)
	}
	t.step(a.Task, a.Step)
	return t.err
}

func (t *tx) Ended(context.Context) ([]engine.Attempt[*taskRow], []plan.TaskID, error) {
	t.flushPrinted()
	clear(t.s.attempts)
	clear(t.s.found)
	return nil, nil, t.err
}

func (s *Store) Start(ctx context.Context, claims []protocol.Claim) (lost []plan.TaskID, err error) {
	err = s.write(ctx, func(t *tx) error {
		lost, err = engine.Start(ctx, t, claims)
		return err
	})
	return lost, err
}

func (t *tx) Start(_ context.Context, tasks []*taskRow, s rules.Step) error {
	var ns []int64
	for _, r := range tasks {
		t.move(r, s.Status, r.reason)
		ns = append(ns, r.n)
	}
	t.execEach("UPDATE tasks SET status = ?, started = ?, modified = ? WHERE n", ns, int64(s.Status), t.now, t.now)
	return t.err
}

func (s *Store) AppendLog(ctx context.Context, c protocol.Claim, entries []plan.LogEntry) error {
	return s.write(ctx, func(t *tx) error {
		r := t.claimed(1, func(int) *protocol.Claim { return &c })[0]
		if r == nil {
			return fmt.Errorf("log of task %s, attempt %d: %w", c.Task, c.Attempt, plan.ErrClaimLost)
		}
		if !t.logged(r.n, c.Attempt, entries) {
			t.log(r.n, c.Attempt, entries)
		}
		return nil
	})
}

// logged reports whether the last of a task's log are these entries.
func (t *tx) logged(n int64, attempt int, entries []plan.LogEntry) bool {
	i := len(entries)
	// In this order nearly always one entry is read.
	for r := t.query("SELECT at, attempt, stream, text FROM logs WHERE task = ? ORDER BY seq DESC LIMIT ? + 0", n, len(entries)); r.next(); i-- {
		e := &entries[i-1]
		if r.int(0) != micro(e.At) || r.int(1) != int64(cmp.Or(e.Attempt, attempt)) || r.int(2) != int64(e.Stream) || r.text(3) != e.Text {
			r.close()
			return false
		}
	}
	return i == 0
}

// log appends to a task's log. Entries that name no attempt are of the present one.
func (t *tx) log(n int64, attempt int, entries []plan.LogEntry) {
	if len(entries) == 0 {
		return
	}
	r := t.query("SELECT coalesce(max(seq), 0) FROM logs WHERE task = ?", n)
	if !r.one() {
		return
	}
	seq := r.int(0)
	for _, e := range entries {
		seq++
		t.exec("INSERT INTO logs (task, seq, at, attempt, stream, text) VALUES (?, ?, ?, ?, ?, ?)",
			n, seq, micro(e.At), cmp.Or(e.Attempt, attempt), int64(e.Stream), e.Text)
	}
}

func (s *Store) Sweep(ctx context.Context, w protocol.Sweep) (did protocol.Swept, err error) {
	err = s.write(ctx, func(t *tx) (err error) {
		if t.by, err = t.instance(w.Instance); err != nil {
			return err
		}
		did, err = engine.Sweep(ctx, t, &w)
		return err
	})
	if err != nil {
		return protocol.Swept{}, err
	}
	return did, nil
}

// Audit implements engine.Sweeper. Transactions leave nothing to repair.
func (t *tx) Audit(context.Context) error { return nil }

func (t *tx) Unknown(_ context.Context, holding []plan.TaskID) (unknown []*taskRow, err error) {
	held := make(map[plan.TaskID]bool, len(holding))
	for _, id := range holding {
		held[id] = true
	}
	return slices.DeleteFunc(t.active(t.by.n), func(r *taskRow) bool { return held[r.id] }), t.err
}

// Strays implements engine.Sweeper. A rescue leaves none, but a damaged or repaired file may have
// some.
func (t *tx) Strays(context.Context) (strays []*taskRow, err error) {
	there, owners := rules.Registered{}, map[int64]plan.InstanceID{}
	for r := t.query(claimants); r.next(); {
		var owner plan.InstanceID // that of a number which is no instance's is none
		if !r.null(1) {
			owner.ID = r.id(1)
			there[owner] = r.int(2) == 0
		}
		owners[r.int(0)] = owner
	}
	for n, owner := range owners {
		if there.Lost(owner, false) && t.budget > 0 {
			found := t.active(n)
			strays = append(strays, found[:min(len(found), t.budget)]...)
			t.budget -= min(len(found), t.budget)
		}
	}
	return strays, t.err
}

func (t *tx) Resume(context.Context) error {
	t.timeOut()
	t.abandon()
	t.forgetChanges()
	return t.err
}

func (t *tx) Pending(context.Context) (left time.Duration, waits bool, err error) {
	for _, next := range []string{nextDelay, nextDeadline} {
		if r := t.fresh(next); r.one() && !r.null(0) {
			in := instant(r.int(0) + t.shift()).Sub(t.at)
			if !waits || in < left {
				left, waits = in, true
			}
		}
	}
	return left, waits, t.err
}

// timeOut closes plans whose time is over.
func (t *tx) timeOut() {
	var ns []int64
	for r := t.fresh(dueDeadlines, t.unset(t.now)); r.next(); {
		ns = append(ns, r.int(0))
	}
	for _, n := range ns {
		t.fail(engine.TimeOut(t.ctx, t, t.plan(n)))
	}
}

// active returns the claimed and running tasks of an instance.
func (t *tx) active(instance int64) (found []*taskRow) {
	for r := t.query(activeOf, instance); r.next(); {
		row := r.task()
		found = append(found, &row)
	}
	return found
}

const (
	dueDelays    = "SELECT " + taskColumns + ` FROM tasks AS t ` + inDelay + ` AND t.not_before <= ? ORDER BY t.not_before LIMIT ? + 0`
	nextDelay    = "SELECT min(not_before) FROM tasks " + inDelay
	inDeadline   = "INDEXED BY plans_deadline WHERE deadline > 0 AND ended = 0 AND ending = 0 AND closing IN ('', 'failed') AND retry = 0" // as rules.TimesOut has it
	dueDeadlines = "SELECT n FROM plans " + inDeadline + " AND deadline <= ?"
	nextDeadline = "SELECT min(deadline) FROM plans " + inDeadline
	claimants    = `SELECT DISTINCT t.instance, i.id, i.gone FROM tasks AS t INDEXED BY tasks_mine LEFT JOIN instances AS i ON i.n = t.instance
		WHERE t.` + isMine
	activeOf = "SELECT " + taskColumns + " FROM tasks AS t " + inMine + " AND t.instance = ?"
)

// Inherit implements engine.Sweeper. Jobs have no owner.
func (t *tx) Inherit(context.Context) error { return nil }

func (t *tx) EndDelays(_ context.Context, most int) (more bool, err error) {
	var due []taskRow
	for r := t.fresh(dueDelays, t.unset(t.now), most); r.next(); {
		row := r.task()
		row.notBefore, row.rule, row.all = 0, plan.AllDone, true // its parents have decided
		due = append(due, row)
	}
	t.budget -= len(due)
	t.settle(due)
	return len(due) == most, t.err
}
