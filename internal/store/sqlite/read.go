package sqlite

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/failed"
	"github.com/seed-1177d267/sluice/plan"
)

// where gathers the conditions of a query, each with its argument.
type where struct {
	terms []string
	args  []any
}

func (w *where) add(term string, args ...any) {
	w.terms = append(w.terms, term)
	w.args = append(w.args, args...)
}

// prefix selects the ids that begin with some digits.
func (w *where) prefix(column, digits string) {
	if digits == "" {
		return
	}
	low, high := digits, digits
	if n := 24 - len(digits); n > 0 {
		low, high = digits+strings.Repeat("0", n), digits+strings.Repeat("f", n)
	}
	from, err := hex.DecodeString(low)
	to, err2 := hex.DecodeString(high)
	if err != nil || err2 != nil || len(from) != 12 {
		w.add("0")
		return
	}
	w.add(column+" BETWEEN ? AND ?", from, to)
}

func (w *where) String() string {
	if len(w.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.terms, " AND ")
}

func (s *Store) Plan(ctx context.Context, id plan.PlanID) (p plan.Plan, err error) {
	err = s.read(ctx, func(c *conn) error {
		r := c.query("SELECT "+wholeColumns+" FROM plans WHERE id = ? AND leaving = 0", id.ID[:])
		if !r.one() {
			return fmt.Errorf("plan %s: %w", id, plan.ErrNotFound)
		}
		p = r.wholePlan()
		return nil
	})
	return p, err
}

func (s *Store) PlanFile(ctx context.Context, id plan.PlanID) (f plan.File, err error) {
	err = s.read(ctx, func(c *conn) error {
		r := c.query("SELECT n FROM plans WHERE id = ? AND leaving = 0", id.ID[:])
		if !r.one() {
			return fmt.Errorf("plan %s: %w", id, plan.ErrNotFound)
		}
		if r = c.query("SELECT text, dir FROM files WHERE plan = ?", r.int(0)); r.one() {
			f = plan.File{Text: r.text(0), Dir: r.text(1)}
		}
		return nil
	})
	return f, err
}

func (s *Store) Plans(ctx context.Context, q store.PlanQuery) (out []plan.Plan, err error) {
	w := where{terms: []string{"leaving = 0"}}
	if q.Name != "" {
		w.add("name = ?", q.Name)
	}
	if q.Run != 0 {
		w.add("run = ?", q.Run)
	}
	w.prefix("id", q.Prefix)
	if q.Source != "" {
		w.add("source = ?", q.Source)
	}
	if q.State != nil {
		w.add("state = ?", int64(*q.State))
	}
	order := "n" // ascends as plans are made, and so do runs
	if q.Name != "" {
		order = "run" // there is an index
	}
	err = s.read(ctx, func(c *conn) error {
		if !q.Before.IsZero() {
			r := c.query("SELECT n, run, name FROM plans WHERE id = ?", q.Before.ID[:])
			switch {
			case !r.one():
				w.add("id < ?", q.Before.ID[:]) // it was deleted meanwhile: this is nearly that
			case r.text(2) == q.Name:
				w.add("run < ?", r.int(1))
			default:
				w.add("n < ?", r.int(0))
			}
		}
		columns := wholeColumns
		if q.NoParams {
			columns = planColumns + ", NULL, def"
		}
		r := c.query("SELECT "+columns+" FROM plans"+w.String()+" ORDER BY "+order+" DESC LIMIT ? + 0", append(w.args, cmp.Or(q.Limit, 100))...)
		for r.next() {
			out = append(out, r.wholePlan())
		}
		return nil
	})
	return out, err
}

// instanceID is, in SQL, the instance of a task. The claim of one that is not there has an id that is nobody's: none is another program's.
const instanceID = "coalesce(i.id, CASE WHEN t.instance <> 0 AND t." + isMine + " THEN unhex(printf('%024x', t.instance)) END)"

// The columns of a task that a reader reads. Columns that it does not ask for are NULL.
const (
	readColumns = `t.n, t.id, p.id, t.name, q.id, t.rank, t.rule, t.flags, t.status, t.reason, t.detail, t.exit, t.attempt, t.rescues, t.cancel,
		i.node, ` + instanceID + `, ` + notBefore + `, t.modified, t.started, t.ended, t.idx, f.id, fe.items, b.created, b.def, b.needs`
	readFrom = ` FROM tasks AS t LEFT JOIN bodies AS b ON b.n = t.n LEFT JOIN plans AS p ON p.n = t.plan LEFT JOIN queues AS q ON q.n = t.queue
		LEFT JOIN instances AS i ON i.n = t.instance LEFT JOIN tasks AS f ON f.n = t.of LEFT JOIN foreachs AS fe ON fe.n = t.n`
	readWidth = 27
)

func (r *rows) whole() (n int64, t plan.Task, err error) {
	flags := r.int(7)
	t = plan.Task{
		ID: plan.TaskID{ID: r.id(1)}, Plan: plan.PlanID{ID: r.id(2)}, Name: r.text(3), Queue: plan.QueueID{ID: r.id(4)},
		Status: plan.Status(r.int(8)), Reason: plan.Reason(r.text(9)), Detail: r.text(10), Attempt: int(r.int(12)), Rescues: int(r.int(13)),
		Cancel: r.bool(14), Node: plan.NodeName(r.text(15)), Instance: plan.InstanceID{ID: r.id(16)}, NotBefore: instant(r.int(17)),
		Modified: instant(r.int(18)), Started: instant(r.int(19)), Ended: instant(r.int(20)), Index: int(r.int(21)), Of: plan.TaskID{ID: r.id(22)},
		Items: int(r.int(23)), Created: instant(r.int(24)), Expanding: flags&flagExpanding != 0, Expanded: flags&flagExpanded != 0,
	}
	t.Ran = flags&flagRan != 0 && rules.ShowsRan(t.Status)
	if t.Definition, err = unpackDefinition(r.bytes(25), r.int(5), plan.When(r.text(6)), flags); err != nil {
		return 0, t, fmt.Errorf("definition of task %s: %w", t.ID, err)
	}
	if x := r.text(11); x != "" {
		t.Exit = new(plan.Exit)
		if err := json.Unmarshal([]byte(x), t.Exit); err != nil {
			return 0, t, fmt.Errorf("exit of task %s: %w", t.ID, err)
		}
	}
	return r.int(0), t, nil
}

// The same of a task of which little is asked for.
const (
	briefColumns = "t.n, t.id, p.id, t.name, t.status, t.reason, t.started, t.ended, t.idx, f.id, t.rule, t.flags"
	briefFrom    = " FROM tasks AS t LEFT JOIN plans AS p ON p.n = t.plan LEFT JOIN tasks AS f ON t.of <> 0 AND f.n = t.of"
	briefWidth   = 12
)

func (r *rows) brief() (n int64, t plan.Task) {
	return r.int(0), plan.Task{
		ID: plan.TaskID{ID: r.id(1)}, Plan: plan.PlanID{ID: r.id(2)}, Name: r.text(3), Status: plan.Status(r.int(4)), Reason: plan.Reason(r.text(5)),
		Started: instant(r.int(6)), Ended: instant(r.int(7)), Index: int(r.int(8)), Of: plan.TaskID{ID: r.id(9)},
		Definition: plan.Definition{When: plan.When(r.text(10)), ContinueOnError: r.int(11)&flagContinue != 0, Finally: r.int(11)&flagFinally != 0},
	}
}

func (s *Store) Task(ctx context.Context, id plan.TaskID) (t plan.Task, err error) {
	err = s.read(ctx, func(c *conn) error {
		found, err := c.readTasks(where{terms: []string{"t.id = ?"}, args: []any{id.ID[:]}}, "", store.TaskQuery{Needs: true, Params: true, Output: true, Limit: 1})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("task %s: %w", id, plan.ErrNotFound)
		}
		progress, err := c.progress()
		if err != nil {
			return err
		}
		c.fillProgress(found, progress)
		t = found[0].Task
		if r := c.query("SELECT batch FROM rolled WHERE task = ? AND batch > x''", found[0].n); t.Status.Finished() && r.one() {
			t.Batch = r.id(0)
		}
		if found[0].flags&flagGathered == 0 {
			return nil
		}
		r := c.query("SELECT out_len FROM tasks WHERE n = ?", found[0].n)
		if !r.one() {
			return nil // c's error says more
		}
		if err := rules.CheckOutput(int(r.int(0))); err != nil {
			return fmt.Errorf("output of task %q: %w", t.Key(), err)
		}
		t.Output = c.gathered(found[0].n)
		return nil
	})
	return t, err
}

func (s *Store) Tasks(ctx context.Context, q store.TaskQuery) (out []plan.Task, err error) {
	w, from := taskQuery(&q)
	q.Limit = cmp.Or(q.Limit, 100)
	read := (*conn).readTasks
	if q.Brief && !q.Params && !q.Output {
		read = (*conn).readBriefly
	}
	err = s.read(ctx, func(c *conn) error {
		var progress map[attempt]*plan.Progress
		if q.Reached || !q.Brief {
			var err error
			if progress, err = c.progress(); err != nil || q.Reached && len(progress) == 0 {
				return err
			}
		}
		if q.Reached {
			w.add("t."+isReporting+" AND t.n IN (SELECT value FROM json_each(?))", numbersOf(progress))
		}
		found, err := read(c, w, from, q)
		if c.fillProgress(found, progress); q.Reached {
			found = slices.DeleteFunc(found, func(f foundTask) bool { return f.Progress == nil })
		}
		out = make([]plan.Task, len(found))
		for i := range found {
			out[i] = found[i].Task
		}
		return err
	})
	return out, err
}

// taskQuery returns the conditions of a query, and which index serves it best where SQLite cannot tell.
func taskQuery(q *store.TaskQuery) (w where, index string) {
	if !q.Plan.IsZero() {
		// The index of its plan's tasks, in the order asked for, would lead over all of them to the children of one.
		w.add(pick((!q.Parent.IsZero() || q.Reached) && q.Name == "", "+t.plan", "t.plan")+" = (SELECT n FROM plans WHERE id = ?)", q.Plan.ID[:])
	}
	if !q.Parent.IsZero() {
		w.add("t.n IN (SELECT child FROM kids WHERE parent = (SELECT n FROM tasks WHERE id = ?))", q.Parent.ID[:])
	}
	if q.NoPlan {
		w.add("t.plan = 0")
	}
	if q.Name != "" {
		w.add("t.name = ?", q.Name)
		if !q.Plan.IsZero() {
			w.add("t.plan <> 0")
			index = " INDEXED BY tasks_name"
		}
	}
	if q.Subject != "" {
		w.add("t.subject = ?", q.Subject)
		if index == "" && len(q.IDs) == 0 && onlyUnfinished(q.Statuses) {
			w.add("t." + isUnfinished)
			index = " INDEXED BY tasks_subject"
		}
	}
	w.prefix("t.id", q.Prefix)
	if !q.Queue.IsZero() {
		w.add("t.queue = (SELECT n FROM queues WHERE id = ?)", q.Queue.ID[:])
	}
	if !q.Of.IsZero() {
		w.add("t.of = (SELECT n FROM tasks WHERE id = ?) AND t.of <> 0", q.Of.ID[:])
		index = " INDEXED BY tasks_of"
	}
	if q.NoItems {
		w.add("t.of = 0")
	}
	if q.Retried {
		w.add("t.attempt > 1")
	}
	if q.Began {
		w.add(hasRun, flagRan)
	}
	if q.Troubled {
		w.add(isTroubled)
	}
	if len(q.IDs) > 0 {
		w.add("t.id IN (SELECT unhex(value) FROM json_each(?))", listIDs(q.IDs))
	}
	if !q.After.IsZero() {
		w.add(pick(q.Newest, "t.id < ?", "t.id > ?"), q.After.ID[:])
	}
	if len(q.Statuses) > 0 {
		term, of := statusTerm(q.Statuses)
		w.add(term)
		// Nodes have few tasks, even in comparison with one plan.
		if index == "" && len(q.IDs) == 0 && (q.Plan.IsZero() || of == ofActive) {
			index = of
		}
	}
	return w, index
}

// foundTask is a task with what its reader needs besides.
type foundTask struct {
	plan.Task
	n, flags int64
	parents  []int64
}

// readTasks reads tasks with what the query asks for.
func (c *conn) readTasks(w where, index string, q store.TaskQuery) ([]foundTask, error) {
	from := strings.Replace(readFrom, "tasks AS t", "tasks AS t"+index, 1)
	columns := readColumns + pick(q.Params, ", b.params, g.bytes, g.largest", ", NULL, NULL, NULL")
	if q.Params {
		from += " LEFT JOIN gates AS g ON g.n = t.n"
	}
	columns += pick(q.Output, ", coalesce(t.output, o.output)", ", NULL")
	if q.Output {
		from += " LEFT JOIN outputs AS o ON o.n = t.n"
	}
	var found []foundTask
	var withInputs []int64
	r := c.query("SELECT "+columns+from+w.String()+orderOf(&q)+" LIMIT ? + 0", append(w.args, q.Limit)...)
	defer r.close()
	for r.next() {
		n, t, err := r.whole()
		if err != nil {
			return nil, err
		}
		flags := r.int(7)
		t.Params, t.Output = r.bytes(readWidth), r.bytes(readWidth+3)
		if q.Params && flags&flagDelivered != 0 && !r.null(readWidth+1) && rules.Copied(int(r.int(readWidth+1)), int(r.int(readWidth+2))) {
			withInputs = append(withInputs, n)
		}
		f := foundTask{Task: t, n: n, flags: flags}
		if q.Needs {
			f.parents = r.parents(readWidth - 1)
		}
		found = append(found, f)
	}
	if len(withInputs) > 0 {
		inputs := c.inputs(withInputs)
		for i := range found {
			if in := inputs[found[i].n]; in != nil {
				params, err := rules.Deliver(found[i].Params, in)
				if err != nil {
					return nil, fmt.Errorf("params of task %s: %w", found[i].ID, err)
				}
				found[i].Params = params
			}
		}
	}
	if q.Needs {
		c.fillNeeds(found)
	}
	return found, nil
}

// readBriefly is readTasks where little is asked for: half of what a long list costs is columns.
func (c *conn) readBriefly(w where, index string, q store.TaskQuery) (found []foundTask, err error) {
	columns, from := briefColumns, strings.Replace(briefFrom, "tasks AS t", "tasks AS t"+index, 1)
	if q.Needs {
		columns, from = columns+", b.needs", from+" LEFT JOIN bodies AS b ON b.n = t.n"
	}
	r := c.query("SELECT "+columns+from+w.String()+orderOf(&q)+" LIMIT ? + 0", append(w.args, q.Limit)...)
	defer r.close()
	found = make([]foundTask, 0, min(q.Limit, 5000))
	for r.next() {
		var f foundTask
		if f.n, f.Task = r.brief(); q.Needs {
			f.parents = r.parents(briefWidth)
		}
		found = append(found, f)
	}
	if q.Needs {
		c.fillNeeds(found)
	}
	return found, nil
}

func orderOf(q *store.TaskQuery) string {
	if !q.Of.IsZero() {
		return pick(q.Newest, " ORDER BY t.idx DESC", " ORDER BY t.idx")
	}
	return pick(q.Newest, " ORDER BY t.id DESC", " ORDER BY t.id")
}

// fillNeeds fills the ids of the parents.
func (c *conn) fillNeeds(tasks []foundTask) {
	ids := make(map[int64]plan.TaskID, len(tasks)) // most parents are read with their children
	for i := range tasks {
		ids[tasks[i].n] = tasks[i].ID
	}
	var parents []int64
	for i := range tasks {
		for _, n := range tasks[i].parents {
			if _, is := ids[n]; !is {
				ids[n] = plan.TaskID{} // of one that is not there any more it stays that
				parents = append(parents, n)
			}
		}
	}
	if len(parents) > 0 {
		for r := c.query("SELECT n, id FROM tasks WHERE n IN (SELECT value FROM json_each(?))", list(parents)); r.next(); {
			ids[r.int(0)] = plan.TaskID{ID: r.id(1)}
		}
	}
	for i := range tasks {
		if len(tasks[i].parents) > 0 {
			tasks[i].Needs = make([]plan.TaskID, 0, len(tasks[i].parents))
		}
		for _, n := range tasks[i].parents {
			tasks[i].Needs = append(tasks[i].Needs, ids[n])
		}
	}
}

func (s *Store) Log(ctx context.Context, id plan.TaskID, after int64, limit int) (entries []plan.LogEntry, next int64, err error) {
	next = after
	err = s.read(ctx, func(c *conn) error {
		n, _, err := c.taskNumber(id)
		if err != nil {
			return err
		}
		for r := c.query("SELECT seq, at, attempt, stream, text FROM logs WHERE task = ? AND seq > ? ORDER BY seq LIMIT ? + 0", n, after, limit); r.next(); {
			next = r.int(0)
			entries = append(entries, r.logEntry(1))
		}
		return nil
	})
	return entries, next, err
}

// logEntry reads an entry of a log, whose columns begin at the given one.
func (r *rows) logEntry(at int) plan.LogEntry {
	return plan.LogEntry{At: instant(r.int(at)), Attempt: int(r.int(at + 1)), Stream: plan.Stream(r.int(at + 2)), Text: r.text(at + 3)}
}

func (s *Store) Inputs(ctx context.Context, id plan.TaskID) (in []plan.Input, err error) {
	err = s.read(ctx, func(c *conn) error {
		n, of, err := c.taskNumber(id)
		if err != nil {
			return err
		}
		if h := c.heads(n); of == 0 || len(h.parents) > 0 {
			if err := h.check(); err != nil {
				return err
			}
			in = c.inputs([]int64{n})[n]
			return nil
		}
		var d plan.Definition
		r := c.query("SELECT b.def, p.edits FROM bodies AS b CROSS JOIN tasks AS t ON t.n = b.n CROSS JOIN plans AS p ON p.n = t.plan WHERE b.n = ?", of)
		if !r.one() || json.Unmarshal(r.bytes(0), &d) != nil || d.Foreach == nil {
			return fmt.Errorf("the foreach task of %s is damaged", id)
		}
		edits := r.int(1)
		h := c.heads(of)
		if err := rules.CheckItemInputs(d.Foreach, h.all()); err != nil {
			return err
		}
		if d.Foreach.Group == "" {
			in = c.itemInputs(h, d.Foreach)
			return nil
		}
		in, err = s.shared.get(of, edits, func() ([]plan.Input, error) {
			in := c.itemInputs(h, d.Foreach)
			return in, c.err
		})
		return err
	})
	return in, err
}

func (s *Store) Parents(ctx context.Context, id plan.TaskID) ([]plan.Parent, error) {
	return store.ParentsOf(ctx, s, id)
}

func (s *Store) Failures(ctx context.Context, id plan.TaskID) (json.RawMessage, error) {
	return failed.For(ctx, s, id)
}

// listIDs writes ids as a JSON list of their digits.
func listIDs(ids []plan.TaskID) string {
	b := make([]byte, 0, 27*len(ids)+2)
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = hex.AppendEncode(b, id.ID[:])
		b = append(b, '"')
	}
	return string(append(b, ']'))
}
