package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// tx is one write transaction. Rows of plans and queues are read once; what changes in their counters, and in the gates of children, is
// gathered and written once, at its end.
type tx struct {
	*conn
	s      *Store
	ctx    context.Context // of the call
	by     *instanceRow    // the instance that calls, in a turn or a sweep
	at     time.Time
	now    int64     // at, as it is stored
	seen   lead      // of the clock, once this is committed
	began  time.Time // by the system's clock
	passed int64     // of the jobs that are no releases: the seq of the last one that waits for a retry
	budget int       // documents that may still be changed by releasing

	plans    map[int64]*planRow
	queues   map[int64]*queueRow
	foreachs map[int64]*foreachRow
	printed  []printed // results that came with endings
	taking   taking
	retried  plan.PlanID // the plan whose retry keeps a task from being cancelled
	found    *faults     // what the audit of a sweep found,
	left     []int64     // and what of that is still to be repaired
	ends     []parent    // what ended here and whose children are still to be told
	kept     int         // of those that were kept by others, how many are looked at together
	done     []int64     // tasks to be written as succeeded with null, all together
	// tasks to be written as cancelled that were held or queued, those that end alike together
	unstarted map[unstarted][]int64
	ready     map[place][]newcomer // tasks to be queued, those of a place together
	changed   []int64              // tasks whose change the feed shows
	shown     []int64              // plans, the same

	gone     string // why tasks are skipped that need an item which is not made any more
	again    bool   // tasks are decided about whose parents may have finished before
	retrying *bool  // whether any retry is being made; nil: nobody has asked
	apart    *int64 // the retry of tasks of no plan, see noted; nil: likewise
	moved    *int64 // see shift; nil: likewise

	wrote  bool
	rows   int64            // that it changed
	queued int              // tasks that were queued,
	taken  int              // and claimed
	ended  []plan.EndedPlan // plans that ended
	told   bool             // one of them has a node of its own, which is to be told
}

// write runs do in a transaction, and commits it unless do returns an error or a statement failed.
// The caller must then discard do's changes in memory. write returns when the commit is on the
// disk.
func (s *Store) write(ctx context.Context, do func(*tx) error) error {
	wrote, err := s.commit(ctx, do)
	if err == nil && wrote {
		err = s.wal.sync()
	}
	return err
}

// commit is write for who has more to write before any of it has to be on the disk.
func (s *Store) commit(ctx context.Context, do func(*tx) error) (wrote bool, err error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.unlock()
	return s.transact(ctx, do)
}

// transact is write for who has the turn; what it wrote is still to be flushed to the disk.
func (s *Store) transact(ctx context.Context, do func(*tx) error) (wrote bool, err error) {
	at, ahead, known := s.clock.read()
	t := &tx{
		conn: s.w, s: s, ctx: ctx, began: time.Now(), at: at, now: at.UnixMicro(), budget: plan.DefaultBudget,
		plans: map[int64]*planRow{}, queues: map[int64]*queueRow{}, foreachs: map[int64]*foreachRow{}, ready: map[place][]newcomer{},
		unstarted: map[unstarted][]int64{},
	}
	t.begin()
	if t.seen = s.lead; known && t.err == nil {
		t.notice(ahead)
	}
	err = do(t)
	if t.err == nil && err == nil {
		t.flush()
	}
	err = t.end(err)
	if s.watch != nil && t.wrote {
		s.watch(t)
	}
	return t.wrote, err
}

func (t *tx) begin() {
	t.conn.exec("BEGIN IMMEDIATE")
	if v := t.s.version(); t.err == nil && v != schema {
		t.fail(t.s.newer(v)) // another process migrated it while this one ran
	}
}

// end commits, or rolls back if the caller or a statement failed.
func (t *tx) end(err error) error {
	if failed := t.clear(); failed != nil || err != nil || !t.wrote {
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
	if n > 0 {
		t.wrote = true
		t.rows += n
	}
	return n
}

// execEach runs a statement, which ends with the column that they are of, for numbers, which it sorts.
func (t *tx) execEach(text string, ns []int64, args ...any) {
	found, ok := spans(ns)
	if !ok {
		t.exec(text+inList, append(args, list(ns))...)
	}
	for _, s := range found {
		t.exec(text+inSpan, append(args, s.first, s.last)...)
	}
}

// flush writes what was gathered.
func (t *tx) flush() {
	for t.flushForeachs() {
	}
	t.keepEnds() // of callers that release nothing themselves
	t.flushTasks()
	t.endPlans()
	t.flushPlans()
	t.flushQueues()
	t.flushChanges()
}

// micro is an instant as it is stored; the zero one is 0.
func micro(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

func instant(micro int64) time.Time {
	if micro == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micro).UTC()
}

// planRow is a plan as a transaction needs it.
type planRow struct {
	n int64
	plan.Plan
	shared  bool
	leaving bool
	retry   int64 // n of the retry that is being made, or 0
	was     plan.Counts
	dirty   bool // a field besides Counts was changed
}

const planColumns = "n, id, name, run, state, closing, on_failure, own, edits, shared, leaving, modified, ended, keep, created, source, " +
	"held, queued, claimed, running, succeeded, failed, terminated, cancelled, skipped, orphaned, allowed, size, gathering, retry, gathered"

// planWidth is the number of planColumns.
const planWidth = 31

func (r *rows) plan() *planRow {
	c := plan.Counts{
		Held: int(r.int(16)), Queued: int(r.int(17)), Claimed: int(r.int(18)), Running: int(r.int(19)), Succeeded: int(r.int(20)), Failed: int(r.int(21)),
		Terminated: int(r.int(22)), Cancelled: int(r.int(23)), Skipped: int(r.int(24)), Orphaned: int(r.int(25)), Allowed: int(r.int(26)), Gathering: int(r.int(28)),
		Gathered: int(r.int(30)),
	}
	return &planRow{
		n: r.int(0), shared: r.bool(9), leaving: r.bool(10), retry: r.int(29), was: c,
		Plan: plan.Plan{
			ID: plan.PlanID{ID: r.id(1)}, Name: r.text(2), Run: int(r.int(3)), State: plan.Lifecycle(r.int(4)), Closing: plan.Closing(r.text(5)),
			OnFailure: plan.OnFailure(r.text(6)), Own: r.bool(7), Edits: int(r.int(8)), Modified: instant(r.int(11)), Ended: instant(r.int(12)),
			Keep: time.Duration(r.int(13)), Created: instant(r.int(14)), Source: r.text(15), Counts: c, Size: int(r.int(27)),
		},
	}
}

// plan returns the plan's row; nil for 0, which is none.
func (t *tx) plan(n int64) *planRow {
	if n == 0 {
		return nil
	}
	if p, ok := t.plans[n]; ok {
		return p
	}
	r := t.query("SELECT "+planColumns+" FROM plans WHERE n = ?", n)
	if !r.one() {
		t.fail(fmt.Errorf("%s: a task is of plan %d, which is not there", t.s.path, n))
		return &planRow{n: n}
	}
	p := r.plan()
	t.plans[n] = p
	return p
}

// planByID returns plan.ErrNotFound for a plan that is not there, or whose deletion has begun.
func (t *tx) planByID(id plan.PlanID) (*planRow, error) {
	for _, p := range t.plans {
		if p.ID == id && !p.leaving {
			return p, nil
		}
	}
	r := t.query("SELECT "+planColumns+" FROM plans WHERE id = ?", id.ID[:])
	if !r.one() || r.bool(10) {
		return nil, fmt.Errorf("plan %s: %w", id, plan.ErrNotFound)
	}
	p := r.plan()
	if there, ok := t.plans[p.n]; ok {
		return there, nil
	}
	t.plans[p.n] = p
	return p, nil
}

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
			t.exec("UPDATE plans SET state = ?, closing = ?, own = ?, edits = ?, shared = ?, leaving = ?, retry = ?, modified = ?, ended = ? WHERE n = ?",
				int64(p.State), string(p.Closing), p.Own, p.Edits, p.shared, p.leaving, p.retry, micro(p.Modified), micro(p.Ended), p.n)
			p.dirty = false
		}
	}
}

// stopped reports whether nothing of the plan is claimed: it is closed, or a retry is being made.
func (p *planRow) stopped() bool { return p.Closing != plan.Open || p.retry != 0 }

// endPlans ends the plans in which nothing is unfinished any more.
func (t *tx) endPlans() {
	for _, p := range t.plans {
		if p.Counts.Settled() { // else nothing else matters
			t.failOn(engine.EndPlan(t.ctx, t, p))
		}
	}
}

// failOn fails the transaction if err is an error of the engine.
func (t *tx) failOn(err error) {
	if err != nil {
		t.fail(err)
	}
}

// PlanView implements engine.Closer.
func (t *tx) PlanView(p *planRow) engine.PlanView {
	return engine.PlanView{State: p.State, Closing: p.Closing, OnFailure: p.OnFailure, Retrying: p.retry != 0}
}

// ClosePlan implements engine.Closer.
func (t *tx) ClosePlan(_ context.Context, p *planRow, closing plan.Closing) (closed bool, err error) {
	p.Closing = closing
	t.touch(p)
	t.drop(jobClose, p.n) // a person's reason takes the place of a failure's, from the start
	t.add(jobClose, p.n)
	if closing == plan.ClosedByPerson {
		t.flushTasks()
		t.cancelActive("plan", p.n)
	}
	return true, t.err
}

// Finished implements engine.Closer.
func (t *tx) Finished(_ context.Context, p *planRow) (all, broken, cancelled bool, err error) {
	return p.Counts.Settled(), p.Counts.Broken() > 0, p.Counts.Cancelled > 0, t.err
}

// EndPlan implements engine.Closer.
func (t *tx) EndPlan(_ context.Context, p *planRow, state plan.Lifecycle) error {
	p.State, p.Ended = state, t.at
	t.ended, t.told = append(t.ended, plan.EndedPlan{ID: p.ID, State: p.State}), t.told || p.Own
	t.touch(p)
	return t.err
}

// over reports whether the one plan of a node has ended, or is not there any more.
func (t *tx) over(only plan.PlanID) bool {
	if only.IsZero() {
		return false
	}
	p, err := t.planByID(only)
	return err != nil || p.State.Ended()
}

// queueRow is a queue as a transaction needs it.
type queueRow struct {
	n int64
	plan.Queue
	wasQueued, wasActive int
}

const queueColumns = "n, id, name, plugin, threads, unlimited, sort, queued, active, pin, ignored, node_threads, on_lost, secrets, keep"

func (r *rows) queue() *queueRow {
	return &queueRow{
		n: r.int(0), wasQueued: int(r.int(7)), wasActive: int(r.int(8)),
		Queue: plan.Queue{
			ID: plan.QueueID{ID: r.id(1)}, Name: r.text(2), Plugin: r.text(3), Threads: int(max(0, r.int(4))), Unlimited: r.bool(5),
			Sort: plan.QueueSort(r.text(6)), Queued: int(r.int(7)), Active: int(r.int(8)),
			Pin: texts[plan.NodeName](r, 9), Ignore: texts[plan.NodeName](r, 10), NodeThreads: int(r.int(11)), OnLost: plan.OnLost(r.text(12)),
			Secrets: texts[string](r, 13), Keep: r.keep(14),
		},
	}
}

// texts reads a column as textList writes it.
func texts[T ~string](r *rows, i int) (list []T) {
	if text := r.text(i); text != "" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			r.c.fail(fmt.Errorf("a list of a queue: %w", err))
		}
	}
	return list
}

// textList makes texts one column; none are the empty text.
func textList[T ~string](list []T) string {
	if len(list) == 0 {
		return ""
	}
	b, _ := json.Marshal(list) // texts have JSON
	return string(b)
}

// keep reads a column as keepText writes it.
func (r *rows) keep(i int) (k plan.Keep) {
	if text := r.text(i); text != "" {
		if err := json.Unmarshal([]byte(text), &k); err != nil {
			r.c.fail(fmt.Errorf("how long a queue keeps its tasks: %w", err))
		}
	}
	return k
}

// keepText makes a Keep one column; one that says nothing is the empty text.
func keepText(k plan.Keep) string {
	if k == (plan.Keep{}) {
		return ""
	}
	b, _ := json.Marshal(k) // numbers have JSON
	return string(b)
}

// free returns how many of the queue's tasks may still be claimed, at most some.
func (q *queueRow) free(most int) int {
	if !q.Unlimited {
		most = min(most, q.Threads-q.Active)
	}
	return max(0, min(most, q.Queued))
}

func (t *tx) queue(n int64) *queueRow {
	if q, ok := t.queues[n]; ok {
		return q
	}
	r := t.query("SELECT "+queueColumns+" FROM queues WHERE n = ?", n)
	if !r.one() {
		t.fail(fmt.Errorf("%s: a task is of queue %d, which is not there", t.s.path, n))
		return &queueRow{n: n}
	}
	q := r.queue()
	t.queues[n] = q
	return q
}

func (t *tx) flushQueues() {
	for _, q := range t.queues {
		if q.Queued != q.wasQueued || q.Active != q.wasActive {
			t.exec("UPDATE queues SET queued = ?, active = ? WHERE n = ?", q.Queued, q.Active, q.n)
			q.wasQueued, q.wasActive = q.Queued, q.Active
		}
	}
}
