package sqlite

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// planRow is a plan as a transaction needs it: Deadline is there only if the plan begins with it, and Stopped is not.
type planRow struct {
	n int64
	plan.Plan
	deleting bool
	retry    int64 // n of the retry that is being made, or 0
	was      plan.Counts
	dirty    bool // a field besides Counts was changed
}

const planColumns = "n, id, name, run, state, closing, on_failure, own, edits, leaving, modified, ended, keep, created, source, " +
	"held, queued, claimed, running, succeeded, failed, terminated, cancelled, skipped, orphaned, allowed, size, gathering, retry, gathered, overlap, priority, timeout, " +
	"finally, ending"

// planWidth is the number of planColumns.
const planWidth = 35

func (r *rows) plan() *planRow {
	c := plan.Counts{
		Held: int(r.int(15)), Queued: int(r.int(16)), Claimed: int(r.int(17)), Running: int(r.int(18)), Succeeded: int(r.int(19)), Failed: int(r.int(20)),
		Terminated: int(r.int(21)), Cancelled: int(r.int(22)), Skipped: int(r.int(23)), Orphaned: int(r.int(24)), Allowed: int(r.int(25)), Gathering: int(r.int(27)),
		Gathered: int(r.int(29)),
	}
	return &planRow{
		n: r.int(0), deleting: r.bool(9), retry: r.int(28), was: c,
		Plan: plan.Plan{
			ID: plan.PlanID{ID: r.id(1)}, Name: r.text(2), Run: int(r.int(3)), State: plan.Lifecycle(r.int(4)), Closing: plan.Closing(r.text(5)),
			OnFailure: plan.OnFailure(r.text(6)), Overlap: plan.Overlap(r.text(30)), Own: r.bool(7), Edits: int(r.int(8)), Modified: instant(r.int(10)), Ended: instant(r.int(11)),
			Keep: time.Duration(r.int(12)), Created: instant(r.int(13)), Source: r.text(14), Counts: c, Size: int(r.int(26)), Priority: int(r.int(31)),
			Timeout: time.Duration(r.int(32)),
			Finally: r.bool(33), Ending: plan.Lifecycle(r.int(34)),
		},
	}
}

// stopped reports whether nothing of the plan is claimed: it is closed, or a retry is being made.
func (p *planRow) stopped() bool { return p.Closing != plan.Open || p.retry != 0 }

// planDef is what of a plan only its readers need.
type planDef struct {
	Secrets []string     `json:"secrets,omitempty"`
	By      string       `json:"by,omitempty"`
	Request string       `json:"request,omitempty"`
	Retried int64        `json:"retried,omitempty"` // microseconds
	Stopped plan.Closing `json:"stopped,omitempty"` // BeginFinally writes it
}

// wholeColumns are those of a plan for its readers; wholePlan reads them.
const wholeColumns = planColumns + ", params, def, CASE deadline WHEN 0 THEN 0 ELSE deadline + coalesce((SELECT value FROM meta WHERE key = 'shift'), 0) END"

func (r *rows) wholePlan() plan.Plan {
	p := r.plan().Plan
	p.Params, p.Deadline = r.bytes(planWidth), instant(r.int(planWidth+2))
	var d planDef
	if def := r.bytes(planWidth + 1); def != nil {
		if err := json.Unmarshal(def, &d); err != nil {
			r.c.fail(fmt.Errorf("plan %s: what its submitter said of it: %w", p.ID, err))
		}
	}
	p.Secrets, p.By, p.Request, p.Retried, p.Stopped = d.Secrets, d.By, d.Request, instant(d.Retried), d.Stopped
	return p
}

// packPlan writes what wholePlan reads of def; nil if that is nothing.
func packPlan(p *plan.Plan) ([]byte, error) {
	d := planDef{Secrets: p.Secrets, By: p.By, Request: p.Request, Retried: micro(p.Retried), Stopped: p.Stopped}
	if len(d.Secrets) == 0 && d.By == "" && d.Request == "" && d.Retried == 0 && d.Stopped == plan.Open {
		return nil, nil
	}
	return json.Marshal(d)
}

func numberOf(p *planRow) int64 {
	if p == nil {
		return 0
	}
	return p.n
}

const planThere = "SELECT 1 FROM plans WHERE n = ?"

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

// queueRow is a queue as a transaction needs it.
type queueRow struct {
	n int64
	plan.Queue
	wasQueued, wasActive int
}

const queueColumns = "n, id, name, plugin, threads, unlimited, sort, queued, active, pin, ignored, node_threads, settings, spent"

// queuePlugin is the place of the plugin among queueColumns.
const queuePlugin = 3

func (r *rows) queue() *queueRow {
	return &queueRow{
		n: r.int(0), wasQueued: int(r.int(7)), wasActive: int(r.int(8)),
		Queue: plan.Queue{
			ID: plan.QueueID{ID: r.id(1)}, Name: r.text(2), Plugin: r.text(queuePlugin), Threads: int(max(0, r.int(4))), Unlimited: r.bool(5),
			Sort: plan.QueueSort(r.text(6)), Queued: int(r.int(7)), Active: int(r.int(8)),
			Pin: texts[plan.NodeName](r, 9), Ignore: texts[plan.NodeName](r, 10), NodeThreads: int(r.int(11)),
			QueueSettings: plan.QueueSettingsOf(r.text(12)), Spent: instant(r.int(13)),
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

// free returns how many of the queue's tasks may still be claimed, at most some.
func (q *queueRow) free(most int) int {
	if !q.Unlimited {
		most = min(most, q.Threads-q.Active)
	}
	return max(0, min(most, q.Queued))
}

// open reports whether the queue has work and a free thread; wasOpen whether it had, as its row is stored.
func (q *queueRow) open() bool    { return q.isOpen(q.Queued, q.Active) }
func (q *queueRow) wasOpen() bool { return q.isOpen(q.wasQueued, q.wasActive) }

func (q *queueRow) isOpen(queued, active int) bool {
	return queued > 0 && (q.Unlimited || active < q.Threads)
}

// Special values of a queue's column threads. Stored: never renumbered. Tasks of such a queue are
// not claimed.
const (
	threadsUnset = -1 // nobody gave it any yet
	threadsGone  = -2 // it was deleted; its row stays for the tasks that are in it
)

// isQueue selects the queues that were not deleted.
const isQueue = "threads <> -2"

func (c *conn) queueNumber(id plan.QueueID) (int64, error) {
	r := c.query("SELECT n FROM queues WHERE id = ? AND "+isQueue, id.ID[:])
	if !r.one() {
		return 0, fmt.Errorf("queue %s: %w", id, plan.ErrNotFound)
	}
	return r.int(0), nil
}

// foreachRow is what a transaction knows of a foreach task's items.
type foreachRow struct {
	n      int64
	items  int64
	made   int64
	undone int64
	failed int64
	seen   rules.Outcome
	bytes  int64
	dirty  bool
	fails  bool // an item failed in this transaction
}

const writeForeach = "INSERT OR REPLACE INTO foreachs (n, items, made, undone, failed, seen, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)"

// size is how long the list of the items' outputs is at most.
func (f *foreachRow) size() int64 { return f.bytes + f.items + 2 }

// count adds items that are there, of one outcome, with the length of their outputs in all.
func (f *foreachRow) count(outcome rules.Outcome, items, bytes int64) {
	f.items += items
	f.bytes += bytes
	f.seen |= outcome
	switch outcome {
	case 0:
		f.undone += items
	case rules.OutcomeFailed:
		f.failed += items
	}
}

// ended takes notice of an item that has finished.
func (f *foreachRow) ended(outcome rules.Outcome, size int64) {
	f.dirty = true
	f.undone--
	f.seen |= outcome
	f.bytes += max(size, int64(len("null")))
	if outcome == rules.OutcomeFailed {
		f.failed++
		f.fails = true
	}
}

// storedForeach returns what is kept of a foreach task's items, if anything is.
func (c *conn) storedForeach(n int64) foreachRow {
	r := c.query("SELECT items, made, undone, failed, seen, bytes FROM foreachs WHERE n = ?", n)
	if !r.one() {
		return foreachRow{n: n}
	}
	return foreachRow{
		n: n, items: r.int(0), made: r.int(1), undone: r.int(2), failed: r.int(3), seen: rules.Outcome(r.int(4)), bytes: r.int(5),
	}
}

type instanceRow struct {
	n    int64
	id   plan.InstanceID
	node plan.NodeName
}
