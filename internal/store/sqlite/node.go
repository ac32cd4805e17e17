package sqlite

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// Turn implements store.Node.
func (s *Store) Turn(ctx context.Context, turn plan.Turn) (did plan.Turned, err error) {
	for i := range turn.Ended {
		if err := turn.Ended[i].Check(); err != nil {
			return did, err
		}
	}
	err = s.write(ctx, func(t *tx) error {
		i, err := t.instance(turn.Instance)
		if err != nil {
			return err
		}
		if turn.Budget > 0 {
			t.budget = turn.Budget
		}
		did.Lost, did.Delay = t.applyAll(turn.Ended)
		due := t.endDelays(max(1, t.budget/2)) // the rest is for what was released
		did.More = t.work() || due
		did.Claimed = t.claim(i, &turn)
		t.endPlans()
		did.Queued, did.Ended, did.Over = t.queued, t.ended, t.over(turn.Plan)
		return nil
	})
	if err != nil {
		return plan.Turned{}, err
	}
	return did, nil
}

// A token, as the node has it, is the task's number and what the row holds: so that an ending finds its row without another index.
func packToken(n, token int64) (t plan.Token) {
	binary.BigEndian.PutUint16(t[0:2], uint16(n>>32))
	binary.BigEndian.PutUint32(t[2:6], uint32(n))
	binary.BigEndian.PutUint16(t[6:8], uint16(token>>32))
	binary.BigEndian.PutUint32(t[8:12], uint32(token))
	return t
}

func unpackToken(t plan.Token) (n, token int64) {
	n = int64(binary.BigEndian.Uint16(t[0:2]))<<32 | int64(binary.BigEndian.Uint32(t[2:6]))
	token = int64(binary.BigEndian.Uint16(t[6:8]))<<32 | int64(binary.BigEndian.Uint32(t[8:12]))
	return n, token
}

// claimed returns, for each of the claims, its task's row if the claim holds, else nil; of a claim that is there twice, the second is nil.
func (t *tx) claimed(count int, claim func(int) *plan.Claim) []*taskRow {
	ns := make([]int64, count)
	for i := range ns {
		ns[i], _ = unpackToken(claim(i).Token)
	}
	at := make(map[int64]*taskRow, count)
	t.queryEach("SELECT "+taskColumns+" FROM tasks AS t WHERE t.n", slices.Clone(ns), func(r *rows) {
		row := r.task()
		at[row.n] = &row
	})
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

// applyAll applies endings, and returns those that were refused and the shortest delay that began.
func (t *tx) applyAll(endings []plan.Ending) (lost []plan.TaskID, delay time.Duration) {
	if len(endings) == 0 {
		return nil, 0
	}
	rows := t.claimed(len(endings), func(i int) *plan.Claim { return &endings[i].Claim })
	t.putPrinted(rows, endings)
	for i, r := range rows {
		e := &endings[i]
		if r == nil {
			lost = append(lost, e.Task)
			continue
		}
		t.log(r.n, e.Attempt, e.Log)
		step := rules.Ended(t.claimOf(r), e)
		if t.step(r, step); step.Delay > 0 {
			delay = cmp.Or(min(delay, step.Delay), step.Delay)
		}
	}
	return lost, delay
}

// delay holds a task until its next attempt.
func (t *tx) delay(r *taskRow, s rules.Step) {
	t.move(r, s.Status, s.Reason)
	t.exec(`UPDATE tasks SET status = -4, gate = ?, reason = ?, detail = ?, exit = ?, instance = 0, not_before = ?, modified = ? WHERE n = ?`,
		gateDelay, orNull(s.Reason), orNull(s.Detail), t.exit(s.Exit), t.unset(t.now+s.Delay.Microseconds()), t.now, r.n)
}

// Start implements store.Node.
func (s *Store) Start(ctx context.Context, claims []plan.Claim) (lost []plan.TaskID, err error) {
	err = s.write(ctx, func(t *tx) error {
		var started []int64
		for i, r := range t.claimed(len(claims), func(i int) *plan.Claim { return &claims[i] }) {
			switch {
			case r == nil:
				lost = append(lost, claims[i].Task)
			case r.status == plan.Claimed:
				t.move(r, rules.Started().Status, r.reason)
				started = append(started, r.n)
			}
		}
		if len(started) > 0 {
			t.exec("UPDATE tasks SET status = 0, started = ?, modified = ? WHERE n IN (SELECT value FROM json_each(?))", t.now, t.now, list(started))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// AppendLog implements store.Node.
func (s *Store) AppendLog(ctx context.Context, c plan.Claim, entries []plan.LogEntry) error {
	return s.write(ctx, func(t *tx) error {
		r := t.claimed(1, func(int) *plan.Claim { return &c })[0]
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

// Sweep implements store.Node.
func (s *Store) Sweep(ctx context.Context, w plan.Sweep) (did plan.Swept, err error) {
	var found *faults
	if s.audits.TryLock() { // else another goroutine does
		defer s.audits.Unlock()
		if found, err = s.audit(ctx); err != nil {
			return did, err
		}
	}
	var left []int64 // of that
	err = s.write(ctx, func(t *tx) error {
		i, err := t.instance(w.Instance)
		if err != nil {
			return err
		}
		if w.Budget > 0 {
			t.budget = w.Budget
		}
		if found != nil {
			left = t.mend(found)
		}
		t.giveBackAllBut(i.n, w.Holding)
		t.loseStrays()
		if t.endDelays(t.budget) {
			did.More = true
		}
		t.flushTasks() // what is pending is asked next
		t.abandon()
		t.undoDeadRetries()
		did.More = t.work() || did.More
		if r := t.query(nextDelay); r.one() && !r.null(0) {
			if did.Pending = instant(r.int(0) + t.shift()).Sub(t.at); did.Pending <= 0 {
				did.Pending, did.More = 1, true
			}
		}
		t.forgetChanges()
		t.endPlans()
		did.Queued, did.Ended, did.Over = t.queued, t.ended, t.over(w.Plan)
		return nil
	})
	if err != nil {
		return plan.Swept{}, err
	}
	if found != nil {
		s.audited(found, left)
	}
	did.More = did.More || len(left) > 0
	return did, nil
}

// giveBackAllBut gives back the claims of an instance that it does not hold.
func (t *tx) giveBackAllBut(instance int64, holding []plan.TaskID) {
	held := make(map[plan.TaskID]bool, len(holding))
	for _, id := range holding {
		held[id] = true
	}
	for _, r := range t.active(instance) {
		if !held[r.id] {
			t.step(&r, rules.GivenBack(t.claimOf(&r)))
		}
	}
}

// loseStrays loses the claims of instances that are not registered. A rescue leaves none, but a damaged or repaired file may have some.
func (t *tx) loseStrays() {
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
		if !there.Lost(owner, false) || t.budget <= 0 {
			continue
		}
		strays := t.active(n)
		strays = strays[:min(len(strays), t.budget)]
		for i := range strays {
			t.lose(&strays[i])
		}
		t.budget -= len(strays)
	}
}

// active returns the claimed and running tasks of an instance.
func (t *tx) active(instance int64) (found []taskRow) {
	for r := t.query(activeOf, instance); r.next(); {
		found = append(found, r.task())
	}
	return found
}

const (
	dueDelays = "SELECT " + taskColumns + ` FROM tasks AS t INDEXED BY tasks_delay
		WHERE t.status = -4 AND t.gate = 1 AND t.not_before <= ? ORDER BY t.not_before LIMIT ? + 0`
	nextDelay = "SELECT min(not_before) FROM tasks INDEXED BY tasks_delay WHERE status = -4 AND gate = 1"
	claimants = `SELECT DISTINCT t.instance, i.id, i.gone FROM tasks AS t INDEXED BY tasks_mine LEFT JOIN instances AS i ON i.n = t.instance
		WHERE t.status IN (-1, 0)`
	activeOf = "SELECT " + taskColumns + " FROM tasks AS t INDEXED BY tasks_mine WHERE t.status IN (-1, 0) AND t.instance = ?"
)

// endDelays lets held tasks run whose delay is over, as many as most, and reports whether there may be more.
func (t *tx) endDelays(most int) (more bool) {
	if len(t.ready) > 0 {
		t.flushTasks() // what has another attempt at once is not to be found again
	}
	var due []taskRow
	for r := t.query(dueDelays, t.unset(t.now), most); r.next(); {
		due = append(due, r.task())
	}
	t.budget -= len(due)
	for i := range due {
		due[i].notBefore = 0
		t.decide(&due[i], plan.AllDone, 0, true) // its parents have had their say
	}
	return len(due) == most
}
