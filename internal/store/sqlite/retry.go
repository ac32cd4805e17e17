package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
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
func (s *Store) Retry(ctx context.Context, id plan.PlanID, chosen []rules.Retried, replace []plan.Task, params json.RawMessage) error {
	return engine.Retry(ctx, chosen, replace, func(do func(engine.Retrier[int64]) error) error {
		r := &retrier{s: s, id: id, params: params}
		err := errLarge
		if len(chosen) <= s.retrySize {
			err = s.write(ctx, func(t *tx) error {
				r.tx = t
				return do(r)
			})
		}
		if r.tx = nil; errors.Is(err, errLarge) {
			r.n, r.more = 0, true
			if err = do(r); err != nil {
				return errors.Join(err, r.undo(ctx))
			}
		}
		if err == nil && r.more {
			err = s.settle(ctx, id, r.n)
		}
		return err
	})
}

// halfway is the error of a call that finds a retry of the plan, or (nil) of tasks of no plan.
func (s *Store) halfway(p *planRow) error {
	var id plan.PlanID
	if p != nil {
		id = p.ID
	}
	return &engine.Halfway{Finish: func(ctx context.Context) error { return s.settle(ctx, id, 0) }}
}

// errLarge says that a retry is too large to be checked in a transaction that writes.
var errLarge = errors.New("the retry takes tasks with many items")

// retrier makes a retry, as package engine says.
type retrier struct {
	s      *Store
	tx     *tx // which makes all of the retry; nil: each write is a transaction
	id     plan.PlanID
	params json.RawMessage
	n, of  int64 // once the retry is noted; of is its plan's n, or 0
	more   bool  // the retry is decided, and not over
}

// write runs do in the transaction of the retry, or in one of its own.
func (r *retrier) write(ctx context.Context, do func(*tx) error) error {
	if r.tx != nil {
		return do(r.tx)
	}
	_, err := r.s.commit(ctx, do)
	return err
}

// read is write for who only looks. Between two looks nothing of a noted retry is queued or claimed.
func (r *retrier) read(ctx context.Context, do func(*conn)) error {
	if r.tx != nil {
		do(r.tx.conn)
		return r.tx.err
	}
	return r.s.read(ctx, func(c *conn) error {
		do(c)
		return nil
	})
}

// Begin notes the retry.
func (r *retrier) Begin(ctx context.Context, check func(*plan.Plan, int) error) error {
	return r.write(ctx, func(t *tx) error {
		var p *planRow
		var err error
		if !r.id.IsZero() {
			p, err = t.planByID(r.id)
		}
		if err == nil && t.noted(p) != 0 {
			err = r.s.halfway(p)
		}
		if err == nil && p != nil {
			err = check(&p.Plan, p.Counts.Stored())
		}
		if err != nil {
			return err
		}
		r.n, r.of = t.beginRetry(p, r.params), numberOf(p)
		return nil
	})
}

// Take writes down what the retry takes, and decides the retry.
func (r *retrier) Take(ctx context.Context, sel *engine.Selection[int64], reopen func(*plan.Plan, json.RawMessage, time.Time)) error {
	at := func(do func(*retry) error) error {
		return r.write(ctx, func(t *tx) error {
			noted := t.retryOf(r.n)
			if noted == nil {
				return refusal.New(plan.ErrConflict, "another retry took the place of this one")
			}
			return do(noted)
		})
	}
	slices.SortFunc(sel.Tasks, func(a, b engine.Retaken[int64]) int { return cmp.Compare(a.Key, b.Key) })
	for part := range slices.Chunk(sel.Tasks, 2*r.s.retrySize) {
		if err := at(func(x *retry) error { return x.fill(part) }); err != nil {
			return err
		}
	}
	return at(func(x *retry) error {
		more, err := x.decide(reopen)
		r.more = r.more || more
		return err
	})
}

// undo forgets the retry if it was noted and is not decided. A sweep does so if undo fails.
func (r *retrier) undo(ctx context.Context) error {
	if r.n == 0 {
		return nil
	}
	return r.s.write(context.WithoutCancel(ctx), func(t *tx) error {
		if x := t.retryOf(r.n); x != nil && x.step == stepNoted {
			t.forgetRetry(x.plan, x.n)
		}
		return nil
	})
}

// makeRetry goes on with the retry that a plan notes, or (0) that is made of tasks of no plan, as far as the budget reaches.
func (t *tx) makeRetry(of int64) (done bool) {
	r := t.retryOf(t.noted(t.plan(of)))
	if r == nil || r.step == stepNoted {
		return true
	}
	r.goOn()
	return t.noted(r.plan) == 0
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
				t.forgetRetry(p, t.noted(p))
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

// beginRetry has the plan note a new retry, if it is one of a plan, and returns its number.
func (t *tx) beginRetry(p *planRow, params json.RawMessage) (n int64) {
	closing := plan.Open
	if p != nil {
		closing = p.Closing
	}
	t.exec("INSERT INTO retries (plan, at, closing, params) VALUES (?, ?, ?, ?)", numberOf(p), t.now, string(closing), []byte(params))
	if q := t.query("SELECT max(n) FROM retries"); q.one() {
		n = q.int(0)
	}
	if t.apart = nil; p != nil {
		p.retry, p.dirty = n, true
	}
	return n
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
func (r *retry) fill(taken []engine.Retaken[int64]) error {
	rows := make([]any, 0, 9*len(taken))
	for i := range taken {
		t, how := &taken[i], int64(0)
		if t.Remakes {
			how = howRemakes
		} else if t.Goes {
			how = howGoes
		}
		if t.Ran {
			how |= howRan
		}
		if t.With == nil {
			rows = append(rows, r.n, t.Key, how, nil, nil, nil, nil, nil, nil)
			continue
		}
		queue, err := r.queueNumber(t.With.Queue)
		if err != nil {
			return fmt.Errorf("task %q: %w", t.With.Key(), err)
		}
		def, err := packDefinition(t.With.Definition)
		if err != nil {
			return fmt.Errorf("task %q: %w", t.With.Key(), err)
		}
		rows = append(rows, r.n, t.Key, how, queue, t.With.Rank, orNull(t.With.When), definitionFlags(&t.With.Definition), def, orNone(t.With.Params))
	}
	r.insertRows("INSERT INTO retried (retry, task, how, queue, rank, rule, flags, def, params) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
	r.exec("UPDATE retries SET at = ? WHERE n = ?", r.now, r.n)
	return nil
}

// decide makes a retry that was checked be made: by this transaction as far as its budget reaches, and by others. It reports whether more is
// left.
func (r *retry) decide(reopen func(*plan.Plan, json.RawMessage, time.Time)) (more bool, err error) {
	r.step = stepFreeze
	if p := r.plan; p != nil {
		q := r.query("SELECT closing FROM retries WHERE n = ?", r.n)
		if !q.one() || p.deleting || p.retry != r.n || string(p.Closing) != q.text(0) {
			return false, refusal.New(plan.ErrConflict, "plan %s changed while the retry was checked", p.Title())
		}
		reopen(&p.Plan, r.params, r.at)
		if err := r.noteRetried(p); err != nil {
			return false, err
		}
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

// noteRetried writes when the retry lets the plan run again that had ended, if it had.
func (r *retry) noteRetried(p *planRow) error {
	if p.Retried.IsZero() {
		return nil
	}
	q := r.query("SELECT "+wholeColumns+" FROM plans WHERE n = ?", p.n)
	if !q.one() {
		return nil // the transaction has failed, and says why
	}
	whole := q.wholePlan()
	whole.Retried = p.Retried
	def, err := packPlan(&whole)
	r.exec("UPDATE plans SET def = ? WHERE n = ?", def, p.n)
	return err
}

// end lets the plan go on.
func (r *retry) end() {
	r.drop(jobRetry, r.of)
	if r.plan != nil {
		r.touch(r.plan)
	}
	r.forgetRetry(r.plan, r.n)
}

// forgetRetry lets what was held up by a retry of a plan, or (nil) of tasks of no plan, go on, and has the retry deleted.
func (t *tx) forgetRetry(p *planRow, n int64) {
	t.exec("DELETE FROM retries WHERE n = ?", n)
	t.add(jobForgetRetry, n)
	t.add(jobRoots, 0) // tasks of no plan that were held up
	if t.apart = nil; p != nil {
		p.retry, p.dirty = 0, true
		t.add(jobRoots, p.n)
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
		p := t.plan(n)
		t.forgetRetry(p, t.noted(p))
	}
}

const deadRetries = `SELECT p.n FROM plans AS p INDEXED BY plans_retry LEFT JOIN retries AS r ON r.n = p.retry
	WHERE p.retry <> 0 AND (r.n IS NULL OR r.step = ?1 AND (r.at < ?2 OR r.at > ?3))
	UNION ALL SELECT 0 FROM retries WHERE plan = 0 AND step = ?1 AND (at < ?2 OR at > ?3)`
