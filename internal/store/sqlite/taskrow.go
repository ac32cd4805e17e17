package sqlite

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// The column gate of a held task says what the task waits for. Stored: never renumbered.
const (
	forPlan    = 0 // nothing: it is a root, and released when its plan is ready
	forInstant = 1 // an instant
	forItems   = 2 // a foreach task: its items
	forParents = 3 // its parents
	forOthers  = 4 // an item: the other items to be in
	forRetry   = 5 // the retry that takes it, see retry.go
	forEnd     = 6 // a task of finally, whether it has parents or not: the end of all others of its plan
)

// Flags of a task. Stored: never renumbered.
const (
	flagContinue  = 1 << iota // continue_on_error
	flagForeach               // a foreach task
	flagOnNode                // whose items a node makes
	flagExpanding             // and are being made
	flagExpanded              // or are all in
	flagGathered              // a foreach task whose output is put together from its items'
	flagDelivered             // its parents' outputs are in its params, as readers see them
	flagByRef                 // an item that gets its foreach task's inputs by reference
	flagBadParams             // it has parents, and params that nothing can be delivered into
	flagItems                 // a foreach task whose items are all in, and of which there are some
	_
	flagRan    // as plan.Task has it; also of a task that has ended since
	flagAlong  // a foreach task that goes along with others, or an item of one, which has parents of its own
	flagBudget // max_failures, of a foreach task or of an item of one
	flagLeaves // an item that a retry holds, to be skipped because it is not in its list any more
	flagFinally
)

// inlineOutput is how long an output may be, in bytes, to lie in the row of its task. Longer ones would fill the pages that every turn
// rewrites.
const inlineOutput = 128

// taskRow is a task as a transaction needs it.
type taskRow struct {
	n         int64
	id        plan.TaskID
	status    plan.Status
	reason    plan.Reason
	hold      int64 // what it waits for, if it is held
	plan      int64
	queue     int64
	flags     int64
	attempt   int64
	token     int64
	cancel    bool
	rule      plan.When
	of        int64
	notBefore int64 // as unset has it
	rank      int64

	// The transaction knows these besides the row.
	seen    rules.Outcome // of the task's parents that have finished
	all     bool          // all of them have
	stopped *taskRow      // the foreach task of an item, if a person cancelled it; else nil
	over    bool          // it is an item of one of which too many failed
}

// Small columns come as one: what the driver does for a column costs more than SQLite's arithmetic.
const taskColumns = `t.n, t.id, ((t.status + 8) << 20) | (t.flags << 4) | (t.cancel << 3) | t.gate, t.reason, t.plan, t.queue, t.attempt, t.token,
	t.rule, t.of, t.not_before, t.rank`

// tasksOf ends with the column of the tasks' numbers.
const tasksOf = "SELECT " + taskColumns + " FROM tasks AS t WHERE t.n"

// taskWidth is the number of taskColumns.
const taskWidth = 12

func (r *rows) task() taskRow {
	packed := r.int(2)
	return taskRow{
		n: r.int(0), id: plan.TaskID{ID: r.id(1)}, status: plan.Status(packed>>20 - 8), flags: packed >> 4 & 0xffff, cancel: packed>>3&1 != 0,
		hold: packed & 7, reason: plan.Reason(r.text(3)), plan: r.int(4), queue: r.int(5), attempt: r.int(6), token: r.int(7),
		rule: plan.When(r.text(8)), of: r.int(9), notBefore: r.int(10), rank: r.int(11),
	}
}

// orNull is how a word is stored that is mostly empty.
func orNull[T ~string](word T) any {
	if word == "" {
		return nil
	}
	return string(word)
}

func (r *taskRow) is(flag int64) bool { return r.flags&flag != 0 }

// counted returns what the counts of a plan ask of the task.
func (r *taskRow) counted() rules.Counted {
	return rules.Counted{Status: r.status, Reason: r.reason, ContinueOnError: r.is(flagContinue), Items: r.status.Gathers(r.is(flagItems), r.is(flagBudget))}
}

// taskRows is tasks for who has nothing to be written first.
func (c *conn) taskRows(ns []int64) []taskRow {
	out := make([]taskRow, 0, len(ns))
	for r := c.query("SELECT "+taskColumns+" FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.n = j.value", list(ns)); r.next(); {
		out = append(out, r.task())
	}
	return out
}

// named is what refusals are made of: the task with its id, name and state, when it was started, and until when it is held.
func (c *conn) named(r *taskRow) *plan.Task {
	out := &plan.Task{ID: r.id, Status: r.status, Reason: r.reason}
	if q := c.query("SELECT name, started, "+notBefore+" FROM tasks AS t WHERE n = ?", r.n); q.one() {
		out.Name, out.Started, out.NotBefore = q.text(0), instant(q.int(1)), instant(q.int(2))
	}
	return out
}

// taskNumber returns the number of a task, and that of the foreach task that it is an item of.
func (c *conn) taskNumber(id plan.TaskID) (n, of int64, err error) {
	r := c.query("SELECT n, of FROM tasks WHERE id = ?", id.ID[:])
	if !r.one() {
		return 0, 0, fmt.Errorf("task %s: %w", id, plan.ErrNotFound)
	}
	return r.int(0), r.int(1), nil
}

// endsWithItems reports whether a task is a foreach task that waits for nothing but the end of its items.
func (r *taskRow) endsWithItems() bool {
	return r.waitsFor(forItems) && r.is(flagExpanded)
}

// goesAlong reports whether a task is a foreach task that has an item for each item of other tasks, its
// heads. Whether it may make its items does not follow from its join: a head need not have finished. So the
// few such tasks read their parents each time something happens to one of these.
func (r *taskRow) goesAlong() bool { return r.is(flagAlong) && r.of == 0 }

// allowed reports whether children count a failure of the task as success.
func (r *taskRow) allowed() bool { return r.is(flagContinue) && !r.is(flagBudget) }

func numbers(tasks []taskRow) []int64 { return each(tasks, func(r *taskRow) int64 { return r.n }) }

// A token, as the node has it, is the task's number and what the row holds: so that an ending finds its row without another index.
func packToken(n, token int64) (t protocol.Token) {
	binary.BigEndian.PutUint16(t[0:2], uint16(n>>32))
	binary.BigEndian.PutUint32(t[2:6], uint32(n))
	binary.BigEndian.PutUint16(t[6:8], uint16(token>>32))
	binary.BigEndian.PutUint32(t[8:12], uint32(token))
	return t
}

func unpackToken(t protocol.Token) (n, token int64) {
	n = int64(binary.BigEndian.Uint16(t[0:2]))<<32 | int64(binary.BigEndian.Uint32(t[2:6]))
	token = int64(binary.BigEndian.Uint16(t[6:8]))<<32 | int64(binary.BigEndian.Uint32(t[8:12]))
	return n, token
}

func definitionFlags(d *plan.Definition) (flags int64) {
	if d.ContinueOnError {
		flags |= flagContinue
	}
	if d.MaxFailures != "" {
		flags |= flagBudget
	}
	if d.Finally {
		flags |= flagFinally
	}
	if d.Foreach != nil {
		flags |= flagForeach
		if d.Foreach.OnNode() {
			flags |= flagOnNode
		}
		if len(d.Foreach.Each) > 0 {
			flags |= flagAlong
		}
	}
	return flags
}

// packDefinition writes what a task's row does not hold of its definition; nil if that is nothing.
func packDefinition(d plan.Definition) ([]byte, error) {
	d.Rank, d.When, d.ContinueOnError = 0, "", false
	if reflect.ValueOf(&d).Elem().IsZero() {
		return nil, nil
	}
	return jsontext.Marshal(d)
}

// unpackDefinition is the reverse; b may be nil.
func unpackDefinition(b []byte, rank int64, rule plan.When, flags int64) (d plan.Definition, err error) {
	subject, alone := subjectAlone(b)
	switch {
	case alone:
		d.Subject = subject
	case b != nil:
		d, err = parseDefinition(b)
	}
	d.Rank, d.When, d.ContinueOnError = rank, rule, flags&flagContinue != 0
	return d, err
}

// subjectAlone returns the subject of a definition that has nothing else, as most tasks of no plan do.
func subjectAlone(b []byte) (subject string, alone bool) {
	if text, ok := bytes.CutPrefix(b, []byte(`{"subject":`)); ok && bytes.Count(b, []byte(`"`)) == 4 {
		return jsontext.TextOf(bytes.TrimSuffix(text, []byte("}")))
	}
	return "", false
}

// parseDefinition takes memory for a definition, which most tasks need none for: their rows hold all of it.
func parseDefinition(b []byte) (d plan.Definition, err error) {
	err = json.Unmarshal(b, &d)
	return d, err
}

// orNone returns params, an empty object where there are none.
func orNone(params []byte) []byte {
	if len(params) == 0 {
		return []byte("{}")
	}
	return params
}

// candidate is a queued task that may be claimed.
type candidate struct {
	n, plan int64
	prio    int64 // this and the id only where tasks are to be compared
	id      plan.ID
}

// A place is where tasks are queued.
type place struct {
	queue, lane int64
	delivered   bool
}

// flag is what is set in tasks that are queued there.
func (at place) flag() int64 {
	if at.delivered {
		return flagDelivered
	}
	return 0
}

// unstarted is the end of held and queued tasks that do not run, or not again. Tasks of one kind are written
// together. A reader of such a task writes them first.
type unstarted struct {
	status  plan.Status
	reason  plan.Reason
	detail  string
	outcome rules.Outcome
}

// parent is a finished task whose children are to be told.
type parent struct {
	n       int64
	outcome rules.Outcome
	size    int64 // of its output
	past    int64 // children up to this n have been told
	job     int64 // seq of the job that keeps it, or 0
}

// printed is what an attempt printed, and its ending brought.
type printed struct {
	task int64
	*protocol.Printed
}

// claims are tasks of a queue that the transaction claimed.
type claims struct {
	*queueRow
	token int64
	ns    []int64
}

// A claimGroup is a group that a claim takes from.
type claimGroup struct {
	*plan.Group
	left  int // how many tasks its rate still lets start
	taken int
}
