package sqlite

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// newTask is what a task's row holds beyond the task itself.
type newTask struct {
	n           int64 // from number
	plan, queue int64
	hold        int64
	flags       int64
	of, index   int64 // of an item
	parents     []int64
}

// insert inserts a held task with its body; its edges are the caller's. A task whose id is there already is left alone.
func (t *tx) insert(task *plan.Task, x newTask) {
	var in inserts
	r := t.rowsOf(&in, task, x)
	if t.exec(insertTask+" ON CONFLICT (id) DO NOTHING", in.tasks...) > 0 {
		t.exec(insertBody, in.bodies...)
		t.count(&r)
	}
}

// inserts are what the rows of new tasks, and of the edges to them, are made with.
type inserts struct{ tasks, bodies, kids, joins []any }

// The statements insert one row, or several with more of what follows VALUES.
const (
	insertTask = `INSERT INTO tasks (n, status, gate, plan, queue, flags, rank, rule, of, idx, not_before, modified, id, name, subject)
		VALUES (?, ` + firstStatus + `, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertBody = "INSERT INTO bodies (n, created, def, params, needs, parents) VALUES (?, ?, ?, ?, ?, ?)"
	insertKid  = "INSERT INTO kids (parent, child) VALUES (?, ?)"
	insertJoin = "INSERT INTO gates (n, waits, bytes, largest) VALUES (?, ?, 0, 0)"
)

// rowsAtOnce is how many rows one statement inserts: to begin one and to end it costs as much as a row.
const rowsAtOnce = 32

// insertRows inserts rows, none of which may be there.
func (t *tx) insertRows(one string, args []any) {
	_, row, _ := strings.Cut(one, "VALUES ")
	width := strings.Count(row, "?")
	text, some := one+strings.Repeat(", "+row, rowsAtOnce-1), rowsAtOnce*width
	for ; len(args) >= some; args = args[some:] {
		t.exec(text, args[:some]...)
	}
	for ; len(args) > 0; args = args[width:] {
		t.exec(one, args[:width]...)
	}
}

// An edge leads from a task to one that needs it.
type edge struct{ parent, child int64 }

// insertEdges inserts edges of new tasks, in the order in which they are kept, and joins.
func (t *tx) insertEdges(in *inserts, edges []edge) {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.child, b.child)) })
	in.kids = make([]any, 0, 2*len(edges))
	for _, e := range edges {
		in.kids = append(in.kids, e.parent, e.child)
	}
	t.insertRows(insertKid, in.kids)
	t.insertRows(insertJoin, in.joins)
}

// rowsOf makes the rows of a held task and its body.
func (t *tx) rowsOf(in *inserts, task *plan.Task, x newTask) taskRow {
	def, err := packDefinition(task.Definition)
	if err != nil {
		t.fail(fmt.Errorf("task %s: %w", task.ID, err))
	}
	r := taskRow{
		n: x.n, id: task.ID, status: rules.FirstStatus, hold: x.hold, plan: x.plan, queue: x.queue, flags: x.flags | definitionFlags(&task.Definition), rule: task.When, of: x.of,
		notBefore: t.unset(micro(task.NotBefore)), rank: task.Rank,
	}
	in.tasks = append(in.tasks, x.n, x.hold, x.plan, x.queue, r.flags, task.Rank, orNull(task.When), x.of, x.index, r.notBefore, t.now, task.ID.ID[:], task.Name,
		orNull(task.Subject))
	created := t.now
	if !task.Created.IsZero() {
		created = micro(task.Created)
	}
	in.bodies = append(in.bodies, x.n, created, def, orNone(task.Params), packParents(x.parents), len(x.parents))
	return r
}

// count takes notice of a task that was inserted.
func (t *tx) count(r *taskRow) {
	if p := t.plan(r.plan); p != nil {
		rules.Count(&p.Counts, r.counted(), 1)
	}
	t.changed = append(t.changed, r.n)
}

// number reserves numbers of tasks, and returns the first.
func (t *tx) number(count int64) int64 {
	r := t.query("SELECT value FROM meta WHERE key = 'task'")
	if !r.one() {
		return 0
	}
	n := r.int(0)
	t.exec("UPDATE meta SET value = ? WHERE key = 'task'", n+count)
	return n + 1
}

// body is what is seldom read of a task.
type body struct {
	plan.Definition
	params  json.RawMessage // as they were submitted
	name    string
	index   int
	rescues int64
}

func (t *tx) body(r *taskRow) body {
	b := t.query("SELECT b.def, b.params, t.name, t.idx, t.rank, t.rescues FROM tasks AS t CROSS JOIN bodies AS b ON b.n = t.n WHERE t.n = ?", r.n)
	if !b.one() {
		return body{}
	}
	d, err := unpackDefinition(b.bytes(0), b.int(4), r.rule, r.flags)
	if err != nil {
		t.fail(fmt.Errorf("definition of task %s: %w", r.id, err))
	}
	return body{d, b.bytes(1), b.text(2), int(b.int(3)), b.int(5)}
}
