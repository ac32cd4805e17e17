package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// A retry takes many tasks back at once, and nothing may run between the first and the last. A transaction that took all of them would
// keep heartbeats waiting for seconds. So a reader reads the plan, and chooses the tasks. One transaction makes sure that none of them
// has changed since, writes down their list, and opens the plan, which notes the retry. Others of a bounded size mark the
// tasks of the list, and take them back, step by step (see retry_steps.go). The last one lets the plan go on. Until then nothing of the
// plan is queued or claimed, and it does not end. Running tasks still end. The retry is a job, with which any handle continues.
//
// If one has changed, the retry chooses again. The last choice is made in the transaction, so that the retry ends.
//
// Tasks of no plan have no plan that could note a retry. While one of them is made, all tasks of no plan are held up as those of
// the plan would be. There is one such retry at a time. Its tasks are few, and are chosen in the transaction.

// choices is how often a retry chooses its tasks on a reader.
const choices = 3

// errStale says that the retry is to choose its tasks again.
var errStale = errors.New("a task changed while the retry was chosen")

var (
	_ engine.Retrier           = (*retrier)(nil)
	_ engine.Retaker[*taskRow] = (*retry)(nil)
)

// retrier chooses what a retry takes, as package engine says.
type retrier struct {
	*tx    // which may be on a reader
	id     plan.PlanID
	plan   *planRow // nil: of tasks of no plan
	params json.RawMessage
	check  engine.RetryCheck
	rows   map[plan.TaskID]int64
	reopen func(*plan.Plan, json.RawMessage, time.Time)
	marks  []mark
	more   bool // the retry is not over

	// The choice rests on these.
	queues  map[plan.QueueID]bool
	taken   map[int64]bool  // the tasks that it takes
	waiting map[int64]int64 // the gates of held tasks below that it does not take
}

// retry is one retry in a transaction.
type retry struct {
	*tx
	n, of            int64    // of is its plan's n, or 0
	plan             *planRow // nil: of tasks of no plan
	step, last, past int64    // last is the n of the last task with which the step is done
}

func (s *Store) Retry(ctx context.Context, id plan.PlanID, ask rules.Ask) ([]rules.Retried, error) {
	return engine.Retry(ctx, id, &ask, func(do func(engine.Retrier) error) error {
		for n := 1; ; n++ {
			r, seq := &retrier{id: id, params: ask.Params, rows: map[plan.TaskID]int64{}}, int64(0)
			locked := !ask.Check && (id.IsZero() || n > choices || ask.Lists.Compares()) // which may add items
			if !locked {
				err := s.read(ctx, func(c *conn) error {
					r.tx, seq = &tx{conn: c, s: s, plans: map[int64]*planRow{}, planIDs: map[plan.PlanID]*planRow{}}, c.lastChange()
					return do(r)
				})
				if err != nil || ask.Check {
					return err
				}
				if s.chose != nil {
					s.chose()
				}
			}
			err := s.write(ctx, func(t *tx) error {
				if r.tx = t; locked {
					if err := do(r); err != nil {
						return err
					}
				} else if err := r.unchanged(seq); err != nil {
					return err
				}
				return r.decide()
			})
			if errors.Is(err, errStale) {
				continue
			}
			if err == nil && r.more {
				err = s.settle(ctx, id)
			}
			return err
		}
	})
}

// halfway is the error of a call that finds a retry of the plan, or (nil) of tasks of no plan.
func (s *Store) halfway(p *planRow) error {
	var id plan.PlanID
	if p != nil {
		id = p.ID
	}
	return &engine.Halfway{Finish: func(ctx context.Context) error { return s.settle(ctx, id) }}
}

func (r *retrier) Begin(_ context.Context, check engine.RetryCheck) (err error) {
	r.check = check
	if !r.id.IsZero() {
		r.plan, err = r.planByID(r.id)
	}
	if err == nil && r.noted(r.plan) != 0 {
		err = r.s.halfway(r.plan)
	}
	if err == nil && r.plan != nil {
		err = check(&r.plan.Plan, r.plan.Counts.Stored(), r.otherRun(&r.plan.Plan))
	}
	return err
}

func (r *retrier) Skeleton(_ context.Context, named []plan.TaskID) (tasks []plan.Task, busy map[plan.TaskID]rules.Busy, err error) {
	q := store.TaskQuery{Plan: r.id, Needs: true, Limit: -1}
	if r.plan == nil {
		q.NoPlan, q.IDs = true, named
	}
	w, index := taskQuery(&q)
	found, err := r.readTasks(w, index, q)
	tasks = make([]plan.Task, len(found))
	for i := range found {
		tasks[i], r.rows[found[i].ID] = found[i].Task, found[i].n
	}
	if r.plan == nil {
		busy = map[plan.TaskID]rules.Busy{}
		for _, id := range r.rolling(each(found, func(t *foundTask) int64 { return t.n })) {
			busy[id] = rules.BusyRoll
		}
	}
	return tasks, busy, cmp.Or(err, r.err)
}

func (r *retrier) Items(_ context.Context, of *plan.Task) (items []json.RawMessage, list []plan.Input, err error) {
	n := r.rows[of.ID]
	for q := r.query(`SELECT b.params FROM tasks AS t INDEXED BY tasks_of CROSS JOIN bodies AS b ON b.n = t.n
		WHERE t.of = ? AND t.of <> 0 ORDER BY t.idx`, n); q.next(); {
		items = append(items, rules.ItemOf(q.bytes(0)))
	}
	list, _, err = r.listInputs(n, of.Foreach)
	return items, list, cmp.Or(err, r.err)
}

// Add implements engine.Retrier. The items have ended until the retry takes them, which may be in a later transaction.
func (r *retrier) Add(_ context.Context, of, with *plan.Task, items []json.RawMessage, as rules.Step) (err error) {
	rows := r.tx.tasks([]int64{r.rows[of.ID]})
	if r.err != nil || len(rows) == 0 {
		return cmp.Or(r.err, errStale)
	}
	row := &rows[0]
	f, b := r.foreach(row.n), r.body(row)
	if with != nil {
		if row.queue, err = r.queueNumber(with.Queue); err != nil {
			return fmt.Errorf("task %q: %w", with.Key(), err)
		}
		b.Definition, b.params = with.Definition, orNone(with.Params)
	}
	like := plan.Task{ID: row.id, Name: b.name, Definition: b.Definition, Queue: r.queue(row.queue).ID}
	had := f.made
	f.items, f.undone, f.dirty = f.items+int64(len(items)), f.undone+int64(len(items)), true
	for f.made < f.items && r.err == nil && err == nil {
		r.tx.budget += len(items)
		if row.goesAlong() {
			err = r.makeAlong(row, &like, &b, f)
		} else {
			err = r.insertItems(row, &like, &b, f, items[f.made-had:])
		}
	}
	added := r.query("SELECT n FROM tasks INDEXED BY tasks_of WHERE of = ? AND of <> 0 AND idx >= ?", row.n, had).numbers()
	rows = r.tx.tasks(added)
	told := len(r.ends)
	for i := range rows {
		r.step(&rows[i], as)
	}
	r.ends = r.ends[:told] // their children are new, too, and the retry counts the parents of all of them
	r.flushTasks()
	return cmp.Or(err, r.err)
}

func (r *retrier) Queues(context.Context) (map[plan.QueueID]bool, error) {
	r.queues = map[plan.QueueID]bool{}
	for q := r.query("SELECT id FROM queues WHERE " + isQueue); q.next(); {
		r.queues[plan.QueueID{ID: q.id(0)}] = true
	}
	return r.queues, r.err
}

// belowRetried finds what is below tasks that a retry takes, and has not finished: their items, and their children. The last column tells
// children from items.
const belowRetried = `SELECT t.n, t.status, t.name, t.id, t.gate, 1 FROM json_each(?1) AS j CROSS JOIN kids AS k ON k.parent = j.value
		CROSS JOIN tasks AS t ON t.n = k.child WHERE t.outcome = 0
	UNION ALL SELECT t.n, t.status, t.name, t.id, t.gate, 0 FROM json_each(?1) AS j CROSS JOIN tasks AS t INDEXED BY tasks_of ON t.of = j.value AND t.of <> 0
		WHERE t.outcome = 0`

// Below counts a task whose parents have decided, and that a retry holds up, as waiting to run.
func (r *retrier) Below(_ context.Context, s *engine.Selection, check engine.BelowCheck) (err error) {
	taken := each(s.Tasks, func(t *engine.Retaken) int64 { return r.rows[t.ID] })
	r.taken, r.waiting = make(map[int64]bool, len(taken)), map[int64]int64{}
	for _, n := range taken {
		r.taken[n] = true
	}
	q := r.query(belowRetried, list(taken))
	for err == nil && q.next() {
		t := plan.Task{ID: plan.TaskID{ID: q.id(3)}, Status: plan.Status(q.int(1)), Name: q.text(2)}
		hold := q.int(4)
		if !r.taken[q.int(0)] {
			r.waiting[q.int(0)] = hold
		}
		err = check(&t, hold == forInstant || hold == forItems || hold == forPlan && q.bool(5))
	}
	q.close()
	return cmp.Or(err, r.err)
}

// Take lists the tasks. The caller decides the retry in a transaction.
func (r *retrier) Take(_ context.Context, sel *engine.Selection, reopen func(*plan.Plan, json.RawMessage, time.Time)) (err error) {
	r.marks, err = r.list(sel.Tasks)
	r.reopen = reopen
	return cmp.Or(err, r.err)
}

// unchanged returns errStale if what the retry takes, or what is below that, may have changed since the retry chose. seq is the row of
// the feed of changes up to which it had read. Other tasks of the plan may have changed: they did so after the retry.
func (r *retrier) unchanged(seq int64) error {
	was := r.plan
	p, err := r.planByID(r.id)
	if err != nil {
		return err
	}
	if r.noted(p) != 0 {
		return r.s.halfway(p)
	}
	if r.plan = p; p.State != was.State || p.Closing != was.Closing || p.Ending != was.Ending || p.Edits != was.Edits || p.Counts.Stored() != was.Counts.Stored() {
		return errStale
	}
	if err := r.check(&p.Plan, p.Counts.Stored(), r.otherRun(&p.Plan)); err != nil {
		return err
	}
	there := r.queues
	if now, err := r.Queues(r.ctx); err != nil || !maps.Equal(now, there) {
		return cmp.Or(err, errStale)
	}
	q := r.query("SELECT body FROM changes WHERE seq > ?", seq)
	defer q.close()
	for q.next() {
		things, err := unpackChanges(q.bytes(0))
		if err != nil {
			return err
		}
		for _, x := range things {
			if !x.plan && r.taken[x.n] {
				return errStale
			}
		}
	}
	// The feed does not show what a held task waits for.
	ns := slices.Collect(maps.Keys(r.waiting))
	r.queryEach("SELECT n, gate FROM tasks WHERE "+isHeld+" AND n", ns, func(q *rows) {
		if r.waiting[q.int(0)] == q.int(1) {
			delete(r.waiting, q.int(0))
		}
	})
	if len(r.waiting) > 0 {
		return cmp.Or(r.err, errStale)
	}
	return r.err
}

// decide opens the plan, and begins to take the tasks back.
func (r *retrier) decide() error {
	if r.reopen == nil { // nothing is taken
		return nil
	}
	p, step := r.plan, int64(stepFreeze)
	few := len(r.marks) <= r.s.retrySize
	if !few {
		step = stepMark
	}
	n := r.beginRetry(p, step)
	if p != nil {
		was := p.Timeout
		r.reopen(&p.Plan, r.params, r.at)
		if p.Timeout != was {
			r.exec("UPDATE plans SET timeout = ?, deadline = 0 WHERE n = ?", int64(p.Timeout), p.n) // touch sees to the new deadline
		}
		if err := r.noteRetried(p); err != nil {
			return err
		}
		r.touch(p)
		r.drop(jobClose, p.n)
		if r.params != nil {
			r.exec("UPDATE plans SET params = ? WHERE n = ?", []byte(r.params), p.n)
		}
	}
	r.add(jobRetry, numberOf(p))
	if few {
		r.mark(n, r.marks)
		r.within(r.s.retrySize, func() { r.makeRetry(p) })
		r.work()
	} else {
		r.keepList(n, r.marks)
	}
	r.more = r.noted(p) != 0
	return r.err
}

// beginRetry has the plan note a new retry, if it is one of a plan, and returns its number.
func (t *tx) beginRetry(p *planRow, step int64) (n int64) {
	t.exec("INSERT INTO retries (plan, at, step, closing) VALUES (?, ?, ?, '')", numberOf(p), t.now, step)
	if q := t.query("SELECT max(n) FROM retries"); q.one() {
		n = q.int(0)
	}
	if t.apart = nil; p != nil {
		p.retry, p.dirty = n, true
	}
	return n
}

// A mark says that a retry takes a task, and how. Stored: the tags stay.
type mark struct {
	Task int64     `json:"t"`
	How  int64     `json:"h,omitempty"`
	With *markWith `json:"w,omitempty"`
}

// A markWith is what replaces the task.
type markWith struct {
	Queue  int64     `json:"q"`
	Rank   int64     `json:"r,omitempty"`
	When   plan.When `json:"c,omitempty"`
	Flags  int64     `json:"f,omitempty"`
	Def    []byte    `json:"d"`
	Params []byte    `json:"p"`
}

// list returns the marks of the tasks, by their numbers.
func (r *retrier) list(taken []engine.Retaken) ([]mark, error) {
	slices.SortFunc(taken, func(a, b engine.Retaken) int { return cmp.Compare(r.rows[a.ID], r.rows[b.ID]) })
	marks := make([]mark, len(taken))
	for i := range taken {
		t, how := &taken[i], int64(0)
		if t.Remakes {
			how = howRemakes
		} else if t.Goes {
			how = howGoes
		}
		if t.KeepsRan {
			how |= howRan
		}
		if t.Leaves {
			how |= howLeaves
		}
		if marks[i] = (mark{Task: r.rows[t.ID], How: how}); t.With == nil {
			continue
		}
		queue, err := r.queueNumber(t.With.Queue)
		if err != nil {
			return nil, fmt.Errorf("task %q: %w", t.With.Key(), err)
		}
		def, err := packDefinition(t.With.Definition)
		if err != nil {
			return nil, fmt.Errorf("task %q: %w", t.With.Key(), err)
		}
		marks[i].With = &markWith{queue, t.With.Rank, t.With.When, definitionFlags(&t.With.Definition), def, orNone(t.With.Params)}
	}
	return marks, nil
}

const insertMark = "INSERT INTO retried (retry, task, how, queue, rank, rule, flags, def, params) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

// mark writes down which tasks the retry takes, and how.
func (t *tx) mark(n int64, marks []mark) {
	rows := make([]any, 0, 9*len(marks))
	for i := range marks {
		if m := &marks[i]; m.With == nil {
			rows = append(rows, n, m.Task, m.How, nil, nil, nil, nil, nil, nil)
		} else {
			rows = append(rows, n, m.Task, m.How, m.With.Queue, m.With.Rank, orNull(m.With.When), m.With.Flags, m.With.Def, m.With.Params)
		}
	}
	t.insertRows(insertMark, rows)
}

// keepList writes down which tasks are to be marked, many in a row. The numbers of these rows are below 0.
func (t *tx) keepList(n int64, marks []mark) {
	k := 0
	for some := range slices.Chunk(marks, lookAhead*t.few()) {
		k--
		b, err := json.Marshal(some)
		t.fail(err)
		t.exec(insertMark, n, k, 0, nil, nil, nil, nil, nil, b)
	}
}

// noteRetried writes when the retry lets the plan run again that had ended, if it had. Nothing has stopped the plan since.
func (t *tx) noteRetried(p *planRow) error {
	if p.Retried.IsZero() {
		return nil
	}
	q := t.query("SELECT "+wholeColumns+" FROM plans WHERE n = ?", p.n)
	if !q.one() {
		return nil // the transaction has failed, and says why
	}
	whole := q.wholePlan()
	whole.Retried, whole.Stopped = p.Retried, plan.Open
	def, err := packPlan(&whole)
	t.exec("UPDATE plans SET def = ? WHERE n = ?", def, p.n)
	return err
}

// makeRetry goes on with the retry that a plan notes, or (nil) that is made of tasks of no plan, as far as the budget reaches.
func (t *tx) makeRetry(p *planRow) (done bool) {
	n := t.noted(p)
	if n == 0 {
		return true
	}
	q := t.query("SELECT step, task, past FROM retries WHERE n = ?", n)
	if !q.one() || q.int(0) == stepNoted {
		t.forgetRetry(p, n)
		return true
	}
	r := &retry{tx: t, n: n, of: numberOf(p), plan: p, step: q.int(0), last: q.int(1), past: q.int(2)}
	r.goOn()
	return t.noted(p) == 0
}

// settle ends the retry of a plan, or of tasks of no plan, if there is one.
func (s *Store) settle(ctx context.Context, id plan.PlanID) error {
	for over := false; !over; {
		_, err := s.commit(ctx, func(t *tx) error {
			var p *planRow
			if !id.IsZero() {
				var err error
				if p, err = t.planByID(id); err != nil {
					over = true // the caller finds that the plan is not there
					return nil
				}
			}
			if t.within(s.retrySize, func() { over = t.makeRetry(p) }); over {
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

// itemsStayed finds the foreach tasks of a retry whose items have all finished.
const itemsStayed = "SELECT x.task FROM retried AS x CROSS JOIN foreachs AS f ON f.n = x.task WHERE x.retry = ? AND f.undone = 0 AND f.made >= f.items"

// end lets the plan go on. A foreach task ends with its last item. If all of its items stay as they are, none
// ends it any more: a transaction before this one counted them, while the retry held the task up.
func (r *retry) end() {
	for _, n := range r.query(itemsStayed, r.n).numbers() {
		r.foreach(n).dirty = true
	}
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
