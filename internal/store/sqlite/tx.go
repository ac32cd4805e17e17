package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// A tx is the unit of all actions of package engine but a retry.
var (
	_ engine.Canceller[*taskRow, *planRow] = (*tx)(nil)
	_ engine.Expirer[*planRow, int64]      = (*tx)(nil)
	_ engine.Settler[*taskRow]             = (*tx)(nil)
	_ engine.Setter[*taskRow]              = (*tx)(nil)
	_ engine.Starter[*taskRow]             = (*tx)(nil)
	_ engine.Sweeper[*taskRow]             = (*tx)(nil)
	_ engine.Taker[*taskRow]               = (*tx)(nil)
)

// tx is one write transaction. Rows of plans and queues are read once; what changes in their counters, and in the joins of children, is
// gathered and written once, at its end.
type tx struct {
	*conn
	s      *Store
	ctx    context.Context // of the call
	by     *instanceRow    // the instance that calls, in a turn or a sweep
	at     time.Time
	now    int64        // at, as it is stored
	seen   lead         // of the clock, once this is committed
	began  time.Time    // by the system's clock
	jobs   bool         // there may be some that are no releases
	passed int64        // of these: the seq of the last one that waits for a retry
	late   bool         // a retry waits because the transaction has lasted too long
	budget int          // documents that may still be changed by releasing
	waiter rules.Waiter // what Waiter returned last
	list   kept         // what groups were made of

	plans    map[int64]*planRow
	planIDs  map[plan.PlanID]*planRow
	queues   map[int64]*queueRow
	foreachs map[int64]*foreachRow

	groupsOf    map[string][]plan.Group // a group that a queue of a claim is in, with its parent,
	claimGroups map[string]*claimGroup  // and those that the claim takes from

	printed []printed       // results that came with endings
	holder  plan.InstanceID // that has the task which is taken
	ends    []parent        // what ended here and whose children are still to be told
	kept    int             // of those that were kept by others, how many are looked at together
	// tasks to be written as succeeded, by their output; those with one output together
	done map[string][]int64
	// tasks to be written as ended that were held or queued, those that end alike together
	unstarted map[unstarted][]int64
	reset     []int64               // tasks to be written as a retry takes them back, all together
	ready     map[place][]candidate // tasks to be queued, those of a place together
	changed   []int64               // tasks whose change the feed shows
	shown     []int64               // plans, the same

	apart *int64 // the retry of tasks of no plan, see noted; nil: nobody has asked
	moved *int64 // see shift; nil: likewise

	rows    int64                // that it changed
	queued  int                  // tasks that were queued,
	taken   int                  // and claimed,
	claims  []claims             // as these say
	answer  func()               // reads what the caller gets besides; nil: nothing
	flushed <-chan error         // how the flush of the log went; nil: it has not begun
	ended   []protocol.EndedPlan // plans that ended
	rest    time.Duration        // until the first rate lets the next task start; 0: none holds one up
	told    bool                 // one of them has a node of its own, which is to be told
	begun   int                  // plans of which the tasks of finally began,
	worked  int                  // and those of them for which work was called since
}

func (t *tx) begin() {
	t.conn.exec("BEGIN IMMEDIATE")
	if v := t.s.version(); t.err == nil && v != schema {
		t.fail(t.s.newer(v)) // another process migrated it while this one ran
	}
}

// end commits, or rolls back if the caller or a statement failed.
func (t *tx) end(err error) error {
	if failed := t.clear(); failed != nil || err != nil || t.rows == 0 {
		t.conn.exec("ROLLBACK")
		_ = t.clear() // SQLite may have rolled back itself
		if failed != nil {
			return t.s.translate(failed)
		}
		return err
	}
	if t.s.hook != nil {
		if err := t.s.hook(false); err != nil {
			t.conn.exec("ROLLBACK")
			_ = t.clear()
			return err
		}
	}
	if t.rows <= smallRows {
		t.s.wal.makeRoom()
	}
	t.conn.exec("COMMIT")
	if failed := t.clear(); failed != nil {
		t.conn.exec("ROLLBACK")
		_ = t.clear()
		return t.s.translate(failed)
	}
	t.s.log.committed()
	t.s.lead = t.seen
	if t.queued > t.taken || t.told {
		t.s.turn.notify()
	}
	if t.s.hook != nil {
		return t.s.hook(true)
	}
	return nil
}

// exec runs a statement that changes something.
func (t *tx) exec(text string, args ...any) int64 {
	n := t.conn.exec(text, args...)
	t.rows += n
	return n
}

// execEach runs a statement, which ends with the column that they are of, for numbers, which it sorts.
func (t *tx) execEach(text string, ns []int64, args ...any) {
	inParts(ns, func(in string, part ...any) { t.exec(text+in, slices.Concat(args, part)...) })
}

// plan returns the plan's row; nil for 0, which is none.
func (t *tx) plan(n int64) *planRow {
	if n == 0 {
		return nil
	}
	p := t.planIn(n)
	if p == nil {
		t.fail(fmt.Errorf("%s: a task is of plan %d, which is not there", t.s.path, n))
		return &planRow{n: n}
	}
	return p
}

// planIn returns the plan with that number; nil if there is none.
func (t *tx) planIn(n int64) *planRow {
	if p, ok := t.plans[n]; ok {
		return p
	}
	for r := t.query("SELECT "+planColumns+" FROM plans WHERE n = ?", n); r.next(); {
		t.keep(r.plan())
	}
	return t.plans[n]
}

// planByID returns plan.ErrNotFound for a plan that is not there, or whose deletion has begun.
func (t *tx) planByID(id plan.PlanID) (*planRow, error) {
	if p := t.planIDs[id]; p != nil && !p.deleting {
		return p, nil
	}
	var p *planRow
	for r := t.query("SELECT "+planColumns+" FROM plans WHERE id = ?", id.ID[:]); r.next(); {
		p = r.plan()
	}
	if p == nil || p.deleting {
		return nil, fmt.Errorf("plan %s: %w", id, plan.ErrNotFound)
	}
	if there, ok := t.plans[p.n]; ok {
		return there, nil
	}
	t.keep(p)
	return p, nil
}

// keep has the transaction find the plan that it has read.
func (t *tx) keep(p *planRow) { t.plans[p.n], t.planIDs[p.ID] = p, p }

// touch has the plan's row written, and shown in the feed of changes.
func (t *tx) touch(p *planRow) {
	p.dirty, p.Modified = true, t.at
	t.shown = append(t.shown, p.n)
}

func (t *tx) flushPlans() {
	for _, p := range t.plans {
		if c := &p.Counts; *c != p.was {
			t.exec(`UPDATE plans SET held = ?, queued = ?, claimed = ?, running = ?, succeeded = ?, failed = ?, terminated = ?, cancelled = ?,
				skipped = ?, orphaned = ?, allowed = ?, gathering = ?, gathered = ? WHERE n = ?`,
				c.Held, c.Queued, c.Claimed, c.Running, c.Succeeded, c.Failed, c.Terminated, c.Cancelled, c.Skipped, c.Orphaned, c.Allowed, c.Gathering,
				c.Gathered, p.n)
			p.was = *c
		}
	}
	t.flushClosings()
}

// flushClosings writes what changed in plans besides their counts.
func (t *tx) flushClosings() {
	for _, p := range t.plans {
		if p.dirty {
			t.exec("UPDATE plans SET state = ?, closing = ?, own = ?, edits = ?, leaving = ?, retry = ?, priority = ?, ending = ?, modified = ?, ended = ? WHERE n = ?",
				int64(p.State), string(p.Closing), p.Own, p.Edits, p.deleting, p.retry, p.Priority, int64(p.Ending), micro(p.Modified), micro(p.Ended), p.n)
			if !p.Deadline.IsZero() {
				t.exec("UPDATE plans SET deadline = ? WHERE n = ?", t.unset(micro(p.Deadline)), p.n)
			}
			p.dirty = false
		}
	}
}

// over reports whether the one plan of a node has ended, or is not there any more.
func (t *tx) over(only plan.PlanID) bool {
	if only.IsZero() {
		return false
	}
	p, err := t.planByID(only)
	return err != nil || p.State.Ended()
}

func (t *tx) queue(n int64) *queueRow {
	if q, ok := t.queues[n]; ok {
		return q
	}
	for r := t.query("SELECT "+queueColumns+" FROM queues WHERE n = ?", n); r.next(); {
		t.queues[n] = r.queue()
	}
	if q, ok := t.queues[n]; ok {
		return q
	}
	t.fail(fmt.Errorf("%s: a task is of queue %d, which is not there", t.s.path, n))
	return &queueRow{n: n}
}

func (t *tx) flushQueues() {
	for _, q := range t.queues {
		if q.Queued != q.wasQueued || q.Active != q.wasActive {
			t.exec("UPDATE queues SET queued = ?, active = ? WHERE n = ?", q.Queued, q.Active, q.n)
			q.wasQueued, q.wasActive = q.Queued, q.Active
		}
	}
}

const setMeta = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"

const getMeta = "SELECT value FROM meta WHERE key = ?"

// meta returns a number that is kept under a key; 0 if there is none.
func (t *tx) meta(key string) int64 {
	if r := t.query(getMeta, key); r.one() {
		return r.int(0)
	}
	return 0
}

// settle does with held and queued tasks as the rules say, and returns how many stay as they are.
func (t *tx) settle(found []taskRow) (left int) {
	rows := make([]*taskRow, len(found))
	for i := range found {
		rows[i] = &found[i]
	}
	left, err := engine.Settle(t.ctx, t, rows)
	t.fail(err)
	return left
}

// work releases the children of ended tasks and continues jobs, within the budget.
func (t *tx) work() (more bool) {
	more, err := engine.Work(t.ctx, t)
	t.fail(err)
	return more
}

// within does something with a part of the budget.
func (t *tx) within(part int, do func()) {
	rest := max(0, t.budget-part)
	t.budget -= rest
	do()
	t.budget += rest
}

// add leaves a job, if it is not there already.
func (t *tx) add(kind, ref int64) {
	t.exec("INSERT OR IGNORE INTO jobs (kind, ref) VALUES (?, ?)", kind, ref)
	t.jobs = true
}

func (t *tx) drop(kind, ref int64) { t.exec("DELETE FROM jobs WHERE kind = ? AND ref = ?", kind, ref) }

// taskByID returns plan.ErrNotFound for a task that is not there.
func (t *tx) taskByID(id plan.TaskID) (taskRow, error) {
	r := t.query("SELECT "+taskColumns+" FROM tasks AS t WHERE t.id = ?", id.ID[:])
	if !r.one() {
		return taskRow{}, fmt.Errorf("task %s: %w", id, plan.ErrNotFound)
	}
	return r.task(), nil
}
