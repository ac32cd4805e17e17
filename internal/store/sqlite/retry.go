package sqlite

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A retry takes many tasks back at once, and nothing may run between the first and the last. A transaction that took all of them would
// keep heartbeats waiting for seconds. So a retry of a plan goes in steps:
//
//  1. The plan notes the retry. From then on nothing of the plan is queued or claimed, and it does not end. Running tasks still end.
//  2. A reader checks all that is to be taken, and transactions of a bounded size write it down.
//  3. One transaction decides the retry, unless somebody closed the plan meanwhile. The plan runs
//     again.
//  4. Transactions of a bounded size make the retry, step by step (see retry_steps.go). The last one lets the plan go on.
//
// Until the retry is decided nothing of the plan has changed, and to undo the retry is to forget it. A sweep does that if the process
// died. Once it is decided it is a job, with which any handle continues. A retry that takes little is one transaction, by the same steps.
//
// Tasks of no plan have no plan that could note a retry. While a large one of them is made, all tasks of no plan are held up as those of
// the plan would be. There is one such retry at a time.

// retryAtOnce is how many tasks one transaction of a retry takes.
const retryAtOnce = 500

// deadRetry is how long a retry that is not decided is left alone: its process may be at it.
const deadRetry = 1_000_000 * 60 // microseconds

// retry is one retry in a transaction.
type retry struct {
	*tx
	n, of            int64    // of is its plan's n, or 0
	plan             *planRow // nil: of tasks of no plan
	step, last, past int64    // last is the n of the last task with which the step is done
	params           []byte
}

// Retry implements store.Admin.
//
// The items of a foreach task stay, and run with what replace says of them, each by its own id; but when its parents run again, when it
// was cancelled before all were in, or when the caller wants it, they are deleted and made anew.
func (s *Store) Retry(ctx context.Context, id plan.PlanID, chosen []plan.Retried, replace []plan.Task, params json.RawMessage) error {
	for {
		err := s.retryOnce(ctx, id, chosen, replace, params)
		if !errors.Is(err, errRetrying) {
			return err
		}
		if err := s.settle(ctx, id, 0); err != nil {
			return err
		}
	}
}

// errRetrying says that another retry is made of the plan, or of tasks of no plan.
var errRetrying = errors.New("another retry is being made")

// errLarge says that a retry is too large to be checked in a transaction that writes.
var errLarge = errors.New("the retry takes tasks with many items")

// itemsAmong returns how many items tasks have, all together.
func (t *tx) itemsAmong(chosen []plan.Retried) int {
	ids := make([]plan.TaskID, len(chosen))
	for i := range chosen {
		ids[i] = chosen[i].ID
	}
	q := t.query("SELECT total(f.items) FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.id = unhex(j.value) CROSS JOIN foreachs AS f ON f.n = t.n", listIDs(ids))
	if !q.one() {
		return 0
	}
	return int(q.int(0))
}

func (s *Store) retryOnce(ctx context.Context, id plan.PlanID, chosen []plan.Retried, replace []plan.Task, params json.RawMessage) error {
	begin := func(t *tx) (*retry, error) { return t.beginRetry(id, params) }
	var n int64
	if len(chosen) <= s.retrySize {
		more := false
		err := s.write(ctx, func(t *tx) error {
			p, err := t.retryable(id)
			if err != nil {
				return err
			}
			if t.itemsAmong(chosen) > s.retrySize {
				return errLarge
			}
			sel, err := t.selectRetried(numberOf(p), chosen, replace)
			if err != nil || len(sel) == 0 {
				return err
			}
			r, err := begin(t)
			if err != nil {
				return err
			}
			r.fill(sel)
			n = r.n
			more, err = r.decide()
			return err
		})
		if err == nil && more {
			return s.settle(ctx, id, n)
		}
		if !errors.Is(err, errLarge) {
			return err
		}
	}
	var of int64
	if _, err := s.commit(ctx, func(t *tx) error {
		r, err := begin(t)
		if err == nil {
			n, of = r.n, r.of
		}
		return err
	}); err != nil {
		return err
	}
	if err := s.decideRetry(ctx, id, n, of, chosen, replace); err != nil {
		undone := s.write(context.WithoutCancel(ctx), func(t *tx) error {
			if r := t.retryOf(n); r != nil && r.step == stepNoted {
				r.undo()
			}
			return nil
		})
		if undone != nil { // a sweep undoes it
			return errors.Join(err, undone)
		}
		return err
	}
	return s.settle(ctx, id, n)
}

// decideRetry checks what a noted retry takes, writes it down and decides the retry.
func (s *Store) decideRetry(ctx context.Context, id plan.PlanID, n, of int64, chosen []plan.Retried, replace []plan.Task) error {
	var sel []selected
	err := s.read(ctx, func(c *conn) (err error) {
		sel, err = c.selectRetried(of, chosen, replace)
		return err
	})
	at := func(do func(r *retry) error) error {
		_, err := s.commit(ctx, func(t *tx) error {
			r := t.retryOf(n)
			if r == nil {
				return refusal.New(plan.ErrConflict, "another retry took the place of this one")
			}
			return do(r)
		})
		return err
	}
	for from := 0; err == nil && from < len(sel); from += 2 * s.retrySize {
		err = at(func(r *retry) error {
			r.fill(sel[from:min(from+2*s.retrySize, len(sel))])
			return nil
		})
	}
	if err != nil {
		return err
	}
	return at(func(r *retry) error {
		_, err := r.decide()
		return err
	})
}

// makeRetry goes on with the retry that a plan notes, or (0) that is made of tasks of no plan, as far as the budget reaches.
func (t *tx) makeRetry(of int64) (done bool) {
	n := t.noted(t.plan(of))
	if n == 0 {
		return true
	}
	r := t.retryOf(n)
	if r == nil || r.step == stepNoted {
		return true
	}
	r.goOn()
	return t.noted(r.plan) == 0
}

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

// settle continues the retry of a plan, or of tasks of no plan, until it is over: the one with that
// number, or (0) any. It undoes an undecided retry.
func (s *Store) settle(ctx context.Context, id plan.PlanID, n int64) error {
	for over := false; !over; {
		_, err := s.commit(ctx, func(t *tx) error {
			var p *planRow
			var err error
			if !id.IsZero() {
				p, err = t.planByID(id)
			}
			if err != nil || t.noted(p) == 0 || n != 0 && t.noted(p) != n {
				over = true // a plan that is not there, the caller finds
				return nil
			}
			r := t.retryOf(t.noted(p))
			if r == nil || r.step == stepNoted {
				t.undoRetry(p)
			} else {
				t.within(s.retrySize, func() { r.goOn() })
			}
			if over = t.noted(p) == 0; over {
				t.work()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.wal.sync()
}

// retryable returns the plan if it may be retried; nil for none.
func (t *tx) retryable(id plan.PlanID) (*planRow, error) {
	if id.IsZero() {
		if t.noted(nil) != 0 {
			return nil, errRetrying
		}
		return nil, nil
	}
	p, err := t.planByID(id)
	switch {
	case err != nil:
		return nil, err
	case p.retry != 0:
		return nil, errRetrying
	}
	return p, rules.CheckRetry(&p.Plan, p.Counts.Stored())
}

func numberOf(p *planRow) int64 {
	if p == nil {
		return 0
	}
	return p.n
}

// beginRetry has the plan note a new retry, if it is one of a plan.
func (t *tx) beginRetry(id plan.PlanID, params json.RawMessage) (*retry, error) {
	p, err := t.retryable(id)
	if err != nil {
		return nil, err
	}
	closing := plan.Open
	if p != nil {
		closing = p.Closing
	}
	t.exec("INSERT INTO retries (plan, at, closing, params) VALUES (?, ?, ?, ?)", numberOf(p), t.now, string(closing), []byte(params))
	r := &retry{tx: t, of: numberOf(p), plan: p, params: params}
	if q := t.query("SELECT max(n) FROM retries"); q.one() {
		r.n = q.int(0)
	}
	if t.apart = nil; p != nil {
		p.retry, p.dirty, t.retrying = r.n, true, nil
		t.flushClosings() // holdsUp tells by the row
	}
	return r, nil
}

// retryOf returns a retry with how far it came; nil if it is not there.
func (t *tx) retryOf(n int64) *retry {
	q := t.query("SELECT plan, step, task, past, params FROM retries WHERE n = ?", n)
	if !q.one() {
		return nil
	}
	r := &retry{tx: t, n: n, of: q.int(0), step: q.int(1), last: q.int(2), past: q.int(3), params: q.bytes(4)}
	r.plan = t.plan(r.of)
	return r
}

// fill writes down tasks that a retry takes.
func (r *retry) fill(sel []selected) {
	rows := make([]any, 0, 9*len(sel))
	for i := range sel {
		t := &sel[i]
		if t.with == nil {
			rows = append(rows, r.n, t.n, t.how, nil, nil, nil, nil, nil, nil)
			continue
		}
		rows = append(rows, r.n, t.n, t.how, t.queue, t.with.Rank, orNull(t.with.When), definitionFlags(&t.with.Definition), t.def, orNone(t.with.Params))
	}
	r.insertRows("INSERT INTO retried (retry, task, how, queue, rank, rule, flags, def, params) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
	r.exec("UPDATE retries SET at = ? WHERE n = ?", r.now, r.n)
}

// decide makes a retry that was checked be made: by this transaction as far as its budget reaches, and by others. It reports whether more is
// left.
func (r *retry) decide() (more bool, err error) {
	r.step = stepFreeze
	if p := r.plan; p != nil {
		q := r.query("SELECT closing FROM retries WHERE n = ?", r.n)
		if !q.one() || p.leaving || p.retry != r.n || string(p.Closing) != q.text(0) {
			return false, refusal.New(plan.ErrConflict, "plan %s changed while the retry was checked", p.Title())
		}
		p.State, p.Closing, p.Ended = plan.PlanRunning, plan.Open, instant(0)
		p.Edits++
		r.touch(p)
		r.drop(jobClose, p.n)
		if r.params != nil {
			r.exec("UPDATE plans SET params = ? WHERE n = ?", r.params, p.n)
		}
	}
	r.exec("UPDATE retries SET step = ? WHERE n = ?", r.step, r.n)
	r.add(jobRetry, r.of)
	r.within(r.s.retrySize, r.goOn)
	r.work()
	return r.noted(r.plan) != 0, nil
}

// end lets the plan go on.
func (r *retry) end() {
	r.drop(jobRetry, r.of)
	if r.plan != nil {
		r.touch(r.plan)
	}
	r.forgetRetry()
}

// undo forgets a retry that is not decided.
func (r *retry) undo() { r.forgetRetry() }

// undoRetry forgets the retry that a plan notes, or (nil) that is made of tasks of no plan.
func (t *tx) undoRetry(p *planRow) {
	(&retry{tx: t, n: t.noted(p), of: numberOf(p), plan: p}).forgetRetry()
}

// forgetRetry lets what was held up by a retry go on, and has the retry deleted.
func (r *retry) forgetRetry() {
	r.exec("DELETE FROM retries WHERE n = ?", r.n)
	r.add(jobForgetRetry, r.n)
	r.add(jobRoots, 0) // tasks of no plan that were held up
	if r.apart = nil; r.plan != nil {
		p := r.plan
		p.retry, p.dirty, r.retrying = 0, true, nil
		r.flushClosings() // holdsUp tells by the row
		r.add(jobRoots, p.n)
	}
}

// forgetRetried deletes what is written down of a retry that is over.
func (t *tx) forgetRetried(n int64) (done bool) {
	limit := max(t.budget, 1)
	gone := t.exec("DELETE FROM retried WHERE retry = ?1 AND task IN (SELECT task FROM retried WHERE retry = ?1 ORDER BY task LIMIT ?2 + 0)", n, limit)
	t.budget -= int(gone)
	return gone < int64(limit)
}

// undoDeadRetries forgets retries whose process died before they were decided. A clock that was set back makes none wait.
func (t *tx) undoDeadRetries() {
	var dead []int64
	for q := t.query(deadRetries, stepNoted, t.now-deadRetry, t.now); q.next(); {
		dead = append(dead, q.int(0))
	}
	for _, n := range dead {
		t.undoRetry(t.plan(n))
	}
	if t.query(deadOfNone, stepNoted, t.now-deadRetry, t.now).one() {
		t.undoRetry(nil)
	}
}

const anyRetry = "SELECT 1 FROM plans INDEXED BY plans_retry WHERE retry <> 0 LIMIT 1"

const deadRetries = `SELECT p.n FROM plans AS p INDEXED BY plans_retry LEFT JOIN retries AS r ON r.n = p.retry
	WHERE p.retry <> 0 AND (r.n IS NULL OR r.step = ? AND (r.at < ? OR r.at > ?))`

// deadOfNone finds the retry of tasks of no plan that is one of these.
const deadOfNone = retryOfNone + " AND step = ? AND (at < ? OR at > ?)"

// holdsUp reports whether a retry that is being made keeps a task from being queued: one of the task's plan, or, of a task of no plan, one
// of any such tasks, or of a plan that it needs some of.
func (t *tx) holdsUp(r *taskRow) bool {
	if p := t.plan(r.plan); t.noted(p) != 0 {
		return true
	} else if p != nil {
		return false
	}
	if t.retrying == nil {
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
